//! How many programs one function may need before somebody should know: the history of its keys, what varies in them, and
//! what to do about it.

use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use gradus_core::warnings::{Warning, WarningKind};
use gradus_core::{Dim, Error, ErrorKind, Location, Type};

use super::explain::differences;
use super::key::CallKey;

/// What happens when a function needs more programs than its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnBudget {
    /// A warning, once and again whenever the number doubles.
    #[default]
    Warn,
    /// The call that needs one more is an error.
    Error,
    /// Nothing: many programs are what is wanted.
    Silent,
}

/// The variable that sets the budget of functions that set none: `32`, `8:error`, `off`.
const VARIABLE: &str = "GRADUS_BUDGET";
/// Programs that a function may need before a warning.
const BUDGET: usize = 16;
/// Keys that are remembered: the latest.
const KEPT: usize = 64;
/// Misses that a report lists.
const LISTED: usize = 6;
/// Values that a report lists.
const VALUES: usize = 5;

/// A number of programs, and what is done beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) programs: usize,
    pub(crate) then: OnBudget,
}

impl Default for Budget {
    fn default() -> Budget {
        static CHOSEN: OnceLock<Budget> = OnceLock::new();
        *CHOSEN.get_or_init(|| {
            let plain = Budget { programs: BUDGET, then: OnBudget::Warn };
            std::env::var(VARIABLE).ok().and_then(|text| parse(&text)).unwrap_or(plain)
        })
    }
}

fn parse(text: &str) -> Option<Budget> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("off") {
        return Some(Budget { programs: BUDGET, then: OnBudget::Silent });
    }
    let (number, then) = text.split_once(':').unwrap_or((text, "warn"));
    let then = match then.trim() {
        "warn" => OnBudget::Warn,
        "error" => OnBudget::Error,
        "silent" => OnBudget::Silent,
        _ => return None,
    };
    Some(Budget { programs: number.trim().parse().ok()?, then })
}

/// The programs that a function needed so far.
#[derive(Default)]
pub(crate) struct History {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How many there were.
    programs: usize,
    /// Their keys, the latest ones.
    keys: VecDeque<CallKey>,
    /// The number at which the next warning is due.
    next: usize,
}

/// Who a report is about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) name: &'a str,
    pub(crate) place: Location,
}

impl History {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of one more program, or says why there must not be one. `admitted` is the program's own mark: threads that
    /// want it at once count once.
    pub(super) fn admit(
        &self,
        budget: Budget,
        key: &CallKey,
        admitted: &AtomicBool,
        about: About<'_>,
    ) -> Result<(), Error> {
        let mut state = self.state();
        if admitted.load(Ordering::Relaxed) {
            return Ok(());
        }
        if budget.then == OnBudget::Error && state.programs >= budget.programs {
            // The key that is refused belongs to the picture of what varies, and is not remembered.
            let keys: Vec<&CallKey> = state.keys.iter().chain([key]).collect();
            let report = report(&keys, state.programs);
            drop(state);
            return Err(report.error(budget, about));
        }
        admitted.store(true, Ordering::Relaxed);
        state.programs += 1;
        if state.keys.len() == KEPT {
            state.keys.pop_front();
        }
        state.keys.push_back(key.clone());
        let due = state.next.max(budget.programs.saturating_add(1));
        if budget.then != OnBudget::Warn || state.programs < due {
            return Ok(());
        }
        state.next = state.programs.saturating_mul(2);
        let report = report(&state.keys.iter().collect::<Vec<_>>(), state.programs);
        // Whoever listens may call the function: no lock is held then.
        drop(state);
        report.warning(budget, about).emit();
        Ok(())
    }

    /// How many programs there were, and if they are more than the budget, what varies in their keys.
    pub(super) fn summary(&self, budget: Budget) -> (usize, Vec<String>) {
        let state = self.state();
        let over =
            state.programs > budget.programs || (budget.then == OnBudget::Error && state.programs == budget.programs);
        let proposals = match over {
            true => report(&state.keys.iter().collect::<Vec<_>>(), state.programs).proposals,
            false => Vec::new(),
        };
        (state.programs, proposals)
    }

    pub(super) fn clear(&self) {
        *self.state() = State::default();
    }
}

struct Report {
    programs: usize,
    misses: Vec<String>,
    proposals: Vec<String>,
}

impl Report {
    fn message(&self, budget: Budget, about: About<'_>) -> String {
        let (n, most, name) = (self.programs, budget.programs, about.name);
        let programs = if n == 1 { "program" } else { "programs" };
        match budget.then {
            OnBudget::Error => format!("`{name}` has {n} {programs} and needs another, beyond its budget of {most}"),
            _ => format!("`{name}` needed {n} {programs}, more than its budget of {most}: each is traced and compiled"),
        }
    }

    fn history(&self) -> String {
        self.misses.iter().fold("what differed, the latest last:".to_string(), |all, m| all + "\n    " + m)
    }

    fn help(&self) -> String {
        match self.proposals.as_slice() {
            [] => "raise it with `.budget(n)`, or `.on_budget(OnBudget::Silent)`, if so many are wanted".to_string(),
            found => found.join("\n        "),
        }
    }

    fn warning(&self, budget: Budget, about: About<'_>) -> Warning {
        let warning = Warning::new(WarningKind::Recompilation, self.message(budget, about)).at(about.place);
        let warning = if self.misses.is_empty() { warning } else { warning.note(self.history()) };
        warning.help(self.help())
    }

    fn error(&self, budget: Budget, about: About<'_>) -> Error {
        let error = Error::new(ErrorKind::Budget, self.message(budget, about)).at(about.place);
        let error = if self.misses.is_empty() { error } else { error.note(self.history()) };
        error.help(self.help())
    }
}

fn report(keys: &[&CallKey], programs: usize) -> Report {
    let misses = (1..keys.len()).rev().take(LISTED).map(|i| miss(&keys[..i], keys[i])).collect::<Vec<_>>();
    Report { programs, misses: misses.into_iter().rev().collect(), proposals: proposals(keys) }
}

/// What differed from the nearest of the keys before.
fn miss(before: &[&CallKey], key: &CallKey) -> String {
    let nearest = before.iter().rev().map(|old| differences(old, key)).min_by_key(Vec::len).unwrap_or_default();
    match nearest.as_slice() {
        [] => "the same key again: its program was dropped, or a value that was read differs".to_string(),
        all => {
            let mut text = all.iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join("; ");
            if all.len() > 3 {
                let _ = write!(text, "; and {} more", all.len() - 3);
            }
            text
        }
    }
}

/// Texts of several values: the first ones, and the last.
fn values(all: &[String]) -> String {
    let mut seen: Vec<&String> = Vec::new();
    all.iter().for_each(|v| {
        if !seen.contains(&v) {
            seen.push(v);
        }
    });
    match seen.as_slice() {
        [first @ .., last] if seen.len() > VALUES => {
            let first: Vec<&str> = first.iter().take(VALUES - 2).map(|s| s.as_str()).collect();
            format!("{}, ... {last}", first.join(", "))
        }
        all => all.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// What to do about what varies.
fn proposals(keys: &[&CallKey]) -> Vec<String> {
    let Some(latest) = keys.last() else { return Vec::new() };
    let mut found = Vec::new();
    // Other lengths and variants move every part behind them: they come first, and alone.
    let shape = |k: &CallKey| k.parts.iter().map(|p| (p.path().to_string(), p.structure())).collect::<Vec<_>>();
    let whole = shape(latest);
    if keys.iter().any(|k| shape(k) != whole) {
        let at = keys.iter().find_map(|k| {
            let other = shape(k);
            let first = whole.iter().zip(&other).find(|(a, b)| a != b).map(|(a, _)| a.0.clone());
            first.or_else(|| whole.get(other.len()).or(other.get(whole.len())).map(|p| p.0.clone()))
        });
        let path = at.unwrap_or_else(|| "an argument".to_string());
        let seen: Vec<String> = keys
            .iter()
            .filter_map(|k| k.parts.iter().find(|p| p.path() == path && p.structure().is_some()))
            .map(ToString::to_string)
            .collect();
        let seen = if seen.is_empty() { String::new() } else { format!(" ({})", values(&seen)) };
        return vec![format!(
            "{path} varies in its structure{seen}: pad it to one length, or pass one array with an axis for it"
        )];
    }
    let mut dims = Vec::new();
    for (i, part) in latest.parts.iter().enumerate() {
        let column: Vec<_> = keys.iter().map(|k| &k.parts[i]).collect();
        if column.iter().all(|p| p.same(part)) {
            continue;
        }
        let texts: Vec<String> = column.iter().map(ToString::to_string).collect();
        let types: Option<Vec<&Type>> = column.iter().map(|p| p.leaf()).collect();
        let path = part.path();
        match types {
            None => found.push(format!(
                "{path} is frozen and varies ({}): pass it as an array, or a `Num` with `track_numbers`",
                values(&texts)
            )),
            Some(types) if types.iter().any(|t| t.dtype() != types[0].dtype()) => {
                found.push(format!("{path} varies in its dtype ({}): convert it before the call", values(&texts)));
            }
            Some(types) if types.iter().any(|t| t.rank() != types[0].rank()) => {
                found.push(format!("{path} varies in its rank ({}): reshape it before the call", values(&texts)));
            }
            Some(types) => {
                for axis in 0..types[0].rank() {
                    let sizes: Vec<Dim> = types.iter().map(|t| t.shape()[axis].clone()).collect();
                    if sizes.iter().any(|d| *d != sizes[0]) {
                        dims.push(Varying { part: i, axis, sizes });
                    }
                }
            }
        }
    }
    found.extend(symbolic(latest, &dims));
    if found.is_empty() && keys.len() > 1 {
        found.push(
            "a value that is read while tracing differs from call to call: choose with `cond` or `select` instead"
                .to_string(),
        );
    }
    found
}

/// A dimension that varies: of which part, and its sizes call by call.
struct Varying {
    part: usize,
    axis: usize,
    sizes: Vec<Dim>,
}

/// The proposal to declare dimensions symbolic, with the text to paste.
fn symbolic(key: &CallKey, dims: &[Varying]) -> Vec<String> {
    const NAMES: [&str; 8] = ["B", "N", "M", "K", "P", "Q", "R", "S"];
    // Dimensions that were always equal are one symbol.
    let mut groups: Vec<&Varying> = Vec::new();
    let mut symbol = |d: &Varying| {
        let at = groups.iter().position(|g| g.sizes == d.sizes);
        if at.is_none() {
            groups.extend(dims.iter().find(|o| o.part == d.part && o.axis == d.axis));
        }
        let at = at.unwrap_or(groups.len() - 1);
        NAMES.get(at).map_or_else(|| format!("D{at}"), ToString::to_string)
    };
    let named: Vec<(&Varying, String)> = dims.iter().map(|d| (d, symbol(d))).collect();
    let mut found: Vec<String> = named
        .iter()
        .map(|(d, name)| {
            let sizes: Vec<String> = d.sizes.iter().map(ToString::to_string).collect();
            format!(
                "{} varies in dimension {} ({}): declare it `{name}`",
                key.parts[d.part].path(),
                d.axis,
                values(&sizes)
            )
        })
        .collect();
    // An array as it is declared; none if nothing about it varies.
    let declared = |part: usize| -> Option<String> {
        let ty = key.parts[part].leaf()?;
        let varies: Vec<_> = named.iter().filter(|(d, _)| d.part == part).collect();
        let sizes: Vec<String> = (0..ty.rank())
            .map(|axis| match varies.iter().find(|(d, _)| d.axis == axis) {
                Some((_, name)) => name.clone(),
                None => ty.shape()[axis].to_string(),
            })
            .collect();
        (!varies.is_empty()).then(|| format!("{}[{}]", ty.dtype(), sizes.join(", ")))
    };
    let spec = |argument: usize| -> String {
        let whole = format!("argument {argument}");
        let inside =
            |path: &str| path.strip_prefix(&whole).is_some_and(|p| !p.starts_with(|c: char| c.is_ascii_digit()));
        let arrays: Vec<usize> =
            (0..key.parts.len()).filter(|p| key.parts[*p].leaf().is_some() && inside(key.parts[*p].path())).collect();
        let texts: Vec<Option<String>> = arrays.iter().map(|p| declared(*p)).collect();
        let open = || "_".to_string();
        match &texts[..] {
            all if all.iter().all(Option::is_none) => open(),
            [Some(one)] => one.clone(),
            all => format!("({})", all.iter().map(|t| t.clone().unwrap_or_else(open)).collect::<Vec<_>>().join(", ")),
        }
    };
    if let Some(last) = found.last_mut() {
        let specs: Vec<String> = (0..key.arguments).map(spec).collect();
        let _ = write!(last, ": `.symbolic(\"{}\")`", specs.join(", "));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_a_number_and_what_then() {
        assert_eq!(parse("32"), Some(Budget { programs: 32, then: OnBudget::Warn }));
        assert_eq!(parse(" 8:error "), Some(Budget { programs: 8, then: OnBudget::Error }));
        assert_eq!(parse("off").map(|b| b.then), Some(OnBudget::Silent));
        assert_eq!(parse("many"), None);
        assert_eq!(parse("8:shout"), None);
    }

    #[test]
    fn long_lists_are_cut() {
        let texts = |n: i32| (1..=n).map(|i| i.to_string()).collect::<Vec<_>>();
        assert_eq!(values(&texts(3)), "1, 2, 3");
        assert_eq!(values(&texts(5)), "1, 2, 3, 4, 5");
        assert_eq!(values(&texts(17)), "1, 2, 3, ... 17");
        assert_eq!(values(&["1".into(), "2".into(), "1".into()]), "1, 2");
    }
}
