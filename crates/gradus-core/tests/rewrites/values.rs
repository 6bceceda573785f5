//! Numbers that laws are checked on: all of a small type, or those at which something happens.

use gradus_core::types::{Complex, bf16, f16};
use gradus_core::{Array, DType, Element, Scalar};

/// How many numbers of a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Amount {
    /// The few that every law has something to say about.
    Few,
    /// Zeros, infinities, NaN, the ends of every range, and neighbours.
    Special,
    /// Every number of eight bits: of integers all, of floats those of both kinds of f8, and the special ones.
    Eight,
    /// Every number of sixteen bits, the wider ones that these are, and the special ones.
    Sixteen,
}

fn distinct(values: impl IntoIterator<Item = Scalar>) -> Vec<Scalar> {
    let mut seen = std::collections::HashSet::new();
    values.into_iter().filter(|v| seen.insert(*v)).collect()
}

/// One step up in the bits of a positive number.
fn ends(dtype: DType) -> Vec<f64> {
    // The largest number, the smallest normal one, the largest and the smallest below, and the neighbours of one.
    match dtype {
        DType::F16 => [0x7bff, 0x400, 0x3ff, 1, 0x3c01, 0x3bff].map(|b| f16::from_bits(b).to_f64()).to_vec(),
        DType::BF16 => [0x7f7f, 0x80, 0x7f, 1, 0x3f81, 0x3f7f].map(|b| bf16::from_bits(b).to_f64()).to_vec(),
        DType::F32 | DType::C64 => {
            [0x7f7f_ffff, 0x80_0000, 0x7f_ffff, 1, 0x3f80_0001, 0x3f7f_ffff].map(|b| f32::from_bits(b) as f64).to_vec()
        }
        _ => [
            f64::MAX,
            f64::MIN_POSITIVE,
            f64::MIN_POSITIVE.next_down(),
            f64::from_bits(1),
            1f64.next_up(),
            1f64.next_down(),
        ]
        .to_vec(),
    }
}

fn floats(dtype: DType, amount: Amount) -> Vec<Scalar> {
    let few = [0.0, 1.0, 2.0, 0.5, 3.0, f64::INFINITY, f64::NAN];
    let mut all: Vec<f64> = few.to_vec();
    if amount > Amount::Few {
        all.extend(ends(dtype));
        all.extend([1.5, 2.5, 1.0 / 3.0, 0.1, 7.0, 100.0, 1e-3, 0.75, 255.0]);
    } else {
        all.extend(ends(dtype)[..4].iter().step_by(3));
    }
    if amount >= Amount::Eight {
        all.extend((0..128u16).map(|b| f16::from_bits(b << 8).to_f64()));
        // Four bits of exponent around 7, three of fraction.
        let e4m3 = |b: i32| match (b >> 3, f64::from(b & 7)) {
            (0, f) => f / 8.0 * 2f64.powi(-6),
            (e, f) => (1.0 + f / 8.0) * 2f64.powi(e - 7),
        };
        all.extend((0..127).map(e4m3));
    }
    if amount >= Amount::Sixteen {
        all.extend((0..0x8000).map(|b| f16::from_bits(b).to_f64()));
        if dtype != DType::F16 {
            all.extend((0..0x8000).map(|b| bf16::from_bits(b).to_f64()));
        }
    }
    // The last bits of wide numbers are met by odd ones only.
    if amount >= Amount::Sixteen && dtype.size() > 2 {
        let odd =
            |k: u64| f64::from_bits((k << 52 | 0x000f_1234_5678_9abc).wrapping_mul(0x9e37_79b9_7f4a_7c15) & !(1 << 63));
        all.extend((0..20_000).map(odd));
    }
    distinct(all.into_iter().flat_map(|v| [v, -v]).map(|v| Scalar::F64(v).cast(dtype)))
}

fn integers(dtype: DType, amount: Amount) -> Vec<Scalar> {
    let bits = 8 * dtype.size() as u32;
    let edges = [Scalar::lowest(dtype), Scalar::highest(dtype)];
    if amount >= Amount::Eight && bits == 8 {
        return (0..256i64).map(|v| Scalar::I64(v).cast(dtype)).collect();
    }
    if amount >= Amount::Sixteen && bits == 16 {
        return (0..65536i64).map(|v| Scalar::I64(v).cast(dtype)).collect();
    }
    let few = [0i64, 1, -1, 2, 3, 8, -8];
    let mut all: Vec<i64> = few.to_vec();
    if amount > Amount::Few {
        all.extend([5, 7, -3, 11, 100]);
        let every = if amount == Amount::Special { 5 } else { 1 };
        for k in (0..bits).step_by(every) {
            let power = 1i64.wrapping_shl(k);
            all.extend([power.wrapping_sub(1), power, power.wrapping_add(1), power.wrapping_neg()]);
        }
    }
    // Half-way between neighbours of narrow floats, and a little beside.
    if amount >= Amount::Eight {
        for k in 8..bits.min(63) {
            for precision in [8, 11, 24, 53] {
                let half = 1i64.wrapping_shl(k - k.min(precision));
                let power = 1i64 << k;
                all.extend([
                    power.wrapping_add(half),
                    power.wrapping_add(half).wrapping_add(1),
                    power.wrapping_add(half).wrapping_sub(1),
                ]);
                all.extend([
                    power.wrapping_add(half.wrapping_mul(3)),
                    power.wrapping_add(half.wrapping_mul(3)).wrapping_sub(1),
                ]);
            }
        }
    }
    distinct(all.into_iter().map(|v| Scalar::I64(v).cast(dtype)).chain(edges))
}

/// Numbers of a type.
pub fn numbers(dtype: DType, amount: Amount) -> Vec<Scalar> {
    match dtype {
        DType::Bool => vec![Scalar::Bool(false), Scalar::Bool(true)],
        DType::C64 | DType::C128 => {
            let few = [0.0, -0.0, 1.0, -2.5, f64::INFINITY, f64::NAN];
            let all = || floats(dtype.real_part(), Amount::Special).into_iter().map(Scalar::to_f64).collect();
            let parts: Vec<f64> = if amount == Amount::Sixteen { all() } else { few.to_vec() };
            let number = |re: f64, im: f64| Scalar::C128(Complex::new(re, im)).cast(dtype);
            parts.iter().flat_map(|re| parts.iter().map(move |im| number(*re, *im))).collect()
        }
        d if d.is_float() => floats(d, amount),
        d => integers(d, amount),
    }
}

/// An array of numbers.
pub fn array(dtype: DType, values: &[Scalar]) -> Array {
    fn of<T: Element>(values: &[Scalar]) -> Array {
        let numbers: Vec<T> = values.iter().filter_map(|s| T::from_scalar(*s)).collect();
        assert_eq!(numbers.len(), values.len());
        Array::from_vec(numbers, [values.len()])
    }
    match dtype {
        DType::Bool => of::<bool>(values),
        DType::I8 => of::<i8>(values),
        DType::I16 => of::<i16>(values),
        DType::I32 => of::<i32>(values),
        DType::I64 => of::<i64>(values),
        DType::U8 => of::<u8>(values),
        DType::U16 => of::<u16>(values),
        DType::U32 => of::<u32>(values),
        DType::U64 => of::<u64>(values),
        DType::F16 => of::<f16>(values),
        DType::BF16 => of::<bf16>(values),
        DType::F32 => of::<f32>(values),
        DType::F64 => of::<f64>(values),
        DType::C64 => of::<Complex<f32>>(values),
        DType::C128 => of::<Complex<f64>>(values),
        DType::Key => panic!("a key is no number"),
    }
}

/// Every choice of one number from each list, a column for each list.
pub fn product(lists: &[&[Scalar]]) -> Vec<Vec<Scalar>> {
    let total: usize = lists.iter().map(|l| l.len()).product();
    let mut after = total;
    lists
        .iter()
        .map(|list| {
            after /= list.len().max(1);
            (0..total).map(|i| list[i / after % list.len()]).collect()
        })
        .collect()
}
