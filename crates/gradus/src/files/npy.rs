//! `.npy`: a header that says dtype, order and shape, then the numbers.
//!
//! The header is the text of a Python dictionary with three entries, and is read here, by a loop over its characters: crates for it bring a parser of all
//! Python literals, and the generator of that parser, into every build.

use std::io::{Read, Write};

use gradus_core::{Array, DType, Result, Type};

use super::{ALONE, Source, bad, bytes};

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Longer than any header of an array with names for nothing: what claims more is no such file.
const MOST: usize = 1 << 16;

/// The way out for files that end too early.
const CUT: &str = "it was not written or not copied to its end: save it, or copy it, again";

/// What a file says of its array before the numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) dims: Vec<usize>,
    /// The first index runs fastest.
    columns: bool,
    /// The highest byte of each number comes first.
    swapped: bool,
}

impl Header {
    pub(super) fn ty(&self) -> Result<Type> {
        bytes::ty_of(self.dtype, &self.dims)
    }

    /// Reads up to the first number.
    pub(super) fn read(from: &mut impl Read) -> Result<Header> {
        let mut start = [0; 8];
        exactly(from, &mut start)?;
        if &start[..6] != MAGIC {
            return Err(bad("is no `.npy`: it does not begin with the word NUMPY"));
        }
        let long = match start[6] {
            1 => false,
            2 | 3 => true,
            other => {
                return Err(bad(format!("is a `.npy` of version {other}.{}, which is not known here", start[7]))
                    .help("versions 1 to 3 are; write the file anew with a NumPy of today"));
            }
        };
        let mut length = [0; 4];
        exactly(from, &mut length[..if long { 4 } else { 2 }])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST {
            return Err(bad(format!("claims a header of {length} bytes")));
        }
        let mut text = vec![0; length];
        exactly(from, &mut text)?;
        let text = String::from_utf8(text).map_err(|_| bad("has a header that is no text"))?;
        Entries { rest: &text }.header()
    }

    /// Reads the numbers that follow.
    pub(super) fn array(&self, from: &mut impl Read) -> Result<Array> {
        let wanted = bytes::byte_count(self.dtype, &self.dims)?;
        let mut data = Vec::new();
        // What is not there is not made room for: a header can claim anything.
        from.take(wanted as u64).read_to_end(&mut data).map_err(|e| bad(format!("cannot be read: {e}")))?;
        if data.len() < wanted {
            return Err(
                bad(format!("is cut off: {} bytes of numbers where {} has {wanted}", data.len(), self.ty()?)).help(CUT)
            );
        }
        let part = if self.dtype.is_complex() { self.dtype.size() / 2 } else { self.dtype.size() };
        if self.swapped && part > 1 {
            data.chunks_exact_mut(part).for_each(<[u8]>::reverse);
        }
        if !self.columns {
            return bytes::to_array(self.dtype, &self.dims, &data);
        }
        let turned: Vec<usize> = self.dims.iter().rev().copied().collect();
        let axes: Vec<usize> = (0..self.dims.len()).rev().collect();
        bytes::to_array(self.dtype, &turned, &data)?.transpose(axes).to_dense().ok()
    }
}

fn exactly(from: &mut impl Read, into: &mut [u8]) -> Result<()> {
    from.read_exact(into).map_err(|e| bad(format!("is cut off in its header: {e}")).help(CUT))
}

/// The header's text, as far as it is not read yet.
struct Entries<'a> {
    rest: &'a str,
}

impl<'a> Entries<'a> {
    fn header(mut self) -> Result<Header> {
        let (mut descr, mut columns, mut dims) = (None, None, None);
        self.want("{")?;
        while !self.takes("}") {
            let key = self.quoted()?;
            self.want(":")?;
            match key {
                "descr" => descr = Some(self.quoted()?),
                "fortran_order" => columns = Some(self.truth()?),
                "shape" => dims = Some(self.sizes()?),
                other => return Err(bad(format!("has an entry `{other}` in its header that is not known here"))),
            }
            if !self.takes(",") {
                self.want("}")?;
                break;
            }
        }
        let (Some(descr), Some(columns), Some(dims)) = (descr, columns, dims) else {
            return Err(bad("has a header without dtype, order or shape"));
        };
        let (dtype, swapped) = dtype_of(descr)?;
        Ok(Header { dtype, dims, columns, swapped })
    }

    fn takes(&mut self, text: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn want(&mut self, text: &str) -> Result<()> {
        if self.takes(text) {
            return Ok(());
        }
        let found: String = self.rest.chars().take(20).collect();
        Err(bad(format!("has a header that is not one of an array: `{text}` is wanted before `{found}`"))
            .help("arrays of one plain dtype can be read; those of records and of Python objects cannot"))
    }

    fn quoted(&mut self) -> Result<&'a str> {
        let quote = if self.takes("\"") {
            '"'
        } else {
            self.want("'")?;
            '\''
        };
        let Some((text, rest)) = self.rest.split_once(quote) else {
            return Err(bad("has a header that ends in the middle of a text"));
        };
        self.rest = rest;
        Ok(text)
    }

    fn truth(&mut self) -> Result<bool> {
        if self.takes("True") {
            return Ok(true);
        }
        self.want("False").map(|()| false)
    }

    fn sizes(&mut self) -> Result<Vec<usize>> {
        self.want("(")?;
        let mut dims = Vec::new();
        while !self.takes(")") {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let Ok(size) = digits.parse() else {
                let all: String = self.rest.chars().take_while(|c| ![',', ')'].contains(c)).take(30).collect();
                return Err(bad(format!(
                    "has a size `{}` in its header, and no array is of that size",
                    all.trim_end()
                )));
            };
            dims.push(size);
            self.rest = rest;
            // Python 2 wrote long numbers with an L.
            self.takes("L");
            if !self.takes(",") {
                self.want(")")?;
                break;
            }
        }
        Ok(dims)
    }
}

/// What NumPy calls a dtype.
fn dtype_of(descr: &str) -> Result<(DType, bool)> {
    let (swapped, kind) = match descr.strip_prefix('>') {
        Some(kind) => (true, kind),
        None => (false, descr.trim_start_matches(['<', '|', '='])),
    };
    let dtype = match kind {
        "b1" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "c8" => DType::C64,
        "c16" => DType::C128,
        // NumPy has no name for it: arrays of `ml_dtypes.bfloat16` are written as two bytes of anything.
        "V2" => DType::BF16,
        _ => {
            return Err(bad(format!("has numbers of NumPy's dtype `{descr}`, which is not known here"))
                .help("convert the array in NumPy, as in `x.astype(\"float32\")`"));
        }
    };
    Ok((dtype, swapped))
}

fn descr_of(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "|b1",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 | DType::Key => "<u8",
        DType::F16 => "<f2",
        DType::BF16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::C64 => "<c8",
        DType::C128 => "<c16",
    }
}

/// Writes one array: header and numbers.
pub(super) fn write(out: &mut impl Write, array: &Array) -> Result<()> {
    let dims: String = array.known_dims()?.iter().map(|d| format!("{d}, ")).collect();
    // One size has a comma behind it in Python, several have it between them.
    let dims = if array.rank() == 1 { dims.trim_end() } else { dims.trim_end_matches(", ") };
    let mut text =
        format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({dims}), }}", descr_of(array.ty()?.dtype()));
    // Numbers begin at a multiple of 64 bytes; before the text are ten, and behind it a new line.
    let pad = 63 - (10 + text.len()) % 64;
    text.extend(std::iter::repeat_n(' ', pad));
    text.push('\n');
    // Sixteen bits hold the length: a shape has far fewer axes than would fill them.
    let length = u16::try_from(text.len()).map_err(|_| bad("an array of too many axes"))?;
    let data = bytes::of_array(array)?;
    let parts: [&[u8]; 5] = [MAGIC, &[1, 0], &length.to_le_bytes(), text.as_bytes(), &data];
    parts.iter().try_for_each(|p| out.write_all(p)).map_err(|e| bad(format!("cannot be written: {e}")))
}

/// Writes the only array of a tree.
pub(super) fn write_only(out: &mut impl Write, arrays: &[(String, Array)]) -> Result<()> {
    match arrays {
        [(_, array)] => write(out, array),
        _ => Err(bad(format!("a `.npy` holds one array, and the tree has {}", arrays.len()))
            .help("use `.npz` or `.safetensors`")),
    }
}

/// A file with one array. Its name is whatever is asked for, since it has none.
pub(super) struct Npy<'a> {
    header: Header,
    data: &'a [u8],
}

impl<'a> Npy<'a> {
    pub(super) fn open(mut bytes: &'a [u8]) -> Result<Npy<'a>> {
        if super::looks_like(bytes) != Some(".npy") {
            return Err(super::not_a(".npy", bytes, &""));
        }
        Ok(Npy { header: Header::read(&mut bytes)?, data: bytes })
    }
}

impl Source for Npy<'_> {
    fn names(&self) -> Vec<String> {
        vec![ALONE.to_string()]
    }

    fn ty(&mut self, name: &str) -> Result<Option<Type>> {
        if name == ALONE { self.header.ty().map(Some) } else { Ok(None) }
    }

    fn array(&mut self, _: &str) -> Result<Array> {
        self.header.array(&mut self.data.take(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Header> {
        Entries { rest: text }.header()
    }

    #[test]
    fn headers_are_read_as_numpy_writes_them() {
        let h = read("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n").unwrap();
        assert_eq!(h, Header { dtype: DType::F32, dims: vec![3, 4], columns: false, swapped: false });
        let h = read("{\"shape\": (5L,), 'fortran_order': True, 'descr': '>c16'}").unwrap();
        assert_eq!(h, Header { dtype: DType::C128, dims: vec![5], columns: true, swapped: true });
        assert_eq!(read("{'descr': '|b1', 'fortran_order': False, 'shape': ()}").unwrap().dims, [0; 0]);
    }

    #[test]
    fn other_headers_are_refused() {
        let cases = [
            "",
            "{",
            "{'descr'",
            "{'descr': '<f4', 'shape': (3,)}",
            "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        ];
        for text in cases {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&format!("{{'shape': {}", "(".repeat(60_000))).is_err());
    }
}
