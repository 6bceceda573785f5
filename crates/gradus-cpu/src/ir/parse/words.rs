//! The words of kernel text: names, numbers and types, and errors that say what was found and what was wanted.

use super::{Parser, Placed};
use crate::error::{Error, Result, fail};
use crate::ir::Ty;
use crate::ir::print::is_plain;

pub(super) const TYPES: [Ty; 11] =
    [Ty::Bool, Ty::I8, Ty::I16, Ty::I32, Ty::I64, Ty::U8, Ty::U16, Ty::U32, Ty::U64, Ty::F32, Ty::F64];

impl<'a> Parser<'a> {
    // ---- characters and words ----

    pub fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub fn position(&self) -> (usize, usize) {
        let before = &self.text[..self.at];
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// Goes to the next character of this line that is no space and in no comment.
    pub fn space(&mut self) {
        let rest = self.rest().trim_start_matches([' ', '\t', '\r']);
        let comment = if rest.starts_with("//") { rest.find('\n').unwrap_or(rest.len()) } else { 0 };
        self.at = self.text.len() - rest.len() + comment;
    }

    /// Goes to the next line that has something on it.
    pub fn lines(&mut self) {
        self.space();
        while self.rest().starts_with('\n') {
            self.at += 1;
            self.space();
        }
    }

    pub fn here(&mut self) -> usize {
        self.space();
        self.at
    }

    pub fn peek(&mut self) -> Option<char> {
        self.space();
        self.rest().chars().next()
    }

    pub fn next_word(&mut self) -> &'a str {
        self.space();
        let rest = self.rest();
        &rest[..rest.find(|c| !is_plain(c)).unwrap_or(rest.len())]
    }

    /// An error at the next word.
    pub fn wanted<T>(&mut self, what: &str) -> Result<T> {
        let found = match (self.next_word(), self.peek()) {
            (_, None) => "the end of the text".into(),
            (_, Some('\n')) => "the end of the line".into(),
            ("", Some(c)) => format!("`{c}`"),
            (word, _) => format!("`{}`", short(word)),
        };
        fail!(Parse, "expected {what}, found {found}")
    }

    /// An error about what stands at an earlier place.
    pub fn at_place<T>(&mut self, at: usize, e: Error) -> Result<T> {
        self.at = at;
        Err(e)
    }

    pub fn take(&mut self, token: &str) -> bool {
        self.space();
        let found = self.rest().starts_with(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    pub fn want(&mut self, token: &str) -> Result<()> {
        if self.take(token) { Ok(()) } else { self.wanted(&format!("`{token}`")) }
    }

    pub fn keyword(&mut self, word: &str) -> bool {
        let found = self.next_word() == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    pub fn end_of_line(&mut self) -> Result<()> {
        match self.peek() {
            None | Some('\n') => {
                self.lines();
                Ok(())
            }
            Some(_) => self.wanted("the end of the line"),
        }
    }

    /// The end of a line that opens a body, or of one that closes it.
    pub fn brace(&mut self, brace: &str) -> Result<()> {
        self.want(brace)?;
        self.end_of_line()
    }

    pub fn name(&mut self) -> Result<String> {
        if !self.take("\"") {
            let word = self.next_word();
            if word.is_empty() {
                return self.wanted("a name");
            }
            self.at += word.len();
            return Ok(word.into());
        }
        let mut name = String::new();
        let mut chars = self.rest().char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '"' => {
                    self.at += i + 1;
                    return Ok(name);
                }
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => name.push('\n'),
                    Some((_, 'r')) => name.push('\r'),
                    Some((_, c)) => name.push(c),
                    None => break,
                },
                c => name.push(c),
            }
        }
        fail!(Parse, "expected a name that ends with `\"` on its line")
    }

    // ---- numbers ----

    /// A number behind a letter: `v12`, `b0`.
    pub fn numbered(&mut self, letter: char, what: &str) -> Result<Placed<u32>> {
        let start = self.here();
        let word = self.next_word();
        let number = word.strip_prefix(letter).filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|d| d.parse().ok()) {
            Some(n) => {
                self.at += word.len();
                Ok((n, start))
            }
            None => self.wanted(what),
        }
    }

    pub fn unsigned(&mut self, what: &str) -> Result<u32> {
        match self.next_word() {
            w if w.bytes().all(|b| b.is_ascii_digit()) && w.parse::<u32>().is_ok() => {
                self.at += w.len();
                Ok(w.parse().unwrap_or_default())
            }
            _ => self.wanted(what),
        }
    }

    pub fn integer(&mut self) -> Result<i64> {
        self.space();
        let start = self.at;
        self.take("-");
        let digits = self.next_word();
        self.at += digits.len();
        // A minus may stand apart from its number, as in `v0 - 3`.
        let minus = if self.text[start..].starts_with('-') { "-" } else { "" };
        match format!("{minus}{digits}").parse() {
            Ok(n) if digits.starts_with(|c: char| c.is_ascii_digit()) => Ok(n),
            _ => {
                self.at = start;
                self.wanted("a whole number")
            }
        }
    }

    /// The bits of a number of a type.
    pub fn number(&mut self, ty: Ty) -> Result<u64> {
        self.space();
        let rest = self.rest();
        let word = &rest[..rest.find(|c: char| !(is_plain(c) || "+-:".contains(c))).unwrap_or(rest.len())];
        match bits_of(word, ty) {
            Some(bits) => {
                self.at += word.len();
                Ok(bits)
            }
            None if word.is_empty() => self.wanted(&format!("a number of {ty}")),
            None => fail!(Parse, "expected a number of {ty}, found `{}`", short(word)),
        }
    }

    pub fn ty(&mut self) -> Result<Ty> {
        let word = self.next_word();
        match TYPES.into_iter().find(|t| t.to_string() == word) {
            Some(ty) => {
                self.at += word.len();
                Ok(ty)
            }
            None => self.wanted("a type as `f32`"),
        }
    }
}

/// The beginning of a word, for messages.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// The bits that a text stands for; none if it is no number of the type.
fn bits_of(text: &str, ty: Ty) -> Option<u64> {
    let bits = text.strip_prefix("nan:").map(|hex| u64::from_str_radix(hex, 16));
    Some(match (ty, bits) {
        (Ty::F32, Some(bits)) => {
            let bits = u32::try_from(bits.ok()?).ok()?;
            f32::from_bits(bits).is_nan().then_some(bits.into())?
        }
        (Ty::F64, Some(bits)) => bits.ok().filter(|b| f64::from_bits(*b).is_nan())?,
        (Ty::F32, None) if text == "nan" => f32::NAN.to_bits().into(),
        (Ty::F64, None) if text == "nan" => f64::NAN.to_bits(),
        (Ty::F32, None) => text.parse::<f32>().ok().filter(|x| !x.is_nan())?.to_bits().into(),
        (Ty::F64, None) => text.parse::<f64>().ok().filter(|x| !x.is_nan())?.to_bits(),
        (Ty::Bool, _) => text.parse::<bool>().ok()?.into(),
        (Ty::I8, _) => (text.parse::<i8>().ok()? as u8).into(),
        (Ty::I16, _) => (text.parse::<i16>().ok()? as u16).into(),
        (Ty::I32, _) => (text.parse::<i32>().ok()? as u32).into(),
        (Ty::I64, _) => text.parse::<i64>().ok()? as u64,
        (Ty::U8, _) => text.parse::<u8>().ok()?.into(),
        (Ty::U16, _) => text.parse::<u16>().ok()?.into(),
        (Ty::U32, _) => text.parse::<u32>().ok()?.into(),
        (Ty::U64, _) => text.parse().ok()?,
    })
}

/// Whether a word begins like a number of some type. One with a sign begins with no word at all.
pub(super) fn is_number(word: &str) -> bool {
    !word.starts_with(char::is_alphabetic) || [Ty::Bool, Ty::F64].into_iter().any(|ty| bits_of(word, ty).is_some())
}
