//! What the lowering means by a place in memory: which element of which value of the program is there. Code generators know nothing of it; the
//! checked evaluator (`watch.rs`) and the static check hold every load and store against it.

use gradus_core::Location;
use smallvec::SmallVec;

use super::{Buffer, Value};
use crate::check::Ranges;
use crate::size::Size;

/// A value of the program (or a copy of one), by its number in [`Meanings::tags`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Tag(pub u32);

impl Tag {
    /// Of memory that no load or store has a meaning for: only arithmetic on views makes it.
    pub const NONE: Tag = Tag(u32::MAX);
}

/// What a tag stands for.
#[derive(Clone, Debug)]
pub struct TagInfo {
    /// The loop of the main body in whose step it is made; 0 is no loop.
    pub scope: u32,
    /// Its name in texts.
    pub name: TagName,
    /// The user's line.
    pub place: Option<Location>,
}

/// What a tag is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagName {
    /// The value of this number in the block of this number.
    Value(u32, u32),
    /// The constant of this number in the block of this number.
    Constant(u32, u32),
    /// A carry of a loop, between its steps.
    Carry(u32),
    /// The copy that something needs in another order.
    Copy,
    /// A running total.
    Partial,
    /// The output of this number.
    Output(u32),
}

impl std::fmt::Display for TagName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TagName::Value(b, v) => write!(f, "x{v} of block {b}"),
            TagName::Constant(b, c) => write!(f, "constant {c} of block {b}"),
            TagName::Carry(i) => write!(f, "carry {i}"),
            TagName::Copy => write!(f, "a copy"),
            TagName::Partial => write!(f, "a running total"),
            TagName::Output(i) => write!(f, "output {i}"),
        }
    }
}

/// `offset + Σ value·stride`, in elements; numbers may be known only when the code runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct At {
    /// The part that does not depend on values.
    pub offset: Size,
    /// The others. No value stands twice.
    pub terms: SmallVec<[(Value, Size); 3]>,
}

impl At {
    /// The first place.
    pub fn start() -> At {
        At::default()
    }

    /// The same place, further by `value·stride`.
    ///
    /// A value that is there already is not put there again: two counts that are the same symbolic size are one value.
    pub fn plus(mut self, value: Value, stride: impl Into<Size>) -> At {
        let stride = stride.into();
        match self.terms.iter_mut().find(|(v, _)| *v == value) {
            Some((_, before)) => *before = *before + stride,
            None => self.terms.push((value, stride)),
        }
        self.terms.retain(|(_, stride)| *stride != Size::ZERO);
        self
    }

    /// The same place, some elements further.
    pub fn further(&self, by: impl Into<Size>) -> At {
        At { offset: self.offset + by, terms: self.terms.clone() }
    }
}

/// The index along one of the loops of a row that is walked as one: `(var + start·times) / behind % extent`.
#[derive(Clone, Debug, PartialEq)]
pub struct Digit {
    /// The place in the row, or in its part.
    pub var: Value,
    /// Where the part begins: a value and what it is multiplied by.
    pub start: Option<(Value, usize)>,
    /// How many places one step of the loop is.
    pub behind: Size,
    /// How long the loop is.
    pub extent: Size,
    /// By how much the index is multiplied.
    pub stride: Size,
}

/// Which element of which value a load or store means.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// The value.
    pub tag: Tag,
    /// The element, counted in row-major order, but for the digits.
    pub element: At,
    /// Indices along rows that are walked as one.
    pub digits: Vec<Digit>,
    /// Of a store: the same element was written before (padding, a running total, an update).
    pub again: bool,
}

impl Meaning {
    /// An element of a value.
    pub fn of(tag: Tag, element: At) -> Meaning {
        Meaning { tag, element, digits: Vec::new(), again: false }
    }

    /// The same, written once more.
    pub fn again(self) -> Meaning {
        Meaning { again: true, ..self }
    }
}

/// The number of a meaning in its module. It is no part of what code is: two places that differ only in it are equal.
#[derive(Clone, Copy, Debug)]
pub struct Means(pub u32);

impl Default for Means {
    fn default() -> Means {
        Means(u32::MAX)
    }
}

impl PartialEq for Means {
    fn eq(&self, _: &Means) -> bool {
        true
    }
}

impl Eq for Means {}

impl std::hash::Hash for Means {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

/// An array in memory: where its elements are, and which elements of which value they are.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct Region {
    /// The memory.
    pub buffer: Buffer,
    /// The dimensions.
    pub dims: SmallVec<[Size; 4]>,
    /// Where the first element is, and how far neighbours are apart.
    pub place: (At, SmallVec<[Size; 4]>),
    /// Which element the first is, and how far neighbours are apart.
    pub element: (At, SmallVec<[Size; 4]>),
    /// Of which value.
    pub tag: Tag,
    /// The bytes of an element.
    pub bytes: usize,
}

/// What the main body says about memory without doing anything.
#[derive(Clone, Debug, PartialEq, Hash)]
#[allow(clippy::large_enum_variant)] // Statements hold it in a box.
pub enum Note {
    /// A step of the loop of this number begins: what earlier steps made is old.
    Step(u32),
    /// What is in a region is from now on also this value, with these elements.
    Becomes(Region, Tag, (At, SmallVec<[Size; 4]>)),
}

/// The meanings of a module.
#[derive(Clone, Debug, Default)]
pub struct Meanings {
    /// The values.
    pub tags: Vec<TagInfo>,
    /// What loads and stores mean.
    pub all: Vec<Meaning>,
    /// How many loops there are, the whole main body (0) counted in.
    pub scopes: u32,
    /// Buffers that are there before the code runs, dense, with the bytes of their elements.
    pub given: Vec<(Buffer, Tag, usize)>,
    /// Buffers that must be there after it, likewise.
    pub made: Vec<(Buffer, Tag, usize)>,
    /// How far the values go that stand in places.
    pub ranges: Ranges,
}

impl Meanings {
    /// A new tag.
    pub fn tag(&mut self, scope: u32, name: TagName, place: Option<Location>) -> Tag {
        self.tags.push(TagInfo { scope, name, place });
        Tag(self.tags.len() as u32 - 1)
    }

    /// What a place means, if it says so.
    pub fn get(&self, means: Means) -> Option<&Meaning> {
        self.all.get(means.0 as usize)
    }
}

impl PartialEq for Meanings {
    fn eq(&self, _: &Meanings) -> bool {
        true
    }
}
