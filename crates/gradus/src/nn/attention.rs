//! Attention: values picked by how well keys answer queries.

use gradus_core::{Array, DType, Error, ErrorKind, Result, Scalar};

use super::want_float;
use crate::line::in_function;

/// How [`attention`] is done. The default looks everywhere, with logits divided by the root of the features of a head.
///
/// ```
/// use gradus::prelude::*;
///
/// let options = nn::Attention::default().causal().scale(0.5);
/// # let x = Array::ones::<f32>([2, 1, 1]);
/// # assert_eq!(nn::attention(&x, &x, &x, options).shape(), [2, 1, 1]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attention {
    causal: bool,
    scale: Option<f64>,
    mask: Option<Array>,
    bias: Option<Array>,
}

impl Attention {
    /// A query sees the keys up to its own place, and none behind.
    pub fn causal(self) -> Attention {
        Attention { causal: true, ..self }
    }

    /// What logits are multiplied by, instead of one over the root of the features of a head.
    pub fn scale(self, factor: f64) -> Attention {
        Attention { scale: Some(factor), ..self }
    }

    /// Where queries may look: bools that broadcast to `[.., heads, queries, keys]`.
    pub fn mask(self, mask: &Array) -> Attention {
        Attention { mask: Some(mask.clone()), ..self }
    }

    /// What is added to logits; it broadcasts to `[.., heads, queries, keys]`.
    pub fn bias(self, bias: &Array) -> Attention {
        Attention { bias: Some(bias.clone()), ..self }
    }
}

/// Attention with several heads: for each query the mean of values, weighted by the softmax of the products with keys.
///
/// Queries are `[batch, queries, heads, features]`, keys and values `[batch, keys, heads, features]`; the batch may be missing. There may be fewer heads of keys and values than of queries if they divide them: each
/// serves as many. Softmax is computed in `f32` at least. A query that may look nowhere looks everywhere alike.
///
/// ```
/// use gradus::prelude::*;
///
/// # fn main() -> Result<()> {
/// let q = Array::arange(0.0_f64, 12.0, 1.0).sin().reshape([3, 2, 2]);
/// let y = nn::attention(&q, &q, &q, nn::Attention::default().causal());
/// // The first place sees only itself.
/// assert!(tree::all_close(&y.index(0), &q.index(0), 1e-15)?);
/// # Ok(())
/// # }
/// ```
#[track_caller]
#[doc(alias = "dot_product_attention")]
#[doc(alias = "scaled_dot_product_attention")]
pub fn attention(query: &Array, key: &Array, value: &Array, options: Attention) -> Array {
    in_function("attention", || {
        want_float("a query", query)?;
        want_float("a key", key)?;
        want_float("a value", value)?;
        let rank = query.rank();
        if !(3..=4).contains(&rank) || key.rank() != rank || value.rank() != rank {
            let message = format!("a query {}, a key {} and a value {}", query.ty()?, key.ty()?, value.ty()?);
            return Err(Error::new(ErrorKind::Shape, message)
                .help("each is [batch, places, heads, features], or all are without a batch"));
        }
        if rank == 3 {
            let with = |x: &Array| x.expand_dims(0);
            return Ok(attended(&with(query), &with(key), &with(value), &options)?.squeeze(0));
        }
        attended(query, key, value, &options)
    })
}

fn attended(query: &Array, key: &Array, value: &Array, options: &Attention) -> Result<Array> {
    let times = heads_for_each(query, key, value)?;
    let each = |x: &Array| if times == 1 { x.clone() } else { x.repeat(times, 2) };
    let (key, value) = (each(key), each(value));
    let logits = Array::einsum("btnh,bsnh->bnts", [query, &key]).ok()?;
    let dtype = logits.dtype();
    let logits = if matches!(dtype, DType::F16 | DType::BF16) { logits.cast(DType::F32) } else { logits };
    let logits = match options.scale {
        Some(factor) => logits * factor,
        None => &logits / Array::from_dim(&query.dim(-1), logits.dtype()).sqrt(),
    };
    let logits = match &options.bias {
        Some(bias) => (&logits + bias.cast(logits.dtype())).ok()?,
        None => logits,
    };
    let weights = match seen(&logits, options)? {
        // Far below every logit, and finite: a query without a key must not make NaN.
        Some(seen) => seen.select(&logits, lowest(logits.dtype())).softmax(-1),
        None => logits.softmax(-1),
    };
    Array::einsum("bnts,bsnh->btnh", [&weights.cast(dtype), &value]).ok()
}

/// How many heads of queries one head of keys and values serves.
fn heads_for_each(query: &Array, key: &Array, value: &Array) -> Result<usize> {
    let heads = |x: &Array| x.dim(2).as_usize();
    match (heads(query), heads(key), heads(value)) {
        (Some(n), Some(k), Some(v)) if k == v && k > 0 && n.is_multiple_of(k) => Ok(n / k),
        (n, k, v) => {
            let show = |d: Option<usize>| d.map_or_else(|| "an unknown number of".to_string(), |d| d.to_string());
            let message = format!("{} heads of queries, {} of keys and {} of values", show(n), show(k), show(v));
            Err(Error::new(ErrorKind::Shape, message)
                .help("keys and values have as many heads, and they divide those of queries"))
        }
    }
}

/// Where logits count; none if everywhere.
fn seen(logits: &Array, options: &Attention) -> Result<Option<Array>> {
    let before = || {
        let places = [logits.dim(-2), logits.dim(-1)];
        let place = |axis| Array::iota(DType::I64, places.iter().cloned().collect::<gradus_core::Shape>(), axis);
        place(0).ge(place(1))
    };
    let causal = options.causal.then(before);
    Ok(match (&options.mask, causal) {
        (Some(mask), _) if mask.ty()?.dtype() != DType::Bool => {
            let message = format!("a mask is of bools, not {}", mask.ty()?);
            return Err(Error::new(ErrorKind::DType, message).help("compare it, or add it as a `bias`"));
        }
        (Some(mask), Some(causal)) => Some(mask & causal),
        (Some(mask), None) => Some(mask.clone()),
        (None, causal) => causal,
    })
}

fn lowest(dtype: DType) -> Scalar {
    Scalar::F64(if dtype == DType::F64 { -0.7 * f64::MAX } else { f64::from(-0.7 * f32::MAX) }).cast(dtype)
}
