//! How much a result may differ: the same program with every rounding that is free to differ moved a little, at random.
//!
//! The order of a sum is the compiler's choice in a product of matrices, and one rounding less is where products are contracted into
//! sums. What such freedom does to a result depends on all that follows, so no fixed tolerance is right: a comparison of two sums
//! turns the last bit into a whole number. Instead the program itself is asked. A value is moved once, for all its uses: a program
//! in which a value must equal itself is not excused.

use std::sync::Arc;

use gradus_core::primitives::{Op, Param};
use gradus_core::program::{Atom, Builder, Constant};
use gradus_core::testing::Source;
use gradus_core::{Array, Complex, DType, Error, Place, Program, Result, Scalar, Type, interpret};

/// What may round differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freedom {
    /// Products of matrices.
    Products,
    /// Every sum: passes may change its order.
    Sums,
    /// Products and sums of numbers too: they are contracted.
    Contraction,
}

/// Operations that add up, in an order of somebody's choice.
const PRODUCTS: &[&str] = &["dot_general"];
const SUMS: &[&str] = &["reduce_sum", "reduce_prod", "cumsum", "cumprod", "scatter", "custom_linear"];
/// Operations that are made of products and sums that can be contracted.
const ARITHMETIC: &[&str] = &["mul", "integer_pow", "mul_add"];

impl Freedom {
    fn of_operands(self, op: &str) -> bool {
        PRODUCTS.contains(&op) || (self >= Freedom::Sums && SUMS.contains(&op))
    }

    fn of_results(self, op: &str, dtype: DType) -> bool {
        // Functions of complex numbers are formulas of real ones.
        let formula = dtype.is_complex() && !["convert", "select", "complex", "add", "sub"].contains(&op);
        self == Freedom::Contraction && (ARITHMETIC.contains(&op) || formula)
    }

    /// Whether a program leaves this freedom at all.
    pub fn stands_in(self, p: &Program) -> bool {
        p.equations().iter().any(|e| {
            let inexact = e.results().any(|r| p.ty(r).dtype().is_inexact())
                || p.operands(e).iter().any(|a| p.ty(*a).dtype().is_inexact());
            let here =
                self.of_operands(e.op().name()) || e.results().any(|r| self.of_results(e.op().name(), p.ty(r).dtype()));
            (here && inexact) || e.op().programs().iter().any(|p| self.stands_in(p))
        })
    }
}

/// Results of a program under a few random movements.
pub fn moved(p: &Program, inputs: &[Array], freedom: Freedom) -> Result<Vec<Vec<Array>>> {
    let types = inputs.iter().map(|a| a.ty().cloned()).collect::<Result<Vec<Type>>>()?;
    let bound = if p.is_symbolic() { p.bind_symbols(&types)? } else { p.clone() };
    // The wide ones find decisions that hang on a last bit.
    [(1, 4), (2, 4), (3, 4), (4, 64), (5, 64)]
        .into_iter()
        .map(|(seed, ulps)| {
            let mut mover = Mover { source: Source::seed(seed), freedom, ulps };
            interpret(&mover.program(&bound)?, inputs)
        })
        .collect()
}

/// The distance from one to the next number of a dtype.
pub fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 | DType::C64 => f32::EPSILON as f64,
        _ => f64::EPSILON,
    }
}

struct Mover {
    source: Source<'static>,
    freedom: Freedom,
    ulps: usize,
}

impl Mover {
    fn program(&mut self, p: &Program) -> Result<Program> {
        let mut b = Builder::new(p.name());
        let mut there: Vec<Atom> = Vec::with_capacity(p.value_count());
        for t in p.inputs() {
            there.push(b.input(t.clone())?.into());
        }
        for e in p.equations() {
            let name = e.op().name();
            let mut operands: Vec<Atom> = p.operands(e).iter().map(|a| mapped(p, &mut b, &there, *a)).collect();
            if self.freedom.of_operands(name) {
                operands = operands.into_iter().map(|a| self.moved(&mut b, a)).collect::<Result<_>>()?;
            }
            let op = self.op(e.op())?;
            let results: Vec<Atom> = b.equation(op, &operands, Place::unknown())?.results().map(Atom::from).collect();
            for r in results {
                let moves = self.freedom.of_results(name, b.ty(r).dtype());
                there.push(if moves { self.moved(&mut b, r)? } else { r });
            }
        }
        let outputs = p.outputs().iter().map(|a| mapped(p, &mut b, &there, *a)).collect();
        Ok(b.finish(outputs))
    }

    fn op(&mut self, op: &Op) -> Result<Op> {
        if !op.holds_programs() {
            return Ok(op.clone());
        }
        map_programs(op, &mut |p| self.program(p))
    }

    /// A value times numbers next to one.
    fn moved(&mut self, b: &mut Builder, a: Atom) -> Result<Atom> {
        let ty = b.ty(a).clone();
        if !ty.dtype().is_inexact() {
            return Ok(a);
        }
        let count = ty.shape().count().unwrap_or(0);
        let eps = epsilon(ty.dtype());
        let mut step = || (self.source.below(2 * self.ulps + 1) as f64 - self.ulps as f64) * eps;
        let numbers = match ty.dtype().is_complex() {
            true => Array::from_vec((0..count).map(|_| Complex::new(1.0 + step(), step())).collect(), [count]),
            false => Array::from_vec((0..count).map(|_| 1.0 + step()).collect::<Vec<f64>>(), [count]),
        };
        let numbers = numbers.cast(ty.dtype()).reshape(ty.shape());
        let constant = numbers.concrete().map(Constant::array).unwrap_or_else(|| Constant::splat(ty, Scalar::F64(1.0)));
        let factor = b.constant(constant);
        Ok(b.equation(Op::from_text("mul", &[])?, &[a, factor], Place::unknown())?.result().into())
    }
}

/// An atom of a program in another that is being built from it.
pub(crate) fn mapped(p: &Program, b: &mut Builder, there: &[Atom], a: Atom) -> Atom {
    match (a.value(), p.constant(a)) {
        (Some(v), _) => there[v.index()],
        (None, Some(c)) => b.constant(c.clone()),
        // An atom is one of the two.
        (None, None) => a,
    }
}

/// An operation with every program it holds replaced.
pub(crate) fn map_programs(op: &Op, f: &mut dyn FnMut(&Program) -> Result<Program>) -> Result<Op> {
    fn map(param: Param, f: &mut dyn FnMut(&Program) -> Result<Program>) -> Result<Param> {
        Ok(match param {
            Param::Program(p) => Param::Program(Arc::new(f(&p)?)),
            Param::List(items) => Param::List(items.into_iter().map(|p| map(p, f)).collect::<Result<_, Error>>()?),
            other => other,
        })
    }
    let params = op.params().into_iter().map(|(n, p)| Ok((n.to_string(), map(p, f)?)));
    Op::from_text(op.name(), &params.collect::<Result<Vec<_>>>()?)
}
