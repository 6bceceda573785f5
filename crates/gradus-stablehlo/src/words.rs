//! Types in the words of StableHLO, for errors.

use std::fmt::Write as _;

use crate::module::{Element, Tensor, Type};
use crate::read::{name_of, storage_range};

/// A type as it is written.
pub(crate) fn of_type(ty: &Type) -> String {
    let list = |types: &[Type]| types.iter().map(of_type).collect::<Vec<_>>().join(", ");
    match ty {
        Type::Tensor(tensor) => of_tensor(tensor),
        Type::Token => "!stablehlo.token".into(),
        Type::Tuple(types) => format!("tuple<{}>", list(types)),
        Type::Scalar(element) => of_element(element),
        Type::Function(inputs, outputs) => format!("({}) -> ({})", list(inputs), list(outputs)),
        Type::None => "none".into(),
        Type::Opaque(text) if Type::is_plain(text) => text.clone(),
        Type::Opaque(text) => format!("!{text}"),
    }
}

/// A tensor as it is written.
pub(crate) fn of_tensor(tensor: &Tensor) -> String {
    let mut text = String::from("tensor<");
    for dim in &tensor.dims {
        text += &of_dim(*dim);
        text.push('x');
    }
    text += &of_element(&tensor.element);
    if !tensor.bounds.is_empty() {
        let bounds: Vec<String> = tensor.bounds.iter().map(|b| of_dim(*b)).collect();
        let _ = write!(text, ", #stablehlo.bounds<{}>", bounds.join(", "));
    }
    text.push('>');
    text
}

fn of_dim(dim: Option<u64>) -> String {
    dim.map_or_else(|| "?".into(), |d| d.to_string())
}

fn of_element(element: &Element) -> String {
    match element {
        Element::Complex(part) => format!("complex<{}>", of_element(&Element::Float(*part))),
        Element::Quantized(q) => {
            let mut text = format!("!quant.uniform<{}", of_element(&q.storage).replace("ui", "u"));
            if (q.storage_min, q.storage_max) != storage_range(&q.storage) {
                let _ = write!(text, "<{}:{}>", q.storage_min, q.storage_max);
            }
            let _ = write!(text, ":{}", of_element(&Element::Float(q.expressed)));
            let pairs: Vec<String> = q.scales.iter().zip(&q.zero_points).map(|(s, z)| format!("{s:?}:{z}")).collect();
            match q.axis {
                Some(axis) => drop(write!(text, ":{axis}, {{{}}}>", pairs.join(", "))),
                None => drop(write!(text, ", {}>", pairs.join(", "))),
            }
            text
        }
        other => name_of(other).unwrap_or("?").to_owned(),
    }
}
