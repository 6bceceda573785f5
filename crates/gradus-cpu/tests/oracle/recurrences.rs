//! Scans whose step treats all elements alike: every size around the limits, constants that are seen in other ways, sequences of numbers and of arrays, forward and from
//! the end, with symbolic sizes and numbers of steps.

use super::*;

/// A value and its momentum, a number for all elements, a turned constant, an element of a sequence that is handed on as it is.
fn text(dtype: &str, shape: &str, steps: &str, back: bool) -> String {
    let (a, s, t) = (format!("{dtype}[{shape}]"), format!("{dtype}[]"), format!("{dtype}[{steps},{shape}]"));
    let (axis, n) = (shape.split(',').count() - 1, shape.split(',').next_back().unwrap_or(shape));
    let flip = format!("reverse{{axes=[{axis}]}}");
    format!(
        "fn f(x0: {a}, x1: {a}, x2: {dtype}[{steps}], x3: {t}, x4: {a}, x5: {dtype}[{n}], x6: {s}) -> ({a}, {a}, {a}, {t}, {t}, {t}) {{
  x7: {a}, x8: {a}, x9: {a}, x10: {t}, x11: {t}, x12: {t} = scan{{body=fn step(x0: {a}, x1: {dtype}[{n}], x2: {s}, x3: {a}, x4: {a}, x5: {a}, x6: {s}, x7: {a}) -> ({a}, {a}, {a}, {a}, {a}, {a}) {{
    x8: {a} = {flip} x0
    x9: {a} = broadcast{{shape=[{shape}], axes=[{axis}]}} x1
    x10: {s} = mul x6 x2
    x11: {a} = broadcast{{shape=[{shape}], axes=[]}} x10
    x12: {a} = mul x3 x11
    x13: {a} = add x12 x8
    x14: {a} = sub x4 x9
    x15: {a} = max x14 x7
    x16: {a} = min x13 x15
    x17: {a} = neg x5
    x18: {a} = add x17 2.0:{a}
    return x16, x15, x7, x3, x18, x9
  }}, consts=3, carries=3, length={steps}, reverse={back}}} x4 x5 x6 x0 x1 1.0:{a} x2 x3
  return x7, x8, x9, x10, x11, x12
}}
"
    )
}

fn parsed(text: &str) -> Program {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn inputs(dtype: DType, shape: &[usize], steps: usize) -> Vec<Array> {
    let all = [&[steps][..], shape].concat();
    let number = |shape: &[usize], from: usize| {
        let count: usize = shape.iter().product();
        let numbers = (0..count).map(|i| match (i * 7 + from) % 23 {
            0 => f64::NAN,
            1 => -0.0,
            2 => f64::INFINITY,
            k => (k * 5 % 17) as f64 - 8.0,
        });
        Array::from_vec(numbers.collect::<Vec<f64>>(), shape.to_vec()).cast(dtype)
    };
    let n = shape.last().copied().unwrap_or(1);
    vec![
        number(shape, 3),
        number(shape, 5),
        number(&[steps], 7),
        number(&all, 11),
        number(shape, 13),
        number(&[n], 17),
        number(&[], 19),
    ]
}

#[test]
fn steps_inside_elements_outside() {
    let shapes: [&[usize]; 16] = [
        &[4],
        &[5],
        &[7],
        &[8],
        &[9],
        &[16],
        &[17],
        &[31],
        &[33],
        &[64],
        &[100],
        &[1000],
        &[3, 5],
        &[20, 3],
        &[3, 40],
        &[2, 3, 9],
    ];
    for dtype in [DType::F64, DType::F32, DType::I32] {
        for shape in shapes {
            for (steps, back) in [(1, false), (2, true), (6, false), (6, true)] {
                let dims = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                let name = dtype.to_string();
                let mut text = text(&name, &dims, &steps.to_string(), back);
                if dtype == DType::I32 {
                    text = text.replace("2.0:", "2:").replace("1.0:", "1:");
                }
                let p = parsed(&text);
                check(&p, &inputs(dtype, shape, steps), None, &|| p.to_string());
            }
        }
    }
}

#[test]
fn recurrences_of_symbolic_sizes() {
    for back in [false, true] {
        let p = parsed(&text("f64", "N", "T", back));
        let sizes = [(1, 1), (5, 2), (8, 3), (33, 4), (1000, 2), (7, 0), (0, 3)];
        let inputs: Vec<Vec<Array>> = sizes.iter().map(|(n, t)| inputs(DType::F64, &[*n], *t)).collect();
        check_sizes(&p, &inputs, None, &|| p.to_string());
        let p = parsed(&text("f32", "M,N", "3", back));
        let sizes = [(1, 1), (5, 2), (8, 3), (2, 33), (40, 9), (3, 0), (0, 3)];
        let inputs: Vec<Vec<Array>> = sizes.iter().map(|(m, n)| self::inputs(DType::F32, &[*m, *n], 3)).collect();
        check_sizes(&p, &inputs, None, &|| p.to_string());
    }
}

/// Many elements, which threads share.
#[test]
fn long_recurrences() {
    let p = parsed(&text("f64", "40003", "5", true));
    check(&p, &inputs(DType::F64, &[40003], 5), None, &|| p.to_string());
}
