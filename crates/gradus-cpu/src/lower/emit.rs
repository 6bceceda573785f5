//! Writing statements: the body that is being written, and the scalar form of every elementwise primitive.

use gradus_core::primitives::Op as Primitive;
use gradus_core::primitives::convert::{Bitcast, Convert};
use gradus_core::primitives::elementwise::{Compare, Direction, IntegerPow, Polygamma};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::views::At;
use crate::check::Ranges;
use crate::ir::meaning::{Meaning, Means};
use crate::ir::{Buffer, Carried, Expr, Fold, Index, Int, Kind, Loop, Math, Module, Op, Special, Stmt, Ty, Value, one};
use crate::size::Size;

/// The module that is being made, with a stack of open bodies.
#[derive(Debug, Default)]
pub(super) struct Emitter {
    pub module: Module,
    open: Vec<Vec<Stmt>>,
    /// The scalars of sizes that are known at run time.
    sizes: FxHashMap<u32, Value>,
}

impl Emitter {
    pub fn begin(&mut self) {
        self.open.push(Vec::new());
    }

    pub fn end(&mut self) -> Vec<Stmt> {
        self.open.pop().unwrap_or_default()
    }

    pub fn push(&mut self, s: Stmt) {
        if let Some(body) = self.open.last_mut() {
            body.push(s);
        }
    }

    pub fn value(&mut self, ty: Ty) -> Value {
        self.module.value(ty)
    }

    pub fn ty(&self, v: Value) -> Ty {
        self.module.ty(v)
    }

    pub fn define(&mut self, ty: Ty, e: Expr) -> Value {
        let v = self.value(ty);
        self.push(Stmt::Let(v, e));
        v
    }

    pub fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        self.define(ty, Expr::Const(bits))
    }

    pub fn int(&mut self, v: i64) -> Value {
        let value = self.constant(Ty::I64, v as u64);
        self.ranges().exactly(value, v.into());
        value
    }

    /// What is known of values that stand in places.
    pub fn ranges(&mut self) -> &mut Ranges {
        &mut self.module.meanings.ranges
    }

    /// A float or integer constant of a type.
    pub fn number(&mut self, ty: Ty, v: f64) -> Value {
        let bits = match ty {
            Ty::F32 => u64::from((v as f32).to_bits()),
            Ty::F64 => v.to_bits(),
            t => (v as i64 as u64) & (u64::MAX >> (64 - t.size() * 8)),
        };
        self.constant(ty, bits)
    }

    pub fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.ty(*a)).collect();
        self.define(op.result(&types), Expr::Op(op, args.into()))
    }

    pub fn load(&mut self, buffer: Buffer, at: At, meaning: Meaning) -> Value {
        let ty = self.module.buffers[buffer.index()].ty;
        let at = self.meant(&at, meaning);
        self.define(ty, Expr::Load(buffer, at))
    }

    pub fn store(&mut self, buffer: Buffer, at: At, value: Value, meaning: Meaning) {
        let at = self.meant(&at, meaning);
        self.push(Stmt::Store { buffer, at, value });
    }

    fn meant(&mut self, at: &At, meaning: Meaning) -> Index {
        let all = &mut self.module.meanings.all;
        let means = Means(all.len() as u32);
        all.push(meaning);
        Index { means, ..self.index(at) }
    }

    /// A place as the kernel language writes it.
    pub fn index(&mut self, at: &At) -> Index {
        let mut index = Index::at(at.offset.constant().unwrap_or(0));
        if let Size::Symbolic(_) = at.offset {
            let value = self.size(at.offset);
            index.terms.push((value, Int::Const(1)));
        }
        for (value, stride) in &at.terms {
            let stride = self.count(*stride);
            index = index.plus(*value, stride);
        }
        index
    }

    /// A size as a scalar. One that is known at run time is read before everything else.
    pub fn size(&mut self, size: Size) -> Value {
        match size {
            Size::Known(n) => self.int(n),
            Size::Symbolic(n) => match self.sizes.get(&n) {
                Some(v) => *v,
                None => {
                    let v = self.value(Ty::I64);
                    self.sizes.insert(n, v);
                    self.ranges().exactly(v, size);
                    v
                }
            },
        }
    }

    /// A size as the count of a loop or a stride.
    pub fn count(&mut self, size: Size) -> Int {
        match size {
            Size::Known(n) => Int::Const(n),
            Size::Symbolic(_) => Int::Value(self.size(size)),
        }
    }

    /// A loop around a body that carries and folds nothing.
    pub fn counted(&mut self, kind: Kind, var: Value, count: Size, body: Vec<Stmt>) {
        match kind {
            Kind::Serial => self.serial(var, count, Vec::new(), body),
            Kind::Lanes => self.lanes(var, count, Vec::new(), body),
        }
    }

    /// A loop around a body, one iteration after the other.
    pub fn serial(&mut self, var: Value, count: impl Into<Size>, carried: Vec<Carried>, body: Vec<Stmt>) {
        let count = count.into();
        self.ranges().below(var, count);
        let count = self.count(count);
        self.push(Stmt::Loop(Box::new(Loop { var, count, kind: Kind::Serial, carried, folds: Vec::new(), body })));
    }

    /// A loop around a body in vector lanes.
    pub fn lanes(&mut self, var: Value, count: impl Into<Size>, folds: Vec<Fold>, body: Vec<Stmt>) {
        let count = count.into();
        self.ranges().below(var, count);
        let count = self.count(count);
        self.lanes_of(var, count, folds, body);
    }

    /// A loop of lanes whose count is a scalar; how far its variable goes is the caller's business.
    pub fn lanes_of(&mut self, var: Value, count: Int, folds: Vec<Fold>, body: Vec<Stmt>) {
        self.push(Stmt::Loop(Box::new(Loop { var, count, kind: Kind::Lanes, carried: Vec::new(), folds, body })));
    }

    /// The statements that read the sizes, and which expressions they are.
    pub fn take_sizes(&mut self) -> Vec<Stmt> {
        let mut all: Vec<(u32, Value)> = self.sizes.drain().collect();
        all.sort_unstable();
        all.into_iter().map(|(n, v)| Stmt::Let(v, Expr::Size(n))).collect()
    }

    /// A value as another type.
    pub fn convert(&mut self, v: Value, to: Ty) -> Value {
        if self.ty(v) == to { v } else { self.op(Op::Convert(to), &[v]) }
    }
}

fn math(name: &str) -> Option<Math> {
    Some(match name {
        "exp" => Math::Exp,
        "expm1" => Math::Expm1,
        "log" => Math::Log,
        "log1p" => Math::Log1p,
        "tanh" => Math::Tanh,
        "logistic" => Math::Logistic,
        "sin" => Math::Sin,
        "cos" => Math::Cos,
        "tan" => Math::Tan,
        "asin" => Math::Asin,
        "acos" => Math::Acos,
        "atan" => Math::Atan,
        "atan2" => Math::Atan2,
        "sinh" => Math::Sinh,
        "cosh" => Math::Cosh,
        "asinh" => Math::Asinh,
        "acosh" => Math::Acosh,
        "atanh" => Math::Atanh,
        "cbrt" => Math::Cbrt,
        "erf" => Math::Erf,
        "erfc" => Math::Erfc,
        "pow" => Math::Pow,
        "rsqrt" => Math::Rsqrt,
        _ => return None,
    })
}

fn direct(name: &str) -> Option<Op> {
    Some(match name {
        "add" => Op::Add,
        "sub" => Op::Sub,
        "mul" => Op::Mul,
        "div" => Op::Div,
        "max" => Op::Max,
        "min" => Op::Min,
        "neg" => Op::Neg,
        "abs" => Op::Abs,
        "sqrt" => Op::Sqrt,
        "floor" => Op::Floor,
        "ceil" => Op::Ceil,
        "round" => Op::Round,
        "trunc" => Op::Trunc,
        "not" => Op::Not,
        "popcount" => Op::Popcount,
        "count_leading_zeros" => Op::LeadingZeros,
        "and" => Op::And,
        "or" => Op::Or,
        "xor" => Op::Xor,
        "shift_left" => Op::Shl,
        "shift_right_logical" => Op::Shr,
        "shift_right_arithmetic" => Op::Sar,
        "select" => Op::Select,
        "mul_add" => Op::Fma,
        "erf_inv" => Op::Special(Special::ErfInv),
        "lgamma" => Op::Special(Special::Lgamma),
        "digamma" => Op::Special(Special::Digamma),
        "nextafter" => Op::Special(Special::Nextafter),
        _ => return None,
    })
}

/// Primitives whose scalar form [`elementwise`] knows, for operands of this type. `to` is the type of the result.
pub(super) fn is_elementwise(op: &Primitive, from: &[Ty], to: Ty) -> bool {
    let Some(&ty) = from.first() else { return false };
    match op.name() {
        "pow" => ty.is_float(),
        "bitcast" => ty.size() == to.size() && (ty == Ty::Bool) == (to == Ty::Bool),
        "rem" | "sign" | "integer_pow" | "polygamma" | "is_finite" | "compare" | "clamp" | "convert"
        | "stop_gradient" | "name" => true,
        name => direct(name).is_some() || math(name).is_some(),
    }
}

/// About how many nanoseconds an element of a primitive takes on one core, in wide vectors.
pub(super) fn cost(op: &Primitive) -> f32 {
    match op.name() {
        "pow" | "tan" | "asin" | "acos" | "atan2" | "sinh" | "cosh" | "asinh" | "acosh" | "atanh" | "cbrt" => 4.0,
        "erf_inv" | "lgamma" | "digamma" | "polygamma" | "nextafter" => 40.0,
        "div" | "sqrt" | "rsqrt" | "rem" => 0.6,
        name if math(name).is_some() => 1.2,
        _ => 0.08,
    }
}

/// Whether recomputing it costs more than reading it back from memory.
pub(super) fn is_expensive(op: &Primitive) -> bool {
    cost(op) > 0.5
}

/// The scalar form of a primitive. Called only where [`is_elementwise`] holds.
pub(super) fn elementwise(e: &mut Emitter, op: &Primitive, args: &[Value], to: Ty) -> Value {
    let ty = e.ty(args[0]);
    match op.name() {
        "stop_gradient" | "name" => args[0],
        "convert" => match op.downcast::<Convert>() {
            Some(_) => e.convert(args[0], to),
            None => args[0],
        },
        "bitcast" if op.is::<Bitcast>() && ty == to => args[0],
        "bitcast" => e.op(Op::Bitcast(to), args),
        "rem" if ty.is_float() => e.op(Op::Special(Special::FloatRem), args),
        "rem" => e.op(Op::Rem, args),
        // -1, 0 or 1; a float's zero keeps its sign and NaN stays.
        "sign" => {
            let (zero, plus, minus) = (e.number(ty, 0.0), e.number(ty, 1.0), e.number(ty, -1.0));
            let above = e.op(Op::Lt, &[zero, args[0]]);
            let below = e.op(Op::Lt, &[args[0], zero]);
            let low = e.op(Op::Select, &[below, minus, args[0]]);
            e.op(Op::Select, &[above, plus, low])
        }
        "integer_pow" => integer_pow(e, args[0], op.downcast::<IntegerPow>().map_or(1, |p| p.exponent)),
        "polygamma" => {
            let order = op.downcast::<Polygamma>().map_or(1, |p| p.order);
            e.op(Op::Special(Special::Polygamma(order)), args)
        }
        "is_finite" => {
            let size = e.op(Op::Abs, args);
            let infinity = e.number(ty, f64::INFINITY);
            e.op(Op::Lt, &[size, infinity])
        }
        "compare" => {
            let (a, b) = (args[0], args[1]);
            match op.downcast::<Compare>().map(|c| c.direction) {
                Some(Direction::Ne) => e.op(Op::Ne, &[a, b]),
                Some(Direction::Lt) => e.op(Op::Lt, &[a, b]),
                Some(Direction::Le) => e.op(Op::Le, &[a, b]),
                Some(Direction::Gt) => e.op(Op::Lt, &[b, a]),
                Some(Direction::Ge) => e.op(Op::Le, &[b, a]),
                _ => e.op(Op::Eq, &[a, b]),
            }
        }
        "clamp" => {
            let low = e.op(Op::Max, &[args[1], args[0]]);
            e.op(Op::Min, &[low, args[2]])
        }
        name => match (direct(name), math(name)) {
            (Some(op), _) => e.op(op, args),
            (None, Some(m)) => e.op(Op::Math(m), args),
            (None, None) => args[0],
        },
    }
}

/// Repeated squaring in the order of the interpreter, so that the bits are the same.
fn integer_pow(e: &mut Emitter, x: Value, exponent: i64) -> Value {
    let ty = e.ty(x);
    let (mut base, mut n, mut product) = (x, exponent.unsigned_abs(), None);
    while n > 0 {
        if n & 1 == 1 {
            product = Some(product.map_or(base, |p| e.op(Op::Mul, &[p, base])));
        }
        n >>= 1;
        if n > 0 {
            base = e.op(Op::Mul, &[base, base]);
        }
    }
    let power = match product {
        Some(p) => p,
        None => e.constant(ty, one(ty)),
    };
    if exponent < 0 {
        let unit = e.constant(ty, one(ty));
        return e.op(Op::Div, &[unit, power]);
    }
    power
}
