//! Half floats in kernels: every number of them through functions and conversions, pairs of special ones, and everything that goes along axes, in every tier.

use gradus_core::primitives::BUILT_IN;
use gradus_core::primitives::convert::{Bitcast, Convert};
use gradus_core::primitives::cumulative::{CumMax, CumMin, CumProd, CumSum};
use gradus_core::primitives::elementwise::{Compare, Direction, IntegerPow};
use gradus_core::primitives::reduce::{ArgMax, ArgMin, ReduceMax, ReduceMin, ReduceProd, ReduceSum};
use gradus_core::types::{bf16, f16};

use super::*;

const HALVES: [DType; 2] = [DType::F16, DType::BF16];

/// Every generator: both kinds of vectors, none of our own, and LLVM.
pub fn everywhere(p: &Program, inputs: &[Array], context: &dyn Fn() -> String) -> Vec<Vec<Array>> {
    let want = interpret(p, inputs).unwrap_or_else(|e| panic!("{e}\n{}", context()));
    let ways = [
        (Tier::Embedded, Vectors::Best),
        (Tier::Embedded, Vectors::Avx2),
        (Tier::Embedded, Vectors::None),
        (Tier::Llvm, Vectors::Best),
    ];
    let mut all = vec![want.clone()];
    for (tier, vectors) in ways {
        let context = || format!("{tier:?}, {vectors:?}\n{}", context());
        let code = compiled(p, Options { tier, vectors, contract: false, ..Options::default() });
        let have = code.and_then(|code| code.run(inputs)).unwrap_or_else(|e| panic!("{e}\n{}", context()));
        assert_same(&have, &want, None, &context);
        all.push(have.to_vec());
    }
    all
}

/// How many operations of a program the interpreter runs inside of its code.
fn calls(p: &Program) -> Vec<String> {
    let ready = for_execution(p, Exactness::Exact).unwrap();
    gradus_cpu::lower::lower_with(&ready, 16, true).unwrap().module.calls
}

fn of_bits(dtype: DType, bits: Vec<u16>) -> Array {
    let n = bits.len();
    match dtype {
        DType::F16 => Array::from_vec(bits.into_iter().map(f16::from_bits).collect::<Vec<f16>>(), [n]),
        _ => Array::from_vec(bits.into_iter().map(bf16::from_bits).collect::<Vec<bf16>>(), [n]),
    }
}

fn every(dtype: DType) -> Array {
    of_bits(dtype, (0..=u16::MAX).collect())
}

/// Zeros, the smallest, around one, the largest, infinities, what is no number, and some between.
fn special(dtype: DType) -> Vec<u16> {
    let (one, infinity) = if dtype == DType::F16 { (0x3c00, 0x7c00) } else { (0x3f80, 0x7f80) };
    let least = if dtype == DType::F16 { 0x400 } else { 0x80 };
    let some: Vec<u16> = (0..20).map(|i| i * 1637 + 11).collect();
    let mut all = vec![0, 1, 2, 3, least - 1, least, least + 1, one - 1, one, one + 1, one + 0x155, infinity - 1];
    all.extend([infinity, infinity + 1, infinity + (least >> 1), 0x7fff, one / 2, 2 * one - 1]);
    all.extend(some);
    let negative: Vec<u16> = all.iter().map(|b| b | 0x8000).collect();
    all.extend(negative);
    all
}

/// Numbers in no order with what is no number where `odd` says.
fn numbers(shape: &[usize], dtype: DType, odd: bool) -> Array {
    let n: usize = shape.iter().product();
    let number = |i: usize| match i % 89 {
        13 if odd => f64::NAN,
        17 if odd => f64::NEG_INFINITY,
        29 => -0.0,
        k => ((k * 37 + i / 89) % 61) as f64 / 7.0 - 3.7,
    };
    Array::from_vec((0..n).map(number).collect::<Vec<f64>>(), [n]).reshape(shape.to_vec()).cast(dtype)
}

/// The functions of one number that take half floats, except those that only the host computes.
fn functions() -> Vec<Op> {
    let mut all = vec![Op::new(IntegerPow { exponent: 3 }), Op::new(IntegerPow { exponent: -2 })];
    for entry in BUILT_IN.iter() {
        let unary = (entry.samples)().into_iter().find(|s| {
            s.op.is_elementwise() && matches!(&s.inputs[..], [x] if x.dtype() == DType::F16) && !s.op.is::<Convert>()
        });
        all.extend(unary.map(|s| s.op).filter(|op| !op.is::<Bitcast>()));
    }
    all
}

#[test]
fn functions_of_every_half_float() {
    for dtype in HALVES {
        let x = every(dtype);
        let all = functions();
        assert!(all.len() > 30, "{}", all.len());
        for ops in all.chunks(6) {
            let inputs = [x.clone()];
            let p = traced(&inputs, |x| ops.iter().map(|op| bind(op.clone(), x)).collect());
            assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
            everywhere(&p, &inputs, &|| p.to_string());
        }
    }
}

#[test]
fn conversions_of_every_half_float() {
    let others = DType::ALL.into_iter().filter(|d| !d.is_complex() && *d != DType::Key);
    let others: Vec<DType> = others.collect();
    for dtype in HALVES {
        let inputs = [every(dtype)];
        let p = traced(&inputs, |x| {
            let mut all: Vec<Array> = others.iter().map(|d| x[0].cast(*d)).collect();
            all.push(bind(Op::new(Bitcast { dtype: DType::I16 }), x));
            all
        });
        assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
        let all = everywhere(&p, &inputs, &|| p.to_string());
        // What is no number has its bits too.
        for have in &all[1..] {
            for (have, want) in have.iter().zip(&all[0]) {
                assert!(have.is_identical(want), "{dtype} to {}", want.dtype());
            }
        }
    }
}

/// What lies halfway between two half floats and beside that, in wider types: one rounding decides.
#[test]
fn conversions_to_half_floats() {
    for dtype in HALVES {
        let floats = |far: f64| {
            let all = (0..=u16::MAX).step_by(7).flat_map(move |bits| {
                let of = |bits: u16| match dtype {
                    DType::F16 => f16::from_bits(bits).to_f64(),
                    _ => bf16::from_bits(bits).to_f64(),
                };
                let middle = (of(bits) + of(bits.wrapping_add(1))) / 2.0;
                [of(bits), middle, middle * (1.0 + far), middle * (1.0 - far)]
            });
            all.chain([f64::MAX, -f64::MAX, 1e-320, f64::NAN, -0.0]).collect::<Vec<f64>>()
        };
        let mut whole: Vec<i64> = (-300..300).chain([i64::MAX, i64::MIN, 65_519, 65_520, 65_521]).collect();
        for k in 7..63 {
            let places = [1_i64 << k, (1 << k) | (1 << (k - 7)), (1 << k) | (3 << (k - 7))];
            whole.extend(places.into_iter().flat_map(|v| [v - 1, v, v + 1, -v, 1 - v]));
        }
        let n = whole.len();
        let whole = Array::from_vec(whole, [n]);
        let (near, far) = (floats(1e-12), floats(2e-7));
        let (a, b) = (near.len(), far.len());
        let inputs = [
            Array::from_vec(near, [a]),
            Array::from_vec(far, [b]).cast(DType::F32),
            whole.clone(),
            whole.cast(DType::U64),
            whole.cast(DType::I32),
            whole.cast(DType::U32),
            whole.cast(DType::I16),
            whole.cast(DType::U8),
            whole.cast(DType::Bool),
        ];
        let p = traced(&inputs, |x| x.iter().map(|x| x.cast(dtype)).collect());
        assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
        everywhere(&p, &inputs, &|| p.to_string());
    }
}

#[test]
fn pairs_of_special_half_floats() {
    for dtype in HALVES {
        let special = special(dtype);
        let n = special.len();
        let inputs = [of_bits(dtype, special.clone()), of_bits(dtype, special)];
        let p = traced(&inputs, |x| {
            let a = x[0].reshape([n, 1]).broadcast_to([n, n]);
            let b = x[1].reshape([1, n]).broadcast_to([n, n]);
            let compare = |direction| bind(Op::new(Compare { direction }), &[a.clone(), b.clone()]);
            let mut all: Vec<Array> = Direction::ALL.iter().map(|d| compare(*d)).collect();
            all.extend([
                &a + &b,
                &a - &b,
                &a * &b,
                &a / &b,
                a.maximum(&b),
                a.minimum(&b),
                &a % &b,
                a.pow(&b),
                a.atan2(&b),
            ]);
            all.push(a.lt(&b).select(&a, &b));
            all.push(b.eq(&b).select(&a * &b + &a, -&b));
            all.push(a.clamp(-1.5, 2.0));
            // Rounded after each step.
            all.push(((&a * &b) * &a + &b) * 0.3);
            all
        });
        assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
        everywhere(&p, &inputs, &|| p.to_string());
        // What does nothing with half floats but to take them elsewhere keeps every bit.
        let inputs = [every(dtype)];
        let p = traced(&inputs, |x| {
            let square = x[0].reshape([256, 256]);
            vec![
                x[0].flip(0),
                square.t(),
                square.index((3.., ..7)).reshape([253 * 7]),
                x[0].ne(&x[0]).select(&x[0], &x[0]),
            ]
        });
        let all = everywhere(&p, &inputs, &|| p.to_string());
        all[1..].iter().for_each(|have| assert!(have.iter().zip(&all[0]).all(|(a, b)| a.is_identical(b))));
    }
}

#[test]
fn half_floats_along_axes() {
    let shapes: [&[usize]; 8] = [&[5], &[300], &[6, 300], &[300, 40], &[40, 5, 3], &[70, 523], &[3, 2], &[9, 257, 3]];
    for dtype in HALVES {
        for shape in shapes {
            for odd in [false, true] {
                let inputs = [numbers(shape, dtype, odd)];
                let p = traced(&inputs, |x| {
                    let mut all = Vec::new();
                    for axis in 0..shape.len() {
                        let axes = vec![axis];
                        let ops = [
                            Op::new(ReduceSum { axes: axes.clone() }),
                            Op::new(ReduceProd { axes: axes.clone() }),
                            Op::new(ReduceMax { axes: axes.clone() }),
                            Op::new(ReduceMin { axes }),
                            Op::new(ArgMax { axis, dtype: DType::I64 }),
                            Op::new(ArgMin { axis, dtype: DType::I32 }),
                            Op::new(CumSum { axis, reverse: false }),
                            Op::new(CumSum { axis, reverse: true }),
                            Op::new(CumProd { axis, reverse: false }),
                            Op::new(CumMax { axis, reverse: true }),
                            Op::new(CumMin { axis, reverse: false }),
                        ];
                        all.extend(ops.into_iter().map(|op| bind(op, x)));
                    }
                    all.push((x[0].exp() * &x[0]).sum());
                    all
                });
                assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
                everywhere(&p, &inputs, &|| format!("{dtype} {shape:?}"));
            }
        }
    }
}

#[test]
fn half_floats_share_loops_with_everything() {
    for dtype in HALVES {
        let at = Array::from_vec((0..120_i64).map(|i| i * 7919 % 61 - 10).collect::<Vec<i64>>(), [120]);
        let inputs =
            [numbers(&[40, 24], dtype, true), numbers(&[24], dtype, false), at, numbers(&[120, 24], dtype, false)];
        let p = traced(&inputs, |x| {
            let (a, b, at, c) = (&x[0], &x[1], &x[2], &x[3]);
            let wide = b.reshape([1, 24]).broadcast_to([40, 24]);
            let normed = a - a.max_axes(1).reshape([40, 1]).broadcast_to([40, 24]);
            let e = normed.exp();
            vec![
                (a * &wide).tanh() + 0.5,
                (a * &wide).sum_axes(0),
                &e / e.sum_axes(1).reshape([40, 1]).broadcast_to([40, 24]),
                a.t().exp() + 1.0,
                a.index((1..30, 3..20)).sqrt().flip(1),
                (a.cast(DType::F32) * 1.1_f32).cast(dtype) + a,
                (a * 2.0).take(at, 0) * c,
                a.at(at).add(c),
                a.at(at).mul(c),
                a.at(at).set(&(c * 0.5)),
                a.at(at).max(c).sum_axes(1),
                Array::concatenate(&[a * 2.0, c + 1.0], 0),
                Array::stack([&(b * 2.0), &(b + 1.0), b], -1),
                a.gt(0.5).select(a, &wide).abs(),
                Array::iota(dtype, [40, 24], 1) * a,
                b.index(..5) * b.index(3..8) + b.index(1),
                b.index(..3).sum(),
                a.mean() + b.index(2),
            ]
        });
        assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
        everywhere(&p, &inputs, &|| p.to_string());
        check(&p, &inputs, None, &|| p.to_string());
    }
}

#[test]
fn half_floats_go_around_loops() {
    for dtype in HALVES {
        for n in [1usize, 3, 16, 70] {
            let inputs = [numbers(&[n], dtype, false), numbers(&[9, n], dtype, false)];
            let elements: Vec<Array> = [&inputs[0], &inputs[0]].map(|a| Array::of_type(a.ty().unwrap().clone())).into();
            let body = trace("body", &elements, Mode::Abstract, |x| {
                let next = &x[0] * 0.75 + &x[1] * &x[1];
                let low = next.minimum(&x[0]);
                vec![next.clone(), low, next.sum().broadcast_to([n])]
            });
            let alike = trace("alike", &elements, Mode::Abstract, |x| {
                let next = (&x[0] * 0.75 + &x[1]).tanh();
                vec![next.clone(), next]
            });
            let (body, alike) = (body.unwrap(), alike.unwrap());
            let p = traced(&inputs, |x| {
                let run = |body| scan(body, &x[..1], &x[1..2], &Dim::from(9usize), false, 1, Steps::Keep).unwrap();
                run(&body).into_iter().chain(run(&alike)).collect()
            });
            assert_eq!(calls(&p), Vec::<String>::new(), "{p}");
            everywhere(&p, &inputs, &|| p.to_string());
            check(&p, &inputs, None, &|| p.to_string());
        }
    }
}

#[test]
fn half_floats_of_any_size() {
    for dtype in HALVES {
        let text = format!(
            "fn f(x0: {dtype}[N,M], x1: {dtype}[M]) -> ({dtype}[N,M], {dtype}[M], {dtype}[N], {dtype}[], i64[M], {dtype}[N,M], f32[N,M]) where N>=1 {{
  x2: {dtype}[N,M] = broadcast{{shape=[N,M], axes=[1]}} x1
  x3: {dtype}[N,M] = mul x0 x2
  x4: {dtype}[N,M] = exp x3
  x5: {dtype}[M] = reduce_sum{{axes=[0]}} x4
  x6: {dtype}[N] = reduce_max{{axes=[1]}} x3
  x7: {dtype}[] = reduce_sum{{axes=[0,1]}} x3
  x8: i64[M] = argmax{{axis=0, dtype=i64}} x3
  x9: {dtype}[N,M] = cumsum{{axis=0, reverse=false}} x3
  x10: f32[N,M] = convert{{dtype=f32}} x9
  return x4, x5, x6, x7, x8, x9, x10
}}"
        );
        let p: Program = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        let sizes = [(1usize, 1usize), (7, 127), (33, 260), (3, 16), (300, 5), (9, 0)];
        let sizes = sizes.map(|(n, m)| vec![numbers(&[n, m], dtype, true), numbers(&[m], dtype, false)]);
        check_sizes(&p, &sizes, None, &|| text.clone());
    }
}
