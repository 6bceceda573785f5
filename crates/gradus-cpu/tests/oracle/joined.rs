//! Wholes of parts: what is concatenated, padded or moved as strides cannot say is made in its place, in every tier, against the interpreter.

use super::*;

/// Numbers that all differ.
fn counted(shape: &[usize]) -> Array {
    let n: usize = shape.iter().product();
    Array::from_vec((0..n).map(|i| i as f64 * 0.37 - 3.0).collect::<Vec<f64>>(), [n]).reshape(shape.to_vec())
}

#[test]
fn parts_are_made_in_their_windows() {
    let inputs = [counted(&[20, 7]), counted(&[20, 5]), counted(&[3, 20])];
    let p = traced(&inputs, |x| {
        let (a, b, c) = (x[0].exp(), &x[1] * 2.0, &x[2] + 1.0);
        let row = |x: &Array| x.expand_dims(0);
        vec![
            // Windows at odd offsets, along the last axis and the first.
            Array::concatenate([&a.sin(), &b, &a.cos()], 1),
            Array::concatenate([&c, &x[0].t().atan(), &x[1].t()], 0),
            // Parts with their axes in another order, or several of them as one.
            Array::concatenate([x[0].square().t().flatten(), x[1].square().flatten()], 0),
            Array::concatenate([(&x[0] - 1.0).reshape([4, 5, 7]).transpose([2, 0, 1]).reshape([7, 20]), c.exp()], 0),
            // Parts of parts.
            Array::concatenate([Array::concatenate([x[0].abs(), x[1].abs()], 1), counted(&[3, 12])], 0),
            Array::stack([&Array::stack([x[0].tanh(), x[0].atan()], 1), &Array::stack([&x[0], &x[0]], 1)], 0),
            // Numbers among them, some side by side.
            Array::concatenate(
                [row(&Array::zeros::<f64>([20])), row(&Array::zeros::<f64>([20])), c.sqrt(), Array::full([2, 20], 4.0)],
                0,
            ),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn one_value_in_two_roles() {
    let inputs = [counted(&[6, 40]), counted(&[40])];
    let p = traced(&inputs, |x| {
        let (a, b) = (x[0].exp(), x[1].atan());
        let twice = Array::concatenate([&b, &b], 0);
        vec![
            // With itself, and read besides.
            twice.clone(),
            Array::concatenate([a.clone(), a.clone(), &a * 2.0], 0),
            a.sum_axes(1),
            // The whole is read, too, and is a part itself.
            Array::concatenate([&twice, &twice.flip(0)], 0),
            twice.sum(),
            // The value that pads is of what is padded.
            x[1].square().pad(&[(2, 3)], x[1].square().index(5)),
            // A part of a part, backwards.
            Array::concatenate([x[1].cos().flip(0), x[1].sin().index(3..)], 0),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn padding_is_written_around_what_is_padded() {
    let inputs = [counted(&[9, 11]), counted(&[])];
    let p = traced(&inputs, |x| {
        let a = x[0].exp();
        vec![
            a.pad(&[(1, 2), (3, 0)], 0.0),
            x[0].pad(&[(0, 0), (5, 7)], &x[1]),
            (&x[0] * 3.0).t().pad(&[(2, 2), (1, 1)], -0.0),
            // Cut off, and with gaps.
            x[0].sin().pad(&[(-1, 2), (3, -4)], 1.0),
            x[0].cos().pad_interior(&[(1, 1, 2), (0, 3, 1)], 7.0),
            // A part of a whole, and of one number.
            Array::concatenate([x[0].tan().pad(&[(1, 1), (0, 2)], 9.0), counted(&[2, 13])], 0),
            Array::full([5, 2], 2.0).pad(&[(1, 1), (1, 1)], 0.0),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn results_in_another_order() {
    let inputs = [counted(&[26, 60, 3]), counted(&[200, 70]), counted(&[40, 5, 2])];
    let p = traced(&inputs, |x| {
        let moved = x[0].atan().transpose([1, 2, 0]);
        vec![
            moved.reshape([180, 26]),
            x[0].exp().transpose([2, 1, 0]),
            // Copies of arguments go in tiles, whole ones and what is left.
            x[1].t(),
            x[1].reshape([2, 100, 70]).transpose([0, 2, 1]),
            x[1].flip(0).t(),
            // Copies that whoever makes their operand can spare, as a result and as a part.
            (&x[2] + 1.0).transpose([0, 2, 1]).reshape([400]),
            Array::concatenate([(&x[2] * 3.0).transpose([0, 2, 1]).flatten(), x[2].index((.., 0, 0)).atan()], 0),
            (&x[2] - 2.0).transpose([1, 0, 2]).reshape([10, 40]).t(),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn nothing_among_the_parts() {
    let inputs = [counted(&[0, 4]), counted(&[5, 4])];
    let p = traced(&inputs, |x| {
        vec![
            Array::concatenate([x[0].exp(), x[1].exp(), x[0].atan()], 0),
            Array::concatenate([x[0].atan(), x[0].exp()], 0),
            Array::concatenate([x[1].index((.., ..0)), x[1].sin()], 1),
            x[0].cos().pad(&[(2, 3), (1, 0)], 5.0),
            Array::concatenate([Array::zeros::<f64>([0, 4]), x[1].tanh(), Array::zeros::<f64>([0, 4])], 0),
        ]
    });
    check(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn wholes_of_every_dtype() {
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::Key) {
        let inputs = [counted(&[8, 6]).cast(dtype), counted(&[3, 40]).cast(dtype)];
        let p = traced(&inputs, |x| {
            let chosen = |x: &Array, y: &Array| x.ne(y).select(x, y);
            let (a, b) = (chosen(&x[0], &x[0].flip(0)), chosen(&x[1], &x[1].flip(1)));
            vec![
                Array::concatenate([&a, &x[0], &a.flip(1)], 1),
                Array::concatenate([b.t(), chosen(&x[1], &b).t()], 1),
                chosen(&x[1], &x[1].flip(0)).t().flatten(),
                Array::concatenate([chosen(&x[0], &a).t().flatten(), x[1].flatten()], 0),
                b.pad(&[(1, 0), (2, 1)], Array::zeros_like(&x[1].index((0, 0)))),
            ]
        });
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn wholes_of_symbolic_sizes() {
    let text = "fn parts(x0: f64[N,3], x1: f64[M,3]) -> (f64[N + M,3], f64[3*N + 3*M], f64[N + 3,5]) {\n  \
        x2: f64[N,3] = exp x0\n  x3: f64[M,3] = neg x1\n  x4: f64[N + M,3] = concatenate{axis=0} x2 x3\n  \
        x5: f64[3,N] = transpose{axes=[1,0]} x2\n  x6: f64[3*N] = reshape{shape=[3*N]} x5\n  \
        x7: f64[M,3] = mul x1 x1\n  x8: f64[3*M] = reshape{shape=[3*M]} x7\n  \
        x9: f64[3*N + 3*M] = concatenate{axis=0} x6 x8\n  x10: f64[N,3] = sin x0\n  \
        x11: f64[N + 3,5] = pad{low=[1,2], high=[2,0], interior=[0,0]} x10 0.5:f64[]\n  return x4, x9, x11\n}";
    let p: Program = text.parse().unwrap();
    let sizes = [(1, 1), (5, 2), (40, 33), (7, 0), (0, 9)];
    let inputs: Vec<Vec<Array>> = sizes.iter().map(|(n, m)| vec![counted(&[*n, 3]), counted(&[*m, 3])]).collect();
    check_sizes(&p, &inputs, None, &|| p.to_string());
}

#[test]
fn carries_of_parts() {
    let text = "fn carried(x0: f64[4,6], x1: f64[5,2,6]) -> (f64[4,6]) {\n  x2: f64[4,6] = scan{body=fn step(x0: f64[4,6], x1: f64[2,6]) -> (f64[4,6]) {\n    \
        x2: f64[2,6] = slice{start=[2,0], limit=[4,6], step=[1,1]} x0\n    x3: f64[2,6] = mul x2 x1\n    \
        x4: f64[2,6] = slice{start=[0,0], limit=[2,6], step=[1,1]} x0\n    x5: f64[2,6] = add x4 x3\n    \
        x6: f64[4,6] = concatenate{axis=0} x3 x5\n    return x6\n  }, consts=0, carries=1, length=5, reverse=false} x0 x1\n  return x2\n}";
    let p: Program = text.parse().unwrap();
    let inputs = [counted(&[4, 6]), counted(&[5, 2, 6])];
    check(&p, &inputs, None, &|| p.to_string());
}

/// Real and imaginary parts are turned by nests of their own, in memory that one has after the other.
#[test]
fn two_nests_turn_the_same_array() {
    let text = "fn f(x0: c128[N,M], x1: c128[M,N]) -> c128[N,M] {\n  \
         x2: c128[N,M] = mul x0 (2.0,0.0):c128[N,M]\n  \
         x3: c128[M,N] = transpose{axes=[1,0]} x2\n  \
         x4: c128[M,N] = mul x1 x3\n  \
         x5: c128[N,M] = transpose{axes=[1,0]} x4\n  \
         return x5\n}";
    let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let of = |n: usize, m: usize| {
        let complex = |shape: &[usize]| counted(shape).cast(DType::C128);
        vec![complex(&[n, m]), complex(&[m, n])]
    };
    check_sizes(&p, &[of(8, 64), of(64, 8), of(1, 9), of(40, 40)], None, &|| text.to_string());
}
