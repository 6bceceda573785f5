//! Kernels written by hand: the forms that programs have, and more values than there are registers.

use super::{assemble, check, sets};
use crate::ir::random::Rng;
use crate::ir::{
    Buffer, BufferInfo, Carried, Expr, Fold, FoldOp, Index, Int, Kernel, Kind, Loop, Memory, Module, Op, Role, Special,
    Stmt, Ty, Value, verify,
};

/// A module of one kernel.
pub(super) struct Build {
    m: Module,
    memory: Memory,
    rng: Rng,
}

impl Build {
    pub(super) fn new() -> Build {
        Build { m: Module::default(), memory: Memory::default(), rng: Rng(7) }
    }

    /// A buffer of numbers between -2 and 2 (or 0 and 3 for integers).
    pub(super) fn buffer(&mut self, ty: Ty, len: usize) -> Buffer {
        let mut bytes = Vec::new();
        for _ in 0..len {
            let x = (self.rng.bits() >> 11) as f64 / (1u64 << 53) as f64 * 4.0 - 2.0;
            match ty {
                Ty::F32 => bytes.extend((x as f32).to_le_bytes()),
                Ty::F64 => bytes.extend(x.to_le_bytes()),
                Ty::Bool => bytes.push(u8::from(x > 0.0)),
                ty => bytes.extend(&((x + 2.0) as u64).to_le_bytes()[..ty.size()]),
            }
        }
        self.memory.buffers.push(bytes);
        self.m.buffers.push(BufferInfo { ty, role: Role::Scratch });
        Buffer(self.m.buffers.len() as u32 - 1)
    }

    pub(super) fn size(&mut self, n: i64) -> u32 {
        self.memory.sizes.push(n);
        self.m.sizes += 1;
        self.m.sizes - 1
    }

    pub(super) fn var(&mut self) -> Value {
        self.m.value(Ty::I64)
    }

    pub(super) fn value(&mut self, ty: Ty) -> Value {
        self.m.value(ty)
    }

    pub(super) fn float(&mut self, body: &mut Vec<Stmt>, ty: Ty, x: f64) -> Value {
        let bits = if ty == Ty::F32 { u64::from((x as f32).to_bits()) } else { x.to_bits() };
        self.emit(body, ty, Expr::Const(bits))
    }

    pub(super) fn emit(&mut self, body: &mut Vec<Stmt>, ty: Ty, e: Expr) -> Value {
        let v = self.m.value(ty);
        body.push(Stmt::Let(v, e));
        v
    }

    pub(super) fn op(&mut self, body: &mut Vec<Stmt>, op: Op, args: &[Value]) -> Value {
        let types: Vec<Ty> = args.iter().map(|a| self.m.ty(*a)).collect();
        self.emit(body, op.result(&types), Expr::Op(op, args.into()))
    }

    pub(super) fn load(&mut self, body: &mut Vec<Stmt>, b: Buffer, at: Index) -> Value {
        let ty = self.m.buffers[b.index()].ty;
        self.emit(body, ty, Expr::Load(b, at))
    }

    pub(super) fn finish(mut self, body: Vec<Stmt>, outputs: Vec<Value>) -> (Module, Memory) {
        let parallel = matches!(body.last(), Some(Stmt::Loop(l)) if l.folds.is_empty() && l.carried.is_empty())
            && body.iter().filter(|s| !matches!(s, Stmt::Let(..))).count() == 1
            && outputs.is_empty();
        self.m.kernels.push(Kernel { name: "k".into(), inputs: vec![], outputs, parallel, body });
        self.m.main.push(Stmt::Kernel(0));
        verify(&self.m).unwrap();
        (self.m, self.memory)
    }
}

pub(super) fn lanes(var: Value, count: impl Into<Int>, folds: Vec<Fold>, body: Vec<Stmt>) -> Stmt {
    Stmt::Loop(Box::new(Loop { var, count: count.into(), kind: Kind::Lanes, carried: vec![], folds, body }))
}

pub(super) fn serial(var: Value, count: impl Into<Int>, carried: Vec<Carried>, body: Vec<Stmt>) -> Stmt {
    Stmt::Loop(Box::new(Loop { var, count: count.into(), kind: Kind::Serial, carried, folds: vec![], body }))
}

fn store(buffer: Buffer, at: Index, value: Value) -> Stmt {
    Stmt::Store { buffer, at, value }
}

fn right(m: &Module, memory: &Memory) {
    for isa in sets() {
        match check(m, memory, isa) {
            Ok((all, made)) => assert_eq!(all, made, "{isa:?}\n{m}"),
            Err(e) => panic!("{e}"),
        }
    }
}

/// y = a polynomial of x.
pub(super) fn polynomial(ty: Ty, n: usize, degree: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(ty, n), b.buffer(ty, n));
    let size = b.size(n as i64);
    let mut body = Vec::new();
    let count = b.emit(&mut body, Ty::I64, Expr::Size(size));
    let i = b.var();
    let mut inner = Vec::new();
    let v = b.load(&mut inner, x, Index::at(0).plus(i, 1));
    let mut p = b.float(&mut inner, ty, 0.7);
    for k in 0..degree {
        let c = b.float(&mut inner, ty, 1.0 / (k + 3) as f64);
        p = b.op(&mut inner, Op::Fma, &[p, v, c]);
    }
    inner.push(store(y, Index::at(0).plus(i, 1), p));
    body.push(lanes(i, count, vec![], inner));
    b.finish(body, vec![])
}

/// Something like an exponential: a reduced argument, a polynomial, a power of two made of bits, comparisons at the ends.
fn exponential(b: &mut Build, body: &mut Vec<Stmt>, ty: Ty, x: Value) -> Value {
    let scale = b.float(body, ty, std::f64::consts::LOG2_E);
    let t = b.op(body, Op::Mul, &[x, scale]);
    let n = b.op(body, Op::Round, &[t]);
    let (high, low) = (b.float(body, ty, -0.693359375), b.float(body, ty, 2.12194440e-4));
    let r = b.op(body, Op::Fma, &[n, high, x]);
    let r = b.op(body, Op::Fma, &[n, low, r]);
    let mut p = b.float(body, ty, 1.0 / 5040.0);
    for c in [720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        let c = b.float(body, ty, 1.0 / c);
        p = b.op(body, Op::Fma, &[p, r, c]);
    }
    let bits = ty.bits_type();
    let (magic, shift) = if ty == Ty::F32 { (12582912.0 + 127.0, 23) } else { (6755399441055744.0 + 1023.0, 52) };
    let magic = b.float(body, ty, magic);
    let shift = b.emit(body, bits, Expr::Const(shift));
    let k = b.op(body, Op::Add, &[n, magic]);
    let k = b.op(body, Op::Bitcast(bits), &[k]);
    let k = b.op(body, Op::Shl, &[k, shift]);
    let k = b.op(body, Op::Bitcast(ty), &[k]);
    let y = b.op(body, Op::Mul, &[p, k]);
    let (most, least) = (b.float(body, ty, 88.0), b.float(body, ty, -88.0));
    let (infinity, zero) = (b.float(body, ty, f64::INFINITY), b.float(body, ty, 0.0));
    let above = b.op(body, Op::Lt, &[most, x]);
    let below = b.op(body, Op::Lt, &[x, least]);
    let y = b.op(body, Op::Select, &[above, infinity, y]);
    b.op(body, Op::Select, &[below, zero, y])
}

pub(super) fn exponentials(ty: Ty, n: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(ty, n), b.buffer(ty, n));
    let i = b.var();
    let size = b.size(n as i64);
    let (mut body, mut inner) = (Vec::new(), Vec::new());
    let count = b.emit(&mut body, Ty::I64, Expr::Size(size));
    let v = b.load(&mut inner, x, Index::at(0).plus(i, 1));
    let e = exponential(&mut b, &mut inner, ty, v);
    inner.push(store(y, Index::at(0).plus(i, 1), e));
    body.push(lanes(i, count, vec![], inner));
    b.finish(body, vec![])
}

/// The sum of squares, and the largest.
pub(super) fn sums(ty: Ty, n: usize, folds: &[FoldOp]) -> (Module, Memory) {
    let mut b = Build::new();
    let x = b.buffer(ty, n.max(1));
    let i = b.var();
    let size = b.size(n as i64);
    let (mut body, mut inner) = (Vec::new(), Vec::new());
    let count = b.emit(&mut body, Ty::I64, Expr::Size(size));
    let v = b.load(&mut inner, x, Index::at(0).plus(i, 1));
    let folds: Vec<Fold> = folds.iter().map(|op| Fold { op: *op, value: v, result: b.value(ty) }).collect();
    let outputs = folds.iter().map(|f| f.result).collect();
    body.push(lanes(i, count, folds, inner));
    b.finish(body, outputs)
}

/// Softmax of rows: three loops of lanes in a serial one.
pub(super) fn softmax(ty: Ty, rows: usize, columns: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(ty, rows * columns), b.buffer(ty, rows * columns));
    let (r, i, j, k) = (b.var(), b.var(), b.var(), b.var());
    let n = columns as i64;
    let at = |v: Value| Index::at(0).plus(r, n).plus(v, 1);
    let mut body = Vec::new();
    let (mut first, mut second, mut third) = (Vec::new(), Vec::new(), Vec::new());
    let v = b.load(&mut first, x, at(i));
    let most = b.value(ty);
    body.push(lanes(i, n, vec![Fold { op: FoldOp::Max, value: v, result: most }], first));
    let v = b.load(&mut second, x, at(j));
    let d = b.op(&mut second, Op::Sub, &[v, most]);
    let e = exponential(&mut b, &mut second, ty, d);
    second.push(store(y, at(j), e));
    let sum = b.value(ty);
    body.push(lanes(j, n, vec![Fold { op: FoldOp::Add, value: e, result: sum }], second));
    let one = b.float(&mut body, ty, 1.0);
    let inverse = b.op(&mut body, Op::Div, &[one, sum]);
    let v = b.load(&mut third, y, at(k));
    let v = b.op(&mut third, Op::Mul, &[v, inverse]);
    third.push(store(y, at(k), v));
    body.push(lanes(k, n, vec![], third));
    b.finish(vec![serial(r, rows as i64, vec![], body)], vec![])
}

/// A product of matrices: a serial loop in a loop of lanes in a serial loop.
pub(super) fn product(ty: Ty, rows: i64, inner: i64, columns: i64) -> (Module, Memory) {
    let mut b = Build::new();
    let x = b.buffer(ty, (rows * inner) as usize);
    let y = b.buffer(ty, (inner * columns) as usize);
    let z = b.buffer(ty, (rows * columns) as usize);
    let (i, j, k) = (b.var(), b.var(), b.var());
    let (mut outer, mut lane, mut body) = (Vec::new(), Vec::new(), Vec::new());
    let init = b.float(&mut outer, ty, 0.0);
    let (param, result) = (b.value(ty), b.value(ty));
    let u = b.load(&mut body, x, Index::at(0).plus(i, inner).plus(k, 1));
    let v = b.load(&mut body, y, Index::at(0).plus(k, columns).plus(j, 1));
    let next = b.op(&mut body, Op::Fma, &[u, v, param]);
    lane.push(serial(k, inner, vec![Carried { init, param, next, result }], body));
    lane.push(store(z, Index::at(0).plus(i, columns).plus(j, 1), result));
    outer.push(lanes(j, columns, vec![], lane));
    b.finish(vec![serial(i, rows, vec![], outer)], vec![])
}

/// How a carried value is read after the next one was made.
#[derive(Clone, Copy, Debug)]
enum Later {
    Operand,
    Stored,
    NextOfAnother,
    SameNext,
    InitInside,
    NextInside,
    Inside,
}

/// A carry whose next value is made at once, and which is read later: it may not lie in the same register.
fn read_later(ty: Ty, later: Later, in_lanes: bool) -> (Module, Memory) {
    let (n, steps) = (37, 5);
    let mut b = Build::new();
    let (x, y, z) = (b.buffer(ty, n), b.buffer(ty, n), b.buffer(ty, n));
    let (i, k, j) = (b.var(), b.var(), b.var());
    let at = |v| Index::at(0).plus(v, 1);
    let (mut lane, mut body) = (Vec::new(), Vec::new());
    let init = b.load(&mut lane, x, at(i));
    let (one, other) = ((b.value(ty), b.value(ty)), (b.value(ty), b.value(ty)));
    let half = b.float(&mut body, ty, 0.75);
    let next = b.op(&mut body, Op::Mul, &[one.0, half]);
    let mut last = b.op(&mut body, Op::Add, &[other.0, next]);
    let inner = |b: &mut Build, init, next: Option<Value>, read: Option<Value>| {
        let (param, result) = (b.value(ty), b.value(ty));
        let mut inside = Vec::new();
        let sum = b.op(&mut inside, Op::Add, &[param, read.unwrap_or(param)]);
        (serial(j, 3, vec![Carried { init, param, next: next.unwrap_or(sum), result }], inside), result)
    };
    match later {
        Later::Operand => last = b.op(&mut body, Op::Sub, &[one.0, last]),
        Later::Stored => body.push(store(z, at(i), one.0)),
        Later::NextOfAnother => last = one.0,
        Later::SameNext => last = next,
        Later::InitInside | Later::NextInside | Later::Inside => {
            let (l, result) = match later {
                Later::InitInside => inner(&mut b, one.0, None, None),
                Later::NextInside => inner(&mut b, last, Some(one.0), None),
                _ => inner(&mut b, last, None, Some(one.0)),
            };
            body.push(l);
            last = result;
        }
    }
    let zero = b.float(&mut lane, ty, 0.0);
    let carried = vec![
        Carried { init, param: one.0, next, result: one.1 },
        Carried { init: zero, param: other.0, next: last, result: other.1 },
    ];
    lane.push(serial(k, steps, carried, body));
    let sum = b.op(&mut lane, Op::Sub, &[one.1, other.1]);
    lane.push(store(y, at(i), sum));
    let outer = if in_lanes { lanes(i, n as i64, vec![], lane) } else { serial(i, n as i64, vec![], lane) };
    b.finish(vec![outer], vec![])
}

/// A whole number that goes around a loop, and is a place in memory after the next one was made.
fn place_later() -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(Ty::F64, 64), b.buffer(Ty::F64, 8));
    let (i, k) = (b.var(), b.var());
    let (mut lane, mut body) = (Vec::new(), Vec::new());
    let zero = b.emit(&mut lane, Ty::I64, Expr::Const(0));
    let start = b.float(&mut lane, Ty::F64, 0.0);
    let (step, total) = ((b.value(Ty::I64), b.value(Ty::I64)), (b.value(Ty::F64), b.value(Ty::F64)));
    let two = b.emit(&mut body, Ty::I64, Expr::Const(2));
    let next = b.op(&mut body, Op::Add, &[step.0, two]);
    let v = b.load(&mut body, x, Index::at(0).plus(i, 8).plus(step.0, 1));
    let sum = b.op(&mut body, Op::Add, &[total.0, v]);
    let carried = vec![
        Carried { init: zero, param: step.0, next, result: step.1 },
        Carried { init: start, param: total.0, next: sum, result: total.1 },
    ];
    lane.push(serial(k, 4, carried, body));
    lane.push(store(y, Index::at(0).plus(i, 1), total.1));
    b.finish(vec![serial(i, 8, vec![], lane)], vec![])
}

#[test]
fn a_carry_that_is_read_later_is_not_written_over() {
    use Later::*;
    for later in [Operand, Stored, NextOfAnother, SameNext, InitInside, NextInside, Inside] {
        for ty in [Ty::F32, Ty::F64] {
            for in_lanes in [true, false] {
                let (m, memory) = read_later(ty, later, in_lanes);
                right(&m, &memory);
            }
        }
    }
    let (m, memory) = place_later();
    right(&m, &memory);
}

/// A copy of a matrix with its axes exchanged.
pub(super) fn transpose(ty: Ty, rows: i64, columns: i64, load: bool) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(ty, (rows * columns) as usize), b.buffer(ty, (rows * columns) as usize));
    let (i, j) = (b.var(), b.var());
    let mut body = Vec::new();
    let (contiguous, strided) = (Index::at(0).plus(i, rows).plus(j, 1), Index::at(0).plus(j, columns).plus(i, 1));
    let (from, to) = if load { (strided, contiguous) } else { (contiguous, strided) };
    let v = b.load(&mut body, x, from);
    body.push(store(y, to, v));
    b.finish(vec![serial(i, columns, vec![], vec![lanes(j, rows, vec![], body)])], vec![])
}

/// So many values, all alive at once.
fn crowd(ty: Ty, n: usize, live: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y) = (b.buffer(ty, n + live), b.buffer(ty, n));
    let i = b.var();
    let mut body = Vec::new();
    let all: Vec<Value> = (0..live).map(|k| b.load(&mut body, x, Index::at(k as i64).plus(i, 1))).collect();
    let turned: Vec<Value> = all
        .iter()
        .zip(all.iter().rev())
        .enumerate()
        .map(|(k, (u, v))| {
            let c = b.float(&mut body, ty, k as f64 * 0.25);
            let u = b.op(&mut body, Op::Fma, &[*u, *v, c]);
            let less = b.op(&mut body, Op::Lt, &[u, *v]);
            b.op(&mut body, Op::Select, &[less, u, *v])
        })
        .collect();
    let sum = turned.into_iter().rev().reduce(|u, v| b.op(&mut body, Op::Add, &[u, v])).unwrap();
    body.push(store(y, Index::at(0).plus(i, 1), sum));
    b.finish(vec![lanes(i, n as i64, vec![], body)], vec![])
}

/// The sum of something long: too long to be made for each vector of a step.
fn long_sum(ty: Ty, n: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let x = b.buffer(ty, n + 1);
    let i = b.var();
    let mut body = Vec::new();
    let v = b.load(&mut body, x, Index::at(0).plus(i, 1));
    let mut s = v;
    for k in 0..250 {
        let c = b.float(&mut body, ty, f64::from(k % 7) * 0.125 - 0.4);
        s = b.op(&mut body, Op::Fma, &[s, c, v]);
    }
    let (sum, most) = (b.value(ty), b.value(ty));
    let folds = vec![Fold { op: FoldOp::Add, value: s, result: sum }, Fold { op: FoldOp::Max, value: v, result: most }];
    b.finish(vec![lanes(i, n as i64, folds, body)], vec![sum, most])
}

/// Bools, gathers by loaded indices, calls and their guards.
fn mixture(ty: Ty, n: usize) -> (Module, Memory) {
    let mut b = Build::new();
    let (x, y, z) = (b.buffer(ty, n + 4), b.buffer(ty, n), b.buffer(ty, n));
    let (t, u) = (b.buffer(Ty::Bool, n), b.buffer(Ty::Bool, n));
    let at = b.buffer(Ty::I64, n);
    let i = b.var();
    let mut body = Vec::new();
    let here = || Index::at(0).plus(i, 1);
    let v = b.load(&mut body, x, here());
    let k = b.load(&mut body, at, here());
    let w = b.load(&mut body, x, Index::at(0).plus(k, 1));
    let flag = b.load(&mut body, t, here());
    let less = b.op(&mut body, Op::Le, &[v, w]);
    let both = b.op(&mut body, Op::Xor, &[flag, less]);
    body.push(store(u, here(), both));
    let g = b.op(&mut body, Op::Special(Special::Lgamma), &[v]);
    let rare = Special::Rare(gradus_core::math::Rare::ALL[0]);
    let r = b.op(&mut body, Op::Special(rare), &[w, w, less]);
    let r = b.op(&mut body, Op::Select, &[less, r, v]);
    let place = b.op(&mut body, Op::Convert(ty), &[i]);
    let s = b.op(&mut body, Op::Fma, &[g, r, place]);
    body.push(store(y, here(), s));
    let m = b.op(&mut body, Op::Max, &[s, w]);
    body.push(store(z, Index::at(n as i64 - 1).plus(i, -1), m));
    let (all, some, sum) = (b.value(Ty::Bool), b.value(Ty::Bool), b.value(ty));
    let folds = vec![
        Fold { op: FoldOp::And, value: both, result: all },
        Fold { op: FoldOp::Or, value: both, result: some },
        Fold { op: FoldOp::Add, value: m, result: sum },
    ];
    b.finish(vec![lanes(i, n as i64, folds, body)], vec![all, some, sum])
}

#[test]
fn kernels_have_the_bits_of_the_evaluator() {
    for ty in [Ty::F32, Ty::F64] {
        for n in [0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 200] {
            for m in [
                polynomial(ty, n, 15),
                exponentials(ty, n),
                sums(ty, n, &[FoldOp::Add]),
                sums(ty, n, &[FoldOp::Mul, FoldOp::Max, FoldOp::Min]),
                mixture(ty, n),
                long_sum(ty, n),
            ] {
                right(&m.0, &m.1);
            }
        }
        for columns in [1, 5, 16, 40, 67, 128] {
            for m in [
                softmax(ty, 3, columns),
                product(ty, 3, 5, columns as i64),
                transpose(ty, 5, columns as i64, true),
                transpose(ty, columns as i64, 5, true),
                transpose(ty, columns as i64, 5, false),
            ] {
                right(&m.0, &m.1);
            }
        }
    }
}

#[test]
fn more_values_than_registers() {
    for ty in [Ty::F32, Ty::F64] {
        for live in [10, 20, 40, 100, 500] {
            for n in [5, 77, 200] {
                let (m, memory) = crowd(ty, n, live);
                right(&m, &memory);
            }
        }
    }
}

#[test]
#[ignore = "writes machine code to files, to be measured"]
fn dump() {
    let Ok(folder) = std::env::var("GRADUS_DUMP") else { return };
    for (name, ty) in [("f32", Ty::F32), ("f64", Ty::F64)] {
        for (kind, (m, _)) in [
            ("poly", polynomial(ty, 1000, 15)),
            ("exp", exponentials(ty, 1000)),
            ("sum", sums(ty, 1000, &[FoldOp::Add])),
            ("max", sums(ty, 1000, &[FoldOp::Max])),
            ("softmax", softmax(ty, 1000, 64)),
            ("product", product(ty, 64, 64, 64)),
            ("transpose", transpose(ty, 256, 256, true)),
        ] {
            for isa in sets() {
                let code = assemble(&m, &m.kernels[0], isa).unwrap();
                let time = (0..200).map(|_| {
                    let start = std::time::Instant::now();
                    assert!(assemble(&m, &m.kernels[0], isa).is_some());
                    start.elapsed()
                });
                println!("{kind} {name} {isa:?}: {} bytes in {:?}", code.len(), time.min().unwrap());
                std::fs::write(format!("{folder}/{kind}_{name}_{isa:?}"), code).unwrap();
            }
        }
    }
}

/// Where two values turn out to be the counter, a place has it once, with both strides.
#[test]
fn what_folds_to_the_counter_adds_to_its_stride() {
    let text = "b0: f32 = input 0\nb1: f32 = output 0\nkernel k() {\n  v4: i64 = 1\n  lanes v0 < 40 {\n    v1: i64 = mul v0 v4\n    \
                v2: f32 = b0[v0*2 + v1]\n    b1[v0] = v2\n  }\n}\nmain f {\n  run k()\n}\n";
    let m = crate::ir::fold(text.parse().unwrap(), gradus_core::optimize::Exactness::Exact);
    let numbers: Vec<u8> = (0..120).flat_map(|i| (i as f32).to_le_bytes()).collect();
    right(&m, &Memory { buffers: vec![numbers, vec![0; 160]], sizes: vec![] });
}

/// Nothing in it is a vector but the store.
#[test]
fn a_number_is_stored_to_all_lanes() {
    for ty in [Ty::F32, Ty::F64, Ty::I64] {
        for n in [1, 2, 7, 8, 9, 33, 64, 70] {
            let mut b = Build::new();
            let (y, size) = (b.buffer(ty, 70), b.size(n));
            let mut body = Vec::new();
            let count = b.emit(&mut body, Ty::I64, Expr::Size(size));
            let value = b.emit(&mut body, ty, Expr::Const(crate::ir::one(ty)));
            let i = b.var();
            body.push(lanes(i, count, vec![], vec![store(y, Index::at(0).plus(i, 1), value)]));
            let (m, memory) = b.finish(body, vec![]);
            right(&m, &memory);
        }
    }
}

/// Elements at indices that are held in range: all of them as they come, some counted from the end, some far outside.
#[test]
fn elements_at_indices_that_are_held_in_range() {
    let mut rng = Rng(3);
    for (ty, bytes) in [("f64", 8), ("f32", 4), ("i64", 8), ("i32", 4), ("bool", 1)] {
        for (index, size) in [("i64", 8), ("i32", 4)] {
            for n in [1usize, 7, 8, 9, 31, 32, 33, 40, 64, 71, 129] {
                // How many of a hundred are not in range as they come.
                for odd in [0, 2, 60] {
                    let room = 1 + rng.below(50) as i64;
                    let (read, place) = match size {
                        8 => ("v1: i64 = b1[v0]\n", ""),
                        _ => ("v9: i32 = b1[v0]\n", "    v1: i64 = convert.i64 v9\n"),
                    };
                    let text = format!(
                        "b0: {ty} = input 0\nb1: {index} = input 1\nb2: {ty} = output 0\nkernel k() {{\n  lanes v0 < {n} {{\n    {read}{place}    v2: i64 = 0\n    \
                         v3: bool = lt v1 v2\n    v4: i64 = {room}\n    v5: i64 = add v1 v4\n    v6: i64 = select v3 v5 v1\n    v7: i64 = max v6 v2\n    v8: i64 = {}\n    \
                         v10: i64 = min v7 v8\n    v11: {ty} = b0[v10]\n    b2[v0] = v11\n  }}\n}}\nmain f {{\n  run k()\n}}\n",
                        room - 1
                    );
                    let m: Module = text.parse().unwrap();
                    let far = [-1, -room, -room - 1, room, room + 1, i64::from(i32::MAX), i64::from(i32::MIN)];
                    let wide = [i64::MAX, i64::MIN, 1 << 32, -(1 << 40)];
                    let mut indices = Vec::new();
                    for _ in 0..n {
                        let at = match (rng.below(100) < odd, size == 8 && rng.below(3) == 0) {
                            (false, _) => rng.below(room as usize) as i64,
                            (true, true) => wide[rng.below(wide.len())],
                            (true, false) => far[rng.below(far.len())],
                        };
                        indices.extend(&at.to_le_bytes()[..size]);
                    }
                    let elements: Vec<u8> = (0..room as usize * bytes)
                        .map(|i| if bytes == 1 { (i % 2) as u8 } else { (i * 37 + 11) as u8 })
                        .collect();
                    right(&m, &Memory { buffers: vec![elements, indices, vec![0; n * bytes]], sizes: vec![] });
                }
            }
        }
    }
}

/// More addresses in a loop inside of another than there are registers, and as many in a loop beside it.
#[test]
fn more_addresses_than_registers() {
    for streams in [3, 11, 12, 13, 20] {
        for (width, rows) in [(0, 3), (1, 3), (5, 2), (33, 4)] {
            let each = |f: &dyn Fn(usize) -> String| (0..streams).map(f).collect::<String>();
            let own = |first: usize, var: usize, start: usize| {
                let sums =
                    each(&|k| format!("      v{}: f64 = add v{} v{}\n", first + 100 + k, first + 99 + k, first + k));
                format!(
                    "    v{} = for v{var} < v10 with v{} = v{start} {{\n{}      v{}: f64 = mul v{} v{}\n{sums}      b{streams}[v0*v10 + v{var}] = v{}\n      next v{}\n    }}\n",
                    first + 200,
                    first + 201,
                    each(&|k| format!("      v{}: f64 = b{k}[v0*v10 + v{var}]\n", first + k)),
                    first + 99,
                    first,
                    first + 201,
                    first + 99 + streams,
                    first + 99 + streams,
                )
            };
            let text = format!(
                "{}b{streams}: f64 = output 0\nb{}: f64 = output 1\nsizes 2\nkernel k(v10: i64, v11: i64) {{\n  for v0 < v11 {{\n    v1: f64 = 0.5\n{}{}    b{}[v0] = v700\n  }}\n}}\n\
                 main f {{\n  v10: i64 = size 0\n  v11: i64 = size 1\n  run k(v10, v11)\n}}\n",
                each(&|k| format!("b{k}: f64 = input {k}\n")),
                streams + 1,
                own(100, 2, 1),
                own(500, 3, 300),
                streams + 1,
            );
            let m: Module = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
            let numbers =
                |n: usize, k: usize| (0..n).flat_map(|i| ((i * 7 + k) as f64).sin().to_le_bytes()).collect::<Vec<u8>>();
            let mut buffers: Vec<Vec<u8>> = (0..=streams).map(|k| numbers(width * rows, k)).collect();
            buffers.push(numbers(rows, 0));
            right(&m, &Memory { buffers, sizes: vec![width as i64, rows as i64] });
        }
    }
}
