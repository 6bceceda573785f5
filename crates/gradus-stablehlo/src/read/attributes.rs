//! Attributes as text, without the numbers of `dense<..>` and the records of StableHLO.

use gradus_core::error::Result;

use super::dense::{float_bits, float_of_bits};
use super::names::known;
use super::{Reader, structs};
use crate::module::{Attribute, Attributes, Element, Float, Type};

impl Reader<'_> {
    /// `{a = 1, b}`, if it is there; adds to what is known already.
    pub(super) fn dictionary_if(&mut self, into: &mut Attributes) -> Result<()> {
        if self.cur.peek() == b'{' { self.dictionary(into) } else { Ok(()) }
    }

    /// `{a = 1, b}`.
    pub(super) fn dictionary(&mut self, into: &mut Attributes) -> Result<()> {
        self.cur.take("{")?;
        self.deeper(|r| {
            if r.cur.eat("}") {
                return Ok(());
            }
            loop {
                let start = r.cur.at();
                let name = match r.cur.peek() {
                    b'"' => known(&r.cur.text()?),
                    _ => known(r.cur.word("the name of an attribute")?),
                };
                let value = if r.cur.eat("=") { r.attribute()? } else { Attribute::Unit };
                if into.has(&name) {
                    return Err(r.cur.error_at(start, &format!("the attribute `{name}` is given twice")));
                }
                into.set(name, value);
                if !r.cur.eat(",") {
                    return r.cur.take("}");
                }
            }
        })
    }

    /// Any attribute.
    pub(super) fn attribute(&mut self) -> Result<Attribute> {
        match self.cur.peek() {
            b'"' => {
                let bytes = self.cur.string()?.into_owned();
                if self.cur.eat(":") {
                    self.ty()?;
                }
                Ok(Attribute::String(bytes))
            }
            b'[' => self.deeper(|r| {
                r.cur.take("[")?;
                Ok(Attribute::Array(r.list("]", |r| r.attribute())?))
            }),
            b'{' => {
                let mut all = Attributes::default();
                self.dictionary(&mut all)?;
                Ok(Attribute::Dictionary(all))
            }
            b'@' => {
                let mut path = vec![self.cur.symbol()?.into_owned()];
                while self.cur.eat("::") {
                    path.push(self.cur.symbol()?.into_owned());
                }
                Ok(Attribute::Symbol(path))
            }
            b'#' => self.deeper(|r| r.dialect_attribute()),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.worded(),
        }
    }

    /// An attribute that starts with a word: `true`, `dense<..>`, a type.
    fn worded(&mut self) -> Result<Attribute> {
        let start = self.cur.at();
        let word = self.cur.peek_word();
        match word {
            "true" | "false" => {
                self.cur.word("")?;
                if self.cur.eat(":") {
                    self.ty()?;
                }
                Ok(Attribute::Bool(word == "true"))
            }
            "unit" => {
                self.cur.word("")?;
                Ok(Attribute::Unit)
            }
            "dense" => self.dense().map(Attribute::Dense),
            "dense_resource" => self.dense_resource().map(Attribute::Dense),
            "array" => self.numbers(),
            "loc" => {
                self.location()?;
                Ok(Attribute::Opaque(self.cur.between(start, self.cur.at()).trim_end().to_owned()))
            }
            "affine_map" | "affine_set" | "strided" | "distinct" => {
                self.cur.word("")?;
                let end = self.cur.balanced()?;
                self.cur.go(end);
                Ok(Attribute::Opaque(self.cur.between(start, end).to_owned()))
            }
            _ => match self.cur.peek() {
                b'(' | b'!' => self.ty().map(Attribute::Type),
                _ if word.is_empty() => Err(self.cur.expected("an attribute")),
                _ => self.ty().map(Attribute::Type),
            },
        }
    }

    /// `1`, `-0x1F : i8`, `1.5 : f32`.
    fn number(&mut self) -> Result<Attribute> {
        let start = self.cur.at();
        let minus = self.cur.eat("-");
        let (span, float) = self.cur.number_span();
        if span.is_empty() {
            return Err(self.cur.expected("a number"));
        }
        if float {
            let value: f64 = span.parse().unwrap_or(f64::NAN);
            self.cur.go(self.cur.at() + span.len());
            let ty = if self.cur.eat(":") { self.ty()? } else { Type::Scalar(Element::Float(Float::F64)) };
            let Type::Scalar(Element::Float(kind)) = ty else {
                return Err(self.cur.error_at(start, "a float whose type is none"));
            };
            // `0.001 : f32` is the nearest `f32`, as bytecode has it.
            let value = if minus { -value } else { value };
            let rounded = float_of_bits(float_bits(value, kind), kind).unwrap_or(value);
            return Ok(Attribute::Float(rounded, ty));
        }
        self.cur.go(start);
        let value = self.cur.integer()?;
        let ty = if self.cur.eat(":") { self.ty()? } else { Type::Scalar(Element::I64) };
        match &ty {
            Type::Scalar(Element::Float(kind)) => {
                let bits = u64::try_from(value).ok().filter(|_| span.starts_with("0x"));
                let Some(value) = bits.and_then(|b| float_of_bits(b, *kind)) else {
                    return Err(self.cur.error_at(start, "a float needs a point, or its bits as `0x..`"));
                };
                Ok(Attribute::Float(value, ty))
            }
            Type::Scalar(element) if element.integer_bytes().is_some() => Ok(Attribute::Integer(value, ty)),
            _ => Err(self.cur.error_at(start, "an integer whose type is none")),
        }
    }

    /// `array<i64: 1, 2>`.
    fn numbers(&mut self) -> Result<Attribute> {
        self.cur.word("")?;
        self.cur.take("<")?;
        let start = self.cur.at();
        let element = match self.ty()? {
            Type::Scalar(element) if !matches!(element, Element::Complex(_) | Element::Quantized(_)) => element,
            _ => return Err(self.cur.error_at(start, "expected the type of a number")),
        };
        if !self.cur.eat(":") {
            self.cur.take(">")?;
            return Ok(Attribute::Numbers(element, Vec::new()));
        }
        if let Element::Float(_) = element {
            let ty = Type::Scalar(element);
            let values = self.list(">", |r| {
                let at = r.cur.at();
                match r.number()? {
                    Attribute::Float(v, _) => Ok(Attribute::Float(v, ty.clone())),
                    _ => Err(r.cur.error_at(at, "expected a float")),
                }
            })?;
            return Ok(Attribute::Array(values));
        }
        let values = self.list(">", |r| match r.cur.peek_word() {
            "true" | "false" => Ok(i64::from(r.cur.word("")? == "true")),
            _ => r.cur.i64(),
        })?;
        Ok(Attribute::Numbers(element, values))
    }

    /// `#stablehlo<comparison_direction EQ>`, `#stablehlo.gather<..>`, an alias, or what only its dialect knows.
    fn dialect_attribute(&mut self) -> Result<Attribute> {
        let start = self.cur.at();
        let name = self.cur.sigil_name("the name of an attribute behind `#`")?;
        if let Some(found) = self.aliases.get(name) {
            return Ok(found.clone());
        }
        if self.cur.peek() != b'<' {
            return match name.contains('.') {
                true => Ok(Attribute::Opaque(name.to_owned())),
                false => Err(self.cur.error_at(start, &format!("the attribute `#{name}` is not defined above"))),
            };
        }
        let end = self.cur.balanced()?;
        if let "stablehlo" | "chlo" = name {
            // `#stablehlo<kind Word>`: one of a few words.
            self.cur.take("<")?;
            let kind = self.cur.word("the kind of an attribute")?;
            let full = known(&format!("{name}.{kind}"));
            if let Some(read) = structs::find(&full) {
                let value = self.record(full, read)?;
                self.cur.take(">")?;
                return Ok(value);
            }
            let wrapped = self.cur.eat("<");
            let value = known(self.cur.word("one of the words of this attribute")?);
            if wrapped {
                self.cur.take(">")?;
            }
            self.cur.take(">")?;
            return Ok(Attribute::Enum(full, value));
        }
        if let Some(read) = structs::find(name) {
            return self.record(known(name), read);
        }
        if structs::is_enum(name) {
            self.cur.take("<")?;
            let value = known(self.cur.word("one of the words of this attribute")?);
            self.cur.take(">")?;
            return Ok(Attribute::Enum(known(name), value));
        }
        self.cur.go(end);
        Ok(Attribute::Opaque(self.cur.between(start + 1, end).to_owned()))
    }

    /// Steps over `loc(..)`.
    pub(super) fn location(&mut self) -> Result<()> {
        self.cur.take_word("loc")?;
        if self.cur.peek() != b'(' {
            return Err(self.cur.expected("`(` behind `loc`"));
        }
        let end = self.cur.balanced()?;
        self.cur.go(end);
        Ok(())
    }

    /// Steps over `loc(..)`, if it is there.
    pub(super) fn location_if(&mut self) -> Result<()> {
        if self.cur.peek() == b'l' && self.cur.peek_word() == "loc" { self.location() } else { Ok(()) }
    }
}
