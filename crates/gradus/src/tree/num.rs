//! A number in an argument can be a constant of the program or an input of it. `Num` leaves the choice to the caller.

use std::fmt;

use gradus_core::{Array, DType, Operand, OperandValue, Scalar};

use super::{Mapper, Tree, Visitor};

/// A number that is frozen (a constant of the program, and part of its key) or tracked (an input of the program).
///
/// Made from a Rust number it is frozen. [`track`](Num::track) and [`freeze`](Num::freeze) change one;
/// [`track_numbers`](Tree::track_numbers) changes all that are in an argument.
#[derive(Clone)]
pub struct Num(Repr);

#[derive(Clone)]
enum Repr {
    Frozen(Scalar),
    Tracked(Array),
}

impl Num {
    /// A tracked number that is `array`: a scalar, or what a transformation puts in its place (a batch, a row of a
    /// Jacobian).
    pub fn tracked(array: Array) -> Num {
        Num(Repr::Tracked(array))
    }

    /// The type of the number.
    pub fn dtype(&self) -> DType {
        match &self.0 {
            Repr::Frozen(scalar) => scalar.dtype(),
            Repr::Tracked(array) => array.dtype(),
        }
    }

    /// Whether the number is an input of the program, not a constant.
    pub fn is_tracked(&self) -> bool {
        matches!(self.0, Repr::Tracked(_))
    }

    /// The number, if it is known: a frozen one always is, a tracked one outside of a trace.
    ///
    /// On a tracked number this is a read of its array, with all that a read does inside a trace.
    pub fn value(&self) -> Option<Scalar> {
        match &self.0 {
            Repr::Frozen(scalar) => Some(*scalar),
            Repr::Tracked(array) => array.item_scalar().ok(),
        }
    }

    /// The number as an array without axes.
    pub fn array(&self) -> Array {
        match &self.0 {
            Repr::Frozen(scalar) => Array::scalar(*scalar),
            Repr::Tracked(array) => array.clone(),
        }
    }

    /// The same number as an input of the program.
    pub fn track(self) -> Num {
        Num(Repr::Tracked(self.array()))
    }

    /// The same number as a constant of the program. A number that belongs to a trace has no value yet, and stays tracked.
    pub fn freeze(self) -> Num {
        match &self.0 {
            // Not even tried: a trace remembers a failed read, and this is not one.
            Repr::Tracked(array) if array.is_traced() => self,
            _ => match self.value() {
                Some(scalar) => Num(Repr::Frozen(scalar)),
                None => self,
            },
        }
    }

    pub(super) fn map_tracked(&self, map: impl FnOnce(&Array) -> Array) -> Num {
        match &self.0 {
            Repr::Frozen(scalar) => Num(Repr::Frozen(*scalar)),
            Repr::Tracked(array) => Num(Repr::Tracked(map(array))),
        }
    }
}

impl fmt::Debug for Num {
    /// Shows a tracked number as its array does, which reads nothing: to print a number must not fail a trace.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Frozen(scalar) => write!(f, "Num({scalar})"),
            Repr::Tracked(array) => write!(f, "Num(tracked {array:?})"),
        }
    }
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Frozen(scalar) => fmt::Display::fmt(scalar, f),
            Repr::Tracked(array) => write!(f, "{array:?}"),
        }
    }
}

impl From<Scalar> for Num {
    fn from(scalar: Scalar) -> Num {
        Num(Repr::Frozen(scalar))
    }
}

macro_rules! from_numbers {
    ($($number:ty)*) => {$(
        impl From<$number> for Num {
            fn from(number: $number) -> Num {
                Num(Repr::Frozen(Scalar::from(number)))
            }
        }
    )*};
}
from_numbers!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool);

impl Operand for Num {
    fn into_operand(self) -> OperandValue {
        match self.0 {
            Repr::Frozen(scalar) => OperandValue::Number(scalar),
            Repr::Tracked(array) => OperandValue::Array(array),
        }
    }
}

impl Operand for &Num {
    fn into_operand(self) -> OperandValue {
        self.clone().into_operand()
    }
}

impl Tree for Num {
    fn visit(&self, visitor: &mut dyn Visitor) {
        match &self.0 {
            Repr::Frozen(scalar) => visitor.frozen(scalar),
            Repr::Tracked(array) => visitor.array(array),
        }
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        mapper.number(self)
    }
}

/// Which numbers of an argument are inputs of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackNumbers {
    /// None: tracked ones whose value is known are frozen again.
    None,
    /// All of them.
    All,
    /// Those of one type. The others stay as they are.
    Only(DType),
}

/// The mapper behind [`Tree::track_numbers`].
pub(super) struct Tracker(pub(super) TrackNumbers);

impl Mapper for Tracker {
    fn array(&mut self, array: &Array) -> Array {
        array.clone()
    }

    fn number(&mut self, number: &Num) -> Num {
        let number = number.clone();
        match self.0 {
            TrackNumbers::None => number.freeze(),
            TrackNumbers::All => number.track(),
            TrackNumbers::Only(dtype) if number.dtype() == dtype => number.track(),
            TrackNumbers::Only(_) => number,
        }
    }
}
