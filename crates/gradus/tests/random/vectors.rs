//! The stored numbers of JAX, and how far ours are from them.

use gradus::prelude::*;
use gradus::random;
use serde_json::Value;

/// One call of JAX.
pub struct Line {
    pub name: String,
    pub seed: u64,
    pub ty: Type,
    pub args: Vec<Array>,
    pub bits: Vec<u64>,
    pub grad: Option<Vec<u64>>,
    pub rest: Value,
}

impl Line {
    pub fn shape(&self) -> Vec<usize> {
        let dims = self.rest["shape"].as_array().expect("a shape");
        dims.iter().map(|d| d.as_u64().expect("a dimension") as usize).collect()
    }

    pub fn axis(&self) -> isize {
        self.rest["axis"].as_i64().unwrap_or(0) as isize
    }
}

fn words(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|w| u64::from_str_radix(w, 16).expect("hexadecimal")).collect()
}

fn array(value: &Value) -> Array {
    let ty: Type = value["type"].as_str().expect("a type").parse().expect("a type");
    let text = value["values"].as_str().expect("values");
    let dims: Vec<usize> = ty.shape().known().expect("dimensions").to_vec();
    match ty.dtype() {
        d if d.is_float() => {
            let values: Vec<f64> = text.split_whitespace().map(|v| v.parse().expect("a number")).collect();
            Array::from_vec(values, dims).cast(d)
        }
        d if d.is_signed_int() => {
            let values: Vec<i64> = text.split_whitespace().map(|v| v.parse().expect("a number")).collect();
            Array::from_vec(values, dims).cast(d)
        }
        d => {
            let values: Vec<u64> = text.split_whitespace().map(|v| v.parse().expect("a number")).collect();
            Array::from_vec(values, dims).cast(d)
        }
    }
}

pub fn lines() -> Vec<Line> {
    lines_of(include_str!("../data/random.jsonl"))
}

/// The lines of a file that `scripts/reference/draws.py` wrote.
pub fn lines_of(text: &str) -> Vec<Line> {
    let mut text = text.lines();
    let head: Value = serde_json::from_str(text.next().expect("a first line")).expect("JSON");
    assert!(head["jax"].is_string());
    text.map(|line| {
        let rest: Value = serde_json::from_str(line).expect("JSON");
        Line {
            name: rest["name"].as_str().expect("a name").to_string(),
            seed: rest["seed"].as_str().expect("a seed").parse().expect("a seed"),
            ty: rest["type"].as_str().expect("a type").parse().expect("a type"),
            args: rest["args"].as_array().expect("parameters").iter().map(array).collect(),
            bits: words(rest["bits"].as_str().expect("bits")),
            grad: rest["grad"].as_str().map(words),
            rest,
        }
    })
    .collect()
}

/// The bits of an array's elements; of complex numbers those of both parts.
pub fn bits_of(a: &Array) -> Result<Vec<u64>> {
    Ok(match a.dtype() {
        DType::Bool => a.to_vec::<bool>()?.into_iter().map(u64::from).collect(),
        d if d.is_complex() => {
            let parts = [bits_of(&a.real())?, bits_of(&a.imag())?];
            parts[0].iter().zip(&parts[1]).flat_map(|(re, im)| [*re, *im]).collect()
        }
        d => {
            let unsigned = [DType::U8, DType::U16, DType::U32, DType::U64][d.size().ilog2() as usize];
            let bits = if d == unsigned { a.clone() } else { a.bitcast(unsigned) };
            bits.cast(DType::U64).to_vec::<u64>()?
        }
    })
}

/// A number of a float dtype from its bits.
fn value(dtype: DType, bits: u64) -> f64 {
    match dtype.real_part() {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// The largest distance in units in the last place, of numbers below `least` in those of `least`. Integers and bools differ by
/// everything or nothing.
pub fn distance(dtype: DType, ours: &[u64], theirs: &[u64], least: f64) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let digits = match dtype.real_part() {
        DType::F16 => 10,
        DType::BF16 => 7,
        DType::F32 => 23,
        _ => 52,
    };
    let each = ours.iter().zip(theirs).map(|(a, b)| {
        if a == b || !dtype.is_inexact() {
            return if a == b { 0.0 } else { f64::INFINITY };
        }
        let (a, b) = (value(dtype, *a), value(dtype, *b));
        let unit = 2f64.powi(b.abs().max(least).max(1e-300).log2().floor() as i32 - digits);
        if a.is_finite() && b.is_finite() { (a - b).abs() / unit } else { f64::INFINITY }
    });
    each.fold(0.0, f64::max)
}

/// How far our numbers may be from JAX's: units in the last place, and the least number whose units are meant. The book's page on
/// randomness has the same table, with reasons.
pub fn limit(name: &str, dtype: DType) -> (f64, f64) {
    let wide = dtype.real_part() == DType::F64;
    match name {
        // Logarithms of f64 differ in the last bit.
        "normal" | "exponential" | "truncated_normal" if wide => (3.0, 0.0),
        // JAX's error function of the bounds is not to the last bit, and the quantile is steep.
        "truncated_normal" if dtype == DType::F32 => (8.0, 1.0),
        // A complex division.
        "normal" if dtype.is_complex() => (2.0, 0.0),
        // A logarithm of a logarithm is near to zero somewhere.
        "gumbel" if wide => (2.0, 1.0),
        // JAX's own logarithm of f16 is not to the last bit.
        "gumbel" if dtype == DType::F16 => (8.0, 1.0),
        // JAX's compiler takes reciprocal roots and powers by ways of its own, and a cube follows.
        "gamma" | "loggamma" | "beta" | "ball" => (8.0, 1.0),
        // Sums in another order.
        "multivariate_normal" => (4.0, 1.0),
        _ => (0.0, 0.0),
    }
}

/// The call of a line from a key.
pub fn call(line: &Line, key: Key, args: &[Array]) -> Array {
    macro_rules! typed {
        ($function:ident($($more:expr),*)) => {
            match line.ty.dtype() {
                DType::F16 => random::$function::<f16>(key, $($more),*),
                DType::BF16 => random::$function::<bf16>(key, $($more),*),
                DType::F32 => random::$function::<f32>(key, $($more),*),
                DType::F64 => random::$function::<f64>(key, $($more),*),
                DType::C64 => random::$function::<Complex<f32>>(key, $($more),*),
                DType::C128 => random::$function::<Complex<f64>>(key, $($more),*),
                DType::I8 => random::$function::<i8>(key, $($more),*),
                DType::I16 => random::$function::<i16>(key, $($more),*),
                DType::I32 => random::$function::<i32>(key, $($more),*),
                DType::I64 => random::$function::<i64>(key, $($more),*),
                DType::U8 => random::$function::<u8>(key, $($more),*),
                DType::U16 => random::$function::<u16>(key, $($more),*),
                DType::U32 => random::$function::<u32>(key, $($more),*),
                _ => random::$function::<u64>(key, $($more),*),
            }
        };
    }
    let shape = line.ty.shape().clone();
    // The words of keys, first the high one.
    let words = |keys: Array| {
        let bits = keys.bitcast(DType::U64);
        Array::stack([bits.shift_right_logical(32_u64).cast(DType::U32), bits.cast(DType::U32)], -1)
    };
    match line.name.as_str() {
        "key" => words(key.into_array()),
        "split" => words(key.split_n(5usize).into_array()),
        "fold_in" => words(key.fold_in(&args[0]).into_array()),
        "bits" => typed!(bits(shape)),
        "uniform" => typed!(uniform(shape)),
        "uniform_between" => typed!(uniform_between(shape, &args[0], &args[1])),
        "normal" => typed!(normal(shape)),
        "exponential" => typed!(exponential(shape)),
        "gumbel" => typed!(gumbel(shape)),
        "truncated_normal" => typed!(truncated_normal(shape, &args[0], &args[1])),
        "bernoulli" => random::bernoulli(key, &args[0], shape),
        // Bounds that the dtype does not hold are numbers.
        "randint" if args[0].dtype() != line.ty.dtype() => {
            let number = |i: usize| line.args[i].item::<i64>().expect("a number");
            typed!(randint(shape, number(0), number(1)))
        }
        "randint" => typed!(randint(shape, &args[0], &args[1])),
        "categorical" => {
            let draws = line.shape().len() + 1 - args[0].rank();
            random::categorical(key, &args[0], line.axis(), line.shape()[..draws].to_vec())
        }
        "permutation" => random::permutation(key, line.rest["n"].as_u64().expect("a number") as usize),
        "shuffle" => random::shuffle(key, &args[0], line.axis()),
        "shuffle_independent" => random::shuffle_independent(key, &args[0], line.axis()),
        "choice" | "choice_without" | "choice_weighted" | "choice_weighted_without" => {
            let mut how = random::ChoiceOptions::new().axis(line.axis());
            if line.name.ends_with("without") {
                how = how.without_replacement();
            }
            if let Some(p) = args.get(1) {
                how = how.probabilities(p);
            }
            how.choice(key, &args[0], line.shape())
        }
        "gamma" => typed!(gamma(&args[0], shape)),
        "loggamma" => typed!(loggamma(&args[0], shape)),
        "beta" => typed!(beta(&args[0], &args[1], shape)),
        "ball" => typed!(ball(3usize, line.rest["p"].as_f64().expect("a norm"), line.shape())),
        "poisson" => typed!(poisson(&args[0], shape)),
        "multivariate_normal" => random::multivariate_normal(key, &args[0], &args[1], line.shape()),
        other => panic!("no function for `{other}`"),
    }
}
