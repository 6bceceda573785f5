//! `.safetensors`: a header in JSON that says where the numbers of each name are, then all numbers.

use std::io::Write;

use gradus_core::{Array, DType, Result, Type};
use safetensors::{Dtype, SafeTensors, serialize, tensor::TensorView};

use super::{bad, bytes, not_a};

fn dtype_of(dtype: Dtype) -> Result<DType> {
    Ok(match dtype {
        Dtype::BOOL => DType::Bool,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::U8 => DType::U8,
        Dtype::U16 => DType::U16,
        Dtype::U32 => DType::U32,
        Dtype::U64 => DType::U64,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F32 => DType::F32,
        Dtype::F64 => DType::F64,
        Dtype::C64 => DType::C64,
        other => return Err(bad(format!("has numbers of the dtype {other:?}, which is not known here"))),
    })
}

fn stored_as(dtype: DType) -> Result<Dtype> {
    Ok(match dtype {
        DType::Bool => Dtype::BOOL,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 | DType::Key => Dtype::U64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
        DType::C64 => Dtype::C64,
        DType::C128 => return Err(bad("a `.safetensors` holds no c128").help("use `.npz`, or save both parts")),
    })
}

pub(super) fn write(out: &mut impl Write, arrays: &[(String, Array)]) -> Result<()> {
    let wrong = |e: safetensors::SafeTensorError| bad(format!("cannot be written: {e}"));
    let stored = arrays
        .iter()
        .map(|(name, array)| Ok((name, stored_as(array.ty()?.dtype())?, array.known_dims()?, bytes::of_array(array)?)));
    let stored = stored.collect::<Result<Vec<_>>>()?;
    let views = stored.iter().map(|(name, dtype, dims, data)| {
        TensorView::new(*dtype, dims.clone(), data).map(|view| (name.as_str(), view)).map_err(wrong)
    });
    let all = serialize(views.collect::<Result<Vec<_>>>()?, None).map_err(wrong)?;
    out.write_all(&all).map_err(|e| bad(format!("cannot be written: {e}")))
}

pub(super) struct Tensors<'a>(SafeTensors<'a>);

impl<'a> Tensors<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Tensors<'a>> {
        let all = SafeTensors::deserialize(bytes);
        all.map(Tensors).map_err(|e| not_a(".safetensors", bytes, &e))
    }
}

impl super::Source for Tensors<'_> {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.names().into_iter().map(str::to_string).collect();
        names.sort_unstable();
        names
    }

    fn ty(&mut self, name: &str) -> Result<Option<Type>> {
        let Ok(view) = self.0.tensor(name) else { return Ok(None) };
        bytes::ty_of(dtype_of(view.dtype())?, view.shape()).map(Some)
    }

    fn array(&mut self, name: &str) -> Result<Array> {
        let view = self.0.tensor(name).map_err(|e| bad(format!("its array `{name}` cannot be read: {e}")))?;
        bytes::to_array(dtype_of(view.dtype())?, view.shape(), view.data())
    }
}
