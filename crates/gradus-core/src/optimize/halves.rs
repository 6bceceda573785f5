//! Half floats as numbers of 32 bits, for backends whose code computes with those: an operation that is not elementwise takes its operands widened, and its result
//! is rounded. An elementwise one stays as it is; its [form](crate::scalar::Form::of) has the same in it.
//!
//! It is what the interpreter does, so it gives the same bits.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::nested::{Made, Nested, equations, has_type};
use crate::error::{Location, Result};
use crate::primitives::convert::Convert;
use crate::primitives::shaping::Iota;
use crate::primitives::size::Size;
use crate::primitives::{Halves, Op};
use crate::program::{Atom, Builder, Program, eliminate_dead_code};
use crate::scalar::Half;
use crate::types::{DType, Type};

/// The program with its sums, products, extremes and numbers of places in 32 bits where they are of half floats; none if it has no half float.
pub fn in_wide(p: &Program) -> Result<Option<Program>> {
    if !has_type(p, &is_half) {
        return Ok(None);
    }
    let made = Nested::run(p, &rewritten)?;
    Ok(Some(eliminate_dead_code(&made, true)))
}

fn is_half(ty: &Type) -> bool {
    Half::of(ty.dtype()).is_some()
}

fn rewritten(p: &Program, nested: &Nested<'_>) -> Result<Program> {
    // What was widened before: neighbours share it.
    let mut wide: FxHashMap<Atom, Atom> = FxHashMap::default();
    equations(p, &mut |b, e, operands| {
        let op = nested.op(e.op())?;
        if let Some((dtype, whole)) = counted(&op) {
            let whole = b.equation(whole, &[], e.place())?.result();
            return Ok(Made::There(vec![as_dtype(b, whole.into(), dtype, e.place())?]));
        }
        let is_wide = !operands.iter().any(|a| is_half(b.ty(*a)));
        if is_wide || op.is_elementwise() || op.halves() != Halves::Widened {
            return Ok(Made::As(op));
        }
        let mut taken: SmallVec<[Atom; 4]> = operands.into();
        for a in &mut taken {
            if !is_half(b.ty(*a)) {
                continue;
            }
            *a = match wide.get(a) {
                Some(there) => *there,
                None => {
                    let made = as_dtype(b, *a, DType::F32, e.place())?;
                    wide.insert(*a, made);
                    made
                }
            };
        }
        let made: Vec<Atom> = b.equation(op, &taken, e.place())?.results().map(Atom::from).collect();
        let wanted = e.results().map(|r| p.ty(r).dtype());
        let made = made.into_iter().zip(wanted).map(|(a, dtype)| match Half::of(dtype) {
            Some(_) => as_dtype(b, a, dtype, e.place()),
            None => Ok(a),
        });
        Ok(Made::There(made.collect::<Result<_>>()?))
    })
}

/// An operation that counts in half floats, in integers.
fn counted(op: &Op) -> Option<(DType, Op)> {
    let (dtype, whole) = match (op.downcast::<Iota>(), op.downcast::<Size>()) {
        (Some(iota), _) => (iota.dtype, Op::new(Iota { dtype: DType::I64, ..iota.clone() })),
        (_, Some(size)) => (size.dtype, Op::new(Size { dtype: DType::I64, ..size.clone() })),
        _ => return None,
    };
    Half::of(dtype).map(|_| (dtype, whole))
}

fn as_dtype(b: &mut Builder, a: Atom, dtype: DType, place: Location) -> Result<Atom> {
    Ok(b.equation(Op::new(Convert { dtype }), &[a], place)?.result().into())
}
