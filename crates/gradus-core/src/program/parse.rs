//! Reads programs back from their canonical text. Every error says the line and column; every equation is checked
//! by its type rule as it is read.

use std::str::FromStr;
use std::sync::Arc;

use super::{Atom, Builder, Constant, Content, Program, ValueId};
use crate::array::Concrete;
use crate::error::{Error, Location, Result, counted, error, fail};
use crate::primitives::{Op, Param};
use crate::stack;
use crate::types::{Constraint, DType, Dim, Effects, Element, KeyBits, Scalar, Type, Wide, dispatch};

/// Programs nested deeper than this are refused, and lists, so that no text can exhaust the stack. A program as deep as programs get may have a
/// list around each (the branches of a `switch`), so the two are counted apart.
const DEEPEST: usize = stack::DEEPEST + 4;

impl FromStr for Program {
    type Err = Error;

    fn from_str(text: &str) -> Result<Program> {
        let mut parser = Parser { text, at: 0, programs: 0, lists: 0 };
        let program = parser.program().and_then(|p| {
            parser.space();
            match parser.rest().chars().next() {
                None => Ok(p),
                Some(c) => Err(error!(Parse, "unexpected `{c}` after the program")),
            }
        });
        program.map_err(|e| {
            let (line, column) = parser.position();
            e.note(format!("at line {line}, column {column} of the program text"))
        })
    }
}

/// The beginning of a text, for messages: what a user sees of a million letters should be forty.
pub(crate) fn short(text: &str) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    programs: usize,
    lists: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn position(&self) -> (usize, usize) {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    /// Takes this token if it comes next.
    fn take(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Goes back to where a token began before an error is made of it: that is the place the error names.
    fn back(&mut self, start: usize) {
        self.at = start;
    }

    /// Where the next token begins.
    fn here(&mut self) -> usize {
        self.space();
        self.at
    }

    fn want(&mut self, token: &str) -> Result<()> {
        let before = self.at;
        if self.take(token) {
            return Ok(());
        }
        if self.text[before..self.at].contains('\n') && !self.rest().is_empty() {
            self.back(before);
            fail!(Parse, "expected `{token}`, found the end of the line");
        }
        match self.peek() {
            Some(c) => fail!(Parse, "expected `{token}`, found `{c}`"),
            None => fail!(Parse, "expected `{token}`, found the end of the text"),
        }
    }

    fn word(&mut self) -> Result<&'a str> {
        self.space();
        let rest = self.rest();
        let len = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if len == 0 || rest.as_bytes()[0].is_ascii_digit() {
            match rest.chars().next() {
                Some(c) => fail!(Parse, "expected a name, found `{c}`"),
                None => fail!(Parse, "expected a name, found the end of the text"),
            }
        }
        self.at += len;
        Ok(&rest[..len])
    }

    /// Takes a word only if it is this one.
    fn keyword(&mut self, word: &str) -> bool {
        let start = self.at;
        if self.word().is_ok_and(|w| w == word) {
            return true;
        }
        self.at = start;
        false
    }

    fn ty(&mut self) -> Result<Type> {
        self.space();
        let (ty, used) = Type::parse_prefix(self.rest())?;
        self.at += used;
        Ok(ty)
    }

    fn dim(&mut self) -> Result<Dim> {
        self.space();
        let (dim, used) = Dim::parse_prefix(self.rest()).map_err(|e| error!(Parse, "{e}"))?;
        self.at += used;
        Ok(dim)
    }

    fn deeper<T>(
        &mut self,
        level: fn(&mut Self) -> &mut usize,
        read: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        if *level(self) >= DEEPEST {
            fail!(Parse, "the text nests more than {DEEPEST} levels deep");
        }
        stack::check()?;
        *level(self) += 1;
        let result = read(self);
        *level(self) -= 1;
        result
    }

    fn program(&mut self) -> Result<Program> {
        if !self.keyword("fn") {
            fail!(Parse, "a program starts with `fn name(x0: f64[]) -> f64[] {{`");
        }
        let mut b = Builder::new(self.word()?);
        self.want("(")?;
        while !self.take(")") {
            if !b.program().types.is_empty() {
                self.want(",")?;
            }
            self.binding(b.program().types.len())?;
            let ty = self.ty()?;
            b.input(ty)?;
        }
        self.want("->")?;
        let signature = self.here();
        let outputs = self.output_types()?;
        if self.keyword("where") {
            loop {
                let c = self.constraint()?;
                b.require(&[c]);
                if !self.take(",") {
                    break;
                }
            }
        }
        let declared = b.program().constraints.clone();
        let mut effects = Effects::PURE;
        if self.keyword("does") {
            loop {
                let start = self.here();
                let name = self.word()?;
                let Some(effect) = Effects::from_name(name) else {
                    self.back(start);
                    fail!(Parse, "there is no effect `{}`", short(name));
                };
                effects = effects.union(effect);
                if !self.take(",") {
                    break;
                }
            }
        }
        self.want("{")?;
        while !self.keyword("return") {
            self.equation(&mut b)?;
        }
        let mut returned = Vec::new();
        while self.peek() != Some('}') {
            if !returned.is_empty() {
                self.want(",")?;
            }
            returned.push(self.atom(&mut b)?);
        }
        self.want("}")?;
        let end = self.at;
        // What is wrong from here on is wrong with the signature.
        self.back(signature);
        let p = b.finish(returned);
        if p.output_types() != outputs {
            fail!(Verify, "the program says it returns {outputs:?} but returns {:?}", p.output_types());
        }
        if p.effects() != effects {
            fail!(Verify, "the program says its effects are {effects:?} but they are {:?}", p.effects());
        }
        if p.constraints != declared {
            let missing: Vec<_> = p.constraints.iter().map(|c| c.to_string()).collect();
            fail!(Verify, "the program needs `where {}`", missing.join(", "));
        }
        self.at = end;
        Ok(p)
    }

    fn output_types(&mut self) -> Result<Vec<Type>> {
        if !self.take("(") {
            return Ok(vec![self.ty()?]);
        }
        let mut types = Vec::new();
        while !self.take(")") {
            if !types.is_empty() {
                self.want(",")?;
            }
            types.push(self.ty()?);
        }
        Ok(types)
    }

    fn constraint(&mut self) -> Result<Constraint> {
        let a = self.dim()?;
        if self.take("==") {
            return Ok(Constraint::Equal(a, self.dim()?));
        }
        if self.take(">=") {
            return Ok(Constraint::AtLeast(a, self.dim()?));
        }
        self.want("%")?;
        let n = self.dim()?.constant().ok_or_else(|| error!(Parse, "expected a number after `%`"))?;
        self.want("==")?;
        self.want("0")?;
        Ok(Constraint::Multiple(a, n))
    }

    /// `xN:` where N is the next number.
    fn binding(&mut self, next: usize) -> Result<()> {
        let start = self.here();
        let name = self.word()?;
        if name != format!("x{next}") {
            self.back(start);
            fail!(Parse, "values are numbered by definition: expected `x{next}`, found `{}`", short(name));
        }
        self.want(":")
    }

    fn equation(&mut self, b: &mut Builder) -> Result<()> {
        let mut types = Vec::new();
        let first = b.program().types.len();
        // Results are `xN: type, ...  =`; an operation without results starts with its name.
        let start = self.here();
        let has_results = self.word().is_ok() && self.take(":");
        self.at = start;
        if has_results {
            loop {
                self.binding(first + types.len())?;
                types.push(self.ty()?);
                if !self.take(",") {
                    break;
                }
            }
            self.want("=")?;
        }
        let op_start = self.here();
        let name = self.word()?;
        let mut params = Vec::new();
        if self.rest().starts_with('{') {
            self.want("{")?;
            while !self.take("}") {
                if !params.is_empty() {
                    self.want(",")?;
                }
                let key = self.word()?.to_string();
                self.want("=")?;
                let value = self.param()?;
                params.push((key, value));
            }
        }
        let op = match Op::from_text(name, &params) {
            Ok(op) => op,
            Err(e) => {
                self.back(op_start);
                return Err(e);
            }
        };
        let mut operands = Vec::new();
        // Operands stand on the rest of the line.
        loop {
            let gap = self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
            self.at += gap;
            match self.rest().chars().next() {
                None | Some('\n' | '\r' | '}') => break,
                Some(_) => operands.push(self.atom(b)?),
            }
        }
        let line_end = self.at;
        // What the type rule refuses is refused of the whole equation.
        self.back(op_start);
        let results = b.equation(op, &operands, Location::unknown())?.results();
        let inferred: Vec<_> = results.map(|r| b.program().ty(r).clone()).collect();
        if inferred != types {
            self.back(start);
            fail!(Verify, "`{name}` gives {inferred:?} here, not {types:?}");
        }
        self.at = line_end;
        Ok(())
    }

    fn param(&mut self) -> Result<Param> {
        match self.peek() {
            Some('[') => self.deeper(
                |p| &mut p.lists,
                |p| {
                    p.want("[")?;
                    let mut items = Vec::new();
                    while !p.take("]") {
                        if !items.is_empty() {
                            p.want(",")?;
                        }
                        items.push(p.param()?);
                    }
                    Ok(Param::List(items))
                },
            ),
            Some('"') => self.text_param(),
            Some(_) => {
                let start = self.at;
                if self.keyword("fn") {
                    self.at = start;
                    let program = self.deeper(|p| &mut p.programs, Self::program)?;
                    return Ok(Param::Program(Arc::new(program)));
                }
                self.plain_param()
            }
            None => fail!(Parse, "expected a parameter, found the end of the text"),
        }
    }

    fn text_param(&mut self) -> Result<Param> {
        self.want("\"")?;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(Param::Text(text));
                }
                '\\' => match chars.next().map(|(_, c)| c) {
                    Some('n') => text.push('\n'),
                    Some('t') => text.push('\t'),
                    Some('r') => text.push('\r'),
                    Some('0') => text.push('\0'),
                    Some('u') => {
                        let hex: String =
                            chars.by_ref().map(|(_, c)| c).skip(1).take_while(|c| *c != '}').take(8).collect();
                        let c = u32::from_str_radix(&hex, 16).ok().and_then(char::from_u32);
                        text.push(c.ok_or_else(|| error!(Parse, "`\\u{{{hex}}}` is no character"))?);
                    }
                    Some(c) => text.push(c),
                    None => break,
                },
                c => text.push(c),
            }
        }
        fail!(Parse, "a text is not closed: expected `\"`")
    }

    /// A number, a dimension, a dtype, a bool or a name.
    fn plain_param(&mut self) -> Result<Param> {
        let start = self.at;
        if let Some(number) = self.number_text() {
            if let Ok(v) = number.parse::<i64>()
                && !matches!(self.rest().chars().next(), Some('*' | '+' | '-' | '^'))
            {
                return Ok(Param::Int(v));
            }
            if number.contains(['.', 'e', 'n']) {
                let Some(Scalar::F64(v)) = parse_scalar(number, DType::F64) else {
                    fail!(Parse, "`{}` is not a number", short(number));
                };
                return Ok(Param::Float(v.to_bits()));
            }
            self.at = start;
        } else if let Ok(word) = self.word() {
            if !matches!(self.rest().chars().next(), Some('*' | '+' | '-' | '^' | '(')) {
                return Ok(match word {
                    "true" => Param::Bool(true),
                    "false" => Param::Bool(false),
                    _ => match word.parse::<DType>() {
                        Ok(d) => Param::DType(d),
                        Err(_) => Param::Name(word.to_string()),
                    },
                });
            }
            self.at = start;
        }
        let dim = self.dim()?;
        Ok(dim.constant().map_or(Param::Dim(dim), Param::Int))
    }

    /// The longest run that looks like a number, if one starts here.
    fn number_text(&mut self) -> Option<&'a str> {
        self.space();
        let rest = self.rest();
        let b = rest.as_bytes();
        let mut i = usize::from(b.first() == Some(&b'-'));
        for special in ["inf", "nan"] {
            if rest[i..].starts_with(special)
                && !rest[i + 3..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            {
                i += 3;
                if special == "nan" && rest[i..].starts_with(':') {
                    // nan:7ff8000000000001 keeps its bits; a type follows a plain nan's colon instead.
                    let hex = rest[i + 1..].find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len() - i - 1);
                    if rest[i + 1 + hex..].starts_with([':', ',', ']', ')', '}']) && hex > 0 {
                        i += 1 + hex;
                    }
                }
                self.at += i;
                return Some(&rest[..i]);
            }
        }
        if !b.get(i).is_some_and(u8::is_ascii_digit) {
            return None;
        }
        while b.get(i).is_some_and(|c| c.is_ascii_digit() || *c == b'.') {
            i += 1;
        }
        if b.get(i) == Some(&b'e') {
            i += 1 + usize::from(matches!(b.get(i + 1), Some(b'-' | b'+')));
            while b.get(i).is_some_and(u8::is_ascii_digit) {
                i += 1;
            }
        }
        self.at += i;
        Some(&rest[..i])
    }

    /// The text of one number of a constant: also `true`, `false` and `(re,im)`.
    fn scalar_text(&mut self) -> Result<&'a str> {
        self.space();
        let start = self.at;
        if self.take("(") {
            let parts = self.number_text().is_some() && self.take(",") && self.number_text().is_some();
            if !parts || !self.take(")") {
                fail!(Parse, "expected a complex number as `(1.0,-2.0)`");
            }
            return Ok(&self.text[start..self.at]);
        }
        if self.keyword("true") || self.keyword("false") || self.number_text().is_some() {
            return Ok(self.text[start..self.at].trim());
        }
        match self.peek() {
            Some(c) => fail!(Parse, "expected a value or a number, found `{c}`"),
            None => fail!(Parse, "expected a value or a number, found the end of the text"),
        }
    }

    fn atom(&mut self, b: &mut Builder) -> Result<Atom> {
        if self.peek() == Some('x') {
            let start = self.at;
            let name = self.word()?;
            let Ok(n) = name[1..].parse::<usize>() else {
                self.back(start);
                fail!(Parse, "`{}` is not a value's name", short(name))
            };
            if n >= b.program().types.len() || name[1..] != n.to_string() {
                self.back(start);
                fail!(Parse, "`{}` is used before it is defined", short(name));
            }
            return Ok(ValueId::new(n).into());
        }
        let start = self.at;
        if self.take("[") {
            let mut items = Vec::new();
            while !self.take("]") {
                if !items.is_empty() {
                    self.want(",")?;
                }
                items.push(self.scalar_text()?);
            }
            self.want(":")?;
            let ty = self.ty()?;
            let end = self.at;
            self.back(start);
            if ty.shape().count() != Some(items.len()) {
                fail!(Parse, "{} cannot fill {ty}", counted(items.len(), "number"));
            }
            let concrete = dispatch!(ty.dtype(), T => {
                let mut values: Vec<T> = Vec::with_capacity(items.len());
                for text in items {
                    let parsed = parse_scalar(text, ty.dtype()).and_then(T::from_scalar);
                    values.push(parsed.ok_or_else(|| error!(Parse, "`{}` is not a number of {}", short(text), ty.dtype()))?);
                }
                Concrete::dense(ty.clone(), values)
            });
            self.at = end;
            return Ok(b.constant(Constant { ty, content: Content::Dense(Arc::new(concrete)) }));
        }
        let text = self.scalar_text()?;
        self.want(":")?;
        let ty = self.ty()?;
        let Some(value) = parse_scalar(text, ty.dtype()) else {
            self.back(start);
            fail!(Parse, "`{}` is not a number of {}", short(text), ty.dtype());
        };
        Ok(b.constant(Constant::splat(ty, value)))
    }
}

/// The number a text stands for, exactly; `None` if it is no number of this dtype.
fn parse_scalar(text: &str, dtype: DType) -> Option<Scalar> {
    fn float(text: &str) -> Option<f64> {
        match text {
            "nan" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => text.starts_with(|c: char| c.is_ascii_digit() || c == '-').then(|| text.parse().ok())?,
        }
    }
    fn bits(text: &str) -> Option<u64> {
        u64::from_str_radix(text.strip_prefix("nan:")?, 16).ok()
    }
    use half::{bf16, f16};
    Some(match dtype {
        DType::Bool => Scalar::Bool(text.parse().ok()?),
        DType::F16 => match bits(text) {
            Some(b) => Scalar::F16(f16::from_bits(b.try_into().ok()?)),
            None => Scalar::F16(f16::from_wide(Wide::Real(float(text)?))),
        },
        DType::BF16 => match bits(text) {
            Some(b) => Scalar::BF16(bf16::from_bits(b.try_into().ok()?)),
            None => Scalar::BF16(bf16::from_wide(Wide::Real(float(text)?))),
        },
        DType::F32 => match bits(text) {
            Some(b) => Scalar::F32(f32::from_bits(b.try_into().ok()?)),
            // Straight to f32: by way of f64 a decimal would be rounded twice.
            None if float(text)?.is_finite() => Scalar::F32(text.parse().ok()?),
            None => Scalar::F32(float(text)? as f32),
        },
        DType::F64 => Scalar::F64(bits(text).map(f64::from_bits).or_else(|| float(text))?),
        DType::C64 | DType::C128 => {
            let (re, im) = text.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
            let part = dtype.real_part();
            match (parse_scalar(re.trim(), part)?, parse_scalar(im.trim(), part)?) {
                (Scalar::F32(re), Scalar::F32(im)) => Scalar::C64(crate::types::Complex::new(re, im)),
                (Scalar::F64(re), Scalar::F64(im)) => Scalar::C128(crate::types::Complex::new(re, im)),
                _ => return None,
            }
        }
        DType::U64 => Scalar::U64(text.parse().ok()?),
        DType::Key => Scalar::Key(KeyBits(text.parse().ok()?)),
        _ => {
            let wide = Scalar::I64(text.parse().ok()?);
            let narrow = wide.cast(dtype);
            (narrow.to_i64() == wide.to_i64()).then_some(narrow)?
        }
    })
}
