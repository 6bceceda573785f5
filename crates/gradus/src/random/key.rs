//! Random keys: values that are used once.
//!
//! The type system sees to that wherever a key is owned: it is neither `Copy` nor `Clone`, and all that draws from it or splits
//! it takes it by value. Functions under a transformation get their arguments by reference. There [`Key::take`] hands the key out
//! once, and a second use is an error that names the first.

use std::fmt;
use std::sync::OnceLock;

use gradus_core::primitives::Op;
use gradus_core::primitives::random::{FoldIn, RandomBits};
use gradus_core::trace::{self, bind};
use gradus_core::types::KeyBits;
use gradus_core::{Array, DType, Dim, Error, ErrorKind, IntoShape, Location, Operand, OperandValue, Result, Shape};

use crate::tree::{Mapper, Tree, Visitor};

/// A random key, or an array of them to map over: all that a random number depends on.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let key = Key::new(42);
/// let [a, b] = key.split();
/// let u = random::uniform::<f32>(a, [3]);
/// let n = random::normal::<f32>(b, [3]);
/// # u.to_vec::<f32>()?;
/// # n.to_vec::<f32>()?;
/// # Ok(())
/// # }
/// ```
///
/// A key is used once. The second use does not compile:
///
/// ```compile_fail,E0382
/// use gradus::prelude::*;
///
/// let key = Key::new(42);
/// let u = random::uniform::<f32>(key, [3]);
/// let n = random::normal::<f32>(key, [3]);
/// ```
///
/// and there is no way to copy one:
///
/// ```compile_fail,E0599
/// use gradus::prelude::*;
///
/// let key = Key::new(42);
/// let copy = key.clone();
/// ```
pub struct Key {
    array: Array,
    /// Where it was used.
    used: OnceLock<Location>,
    /// Where another key was first derived from it. It is good for more of these, and for nothing else: what is drawn from it
    /// depends on the same hashes.
    derived: OnceLock<Location>,
}

impl Key {
    fn of(array: Array) -> Key {
        Key { array, used: OnceLock::new(), derived: OnceLock::new() }
    }

    /// The key of a seed.
    pub fn new(seed: u64) -> Key {
        Key::of(Array::scalar(KeyBits(seed).into()))
    }

    /// The key whose two words these are: what [`to_words`](Key::to_words) gave.
    pub fn from_words([first, second]: [u32; 2]) -> Key {
        Key::new(u64::from(first) << 32 | u64::from(second))
    }

    /// The two words of a single key, to be stored. Does not use the key: read back it gives the same numbers, so go on with
    /// one of the two only.
    pub fn to_words(&self) -> Result<[u32; 2]> {
        let bits = self.array.item::<KeyBits>()?.0;
        Ok([(bits >> 32) as u32, bits as u32])
    }

    /// A type of keys without a value, to trace or compile with: `Key::spec("key[8]")`.
    #[track_caller]
    pub fn spec(text: &str) -> Key {
        Key::from_array(Array::spec(text))
    }

    /// An array of dtype `key` as keys.
    #[track_caller]
    pub fn from_array(array: Array) -> Key {
        let place = trace::caller_or_known(Location::caller());
        Key::of(match array.ty() {
            Ok(ty) if ty.dtype() != DType::Key => Error::new(ErrorKind::DType, format!("{ty} holds no keys"))
                .at(place)
                .help("make a key with `Key::new(seed)`; the words of stored keys are a `u64` array: `.bitcast(DType::Key)`")
                .into(),
            _ => array,
        })
    }

    /// The keys as an array of dtype `key`, which can be moved, indexed and read by `.bitcast(DType::U64)`.
    #[track_caller]
    pub fn into_array(self) -> Array {
        self.open(trace::caller_or_known(Location::caller()))
    }

    /// `()` for a single key; the dimensions of an array of keys.
    pub fn shape(&self) -> &Shape {
        self.array.shape()
    }

    pub(crate) fn array(&self) -> &Array {
        &self.array
    }

    /// New keys: `let [a, b] = key.split();`.
    #[track_caller]
    pub fn split<const N: usize>(self) -> [Key; N] {
        let place = trace::caller_or_known(Location::caller());
        let keys = self.open(place);
        trace::at_place(place, || {
            let keys = single(&keys).map(|()| bind(draw(DType::Key, [N]), &[keys]));
            let keys = keys.map_err(|e| e.at(place)).unwrap_or_else(Array::from);
            std::array::from_fn(|i| Key::of(keys.index(i as i64)))
        })
    }

    /// An array of new keys, to map or scan over; the number may be symbolic.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let draws = vmap(|key: &Key| random::normal::<f32>(key.take(), [3]));
    /// assert_eq!(draws(&Key::new(1).split_n(8)).shape(), [8, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn split_n(self, n: impl Into<Dim>) -> Key {
        let place = trace::caller_or_known(Location::caller());
        let keys = self.open(place);
        let shape: Shape = [n.into()].into_iter().collect();
        Key::of(trace::at_place(place, || bind(draw(DType::Key, shape), &[keys])))
    }

    /// The keys of an array along its first axis, one by one.
    #[track_caller]
    pub fn unstack(self) -> Result<Vec<Key>> {
        let place = trace::caller_or_known(Location::caller());
        let keys = self.open(place).ok()?;
        let Some(n) = keys.shape().first().map(Dim::as_usize) else {
            return Err(Error::new(ErrorKind::Shape, "a single key is not an array of keys")
                .at(place)
                .help("`split_n` makes one"));
        };
        let n = n.ok_or_else(|| {
            let what = format!("how many keys {} holds is not known here", keys.shape());
            Error::new(ErrorKind::NotConcrete, what).at(place).help("map over them with `vmap` or `scan`")
        })?;
        Ok(trace::at_place(place, || (0..n).map(|i| Key::of(keys.index(i as i64))).collect()))
    }

    /// The key that follows from this one and a whole number: of a step, of a layer. This key stays good for more of these, and is
    /// used for nothing else.
    ///
    /// ```
    /// use gradus::prelude::*;
    ///
    /// # fn main() -> Result<()> {
    /// let key = Key::new(42);
    /// let sum = fori_loop(0, 10, |i, sum: &Array| sum + random::uniform::<f32>(key.fold_in(i), ()), Array::from(0.0_f32));
    /// assert!(sum.item::<f32>()? > 0.0);
    /// # Ok(())
    /// # }
    /// ```
    #[track_caller]
    pub fn fold_in(&self, data: impl Operand) -> Key {
        let place = trace::caller_or_known(Location::caller());
        if let Some(first) = self.used.get() {
            return Key::of(used_twice(first).at(place).into());
        }
        let _ = self.derived.set(place);
        let number = match data.into_operand() {
            OperandValue::Number(n) => n.literal_as(DType::U32).map(Array::scalar),
            OperandValue::Dim(d) => Array::from_dim(&d, DType::U32).ok(),
            OperandValue::Array(a) => a.ok().and_then(|a| match a.dtype() {
                d if d.is_int() => Ok(a.cast(DType::U32)),
                d => Err(Error::new(ErrorKind::DType, format!("a whole number is folded into a key, not a {d}"))),
            }),
        };
        Key::of(match number {
            Ok(n) => trace::at_place(place, || {
                let n = if n.rank() == 0 { n.broadcast_to(self.array.shape()) } else { n };
                bind(Op::fixed(&FoldIn), &[self.array.clone(), n])
            }),
            Err(e) => e.at(place).into(),
        })
    }

    /// The key behind a reference, once: functions under `jit`, `grad` or `vmap` and bodies of loops get their arguments by
    /// reference. A second time, what is made of the key carries an error that names the first.
    #[track_caller]
    pub fn take(&self) -> Key {
        Key::of(self.spend(trace::caller_or_known(Location::caller())))
    }

    /// The array, for a use at this place.
    pub(crate) fn open(self, place: Location) -> Array {
        self.spend(place)
    }

    /// The array for a use at this place, or an error if there was one before.
    fn spend(&self, place: Location) -> Array {
        if let Some(first) = self.derived.get() {
            let what = format!("keys were derived from this one by `fold_in` at {first}, so nothing else may use it");
            return Error::new(ErrorKind::Value, what).at(place).help("split the key, and derive from one part").into();
        }
        match self.used.set(place) {
            Ok(()) => self.array.clone(),
            // A key that carries an error says that, however often it is used.
            Err(_) if self.array.error().is_some() => self.array.clone(),
            Err(_) => used_twice(self.used.get().unwrap_or(&place)).at(place).into(),
        }
    }
}

fn used_twice(first: &Location) -> Error {
    Error::new(ErrorKind::Value, format!("this key was used before, at {first}"))
        .help("split it first: `let [a, b] = key.split();`")
}

/// The operation that draws bits.
pub(super) fn draw(dtype: DType, shape: impl IntoShape) -> Op {
    Op::new(RandomBits { dtype, shape: shape.into_shape() })
}

/// Refuses an array of keys where one is wanted.
pub(super) fn single(key: &Array) -> Result<()> {
    let ty = key.ty()?;
    if ty.rank() > 0 {
        return Err(Error::new(ErrorKind::Shape, format!("one key is wanted here, not {ty}"))
            .help("map over the keys: `vmap(|key: &Key| ...)(&keys)`"));
    }
    Ok(())
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.array)
    }
}

impl Tree for Key {
    fn visit(&self, visitor: &mut dyn Visitor) {
        visitor.key(self);
    }

    fn map(&self, mapper: &mut dyn Mapper) -> Self {
        Key::of(mapper.array(&self.array))
    }
}

/// As its array: numbers of 64 bits. Does not use the key: read back it gives the same draws, so go on with one of the two only.
#[cfg(feature = "serde")]
impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, s: S) -> std::result::Result<S::Ok, S::Error> {
        self.array.serialize(s)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> std::result::Result<Key, D::Error> {
        let array = Array::deserialize(d)?;
        match array.dtype() {
            DType::Key => Ok(Key::of(array)),
            other => Err(serde::de::Error::custom(format!("an array of dtype key, not {other}"))),
        }
    }
}

/// Uses the keys that are given to a program by reference, so that they are not given to another.
pub(crate) struct Spending {
    pub(crate) place: Location,
    pub(crate) error: Option<Error>,
}

impl Visitor for Spending {
    fn enter(&mut self, _: crate::tree::Segment<'_>) {}
    fn leave(&mut self) {}
    fn structure(&mut self, _: &str, _: usize) {}
    fn array(&mut self, _: &Array) {}
    fn key(&mut self, key: &Key) {
        // A type has no value that could be used.
        if !matches!(key.array.form(), gradus_core::array::Form::Spec(_)) {
            let spent = key.spend(self.place);
            self.error = self.error.take().or_else(|| spent.error().cloned());
        }
    }
    fn frozen(&mut self, _: &dyn crate::tree::Frozen) {}
}

/// Uses every key of a tree that a program is given by reference.
pub(crate) fn spend_all(tree: &impl Tree, place: Location) -> Result<()> {
    let mut spending = Spending { place, error: None };
    tree.visit(&mut spending);
    spending.error.map_or(Ok(()), Err)
}
