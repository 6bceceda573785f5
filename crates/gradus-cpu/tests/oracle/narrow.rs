//! Reductions with a few kept elements behind what is reduced (channels, coordinates): of every length around those that are written out, joined with what is around them.

use super::*;

/// Passes before the lowering may give a sum of floats another order.
const ORDER: Option<f64> = Some(1e-9);

/// Numbers whose sums round, with both zeros among them.
fn rounding(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    let number = |i: usize| match i % 23 {
        7 => 0.0,
        11 => -0.0,
        _ => ((i * 61 % 97) as f64 - 48.0) * 1.1_f64.powi((i * 13 % 41) as i32 - 20),
    };
    Array::from_vec((0..n).map(number).collect::<Vec<f64>>(), shape.to_vec())
}

/// Whole numbers, whose sums and products do not round.
fn whole(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    Array::from_vec((0..n).map(|i| (i * 7 % 5) as f64 - 2.0).collect::<Vec<f64>>(), shape.to_vec())
}

#[test]
fn runs_of_every_length_with_few_behind() {
    for k in [1, 2, 3, 4, 5, 7, 15, 16, 17, 31, 32, 33, 40, 63, 64, 65] {
        for c in [2, 3, 5, 8, 16, 17] {
            let inputs = [rounding(&[9, k, c]), rounding(&[9, c])];
            let p = traced(&inputs, |x| {
                let y = (&x[0] * 1.5 + x[1].expand_dims(1)).atan();
                vec![
                    x[0].sum_axes(1),
                    y.sum_axes(1) + &x[1],
                    y.max_axes(1),
                    // Zeros of both signs, and the quotients of zeros.
                    (&x[0] * 0.0).min_axes(1),
                    (&x[0] / &x[0]).max_axes(1),
                    (&y * &y).mean_axes(1).sqrt(),
                    x[0].cast(DType::F32).sum_axes(1),
                    x[0].argmax_axis(1),
                ]
            });
            check(&p, &inputs, None, &|| format!("{k} of {c}"));
        }
    }
}

#[test]
fn few_behind_of_every_dtype() {
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Key) {
        let inputs = [whole(&[12, 5, 6]).cast(dtype), whole(&[7, 3, 33, 4]).cast(dtype)];
        let p = traced(&inputs, |x| match dtype {
            DType::Bool => vec![x[0].any_axes(1), x[1].all_axes([1, 2])],
            DType::C64 | DType::C128 => vec![x[0].sum_axes(1), x[1].sum_axes([1, 2]), x[1].prod_axes(1)],
            _ => vec![
                x[0].sum_axes(1),
                x[0].max_axes(1),
                x[1].min_axes([1, 2]),
                x[1].sum_axes([0, 2]),
                x[0].prod_axes(1),
                x[1].argmin_axis(2),
            ],
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

/// Pooling by reshape: two axes that are apart, channels last. And what a convolution's bias needs.
#[test]
fn pools_with_channels_last() {
    for c in [1, 2, 3, 4, 8, 16, 20] {
        let inputs = [rounding(&[2, 8, 12, c]), rounding(&[c])];
        let p = traced(&inputs, |x| {
            let windows = (&x[0] + &x[1]).reshape([2, 2, 4, 3, 4, c]);
            let spread = windows.mean_axes([2, 4]);
            vec![
                &spread * 2.0,
                windows.max_axes([2, 4]).square(),
                (&windows - spread.expand_dims(2).expand_dims(4)).square().sum_axes([2, 4]),
                x[0].sum_axes([0, 1, 2]),
                x[0].transpose([0, 3, 1, 2]).sum_axes([2]),
            ]
        });
        check(&p, &inputs, ORDER, &|| p.to_string());
    }
}

/// Around a loop, with the sum carried on, and turned, cut and repeated operands.
#[test]
fn few_behind_in_loops_and_views() {
    let inputs = [rounding(&[6, 10, 5]), rounding(&[10, 5])];
    let p = traced(&inputs, |x| {
        let turned = x[0].transpose([2, 0, 1]).sum_axes(1);
        let cut = x[0].index((.., 1..9, 1..4)).sum_axes(1);
        let flipped = (x[0].flip(1) * &x[0]).sum_axes(1);
        let repeated = x[1].expand_dims(0).broadcast_to([6, 10, 5]).sum_axes(1) + x[0].sum_axes(1);
        vec![turned, cut, flipped, repeated]
    });
    check(&p, &inputs, ORDER, &|| p.to_string());
    let text = "fn carried(x0: f64[10,5], x1: f64[6,10,5]) -> (f64[10,5], f64[6,5]) {\n  \
        x2: f64[10,5], x3: f64[6,5] = scan{body=fn step(x0: f64[10,5], x1: f64[10,5]) -> (f64[10,5], f64[5]) {\n    \
        x2: f64[10,5] = add x0 x1\n    x3: f64[10,5] = tanh x2\n    x4: f64[5] = reduce_sum{axes=[0]} x3\n    return x3, x4\n  }, \
        consts=0, carries=1, length=6, reverse=false} x0 x1\n  return x2, x3\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    check(&p, &[inputs[1].clone(), inputs[0].clone()], None, &|| text.to_string());
}
