//! The key of a program: what it was specialized to. Compared part by part, so that a miss can say which part differed.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use gradus_core::{Array, DType, Decision, Location, Result, Type};
use rustc_hash::FxHasher;
use smallvec::SmallVec;

use crate::arguments::Arguments;
use crate::random::Spending;
use crate::tree::{Frozen, Segment, Tree, Visitor};

/// One part of a key, with the way to it: `argument 0.scale`.
#[derive(Clone)]
pub struct KeyPart {
    path: String,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// An array's dtype and shape.
    Leaf(Type),
    /// A frozen value and its text.
    Frozen(Arc<dyn Frozen>, String),
    /// A length, a variant, the presence of an option.
    Structure(String, usize),
}

impl KeyPart {
    /// Where in the arguments: `argument 1`, `argument 0.layers[2].weight`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether it is a value frozen at trace time.
    pub fn is_frozen(&self) -> bool {
        matches!(self.content, Content::Frozen(..))
    }

    /// The type of an array.
    pub(super) fn leaf(&self) -> Option<&Type> {
        match &self.content {
            Content::Leaf(ty) => Some(ty),
            Content::Frozen(..) | Content::Structure(..) => None,
        }
    }

    /// A length, a variant, the presence of an option.
    pub(super) fn structure(&self) -> Option<(String, usize)> {
        match &self.content {
            Content::Structure(name, value) => Some((name.clone(), *value)),
            Content::Leaf(_) | Content::Frozen(..) => None,
        }
    }

    pub(super) fn same(&self, other: &KeyPart) -> bool {
        match (&self.content, &other.content) {
            (Content::Leaf(a), Content::Leaf(b)) => a == b,
            (Content::Frozen(a, _), Content::Frozen(b, _)) => a.same(&**b),
            (Content::Structure(a, n), Content::Structure(b, m)) => a == b && n == m,
            _ => false,
        }
    }
}

/// The content alone: a type, a frozen value's text, or a piece of structure.
impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Leaf(ty) => write!(f, "{ty}"),
            Content::Frozen(_, text) => f.write_str(text),
            Content::Structure(name, value) if name.starts_with("variant ") => {
                write!(f, "{} (number {value})", &name["variant ".len()..])
            }
            Content::Structure(name, value) => write!(f, "{name} {value}"),
        }
    }
}

impl fmt::Debug for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.path)
    }
}

/// What a program was specialized to.
#[derive(Clone, Debug)]
pub(crate) struct CallKey {
    pub(super) parts: Vec<KeyPart>,
    /// How many arguments there are.
    pub(super) arguments: usize,
}

impl CallKey {
    pub(super) fn of<A: Arguments>(args: A::Refs<'_>) -> CallKey {
        let mut collector = Collector::default();
        A::visit_all(args, &mut collector);
        CallKey { parts: collector.parts, arguments: collector.arguments }
    }

    /// Whether arguments have this key. Allocates only for frozen values.
    pub(super) fn matches<A: Arguments>(&self, args: A::Refs<'_>) -> bool {
        let mut m = Matcher { rest: self.parts.iter(), same: true };
        A::visit_all(args, &mut m);
        m.same && m.rest.next().is_none()
    }

    /// Whether nothing of the user's runs when it is compared: frozen values are compared by what they say.
    pub(super) fn is_plain(&self) -> bool {
        !self.parts.iter().any(KeyPart::is_frozen)
    }

    /// Bytes it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.parts.iter().map(|p| size_of::<KeyPart>() + p.path.len()).sum()
    }
}

/// The way to the part that is being visited.
#[derive(Default)]
struct Path {
    text: String,
    ends: Vec<usize>,
    /// Whether the first step is a step into a value, not the position of an argument.
    inside: bool,
}

impl Path {
    fn enter(&mut self, segment: Segment<'_>) {
        self.ends.push(self.text.len());
        // The first step is the argument's position. Writing to a String cannot fail.
        let _ = match segment {
            Segment::Index(i) if self.ends.len() == 1 && !self.inside => write!(self.text, "argument {i}"),
            other => write!(self.text, "{other}"),
        };
    }

    fn leave(&mut self) {
        if let Some(end) = self.ends.pop() {
            self.text.truncate(end);
        }
    }
}

#[derive(Default)]
struct Collector {
    path: Path,
    parts: Vec<KeyPart>,
    arguments: usize,
}

impl Collector {
    fn push(&mut self, content: Content) {
        self.parts.push(KeyPart { path: self.path.text.clone(), content });
    }
}

impl Visitor for Collector {
    fn enter(&mut self, segment: Segment<'_>) {
        self.arguments += usize::from(self.path.ends.is_empty());
        self.path.enter(segment);
    }
    fn leave(&mut self) {
        self.path.leave();
    }
    fn structure(&mut self, name: &str, value: usize) {
        self.push(Content::Structure(name.to_string(), value));
    }
    fn array(&mut self, array: &Array) {
        if let Ok(ty) = array.ty() {
            self.push(Content::Leaf(ty.clone()));
        }
    }
    fn frozen(&mut self, value: &dyn Frozen) {
        let mut text = String::new();
        let _ = value.write(&mut text);
        self.push(Content::Frozen(value.keep(), text));
    }
}

/// Where two values that should have one structure and the same types first differ: the way there, and both sides.
pub(crate) fn first_difference<T: Tree>(a: &T, b: &T) -> Option<(String, String, String)> {
    let parts = |tree: &T| {
        let mut collector = Collector { path: Path { inside: true, ..Path::default() }, ..Collector::default() };
        tree.visit(&mut collector);
        collector.parts
    };
    let (a, b) = (parts(a), parts(b));
    let fits = |x: &KeyPart, y: &KeyPart| match (&x.content, &y.content) {
        // Symbolic dimensions that are equal only at run time are left to the check of the call.
        (Content::Leaf(s), Content::Leaf(t)) => {
            let dims = || s.shape().iter().zip(t.shape().iter()).all(|(a, b)| a.equals(b) != Decision::No);
            s.dtype() == t.dtype() && s.rank() == t.rank() && dims()
        }
        _ => x.same(y),
    };
    let at = a.iter().zip(&b).position(|(x, y)| !fits(x, y));
    let shown = |parts: &[KeyPart], i: usize| parts.get(i).map_or_else(|| "nothing".to_string(), KeyPart::to_string);
    let i = at.or((a.len() != b.len()).then_some(a.len().min(b.len())))?;
    let path = a.get(i).or(b.get(i)).map_or_else(String::new, |p| p.path.clone());
    Some((path, shown(&a, i), shown(&b, i)))
}

struct Matcher<'a> {
    rest: std::slice::Iter<'a, KeyPart>,
    same: bool,
}

impl Matcher<'_> {
    fn next(&mut self, same: impl FnOnce(&Content) -> bool) {
        self.same = self.same && self.rest.next().is_some_and(|p| same(&p.content));
    }
}

impl Visitor for Matcher<'_> {
    fn enter(&mut self, _: Segment<'_>) {}
    fn leave(&mut self) {}
    fn structure(&mut self, name: &str, value: usize) {
        self.next(|c| matches!(c, Content::Structure(n, v) if n == name && *v == value));
    }
    fn array(&mut self, array: &Array) {
        self.next(|c| matches!(c, Content::Leaf(t) if array.ty().is_ok_and(|ty| ty == t)));
    }
    fn frozen(&mut self, value: &dyn Frozen) {
        self.next(|c| matches!(c, Content::Frozen(v, _) if v.same(value)));
    }
}

/// The arrays of a call and the hash of its key, in one walk.
pub(crate) struct Leaves {
    pub(crate) arrays: SmallVec<[Array; 8]>,
    pub(super) hash: u64,
}

impl Leaves {
    pub(crate) fn of<A: Arguments>(args: A::Refs<'_>) -> Leaves {
        // Made where it is wanted: the list is long, and every call has one.
        let mut leaves = Leaves { arrays: SmallVec::new(), hash: 0 };
        let mut h = Hashing { arrays: &mut leaves.arrays, hasher: FxHasher::default() };
        A::visit_all(args, &mut h);
        leaves.hash = h.hasher.finish();
        leaves
    }
}

/// Uses the keys among the arguments of a call: what is given by reference is not given twice.
pub(crate) fn spend<A: Arguments>(args: A::Refs<'_>, leaves: &Leaves, place: Location) -> Result<()> {
    if !leaves.arrays.iter().any(|a| a.dtype() == DType::Key) {
        return Ok(());
    }
    let mut spending = Spending { place, error: None };
    A::visit_all(args, &mut spending);
    spending.error.map_or(Ok(()), Err)
}

struct Hashing<'a> {
    arrays: &'a mut SmallVec<[Array; 8]>,
    hasher: FxHasher,
}

impl fmt::Write for Hashing<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.hasher.write(s.as_bytes());
        Ok(())
    }
}

impl Visitor for Hashing<'_> {
    fn enter(&mut self, _: Segment<'_>) {}
    fn leave(&mut self) {}
    fn structure(&mut self, name: &str, value: usize) {
        (name, value).hash(&mut self.hasher);
    }
    fn array(&mut self, array: &Array) {
        if let Ok(ty) = array.ty() {
            ty.hash(&mut self.hasher);
        }
        self.arrays.push(array.clone());
    }
    fn frozen(&mut self, value: &dyn Frozen) {
        let _ = value.write(self);
    }
}
