//! A place in the file that moves forward: every number and every run of bytes of the format is read here, and nowhere past the end of its section.

use std::fmt::Display;

use gradus_core::{Error, ErrorKind, Result};

/// What is wrong, and at which byte of the file.
#[cold]
pub(super) fn error(at: usize, message: impl Display) -> Error {
    // What a file holds may be long, and stands in some messages.
    Error::new(ErrorKind::Parse, format!("byte {at}: {:.500}", message.to_string()))
}

/// A part of the file that is read from front to back.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    file: &'a [u8],
    at: usize,
    end: usize,
}

impl<'a> Cursor<'a> {
    /// The whole file.
    pub(super) fn new(file: &'a [u8]) -> Cursor<'a> {
        Cursor { file, at: 0, end: file.len() }
    }

    /// Another part of the same file. What lies outside is cut off.
    pub(super) fn within(&self, start: usize, end: usize) -> Cursor<'a> {
        let end = end.min(self.file.len());
        Cursor { file: self.file, at: start.min(end), end }
    }

    /// Where it stands, in bytes from the start of the file.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// How many bytes are left of the part.
    pub(super) fn left(&self) -> usize {
        self.end - self.at
    }

    /// An error here.
    pub(super) fn error(&self, message: impl Display) -> Error {
        error(self.at, message)
    }

    /// Refuses bytes that nothing accounts for.
    pub(super) fn finished(&self, what: &str) -> Result<()> {
        match self.left() {
            0 => Ok(()),
            left => Err(self.error(format!("{left} bytes too many behind {what}"))),
        }
    }

    /// One byte.
    pub(super) fn byte(&mut self) -> Result<u8> {
        if self.at == self.end {
            return Err(self.error("the file ends here, or a section of it, where a byte is expected"));
        }
        self.at += 1;
        Ok(self.file[self.at - 1])
    }

    /// A run of bytes.
    pub(super) fn bytes(&mut self, length: u64) -> Result<&'a [u8]> {
        let left = self.left();
        let length = usize::try_from(length).ok().filter(|n| *n <= left);
        let Some(length) = length else {
            return Err(self.error(format!("more bytes are announced than the {left} that are left here")));
        };
        self.at += length;
        Ok(&self.file[self.at - length..self.at])
    }

    /// A number of one to nine bytes: zeros at the low end of the first one count how many follow.
    pub(super) fn number(&mut self) -> Result<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros();
        if more == 0 {
            return Ok(u64::from(first >> 1));
        }
        let rest = self.bytes(u64::from(more))?;
        let mut wide = [0; 8];
        wide[..rest.len()].copy_from_slice(rest);
        let rest = u64::from_le_bytes(wide);
        // The first byte has 7 - more bits of the number, below the others; of eight zeros it has none.
        Ok(if more >= 7 { rest } else { rest << (7 - more) | u64::from(first) >> (more + 1) })
    }

    /// A number with its sign, which is the lowest bit.
    pub(super) fn signed(&mut self) -> Result<i64> {
        let raw = self.number()?;
        Ok((raw >> 1) as i64 ^ -((raw & 1) as i64))
    }

    /// A number whose lowest bit is a flag.
    pub(super) fn flagged(&mut self) -> Result<(u64, bool)> {
        let raw = self.number()?;
        Ok((raw >> 1, raw & 1 == 1))
    }

    /// How many items follow, each of at least one byte: never more than are left, so that what is announced may be allocated.
    pub(super) fn count(&mut self, what: &str) -> Result<usize> {
        let at = self.at;
        let n = self.number()?;
        self.fits(at, n, what)
    }

    /// The same of a number that was read at `at`.
    pub(super) fn fits(&self, at: usize, n: u64, what: &str) -> Result<usize> {
        match usize::try_from(n) {
            Ok(n) if n <= self.left() => Ok(n),
            _ => Err(error(at, format!("{n} {what} are announced, with {} bytes left", self.left()))),
        }
    }

    /// Signed numbers, with their count in front.
    pub(super) fn signed_list(&mut self) -> Result<Vec<i64>> {
        (0..self.count("numbers")?).map(|_| self.signed()).collect()
    }

    /// The bits of an integer or float of a known width of at most 64.
    pub(super) fn bits(&mut self, width: u32) -> Result<u64> {
        if width <= 8 { self.byte().map(u64::from) } else { self.signed().map(|v| v as u64) }
    }

    /// The bytes up to the next zero, which is skipped.
    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let Some(length) = self.file[self.at..self.end].iter().position(|b| *b == 0) else {
            return Err(self.error("a text has no end"));
        };
        let text = self.bytes(length as u64)?;
        self.at += 1;
        Ok(text)
    }

    /// Skips to the next multiple of `alignment`.
    pub(super) fn align(&mut self, alignment: u64) -> Result<()> {
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("an alignment of {alignment}, which is no power of two")));
        }
        let padding = (self.at as u64).wrapping_neg() & (alignment - 1);
        if self.bytes(padding)?.iter().any(|b| *b != 0xCB) {
            return Err(self.error("padding that is not of the byte 0xCB"));
        }
        Ok(())
    }

    /// A section: its number and what it holds.
    pub(super) fn section(&mut self) -> Result<(u8, Cursor<'a>)> {
        let id = self.byte()?;
        let length = self.number()?;
        if id & 0x80 != 0 {
            let alignment = self.number()?;
            self.align(alignment)?;
        }
        let start = self.at;
        self.bytes(length)?;
        Ok((id & 0x7f, self.within(start, self.at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length() {
        // The forms of the format's documentation, by hand: the value above its marker.
        let cases: &[(&[u8], u64)] = &[
            (&[0x01], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 1 << 7),
            (&[0xfe, 0xff], (1 << 14) - 1),
            (&[0x04, 0, 1], 1 << 13),
            (&[0x80, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], (1 << 56) - 1),
            (&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], u64::MAX),
        ];
        for (bytes, want) in cases {
            let mut cursor = Cursor::new(bytes);
            assert_eq!(cursor.number().unwrap(), *want, "{bytes:x?}");
            assert_eq!(cursor.left(), 0, "{bytes:x?}");
            assert!(Cursor::new(&bytes[..bytes.len() - 1]).number().is_err());
        }
        let signed = |b: u8| Cursor::new(&[b << 1 | 1]).signed().unwrap();
        assert_eq!([signed(0), signed(1), signed(2), signed(3)], [0, -1, 1, -2]);
    }

    #[test]
    fn announced_lengths_are_checked() {
        let e = Cursor::new(&[0xff, 1]).count("strings").unwrap_err();
        assert_eq!(e.message(), "byte 0: 127 strings are announced, with 1 bytes left");
        assert!(Cursor::new(&[4, 0x81, 5]).section().is_err());
    }
}
