//! Memory that C can be given: numbers of one dtype, aligned as its vector instructions like it.

use gradus::DType;

/// As wide as the widest vector and a cache line.
const ALIGNMENT: usize = 64;

/// Aligned numbers.
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
    dtype: DType,
}

fn width(dtype: DType) -> usize {
    if dtype == DType::F32 { 4 } else { 8 }
}

impl Buffer {
    /// Zeros.
    pub fn zeros(len: usize, dtype: DType) -> Buffer {
        let bytes = vec![0u8; len * width(dtype) + ALIGNMENT];
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Buffer { bytes, start, len, dtype }
    }

    /// These numbers.
    pub fn of(values: &[f64], dtype: DType) -> Buffer {
        let mut buffer = Buffer::zeros(values.len(), dtype);
        let cells = buffer.bytes[buffer.start..].chunks_exact_mut(width(dtype));
        for (cell, value) in cells.zip(values) {
            match dtype {
                DType::F32 => cell.copy_from_slice(&(*value as f32).to_ne_bytes()),
                DType::I64 => cell.copy_from_slice(&(*value as i64).to_ne_bytes()),
                _ => cell.copy_from_slice(&value.to_ne_bytes()),
            }
        }
        buffer
    }

    /// The numbers as `f64`.
    pub fn values(&self) -> Vec<f64> {
        let cells = self.bytes[self.start..].chunks_exact(width(self.dtype)).take(self.len);
        cells
            .map(|cell| match (<[u8; 4]>::try_from(cell), <[u8; 8]>::try_from(cell)) {
                (Ok(narrow), _) => f64::from(f32::from_ne_bytes(narrow)),
                (_, Ok(wide)) => f64::from_ne_bytes(wide),
                _ => f64::NAN,
            })
            .collect()
    }

    /// Where the numbers begin.
    pub fn pointer(&mut self) -> *mut u8 {
        self.bytes[self.start..].as_mut_ptr()
    }
}
