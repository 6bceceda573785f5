//! Types of the text as types of programs, and constants as arrays.

use gradus_core::array::Concrete;
use gradus_core::error::{Error, ErrorKind, Result};
use gradus_core::types::{Complex, Element as Number, bf16, f16};
use gradus_core::{Array, DType, Dim, Shape, Type as Ty};

use crate::module::{Dense, Element, Float, Tensor, Type};

/// The dtype that holds the numbers of an element type. Integers of 2 and 4 bits are held in 8.
pub(super) fn dtype(element: &Element) -> Result<DType> {
    Ok(match element {
        Element::I1 => DType::Bool,
        Element::I2 | Element::I4 | Element::I8 => DType::I8,
        Element::I16 => DType::I16,
        Element::I32 => DType::I32,
        Element::I64 | Element::Index => DType::I64,
        Element::U2 | Element::U4 | Element::U8 => DType::U8,
        Element::U16 => DType::U16,
        Element::U32 => DType::U32,
        Element::U64 => DType::U64,
        Element::Float(Float::F16) => DType::F16,
        Element::Float(Float::BF16) => DType::BF16,
        Element::Float(Float::F32) => DType::F32,
        Element::Float(Float::F64) => DType::F64,
        Element::Complex(Float::F32) => DType::C64,
        Element::Complex(Float::F64) => DType::C128,
        Element::Float(f) | Element::Complex(f) => {
            let name = format!("{f:?}").replacen('F', "f", 1);
            return Err(Error::new(ErrorKind::DType, format!("Gradus has no numbers of type {name}"))
                .help("convert to f16, bf16 or f32 before the program is exported"));
        }
        Element::Quantized(_) => {
            return Err(Error::new(ErrorKind::DType, "quantized numbers are not imported as they are")
                .help("`legalize_quantized` writes them as integers first"));
        }
    })
}

/// The bits of an integer that its dtype has too many of.
pub(super) fn narrow_bits(element: &Element) -> Option<u32> {
    match element {
        Element::I2 | Element::U2 => Some(2),
        Element::I4 | Element::U4 => Some(4),
        _ => None,
    }
}

pub(super) fn tensor(ty: &Type) -> Result<&Tensor> {
    ty.tensor().ok_or_else(|| Error::new(ErrorKind::DType, format!("a tensor is wanted here, not {ty:?}")))
}

/// The dimensions, all of which are numbers.
pub(super) fn shape(tensor: &Tensor) -> Result<Shape> {
    let known = |d: &Option<u64>| d.and_then(|d| usize::try_from(d).ok()).map(Dim::from);
    let dims = tensor.dims.iter().map(known).collect::<Option<Vec<_>>>();
    dims.map(Shape::from).ok_or_else(|| {
        Error::new(ErrorKind::Shape, "the type of the result has a dimension that is not known")
            .help("give the shape by an operand: the `dynamic_` form of the operation")
    })
}

/// The type of a program's value.
pub(super) fn ty(tensor: &Tensor) -> Result<Ty> {
    Ty::checked(dtype(&tensor.element)?, shape(tensor)?)
}

/// Refuses an array that is not of the type that the text says.
pub(super) fn fits(array: &Array, said: &Type) -> Result<()> {
    let said = tensor(said)?;
    let have = array.ty()?;
    let same = |(have, said): (&Dim, &Option<u64>)| match (have.constant(), said) {
        (Some(n), Some(m)) => u64::try_from(n).ok() == Some(*m),
        (None, Some(_)) | (_, None) => true,
    };
    let fits = have.dtype() == dtype(&said.element)?
        && have.rank() == said.dims.len()
        && have.shape().iter().zip(&said.dims).all(same);
    if fits {
        return Ok(());
    }
    let dims = said.dims.iter().map(|d| d.map_or("?x".into(), |d| format!("{d}x"))).collect::<String>();
    let text = format!("gives {have}, and the text says tensor<{dims}{}>", dtype(&said.element)?);
    Err(Error::new(ErrorKind::Verify, text).help("the types of the operands and of the result do not belong together"))
}

/// The numbers of a constant.
pub(super) fn constant(dense: &Dense) -> Result<Array> {
    macro_rules! from_le {
        ($t:ty, $n:literal, |$b:ident| $make:expr) => {{
            let one = |bytes: &[u8]| -> $t {
                let mut $b = [0u8; $n];
                $b.copy_from_slice(bytes);
                $make
            };
            numbers::<$t>(dense, dense.bytes.chunks_exact($n).map(one).collect())
        }};
    }
    let whole = dense.bytes.len().is_multiple_of(dense.ty.element.bytes().max(1));
    if !whole {
        return Err(Error::new(ErrorKind::Verify, "a constant whose bytes are not whole elements"));
    }
    match dtype(&dense.ty.element)? {
        DType::Bool => from_le!(bool, 1, |b| b[0] != 0),
        DType::I8 => from_le!(i8, 1, |b| i8::from_le_bytes(b)),
        DType::U8 => from_le!(u8, 1, |b| b[0]),
        DType::I16 => from_le!(i16, 2, |b| i16::from_le_bytes(b)),
        DType::U16 => from_le!(u16, 2, |b| u16::from_le_bytes(b)),
        DType::I32 => from_le!(i32, 4, |b| i32::from_le_bytes(b)),
        DType::U32 => from_le!(u32, 4, |b| u32::from_le_bytes(b)),
        DType::I64 => from_le!(i64, 8, |b| i64::from_le_bytes(b)),
        DType::U64 => from_le!(u64, 8, |b| u64::from_le_bytes(b)),
        DType::F16 => from_le!(f16, 2, |b| f16::from_le_bytes(b)),
        DType::BF16 => from_le!(bf16, 2, |b| bf16::from_le_bytes(b)),
        DType::F32 => from_le!(f32, 4, |b| f32::from_le_bytes(b)),
        DType::F64 => from_le!(f64, 8, |b| f64::from_le_bytes(b)),
        DType::C64 => from_le!(Complex<f32>, 8, |b| {
            let [r0, r1, r2, r3, i0, i1, i2, i3] = b;
            Complex::new(f32::from_le_bytes([r0, r1, r2, r3]), f32::from_le_bytes([i0, i1, i2, i3]))
        }),
        DType::C128 => from_le!(Complex<f64>, 16, |b| {
            let (mut re, mut im) = ([0; 8], [0; 8]);
            re.copy_from_slice(&b[..8]);
            im.copy_from_slice(&b[8..]);
            Complex::new(f64::from_le_bytes(re), f64::from_le_bytes(im))
        }),
        DType::Key => Err(Error::new(ErrorKind::DType, "a constant of keys")),
    }
}

fn numbers<T: Number>(dense: &Dense, values: Vec<T>) -> Result<Array> {
    let ty = ty(&dense.ty)?;
    match (dense.splat, values.first()) {
        (true, Some(v)) => Ok(Concrete::splat(ty, v.into_scalar()).into()),
        _ => Concrete::new(ty, values).map(Array::from),
    }
}
