//! Arrays as text, in the manner of NumPy: aligned columns, long axes shortened in the middle.

use std::fmt;

use super::{Array, Concrete, Form};
use crate::types::Scalar;

/// Arrays with more elements than this are shortened.
const SHORTEN: usize = 1000;

impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form() {
            Form::Concrete(c) => write_array(f, c),
            Form::Remote(_) => match self.on_host() {
                Ok(c) => write_array(f, c),
                Err(e) => write!(f, "{e}"),
            },
            Form::Traced(t) => write!(f, "{t:?}"),
            Form::Spec(t) => write!(f, "{t}"),
            Form::Failed(e) => write!(f, "{e}"),
        }
    }
}

fn write_array(f: &mut fmt::Formatter<'_>, c: &Concrete) -> fmt::Result {
    if c.dims().is_empty() {
        return match c.scalar_at(0) {
            Ok(s) => padded(f, &text(s, f.precision())),
            Err(_) => Err(fmt::Error),
        };
    }
    if c.count() == 0 {
        return f.write_str("[]");
    }
    let short = c.count() > SHORTEN;
    let mut cells = Vec::new();
    collect(c, 0, 0, short, f.precision(), &mut cells);
    let width = cells.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let mut cells = cells.into_iter();
    write_axis(f, c, 0, short, width, &mut cells)
}

/// A number in the width that was asked for. `Formatter::pad` would cut it to the precision.
fn padded(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let missing = f.width().unwrap_or(0).saturating_sub(text.chars().count());
    let before = match f.align() {
        Some(fmt::Alignment::Left) => 0,
        Some(fmt::Alignment::Center) => missing / 2,
        Some(fmt::Alignment::Right) | None => missing,
    };
    let fill = f.fill().to_string();
    f.write_str(&fill.repeat(before))?;
    f.write_str(text)?;
    f.write_str(&fill.repeat(missing - before))
}

/// The positions of an axis that are shown; `None` marks the gap.
///
/// Three at each end of a shortened axis; fewer where there are many axes, since what is shown multiplies.
fn shown(c: &Concrete, axis: usize, short: bool) -> impl Iterator<Item = Option<usize>> {
    let (dim, rank) = (c.dims()[axis], c.dims().len());
    let (head, tail) = match rank {
        0..=4 => (3, 3),
        5..=6 => (2, 2),
        7..=12 => (1, 1),
        _ if axis + 12 > rank => (1, 1),
        _ => (1, 0),
    };
    let cut = short && dim > head + tail;
    let (head, tail) = if cut { (head, dim - tail) } else { (dim, dim) };
    (0..head).map(Some).chain(cut.then_some(None)).chain((tail..dim).map(Some))
}

fn collect(c: &Concrete, axis: usize, at: usize, short: bool, precision: Option<usize>, cells: &mut Vec<String>) {
    for i in shown(c, axis, short).flatten() {
        let at = at * c.dims()[axis] + i;
        if axis + 1 < c.dims().len() {
            collect(c, axis + 1, at, short, precision, cells);
        } else if let Ok(s) = c.scalar_at(at) {
            cells.push(text(s, precision));
        }
    }
}

fn write_axis(
    f: &mut fmt::Formatter<'_>,
    c: &Concrete,
    axis: usize,
    short: bool,
    width: usize,
    cells: &mut impl Iterator<Item = String>,
) -> fmt::Result {
    let rank = c.dims().len();
    f.write_str("[")?;
    for (n, i) in shown(c, axis, short).enumerate() {
        if axis + 1 < rank {
            if n > 0 {
                // A blank line between matrices, as NumPy has it.
                write!(f, "{}{}", "\n".repeat(rank - axis - 1), " ".repeat(axis + 1))?;
            }
            match i {
                Some(_) => write_axis(f, c, axis + 1, short, width, cells)?,
                None => f.write_str("...")?,
            }
        } else {
            f.write_str(if n > 0 { " " } else { "" })?;
            match i {
                Some(_) => write!(f, "{:>width$}", cells.next().unwrap_or_default())?,
                None => f.write_str("...")?,
            }
        }
    }
    f.write_str("]")
}

fn float(v: f64, shortest: String, precision: Option<usize>) -> String {
    match precision {
        Some(p) if v.is_finite() => format!("{v:.p$}"),
        _ => shortest,
    }
}

fn text(s: Scalar, precision: Option<usize>) -> String {
    match s {
        Scalar::C64(v) => complex(Scalar::F32(v.re), Scalar::F32(v.im), precision),
        Scalar::C128(v) => complex(Scalar::F64(v.re), Scalar::F64(v.im), precision),
        s if s.dtype().is_float() && s.to_f64().is_nan() => "nan".to_string(),
        s if s.dtype().is_float() => float(s.to_f64(), s.to_string(), precision),
        s => s.to_string(),
    }
}

fn complex(re: Scalar, im: Scalar, precision: Option<usize>) -> String {
    let (re, im) = (text(re, precision), text(im, precision));
    let sign = if im.starts_with('-') { "" } else { "+" };
    format!("{re}{sign}{im}j")
}

#[cfg(test)]
mod tests {
    use crate::Array;

    #[test]
    fn looks_like_numpy() {
        assert_eq!(Array::from(1.5_f64).to_string(), "1.5");
        assert_eq!(Array::from([[1.0_f64, 20.0], [3.0, 4.0]]).to_string(), "[[ 1.0 20.0]\n [ 3.0  4.0]]");
        assert_eq!(Array::from([[[1_i32], [2]], [[3], [4]]]).to_string(), "[[[1]\n  [2]]\n\n [[3]\n  [4]]]");
        assert_eq!(Array::from(Vec::<f32>::new()).to_string(), "[]");
        assert_eq!(Array::from([true, false]).to_string(), "[ true false]");
        assert_eq!(format!("{:.2}", Array::from([1.0_f32 / 3.0, 2.0])), "[0.33 2.00]");
    }

    #[test]
    fn long_arrays_are_shortened() {
        let text = Array::from((0..2000).collect::<Vec<i64>>()).to_string();
        assert_eq!(text, "[   0    1    2 ... 1997 1998 1999]");
        // What is shown does not grow with the sizes or the number of axes.
        assert_eq!(Array::zeros::<f64>([1usize << 40, 0]).to_string(), "[]");
        assert!(Array::zeros::<i8>([9usize; 19]).to_string().len() < 100_000);
    }
}
