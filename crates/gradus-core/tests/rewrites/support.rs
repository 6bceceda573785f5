//! How a program is held against what the optimizer makes of it, and which laws that took.

use std::collections::BTreeMap;

use gradus_core::optimize::{Exactness, for_execution, laws_applied};
use gradus_core::primitives::Op;
use gradus_core::program::{Atom, Builder, Constant};
use gradus_core::testing::canonical;
use gradus_core::{Array, DType, Location, Program, Result, Scalar, Type, interpret};

/// Whether everything is run, or the share for every day.
pub fn full() -> bool {
    std::env::var("GRADUS_REWRITES").is_ok_and(|v| v == "full")
}

/// The laws that were applied in an enumeration, each with the first expression that showed it, and how much was checked.
#[derive(Default)]
pub struct Seen {
    pub laws: BTreeMap<&'static str, String>,
    programs: usize,
    changed: usize,
    numbers: usize,
    started: Started,
}

/// When an enumeration began.
struct Started(std::time::Instant);

impl Default for Started {
    fn default() -> Started {
        Started(std::time::Instant::now())
    }
}

impl Seen {
    /// Says what was done.
    pub fn report(&self, name: &str) {
        let share = if full() { "in full" } else { "a share; GRADUS_REWRITES=full runs all" };
        let Seen { laws, programs, changed, numbers, started } = self;
        let (count, time) = (laws.len(), started.0.elapsed());
        println!(
            "{name}: {programs} programs ({share}), {changed} changed by {count} laws, {numbers} numbers compared, {time:.1?}"
        );
    }

    /// What the passes make of a program, and the laws they applied that were not seen before.
    pub fn optimized(&mut self, p: &Program, exactness: Exactness) -> (Program, Vec<&'static str>) {
        let before = laws_applied();
        let fast = for_execution(p, exactness).unwrap_or_else(|e| panic!("{e}\n{p}"));
        self.programs += 1;
        let mut new = Vec::new();
        for (law, count) in laws_applied() {
            if before.get(law) != Some(&count) && !self.laws.contains_key(law) {
                self.laws.insert(law, format!("{} => {}", line(p), line(&fast)));
                new.push(law);
            }
        }
        (fast, new)
    }

    /// Holds two programs against each other on some inputs.
    pub fn compare(&mut self, p: &Program, fast: &Program, inputs: &[Array]) {
        let run = |p: &Program| interpret(p, inputs).unwrap_or_else(|e| panic!("{e}\n{p}"));
        let (want, have) = (run(p), run(fast));
        for (k, (want, have)) in want.iter().zip(&have).enumerate() {
            assert_eq!(want.ty().ok(), have.ty().ok(), "output {k}\n{p}\n{fast}");
            let (Some(a), Some(b)) = (want.concrete(), have.concrete()) else { panic!("no numbers\n{p}") };
            for i in 0..a.count() {
                let [x, y] = [a, b].map(|c| c.scalar_at(i).unwrap());
                if canonical(x) != canonical(y) {
                    let at = |x: &Array| x.concrete().and_then(|c| c.scalar_at(i.min(c.count().checked_sub(1)?)).ok());
                    let given: Vec<Option<Scalar>> = inputs.iter().map(at).collect();
                    panic!(
                        "element {i} of output {k} is {y:?}, not {x:?}, with {given:?} in that place of the inputs\n{p}\n{fast}"
                    );
                }
            }
            self.numbers += a.count();
        }
        assert_eq!(want.len(), have.len(), "{p}\n{fast}");
    }

    /// Optimizes a program and compares on each set of inputs, if anything changed.
    pub fn check(&mut self, p: &Program, inputs: &[Vec<Array>]) -> Vec<&'static str> {
        let (fast, new) = self.optimized(p, Exactness::Exact);
        if fast != *p {
            self.changed += 1;
            inputs.iter().for_each(|set| self.compare(p, &fast, set));
        }
        new
    }
}

/// A program as one line: every value in the place where it is used. Of one that holds programs, the operations.
pub fn line(p: &Program) -> String {
    // Nor is a tree of many equations to be read, or small.
    let names: Vec<&str> = p.equations().iter().map(|e| e.op().name()).collect();
    if p.equations().iter().any(|e| e.op().holds_programs() || e.results().len() != 1) || names.len() > 12 {
        return if names.len() > 12 { format!("{} equations", names.len()) } else { names.join(", ") };
    }
    fn atom(p: &Program, a: Atom, top: bool) -> String {
        let Some(v) = a.value() else {
            let Some(c) = p.constant(a) else { return "?".into() };
            let text = c.splat_value().map_or_else(|| format!("{:?}", c.to_array()), |s| s.to_string());
            return if c.ty().shape().rank() == 0 { text } else { format!("{text}:{}", c.ty()) };
        };
        let Some(e) = p.equations().iter().find(|e| e.results().any(|r| r == v)) else {
            return format!("x{}", v.index());
        };
        let params: Vec<String> = e.op().params().iter().map(|(name, value)| format!("{name}={value}")).collect();
        let params = if params.is_empty() { String::new() } else { format!("{{{}}}", params.join(", ")) };
        let operands: Vec<String> = p.operands(e).iter().map(|a| format!(" {}", atom(p, *a, false))).collect();
        let text = format!("{}{params}{}", e.op().name(), operands.concat());
        if top || operands.is_empty() { text } else { format!("({text})") }
    }
    let inputs: Vec<String> = p.inputs().iter().map(|t| t.to_string()).collect();
    let outputs: Vec<String> = p.outputs().iter().map(|a| atom(p, *a, true)).collect();
    format!("{}: {}", inputs.join(" "), outputs.join(", "))
}

/// An expression over inputs: what enumerations are made of.
#[derive(Clone)]
pub enum Expr {
    In(usize),
    /// A number in every place of the first input's shape.
    Num(DType, Scalar),
    Lit(Constant),
    Of(Op, Vec<Expr>),
}

impl Expr {
    pub fn of(op: Op, operands: impl IntoIterator<Item = Expr>) -> Expr {
        Expr::Of(op, operands.into_iter().collect())
    }

    /// The same with one input in the place of another.
    pub fn with(&self, from: usize, to: usize) -> Expr {
        match self {
            Expr::In(i) => Expr::In(if *i == from { to } else { *i }),
            Expr::Num(..) | Expr::Lit(_) => self.clone(),
            Expr::Of(op, operands) => Expr::of(op.clone(), operands.iter().map(|e| e.with(from, to))),
        }
    }

    pub fn uses(&self, used: &mut [bool]) {
        match self {
            Expr::In(i) => used[*i] = true,
            Expr::Num(..) | Expr::Lit(_) => {}
            Expr::Of(_, operands) => operands.iter().for_each(|e| e.uses(used)),
        }
    }

    /// Adds it to a program. Equal parts written twice are two equations. `like` has the shape of numbers.
    pub fn add(&self, b: &mut Builder, like: &Type) -> Result<Atom> {
        match self {
            Expr::In(i) => Ok(gradus_core::program::ValueId::new(*i).into()),
            Expr::Num(dtype, value) => Ok(b.constant(Constant::splat(like.with_dtype(*dtype), *value))),
            Expr::Lit(constant) => Ok(b.constant(constant.clone())),
            Expr::Of(op, operands) => {
                let atoms = operands.iter().map(|e| e.add(b, like)).collect::<Result<Vec<Atom>>>()?;
                Ok(b.equation(op.clone(), &atoms, Location::unknown())?.result().into())
            }
        }
    }

    /// Whether an operation of this name is in it.
    pub fn has(&self, name: &str) -> bool {
        match self {
            Expr::Of(op, operands) => op.name() == name || operands.iter().any(|e| e.has(name)),
            _ => false,
        }
    }

    /// It as a program of these inputs; an error if a type rule refuses it.
    pub fn program(&self, inputs: &[Type]) -> Result<Program> {
        let mut b = Builder::new("f");
        for ty in inputs {
            b.input(ty.clone())?;
        }
        let out = self.add(&mut b, &inputs[0])?;
        Ok(b.finish(vec![out]))
    }
}

/// A share of an enumeration that is the same in every run: one in so many, and everything in a full run.
pub struct Share {
    one_in: u64,
    at: u64,
}

impl Share {
    pub fn one_in(every_day: u64, in_full: u64) -> Share {
        Share { one_in: if full() { in_full } else { every_day }, at: 0 }
    }

    /// Whether the next one is among them.
    pub fn takes(&mut self) -> bool {
        self.at += 1;
        // Spread, so that no parameter of the enumeration goes in step with it.
        (self.at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32).is_multiple_of(self.one_in)
    }
}

/// Inputs on which laws that move and add up elements show: numbers that all differ and whose sums are exact in any order, zeros
/// of both signs, and special numbers among them.
pub fn inputs_for(types: &[Type], small: bool) -> Vec<Vec<Array>> {
    let special = [f64::INFINITY, -0.0, 1.0, f64::NAN, 0.0, 2.0, f64::NEG_INFINITY, -1.0, -0.0];
    let set = |kind: usize| {
        let mut place = 0usize;
        let arrays = types.iter().enumerate().map(|(input, ty)| {
            let count = ty.shape().count().unwrap_or(0);
            let values: Vec<f64> = (0..count)
                .map(|i| {
                    place += 1;
                    match kind {
                        0 if small => [1.0, -1.0, 2.0, 1.0, -2.0, 1.0, 1.0][place % 7],
                        0 => place as f64 * if i % 3 == 2 { -1.0 } else { 1.0 },
                        1 => [0.0, -0.0, -0.0][(place * 7 + input) % 3],
                        _ => special[(place * 5 + input) % 9],
                    }
                })
                .collect();
            let dims: Vec<usize> = ty.shape().iter().filter_map(|d| d.as_usize()).collect();
            Array::from_vec(values, &dims[..]).cast(ty.dtype())
        });
        arrays.collect::<Vec<Array>>()
    };
    (0..3).map(set).collect()
}
