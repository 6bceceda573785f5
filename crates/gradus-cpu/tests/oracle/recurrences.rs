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

/// Steps that sum over all elements: a stacked sum, one that is added to a carry, and one that is both; with and without an array that goes around beside them.
fn sums(dtype: &str, shape: &str, steps: &str, back: bool) -> String {
    let (a, s, t) = (format!("{dtype}[{shape}]"), format!("{dtype}[]"), format!("{dtype}[{steps}]"));
    let axes = (0..shape.split(',').count()).map(|a| a.to_string()).collect::<Vec<_>>().join(",");
    format!(
        "fn f(x0: {a}, x1: {t}, x2: {a}, x3: {s}, x4: {s}) -> ({a}, {s}, {s}, {t}, {t}, {dtype}[{steps},{shape}]) {{
  x5: {a}, x6: {s}, x7: {s}, x8: {t}, x9: {t}, x10: {dtype}[{steps},{shape}] = scan{{body=fn step(x0: {a}, x1: {a}, x2: {s}, x3: {s}, x4: {s}) -> ({a}, {s}, {s}, {s}, {s}, {a}) {{
    x5: {a} = broadcast{{shape=[{shape}], axes=[]}} x4
    x6: {a} = mul x1 x5
    x7: {a} = add x6 x0
    x8: {s} = reduce_sum{{axes=[{axes}]}} x7
    x9: {a} = mul x6 x0
    x10: {s} = reduce_sum{{axes=[{axes}]}} x9
    x11: {s} = add x2 x8
    x12: {s} = add x10 x3
    x13: {a} = sub x0 x7
    return x13, x11, x12, x8, x10, x6
  }}, consts=1, carries=3, length={steps}, reverse={back}}} x0 x2 x3 x4 x1
  return x5, x6, x7, x8, x9, x10
}}
"
    )
}

fn inputs_of_sums(dtype: DType, shape: &[usize], steps: usize) -> Vec<Array> {
    let number = |shape: &[usize], from: usize| {
        let count: usize = shape.iter().product();
        let numbers = (0..count).map(|i| ((i * 7919 + from * 31) % 1009) as f64 / 64.0 - 8.0);
        Array::from_vec(numbers.collect::<Vec<f64>>(), shape.to_vec()).cast(dtype)
    };
    vec![number(shape, 1), number(&[steps], 2), number(shape, 3), number(&[], 4), number(&[], 5)]
}

#[test]
fn steps_that_sum_over_all_elements() {
    let shapes: [&[usize]; 11] =
        [&[5], &[100], &[128], &[129], &[160], &[1000], &[1024], &[20, 30], &[65536], &[65537], &[2, 65552]];
    for dtype in [DType::F64, DType::F32, DType::I32, DType::BF16] {
        for shape in shapes {
            for (steps, back) in [(1, false), (3, false), (4, true)] {
                // What is evaluated step by step takes its time.
                if shape.iter().product::<usize>() > 2000 && (dtype, steps) != (DType::F64, 3) {
                    continue;
                }
                let dims = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                let p = parsed(&sums(&dtype.to_string(), &dims, &steps.to_string(), back));
                check(&p, &inputs_of_sums(dtype, shape, steps), None, &|| p.to_string());
            }
        }
    }
}

#[test]
fn steps_that_sum_over_a_symbolic_number_of_elements() {
    for back in [false, true] {
        let p = parsed(&sums("f64", "N", "T", back));
        let sizes = [(1, 1), (5, 2), (8, 3), (33, 4), (64, 1), (1000, 2), (65536, 2), (65569, 3), (7, 0), (0, 3)];
        let inputs: Vec<Vec<Array>> = sizes.iter().map(|(n, t)| inputs_of_sums(DType::F64, &[*n], *t)).collect();
        check_sizes(&p, &inputs, None, &|| p.to_string());
        let p = parsed(&sums("f32", "M,N", "3", back));
        let sizes = [(1, 1), (5, 2), (2, 33), (40, 9), (300, 301), (3, 0), (0, 3)];
        let inputs: Vec<Vec<Array>> = sizes.iter().map(|(m, n)| inputs_of_sums(DType::F32, &[*m, *n], 3)).collect();
        check_sizes(&p, &inputs, None, &|| p.to_string());
    }
}

/// A number that is seen in every place, in another order too.
#[test]
fn steps_that_move_one_number() {
    let text = "fn f(x0: f32[9]) -> (f32[9], f32[2,9]) {
  x1: f32[9], x2: f32[2,9] = scan{body=fn step(x0: f32[9], x1: f32[9]) -> (f32[9], f32[9]) {
    x2: f32[9] = reverse{axes=[0]} x0
    x3: f32[9] = add x1 x2
    x4: f32[9] = reverse{axes=[0]} 2.5:f32[9]
    x5: f32[9] = mul x3 x4
    return x3, x5
  }, consts=1, carries=1, length=2, reverse=false} 1.5:f32[9] x0
  return x1, x2
}
";
    let p = parsed(text);
    check(&p, &inputs(DType::F32, &[9], 2)[..1], None, &|| p.to_string());
}
