//! Whether dimensions can be counted with: an array without elements may have dimensions whose product no address has, and
//! lowering multiplies dimensions in every order.

use gradus_core::program::{Program, ValueId};
use gradus_core::{Shape, Type};

/// More elements than any machine has memory for, and far from where products of a few such numbers with the size of an
/// element or a cost would overflow.
const MOST: usize = 1 << 46;

fn is_vast_shape(shape: &Shape) -> bool {
    let sizes = shape.iter().filter_map(|d| d.as_usize());
    sizes.filter(|n| *n > 0).try_fold(1usize, |all, n| all.checked_mul(n).filter(|n| *n <= MOST)).is_none()
}

/// Whether some array of a program, or of a program in it, has dimensions that cannot be counted with. The interpreter runs
/// such programs: there is nothing to do fast.
pub(crate) fn is_vast(program: &Program) -> bool {
    let vast = |ty: &Type| is_vast_shape(ty.shape());
    (0..program.value_count()).any(|v| vast(program.ty(ValueId::new(v))))
        || program.constants().iter().any(|c| vast(c.ty()))
        || program.equations().iter().any(|e| e.op().holds_programs() && e.op().programs().iter().any(|p| is_vast(p)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_do_not_hide_what_is_vast() {
        let vast = |dims: &[usize]| is_vast_shape(Type::new(gradus_core::DType::F32, dims).shape());
        assert!(!vast(&[]));
        assert!(!vast(&[1 << 20, 1 << 20, 0]));
        assert!(vast(&[1 << 45, 1 << 45, 0]));
        assert!(vast(&[1 << 47]));
        assert!(vast(&[i64::MAX as usize, 0, i64::MAX as usize]));
    }
}
