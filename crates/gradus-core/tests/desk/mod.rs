//! Random calls of array methods with random arguments, good and bad. Tests here and in `gradus` call them, and so does the
//! fuzzer.

use gradus_core::array::Concrete;
use gradus_core::testing::{Source, random_array};
use gradus_core::{Array, Complex, DType, Index, Scalar, Type};

/// Sizes from nothing to too much. Between a million and what no machine has there is none: that would only be slow.
const SIZES: [i64; 12] = [0, 1, 2, 3, 2, 3, 4, 5, 7, -1, 1 << 45, i64::MAX];
const AXES: [isize; 10] = [0, 1, -1, 2, -2, 0, 3, -4, isize::MIN, isize::MAX];
const COUNTS: [usize; 9] = [0, 1, 2, 3, 2, 1, 7, 1 << 45, usize::MAX];
const INTS: [i64; 12] = [0, 1, -1, 2, -2, 3, 5, 100, -100, i64::MAX, i64::MIN, 1 << 40];

/// The arrays at hand and where decisions come from.
pub struct Desk<'s, 'a> {
    pub source: &'s mut Source<'a>,
    pub arrays: Vec<Array>,
}

impl Desk<'_, '_> {
    pub fn any(&mut self) -> Array {
        self.source.pick(&self.arrays).cloned().unwrap_or_else(|| Array::from(1.0_f64))
    }
    fn axis(&mut self) -> isize {
        AXES[self.source.below(AXES.len())]
    }
    fn axes(&mut self) -> Vec<isize> {
        (0..self.source.below(4)).map(|_| self.axis()).collect()
    }
    fn count(&mut self) -> usize {
        COUNTS[self.source.below(COUNTS.len())]
    }
    fn int(&mut self) -> i64 {
        INTS[self.source.below(INTS.len())]
    }
    fn shape(&mut self) -> Vec<i64> {
        (0..self.source.below(5)).map(|_| SIZES[self.source.below(SIZES.len())]).collect()
    }
    fn dtype(&mut self) -> DType {
        DType::VALUES[self.source.below(15)]
    }
    fn scalar(&mut self) -> Scalar {
        match self.source.below(6) {
            0 => Scalar::I64(self.int()),
            1 => Scalar::Bool(self.source.chance(50)),
            2 => Scalar::F64([0.5, -0.0, f64::NAN, f64::INFINITY, 1e300][self.source.below(5)]),
            3 => Scalar::C128(Complex::new(0.5, -1.0)),
            4 => Scalar::F64(self.source.below(9) as f64 - 4.0),
            _ => Scalar::I32(self.source.below(9) as i32 - 4),
        }
    }
    fn indices(&mut self) -> Vec<Index> {
        (0..self.source.below(4))
            .map(|_| match self.source.below(9) {
                0..3 => Index::At(self.int()),
                3 => Index::step(.., 1),
                4 => Index::NewAxis,
                5 => Index::Ellipsis,
                6 => Index::step(self.int()..self.int(), self.int()),
                7 => Index::Range { start: Some(self.int()), end: None, step: 1 },
                _ => Index::Array(self.any()),
            })
            .collect()
    }

    /// One call of some method. Its name comes back with what it gave.
    pub fn call(&mut self) -> (&'static str, Vec<Array>) {
        let x = self.any();
        macro_rules! methods {
            ($($number:literal $name:literal => $result:expr;)*) => {
                match self.source.below(methods!(@ $($number)*)) {
                    $($number => ($name, $result),)*
                    _ => ("nothing", Vec::new()),
                }
            };
            (@ $($number:literal)*) => { [$($number),*].len() };
        }
        methods! {
            0 "add" => vec![&x + self.any()];
            1 "sub" => vec![&x - self.scalar()];
            2 "mul" => vec![self.any() * &x];
            3 "div" => vec![&x / self.any()];
            4 "rem" => vec![&x % self.scalar()];
            5 "bits" => { let y = self.any(); vec![&x & &y, &x | &y, &x ^ &y, !&x] };
            6 "shifts" => { let y = self.any(); vec![&x << &y, &x >> &y, x.shift_right_logical(&y)] };
            7 "neg" => vec![-&x];
            8 "pow" => { let n = self.int() % 9; vec![x.pow(self.any()), x.powi(n)] };
            9 "compare" => { let y = self.any(); vec![x.eq(&y), x.lt(&y), x.ge(&y), x.ne(&y)] };
            10 "extrema" => { let y = self.any(); vec![x.maximum(&y), x.minimum(&y), x.atan2(&y)] };
            11 "clamp" => { let (a, b) = (self.any(), self.scalar()); vec![x.clamp(a, b)] };
            12 "select" => { let (a, b) = (self.any(), self.any()); vec![x.select(a, b)] };
            13 "functions" => vec![x.sin(), x.exp(), x.log(), x.sqrt(), x.erf(), x.lgamma(), x.digamma(), x.tanh()];
            14 "parts" => vec![x.real(), x.imag(), x.conj(), x.abs(), x.sign(), x.angle()];
            15 "rounding" => vec![x.floor(), x.ceil(), x.round(), x.trunc(), x.popcount(), x.is_finite(), x.is_nan()];
            16 "sum" => { let axes = self.axes(); vec![x.sum(), x.sum_axes(axes)] };
            17 "prod" => { let axes = self.axes(); vec![x.prod(), x.prod_axes(axes)] };
            18 "max" => { let axes = self.axes(); vec![x.max(), x.max_axes(axes.clone()), x.min_keep(axes)] };
            19 "mean" => { let axes = self.axes(); vec![x.mean(), x.mean_axes(axes.clone()), x.var_axes(axes, 1)] };
            20 "truth" => { let axes = self.axes(); vec![x.all(), x.any_axes(axes)] };
            21 "softmax" => { let axes = self.axes(); vec![x.softmax(axes.clone()), x.logsumexp_axes(axes)] };
            22 "argmax" => { let axis = self.axis(); vec![x.argmax(), x.argmin_axis(axis), x.argmax_keep(axis)] };
            23 "cumulative" => { let a = self.axis(); vec![x.cumsum(a), x.cumprod(a), x.cummax(a), x.cummin(a)] };
            24 "reshape" => { let shape = self.shape(); vec![x.reshape(shape), x.flatten()] };
            25 "broadcast_to" => { let shape = self.shape(); vec![x.broadcast_to(shape)] };
            26 "transpose" => { let axes = self.axes(); vec![x.transpose(axes), x.t()] };
            27 "swap_axes" => { let (a, b) = (self.axis(), self.axis()); vec![x.swap_axes(a, b), x.move_axis(a, b)] };
            28 "squeeze" => { let axes = self.axes(); vec![x.squeeze(axes.clone()), x.expand_dims(axes)] };
            29 "flip" => { let axes = self.axes(); vec![x.flip(axes)] };
            30 "roll" => { let (n, a) = (self.int() as isize, self.axis()); vec![x.roll(n, a)] };
            31 "repeat" => { let (n, a) = (self.count(), self.axis()); vec![x.repeat(n, a)] };
            32 "tile" => { let shape = self.shape(); vec![x.tile(shape)] };
            33 "stack" => { let (y, a) = (self.any(), self.axis()); vec![Array::stack([&x, &y], a)] };
            34 "concatenate" => { let (y, a) = (self.any(), self.axis()); vec![Array::concatenate([&x, &y, &x], a)] };
            35 "split" => { let (n, a) = (self.count() % 9, self.axis()); x.split(n, a) };
            36 "split_at" => { let (n, m, a) = (self.count(), self.count(), self.axis()); x.split_at(&[n, m], a) };
            37 "pad" => {
                let counts: Vec<(isize, isize)> =
                    (0..self.source.below(3)).map(|_| (self.int() as isize, self.int() as isize)).collect();
                let value = self.scalar();
                vec![x.pad(&counts, value)]
            };
            38 "cast" => { let d = self.dtype(); vec![x.cast(d), x.bitcast(d)] };
            39 "index" => { let index = self.indices(); vec![x.index(index)] };
            40 "set" => { let (i, v) = (self.indices(), self.any()); vec![x.at(i.clone()).set(&v), x.at(i).add(&v)] };
            41 "update" => {
                let (i, v) = (self.indices(), self.scalar());
                vec![x.at(i.clone()).mul(v), x.at(i.clone()).min(v), x.at(i).max(v)]
            };
            42 "take" => { let (i, a) = (self.any(), self.axis()); vec![x.take(&i, a), x.take_along_axis(&i, a)] };
            43 "dynamic_slice" => {
                let (i, j, shape) = (self.any(), self.any(), self.shape());
                vec![x.dynamic_slice(&[i.clone()], shape.clone()), x.dynamic_slice(&[i, j], shape)]
            };
            44 "dynamic_update_slice" => { let (u, i) = (self.any(), self.any()); vec![x.dynamic_update_slice(&u, &[i])] };
            45 "sort" => { let a = self.axis(); vec![x.sort(a), x.argsort(a), x.sort_descending(a)] };
            46 "top_k" => { let k = self.count(); let (v, i) = x.top_k(k); vec![v, i] };
            47 "searchsorted" => { let v = self.any(); vec![x.searchsorted(&v)] };
            48 "matmul" => { let y = self.any(); vec![x.matmul(&y), x.dot(&y), x.inner(&y)] };
            49 "outer" => { let y = self.any(); vec![x.outer(&y), x.vdot(&y)] };
            50 "tensordot" => { let (y, n) = (self.any(), self.count()); vec![x.tensordot(&y, n)] };
            51 "einsum" => {
                let y = self.any();
                let equations = ["ij,jk->ik", "i,i->", "ii->i", "...i,...i->...", "ij->ji", "a,b->ab", "i->", "bij,bjk->bik", "x", ",->"];
                let equation = equations[self.source.below(equations.len())];
                vec![Array::einsum(equation, [&x, &y]), Array::einsum(equation, [&x])]
            };
            52 "triangles" => { let k = self.int() as isize; vec![x.tril(k), x.triu(k), x.diagonal(), Array::diag(&x, k % 9)] };
            53 "diagonal_axes" => { let (a, b) = (self.axis(), self.axis()); vec![x.diagonal_axes(self.int() as isize, a, b)] };
            54 "one_hot" => { let (n, d) = (self.count(), self.dtype()); vec![x.one_hot(n, d)] };
            55 "like" => { let v = self.scalar(); vec![x.zeros_like(), x.ones_like(), x.full_like(v)] };
            56 "full" => { let shape = self.shape(); vec![Array::full(shape.clone(), 1.5_f64), Array::zeros::<i32>(shape)] };
            57 "iota" => { let (d, s, a) = (self.dtype(), self.shape(), self.axis()); vec![Array::iota(d, s, a)] };
            58 "eye" => { let n = self.count(); vec![Array::eye::<f32>(n), Array::tri::<i32>(n, 3usize, self.int() as isize)] };
            59 "arange" => {
                let (a, b, c) = (self.int(), self.int(), self.int());
                vec![Array::arange(a, a.saturating_add(b % 50), c), Array::linspace(0.0_f64, 1.0, self.count())]
            };
            60 "meshgrid" => { let y = self.any(); Array::meshgrid([&x, &y]) };
            61 "complex" => vec![Array::complex(&x, &self.any())];
            62 "polygamma" => { let n = self.source.below(4) as u32; vec![x.polygamma(n)] };
            63 "nextafter" => { let v = self.scalar(); vec![x.nextafter(v), x.recip(), x.square(), x.relu(), x.log2()] };
            64 "std" => { let axes = self.axes(); vec![x.std(), x.std_keep(axes, 1)] };
            65 "to_dense" => vec![x.to_dense()];
            66 "sort_by_keys" => {
                let (y, a) = (self.any(), self.axis());
                let (keys, values) = Array::sort_by_keys([&x], [&y], a);
                keys.into_iter().chain(values).collect()
            };
            67 "trace" => vec![x.trace(), x.flatten().sum()];
        }
    }

    /// Keeps what is small enough to go on with.
    pub fn keep(&mut self, array: Array) {
        let Ok(ty) = array.ty() else { return };
        let small = ty.shape().count().is_some_and(|n| n <= 512) && ty.rank() <= 6;
        let splat = array.concrete().is_some_and(|c| c.splat_value().is_some());
        if !(small || splat) {
            return;
        }
        if self.arrays.len() < 16 {
            self.arrays.push(array);
        } else {
            let at = self.source.below(16);
            self.arrays[at] = array;
        }
    }
}

/// Whatever came back can be looked at.
pub fn examine(name: &str, array: &Array) {
    let shown = format!("{array} {array:?}");
    assert!(shown.len() < 1_000_000, "{name}");
    match array.concrete() {
        Some(c) => {
            assert_eq!(c.dims().len(), c.strides().len(), "{name}");
            assert_eq!(c.ty().shape().count(), Some(c.count()), "{name}");
            if c.count() <= 512 {
                let dense: Concrete = c.to_dense();
                assert!(dense.same_bits(c), "{name}");
                assert!((0..c.count()).all(|i| c.scalar_at(i).is_ok()), "{name}");
            }
        }
        None => {
            let e = array.error().unwrap_or_else(|| panic!("{name}: {array:?}"));
            assert!(e.place().is_known() && !e.message().is_empty(), "{name}: {e}");
            assert_ne!(e.kind(), gradus_core::ErrorKind::Rule, "{name}: {e}");
        }
    }
}

pub fn starting_arrays(source: &mut Source<'_>, count: usize) -> Vec<Array> {
    const LARGE: usize = 1 << 45;
    let shapes: [&[usize]; 12] = [
        &[],
        &[3],
        &[2, 3],
        &[3, 2],
        &[1],
        &[0],
        &[2, 0, 3],
        &[2, 2],
        &[4],
        &[LARGE, LARGE, 0],
        &[0, LARGE],
        &[LARGE, 0, LARGE],
    ];
    (0..count)
        .map(|_| {
            let dtype = match source.chance(60) {
                true => [DType::F64, DType::I32, DType::F32, DType::Bool][source.below(4)],
                false => DType::VALUES[source.below(15)],
            };
            let ty = Type::new(dtype, shapes[source.below(shapes.len())]);
            random_array(source, &ty, false)
        })
        .collect()
}

/// Equal numbers, or close ones: a traced sum may be taken in another order than an eager one.
pub fn close(a: &Array, b: &Array) -> bool {
    let (Some(x), Some(y)) = (a.concrete(), b.concrete()) else { return false };
    let parts = |s: Scalar| match s {
        Scalar::C64(v) => [v.re as f64, v.im as f64],
        Scalar::C128(v) => [v.re, v.im],
        other => [other.to_f64(), 0.0],
    };
    let near =
        |p: f64, q: f64| p == q || (p.is_nan() && q.is_nan()) || (p - q).abs() <= 1e-3 * (p.abs() + q.abs()) + 1e-6;
    x.ty() == y.ty()
        && (0..x.count()).all(|i| match (x.scalar_at(i), y.scalar_at(i)) {
            (Ok(p), Ok(q)) => p == q || parts(p).into_iter().zip(parts(q)).all(|(p, q)| near(p, q)),
            _ => false,
        })
}
