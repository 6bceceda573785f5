//! Types as text.

use std::sync::Arc;

use gradus_core::error::Result;
use smallvec::SmallVec;

use super::Reader;
use crate::module::{Element, Float, Quantized, Tensor, Type};

/// The names of element types.
const ELEMENTS: &[(&str, Element)] = &[
    ("f32", Element::Float(Float::F32)),
    ("i32", Element::I32),
    ("i1", Element::I1),
    ("i64", Element::I64),
    ("bf16", Element::Float(Float::BF16)),
    ("f16", Element::Float(Float::F16)),
    ("f64", Element::Float(Float::F64)),
    ("i2", Element::I2),
    ("i4", Element::I4),
    ("i8", Element::I8),
    ("i16", Element::I16),
    ("ui2", Element::U2),
    ("ui4", Element::U4),
    ("ui8", Element::U8),
    ("ui16", Element::U16),
    ("ui32", Element::U32),
    ("ui64", Element::U64),
    ("index", Element::Index),
    ("tf32", Element::Float(Float::TF32)),
    ("f4E2M1FN", Element::Float(Float::F4E2M1FN)),
    ("f6E2M3FN", Element::Float(Float::F6E2M3FN)),
    ("f6E3M2FN", Element::Float(Float::F6E3M2FN)),
    ("f8E3M4", Element::Float(Float::F8E3M4)),
    ("f8E4M3", Element::Float(Float::F8E4M3)),
    ("f8E4M3FN", Element::Float(Float::F8E4M3FN)),
    ("f8E4M3FNUZ", Element::Float(Float::F8E4M3FNUZ)),
    ("f8E4M3B11FNUZ", Element::Float(Float::F8E4M3B11FNUZ)),
    ("f8E5M2", Element::Float(Float::F8E5M2)),
    ("f8E5M2FNUZ", Element::Float(Float::F8E5M2FNUZ)),
    ("f8E8M0FNU", Element::Float(Float::F8E8M0FNU)),
];

/// The element type of a name.
fn named(word: &str) -> Option<Element> {
    ELEMENTS.iter().find(|(name, _)| *name == word).map(|(_, element)| element.clone())
}

/// The name of an element type.
pub(crate) fn name_of(element: &Element) -> Option<&'static str> {
    ELEMENTS.iter().find(|(_, e)| e == element).map(|(name, _)| *name)
}

impl Reader<'_> {
    /// A type.
    pub(super) fn ty(&mut self) -> Result<Type> {
        match self.cur.peek() {
            b'(' => self.deeper(|r| {
                let inputs = r.type_list()?;
                r.cur.take("->")?;
                Ok(Type::Function(inputs, r.results()?))
            }),
            b'!' => self.dialect_type(),
            _ => {
                let start = self.cur.at();
                match self.cur.peek_word() {
                    "tensor" => {
                        self.cur.word("")?;
                        self.tensor().map(Type::Tensor)
                    }
                    "tuple" => self.deeper(|r| {
                        r.cur.word("")?;
                        r.cur.take("<")?;
                        Ok(Type::Tuple(r.list(">", |r| r.ty())?))
                    }),
                    "none" => {
                        self.cur.word("")?;
                        Ok(Type::None)
                    }
                    // Buffers and vectors stand in custom calls of runtimes and around them; nothing looks into them.
                    "memref" | "vector" => {
                        self.cur.word("")?;
                        if self.cur.peek() != b'<' {
                            return Err(self.cur.expected("`<`"));
                        }
                        let end = self.cur.balanced()?;
                        self.cur.go(end);
                        Ok(Type::Opaque(self.cur.between(start, end).to_owned()))
                    }
                    "" => Err(self.cur.expected("a type")),
                    _ => match self.element(start) {
                        Ok(element) => Ok(Type::Scalar(element)),
                        Err(error) => Err(error),
                    },
                }
            }
        }
    }

    /// `!quant.uniform<..>`, `!stablehlo.token`, an alias, or what only its dialect knows.
    fn dialect_type(&mut self) -> Result<Type> {
        let start = self.cur.at();
        let name = self.cur.sigil_name("the name of a type behind `!`")?;
        if let Some(known) = self.type_aliases.get(name) {
            return Ok(known.clone());
        }
        match name {
            "stablehlo.token" => Ok(Type::Token),
            "quant.uniform" => {
                self.cur.go(start);
                self.element(start).map(Type::Scalar)
            }
            _ if !name.contains('.') && self.cur.peek() != b'<' => {
                Err(self.cur.error_at(start, &format!("the type `!{name}` is not defined above")))
            }
            _ => {
                let end = if self.cur.peek() == b'<' { self.cur.balanced()? } else { start + 1 + name.len() };
                self.cur.go(end);
                Ok(Type::Opaque(self.cur.between(start + 1, end).to_owned()))
            }
        }
    }

    /// Behind `tensor`: `<2x?xf32, ..>`.
    fn tensor(&mut self) -> Result<Tensor> {
        self.cur.take("<")?;
        let mut dims: SmallVec<[Option<u64>; 4]> = SmallVec::new();
        loop {
            // `0x4xf32` is no hexadecimal number here, so that dimensions are taken from bytes.
            let start = self.cur.at();
            let rest = self.cur.rest();
            let n = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
            match rest.first() {
                Some(b'?') => {
                    self.cur.go(start + 1);
                    dims.push(None);
                }
                Some(b'*') => {
                    return Err(self
                        .cur
                        .error_at(start, "a tensor of unknown rank; StableHLO has none: give it its number of axes"));
                }
                _ if n == 0 => break,
                _ => {
                    let dim: Option<u64> = self.cur.between(start, start + n).parse().ok();
                    let Some(dim) = dim.filter(|d| i64::try_from(*d).is_ok()) else {
                        return Err(self.cur.error_at(start, "this dimension is too large"));
                    };
                    self.cur.go(start + n);
                    dims.push(Some(dim));
                }
            }
            if self.cur.peek() != b'x' {
                return Err(self.cur.expected("`x` behind a dimension"));
            }
            self.cur.go(self.cur.at() + 1);
        }
        let start = self.cur.at();
        let element = self.element(start)?;
        let mut bounds = SmallVec::new();
        if self.cur.eat(",") {
            let at = self.cur.at();
            bounds = self.bounds()?;
            if bounds.len() != dims.len() && !bounds.is_empty() {
                return Err(self.cur.error_at(at, &format!("{} bounds for {} dimensions", bounds.len(), dims.len())));
            }
        }
        self.cur.take(">")?;
        Ok(Tensor { dims, element, bounds })
    }

    /// `#stablehlo.bounds<?, 4>`, the older `#stablehlo.type_extensions<bounds = [?, 4]>`, or an alias of them.
    fn bounds(&mut self) -> Result<SmallVec<[Option<u64>; 4]>> {
        let start = self.cur.at();
        if self.cur.peek() != b'#' {
            return Err(self.cur.expected("`#stablehlo.bounds<..>`"));
        }
        let name = self.cur.sigil_name("`#stablehlo.bounds<..>`")?;
        match name {
            "stablehlo.bounds" | "mhlo.bounds" => {
                self.cur.take("<")?;
                Ok(self.list(">", |r| r.bound())?.into())
            }
            "stablehlo.type_extensions" | "mhlo.type_extensions" => {
                self.cur.take("<")?;
                self.cur.take_word("bounds")?;
                self.cur.take("=")?;
                self.cur.take("[")?;
                let all = self.list("]", |r| r.bound())?;
                self.cur.take(">")?;
                Ok(all.into())
            }
            _ => match self.bounds_aliases.get(name) {
                Some(known) => Ok(known.clone()),
                None => Err(self.cur.error_at(start, &format!("expected `#stablehlo.bounds<..>`, found `#{name}`"))),
            },
        }
    }

    /// The bounds an alias stands for, if it stands for some.
    pub(super) fn bounds_alias(&mut self, name: &str) -> Result<bool> {
        let rest = self.cur.rest();
        let is = rest.starts_with(b"#stablehlo.bounds") || rest.starts_with(b"#stablehlo.type_extensions");
        if is {
            let bounds = self.bounds()?;
            self.bounds_aliases.insert(name.to_owned(), bounds);
        }
        Ok(is)
    }

    fn bound(&mut self) -> Result<Option<u64>> {
        if self.cur.eat("?") {
            return Ok(None);
        }
        let start = self.cur.at();
        let bound = self.cur.i64()?;
        // Old files write what is not bounded as -1 or the least integer.
        if bound == -1 || bound == i64::MIN {
            return Ok(None);
        }
        u64::try_from(bound).map(Some).map_err(|_| self.cur.error_at(start, "a bound is not negative"))
    }

    /// An element type: `f32`, `complex<f32>`, `!quant.uniform<..>`.
    fn element(&mut self, start: usize) -> Result<Element> {
        if self.cur.peek() == b'!' {
            let name = self.cur.sigil_name("the name of a type behind `!`")?;
            if name == "quant.uniform" {
                return self.quantized();
            }
            return match self.type_aliases.get(name) {
                Some(Type::Scalar(element)) => Ok(element.clone()),
                _ => Err(self.cur.error_at(start, &format!("`!{name}` is no type of elements"))),
            };
        }
        let word = self.cur.word("the type of an element")?;
        if word == "complex" {
            self.cur.take("<")?;
            let at = self.cur.at();
            let part = self.cur.word("the type of a float")?;
            let Some(Element::Float(part)) = named(part) else {
                return Err(self.cur.error_at(at, &format!("complex numbers of `{part}`; their parts are floats")));
            };
            self.cur.take(">")?;
            return Ok(Element::Complex(part));
        }
        named(word).ok_or_else(|| self.cur.error_at(start, &format!("there is no type `{word}`")))
    }

    /// Behind `!quant.uniform`: `<i8<-127:127>:f32:0, {0.1:3, 0.2}>`.
    fn quantized(&mut self) -> Result<Element> {
        self.cur.take("<")?;
        let at = self.cur.at();
        let word = self.cur.word("the type of the stored integers")?;
        // The dialect writes unsigned ones as `u8`.
        let storage = word
            .strip_prefix('u')
            .filter(|w| !w.starts_with('i'))
            .and_then(|w| named(&format!("ui{w}")))
            .or_else(|| named(word));
        let Some(storage) =
            storage.filter(|s| s.integer_bytes().is_some() && *s != Element::I1 && *s != Element::Index)
        else {
            return Err(self.cur.error_at(at, &format!("`{word}` is no integer to store quantized numbers in")));
        };
        let (least, greatest) = storage_range(&storage);
        let (mut storage_min, mut storage_max) = (least, greatest);
        if self.cur.eat("<") {
            let at = self.cur.at();
            storage_min = self.cur.i64()?;
            self.cur.take(":")?;
            storage_max = self.cur.i64()?;
            self.cur.take(">")?;
            if storage_min < least || storage_max > greatest || storage_min >= storage_max {
                return Err(self.cur.error_at(at, &format!("{storage_min}:{storage_max} is no range of `{word}`")));
            }
        }
        self.cur.take(":")?;
        let at = self.cur.at();
        let word = self.cur.word("the type of the floats that are meant")?;
        let Some(Element::Float(expressed)) = named(word) else {
            return Err(self.cur.error_at(at, &format!("`{word}` is no float")));
        };
        let mut axis = None;
        if self.cur.eat(":") {
            if self.cur.peek() == b'{' {
                return Err(self.cur.expected("one axis (scales by block are not part of StableHLO)"));
            }
            let at = self.cur.at();
            axis =
                Some(usize::try_from(self.cur.i64()?).map_err(|_| self.cur.error_at(at, "an axis is not negative"))?);
        }
        self.cur.take(",")?;
        let pairs = match axis {
            None => vec![self.scale()?],
            Some(_) => {
                self.cur.take("{")?;
                self.list("}", |r| r.scale())?
            }
        };
        self.cur.take(">")?;
        if pairs.is_empty() {
            return Err(self.cur.error_at(at, "a quantized type without a scale"));
        }
        let (scales, zero_points) = pairs.into_iter().unzip();
        Ok(Element::Quantized(Arc::new(Quantized {
            storage,
            expressed,
            storage_min,
            storage_max,
            axis,
            scales,
            zero_points,
        })))
    }

    /// `0.1:3`: a scale and the integer that stands for 0.
    fn scale(&mut self) -> Result<(f64, i64)> {
        let start = self.cur.at();
        let minus = self.cur.eat("-");
        let (span, _) = self.cur.number_span();
        let Ok(scale) = span.parse::<f64>() else { return Err(self.cur.expected("a scale")) };
        self.cur.go(self.cur.at() + span.len());
        if minus || !scale.is_finite() || scale <= 0.0 {
            return Err(self.cur.error_at(start, "a scale is a positive number"));
        }
        Ok((scale, if self.cur.eat(":") { self.cur.i64()? } else { 0 }))
    }

    /// `(a, b)`.
    pub(super) fn type_list(&mut self) -> Result<Vec<Type>> {
        self.cur.take("(")?;
        self.list(")", |r| r.ty())
    }

    /// What stands behind an arrow: `(a, b)` or one type.
    pub(super) fn results(&mut self) -> Result<Vec<Type>> {
        if self.cur.peek() == b'(' { self.type_list() } else { Ok(vec![self.ty()?]) }
    }
}

/// The least and the greatest integer of a type that stores quantized numbers.
pub(crate) fn storage_range(storage: &Element) -> (i64, i64) {
    let bits = match storage {
        Element::I2 | Element::U2 => 2,
        Element::I4 | Element::U4 => 4,
        other => 8 * other.bytes() as u32,
    };
    match (storage.is_signed(), bits) {
        (true, 64) => (i64::MIN, i64::MAX),
        (true, _) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (false, 63..) => (0, i64::MAX),
        (false, _) => (0, (1 << bits) - 1),
    }
}
