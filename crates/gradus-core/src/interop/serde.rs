//! Serde: an array is its dtype, its shape and its numbers in row-major order.
//!
//! Text has no word for numbers that are not finite; there they are the texts `nan`, `inf` and `-inf`. Half floats are written as `f32`, complex numbers as pairs.

use std::fmt;
use std::marker::PhantomData;

use serde_core::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_core::ser::{self, SerializeSeq, SerializeStruct, Serializer};
use serde_core::{Deserialize, Serialize};

use crate::array::Array;
use crate::types::{Complex, DType, Element, KeyBits, Shape, Type, bf16, f16};

const FIELDS: &[&str] = &["dtype", "shape", "data"];
/// Room that is made before the first number is there: a length can claim anything.
const AHEAD: usize = 1 << 16;

/// A number as a format has it.
trait Stored: Element {
    /// What is written in its place.
    type As: Serialize + for<'de> Deserialize<'de>;
    fn put(self) -> Self::As;
    fn take(stored: Self::As) -> Self;
}

macro_rules! stored {
    ($($t:ty, $as:ty, $put:expr, $take:expr;)*) => {$(
        impl Stored for $t {
            type As = $as;
            fn put(self) -> $as {
                let put: fn($t) -> $as = $put;
                put(self)
            }
            fn take(stored: $as) -> $t {
                let take: fn($as) -> $t = $take;
                take(stored)
            }
        }
    )*};
}
stored! {
    bool, bool, |v| v, |v| v;
    i8, i8, |v| v, |v| v;
    i16, i16, |v| v, |v| v;
    i32, i32, |v| v, |v| v;
    i64, i64, |v| v, |v| v;
    u8, u8, |v| v, |v| v;
    u16, u16, |v| v, |v| v;
    u32, u32, |v| v, |v| v;
    u64, u64, |v| v, |v| v;
    f16, Real<f32>, |v| Real(v.to_f32()), |v| f16::from_f32(v.0);
    bf16, Real<f32>, |v| Real(v.to_f32()), |v| bf16::from_f32(v.0);
    f32, Real<f32>, Real, |v| v.0;
    f64, Real<f64>, Real, |v| v.0;
    Complex<f32>, (Real<f32>, Real<f32>), |v| (Real(v.re), Real(v.im)), |(re, im)| Complex::new(re.0, im.0);
    Complex<f64>, (Real<f64>, Real<f64>), |v| (Real(v.re), Real(v.im)), |(re, im)| Complex::new(re.0, im.0);
    KeyBits, u64, |v| v.0, KeyBits;
}

/// A float that may be a text where formats are for people.
struct Real<T>(T);

macro_rules! real {
    ($t:ty, $serialize:ident, $visit:ident, $deserialize:ident) => {
        impl Serialize for Real<$t> {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                match self.0 {
                    v if v.is_finite() || !s.is_human_readable() => s.$serialize(v),
                    v if v.is_nan() => s.serialize_str("nan"),
                    v => s.serialize_str(if v > 0.0 { "inf" } else { "-inf" }),
                }
            }
        }

        impl<'de> Deserialize<'de> for Real<$t> {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct Number;
                impl Visitor<'_> for Number {
                    type Value = Real<$t>;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("a number, or `nan`, `inf` or `-inf`")
                    }
                    fn visit_f32<E: de::Error>(self, v: f32) -> Result<Real<$t>, E> {
                        Ok(Real(v as $t))
                    }
                    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Real<$t>, E> {
                        Ok(Real(v as $t))
                    }
                    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Real<$t>, E> {
                        Ok(Real(v as $t))
                    }
                    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Real<$t>, E> {
                        Ok(Real(v as $t))
                    }
                    fn visit_str<E: de::Error>(self, v: &str) -> Result<Real<$t>, E> {
                        match v {
                            "nan" => Ok(Real(<$t>::NAN)),
                            "inf" => Ok(Real(<$t>::INFINITY)),
                            "-inf" => Ok(Real(<$t>::NEG_INFINITY)),
                            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
                        }
                    }
                }
                if d.is_human_readable() { d.deserialize_any(Number) } else { d.$deserialize(Number) }
            }
        }
    };
}
real!(f32, serialize_f32, visit_f32, deserialize_f32);
real!(f64, serialize_f64, visit_f64, deserialize_f64);

/// Runs something for the Rust type of a dtype.
macro_rules! of_dtype {
    ($dtype:expr, $t:ident => $body:expr) => {
        of_dtype!(@ $dtype, $t, $body, Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64, F16 f16,
            BF16 bf16, F32 f32, F64 f64, C64 (Complex<f32>), C128 (Complex<f64>), Key KeyBits)
    };
    (@ $dtype:expr, $t:ident, $body:expr, $($variant:ident $rust:tt),*) => {
        match $dtype { $(DType::$variant => { type $t = of_dtype!(@@ $rust); $body })* }
    };
    (@@ ($rust:ty)) => { $rust };
    (@@ $rust:ty) => { $rust };
}

struct Numbers<'a>(&'a Array);

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        of_dtype!(self.0.dtype(), T => {
            let values = self.0.values::<T>().map_err(ser::Error::custom)?;
            let mut seq = s.serialize_seq(Some(values.len()))?;
            for v in values.iter() {
                seq.serialize_element(&v.put())?;
            }
            seq.end()
        })
    }
}

/// Needs numbers: an array that is traced, only a type, or carries an error cannot be written.
impl Serialize for Array {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let dims = self.known_dims().map_err(ser::Error::custom)?;
        let mut out = s.serialize_struct("Array", 3)?;
        out.serialize_field("dtype", self.dtype().name())?;
        out.serialize_field("shape", &dims)?;
        out.serialize_field("data", &Numbers(self))?;
        out.end()
    }
}

/// What numbers of a type are read by.
struct Filling(Type);

impl Filling {
    fn new<E: de::Error>(dtype: &str, dims: Vec<usize>) -> Result<Filling, E> {
        let dtype: DType = dtype.parse().map_err(E::custom)?;
        Type::checked(dtype, Shape::from(dims.as_slice())).map(Filling).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for Filling {
    type Value = Array;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Array, D::Error> {
        struct Rows<T>(Type, PhantomData<T>);
        impl<'de, T: Stored> Visitor<'de> for Rows<T> {
            type Value = Array;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the numbers of an array {}", self.0)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Array, A::Error> {
                let count =
                    self.0.shape().count().ok_or_else(|| de::Error::custom("a shape that cannot be counted"))?;
                let mut values: Vec<T> = Vec::with_capacity(count.min(AHEAD));
                while let Some(next) = seq.next_element::<T::As>()? {
                    if values.len() == count {
                        return Err(de::Error::custom(format!("more numbers than {} has", self.0)));
                    }
                    values.push(T::take(next));
                }
                Array::from_vec(values, self.0.shape()).ok().map_err(de::Error::custom)
            }
        }
        of_dtype!(self.0.dtype(), T => d.deserialize_seq(Rows::<T>(self.0, PhantomData)))
    }
}

impl<'de> Deserialize<'de> for Array {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Array, D::Error> {
        struct Parts;
        impl<'de> Visitor<'de> for Parts {
            type Value = Array;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array: its dtype, its shape, and its numbers")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Array, A::Error> {
                let dtype: String = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(0, &self))?;
                let dims = seq.next_element()?.ok_or_else(|| de::Error::invalid_length(1, &self))?;
                let filling = Filling::new(&dtype, dims)?;
                seq.next_element_seed(filling)?.ok_or_else(|| de::Error::invalid_length(2, &self))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Array, A::Error> {
                let (mut dtype, mut dims, mut array) = (None::<String>, None::<Vec<usize>>, None);
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "dtype" => dtype = Some(map.next_value()?),
                        "shape" => dims = Some(map.next_value()?),
                        "data" => {
                            let (Some(dtype), Some(dims)) = (&dtype, &dims) else {
                                return Err(de::Error::custom(
                                    "`dtype` and `shape` of an array come before its `data`",
                                ));
                            };
                            array = Some(map.next_value_seed(Filling::new(dtype, dims.clone())?)?);
                        }
                        other => return Err(de::Error::unknown_field(other, FIELDS)),
                    }
                }
                array.ok_or_else(|| de::Error::missing_field("data"))
            }
        }
        d.deserialize_struct("Array", FIELDS, Parts)
    }
}
