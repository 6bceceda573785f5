//! Warnings: what is allowed and still worth a look. A warning is a value with a place, like an error; it goes to one sink,
//! which is the terminal unless a program sets another.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use rustc_hash::FxHashSet;

use crate::error::Location;

/// The variable that turns warnings on and off: all off (`off`), some off by their names (`no-large-constant,no-recompilation`), or one on
/// that is off by default (`unused-argument`).
pub const VARIABLE: &str = "GRADUS_WARNINGS";

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        /// What sort of thing a [`Warning`] is about. Each has a stable code and a name to turn it off by.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum WarningKind { $($(#[$doc])* $name,)* }

        impl WarningKind {
            /// Every kind, in the order of the codes.
            pub const ALL: &'static [WarningKind] = &[$(WarningKind::$name),*];

            /// The stable code, such as `W0001`.
            pub fn code(self) -> &'static str {
                match self { $(WarningKind::$name => $code,)* }
            }

            /// Its name, such as `unused-argument`.
            pub fn title(self) -> &'static str {
                match self { $(WarningKind::$name => $title,)* }
            }
        }
    };
}

kinds! {
    /// A function is compiled again and again.
    Recompilation = "W0001", "recompilation";
    /// An array argument that the function never reads. Off unless it is asked for: one signature for many functions is no mistake.
    UnusedArgument = "W0002", "unused-argument";
    /// A large array that the function captures instead of taking it.
    LargeConstant = "W0003", "large-constant";
    /// A `select` that guards a partial function: the derivative may be NaN.
    SelectOverPartial = "W0004", "select-over-partial";
    /// The disk cache cannot be used, or not as it should be.
    DiskCache = "W0005", "disk-cache";
    /// A program that could not be compiled, by a fault of Gradus, is interpreted.
    Interpreted = "W0006", "interpreted";
    /// A loop that a limit of steps ended before its condition did.
    LoopCutOff = "W0007", "loop-cut-off";
    /// An operation outside of a program ran on the host, though a device has the array.
    OffDevice = "W0008", "off-device";
    /// The same array of the host is copied to a device by call after call.
    RepeatedUpload = "W0009", "repeated-upload";
}

/// What is worth a look, where, and what to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    kind: WarningKind,
    message: String,
    place: Location,
    notes: Vec<String>,
    help: Option<String>,
}

impl Warning {
    /// A warning of a kind with a message; place, notes and help are added by the methods below.
    #[cold]
    pub fn new(kind: WarningKind, message: impl Into<String>) -> Warning {
        Warning { kind, message: message.into(), place: Location::unknown(), notes: Vec::new(), help: None }
    }

    /// Says where.
    pub fn at(mut self, place: Location) -> Warning {
        self.place = place;
        self
    }

    /// Adds a line of context.
    pub fn note(mut self, note: impl Into<String>) -> Warning {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    pub fn help(mut self, help: impl Into<String>) -> Warning {
        self.help = Some(help.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> WarningKind {
        self.kind
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The user's file and line, where known.
    pub fn place(&self) -> Location {
        self.place
    }

    /// Lines of context.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What to do, where there is something to name.
    pub fn way_out(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Gives it to whoever listens: a [`collect`] of this thread, or the handler of the process. Not if it is turned off.
    pub fn emit(self) {
        if is_off(self.kind) {
            return;
        }
        let rest = COLLECTED.with_borrow_mut(|stack| match stack.last_mut() {
            Some(list) => {
                list.push(self);
                None
            }
            None => Some(self),
        });
        let Some(warning) = rest else { return };
        // The handler is the user's code: it runs with no lock held.
        let handler = HANDLER.read().unwrap_or_else(PoisonError::into_inner).clone();
        match handler {
            Some(handler) => handler(&warning),
            None => eprintln!("{warning}"),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warning: {} [{}]: {}", self.kind.title(), self.kind.code(), self.message)?;
        if self.place.is_known() {
            write!(f, "\n  at {}", self.place)?;
        }
        for note in &self.notes {
            write!(f, "\n  note: {note}")?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);
/// Kinds turned off by [`set_warning`]; the variable's and those that are off by default come first.
static OFF: LazyLock<RwLock<Vec<WarningKind>>> =
    LazyLock::new(|| RwLock::new(turned_off(std::env::var(VARIABLE).as_deref().unwrap_or_default())));

thread_local! {
    static COLLECTED: RefCell<Vec<Vec<Warning>>> = const { RefCell::new(Vec::new()) };
}

/// Sends the warnings of the process to a function instead of the terminal.
pub fn set_warning_handler(handler: impl Fn(&Warning) + Send + Sync + 'static) {
    *HANDLER.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(handler));
}

/// Sends the warnings of the process to the terminal again.
pub fn reset_warning_handler() {
    *HANDLER.write().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Turns a kind of warning on or off for the process.
pub fn set_warning(kind: WarningKind, on: bool) {
    let mut off = OFF.write().unwrap_or_else(PoisonError::into_inner);
    off.retain(|k| *k != kind);
    if !on {
        off.push(kind);
    }
}

/// Whether a kind is turned off: then nobody needs to look for it.
pub fn is_off(kind: WarningKind) -> bool {
    OFF.read().unwrap_or_else(PoisonError::into_inner).contains(&kind)
}

/// Emits a warning about a line, once for each line and kind in the process. It is made only if someone hears of it.
pub fn warn_once(kind: WarningKind, place: Location, warning: impl FnOnce() -> Warning) {
    static SAID: LazyLock<Mutex<FxHashSet<(WarningKind, String)>>> = LazyLock::new(Mutex::default);
    if !is_off(kind) && SAID.lock().unwrap_or_else(PoisonError::into_inner).insert((kind, place.to_string())) {
        warning().at(place).emit();
    }
}

/// Runs a function and gives the warnings of this thread meanwhile, which nobody else sees.
pub fn collect<R>(f: impl FnOnce() -> R) -> (R, Vec<Warning>) {
    /// Takes the list away even if the function panics.
    struct Listening;
    impl Drop for Listening {
        fn drop(&mut self) {
            COLLECTED.with_borrow_mut(Vec::pop);
        }
    }
    COLLECTED.with_borrow_mut(|stack| stack.push(Vec::new()));
    let listening = Listening;
    let result = f();
    let warnings = COLLECTED.with_borrow_mut(|stack| stack.last_mut().map(std::mem::take)).unwrap_or_default();
    drop(listening);
    (result, warnings)
}

/// Kinds that nobody hears of who did not ask.
const QUIET: &[WarningKind] = &[WarningKind::UnusedArgument];

/// The kinds that are off with a value of the variable.
fn turned_off(setting: &str) -> Vec<WarningKind> {
    let words: Vec<&str> = setting.split(',').map(str::trim).collect();
    let named = |k: &&WarningKind| {
        let off = words.iter().any(|w| w.eq_ignore_ascii_case("off") || w.strip_prefix("no-") == Some(k.title()));
        off || (QUIET.contains(k) && !words.contains(&k.title()))
    };
    WarningKind::ALL.iter().filter(named).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn the_variable_turns_off_all_or_some() {
        assert_eq!(turned_off(""), QUIET);
        assert_eq!(turned_off("unused-argument"), []);
        assert_eq!(turned_off("off"), WarningKind::ALL);
        let some = turned_off("unused-argument, no-large-constant, no-disk-cache, no-such-thing");
        assert_eq!(some, [WarningKind::LargeConstant, WarningKind::DiskCache]);
    }

    #[test]
    fn a_warning_reads_like_an_error() {
        let w = Warning::new(WarningKind::UnusedArgument, "argument 1 of `f` is never read").note("why").help("how");
        let text = "warning: unused-argument [W0002]: argument 1 of `f` is never read\n  note: why\n  help: how";
        assert_eq!(w.to_string(), text);
    }

    #[test]
    fn one_sink_at_a_time() {
        static SEEN: Mutex<Vec<String>> = Mutex::new(Vec::new());
        let make = |text: &str| Warning::new(WarningKind::LargeConstant, text).emit();
        set_warning_handler(|w| SEEN.lock().unwrap().push(w.message().to_string()));
        make("handled");
        let ((), outer) = collect(|| {
            make("first");
            let ((), inner) = collect(|| make("second"));
            assert_eq!(inner.len(), 1);
            assert_eq!(inner[0].message(), "second");
        });
        assert_eq!(outer.iter().map(Warning::message).collect::<Vec<_>>(), ["first"]);
        set_warning(WarningKind::LargeConstant, false);
        make("off");
        set_warning(WarningKind::LargeConstant, true);
        make("on again");
        reset_warning_handler();
        assert_eq!(*SEEN.lock().unwrap(), ["handled", "on again"]);
    }
}
