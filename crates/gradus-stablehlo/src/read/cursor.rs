//! The place in the text: what stands there, steps over it, and errors that say file, line and column.

use std::borrow::Cow;

use gradus_core::error::{Error, ErrorKind, Result};

use crate::module::Place;

/// A place in a text. It stands at the start of a word or sign, never at blanks or comments.
pub(super) struct Cursor<'a> {
    source: &'a str,
    text: &'a str,
    at: usize,
    /// Up to where lines were counted, and the place there: whole texts are counted once, however many operations ask.
    counted: (usize, Place),
}

/// Bytes of words: letters, digits, `_`, `$`, `.`.
const WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        table[i] = b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b == b'.';
        i += 1;
    }
    table
};

impl<'a> Cursor<'a> {
    /// At the first word behind an offset whose place is known, in a text up to `to`.
    pub(super) fn new(source: &'a str, text: &'a str, from: (usize, Place), to: usize) -> Cursor<'a> {
        let text = text.get(..to).unwrap_or(text);
        let mut cursor = Cursor { source, text, at: from.0, counted: from };
        cursor.skip();
        cursor
    }

    /// The name of the text.
    pub(super) fn source(&self) -> &'a str {
        self.source
    }

    /// The offset of what comes next.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Goes to an offset, and over blanks there.
    pub(super) fn go(&mut self, at: usize) {
        self.at = at.min(self.text.len());
        self.skip();
    }

    /// Ends the text here.
    pub(super) fn shorten(&mut self, end: usize) {
        self.text = self.text.get(..end).unwrap_or(self.text);
    }

    pub(super) fn is_end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// The next byte; 0 at the end.
    pub(super) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// What is left.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or(&[])
    }

    /// The text between two offsets.
    pub(super) fn between(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or("")
    }

    fn skip(&mut self) {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') if bytes.get(self.at + 1) == Some(&b'/') => {
                    let rest = &bytes[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                _ => return,
            }
        }
    }

    /// Steps over a sign, if it is next.
    pub(super) fn eat(&mut self, sign: &str) -> bool {
        let is = self.rest().starts_with(sign.as_bytes());
        if is {
            self.at += sign.len();
            self.skip();
        }
        is
    }

    /// Steps over a sign that must be next.
    pub(super) fn take(&mut self, sign: &str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// The word that is next; empty if there is none.
    pub(super) fn peek_word(&self) -> &'a str {
        let rest = self.rest();
        if !rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') {
            return "";
        }
        let n = rest.iter().position(|b| !WORD[usize::from(*b)]).unwrap_or(rest.len());
        self.between(self.at, self.at + n)
    }

    /// Steps over the next word.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str> {
        let word = self.peek_word();
        if word.is_empty() {
            return Err(self.expected(what));
        }
        self.at += word.len();
        self.skip();
        Ok(word)
    }

    /// Steps over this word, if it is next.
    pub(super) fn eat_word(&mut self, word: &str) -> bool {
        let is = self.peek_word() == word;
        if is {
            self.at += word.len();
            self.skip();
        }
        is
    }

    /// Steps over this word, which must be next.
    pub(super) fn take_word(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// The name behind a sigil (`%`, `#`, `!`, `^`), which stands at the cursor.
    pub(super) fn sigil_name(&mut self, what: &str) -> Result<&'a str> {
        let rest = self.rest().get(1..).unwrap_or(&[]);
        let n = rest.iter().position(|b| !WORD[usize::from(*b)] && *b != b'-').unwrap_or(rest.len());
        // `#stablehlo.conv<..>->` and the like: an arrow ends a name.
        let n = if rest[..n].last() == Some(&b'-') && rest.get(n) == Some(&b'>') { n - 1 } else { n };
        if n == 0 {
            return Err(self.expected(what));
        }
        let name = self.between(self.at + 1, self.at + 1 + n);
        self.at += 1 + n;
        self.skip();
        Ok(name)
    }

    /// `@name` or `@"any name"`, without the sign.
    pub(super) fn symbol(&mut self) -> Result<Cow<'a, str>> {
        if self.peek() != b'@' {
            return Err(self.expected("a name that starts with `@`"));
        }
        if self.rest().get(1) == Some(&b'"') {
            self.at += 1;
            let start = self.at;
            return match self.string()? {
                Cow::Borrowed(bytes) => Ok(std::str::from_utf8(bytes).unwrap_or_default().into()),
                Cow::Owned(bytes) => match String::from_utf8(bytes) {
                    Ok(name) => Ok(name.into()),
                    Err(_) => Err(self.error_at(start, "this name is no UTF-8 text")),
                },
            };
        }
        self.sigil_name("a name behind `@`").map(Cow::Borrowed)
    }

    /// A text in quotes: its bytes with escapes replaced.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        let start = self.at;
        if self.peek() != b'"' {
            return Err(self.expected("a text in quotes"));
        }
        let rest = &self.rest()[1..];
        let Some(n) = rest.iter().position(|b| matches!(b, b'"' | b'\\' | b'\n')) else {
            return Err(self.error_at(start, "this text has no closing `\"`"));
        };
        if rest[n] == b'"' {
            self.go(start + n + 2);
            return Ok(Cow::Borrowed(&rest[..n]));
        }
        let mut bytes = rest[..n].to_vec();
        let mut i = n;
        loop {
            match rest.get(i).copied() {
                None | Some(b'\n') => return Err(self.error_at(start, "this text has no closing `\"`")),
                Some(b'"') => break,
                Some(b'\\') => {
                    let (one, used) = match (rest.get(i + 1).copied(), rest.get(i + 2).copied()) {
                        (Some(b'n'), _) => (b'\n', 2),
                        (Some(b't'), _) => (b'\t', 2),
                        (Some(b @ (b'"' | b'\\')), _) => (b, 2),
                        (Some(h), Some(l)) if h.is_ascii_hexdigit() && l.is_ascii_hexdigit() => {
                            (nibble(h) << 4 | nibble(l), 3)
                        }
                        _ => {
                            return Err(self.error_at(
                                start + 1 + i,
                                "expected `n`, `t`, `\"`, `\\` or two hex digits behind `\\`",
                            ));
                        }
                    };
                    bytes.push(one);
                    i += used;
                }
                Some(b) => {
                    bytes.push(b);
                    i += 1;
                }
            }
        }
        self.go(start + 1 + i + 1);
        Ok(Cow::Owned(bytes))
    }

    /// The text in quotes as a name.
    pub(super) fn text(&mut self) -> Result<String> {
        let start = self.at;
        let bytes = self.string()?.into_owned();
        String::from_utf8(bytes).map_err(|_| self.error_at(start, "this text is no UTF-8"))
    }

    /// The span of a number without its sign, and whether it is a float; empty if none is next.
    pub(super) fn number_span(&self) -> (&'a str, bool) {
        let rest = self.rest();
        let digits = |from: usize, hex: bool| {
            let is = |b: &u8| if hex { b.is_ascii_hexdigit() } else { b.is_ascii_digit() };
            from + rest.get(from..).map_or(0, |r| r.iter().position(|b| !is(b)).unwrap_or(r.len()))
        };
        if rest.starts_with(b"0x") && rest.get(2).is_some_and(u8::is_ascii_hexdigit) {
            return (self.between(self.at, self.at + digits(2, true)), false);
        }
        let mut n = digits(0, false);
        let float = n > 0 && rest.get(n) == Some(&b'.');
        if float {
            n = digits(n + 1, false);
            if matches!(rest.get(n), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(rest.get(n + 1), Some(b'+' | b'-')));
                let end = digits(n + 1 + sign, false);
                n = if end > n + 1 + sign { end } else { n };
            }
        }
        (self.between(self.at, self.at + n), float)
    }

    /// An integer, decimal or `0x..`.
    pub(super) fn integer(&mut self) -> Result<i128> {
        let start = self.at;
        let minus = self.eat("-");
        let (span, float) = self.number_span();
        if span.is_empty() || float {
            self.at = start;
            return Err(self.expected("an integer"));
        }
        let size = match span.strip_prefix("0x") {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => span.parse(),
        };
        let Ok(size) = size else { return Err(self.error_at(start, "this integer is too large")) };
        self.go(self.at + span.len());
        Ok(if minus { -size } else { size })
    }

    /// An integer of 64 bits.
    pub(super) fn i64(&mut self) -> Result<i64> {
        let start = self.at;
        let wide = self.integer()?;
        i64::try_from(wide).map_err(|_| self.error_at(start, "this integer does not fit 64 bits"))
    }

    /// Where the closing bracket of the bracket at the cursor stands: one past it. Texts in quotes and nested brackets are stepped over.
    pub(super) fn balanced(&self) -> Result<usize> {
        let bytes = self.text.as_bytes();
        let mut open: Vec<u8> = Vec::new();
        let mut i = self.at;
        while let Some(b) = bytes.get(i).copied() {
            match b {
                b'(' => open.push(b')'),
                b'[' => open.push(b']'),
                b'{' => open.push(b'}'),
                b'<' => open.push(b'>'),
                // An arrow is no bracket.
                b'-' if bytes.get(i + 1) == Some(&b'>') => i += 1,
                b')' | b']' | b'}' | b'>' if open.pop() != Some(b) => {
                    return Err(self.error_at(i, &format!("`{}` closes nothing", char::from(b))));
                }
                b'"' => {
                    i += 1;
                    while let Some(c) = bytes.get(i) {
                        match c {
                            b'\\' => i += 2,
                            b'"' => break,
                            _ => i += 1,
                        }
                    }
                }
                _ => {}
            }
            i += 1;
            if open.is_empty() {
                return Ok(i);
            }
        }
        Err(self.error_at(self.at, "this bracket is not closed"))
    }

    /// Line and column of what comes next.
    pub(super) fn place(&mut self) -> Place {
        let (from, place) = self.counted;
        if self.at < from {
            return self.place_of(self.at);
        }
        let place = advanced(place, &self.text.as_bytes()[from..self.at.min(self.text.len())]);
        self.counted = (self.at, place);
        place
    }

    fn place_of(&self, at: usize) -> Place {
        advanced(Place { line: 1, column: 1 }, &self.text.as_bytes()[..at.min(self.text.len())])
    }

    /// An error at the cursor that says what was expected and what is there.
    #[cold]
    pub(super) fn expected(&self, what: &str) -> Error {
        let rest = self.text.get(self.at..).unwrap_or("");
        let end = rest.char_indices().take_while(|(i, c)| *i == 0 || (!c.is_whitespace() && *i < 24)).last();
        match end {
            None => self.error_at(self.at, &format!("expected {what}, found the end")),
            Some((i, c)) => self.error_at(self.at, &format!("expected {what}, found `{}`", &rest[..i + c.len_utf8()])),
        }
    }

    /// An error at an offset.
    #[cold]
    pub(super) fn error_at(&self, at: usize, message: &str) -> Error {
        self.error_in(self.place_of(at), message)
    }

    /// An error at a place.
    #[cold]
    pub(super) fn error_in(&self, place: Place, message: &str) -> Error {
        Error::new(ErrorKind::Parse, format!("{}:{}:{}: {message}", self.source, place.line, place.column))
    }
}

/// The place behind these bytes.
pub(super) fn advanced(mut place: Place, bytes: &[u8]) -> Place {
    let lines = bytes.iter().filter(|b| **b == b'\n').count();
    let tail = match lines {
        0 => bytes,
        _ => bytes.rsplit(|b| *b == b'\n').next().unwrap_or(&[]),
    };
    let characters = tail.iter().filter(|b| **b & 0xC0 != 0x80).count();
    let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    place.line = place.line.saturating_add(small(lines));
    place.column = if lines == 0 { place.column } else { 1 }.saturating_add(small(characters));
    place
}

/// The value of a hex digit.
pub(super) fn nibble(b: u8) -> u8 {
    match b {
        b'0'..=b'9' => b - b'0',
        b'a'..=b'f' => b - b'a' + 10,
        _ => b.wrapping_sub(b'A').wrapping_add(10),
    }
}
