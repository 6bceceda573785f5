//! A case through a call with its buffers at hand, whatever the dtypes are.

use std::sync::Arc;

use gradus_core::array::Concrete;
use gradus_core::types::Element;
use gradus_core::{Array, DType, Result, Type, bf16, f16};
use gradus_cpu::{Native, Prepared};

/// Runs the function with the element type of a dtype; keys have none here.
macro_rules! with_element {
    ($dtype:expr, $call:ident($($arg:expr),*), $otherwise:expr) => {
        match $dtype {
            DType::Bool => $call::<bool>($($arg),*),
            DType::I8 => $call::<i8>($($arg),*),
            DType::I16 => $call::<i16>($($arg),*),
            DType::I32 => $call::<i32>($($arg),*),
            DType::I64 => $call::<i64>($($arg),*),
            DType::U8 => $call::<u8>($($arg),*),
            DType::U16 => $call::<u16>($($arg),*),
            DType::U32 => $call::<u32>($($arg),*),
            DType::U64 => $call::<u64>($($arg),*),
            DType::F16 => $call::<f16>($($arg),*),
            DType::BF16 => $call::<bf16>($($arg),*),
            DType::F32 => $call::<f32>($($arg),*),
            DType::F64 => $call::<f64>($($arg),*),
            DType::C64 => $call::<gradus_core::Complex<f32>>($($arg),*),
            DType::C128 => $call::<gradus_core::Complex<f64>>($($arg),*),
            _ => $otherwise,
        }
    };
}

fn write<T: Element>(prepared: &mut Prepared, i: usize, a: &Array) -> Result<()> {
    let values = a.to_vec::<T>()?;
    prepared.input::<T>(i)?.copy_from_slice(&values);
    Ok(())
}

fn read<T: Element>(prepared: &Prepared, i: usize, ty: &Type) -> Result<Array> {
    Ok(Concrete::new(ty.clone(), prepared.output::<T>(i)?.to_vec())?.into())
}

/// The results of a prepared call; none if it has keys, which have no elements to write. It runs twice, the first time on what the memory happens to hold.
pub(crate) fn run(native: &Arc<Native>, inputs: &[Array]) -> Result<Option<Vec<Array>>> {
    let Ok(mut prepared) = Prepared::new(native.clone(), &[]) else { return Ok(None) };
    prepared.run()?;
    for (i, a) in inputs.iter().enumerate() {
        with_element!(a.dtype(), write(&mut prepared, i, a), return Ok(None))?;
    }
    prepared.run()?;
    let types: Vec<Type> = native.lowered().outputs.iter().map(|(ty, _)| ty.clone()).collect();
    let results =
        types.iter().enumerate().map(|(i, ty)| with_element!(ty.dtype(), read(&prepared, i, ty), Err(none())));
    results.collect::<Result<Vec<_>>>().map(Some)
}

fn none() -> gradus_core::Error {
    gradus_core::Error::new(gradus_core::ErrorKind::DType, "a result of keys")
}
