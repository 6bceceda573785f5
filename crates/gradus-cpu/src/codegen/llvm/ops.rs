//! Every operation of the kernel language as LLVM instructions, on scalars and on vectors alike.

use crate::error::{Result, fail};
use crate::ir::{Function, Math, Op, Special, Ty};
use crate::runtime::special;

use super::emit::{CONVENTION, Emitter};
use super::text::{Operand, Shape, Suffix, int, scalar_name, stored};

/// Writes an instruction that has a result, and gives its name.
macro_rules! put {
    ($this:expr, $($format:tt)+) => {{
        let name = $this.fresh();
        $this.f.text.line(format_args!("%t{name} = {}", format_args!($($format)+)));
        $crate::codegen::llvm::text::Operand::Name(name)
    }};
}
/// Writes a line without a result.
macro_rules! line {
    ($this:expr, $($format:tt)+) => { $this.f.text.line(format_args!($($format)+)) };
}
pub(super) use {line, put};

impl Emitter<'_> {
    /// A call of an intrinsic whose operands have one shape, which the result has too.
    fn intrinsic(&mut self, name: &str, shape: Shape, args: &[Operand]) -> Operand {
        let suffix = Suffix(shape);
        let types = vec![shape.to_string(); args.len()].join(", ");
        self.declare(format!("declare {shape} @llvm.{name}.{suffix}({types})"));
        let args: Vec<String> = args.iter().map(|a| format!("{shape} {a}")).collect();
        put!(self, "call {shape} @llvm.{name}.{suffix}({})", args.join(", "))
    }

    /// A constant in all lanes.
    pub(super) fn constant(&mut self, shape: Shape, bits: u64) -> Operand {
        match shape.lanes {
            1 => Operand::Literal(shape.ty, bits),
            _ if bits == 0 => Operand::Zero,
            _ => self.splat_literal(shape, bits),
        }
    }

    /// One operation. The operands have as many lanes as the result.
    pub(super) fn op(&mut self, op: Op, types: &[Ty], args: &[Operand], lanes: u32) -> Result<Operand> {
        let ty = types[0];
        let s = Shape { ty, lanes };
        let a = args[0];
        let b = args.get(1).copied().unwrap_or(a);
        Ok(match op {
            Op::Select => {
                put!(self, "select {s} {a}, {t} {b}, {t} {}", args[2], t = s.with(types[1]))
            }
            Op::Convert(to) => self.convert(ty, to, a, lanes),
            Op::Bitcast(to) => match (ty, to) {
                (from, to) if from == to => a,
                (_, Ty::Bool) => {
                    let zero = self.constant(s, 0);
                    put!(self, "icmp ne {s} {a}, {zero}")
                }
                (Ty::Bool, to) => put!(self, "zext {s} {a} to {}", s.with(to)),
                (from, to) if from.is_int() && to.is_int() => a,
                (_, to) => put!(self, "bitcast {s} {a} to {}", s.with(to)),
            },
            Op::Eq | Op::Ne | Op::Lt | Op::Le => {
                let how = match (op, ty) {
                    (Op::Eq, t) if t.is_float() => "fcmp oeq",
                    (Op::Ne, t) if t.is_float() => "fcmp une",
                    (Op::Lt, t) if t.is_float() => "fcmp olt",
                    (_, t) if t.is_float() => "fcmp ole",
                    (Op::Eq, _) => "icmp eq",
                    (Op::Ne, _) => "icmp ne",
                    (Op::Lt, t) if t.is_signed() => "icmp slt",
                    (Op::Lt, _) => "icmp ult",
                    (_, t) if t.is_signed() => "icmp sle",
                    _ => "icmp ule",
                };
                put!(self, "{how} {s} {a}, {b}")
            }
            Op::Math(_) => fail!(Rule, "{op} is not expanded"),
            Op::Special(_) => fail!(Rule, "{op} is no plain operation"),
            _ if ty.is_float() => self.float(op, s, args),
            _ => self.integer(op, s, a, b),
        })
    }

    fn float(&mut self, op: Op, s: Shape, args: &[Operand]) -> Operand {
        let plain = match op {
            Op::Add => "fadd",
            Op::Sub => "fsub",
            Op::Mul => "fmul",
            Op::Div => "fdiv",
            _ => "",
        };
        let a = args[0];
        self.divides |= op == Op::Div && s.lanes == 1;
        match op {
            Op::Add | Op::Sub | Op::Mul | Op::Div => put!(self, "{plain} {s} {a}, {}", args[1]),
            Op::Lesser | Op::Greater => {
                let how = if op == Op::Lesser { "olt" } else { "ogt" };
                let b = args[1];
                let c = put!(self, "fcmp {how} {s} {a}, {b}");
                put!(self, "select {c_ty} {c}, {s} {a}, {s} {b}", c_ty = s.with(Ty::Bool))
            }
            Op::Neg => put!(self, "fneg {s} {a}"),
            Op::Abs => self.intrinsic("fabs", s, args),
            Op::Fma => self.intrinsic("fma", s, args),
            Op::Sqrt => self.intrinsic("sqrt", s, args),
            Op::Floor => self.intrinsic("floor", s, args),
            Op::Ceil => self.intrinsic("ceil", s, args),
            Op::Round => self.intrinsic("roundeven", s, args),
            Op::Trunc => self.intrinsic("trunc", s, args),
            Op::Max => self.intrinsic("maximum", s, args),
            _ => self.intrinsic("minimum", s, args),
        }
    }

    fn integer(&mut self, op: Op, s: Shape, a: Operand, b: Operand) -> Operand {
        let ty = s.ty;
        let bits = ty.size() as u64 * 8;
        let all = u64::MAX >> (64 - bits);
        let bools = s.with(Ty::Bool);
        let sign = if ty.is_signed() { 's' } else { 'u' };
        match op {
            Op::Add => put!(self, "add {s} {a}, {b}"),
            Op::Sub => put!(self, "sub {s} {a}, {b}"),
            Op::Mul => put!(self, "mul {s} {a}, {b}"),
            // The machine traps where the language has an answer: such divisors become one, and the answer is put in.
            Op::Div | Op::Rem => {
                let (zero, one) = (self.constant(s, 0), self.constant(s, 1));
                let by_zero = put!(self, "icmp eq {s} {b}, {zero}");
                let mut bad = by_zero;
                if ty.is_signed() {
                    let (lowest, minus) = (self.constant(s, 1 << (bits - 1)), self.constant(s, all));
                    let low = put!(self, "icmp eq {s} {a}, {lowest}");
                    let by_minus = put!(self, "icmp eq {s} {b}, {minus}");
                    let wraps = put!(self, "and {bools} {low}, {by_minus}");
                    bad = put!(self, "or {bools} {by_zero}, {wraps}");
                }
                let by = put!(self, "select {bools} {bad}, {s} {one}, {s} {b}");
                let result = match s.lanes > 1 && ty.size() < 8 && !self.is_constant(b) {
                    true => self.divide_as_floats(op, s, a, by),
                    false => put!(self, "{sign}{} {s} {a}, {by}", if op == Op::Div { "div" } else { "rem" }),
                };
                let otherwise = if op == Op::Div { self.constant(s, all) } else { a };
                put!(self, "select {bools} {by_zero}, {s} {otherwise}, {s} {result}")
            }
            Op::Neg => {
                let zero = self.constant(s, 0);
                put!(self, "sub {s} {zero}, {a}")
            }
            Op::Abs if !ty.is_signed() => a,
            Op::Abs => self.flagged("abs", s, a),
            Op::Rotl => self.intrinsic("fshl", s, &[a, a, b]),
            Op::Popcount => self.intrinsic("ctpop", s, &[a]),
            Op::LeadingZeros => self.flagged("ctlz", s, a),
            Op::Max | Op::Min => {
                let which = if op == Op::Max { "max" } else { "min" };
                self.intrinsic(&format!("{sign}{which}"), s, &[a, b])
            }
            Op::And => put!(self, "and {s} {a}, {b}"),
            Op::Or => put!(self, "or {s} {a}, {b}"),
            Op::Xor => put!(self, "xor {s} {a}, {b}"),
            Op::Not => {
                let ones = self.constant(s, if ty == Ty::Bool { 1 } else { all });
                put!(self, "xor {s} {a}, {ones}")
            }
            // Counts are compared without sign: a negative one is too large as well.
            Op::Shl | Op::Shr => {
                let (width, zero) = (self.constant(s, bits), self.constant(s, 0));
                let fits = put!(self, "icmp ult {s} {b}, {width}");
                let name = if op == Op::Shl { "shl" } else { "lshr" };
                let shifted = put!(self, "{name} {s} {a}, {b}");
                put!(self, "select {bools} {fits}, {s} {shifted}, {s} {zero}")
            }
            // `Sar` is the last one that takes integers.
            _ => {
                let most = self.constant(s, bits - 1);
                let by = self.intrinsic("umin", s, &[b, most]);
                put!(self, "ashr {s} {a}, {by}")
            }
        }
    }

    /// The quotient or remainder of vectors, where no machine divides integers but all divide floats. It is exact: the
    /// quotient of integers of n bits is further from the next integer than 2^-n of itself, and the float has more bits.
    fn divide_as_floats(&mut self, op: Op, s: Shape, a: Operand, b: Operand) -> Operand {
        let f = s.with(if s.ty.size() < 4 { Ty::F32 } else { Ty::F64 });
        let sign = if s.ty.is_signed() { 's' } else { 'u' };
        let (x, y) = (put!(self, "{sign}itofp {s} {a} to {f}"), put!(self, "{sign}itofp {s} {b} to {f}"));
        let q = put!(self, "fdiv {f} {x}, {y}");
        let q = put!(self, "fpto{sign}i {f} {q} to {s}");
        if op == Op::Div {
            return q;
        }
        let back = put!(self, "mul {s} {q}, {b}");
        put!(self, "sub {s} {a}, {back}")
    }

    /// `llvm.abs` and `llvm.ctlz`, whose flag says that no operand is special.
    fn flagged(&mut self, name: &str, s: Shape, a: Operand) -> Operand {
        self.declare(format!("declare {s} @llvm.{name}.{}({s}, i1 immarg)", Suffix(s)));
        put!(self, "call {s} @llvm.{name}.{}({s} {a}, i1 false)", Suffix(s))
    }

    fn convert(&mut self, from: Ty, to: Ty, a: Operand, lanes: u32) -> Operand {
        let (f, t) = (Shape { ty: from, lanes }, Shape { ty: to, lanes });
        match (from, to) {
            _ if from == to => a,
            (_, Ty::Bool) => {
                let zero = self.constant(f, 0);
                let how = if from.is_float() { "fcmp une" } else { "icmp ne" };
                put!(self, "{how} {f} {a}, {zero}")
            }
            (Ty::Bool, _) if to.is_float() => {
                let (one, zero) = (self.constant(t, crate::ir::one(to)), self.constant(t, 0));
                put!(self, "select {f} {a}, {t} {one}, {t} {zero}")
            }
            (Ty::F32, Ty::F64) => put!(self, "fpext {f} {a} to {t}"),
            (Ty::F64, Ty::F32) => put!(self, "fptrunc {f} {a} to {t}"),
            _ if from.is_float() && lanes > 1 => self.saturate(f, t, a),
            _ if from.is_float() => {
                let name = if to.is_signed() { "fptosi.sat" } else { "fptoui.sat" };
                let suffix = format!("{}.{}", Suffix(t), Suffix(f));
                self.declare(format!("declare {t} @llvm.{name}.{suffix}({f})"));
                put!(self, "call {t} @llvm.{name}.{suffix}({f} {a})")
            }
            _ if to.is_float() => {
                let how = if from.is_signed() { "sitofp" } else { "uitofp" };
                put!(self, "{how} {f} {a} to {t}")
            }
            _ if from.size() == to.size() && from != Ty::Bool => a,
            _ if from.size() > to.size() => put!(self, "trunc {f} {a} to {t}"),
            _ if from.is_signed() => put!(self, "sext {f} {a} to {t}"),
            _ => put!(self, "zext {f} {a} to {t}"),
        }
    }

    /// Floats to integers in vectors. LLVM has an intrinsic for it, and writes it lane by lane.
    fn saturate(&mut self, f: Shape, t: Shape, a: Operand) -> Operand {
        let bits = |v: f64| if f.ty == Ty::F32 { u64::from((v as f32).to_bits()) } else { v.to_bits() };
        let width = t.ty.size() as i32 * 8;
        let (signed, bools) = (t.ty.is_signed(), t.with(Ty::Bool));
        // Both are powers of two (or zero), so floats have them exactly; what lies between becomes an integer that fits.
        let (low, high) = match signed {
            true => (-2f64.powi(width - 1), 2f64.powi(width - 1)),
            false => (0.0, 2f64.powi(width)),
        };
        let all = u64::MAX >> (64 - width);
        let (least, most) = if signed { (1 << (width - 1), all >> 1) } else { (0, all) };
        let (low, high) = (self.constant(f, bits(low)), self.constant(f, bits(high)));
        let from_low = put!(self, "fcmp oge {f} {a}, {low}");
        let above = put!(self, "fcmp oge {f} {a}, {high}");
        let below_high = put!(self, "fcmp olt {f} {a}, {high}");
        let fits = put!(self, "and {bools} {from_low}, {below_high}");
        // A NaN fits nowhere, and is not above: it becomes 0.
        let zero = self.constant(f, 0);
        let safe = put!(self, "select {bools} {fits}, {f} {a}, {f} {zero}");
        let mut r = put!(self, "fpto{}i {f} {safe} to {t}", if signed { 's' } else { 'u' });
        let most = self.constant(t, most);
        r = put!(self, "select {bools} {above}, {t} {most}, {t} {r}");
        if signed {
            let below = put!(self, "fcmp olt {f} {a}, {low}");
            let least = self.constant(t, least);
            r = put!(self, "select {bools} {below}, {t} {least}, {t} {r}");
        }
        r
    }

    /// A function of compiled Rust for all lanes, or for the first `active` of them. `Rare` looks at its guard first.
    pub(super) fn special(&mut self, which: Special, s: Shape, args: &[Operand]) -> Operand {
        let guard = match which {
            Special::Rare(_) => args.get(2).copied(),
            _ => None,
        };
        let Some(guard) = guard else { return self.call_special(which, s, args) };
        let some = match s.lanes {
            1 => guard,
            n => {
                let bits = put!(self, "bitcast {} {guard} to i{n}", s.with(Ty::Bool));
                put!(self, "icmp ne i{n} {bits}, 0")
            }
        };
        let (rare, after) = (self.label(), self.label());
        let before = self.f.block;
        line!(self, "br i1 {some}, label %L{rare}, label %L{after}, !prof !4");
        self.start(rare);
        let result = self.call_special(which, s, args);
        let called = self.f.block;
        line!(self, "br label %L{after}");
        self.start(after);
        // Where no guard is set nothing looks at the result; a defined value keeps it harmless.
        put!(self, "phi {s} [ {}, %L{before} ], [ {result}, %L{called} ]", args[0])
    }

    fn call_special(&mut self, which: Special, s: Shape, args: &[Operand]) -> Operand {
        let (field, code) = special::entry(which, s.ty);
        let align = s.ty.size() * s.lanes as usize;
        let a = self.slot(0, align);
        line!(self, "store {s} {}, ptr {a}, align {}", args[0], align.min(64));
        let b = match which {
            _ if args.len() > 1 => {
                let b = self.slot(1, align);
                line!(self, "store {s} {}, ptr {b}, align {}", args[1], align.min(64));
                b
            }
            _ => a.clone(),
        };
        let n = s.lanes;
        let f = self.of_context(field as usize);
        line!(self, "call {CONVENTION}void {f}(ptr {a}, ptr {a}, ptr {b}, i64 {n}, i64 {code}) #2");
        put!(self, "load {s}, ptr {a}, align {}", align.min(64))
    }

    /// Writes an elementary function.
    pub(super) fn define_elementary(&mut self, number: usize, f: &Function) -> Result<()> {
        let ty = scalar_name(f.ty);
        let mut params = vec!["ptr %context".to_string()];
        for v in &f.params {
            let p = self.fresh();
            params.push(format!("{ty} %t{p}"));
            self.scalars[v.index()] = Operand::Name(p);
        }
        f.body.iter().try_for_each(|s| self.stmt(s))?;
        let result = self.scalars[f.result.index()];
        line!(self, "ret {ty} {result}");
        let head = format!("define internal fastcc {ty} @function{number}({}) #0 noinline", params.join(", "));
        self.finish(&head);
        Ok(())
    }

    /// Calls an elementary function of the module.
    pub(super) fn elementary(&mut self, of: Math, ty: Ty, args: &[Operand]) -> Result<Operand> {
        let Some(number) = self.module.function(of, ty) else { fail!(Rule, "{} is not expanded", Op::Math(of)) };
        let ty = scalar_name(ty);
        let args: String = args.iter().map(|a| format!(", {ty} {a}")).collect();
        Ok(put!(self, "call fastcc {ty} @function{number}(ptr %context{args}) #1"))
    }

    /// A value as it is stored: bools as bytes.
    pub(super) fn pack(&mut self, s: Shape, a: Operand) -> Operand {
        match s.ty {
            Ty::Bool => put!(self, "zext {s} {a} to {}", s.with(stored(s.ty))),
            _ => a,
        }
    }

    /// A value from memory: bytes as bools.
    pub(super) fn unpack(&mut self, s: Shape, a: Operand) -> Operand {
        match s.ty {
            Ty::Bool => {
                put!(self, "icmp ne {} {a}, {}", s.with(Ty::U8), if s.lanes == 1 { int(0) } else { Operand::Zero })
            }
            _ => a,
        }
    }
}
