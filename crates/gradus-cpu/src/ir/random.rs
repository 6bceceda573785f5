//! Random modules: what every code generator is held against the evaluator with.
//!
//! All of the language but library calls comes up, over memory full of numbers that break things. A module stays inside its
//! buffers, its loops end, and the iterations it calls independent are: where they run at once, each target buffer is only
//! touched inside a `Window` of the iteration's own. NaNs have no bits here: nothing reads them as an integer, because
//! which NaN an operation gives is not part of the language.

mod nests;

use crate::error::Result;
use gradus_core::math::Rare;
use smallvec::{SmallVec, smallvec};

use super::{Buffer, BufferInfo, Expr, Index, Int, Kernel, Memory, Module, Op, Role, Special, Stmt, Ty, Value};

/// All types.
pub const TYPES: [Ty; 11] =
    [Ty::Bool, Ty::I8, Ty::I16, Ty::I32, Ty::I64, Ty::U8, Ty::U16, Ty::U32, Ty::U64, Ty::F32, Ty::F64];

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n` (0 if `n` is 0).
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 11) as usize % n.max(1)
    }

    /// True in so many of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What comes up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The types of values; each module takes a few of them (and `i64` and `bool` always).
    pub types: Vec<Ty>,
    /// Calls of compiled Rust.
    pub specials: bool,
    /// What no one should write but the language allows: counts of inner loops and strides that differ between lanes.
    pub odd: bool,
    /// Loops that do not fill lanes, switches and the like in the main body.
    pub control: bool,
    /// About how many statements a body has.
    pub statements: usize,
}

impl Default for Config {
    fn default() -> Config {
        Config { types: TYPES.to_vec(), specials: true, odd: true, control: true, statements: 10 }
    }
}

/// A module by its seed, with the memory it begins with.
pub fn module(seed: u64, config: &Config) -> (Module, Memory) {
    let mut rng = Rng(seed);
    let mut types = vec![Ty::I64, Ty::Bool];
    for _ in 0..rng.below(4) + 1 {
        let ty = rng.pick(&config.types);
        // Floats twice as often as chance has them.
        let ty = if rng.chance(40) { if rng.chance(50) { Ty::F32 } else { Ty::F64 } } else { ty };
        if config.types.contains(&ty) && !types.contains(&ty) {
            types.push(ty);
        }
    }
    let mut g = Generator {
        m: Module { name: format!("random{seed}"), ..Module::default() },
        memory: Memory::default(),
        config: config.clone(),
        rng,
        types,
        scope: Vec::new(),
        known: Vec::new(),
        vars: Vec::new(),
        windows: None,
        lane: None,
        varying: Vec::new(),
        work: 1,
    };
    g.memory();
    let mut main = Vec::new();
    for i in 0..g.m.sizes {
        let v = g.emit(&mut main, Ty::I64, Expr::Size(i));
        g.known.push((v, g.memory.sizes[i as usize]));
    }
    g.main_body(&mut main, 0);
    g.keep(&mut main, 12);
    g.m.main = main;
    (g.m, g.memory)
}

/// A constant of a type: something that breaks things, or something plain.
fn number(rng: &mut Rng, ty: Ty, tame: bool) -> u64 {
    const F: [f64; 40] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        -1.5,
        2.5,
        -2.5,
        3.0,
        0.1,
        127.5,
        128.0,
        -128.5,
        255.5,
        256.0,
        32767.5,
        65535.9,
        8388607.5,
        8388609.0,
        16777217.0,
        2147483648.0,
        -2147483649.0,
        4294967296.0,
        4503599627370497.5,
        9007199254740993.0,
        9223372036854775808.0,
        -9223372036854775808.0,
        18446744073709551616.0,
        1e30,
        -1e30,
        1e-30,
        3.4028235677973366e38,
        1e300,
        -1e300,
        1e-300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let plain = (rng.bits() >> 40) as f64 / (1u64 << 24) as f64 * 8.0 - 4.0;
    match ty {
        Ty::F32 if tame => u64::from((plain as f32).to_bits()),
        Ty::F64 if tame => plain.to_bits(),
        Ty::F32 => u64::from(match rng.below(8) {
            0..=2 => (plain as f32).to_bits(),
            3 => rng.pick(&[
                1,
                0x8000_0001,
                0x007f_ffff,
                0x0080_0000,
                0x7f7f_ffff,
                0xff7f_ffff,
                0x3f80_0001,
                0x3f7f_ffff,
            ]),
            4 => rng.bits() as u32,
            5 => (rng.bits() as i64 as f32).to_bits(),
            _ => (rng.pick(&F) as f32).to_bits(),
        }),
        Ty::F64 => match rng.below(8) {
            0..=2 => plain.to_bits(),
            3 => rng.pick(&[1, 1 << 63 | 1, (1 << 52) - 1, 1 << 52, 0x7fef_ffff_ffff_ffff, 0x3ff0_0000_0000_0001]),
            4 => rng.bits(),
            5 => (rng.bits() as i64 as f64).to_bits(),
            _ => rng.pick(&F).to_bits(),
        },
        Ty::Bool => rng.bits() & 1,
        ty => {
            let width = ty.size() * 8;
            let mask = u64::MAX >> (64 - width);
            mask & match rng.below(8) {
                0..=2 => (rng.below(9) as i64 - 2) as u64,
                3 => 1 << (width - 1),
                4 => (1 << (width - 1)) - 1,
                5 => u64::MAX,
                6 => rng.pick(&[
                    7,
                    8,
                    9,
                    15,
                    16,
                    31,
                    32,
                    33,
                    63,
                    64,
                    100,
                    0x0100_0001,
                    0x20_0000_0000_0001,
                    u64::MAX << 10,
                ]),
                _ => rng.bits(),
            }
        }
    }
}

/// Elements of a buffer that belong to one iteration: `base .. base + width`.
#[derive(Clone)]
struct Window {
    buffer: Buffer,
    base: Index,
    width: usize,
}

struct Generator {
    m: Module,
    memory: Memory,
    config: Config,
    rng: Rng,
    types: Vec<Ty>,
    scope: Vec<Value>,
    /// Visible `i64`s whose number is known here.
    known: Vec<(Value, i64)>,
    /// Counters of the loops around, with a bound of their count.
    vars: Vec<(Value, usize)>,
    /// Inside iterations that are independent: the buffers that may be written, and where. All others are only read.
    windows: Option<Vec<Window>>,
    /// Inside a loop of lanes: the length of the scope at its begin.
    lane: Option<usize>,
    /// Whether a value may differ between lanes. Grows with the values.
    varying: Vec<bool>,
    /// How often what stands here is done.
    work: usize,
}

impl Generator {
    fn memory(&mut self) {
        for _ in 0..self.rng.below(3) + 1 {
            self.memory.sizes.push(self.rng.pick(&[0, 1, 2, 3, 5, 16, 31, 32, 33, 100, 1000]));
            self.m.sizes += 1;
        }
        let mut number_of = [0u32; 3];
        for ty in self.types.clone() {
            let len = self.rng.pick(&[1040, 2100, 3200]);
            for len in [len, len, len, self.rng.pick(&[40, 65, 300])] {
                let tame = self.rng.chance(50);
                let mut bytes = Vec::with_capacity(len * ty.size());
                for _ in 0..len {
                    bytes.extend_from_slice(&number(&mut self.rng, ty, tame).to_le_bytes()[..ty.size()]);
                }
                self.memory.buffers.push(bytes);
                let kind = self.rng.below(4);
                let role = match kind {
                    0 => Role::Input(number_of[0]),
                    1 => Role::Output(number_of[1]),
                    2 => Role::Constant(number_of[2]),
                    _ => Role::Scratch,
                };
                number_of.get_mut(kind).into_iter().for_each(|n| *n += 1);
                self.m.buffers.push(BufferInfo { ty, role });
            }
        }
    }

    fn len(&self, b: Buffer) -> usize {
        self.memory.buffers[b.index()].len() / self.m.buffers[b.index()].ty.size()
    }

    fn ty(&mut self) -> Ty {
        // `i64` and `bool` come up by themselves.
        let k = if self.rng.chance(70) {
            2 + self.rng.below(self.types.len() - 2)
        } else {
            self.rng.below(self.types.len())
        };
        self.types.get(k).copied().unwrap_or(Ty::I64)
    }

    fn value(&mut self, ty: Ty) -> Value {
        self.varying.push(false);
        self.m.value(ty)
    }

    fn emit(&mut self, body: &mut Vec<Stmt>, ty: Ty, e: Expr) -> Value {
        let v = self.value(ty);
        self.varying[v.index()] = match &e {
            Expr::Const(bits) => {
                if ty == Ty::I64 && (-8..4000).contains(&(*bits as i64)) {
                    self.known.push((v, *bits as i64));
                }
                false
            }
            Expr::Size(_) => false,
            Expr::Op(_, args) => args.iter().any(|a| self.varying[a.index()]),
            Expr::Load(_, at) => at
                .terms
                .iter()
                .any(|(v, s)| self.varying[v.index()] || matches!(s, Int::Value(s) if self.varying[s.index()])),
        };
        body.push(Stmt::Let(v, e));
        self.scope.push(v);
        v
    }

    fn constant(&mut self, body: &mut Vec<Stmt>, ty: Ty, bits: u64) -> Value {
        self.emit(body, ty, Expr::Const(bits))
    }

    fn op(&mut self, body: &mut Vec<Stmt>, op: Op, args: &[Value]) -> Value {
        let types: Vec<Ty> = args.iter().map(|a| self.m.ty(*a)).collect();
        self.emit(body, op.result(&types), Expr::Op(op, args.into()))
    }

    /// A visible value of a type, the later the likelier, or a new constant.
    fn operand(&mut self, body: &mut Vec<Stmt>, ty: Ty) -> Value {
        let all: Vec<Value> = self.scope.iter().copied().filter(|v| self.m.ty(*v) == ty).collect();
        if all.is_empty() || self.rng.chance(12) {
            let bits = number(&mut self.rng, ty, false);
            return self.constant(body, ty, bits);
        }
        let back = self.rng.below(all.len()).min(self.rng.below(all.len()));
        all[all.len() - 1 - back]
    }

    /// A number, perhaps as a value.
    fn int(&mut self, n: i64) -> Int {
        match self.known.iter().rfind(|(_, k)| *k == n) {
            Some((v, _)) if self.rng.chance(30) => Int::Value(*v),
            _ => Int::Const(n),
        }
    }

    /// A place in `len` elements: the counters around in some strides.
    fn affine(&mut self, body: &mut Vec<Stmt>, len: usize) -> Index {
        if self.rng.chance(12) {
            // By a computed number.
            let mut v = self.operand(body, Ty::I64);
            if self.rng.chance(50) {
                let n = self.constant(body, Ty::I64, len as u64);
                v = self.op(body, Op::Rem, &[v, n]);
                v = self.op(body, Op::Abs, &[v]);
            } else {
                let lowest = self.constant(body, Ty::I64, 0);
                v = self.op(body, Op::Max, &[v, lowest]);
                let highest = self.constant(body, Ty::I64, len as u64 - 1);
                v = self.op(body, Op::Min, &[v, highest]);
            }
            return Index::at(0).plus(v, 1);
        }
        let mut rest = len as i64 - 1;
        let mut at = Index::at(0);
        for k in (0..self.vars.len()).rev() {
            let (var, count) = self.vars[k];
            let span = count.max(1) as i64 - 1;
            let row = self.rng.below(130) as i64;
            let stride = self.rng.pick(&[1, 1, 1, 1, 2, 3, -1, -1, -2, 0, row]);
            if stride == 0 || stride.abs() * span > rest || self.rng.chance(10) {
                continue;
            }
            rest -= stride.abs() * span;
            at.offset += (-stride).max(0) * span;
            let stride = self.int(stride);
            if self.config.odd && stride == Int::Const(1) && self.rng.chance(3) {
                // The stride varies, the value does not.
                let one = self.constant(body, Ty::I64, 1);
                at = at.plus(one, var);
            } else {
                at = at.plus(var, stride);
            }
        }
        at.offset += match self.rng.below(3) {
            0 => 0,
            1 => rest,
            _ => self.rng.below(rest as usize + 1) as i64,
        };
        self.shift(at)
    }

    /// The same place with a part of the offset as a value.
    fn shift(&mut self, mut at: Index) -> Index {
        if self.rng.chance(20) && !self.known.is_empty() {
            let (v, n) = self.rng.pick(&self.known);
            if at.terms.iter().all(|(t, _)| *t != v) {
                at.offset -= n;
                at.terms.push((v, Int::Const(1)));
            }
        }
        at
    }

    fn buffer(&mut self, ty: Ty) -> Buffer {
        let all: Vec<u32> = (0..self.m.buffers.len() as u32).filter(|b| self.m.buffers[*b as usize].ty == ty).collect();
        Buffer(self.rng.pick(&all))
    }

    /// Where in a buffer this iteration may read (or write). None: nowhere.
    fn place(&mut self, body: &mut Vec<Stmt>, b: Buffer, write: bool) -> Option<Index> {
        let window = self.windows.as_ref().map(|w| w.iter().find(|w| w.buffer == b).cloned());
        match window {
            None => Some(self.affine(body, self.len(b))),
            Some(None) if write => None,
            Some(None) => Some(self.affine(body, self.len(b))),
            Some(Some(w)) if w.width == 0 => None,
            Some(Some(mut w)) => {
                w.base.offset += self.rng.below(w.width) as i64;
                Some(self.shift(w.base))
            }
        }
    }

    fn load(&mut self, body: &mut Vec<Stmt>) {
        let ty = self.ty();
        let b = self.buffer(ty);
        if let Some(at) = self.place(body, b, false) {
            self.emit(body, ty, Expr::Load(b, at));
        }
    }

    fn store(&mut self, body: &mut Vec<Stmt>) {
        let b = match &self.windows {
            Some(w) if !w.is_empty() => {
                let k = self.rng.below(w.len());
                w[k].buffer
            }
            Some(_) => return,
            None => {
                let ty = self.ty();
                self.buffer(ty)
            }
        };
        let ty = self.m.buffers[b.index()].ty;
        let last = self.scope.iter().copied().rfind(|v| self.m.ty(*v) == ty);
        let value = match last {
            Some(last) if self.rng.chance(50) => last,
            _ => self.operand(body, ty),
        };
        if let Some(at) = self.place(body, b, true) {
            body.push(Stmt::Store { buffer: b, at, value });
        }
    }

    /// Writes values of the scope to memory, so that they matter.
    fn keep(&mut self, body: &mut Vec<Stmt>, n: usize) {
        (0..n).for_each(|_| self.store(body));
    }

    /// One operation, with what it needs.
    fn compute(&mut self, body: &mut Vec<Stmt>) {
        let ty = self.ty();
        let a = self.operand(body, ty);
        match self.rng.below(10) {
            0 => {
                let to = if self.rng.chance(15) { self.rng.pick(&TYPES) } else { self.ty() };
                self.op(body, Op::Convert(to), &[a]);
                return;
            }
            1 => {
                let b = self.operand(body, ty);
                let op = self.rng.pick(&[Op::Eq, Op::Ne, Op::Lt, Op::Le]);
                self.op(body, op, &[a, b]);
                return;
            }
            2 => {
                let c = self.operand(body, Ty::Bool);
                let b = self.operand(body, ty);
                self.op(body, Op::Select, &[c, a, b]);
                return;
            }
            3 if self.rng.chance(50) => return self.bitcast(body, a),
            _ => {}
        }
        if ty.is_float() && self.config.specials && self.rng.chance(4) {
            return self.special(body, a);
        }
        let op = if ty.is_float() {
            self.rng.pick(&[
                Op::Add,
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::Mul,
                Op::Div,
                Op::Fma,
                Op::Fma,
                Op::Sqrt,
                Op::Floor,
                Op::Ceil,
                Op::Round,
                Op::Trunc,
                Op::Lesser,
                Op::Greater,
                Op::Max,
                Op::Min,
                Op::Neg,
                Op::Abs,
            ])
        } else if ty == Ty::Bool {
            self.rng.pick(&[Op::And, Op::Or, Op::Xor, Op::Not])
        } else {
            self.rng.pick(&[
                Op::Add,
                Op::Sub,
                Op::Mul,
                Op::Div,
                Op::Rem,
                Op::Neg,
                Op::Abs,
                Op::Max,
                Op::Min,
                Op::And,
                Op::Or,
                Op::Xor,
                Op::Not,
                Op::Shl,
                Op::Shr,
                Op::Sar,
                Op::Popcount,
                Op::LeadingZeros,
            ])
        };
        let mut args: SmallVec<[Value; 3]> = smallvec![a];
        while args.len() < op.arity() {
            let v = match op {
                // Counts that mean something, half of the time.
                Op::Shl | Op::Shr | Op::Sar if self.rng.chance(50) => {
                    let n = self.rng.below(ty.size() * 8 + 2) as u64;
                    self.constant(body, ty, n)
                }
                _ => self.operand(body, ty),
            };
            args.push(v);
        }
        self.op(body, op, &args);
    }

    fn bitcast(&mut self, body: &mut Vec<Stmt>, mut a: Value) {
        let ty = self.m.ty(a);
        let to: Vec<Ty> = TYPES.into_iter().filter(|t| t.size() == ty.size()).collect();
        let to = self.rng.pick(&to);
        if ty.is_float() && !to.is_float() {
            let number = self.op(body, Op::Eq, &[a, a]);
            let zero = self.constant(body, ty, 0);
            a = self.op(body, Op::Select, &[number, a, zero]);
            self.scope.pop();
        }
        self.op(body, Op::Bitcast(to), &[a]);
    }

    fn special(&mut self, body: &mut Vec<Stmt>, a: Value) {
        let ty = self.m.ty(a);
        let b = self.operand(body, ty);
        match self.rng.below(8) {
            0 => self.op(body, Op::Special(Special::ErfInv), &[a]),
            1 => self.op(body, Op::Special(Special::Lgamma), &[a]),
            2 => self.op(body, Op::Special(Special::Digamma), &[a]),
            3 => {
                let n = self.rng.below(3) as u32 + 1;
                self.op(body, Op::Special(Special::Polygamma(n)), &[a])
            }
            4 => self.op(body, Op::Special(Special::Nextafter), &[a, b]),
            5 => self.op(body, Op::Special(Special::FloatRem), &[a, b]),
            _ => {
                let guard = self.operand(body, Ty::Bool);
                let rare = self.rng.pick(&[Rare::Sin, Rare::Cos, Rare::Tan]);
                let r = self.op(body, Op::Special(Special::Rare(rare)), &[a, b, guard]);
                // Where the guard is false it has no meaning and must not be seen.
                self.scope.pop();
                self.op(body, Op::Select, &[guard, r, b])
            }
        };
    }
}

/// Whether two memories hold the same, any NaN being any NaN; if not, where.
pub fn difference(module: &Module, a: &Memory, b: &Memory) -> Option<String> {
    for (i, ((x, y), info)) in a.buffers.iter().zip(&b.buffers).zip(&module.buffers).enumerate() {
        let size = info.ty.size();
        for (k, (x, y)) in x.chunks_exact(size).zip(y.chunks_exact(size)).enumerate() {
            let nan = |bytes: &[u8]| match (info.ty, bytes) {
                (Ty::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).is_nan(),
                (Ty::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]).is_nan(),
                _ => false,
            };
            if x != y && !(nan(x) && nan(y)) {
                return Some(format!("b{i}[{k}]: {} {x:02x?} and {y:02x?}", info.ty));
            }
        }
    }
    None
}

/// The module in pieces of so many statements, with memory for what crosses them.
pub fn cut(module: Module, memory: &mut Memory, piece: usize) -> Module {
    let (module, frames) = super::cut(module, piece);
    memory.buffers.extend(frames.into_iter().map(|n| vec![0x5A; n]));
    module
}

/// A kernel that the main body runs by itself: what it finds and what it leaves, as the evaluator has it.
pub struct Alone<'a> {
    /// Which it is.
    pub kernel: &'a Kernel,
    /// Memory before it.
    pub before: Memory,
    /// The bits of its inputs.
    pub inputs: Vec<u64>,
    /// Shares of its iterations, the last first: what depends on an order shows.
    pub shares: Vec<(i64, i64)>,
    after: Memory,
    outputs: Vec<u64>,
}

/// The kernels that a main body runs by themselves.
pub fn alone<'a>(m: &'a Module, memory: &Memory) -> Result<Vec<Alone<'a>>> {
    let mut all = Vec::new();
    for (i, s) in m.main.iter().enumerate() {
        let Stmt::Kernel(k) = s else { continue };
        let kernel = &m.kernels[*k as usize];
        let (before, inputs) = until(m, memory, &m.main[..i], &kernel.inputs)?;
        let (after, outputs) = until(m, memory, &m.main[..=i], &kernel.outputs)?;
        let shares = match kernel.body.last() {
            Some(Stmt::Loop(l)) if kernel.parallel => {
                let n = match l.count {
                    Int::Const(n) => n,
                    // An input or a size, or computed of them: it is found by keeping it, too.
                    Int::Value(v) => {
                        let lets = kernel.body[..kernel.body.len() - 1].iter();
                        let main: Vec<Stmt> = m.main[..i].iter().chain(lets).cloned().collect();
                        until(m, memory, &main, &[v])?.1[0] as i64
                    }
                };
                vec![(n - n / 4, n), (n / 3, n - n / 4), (0, n / 3)]
            }
            _ => vec![(0, 0)],
        };
        all.push(Alone { kernel, before, inputs, shares, after, outputs });
    }
    Ok(all)
}

/// Memory after some statements, and the bits that values have there.
fn until(m: &Module, memory: &Memory, main: &[Stmt], keep: &[Value]) -> Result<(Memory, Vec<u64>)> {
    let (mut m, mut memory) = (Module { main: main.to_vec(), ..m.clone() }, memory.clone());
    let n = m.buffers.len();
    for v in keep {
        let (ty, buffer) = (m.ty(*v), Buffer(m.buffers.len() as u32));
        m.buffers.push(BufferInfo { ty, role: Role::Scratch });
        memory.buffers.push(vec![0; ty.size()]);
        m.main.push(Stmt::Store { buffer, at: Index::at(0), value: *v });
    }
    super::evaluate(&m, &mut memory)?;
    let bits = |bytes: Vec<u8>| {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(&bytes);
        u64::from_le_bytes(all)
    };
    let kept = memory.buffers.drain(n..).map(bits).collect();
    Ok((memory, kept))
}

impl Alone<'_> {
    /// What other code left that is not as it should be, if anything.
    pub fn difference(&self, m: &Module, memory: &Memory, outputs: &[u64]) -> Option<String> {
        let nan = |ty: Ty, bits: u64| match ty {
            Ty::F32 => f32::from_bits(bits as u32).is_nan(),
            Ty::F64 => f64::from_bits(bits).is_nan(),
            _ => false,
        };
        difference(m, &self.after, memory).or_else(|| {
            let mut given = self.kernel.outputs.iter().zip(self.outputs.iter().zip(outputs));
            let other = given.find(|(v, (a, b))| a != b && !(nan(m.ty(**v), **a) && nan(m.ty(**v), **b)));
            other.map(|(v, (a, b))| format!("{v}: {a:x} and {b:x}"))
        })
    }

    /// The kernel as text.
    pub fn text(&self, m: &Module) -> String {
        let number = m.kernels.iter().position(|k| std::ptr::eq(k, self.kernel));
        number.map_or_else(String::new, |i| super::kernel_text(m, i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{evaluate, verify};

    #[test]
    fn modules_are_valid_and_stay_in_bounds() {
        for seed in 0..200 {
            let (m, mut memory) = module(seed, &Config::default());
            if let Err(e) = verify(&m) {
                panic!("seed {seed}: {e}\n{m}");
            }
            if let Err(e) = evaluate(&m, &mut memory) {
                panic!("seed {seed}: {e}\n{m}");
            }
        }
    }

    #[test]
    fn pieces_do_the_same_and_are_short() {
        fn statements(body: &[Stmt]) -> usize {
            let inside = |s: &Stmt| match s {
                Stmt::Loop(l) => statements(&l.body),
                Stmt::While(w) => statements(&w.before) + statements(&w.body),
                Stmt::Switch(s) => s.cases.iter().map(|(b, _)| statements(b)).sum(),
                _ => 0,
            };
            body.iter().map(|s| 1 + inside(s)).sum()
        }
        let config = Config { statements: 25, ..Config::default() };
        let mut pieces = 0;
        for seed in 0..40 {
            let (m, memory) = module(seed, &config);
            let mut want = memory.clone();
            evaluate(&m, &mut want).unwrap();
            for piece in [1, 7, 40] {
                let mut have = memory.clone();
                let cut = cut(m.clone(), &mut have, piece);
                if let Err(e) = verify(&cut) {
                    panic!("seed {seed} in pieces of {piece}: {e}\n{cut}");
                }
                evaluate(&cut, &mut have).unwrap();
                if let Some(d) = difference(&m, &want, &have) {
                    panic!("seed {seed} in pieces of {piece}: {d}\n{m}\n{cut}");
                }
                // A statement reads three values at most, or is a kernel, and gives one, or is one.
                for body in &cut.pieces {
                    assert!(statements(body) <= 30 + 5 * piece, "seed {seed} in pieces of {piece}\n{cut}");
                }
                pieces += cut.pieces.len();
            }
        }
        assert!(pieces > 1000, "{pieces}");
    }
}
