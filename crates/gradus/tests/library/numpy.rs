//! The functions of `jax.numpy`, and some of `jax.lax` and `jax.ops`.

use gradus::prelude::*;

use super::compare::{Entry, table};

pub fn entries() -> Vec<Entry> {
    let mut all = elementwise();
    all.extend(pairs());
    all.extend(reductions());
    all.extend(shapes());
    all.extend(places());
    all.extend(making());
    all
}

fn elementwise() -> Vec<Entry> {
    table! {
        "jnp.abs" = |x| x[0].abs();
        "jnp.fabs" = |x| x[0].abs();
        "jnp.ceil" = |x| x[0].ceil();
        "jnp.floor" = |x| x[0].floor();
        "jnp.trunc" = |x| x[0].trunc();
        "jnp.rint" = |x| x[0].round();
        "jnp.round" = |x| x[0].round();
        "jnp.sign" = |x| x[0].sign();
        "jnp.exp" = |x| x[0].exp();
        "jnp.exp2" = |x| x[0].exp2();
        "jnp.expm1" = |x| x[0].expm1();
        "jnp.sin" = |x| x[0].sin();
        "jnp.cos" = |x| x[0].cos();
        "jnp.tan" = |x| x[0].tan();
        "jnp.sinh" = |x| x[0].sinh();
        "jnp.cosh" = |x| x[0].cosh();
        "jnp.tanh" = |x| x[0].tanh();
        "jnp.arctan" = |x| x[0].atan();
        "jnp.arcsinh" = |x| x[0].asinh();
        "jnp.sinc" = |x| x[0].sinc();
        "jnp.square" = |x| x[0].square();
        "jnp.negative" = |x| -&x[0];
        "jnp.positive" = |x| x[0].clone();
        "jnp.cbrt" = |x| x[0].cbrt();
        "jnp.deg2rad" = |x| x[0].to_radians();
        "jnp.rad2deg" = |x| x[0].to_degrees();
        "jnp.isfinite" = |x| x[0].is_finite();
        "jnp.isinf" = |x| x[0].is_infinite();
        "jnp.isnan" = |x| x[0].is_nan();
        "jnp.isneginf" = |x| x[0].is_negative_infinity();
        "jnp.isposinf" = |x| x[0].is_positive_infinity();
        "jnp.signbit" = |x| x[0].is_sign_negative();
        "jnp.nan_to_num" = |x| x[0].nan_to_num();
        "jnp.reciprocal" = |x| x[0].recip();
        "jnp.i0" = |x| gradus::special::i0(&x[0]);
        "jnp.log" = |x| x[0].log();
        "jnp.log2" = |x| x[0].log2();
        "jnp.log10" = |x| x[0].log10();
        "jnp.log1p" = |x| x[0].log1p();
        "jnp.sqrt" = |x| x[0].sqrt();
        "jnp.arcsin" = |x| x[0].asin();
        "jnp.arccos" = |x| x[0].acos();
        "jnp.arctanh" = |x| x[0].atanh();
        "jnp.arccosh" = |x| x[0].acosh();
        "jnp.modf" = |x| x[0].modf();
        "jnp.frexp" = |x| x[0].frexp();
        "jnp.spacing" = |x| x[0].stop_gradient().spacing();
        "jnp.real" = |x| x[0].real();
        "jnp.imag" = |x| x[0].imag();
        "jnp.conj" = |x| x[0].conj();
        "jnp.angle" = |x| x[0].angle();
        "jnp.isreal" = |x| x[0].is_real();
        "jnp.iscomplex" = |x| !x[0].is_real();
        "jnp.bitwise_count" = |x| x[0].popcount();
        "jnp.bitwise_not" = |x| !&x[0];
        "jnp.logical_not" = |x| x[0].logical_not();
    }
}

fn pairs() -> Vec<Entry> {
    table! {
        "jnp.add" = |x| &x[0] + &x[1];
        "jnp.subtract" = |x| &x[0] - &x[1];
        "jnp.multiply" = |x| &x[0] * &x[1];
        "jnp.divide" = |x| &x[0] / &x[1];
        "jnp.maximum" = |x| x[0].maximum(&x[1]);
        "jnp.minimum" = |x| x[0].minimum(&x[1]);
        "jnp.arctan2" = |x| x[0].atan2(&x[1]);
        "jnp.hypot" = |x| x[0].hypot(&x[1]);
        "jnp.hypot:large" = |x| x[0].stop_gradient().hypot(x[1].stop_gradient());
        "jnp.logaddexp" = |x| x[0].logaddexp(&x[1]);
        "jnp.logaddexp:equal" = |x| x[0].logaddexp(&x[1]);
        "jnp.logaddexp2" = |x| x[0].logaddexp2(&x[1]);
        "jnp.copysign" = |x| x[0].copysign(&x[1]);
        "jnp.fmax" = |x| x[0].fmax(&x[1]);
        "jnp.fmin" = |x| x[0].fmin(&x[1]);
        "jnp.nextafter" = |x| x[0].stop_gradient().nextafter(x[1].stop_gradient());
        "jnp.equal" = |x| x[0].eq(&x[1]);
        "jnp.not_equal" = |x| x[0].ne(&x[1]);
        "jnp.less" = |x| x[0].lt(&x[1]);
        "jnp.less_equal" = |x| x[0].le(&x[1]);
        "jnp.greater" = |x| x[0].gt(&x[1]);
        "jnp.greater_equal" = |x| x[0].ge(&x[1]);
        "jnp.power" = |x| x[0].pow(&x[1]);
        "jnp.float_power" = |x| x[0].pow(&x[1]);
        "jnp.mod" = |x| x[0].modulo(&x[1]);
        "jnp.mod:ints" = |x| x[0].modulo(&x[1]);
        "jnp.fmod" = |x| &x[0] % &x[1];
        "jnp.floor_divide" = |x| x[0].floor_div(&x[1]);
        "jnp.floor_divide:ints" = |x| x[0].floor_div(&x[1]);
        "jnp.divmod" = |x| x[0].div_mod(&x[1]);
        "jnp.heaviside" = |x| x[0].heaviside(&x[1]);
        "jnp.ldexp" = |x| x[0].ldexp(&x[1]);
        "jnp.gcd" = |x| x[0].gcd(&x[1]);
        "jnp.lcm" = |x| x[0].lcm(&x[1]);
        "jnp.bitwise_and" = |x| &x[0] & &x[1];
        "jnp.bitwise_or" = |x| &x[0] | &x[1];
        "jnp.bitwise_xor" = |x| &x[0] ^ &x[1];
        "jnp.logical_and" = |x| x[0].logical_and(&x[1]);
        "jnp.logical_or" = |x| x[0].logical_or(&x[1]);
        "jnp.logical_xor" = |x| x[0].logical_xor(&x[1]);
        "jnp.left_shift" = |x| &x[0] << &x[1];
        "jnp.right_shift" = |x| &x[0] >> &x[1];
        "jnp.isclose" = |x| x[0].is_close(&x[1], 1e-3, 1e-8);
        "jnp.allclose" = |x| x[0].all_close(&x[1], 1e-3, 1e-8);
        "jnp.array_equal" = |x| x[0].array_equal(&x[1]);
        "jnp.array_equiv" = |x| x[0].array_equiv(&x[1]);
        "jnp.where" = |x| x[0].select(&x[1], &x[2]);
        "jnp.clip" = |x| x[0].clamp(-0.5, 0.75);
        "jnp.select" = |x| {
            let x = &x[0];
            Array::select_first([x.lt(-0.5), x.gt(0.5)], [x * x, x.sin()], 0.25)
        };
        "jnp.piecewise" = |x| Array::select_first([x[0].lt(0.0)], [-&x[0]], &x[0] * &x[0]);
        "jnp.choose" = |x| x[0].choose(&x[1..]);
    }
}

fn reductions() -> Vec<Entry> {
    table! {
        "jnp.sum" = |x| x[0].sum_axes(1);
        "jnp.prod" = |x| x[0].prod_axes(1);
        "jnp.max" = |x| x[0].max_axes(1);
        "jnp.min" = |x| x[0].min_axes(1);
        "jnp.mean" = |x| x[0].mean_axes(1);
        "jnp.var" = |x| x[0].var_axes(1, 0);
        "jnp.std" = |x| x[0].std_axes(1, 0);
        "jnp.median" = |x| x[0].median_axes(1);
        "jnp.median:even" = |x| x[0].median();
        "jnp.ptp" = |x| x[0].ptp_axes(1);
        "jnp.all" = |x| x[0].gt(0.0).all_axes(1);
        "jnp.any" = |x| x[0].gt(0.0).any_axes(1);
        "jnp.argmax" = |x| x[0].argmax_axis(0);
        "jnp.argmin" = |x| x[0].argmin_axis(0);
        "jnp.count_nonzero" = |x| x[0].count_nonzero_axes(0);
        "jnp.nansum" = |x| x[0].nansum_axes(1);
        "jnp.nanprod" = |x| x[0].nanprod_axes(1);
        "jnp.nanmax" = |x| x[0].nanmax_axes(1);
        "jnp.nanmin" = |x| x[0].nanmin_axes(1);
        "jnp.nanmean" = |x| x[0].nanmean_axes(1);
        "jnp.nanvar" = |x| x[0].nanvar_axes(1, 0);
        "jnp.nanstd" = |x| x[0].nanstd_axes(1, 0);
        "jnp.nanmedian" = |x| x[0].nanmedian_axes(1);
        "jnp.nanargmax" = |x| x[0].nanargmax_axis(1);
        "jnp.nanargmin" = |x| x[0].nanargmin_axis(1);
        "jnp.nancumsum" = |x| x[0].nancumsum(1);
        "jnp.nancumprod" = |x| x[0].nancumprod(1);
        "jnp.cumsum" = |x| x[0].cumsum(1);
        "jnp.cumprod" = |x| x[0].cumprod(1);
        "jnp.cumulative_sum" = |x| x[0].cumsum(1);
        "jnp.cumulative_prod" = |x| x[0].cumprod(1);
        "jnp.quantile" = |x| x[0].quantile_axes(&x[1], 1);
        "jnp.quantile:all" = |x| x[0].quantile(0.3);
        "jnp.percentile" = |x| x[0].percentile_axes(Array::from([12.0, 66.0]), 0);
        "jnp.nanquantile" = |x| x[0].nanquantile_axes(0.4, 1);
        "jnp.nanpercentile" = |x| x[0].nanpercentile_axes(40.0, 0);
        "jnp.average" = |x| x[0].average(&x[1], 1);
        "jnp.cov" = |x| x[0].cov(1);
        "jnp.corrcoef" = |x| x[0].corrcoef();
        "jnp.bincount" = |x| x[0].bincount(5usize);
        "jnp.bincount:weights" = |x| x[0].bincount_weighted(&x[1], 5usize);
        "jnp.digitize" = |x| x[0].digitize(&x[1]);
        "jnp.histogram" = |x| x[0].histogram(4);
        "jnp.histogram_bin_edges" = |x| x[0].histogram_bin_edges(5);
        "jnp.histogram2d" = |x| {
            let (rows, columns) = (Array::from([-3.0, 0.0, 3.0]), Array::from([-3.0, -1.0, 1.0, 3.0]));
            x[0].histogram2d(&x[1], &rows, &columns)
        };
        "jnp.histogramdd" = |x| x[0].histogramdd(vec![Array::from([-3.0, 0.0, 3.0]); 2]);
        "jnp.diff" = |x| x[0].diff(2, 1);
        "jnp.ediff1d" = |x| x[0].ediff1d();
        "jnp.trapezoid" = |x| x[0].trapezoid(0.25, 0);
        "jnp.trapezoid:at" = |x| x[0].trapezoid_at(&x[1], -1);
        "jnp.interp" = |x| x[0].interp(&x[1], &x[2]);
        "jnp.gradient" = |x| x[0].gradient(1);
        "jnp.unwrap" = |x| x[0].unwrap_angles(0);
        "jnp.dot" = |x| x[0].dot(&x[1]);
        "jnp.matmul" = |x| x[0].matmul(&x[1]);
        "jnp.matvec" = |x| x[0].dot(&x[1]);
        "jnp.vecmat" = |x| x[0].dot(&x[1]);
        "jnp.vecdot" = |x| (&x[0] * &x[1]).sum_axes(-1);
        "jnp.vdot" = |x| x[0].vdot(&x[1]);
        "jnp.inner" = |x| x[0].inner(&x[1]);
        "jnp.outer" = |x| x[0].outer(&x[1]);
        "jnp.tensordot" = |x| x[0].tensordot(&x[1], ([0], [0]));
        "jnp.einsum" = |x| Array::einsum("ij,kj->ik", [&x[0], &x[1]]);
        "jnp.trace" = |x| x[0].trace();
        "jnp.apply_along_axis" = |x| vmap(|v: &Array| v.median()).axes(Some(1))(&x[0]);
        "jnp.apply_over_axes" = |x| x[0].sum_keep([0, 1]);
        "lax.cumlogsumexp" = |x| x[0].cumlogsumexp(1);
        "jnp.polyval" = |x| x[0].polyval(&x[1]);
        "jnp.polyadd" = |x| x[0].polyadd(&x[1]);
        "jnp.polysub" = |x| x[0].polysub(&x[1]);
        "jnp.polymul" = |x| x[0].polymul(&x[1]);
        "jnp.polydiv" = |x| x[0].polydiv(&x[1]);
        "jnp.polyder" = |x| x[0].polyder(2);
        "jnp.polyint" = |x| x[0].polyint(2);
        "jnp.poly" = |x| x[0].poly();
        "jnp.vander" = |x| x[0].vander(3);
    }
}

fn shapes() -> Vec<Entry> {
    table! {
        "jnp.reshape" = |x| x[0].reshape([2, 6]);
        "jnp.ravel" = |x| x[0].flatten();
        "jnp.transpose" = |x| x[0].transpose([2, 0, 1]);
        "jnp.matrix_transpose" = |x| x[0].swap_axes(-1, -2);
        "jnp.swapaxes" = |x| x[0].swap_axes(0, 2);
        "jnp.moveaxis" = |x| x[0].move_axis(0, -1);
        "jnp.rollaxis" = |x| x[0].move_axis(2, 0);
        "jnp.squeeze" = |x| x[0].expand_dims(0).squeeze(());
        "jnp.expand_dims" = |x| x[0].expand_dims(1);
        "jnp.broadcast_to" = |x| x[0].broadcast_to([2, 6]);
        "jnp.broadcast_arrays" = |x| Array::broadcast_arrays(x);
        "jnp.flip" = |x| x[0].flip(1);
        "jnp.fliplr" = |x| x[0].fliplr();
        "jnp.flipud" = |x| x[0].flipud();
        "jnp.rot90" = |x| x[0].rot90(3, 0, 1);
        "jnp.rot90:once" = |x| x[0].rot90(1, 0, 1);
        "jnp.roll" = |x| x[0].roll(2, 1);
        "jnp.repeat" = |x| x[0].repeat(2, 0);
        "jnp.tile" = |x| x[0].tile([2, 1]);
        "jnp.resize" = |x| x[0].resize([2, 7]);
        "jnp.vstack" = |x| Array::vstack(x);
        "jnp.vstack:matrices" = |x| Array::vstack(x);
        "jnp.hstack" = |x| Array::hstack(x);
        "jnp.hstack:matrices" = |x| Array::hstack(x);
        "jnp.dstack" = |x| Array::dstack(x);
        "jnp.column_stack" = |x| Array::column_stack(x);
        "jnp.stack" = |x| Array::stack(x, 1);
        "jnp.concatenate" = |x| Array::concatenate(x, 1);
        "jnp.append" = |x| x[0].append(&x[1], 0);
        "jnp.block" = |x| Array::block([[&x[0], &x[1]], [&x[1], &x[0]]]);
        "jnp.split" = |x| x[0].split(2, 1);
        "jnp.array_split" = |x| x[0].array_split(4, 0);
        "jnp.hsplit" = |x| x[0].split(2, 1);
        "jnp.vsplit" = |x| x[0].split(3, 0);
        "jnp.dsplit" = |x| x[0].split(2, 2);
        "jnp.unstack" = |x| x[0].unstack(1);
        "jnp.delete" = |x| x[0].delete(&[1, -1], 1);
        "jnp.insert" = |x| x[0].insert(2, &x[1], 1);
        "jnp.atleast_1d" = |x| x[0].atleast_1d();
        "jnp.atleast_2d" = |x| x[0].atleast_2d();
        "jnp.atleast_3d" = |x| x[0].atleast_3d();
        "jnp.atleast_3d:vector" = |x| x[0].atleast_3d();
        "jnp.pad" = |x| x[0].pad(&[(1, 2), (0, 1)], 2.0);
        "jnp.pad:edge" = |x| x[0].pad_edge(&[(1, 2), (5, 3)]);
        "jnp.pad:reflect" = |x| x[0].pad_reflect(&[(1, 2), (5, 3)]);
        "jnp.pad:symmetric" = |x| x[0].pad_symmetric(&[(1, 2), (5, 3)]);
        "jnp.pad:wrap" = |x| x[0].pad_wrap(&[(1, 2), (5, 3)]);
        "lax.pad" = |x| x[0].pad_interior(&[(1, -1, 0), (0, 2, 2)], 0.5);
        "jnp.astype" = |x| x[0].cast(DType::F32).cast(DType::F64);
        "jnp.packbits" = |x| x[0].packbits();
        "jnp.unpackbits" = |x| x[0].cast(DType::U8).unpackbits();
    }
}

fn places() -> Vec<Entry> {
    table! {
        "jnp.take" = |x| x[0].take(&x[1], 1);
        "jnp.take_along_axis" = |x| x[0].take_along_axis(&x[1], 1);
        "jnp.put_along_axis" = |x| x[0].put_along_axis(&x[1], &x[2], 1);
        "jnp.put" = |x| x[0].put(&x[1], &x[2]);
        "jnp.compress" = |x| x[1].compress(&x[0], 1, 3usize);
        "jnp.extract" = |x| x[1].extract(&x[0], 4usize);
        "jnp.nonzero" = |x| x[0].gt(0.0).nonzero(5usize);
        "jnp.flatnonzero" = |x| x[0].gt(0.0).flatnonzero(8usize);
        "jnp.argwhere" = |x| x[0].gt(0.0).argwhere(5usize);
        "jnp.unique" = |x| x[0].unique(5usize);
        "jnp.unique_values" = |x| x[0].unique(4usize);
        "jnp.unique_all" = |x| x[0].unique_all(4usize);
        "jnp.isin" = |x| x[0].isin(&x[1]);
        "jnp.union1d" = |x| x[0].union1d(&x[1], 7usize);
        "jnp.intersect1d" = |x| x[0].intersect1d(&x[1], 2usize);
        "jnp.setdiff1d" = |x| x[0].setdiff1d(&x[1], 2usize);
        "jnp.setxor1d" = |x| x[0].setxor1d(&x[1], 3usize);
        "jnp.unravel_index" = |x| x[0].unravel_index([3, 4]);
        "jnp.ravel_multi_index" = |x| Array::ravel_multi_index(x, [3, 4]);
        "jnp.fill_diagonal" = |x| x[0].fill_diagonal(2.5);
        "jnp.sort" = |x| x[0].sort(1);
        "jnp.argsort" = |x| x[0].argsort(1);
        "jnp.partition" = |x| x[0].partition(2, 1);
        "jnp.argpartition" = |x| x[0].argpartition(2, 1);
        "jnp.lexsort" = |x| Array::lexsort(x, 0);
        "jnp.searchsorted" = |x| x[0].searchsorted(&x[1]);
        "jnp.ix_" = |x| Array::open_grid(x);
        "ops.segment_sum" = |x| x[0].segment_sum(&x[1], 4usize);
        "ops.segment_prod" = |x| x[0].segment_prod(&x[1], 4usize);
        "ops.segment_max" = |x| x[0].segment_max(&x[1], 3usize);
        "ops.segment_min" = |x| x[0].segment_min(&x[1], 3usize);
    }
}

/// Arrays made from a rule do not depend on the argument, which only gives the table its form.
fn alone<R>(_: &[Array], made: R) -> R {
    made
}

fn making() -> Vec<Entry> {
    table! {
        "jnp.arange" = |x| alone(x, Array::arange(1.0, 4.0, 0.75));
        "jnp.linspace" = |x| alone(x, Array::linspace(-1.0, 2.0, 7));
        "jnp.logspace" = |x| alone(x, Array::logspace::<f64>(-1.0, 2.0, 5, 10.0));
        "jnp.geomspace" = |x| alone(x, Array::geomspace::<f64>(0.5, 32.0, 7));
        "jnp.eye" = |x| alone(x, Array::eye::<f64>(3usize));
        "jnp.identity" = |x| alone(x, Array::eye::<f64>(3usize));
        "jnp.tri" = |x| alone(x, Array::tri::<f64>(3usize, 4usize, 1));
        "jnp.zeros" = |x| alone(x, Array::zeros::<f64>([2, 3]));
        "jnp.ones" = |x| alone(x, Array::ones::<f64>([2, 3]));
        "jnp.full" = |x| alone(x, Array::full([2, 3], 1.5));
        "jnp.bartlett" = |x| alone(x, Array::bartlett::<f64>(7));
        "jnp.blackman" = |x| alone(x, Array::blackman::<f64>(7));
        "jnp.hamming" = |x| alone(x, Array::hamming::<f64>(7));
        "jnp.hanning" = |x| alone(x, Array::hanning::<f64>(7));
        "jnp.kaiser" = |x| alone(x, Array::kaiser::<f64>(7, 4.5));
        "jnp.indices" = |x| alone(x, Array::indices([2, 3]));
        "jnp.diag_indices" = |x| alone(x, Array::diag_indices(3));
        "jnp.tril_indices" = |x| alone(x, Array::tril_indices(3, 4, 1));
        "jnp.triu_indices" = |x| alone(x, Array::triu_indices(3, 4, -1));
        "jnp.fromfunction" = |x| alone(x, Array::from_function([2, 3], |at| &at[0] * 10.0 + &at[1]));
        "jnp.zeros_like" = |x| x[0].zeros_like();
        "jnp.ones_like" = |x| x[0].ones_like();
        "jnp.full_like" = |x| x[0].full_like(2.5);
        "jnp.meshgrid" = |x| Array::meshgrid(x);
        "jnp.tril" = |x| x[0].tril(1);
        "jnp.triu" = |x| x[0].triu(1);
        "jnp.diag" = |x| Array::diag(&x[0], 1);
        "jnp.diagflat" = |x| x[0].diagflat(0);
        "jnp.diagonal" = |x| x[0].diagonal();
    }
}
