//! Remainders of floats, which kernels compute in vectors: special numbers, quotients of every length and what lies beside multiples, with a divisor for each element and with one for all.

use super::halves::everywhere;
use super::*;

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 29
    }
}

/// The ends of what there is, powers of two and what is beside them, and ordinary numbers, as bits of positive ones.
fn special(dtype: DType) -> Vec<f64> {
    let exponents = if dtype == DType::F64 {
        vec![-1074, -1073, -1024, -1023, -1022, -1000, -53, -1, 0, 1, 50, 51, 52, 53, 100, 1021, 1022, 1023]
    } else {
        vec![-149, -148, -128, -127, -126, -100, -24, -1, 0, 1, 21, 22, 23, 24, 50, 125, 126, 127]
    };
    let mut all = vec![0.0, f64::INFINITY, f64::NAN, 3.0, 7.0, 0.1, 360.0, std::f64::consts::TAU, 1e9];
    for e in exponents {
        let x = 2f64.powi(e);
        all.extend(match dtype {
            DType::F64 => [x.next_down(), x, x.next_up()],
            _ => [(x as f32).next_down(), x as f32, (x as f32).next_up()].map(f64::from),
        });
    }
    all.push(if dtype == DType::F64 { f64::MAX } else { f32::MAX.into() });
    let negative: Vec<f64> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all.into_iter().map(|x| rounded(dtype, x)).collect()
}

fn rounded(dtype: DType, x: f64) -> f64 {
    if dtype == DType::F64 { x } else { (x as f32).into() }
}

fn array(dtype: DType, all: Vec<f64>) -> Array {
    let n = all.len();
    Array::from_vec(all, [n]).cast(dtype)
}

/// Dividends for a divisor: any bits, and beside its multiples.
fn dividends(dtype: DType, y: f64, n: usize, numbers: &mut Numbers) -> Vec<f64> {
    let beside = |x: f64, by: i32| match dtype {
        DType::F64 => f64::from_bits(x.to_bits().wrapping_add_signed(by.into())),
        _ => f32::from_bits((x as f32).to_bits().wrapping_add_signed(by)).into(),
    };
    (0..n)
        .map(|i| match i % 8 {
            0 if dtype == DType::F64 => f64::from_bits(numbers.next()),
            0 => f32::from_bits(numbers.next() as u32).into(),
            k => {
                let times = (numbers.next() >> (numbers.next() % 64)) as f64 / 2.0;
                beside(times * y, k as i32 - 4)
            }
        })
        .collect()
}

#[test]
fn remainders_are_those_of_the_processor() {
    for dtype in [DType::F64, DType::F32] {
        let mut numbers = Numbers(dtype.size() as u64);
        let special = special(dtype);
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for y in &special {
            xs.extend(&special);
            xs.extend(dividends(dtype, *y, 101, &mut numbers));
            ys.resize(xs.len(), *y);
        }
        for _ in 0..300 {
            let y = if dtype == DType::F64 {
                f64::from_bits(numbers.next())
            } else {
                f32::from_bits(numbers.next() as u32).into()
            };
            xs.extend(dividends(dtype, y, 31, &mut numbers));
            ys.resize(xs.len(), y);
        }
        let inputs = [array(dtype, xs), array(dtype, ys)];
        let p = traced(&inputs, |x| vec![&x[0] % &x[1], x[0].modulo(&x[1])]);
        let all = everywhere(&p, &inputs, &|| p.to_string());
        // The interpreter, too.
        let [x, y, have] = [&inputs[0], &inputs[1], &all[0][0]].map(|a| a.cast(DType::F64).to_vec::<f64>().unwrap());
        for ((x, y), have) in x.into_iter().zip(y).zip(have) {
            // That of two doubles is exact, and so is one of two singles as doubles.
            let want = x % y;
            assert!(
                have.to_bits() == want.to_bits() || (have.is_nan() && want.is_nan()),
                "{x:e} % {y:e} is {have:e}, not {want:e}"
            );
        }
    }
}

#[test]
fn one_divisor_for_all() {
    for dtype in [DType::F64, DType::F32] {
        let mut numbers = Numbers(dtype.size() as u64);
        for y in special(dtype).into_iter().step_by(3).chain([
            7.0,
            rounded(dtype, -0.3),
            rounded(dtype, std::f64::consts::TAU),
        ]) {
            let inputs = [array(dtype, dividends(dtype, y, 203, &mut numbers)), array(dtype, vec![y])];
            let p = traced(&inputs, |x| vec![&x[0] % y, x[0].modulo(y), &x[0] % x[1].broadcast_to([203])]);
            everywhere(&p, &inputs, &|| p.to_string());
        }
    }
}
