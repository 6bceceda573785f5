//! Operations on places of arrays in plain Rust.

use super::Values;

/// Rows of a width.
fn rows(x: &[f64], width: usize) -> Vec<Vec<f64>> {
    x.chunks(width).map(<[f64]>::to_vec).collect()
}

fn transposed(x: &[f64], width: usize) -> Vec<f64> {
    (0..width).flat_map(|j| x.iter().skip(j).step_by(width).copied()).collect()
}

fn sums(x: Vec<f64>) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |x: f64| {
        sum += x;
        sum
    };
    x.into_iter().map(add).collect()
}

fn sorted(mut x: Vec<f64>) -> Vec<f64> {
    x.sort_by(f64::total_cmp);
    x
}

/// The first place of the smallest.
fn least(x: &[f64]) -> f64 {
    let smallest = x.iter().copied().fold(f64::INFINITY, f64::min);
    x.iter().position(|x| *x == smallest).unwrap() as f64
}

/// What an operation has to give.
pub fn expected(name: &str, size: &[usize], v: &Values) -> Option<Values> {
    let x = &v[0];
    let width = if size.len() == 2 { size[1] } else { 1 };
    let row = |i: f64| &x[i as usize * width..][..width];
    let both = || x.iter().map(|x| x * 2.0).zip(x.iter().zip(&v[1]).map(|(x, y)| x + y));
    Some(vec![match name {
        "take" | "take_rows" => v[1].iter().flat_map(|i| row(*i)).copied().collect(),
        "scatter_add" | "scatter_add_rows" => {
            let mut y = vec![0.0; x.len()];
            for (at, row) in v[1].iter().zip(x.chunks(width)) {
                y[*at as usize * width..].iter_mut().zip(row).for_each(|(y, x)| *y += x);
            }
            y
        }
        "argmin_rows" => rows(x, width).iter().map(|r| least(r)).collect(),
        "argmax_columns" => {
            let columns = rows(&transposed(x, width), size[0]);
            columns.iter().map(|c| least(&c.iter().map(|x| -x).collect::<Vec<_>>())).collect()
        }
        "cumsum_last" => rows(x, width).into_iter().flat_map(sums).collect(),
        "cumsum_first" => {
            let columns = rows(&transposed(x, width), size[0]);
            transposed(&columns.into_iter().flat_map(sums).collect::<Vec<_>>(), size[0])
        }
        "sort" => sorted(x.clone()),
        "sort_rows" => rows(x, width).into_iter().flat_map(sorted).collect(),
        "top_k" => rows(x, width).into_iter().flat_map(|r| sorted(r).into_iter().rev().take(10)).collect(),
        "stack" => both().flat_map(|(a, b)| [a, b]).collect(),
        "concatenate" => {
            let (a, b): (Vec<f64>, Vec<f64>) = both().unzip();
            a.chunks(width).zip(b.chunks(width)).flat_map(|(a, b)| [a, b].concat()).collect()
        }
        "pad" => {
            let row = |r: &[f64]| [vec![0.0], r.iter().map(|x| x * 2.0).collect(), vec![0.0]].concat();
            let edge = vec![0.0; width + 2];
            [edge.clone(), x.chunks(width).flat_map(row).collect(), edge].concat()
        }
        "transpose" | "transpose_rows" => transposed(x, width),
        _ => return None,
    }])
}
