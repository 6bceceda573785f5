//! Laws on single numbers: every expression of two operations from a list, on every number of a small type.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use gradus_core::optimize::Exactness;
use gradus_core::primitives::convert::Convert;
use gradus_core::primitives::elementwise::{Clamp, Compare, Direction, Div, IntegerPow, MulAdd, Not, Rem, Select};
use gradus_core::primitives::{BUILT_IN, Op};
use gradus_core::{Array, DType, Program, Scalar, Type, interpret};

use crate::support::{Expr, Seen, full};
use crate::values::{Amount, array, numbers, product};

const X: Expr = Expr::In(0);
const Y: Expr = Expr::In(1);
const Z: Expr = Expr::In(2);
const P: Expr = Expr::In(3);
const Q: Expr = Expr::In(4);

/// The types of the inputs: three numbers and two bools.
fn inputs(d: DType, n: usize) -> Vec<Type> {
    let of = |d| Type::new(d, &[n][..]);
    vec![of(d), of(d), of(d), of(DType::Bool), of(DType::Bool)]
}

/// The operations on one, two and three numbers of a type that have no parameters, and those with some that laws look at.
fn operations(d: DType) -> [Vec<Op>; 3] {
    let mut by_arity = [Vec::new(), Vec::new(), Vec::new()];
    for entry in BUILT_IN.iter() {
        let Ok(op) = Op::from_text(entry.name, &[]) else { continue };
        for arity in 1..=3 {
            let expr = Expr::of(op.clone(), [X, Y, Z].into_iter().take(arity));
            if expr.program(&inputs(d, 3)).is_ok_and(|p| p.output_types()[0].shape() == inputs(d, 3)[0].shape()) {
                by_arity[arity - 1].push(op.clone());
            }
        }
    }
    let exponents: &[i64] =
        if full() { &[-17, -16, -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 15, 16, 17] } else { &[-2, -1, 0, 1, 2, 3, 5] };
    by_arity[0].extend(exponents.iter().map(|n| Op::new(IntegerPow { exponent: *n })));
    by_arity[0].push(Op::new(Convert { dtype: d }));
    let directions = [Direction::Eq, Direction::Ne, Direction::Lt, Direction::Le, Direction::Gt, Direction::Ge];
    by_arity[1].extend(directions.map(|direction| Op::new(Compare { direction })));
    by_arity
}

/// Numbers that stand in expressions.
fn constants(d: DType) -> Vec<Expr> {
    let all: &[f64] = match d {
        DType::Bool => &[],
        d if d.is_unsigned() => &[0.0, 1.0, 2.0, 3.0, 4.0, 128.0],
        d if d.is_int() => &[0.0, 1.0, -1.0, 2.0, 3.0, 4.0, -8.0],
        _ => &[0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 4.0, 0.25],
    };
    let mut list: Vec<Scalar> = all.iter().map(|v| Scalar::F64(*v).cast(d)).collect();
    if d == DType::Bool {
        list = numbers(d, Amount::Few);
    } else if !d.is_complex() {
        list.extend([Scalar::lowest(d), Scalar::highest(d)]);
    }
    if d.is_float() {
        let small: f64 = if d == DType::F16 { -14.0 } else { -126.0 };
        list.push(Scalar::F64(f64::NAN).cast(d));
        list.extend([small, small - 1.0, -small, 1.0 - small].map(|e| Scalar::F64(e.exp2()).cast(d)));
    }
    list.into_iter().map(|v| Expr::Num(d, v)).collect()
}

/// Every expression of one operation.
fn single(d: DType) -> Vec<Expr> {
    let [unary, binary, ternary] = operations(d);
    let numbers = constants(d);
    let yes_no = [true, false].map(|v| Expr::Num(DType::Bool, Scalar::Bool(v)));
    let mut all: Vec<Expr> = unary.iter().map(|op| Expr::of(op.clone(), [X])).collect();
    for op in &binary {
        let pairs = [[X, Y], [X, X]].into_iter().chain(numbers.iter().flat_map(|c| [[X, c.clone()], [c.clone(), X]]));
        all.extend(pairs.map(|pair| Expr::of(op.clone(), pair)));
    }
    all.extend(ternary.iter().map(|op| Expr::of(op.clone(), [X, Y, Z])));
    let select = |p: &Expr, a: &Expr, b: &Expr| Expr::of(Op::fixed(&Select), [p.clone(), a.clone(), b.clone()]);
    all.extend([select(&P, &X, &Y), select(&P, &X, &X)]);
    all.extend(yes_no.iter().map(|p| select(p, &X, &Y)));
    for a in &numbers {
        all.extend([select(&P, a, &X), select(&P, &X, a)]);
        for b in &numbers {
            all.push(Expr::of(Op::fixed(&Clamp), [a.clone(), X, b.clone()]));
            all.push(select(&P, a, b));
        }
        all.push(Expr::of(Op::fixed(&Clamp), [a.clone(), X, Y]));
        all.push(Expr::of(Op::fixed(&Clamp), [Y, X, a.clone()]));
        all.push(Expr::of(Op::fixed(&MulAdd), [a.clone(), X, Y]));
        all.push(Expr::of(Op::fixed(&MulAdd), [X, a.clone(), Y]));
        all.push(Expr::of(Op::fixed(&MulAdd), [X, Y, a.clone()]));
    }
    all
}

/// Operations inside others that some law looks at; the full run takes all.
const INNER: &[&str] =
    &["neg", "abs", "floor", "ceil", "round", "not", "sub", "add", "mul", "sqrt", "exp", "log", "compare"];
/// Operations on two numbers outside others that some law looks at; the full run takes all.
const OUTER: &[&str] = &["add", "sub", "mul", "div", "max", "and", "or", "xor", "compare"];

/// Every expression of an operation on the result of another.
fn double(d: DType) -> Vec<Expr> {
    let [unary, binary, _] = operations(d);
    let wanted = |list: &[&str], op: &Op| full() || list.contains(&op.name());
    let mut inner: Vec<Expr> =
        unary.iter().filter(|op| wanted(INNER, op)).map(|op| Expr::of(op.clone(), [X])).collect();
    for op in binary.iter().filter(|op| wanted(INNER, op)) {
        inner.push(Expr::of(op.clone(), [X, Y]));
        if full() {
            inner.push(Expr::of(op.clone(), [X, X]));
        }
    }
    let ends = if full() { constants(d) } else { constants(d).into_iter().take(2).collect() };
    let mut all = Vec::new();
    for e in &inner {
        all.extend(unary.iter().map(|op| Expr::of(op.clone(), [e.clone()])));
        all.push(Expr::of(Op::fixed(&Not), [e.clone()]));
        let others: Vec<Expr> = [X, Y].into_iter().chain(ends.iter().cloned()).collect();
        for op in binary.iter().filter(|op| wanted(OUTER, op)) {
            all.extend(others.iter().map(|o| Expr::of(op.clone(), [e.clone(), o.clone()])));
            all.extend(others.iter().map(|o| Expr::of(op.clone(), [o.clone(), e.clone()])));
            all.push(Expr::of(op.clone(), [e.clone(), e.clone()]));
            all.push(Expr::of(op.clone(), [e.clone(), e.with(0, 1)]));
            all.push(Expr::of(op.clone(), [e.with(0, 2), e.clone()]));
        }
        all.push(Expr::of(Op::fixed(&Select), [e.clone(), X, Y]));
        all.push(Expr::of(Op::fixed(&Select), [P, e.clone(), X]));
    }
    let select = |p: Expr, a: Expr, b: Expr| Expr::of(Op::fixed(&Select), [p, a, b]);
    for p in [P, Q] {
        all.push(select(P, select(p.clone(), X, Y), Z));
        all.push(select(P, Z, select(p.clone(), X, Y)));
        all.push(select(P, select(p.clone(), X, Y), select(p, Z, X)));
    }
    all.push(select(Expr::of(Op::fixed(&Not), [P]), X, Y));
    all
}

/// How many numbers there are for an expression with so many inputs. `whole` for the first expressions of a law.
fn amount(d: DType, inputs: usize, whole: bool) -> Amount {
    match (inputs, full(), whole) {
        (0 | 1, true, _) => Amount::Sixteen,
        (0 | 1, _, true) if d.size() <= 2 || d.is_complex() => Amount::Sixteen,
        (0 | 1, ..) => Amount::Eight,
        (2, true, true) => Amount::Eight,
        (2, _, true) if d.size() == 1 => Amount::Eight,
        (2, true, false) | (2, _, true) => Amount::Special,
        (2, ..) => Amount::Few,
        // Triples of eight bits are 16 million: only of the narrowest.
        (_, true, true) if d.size() <= 2 && d != DType::BF16 => Amount::Eight,
        (_, true, _) if !d.is_complex() => Amount::Special,
        _ => Amount::Few,
    }
}

type Grid = Vec<Vec<Array>>;
/// Grids by what they are made of: they take longer to make than to use.
static GRIDS: LazyLock<Mutex<HashMap<(DType, Amount, [bool; 5]), std::sync::Arc<Grid>>>> =
    LazyLock::new(Mutex::default);

/// Inputs in which those that are used take every choice of numbers, in pieces of a size that memory holds.
fn grid(d: DType, amount: Amount, used: [bool; 5]) -> std::sync::Arc<Grid> {
    if let Some(grid) = GRIDS.lock().unwrap().get(&(d, amount, used)) {
        return grid.clone();
    }
    let one = [Scalar::one(d)];
    let (values, bools) = (numbers(d, amount), numbers(DType::Bool, amount));
    let lists: Vec<&[Scalar]> = (0..5)
        .map(|i| match (used[i], i < 3) {
            (true, true) => &values[..],
            (true, false) => &bools[..],
            (false, true) => &one[..],
            (false, false) => &bools[..1],
        })
        .collect();
    let rest: usize = lists[1..].iter().map(|l| l.len()).product();
    let pieces: Vec<&[Scalar]> = if rest > 1 << 14 { lists[0].chunks(16).collect() } else { vec![lists[0]] };
    let grid = pieces.into_iter().map(|first| {
        let lists: Vec<&[Scalar]> = std::iter::once(first).chain(lists[1..].iter().copied()).collect();
        let dtype = |i: usize| if i < 3 { d } else { DType::Bool };
        product(&lists).iter().enumerate().map(|(i, column)| array(dtype(i), column)).collect()
    });
    let grid: std::sync::Arc<Grid> = std::sync::Arc::new(grid.collect());
    // Large ones are made again: together they would not fit.
    if rest <= 1 << 14 {
        GRIDS.lock().unwrap().insert((d, amount, used), grid.clone());
    }
    grid
}

fn program(e: &Expr, d: DType, grid: &[Array]) -> Option<Program> {
    e.program(&inputs(d, grid[0].ty().ok()?.shape().count()?)).ok()
}

/// Checks an expression, if its type rule takes it.
fn check(seen: &mut Seen, e: &Expr, d: DType) {
    let mut used = [false; 5];
    e.uses(&mut used);
    let count = used[..3].iter().filter(|on| **on).count();
    let first = grid(d, amount(d, count, false), used);
    let Some(p) = program(e, d, &first[0]) else { return };
    let new = seen.check(&p, std::slice::from_ref(&first[0]));
    // The first expression of a law has every number.
    let rest = if new.is_empty() { first } else { grid(d, amount(d, count, true), used) };
    for inputs in rest.iter().skip(usize::from(new.is_empty())) {
        let Some(p) = program(e, d, inputs) else { return };
        let (fast, _) = seen.optimized(&p, Exactness::Exact);
        seen.compare(&p, &fast, inputs);
    }
}

fn all_of(d: DType) -> Seen {
    let mut seen = Seen::default();
    single(d).iter().for_each(|e| check(&mut seen, e, d));
    // Other widths have the same laws, and the same code behind them.
    if full() || matches!(d, DType::F32 | DType::I8 | DType::U8 | DType::Bool | DType::C64) {
        double(d).iter().for_each(|e| check(&mut seen, e, d));
    }
    seen.report(&format!("scalars of {d}"));
    seen
}

macro_rules! of_every_type {
    ($($name:ident $seen:ident $dtype:ident;)*) => {
        $(
            static $seen: LazyLock<Seen> = LazyLock::new(|| all_of(DType::$dtype));

            #[test]
            fn $name() {
                assert!(!$seen.laws.is_empty());
            }
        )*

        /// What was seen, type by type.
        pub fn seen() -> Vec<&'static Seen> {
            vec![$(&$seen),*]
        }
    };
}
of_every_type! {
    laws_hold_for_f32 F32 F32;
    laws_hold_for_i8 I8 I8;
    laws_hold_for_u8 U8 U8;
    laws_hold_for_bool BOOL Bool;
    laws_hold_for_f16 F16 F16;
    laws_hold_for_bf16 BF16 BF16;
    laws_hold_for_f64 F64 F64;
    laws_hold_for_c64 C64 C64;
    laws_hold_for_c128 C128 C128;
    laws_hold_for_i32 I32 I32;
    laws_hold_for_u64 U64 U64;
}

/// Numbers on both sides of multiples of divisors, small and large: where a quotient steps.
fn quotients() -> Seen {
    use DType::*;
    let mut seen = Seen::default();
    let mut state = 7u64;
    let mut next = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 1) as i64
    };
    for dtype in [I8, U8, I16, U16, I32, U32, I64, U64] {
        let bits = 8 * dtype.size() as u32;
        let mut divisors = vec![2, 3, 5, 6, 7, 10, 12, 97, 100, 127, 4, 64, -1, -2, -3, -7, -128];
        divisors.extend([1000, 1460, 36524, 146_097, 1 << 15, (1 << 31) - 1, -146_097].iter().filter(|_| bits > 16));
        let long =
            [(1 << 31) + 11, 6_700_417 * 641, -(1 << 40) + 87, (1 << 48) - 59, (1 << 48) - 1, -(1 << 47), 1 << 61];
        divisors.extend(long.iter().filter(|_| bits > 32));
        for c in divisors {
            let mut xs: Vec<i64> =
                vec![0, 1, -1, c, -c, i64::MIN >> (64 - bits), i64::MAX >> (64 - bits), i64::MIN, i64::MAX];
            for _ in 0..300 {
                // Numbers of every length, and the multiples near them.
                let x = next() >> (next().rem_euclid(63));
                let multiple = x.wrapping_div(c).wrapping_mul(c);
                let unsigned = (x as u64 / c as u64).wrapping_mul(c as u64) as i64;
                xs.extend([
                    unsigned,
                    unsigned.wrapping_sub(1),
                    x,
                    multiple,
                    multiple.wrapping_add(1),
                    multiple.wrapping_sub(1),
                    multiple.wrapping_add(c - 1),
                ]);
            }
            let xs = array(dtype, &xs.iter().map(|x| Scalar::I64(*x).cast(dtype)).collect::<Vec<_>>());
            let by = Scalar::I64(c).cast(dtype);
            let ys = array(dtype, &vec![by; xs.shape().size().as_usize().unwrap()]);
            let types = [xs.ty().unwrap().clone(), ys.ty().unwrap().clone()];
            for op in [Op::fixed(&Div), Op::fixed(&Rem)] {
                let known = Expr::of(op.clone(), [X, Expr::Num(dtype, by)]);
                let unknown = Expr::of(op, [X, Y]);
                for e in [known, unknown] {
                    let p = e.program(&types).unwrap();
                    seen.check(&p, &[vec![xs.clone(), ys.clone()]]);
                }
            }
        }
    }
    seen.report("quotients");
    seen
}

pub static QUOTIENTS: LazyLock<Seen> = LazyLock::new(quotients);

#[test]
fn quotients_step_where_they_should() {
    assert_eq!(QUOTIENTS.laws.keys().filter(|law| law.starts_with("x/")).count(), 5);
}

/// Conversions from every type over every type to every type.
fn conversions() -> Seen {
    use DType::*;
    let types = [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, C64, C128];
    let mut seen = Seen::default();
    for from in types {
        let amount = if full() || from.size() == 1 { Amount::Sixteen } else { Amount::Eight };
        let numbers = array(from, &numbers(from, amount));
        let ty = numbers.ty().unwrap().clone();
        for between in types {
            for to in types {
                let convert = |dtype, e| Expr::of(Op::new(Convert { dtype }), [e]);
                let Ok(p) = convert(to, convert(between, X)).program(std::slice::from_ref(&ty)) else { continue };
                seen.check(&p, &[vec![numbers.clone()]]);
            }
        }
    }
    seen.report("conversions");
    seen
}

pub static CONVERSIONS: LazyLock<Seen> = LazyLock::new(conversions);

#[test]
fn conversions_of_conversions_hold() {
    assert!(!CONVERSIONS.laws.is_empty());
}

/// Laws that a user asks for with `Exactness::Relaxed`: they hold for finite numbers that are not zero, but for last bits.
fn relaxed() -> Seen {
    let mut seen = Seen::default();
    for d in [DType::F64, DType::C128] {
        let list: Vec<Scalar> = [0.375, 0.5, 1.25, 2.0, 3.5].iter().map(|v| Scalar::F64(*v).cast(d)).collect();
        let bools = numbers(DType::Bool, Amount::Few);
        let lists: [&[Scalar]; 5] = [&list, &list, &list, &bools, &bools];
        let columns = product(&lists);
        let grid: Vec<Array> =
            columns.iter().enumerate().map(|(i, c)| array(if i < 3 { d } else { DType::Bool }, c)).collect();
        for e in single(d).iter().chain(&double(d)) {
            let Some(p) = program(e, d, &grid) else { continue };
            let (fast, new) = seen.optimized(&p, Exactness::Relaxed);
            if !new.iter().any(|law| law.starts_with("relaxed")) {
                continue;
            }
            let run = |p: &Program| interpret(p, &grid).unwrap().remove(0);
            let (want, have) = (run(&p), run(&fast));
            let (Some(a), Some(b)) = (want.concrete(), have.concrete()) else { panic!("no numbers\n{p}") };
            for i in 0..a.count() {
                let [x, y] = [a, b].map(|c| c.scalar_at(i).unwrap().to_f64());
                let outside = !x.is_finite() || x == 0.0 && y == 0.0;
                assert!(outside || (x - y).abs() <= 1e-14 * x.abs().max(1e-300), "{y} is not {x}\n{p}\n{fast}");
            }
        }
    }
    seen.laws.retain(|law, _| law.starts_with("relaxed"));
    seen.report("relaxed laws");
    seen
}

pub static RELAXED: LazyLock<Seen> = LazyLock::new(relaxed);

#[test]
fn relaxed_laws_hold_where_they_claim_to() {
    assert!(!RELAXED.laws.is_empty());
}
