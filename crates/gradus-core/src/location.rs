//! Where in the user's source something was written, and which transformations it went through since. The two travel
//! together, so that whatever keeps an equation's line keeps its history too.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic;
use std::sync::{PoisonError, RwLock};

use rustc_hash::FxHashMap;

/// Where in the user's source something was written.
///
/// An equation that a transformation recorded has the line of the equation it stands for, and a [`path`](Location::path) that
/// says what was done. The path is for readers only: two places are equal if their lines are.
#[derive(Clone, Copy, Default)]
pub struct Location {
    line: Line,
    origin: Origin,
}

/// A line of Rust, or of a text that a program was read from.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Line {
    #[default]
    Unknown,
    Rust(&'static panic::Location<'static>),
    Text {
        source: Source,
        line: u32,
        column: u32,
    },
}

/// A text that programs are read from, by the number of its name. Names are kept for ever, each once, so that a place stays small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source(u32);

/// The names of all texts that there are. They are leaked: places outlive whatever they came from.
static SOURCES: RwLock<Vec<&'static str>> = RwLock::new(Vec::new());

/// So many texts have names of their own; those behind them share the last. It bounds what a process that reads texts for ever keeps.
const MOST_SOURCES: usize = 1 << 16;

impl Source {
    /// The text of this name: a file's path, or what a caller says.
    pub fn named(name: &str) -> Source {
        let mut sources = SOURCES.write().unwrap_or_else(PoisonError::into_inner);
        let at = sources.iter().rposition(|s| *s == name).unwrap_or_else(|| {
            let full = sources.len() >= MOST_SOURCES;
            sources.push(if full { "<text>" } else { Box::leak(name.into()) });
            sources.len() - 1
        });
        Source(at as u32)
    }

    fn name(self) -> &'static str {
        let sources = SOURCES.read().unwrap_or_else(PoisonError::into_inner);
        sources.get(self.0 as usize).copied().unwrap_or("<text>")
    }
}

impl Location {
    /// The place that called the function which calls this, through every `#[track_caller]` in between.
    #[track_caller]
    pub fn caller() -> Location {
        Location { line: Line::Rust(panic::Location::caller()), origin: Origin::USER }
    }

    /// No place: a program that came from text which says none.
    pub const fn unknown() -> Location {
        Location { line: Line::Unknown, origin: Origin::USER }
    }

    /// A place of a text, line and column from 1. A line of 0 is no place.
    pub const fn in_text(source: Source, line: u32, column: u32) -> Location {
        let line = if line == 0 { Line::Unknown } else { Line::Text { source, line, column } };
        Location { line, origin: Origin::USER }
    }

    /// The file, as the compiler was given it.
    pub fn file(self) -> Option<&'static str> {
        match self.line {
            Line::Unknown => None,
            Line::Rust(at) => Some(at.file()),
            Line::Text { source, .. } => Some(source.name()),
        }
    }

    /// The line, from 1.
    pub fn line(self) -> Option<u32> {
        match self.line {
            Line::Unknown => None,
            Line::Rust(at) => Some(at.line()),
            Line::Text { line, .. } => Some(line),
        }
    }

    /// Whether a source line is known.
    pub fn is_known(self) -> bool {
        self.line != Line::Unknown
    }

    /// The same line, for what the rule of an operation records there.
    pub(crate) fn through(self, rule: Rule, operation: Named) -> Location {
        Location { origin: self.origin.then(rule, operation), ..self }
    }

    /// The rules that led from the user's operation to this equation, the last first, and the user's operation. Empty for
    /// what the user wrote.
    pub fn path(self) -> Path {
        Path(self.origin.steps())
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Location) -> bool {
        self.line == other.line
    }
}

impl Eq for Location {}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.line.hash(state);
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Line::Rust(at) => write!(f, "{}:{}:{}", at.file(), at.line(), at.column()),
            Line::Text { source, line, column } => write!(f, "{}:{line}:{column}", source.name()),
            Line::Unknown => f.write_str("<unknown>"),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which rule of an operation recorded an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The forward derivative.
    Derivative,
    /// The transpose: the backward pass.
    Transpose,
    /// Batching.
    Batch,
}

impl Rule {
    fn name(self) -> &'static str {
        match self {
            Rule::Derivative => "jvp",
            Rule::Transpose => "transpose",
            Rule::Batch => "vmap",
        }
    }
}

/// What is said of an operation whose rule recorded an equation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    /// Its name.
    pub(crate) name: &'static str,
    /// Where its slope is infinite, in words.
    pub(crate) slope: Option<&'static str>,
    /// A number far from there.
    pub(crate) safe: &'static str,
}

/// What was done to a user's operation; the last rule comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(Vec<(Rule, Named)>);

impl Path {
    /// Whether no transformation had a part in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it runs in the backward pass.
    pub fn is_backward(&self) -> bool {
        self.0.iter().any(|(rule, _)| *rule == Rule::Transpose)
    }

    /// Whether it belongs to a derivative.
    pub fn is_derivative(&self) -> bool {
        self.0.iter().any(|(rule, _)| *rule != Rule::Batch)
    }

    /// How many times it was batched: so many axes in front count examples.
    pub fn batches(&self) -> usize {
        self.0.iter().filter(|(rule, _)| *rule == Rule::Batch).count()
    }

    /// The operation that the user wrote.
    pub fn operation(&self) -> Option<&'static str> {
        self.named().map(|operation| operation.name)
    }

    /// The operation that the user wrote, and where its slope is infinite.
    pub(crate) fn named(&self) -> Option<Named> {
        self.0.last().map(|(_, operation)| *operation)
    }
}

/// `transpose of jvp of log`, in backquotes where the name of the operation stands.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (rule, _) in &self.0 {
            write!(f, "{} of ", rule.name())?;
        }
        write!(f, "`{}`", self.operation().unwrap_or_default())
    }
}

/// A chain of rules by its number: the table keeps each chain once, because most equations of a transformed program share
/// theirs with others, and an equation is copied by every pass.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Origin(u32);

/// One rule, after what came before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Link {
    rule: Rule,
    operation: Named,
    before: Origin,
}

/// Chains longer than this stop growing: derivatives of higher order say what they say in the first few rules.
const LONGEST: usize = 12;

/// All links that there are, numbered from 1.
static LINKS: RwLock<Vec<Link>> = RwLock::new(Vec::new());

thread_local! {
    /// The numbers this thread has met, so that most questions need no lock.
    static KNOWN: RefCell<FxHashMap<Link, Origin>> = RefCell::default();
}

impl Origin {
    const USER: Origin = Origin(0);

    fn then(self, rule: Rule, operation: Named) -> Origin {
        let link = Link { rule, operation, before: self };
        if let Some(found) = KNOWN.with_borrow(|known| known.get(&link).copied()) {
            return found;
        }
        let made = if self.steps().len() >= LONGEST { self } else { link.number() };
        KNOWN.with_borrow_mut(|known| known.insert(link, made));
        made
    }

    fn steps(self) -> Vec<(Rule, Named)> {
        let links = LINKS.read().unwrap_or_else(PoisonError::into_inner);
        let link = |o: &Origin| (o.0 as usize).checked_sub(1).and_then(|i| links.get(i));
        std::iter::successors(link(&self), |l| link(&l.before)).map(|l| (l.rule, l.operation)).collect()
    }
}

impl Link {
    fn number(self) -> Origin {
        let mut links = LINKS.write().unwrap_or_else(PoisonError::into_inner);
        let at = links.iter().position(|l| *l == self).unwrap_or_else(|| {
            links.push(self);
            links.len() - 1
        });
        Origin(at as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_a_text_is_a_place() {
        let source = Source::named("model.mlir");
        let here = Location::in_text(source, 7, 3);
        assert_eq!(here.to_string(), "model.mlir:7:3");
        assert_eq!((here.file(), here.line(), here.is_known()), (Some("model.mlir"), Some(7), true));
        assert_eq!(here, Location::in_text(Source::named("model.mlir"), 7, 3));
        assert!(here != Location::in_text(source, 8, 3) && !Location::in_text(source, 0, 0).is_known());
        assert!(size_of::<Location>() <= 24, "every equation has one");
    }

    #[test]
    fn a_path_names_rules_from_the_last_to_the_first() {
        let named = |name| Named { name, slope: None, safe: "1.0" };
        let here = Location::caller();
        assert!(here.path().is_empty() && !here.path().is_backward());
        let there = here.through(Rule::Derivative, named("log")).through(Rule::Transpose, named("div"));
        assert_eq!(there.path().to_string(), "transpose of jvp of `log`");
        assert_eq!(there.path().operation(), Some("log"));
        assert!(there.path().is_backward());
        assert_eq!(there, here, "the path is no part of what a place is");
        assert_eq!(there.through(Rule::Batch, named("mul")).path().batches(), 1);
        let deep = (0..100).fold(here, |place, _| place.through(Rule::Derivative, named("sin")));
        assert_eq!(deep.path().to_string().matches("jvp").count(), LONGEST);
    }
}
