//! One error type for the whole system: what happened, where in the user's code, and the way out.
//!
//! Errors travel as values. An operation that cannot be done returns an [`Array`](crate::Array) that carries the error
//! onwards; it comes out as `Err` where numbers are read or where a staged call is checked.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use crate::location::Location;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// So many of something, for messages: `1 axis`, `3 axes`.
pub fn counted(n: impl fmt::Display, what: &str) -> String {
    let n = n.to_string();
    match (n.as_str(), what.strip_suffix("is")) {
        ("1", _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{n} {stem}es"),
        (_, None) => format!("{n} {what}s"),
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $title:literal;)*) => {
        /// What sort of mistake an [`Error`] reports. Each has a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorKind { $($(#[$doc])* $name,)* }

        impl ErrorKind {
            /// Every kind, in the order of the codes.
            pub const ALL: &'static [ErrorKind] = &[$(ErrorKind::$name),*];

            /// The stable code, such as `G0001`.
            pub fn code(self) -> &'static str {
                match self { $(ErrorKind::$name => $code,)* }
            }

            /// A few words that name the kind.
            pub fn title(self) -> &'static str {
                match self { $(ErrorKind::$name => $title,)* }
            }
        }
    };
}

kinds! {
    /// Shapes that do not fit together, or a shape that cannot be.
    Shape = "G0001", "shape mismatch";
    /// A dtype an operation does not take, or dtypes with no lossless common type.
    DType = "G0002", "dtype mismatch";
    /// An axis outside the rank, or named twice.
    Axis = "G0003", "bad axis";
    /// An index or range outside an axis.
    Index = "G0004", "bad index";
    /// A dimension that overflows, or an array too large to exist.
    Size = "G0005", "size out of range";
    /// A number was asked of a value that has none yet.
    NotConcrete = "G0006", "no number here";
    /// A tracer was used after its trace ended, or on another thread.
    EscapedTracer = "G0007", "escaped tracer";
    /// Text that is not a program, a type, a dimension or an equation of indices.
    Parse = "G0008", "cannot parse";
    /// A program that breaks a rule of the language.
    Verify = "G0009", "invalid program";
    /// A primitive has no rule for what was asked.
    MissingRule = "G0010", "missing rule";
    /// A frozen value differs from the one a compiled program was made for.
    Frozen = "G0011", "frozen value changed";
    /// A call does not fit a compiled program.
    Signature = "G0012", "call does not fit";
    /// A constraint on symbolic dimensions does not hold.
    Constraint = "G0013", "constraint violated";
    /// An argument whose value is not allowed.
    Value = "G0014", "bad value";
    /// A rule of a primitive broke its contract.
    Rule = "G0015", "broken rule";
    /// A function of the host that a program calls failed or panicked.
    Callback = "G0016", "callback failed";
    /// A check that stands in a program does not hold.
    Check = "G0017", "check failed";
    /// A function needs more programs than its budget allows.
    Budget = "G0018", "recompilation budget";
    /// An operation made a NaN or an infinity while someone hunted for them.
    NotFinite = "G0019", "not a finite number";
    /// Compiled code gave other numbers than the interpreter, where someone verified it.
    Mismatch = "G0020", "compiled code differs";
    /// Gradus itself failed, on a program that is right.
    Internal = "G0021", "fault of Gradus";
    /// A file that cannot be read or written, or that does not hold what is wanted of it.
    File = "G0022", "file";
    /// A device, or the compiler for it, that is not there, refuses or fails.
    Device = "G0023", "device";
}

/// What went wrong, where, and what to do.
#[derive(Clone)]
pub struct Error(Arc<Parts>);

#[derive(Clone)]
struct Parts {
    kind: ErrorKind,
    message: String,
    place: Location,
    notes: Vec<String>,
    help: Option<String>,
}

impl Error {
    /// An error of a kind with a message; places, notes and help are added by the methods below.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error(Arc::new(Parts {
            kind,
            message: message.into(),
            place: Location::unknown(),
            notes: Vec::new(),
            help: None,
        }))
    }

    fn edit(mut self, change: impl FnOnce(&mut Parts)) -> Error {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Says where. A place that is already known stays: the first one is nearest to the mistake.
    pub fn at(self, place: Location) -> Error {
        if self.0.place.is_known() || !place.is_known() { self } else { self.edit(|p| p.place = place) }
    }

    /// Adds a line of context, such as a second place or what was expected.
    pub fn note(self, note: impl Into<String>) -> Error {
        self.edit(|p| p.notes.push(note.into()))
    }

    /// Says the way out. The first help given stays.
    pub fn help(self, help: impl Into<String>) -> Error {
        if self.0.help.is_some() { self } else { self.edit(|p| p.help = Some(help.into())) }
    }

    /// Puts words in front of the message: the name of a file, or of a part of one.
    pub fn within(self, words: impl Into<String>) -> Error {
        let words = words.into();
        self.edit(|p| p.message = words + &p.message)
    }

    /// Puts an operation in front of the message, unless one is there or the message is the user's own.
    pub fn in_operation(self, name: &str) -> Error {
        // One with a line is an operand's, and was named where it was made.
        let named = self.0.message.starts_with('`') || self.place().is_known();
        if named || self.0.kind == ErrorKind::Check {
            self
        } else {
            self.edit(|p| p.message = format!("`{name}`: {}", p.message))
        }
    }

    /// The same, called what it is: a fault of Gradus and not of the user's program.
    pub fn of_gradus(self) -> Error {
        if self.0.kind == ErrorKind::Internal {
            return self;
        }
        self.edit(|p| {
            p.notes.push(format!(
                "this is a fault of Gradus, not of your program; inside it is [{}] {}",
                p.kind.code(),
                p.kind.title()
            ));
            p.kind = ErrorKind::Internal;
            p.help = Some(
                "`.backend(Interpreter)` runs the program without the compiler; please report the fault with the \
                 program's text, which `f.trace(..)?.program()` has"
                    .into(),
            );
        })
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone, without place, notes and help.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The user's file and line, where known.
    pub fn place(&self) -> Location {
        self.0.place
    }

    /// The way out, where there is one to name.
    pub fn way_out(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// Whether two errors are one and the same value (not merely equal in text).
    pub fn is_same(&self, other: &Error) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = &*self.0;
        write!(f, "{} [{}]: {}", p.kind.title(), p.kind.code(), p.message)?;
        if p.place.is_known() {
            write!(f, "\n  at {}", p.place)?;
        }
        for note in &p.notes {
            write!(f, "\n  note: {note}")?;
        }
        match &p.help {
            Some(help) => write!(f, "\n  help: {help}"),
            // Nothing is left without a way on: each kind has a page.
            None => {
                write!(f, "\n  help: `gradus::extend::error_page(\"{}\")` is the page of the book on it", p.kind.code())
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Two errors are equal when they say the same.
impl PartialEq for Error {
    fn eq(&self, other: &Error) -> bool {
        self.is_same(other) || (self.kind() == other.kind() && self.to_string() == other.to_string())
    }
}

impl std::error::Error for Error {}

/// What a panic that was stopped said.
pub(crate) fn panic_text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| s.to_string());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no text".into());
    // What was thrown may panic once more when it goes.
    std::mem::forget(panic);
    text
}

/// Shorthand for the errors that are made all over the crate.
macro_rules! fail {
    ($kind:ident, $($format:tt)+) => {
        return Err($crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($format)+)))
    };
}
macro_rules! error {
    ($kind:ident, $($format:tt)+) => {
        $crate::error::Error::new($crate::error::ErrorKind::$kind, format!($($format)+))
    };
}
pub(crate) use {error, fail};
