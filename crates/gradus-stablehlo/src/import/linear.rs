//! Products, convolutions, decompositions and Fourier transforms.

use gradus_core::error::Result;
use gradus_core::primitives::Op;
use gradus_core::primitives::convolve::Convolve;
use gradus_core::primitives::dot::DotGeneral;
use gradus_core::primitives::shaping::Reverse;
use gradus_core::trace::bind;
use gradus_core::{Array, DType, Dim, Scalar, Shape};

use super::elementwise::convert;
use super::shaping::{broadcast_in_dim, iota, permute, reshape};
use super::windows::Frame;
use super::{Answer, On, one};

/// The dtype that a sum of products is computed in, for operands and a result of these.
fn computed_in(a: DType, b: DType, result: DType) -> DType {
    let wide = |d: DType| if d == DType::Bool { DType::I32 } else { d };
    let (a, b, result) = (wide(a), wide(b), wide(result));
    if a == b && a == result {
        return a;
    }
    // A result that holds every product is what it is computed in; otherwise what the operands meet in.
    let holds = |d: DType| d.promote(result) == Some(result);
    match a.promote(b) {
        Some(meet) if !holds(meet) => meet,
        _ => result,
    }
}

/// Convolutions of at most so many products are added in `f64`.
const SMALL: usize = 1 << 16;

/// What a small convolution of `f32` is added in: `f64`, so that sums are rounded once. It costs next to nothing, and a result that nearly cancels has the
/// digits that it has elsewhere, whatever the order is there.
fn rounded_once(dtype: DType, terms: Option<usize>, result: &Result<Shape>) -> DType {
    let results = result.as_ref().ok().and_then(Shape::count);
    let small = terms.zip(results).and_then(|(n, m)| n.checked_mul(m)).is_some_and(|all| all <= SMALL);
    if dtype == DType::F32 && small { DType::F64 } else { dtype }
}

impl On<'_, '_> {
    pub(super) fn linear(&mut self, name: &str) -> Answer {
        match name {
            "dot_general" => {
                let record = self.record("dot_dimension_numbers")?;
                let dot = DotGeneral {
                    lhs_contract: self.field(record, "lhs_contracting_dimensions")?,
                    rhs_contract: self.field(record, "rhs_contracting_dimensions")?,
                    lhs_batch: self.field(record, "lhs_batching_dimensions")?,
                    rhs_batch: self.field(record, "rhs_batching_dimensions")?,
                };
                one(self.product(dot)?)
            }
            // Removed from the specification: the last axis of the left operand with the first of the right one.
            "dot" => {
                let last = self.x(0)?.rank().saturating_sub(1);
                one(self.product(DotGeneral {
                    lhs_contract: vec![last],
                    rhs_contract: vec![0],
                    ..DotGeneral::default()
                })?)
            }
            "einsum" | "unary_einsum" => {
                let Some(equation) = self.word("einsum_config") else {
                    return Err(self.wrong("it lacks `einsum_config`"));
                };
                one(Array::einsum(equation, self.xs()?.iter()))
            }
            "convolution" => {
                let rank = self.x(0)?.rank().saturating_sub(2);
                let (low, high) = self.padding(rank)?;
                one(self.convolution(low, high)?)
            }
            "fft" => self.fft(),
            "cholesky" => self.cholesky(),
            "triangular_solve" => self.triangular_solve(),
            _ => Ok(None),
        }
    }

    fn product(&mut self, dot: DotGeneral) -> Result<Array> {
        let (a, b, to) = (self.x(0)?, self.x(1)?, self.result_dtype()?);
        let within = computed_in(a.dtype(), b.dtype(), to);
        let y = bind(Op::new(dot), &[convert(&a, within), convert(&b, within)]);
        convert(&y, to).ok()
    }

    pub(super) fn convolution(&mut self, low: Vec<Dim>, high: Vec<Dim>) -> Result<Array> {
        let (x, w, to) = (self.x(0)?, self.x(1)?, self.result_dtype()?);
        // Where no window fits there is no result, whatever the operands are.
        if self.result(0)?.dims.contains(&Some(0)) {
            return Ok(Array::full_scalar(self.result_shape()?, Scalar::zero(to)));
        }
        let rank = x.rank().saturating_sub(2);
        let record = self.record("dimension_numbers")?;
        let axis = |name: &str| match record.integer(name) {
            Some(v) => self.natural(name, v),
            None => Err(self.wrong(format!("`dimension_numbers` lacks `{name}`"))),
        };
        let image: Vec<usize> = [
            vec![axis("input_batch_dimension")?],
            self.field(record, "input_spatial_dimensions")?,
            vec![axis("input_feature_dimension")?],
        ]
        .concat();
        let kernel: Vec<usize> = [
            self.field(record, "kernel_spatial_dimensions")?,
            vec![axis("kernel_input_feature_dimension")?, axis("kernel_output_feature_dimension")?],
        ]
        .concat();
        let output: Vec<usize> = [
            vec![axis("output_batch_dimension")?],
            self.field(record, "output_spatial_dimensions")?,
            vec![axis("output_feature_dimension")?],
        ]
        .concat();
        let taps = kernel.split_last().map_or(&[][..], |(_, taps)| taps);
        let terms = taps.iter().try_fold(1usize, |n, axis| n.checked_mul(w.dim(*axis as isize).as_usize()?));
        let within = rounded_once(computed_in(x.dtype(), w.dtype(), to), terms, &self.result_shape());
        let (x, mut w) = (convert(&permute(&x, image), within), convert(&permute(&w, kernel), within));
        let reversed = self.integers_or("window_reversal", rank, 0)?;
        let turned: Vec<usize> = (0..rank).filter(|a| reversed.get(*a).is_some_and(|r| *r != 0)).collect();
        if !turned.is_empty() {
            w = bind(Op::new(Reverse { axes: turned }), &[w]);
        }
        let count = |name: &str| self.op.attributes.integer(name).unwrap_or(1);
        let op = Convolve {
            strides: self.counts_or("window_strides", rank, 1)?,
            low,
            high,
            image_dilation: self.counts_or("lhs_dilation", rank, 1)?,
            kernel_dilation: self.counts_or("rhs_dilation", rank, 1)?,
            feature_groups: Dim::from(count("feature_group_count")),
            batch_groups: Dim::from(count("batch_group_count")),
        };
        let single = to == DType::F32 && matches!(within, DType::F32 | DType::F64);
        let y = match single.then(|| channel_by_channel(&x, &w, &op)).flatten() {
            Some(y) => y,
            None => bind(Op::new(op), &[x, w]),
        };
        // `output[i]` says where axis i of the result stands in the text's.
        let mut order = vec![0; output.len()];
        for (i, at) in output.iter().enumerate() {
            match order.get_mut(*at) {
                Some(slot) => *slot = i,
                None => return Err(self.wrong("`dimension_numbers` names an axis that the result does not have")),
            }
        }
        convert(&permute(&y, order), to).ok()
    }

    #[cfg(not(feature = "fft"))]
    fn fft(&mut self) -> Answer {
        Err(self.refused("the feature `fft` is off", "turn on the feature `fft` of `gradus-stablehlo`"))
    }

    #[cfg(feature = "fft")]
    fn fft(&mut self) -> Answer {
        use gradus_core::primitives::fft::{Fft, FftKind};
        let kind = match self.word("fft_type").unwrap_or_default() {
            "FFT" => FftKind::Forward,
            "IFFT" => FftKind::Inverse,
            "RFFT" => FftKind::RealForward,
            "IRFFT" => FftKind::RealInverse,
            other => return Err(self.wrong(format!("there is no transform `{other}`"))),
        };
        let lengths = self.axes("fft_length")?.into_iter().map(Dim::from).collect();
        one(bind(Op::new(Fft { kind, lengths }), &[self.x(0)?]))
    }

    #[cfg(not(feature = "linalg"))]
    fn cholesky(&mut self) -> Answer {
        Err(self.refused("the feature `linalg` is off", "turn on the feature `linalg` of `gradus-stablehlo`"))
    }

    #[cfg(feature = "linalg")]
    fn cholesky(&mut self) -> Answer {
        use gradus_core::primitives::linalg::Cholesky;
        let x = self.x(0)?;
        let lower = self.op.attributes.get("lower").is_none() || self.flag("lower");
        let a = if lower { x } else { adjoint(&x) };
        let l = super::elementwise::apply(&Cholesky, &[a]);
        one(if lower { l } else { adjoint(&l) })
    }

    #[cfg(not(feature = "linalg"))]
    fn triangular_solve(&mut self) -> Answer {
        Err(self.refused("the feature `linalg` is off", "turn on the feature `linalg` of `gradus-stablehlo`"))
    }

    #[cfg(feature = "linalg")]
    fn triangular_solve(&mut self) -> Answer {
        use gradus_core::primitives::linalg::TriangularSolve;
        let (mut a, mut b) = (self.x(0)?, self.x(1)?);
        let mut lower = self.flag("lower");
        let mut transpose = false;
        match self.word("transpose_a").unwrap_or("NO_TRANSPOSE") {
            "NO_TRANSPOSE" => {}
            "TRANSPOSE" => transpose = true,
            "ADJOINT" => (transpose, a) = (true, if a.dtype().is_complex() { a.conj() } else { a }),
            other => return Err(self.wrong(format!("there is no `transpose_a` of `{other}`"))),
        }
        let left = self.op.attributes.get("left_side").is_none() || self.flag("left_side");
        // X·op(A) = B is op(A)ᵀ·Xᵀ = Bᵀ.
        if !left {
            (transpose, b) = (!transpose, transposed(&b));
        }
        if self.op.attributes.get("lower").is_none() {
            lower = false;
        }
        let op = TriangularSolve { lower, transpose, unit_diagonal: self.flag("unit_diagonal") };
        let x = op.of(&a, &b);
        one(if left { x } else { transposed(&x) })
    }
}

/// Places of a kernel that are few.
const FEW: usize = 4;

/// A convolution in which every result has one feature, with few places: products added in the order of the text. There is no matrix product to gain
/// from, and a short sum has the digits that it has elsewhere.
fn channel_by_channel(x: &Array, w: &Array, op: &Convolve) -> Option<Array> {
    let rank = op.strides.len();
    let features = x.dim(-1).as_usize()?;
    let sizes: Vec<usize> = (0..rank).map(|a| w.dim(a as isize).as_usize()).collect::<Option<_>>()?;
    let few = sizes.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).is_some_and(|n| (1..=FEW).contains(&n));
    let alone = op.feature_groups.as_usize() == Some(features) && features > 1 && op.batch_groups.as_usize() == Some(1);
    if !few || !alone {
        return None;
    }
    // The batch in front and the features behind are no places of a window.
    let around = |inner: &[usize]| [&[1], inner, &[1]].concat();
    let nothing = || [Dim::from(0usize)];
    let frame = Frame {
        sizes: around(&sizes),
        strides: around(&op.strides),
        low: [&nothing(), op.low.as_slice(), &nothing()].concat(),
        high: [&nothing(), op.high.as_slice(), &nothing()].concat(),
        base: around(&op.image_dilation),
        dilations: around(&op.kernel_dilation),
    };
    let results = w.dim(-1).as_usize()?;
    let each = results / features;
    let (x, w) = (convert(x, DType::F64), convert(w, DType::F64));
    let padded = frame.padded(&x, &Array::scalar(Scalar::zero(DType::F64)));
    let kernel = reshape(&w, vec![Dim::from(sizes.iter().product::<usize>()), Dim::from(features), Dim::from(each)]);
    let term = |(place, part): (usize, Array)| {
        let shape = part.shape().inserted(part.rank(), Dim::from(each));
        let axes: Vec<usize> = (0..part.rank()).collect();
        let factor = kernel.index(place as i64);
        let product =
            broadcast_in_dim(&part, &shape, &axes) * broadcast_in_dim(&factor, &shape, &[part.rank() - 1, part.rank()]);
        // Exact in `f64`, so the product is rounded by itself and not together with the sum.
        convert(&product, DType::F32)
    };
    let sum = frame.elements(&padded).into_iter().enumerate().map(term).reduce(|sum, t| sum + t)?;
    let last = sum.rank() - 1;
    Some(reshape(&sum, sum.shape().without(|a| a == last).replaced(last - 1, Dim::from(results))))
}

/// Matrices along the last two axes, transposed.
pub(super) fn transposed(x: &Array) -> Array {
    let mut axes: Vec<usize> = (0..x.rank()).collect();
    if let [.., a, b] = axes.as_mut_slice() {
        std::mem::swap(a, b);
    }
    permute(x, axes)
}

/// Matrices along the last two axes, transposed and conjugated.
pub(super) fn adjoint(x: &Array) -> Array {
    let t = transposed(x);
    if x.dtype().is_complex() { t.conj() } else { t }
}

/// Where the row of a matrix is at least its column.
pub(super) fn lower_mask(x: &Array) -> Array {
    let (shape, rank) = (x.shape().clone(), x.rank());
    let (row, column) = (rank.saturating_sub(2), rank.saturating_sub(1));
    iota(DType::I64, shape.clone(), row).ge(iota(DType::I64, shape, column))
}
