//! Which tier's code of a program runs.
//!
//! A program begins with the embedded tier's code. One that is called often gets the optimizing tier's too, made in the background; then calls take turns with both and the clock
//! decides, for the same bits come of either. What was decided is kept on disk with the code.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::abi::MainFn;
use crate::backend::{Options, Tier};
use crate::codegen::{embedded, kept, llvm};
use crate::error::Result;
use crate::lower::Lowered;

/// Calls after which a program is worth the optimizing compiler.
const HOT: u32 = 64;

/// The code of both tiers, as far as there is any. The background compiler needs it to outlive a call.
pub(crate) struct Tiers {
    pub lowered: Lowered,
    pub options: Options,
    embedded: OnceLock<embedded::Compiled>,
    /// The optimizing tier's code, when it is ready.
    better: OnceLock<llvm::Compiled>,
    /// Why it does not run, for reports.
    without: OnceLock<String>,
    calls: AtomicU32,
    /// One of [`EMBEDDED`], [`OPTIMIZED`] and [`TRIAL`].
    runs: AtomicU8,
    trial: Trial,
    /// Where texts of the code are written, if someone wants them.
    texts: Option<PathBuf>,
}

const EMBEDDED: u8 = 0;
const OPTIMIZED: u8 = 1;
/// It is being found out which of them is faster.
const TRIAL: u8 = 2;

/// What the clock said so far.
#[derive(Default)]
struct Trial {
    /// Calls of one size are compared: the address of what is ready for it, which is only a name here.
    of: AtomicUsize,
    turns: AtomicU32,
    /// The shortest call with each tier's code, in nanoseconds.
    shortest: [AtomicU64; 2],
}

impl Trial {
    /// Whose turn it is. The first call is one with new code, and neither is always the one after the other.
    const ORDER: [u8; 4] = [OPTIMIZED, EMBEDDED, EMBEDDED, OPTIMIZED];
    /// Turns after which a difference of a tenth is believed, and after which any is.
    const ROUNDS: [u32; 2] = [8, 32];

    fn new() -> Trial {
        Trial { shortest: [AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX)], ..Trial::default() }
    }

    /// Whether calls of a size take part: those of the first one that came.
    fn takes(&self, size: usize) -> bool {
        let first = self.of.compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed);
        first.is_ok() || first == Err(size)
    }

    /// Who is faster, if that is clear after so many turns.
    fn winner(&self, turns: u32) -> Option<u8> {
        let [embedded, optimized] = self.shortest.each_ref().map(|t| t.load(Ordering::Relaxed));
        let clear = embedded.abs_diff(optimized) > embedded.min(optimized) / 10;
        let [least, most] = Trial::ROUNDS;
        let decided = turns.is_multiple_of(4) && (turns >= most || (clear && turns >= least));
        decided.then_some(if optimized < embedded { OPTIMIZED } else { EMBEDDED })
    }
}

impl Tiers {
    /// The first code there is to run, who made it, and whether it was on disk.
    pub(crate) fn new(
        lowered: Lowered,
        options: Options,
        texts: Option<PathBuf>,
    ) -> Result<(Arc<Tiers>, &'static str, bool)> {
        let tiers = Tiers {
            lowered,
            options,
            embedded: OnceLock::new(),
            better: OnceLock::new(),
            without: OnceLock::new(),
            calls: AtomicU32::new(0),
            runs: AtomicU8::new(EMBEDDED),
            trial: Trial::new(),
            texts,
        };
        let (made, loaded) = tiers.first()?;
        Ok((Arc::new(tiers), made, loaded))
    }

    fn first(&self) -> Result<(&'static str, bool)> {
        let module = &self.lowered.module;
        let only_optimized = match self.options.tier {
            Tier::Llvm => true,
            // There is nothing to begin with until then.
            Tier::Auto => !embedded::available(self.options.vectors.isa()),
            Tier::Embedded => false,
        };
        if only_optimized {
            match self.improve() {
                Ok(loaded) => {
                    self.runs.store(OPTIMIZED, Ordering::Release);
                    return Ok(("llvm", loaded));
                }
                Err(why) => drop(self.without.set(why)),
            }
        } else if self.options.tier == Tier::Auto && self.texts.is_none() {
            match kept::winner(module) {
                Some(true) => {
                    if let Some(code) = kept::optimized_before(module) {
                        drop(self.better.set(code));
                        self.decide(OPTIMIZED);
                        return Ok(("llvm", true));
                    }
                }
                Some(false) => self.decide(EMBEDDED),
                None => {}
            }
        }
        let kept = kept::embedded(module, self.texts.is_some(), self.options.vectors.isa())?;
        if let Some(folder) = &self.texts {
            write(folder, "assembly.txt", kept.code.assembly());
        }
        drop(self.embedded.set(kept.code));
        Ok(("embedded", kept.loaded))
    }

    /// Makes the optimizing tier's code; says whether it was on disk.
    fn improve(&self) -> std::result::Result<bool, String> {
        let kept = kept::optimized(&self.lowered.module, self.texts.is_some())?;
        if let Some(folder) = &self.texts {
            write(folder, "llvm.ll", kept.code.llvm_ir().unwrap_or_default());
            write(folder, "llvm_assembly.txt", kept.code.assembly().unwrap_or_default());
        }
        drop(self.better.set(kept.code));
        Ok(kept.loaded)
    }

    /// Counts a call that succeeded. Starts the optimizing tier in the background, once, for a program that is called often.
    pub(crate) fn count_call(self: &Arc<Tiers>) {
        if self.options.tier != Tier::Auto || self.calls.load(Ordering::Relaxed) > HOT {
            return;
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) == HOT {
            let tiers = self.clone();
            rayon::spawn(move || match tiers.improve() {
                Ok(_) => tiers.runs.store(TRIAL, Ordering::Release),
                Err(why) => drop(tiers.without.set(why)),
            });
        }
    }

    /// Nothing is to be found out any more.
    fn decide(&self, winner: u8) {
        self.calls.store(HOT + 1, Ordering::Relaxed);
        self.runs.store(winner, Ordering::Release);
        if winner == EMBEDDED {
            drop(self.without.set("the embedded compiler's code is as fast".into()));
        }
    }

    fn main(&self, which: u8) -> Option<MainFn> {
        match which {
            OPTIMIZED => self.better.get().map(llvm::Compiled::main),
            _ => self.embedded.get().map(embedded::Compiled::main),
        }
    }

    /// Runs a call with the code that is best as far as is known; none if there is no code. `size` names what it is ready for.
    pub(crate) fn run(&self, size: usize, call: impl FnOnce(MainFn) -> u64) -> Option<u64> {
        match self.runs.load(Ordering::Acquire) {
            TRIAL => self.run_timed(size, call),
            which => Some(call(self.main(which)?)),
        }
    }

    #[cold]
    fn run_timed(&self, size: usize, call: impl FnOnce(MainFn) -> u64) -> Option<u64> {
        if !self.trial.takes(size) {
            return Some(call(self.main(EMBEDDED)?));
        }
        let turn = self.trial.turns.fetch_add(1, Ordering::Relaxed);
        let which = Trial::ORDER[turn as usize % Trial::ORDER.len()];
        let main = self.main(which)?;
        let started = Instant::now();
        let code = call(main);
        let time = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.trial.shortest[usize::from(which)].fetch_min(time, Ordering::Relaxed);
        if let Some(winner) = self.trial.winner(turn.wrapping_add(1)) {
            self.decide(winner);
            kept::win(&self.lowered.module, winner == OPTIMIZED);
        }
        Some(code)
    }

    /// How often the code that may run has changed.
    pub(crate) fn generation(&self) -> u32 {
        u32::from(self.runs.load(Ordering::Relaxed) != EMBEDDED)
    }

    /// Whether the optimizing tier's code runs, and if not, why.
    pub(crate) fn tier(&self) -> std::result::Result<Tier, Option<&str>> {
        match self.runs.load(Ordering::Relaxed) {
            OPTIMIZED => Ok(Tier::Llvm),
            _ => Err(self.without()),
        }
    }

    /// Why the optimizing tier's code does not run.
    pub(crate) fn without(&self) -> Option<&str> {
        self.without.get().map(String::as_str)
    }

    pub(crate) fn code_bytes(&self) -> usize {
        self.embedded.get().map_or(0, embedded::Compiled::bytes) + self.better.get().map_or(0, llvm::Compiled::bytes)
    }
}

/// Writes a text of what there is to see. What cannot be written is left out: looking in must not fail a run.
pub(crate) fn write(folder: &Path, name: &str, text: &str) {
    drop(std::fs::write(folder.join(name), text));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(embedded: u64, optimized: u64) -> impl Fn(u32) -> Option<u8> {
        let trial = Trial::new();
        trial.shortest[usize::from(EMBEDDED)].store(embedded, Ordering::Relaxed);
        trial.shortest[usize::from(OPTIMIZED)].store(optimized, Ordering::Relaxed);
        move |turns| trial.winner(turns)
    }

    #[test]
    fn a_clear_difference_is_believed_early_and_any_in_the_end() {
        let clear = after(1000, 1200);
        assert_eq!([4, 7, 8].map(&clear), [None, None, Some(EMBEDDED)]);
        assert_eq!(after(1200, 1000)(8), Some(OPTIMIZED));
        let close = after(1010, 1000);
        assert_eq!([8, 28, 31, 32].map(&close), [None, None, None, Some(OPTIMIZED)]);
        assert_eq!(after(1000, 1000)(32), Some(EMBEDDED), "what runs already stays");
    }

    #[test]
    fn only_calls_of_one_size_are_compared() {
        let trial = Trial::new();
        assert!(trial.takes(5) && trial.takes(5) && !trial.takes(6));
    }
}
