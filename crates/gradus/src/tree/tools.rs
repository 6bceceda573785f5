//! Arithmetic on trees: what is done to every array of a value, to several values of one structure at once, or to all arrays together.

use gradus_core::error::counted;
use gradus_core::{Array, DType, Error, ErrorKind, Location, Operand, OperandValue, Result, trace};

use super::{Frozen, Segment, Tree, Visitor, again};
use crate::stage::{Replace, fill, first_difference, poison};

/// The names of a tree's arrays, in the order of [`leaves`](Tree::leaves): `layers.0.weights`. A tree that is one array has one empty name.
///
/// ```
/// use gradus::prelude::*;
///
/// let model = (vec![Array::from(1.0_f64), Array::from(2.0_f64)], Array::from(3.0_f64));
/// assert_eq!(tree::paths(&model), ["0.0", "0.1", "1"]);
/// ```
pub fn paths<T: Tree>(tree: &T) -> Vec<String> {
    let mut found = Paths::default();
    tree.visit(&mut found);
    found.all
}

#[derive(Default)]
struct Paths {
    path: Vec<String>,
    all: Vec<String>,
}

impl Visitor for Paths {
    fn enter(&mut self, segment: Segment<'_>) {
        self.path.push(match segment {
            Segment::Field(name) | Segment::Variant(name) => name.to_string(),
            Segment::Index(index) => index.to_string(),
            Segment::Key(key) => key.to_string(),
        });
    }
    fn leave(&mut self) {
        self.path.pop();
    }
    fn structure(&mut self, _: &str, _: usize) {}
    fn array(&mut self, _: &Array) {
        self.all.push(self.path.join("."));
    }
    fn frozen(&mut self, _: &dyn Frozen) {}
}

/// The same value with a function applied to each array.
///
/// ```
/// use gradus::prelude::*;
///
/// let doubled = tree::map(&(Array::from(1.0_f64), Array::from(2.0_f64)), |x| x * 2.0_f64);
/// assert_eq!(doubled.1.item::<f64>()?, 4.0);
/// # Ok::<(), gradus::Error>(())
/// ```
#[doc(alias = "tree_map")]
pub fn map<T: Tree>(tree: &T, f: impl FnMut(&Array) -> Array) -> T {
    tree.map(&mut Replace(f))
}

/// As [`map`](map()), with the name that [`paths`] gives each array.
///
/// ```
/// use gradus::prelude::*;
///
/// // What is called a bias is left alone.
/// # #[derive(Clone, Tree)]
/// # struct Layer { weights: Array, bias: Array }
/// let layer = Layer { weights: Array::from(2.0_f64), bias: Array::from(1.0_f64) };
/// let decayed = tree::map_with_path(&layer, |path, x| if path.ends_with("bias") { x.clone() } else { x * 0.5_f64 });
/// assert_eq!([decayed.weights.item::<f64>()?, decayed.bias.item::<f64>()?], [1.0, 1.0]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[doc(alias = "tree_map_with_path")]
pub fn map_with_path<T: Tree>(tree: &T, mut f: impl FnMut(&str, &Array) -> Array) -> T {
    let mut paths = paths(tree).into_iter();
    map(tree, |x| f(&paths.next().unwrap_or_default(), x))
}

/// One value made of several of the same structure, array by array. Where their structures differ every array of the result carries the error.
///
/// ```
/// use gradus::prelude::*;
///
/// let (p, g) = ((Array::from(1.0_f64), Array::from(2.0_f64)), (Array::from(10.0_f64), Array::from(20.0_f64)));
/// let next = tree::map_all([&p, &g], |[p, g]| p - 0.1_f64 * g);
/// assert_eq!([next.0.item::<f64>()?, next.1.item::<f64>()?], [0.0, 0.0]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "tree_map")]
pub fn map_all<T: Tree, const N: usize>(trees: [&T; N], mut f: impl FnMut([&Array; N]) -> Array) -> T {
    const { assert!(N > 0, "a result has the structure of the first tree") };
    let place = trace::caller_or_known(Location::caller());
    if let Err(e) = trees[1..].iter().try_for_each(|t| same_names(trees[0], t)) {
        return poison(trees[0], &e.at(place));
    }
    let leaves = trees.map(Tree::leaves);
    let made = (0..leaves[0].len()).map(|i| f(std::array::from_fn(|k| &leaves[k][i])));
    fill(trees[0], made)
}

/// Refuses trees whose arrays are in other places.
pub(crate) fn same_names<T: Tree>(a: &T, b: &T) -> Result<()> {
    // The usual case, without a word written: one walk each.
    let (x, y) = (paths(a), paths(b));
    if x == y {
        return Ok(());
    }
    let only = |x: &[String], y: &[String]| x.iter().find(|name| !y.contains(name)).cloned();
    let message = match (only(&x, &y), only(&y, &x)) {
        (Some(name), _) => format!("two trees of different structure: only the first has an array `{name}`"),
        (_, Some(name)) => format!("two trees of different structure: only the second has an array `{name}`"),
        _ => "two trees of different structure: their arrays stand in another order".to_string(),
    };
    Err(Error::new(ErrorKind::Signature, message).help("options, variants and lengths must be the same in both"))
}

/// Zeros of the types of a tree's arrays. A random key stays as it is: there is no key of zero.
///
/// ```
/// use gradus::prelude::*;
///
/// let zeros = tree::zeros_like(&(Array::from([1.0_f64, 2.0]), Array::from(3_i32)));
/// assert_eq!(zeros.0.to_vec::<f64>()?, [0.0, 0.0]);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
pub fn zeros_like<T: Tree>(tree: &T) -> T {
    map(tree, |x| if x.dtype() == DType::Key { x.clone() } else { x.zeros_like() })
}

/// Ones of the types of a tree's arrays. A random key stays as it is.
#[track_caller]
pub fn ones_like<T: Tree>(tree: &T) -> T {
    map(tree, |x| if x.dtype() == DType::Key { x.clone() } else { x.ones_like() })
}

/// A fold over a tree's arrays, in order.
///
/// ```
/// use gradus::prelude::*;
///
/// let model = (Array::zeros::<f32>([3, 4]), Array::zeros::<f32>([4]));
/// let parameters = tree::reduce(&model, 0, |n, x| n + x.known_dims().map_or(0, |d| d.iter().product::<usize>()));
/// assert_eq!(parameters, 16);
/// ```
#[doc(alias = "fold")]
pub fn reduce<T: Tree, B>(tree: &T, init: B, f: impl FnMut(B, &Array) -> B) -> B {
    tree.leaves().iter().fold(init, f)
}

/// Arrays added up; of none, zero.
#[track_caller]
fn total(parts: impl Iterator<Item = Array>) -> Array {
    parts.reduce(|a, b| a + b).unwrap_or_else(|| Array::from(0.0_f64))
}

fn inexact<T: Tree>(tree: &T) -> impl Iterator<Item = Array> {
    tree.leaves().into_iter().filter(|x| x.dtype().is_inexact() || x.error().is_some())
}

/// The inner product of two trees: products of all their elements, added up, those of the first conjugated. Integers, bools and keys do not count.
#[track_caller]
#[doc(alias = "vdot")]
pub fn dot<T: Tree>(a: &T, b: &T) -> Array {
    let place = trace::caller_or_known(Location::caller());
    if let Err(e) = same_names(a, b) {
        return Array::from(e.at(place));
    }
    trace::at_place(place, || total(inexact(a).zip(inexact(b)).map(|(x, y)| (x.conj() * y).sum())))
}

/// The root of the sum of squares of all elements of all arrays; of half floats it is an `f32`. Integers, bools and keys do not count.
///
/// ```
/// use gradus::prelude::*;
///
/// let norm = tree::global_norm(&(Array::from([3.0_f64, 0.0]), Array::from(4.0_f64)));
/// assert_eq!(norm.item::<f64>()?, 5.0);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "l2_norm")]
pub fn global_norm<T: Tree>(tree: &T) -> Array {
    let place = trace::caller_or_known(Location::caller());
    let squares = |x: Array| match x.dtype() {
        DType::C64 | DType::C128 => x.real().square().sum() + x.imag().square().sum(),
        // The square of 300 is more than a half float holds.
        DType::F16 | DType::BF16 => x.cast(DType::F32).square().sum(),
        _ => x.square().sum(),
    };
    trace::at_place(place, || total(inexact(tree).map(squares)).sqrt())
}

/// The sums of two trees, array by array.
#[track_caller]
pub fn add<T: Tree>(a: &T, b: &T) -> T {
    combine(a, b, |x, y| x + y)
}

/// The differences of two trees, array by array.
#[track_caller]
pub fn sub<T: Tree>(a: &T, b: &T) -> T {
    combine(a, b, |x, y| x - y)
}

/// `a + factor * b`, array by array. The factor is a number or an array without axes.
///
/// ```
/// use gradus::prelude::*;
///
/// let (x, direction) = ((Array::from(1.0_f64),), (Array::from(4.0_f64),));
/// assert_eq!(tree::add_scaled(&x, -0.25_f64, &direction).0.item::<f64>()?, 0.0);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "axpy")]
pub fn add_scaled<T: Tree>(a: &T, factor: impl Operand, b: &T) -> T {
    let factor = factor.into_operand();
    combine(a, b, |x, y| x + times(y, &factor))
}

/// Every array times one number, or one array without axes.
#[track_caller]
pub fn scale<T: Tree>(tree: &T, factor: impl Operand) -> T {
    let place = trace::caller_or_known(Location::caller());
    let factor = factor.into_operand();
    let each = |x: &Array| if x.dtype().is_inexact() { times(x, &factor) } else { x.clone() };
    trace::at_place(place, || map(tree, each))
}

/// What is not a float or a complex number stays as it is in the first tree.
#[track_caller]
fn combine<T: Tree>(a: &T, b: &T, f: impl Fn(&Array, &Array) -> Array) -> T {
    let place = trace::caller_or_known(Location::caller());
    let each = |[x, y]: [&Array; 2]| if x.dtype().is_inexact() { f(x, y) } else { x.clone() };
    trace::at_place(place, || map_all([a, b], each))
}

/// An array times a number, in the array's own dtype: what is computed in more digits is rounded.
fn times(x: &Array, factor: &OperandValue) -> Array {
    match factor {
        OperandValue::Number(n) => x * *n,
        OperandValue::Dim(d) => x * d.clone(),
        OperandValue::Array(a) if a.dtype().is_complex() && !x.dtype().is_complex() => x * a,
        OperandValue::Array(a) => x * a.cast(x.dtype()),
    }
}

/// All arrays of a tree, one after the other, as one vector, and the way back. The vector has the dtype that holds them all.
///
/// ```
/// use gradus::prelude::*;
///
/// let model = (Array::from([[1.0_f64, 2.0]]), Array::from(3.0_f64));
/// let (vector, unravel) = tree::ravel(&model);
/// assert_eq!(vector.to_vec::<f64>()?, [1.0, 2.0, 3.0]);
/// let back = unravel.call(&(vector * 10.0_f64));
/// assert_eq!(back.0.shape(), [1, 2]);
/// assert_eq!(back.1.item::<f64>()?, 30.0);
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "ravel_pytree")]
pub fn ravel<T: Tree>(tree: &T) -> (Array, Unravel<T>) {
    let place = trace::caller_or_known(Location::caller());
    let vector = trace::at_place(place, || raveled(&tree.leaves())).map_err(|e| e.at(place));
    (vector.into(), Unravel { like: again(tree) })
}

fn raveled(leaves: &[Array]) -> Result<Array> {
    let mut dtype = None;
    for x in leaves {
        let own = x.ty()?.dtype();
        dtype = match dtype {
            None => Some(own),
            Some(so_far) => Some(own.promote(so_far).ok_or_else(|| {
                Error::new(ErrorKind::DType, format!("no dtype holds both {so_far} and {own}, so they make no vector"))
                    .help("cast the arrays of the tree first, or leave keys and integers out of it")
            })?),
        };
    }
    let Some(dtype) = dtype else { return Ok(Array::zeros::<f64>([0])) };
    Array::concatenate(leaves.iter().map(|x| x.cast(dtype).flatten()), 0).ok()
}

/// The way back from the vector that [`ravel`] gave.
#[derive(Clone, Debug)]
pub struct Unravel<T> {
    like: T,
}

impl<T: Tree> Unravel<T> {
    /// A tree with the numbers of a vector, each array of the dtype and shape that it had.
    #[track_caller]
    pub fn call(&self, vector: &Array) -> T {
        let place = trace::caller_or_known(Location::caller());
        match trace::at_place(place, || self.parts(vector)) {
            Ok(parts) => fill(&self.like, parts),
            Err(e) => poison(&self.like, &e.at(place)),
        }
    }

    /// A tree for each row of a matrix: every array with the rows as its leading axis.
    pub(crate) fn call_rows(&self, matrix: &Array) -> T {
        let leaves = self.like.leaves();
        let place = trace::caller_or_known(Location::unknown());
        let parts = || -> Result<Vec<Array>> {
            let ends = self.ends()?;
            let parts = if leaves.is_empty() { Vec::new() } else { matrix.split_at(&ends[..ends.len() - 1], 1) };
            let shaped =
                |(part, x): (Array, &Array)| part.reshape(x.shape().inserted(0, matrix.dim(0))).cast(x.dtype()).ok();
            parts.into_iter().zip(&leaves).map(shaped).collect()
        };
        match parts() {
            Ok(parts) => fill(&self.like, parts),
            Err(e) => poison(&self.like, &e.at(place)),
        }
    }

    /// Where each array ends in the vector.
    fn ends(&self) -> Result<Vec<usize>> {
        let mut all = 0;
        let sizes = self.like.leaves().into_iter().map(|x| {
            all += x.known_dims()?.iter().product::<usize>();
            Ok(all)
        });
        sizes.collect()
    }

    fn parts(&self, vector: &Array) -> Result<Vec<Array>> {
        let leaves = self.like.leaves();
        let mut ends = self.ends()?;
        let all = ends.last().copied().unwrap_or(0);
        let ty = vector.ty()?;
        if vector.known_dims()? != [all] {
            let message = format!("a vector {ty} does not fill a tree of {}", counted(all, "element"));
            return Err(Error::new(ErrorKind::Shape, message).help("give a vector of the length that `ravel` gave"));
        }
        ends.pop();
        let parts = if leaves.is_empty() { Vec::new() } else { vector.split_at(&ends, 0) };
        parts.into_iter().zip(&leaves).map(|(part, x)| part.reshape(x.shape().clone()).cast(x.dtype()).ok()).collect()
    }
}

/// Whether two trees have the same structure and types, and numbers with |x − y| ≤ tolerance · (1 + |y|). Infinities must be equal, integers, bools
/// and keys too; a NaN is close to nothing. Trees of other structures or types are an error that says where they differ.
///
/// ```
/// use gradus::prelude::*;
///
/// let x = (Array::from([1.0_f64, 2.0]),);
/// assert!(tree::all_close(&x, &(Array::from([1.0_f64, 2.0 + 1e-9]),), 1e-8)?);
/// assert!(!tree::all_close(&x, &(Array::from([1.0_f64, 2.1]),), 1e-8)?);
/// assert!(tree::all_close(&x, &(Array::from([1.0_f64]),), 1e-8).is_err());
/// # Ok::<(), gradus::Error>(())
/// ```
#[track_caller]
#[doc(alias = "allclose")]
pub fn all_close<T: Tree>(a: &T, b: &T, tolerance: f64) -> Result<bool> {
    let place = Location::caller();
    if let Some(e) = a.leaves().iter().chain(&b.leaves()).find_map(Array::error) {
        return Err(e.clone());
    }
    if let Some((path, x, y)) = first_difference(a, b) {
        let at = if path.is_empty() { String::new() } else { format!(" at `{path}`") };
        let message =
            format!("two trees that cannot be compared: they differ{at}, {x} in the first and {y} in the second");
        return Err(Error::new(ErrorKind::Signature, message).at(place));
    }
    for (x, y) in a.leaves().iter().zip(b.leaves()) {
        if !close(x, &y, tolerance).all().item::<bool>().map_err(|e| e.at(place))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn close(x: &Array, y: &Array, tolerance: f64) -> Array {
    match x.dtype() {
        DType::Key => x.bitcast(DType::U64).eq(y.bitcast(DType::U64)),
        // What half floats differ by is not a half float.
        DType::F16 | DType::BF16 => close(&x.cast(DType::F32), &y.cast(DType::F32), tolerance),
        d if !d.is_inexact() => x.eq(y),
        _ => {
            let size = y.abs();
            let near = (x - y).abs().le((&size + 1.0_f64) * tolerance);
            x.eq(y) | (near & size.lt(f64::INFINITY))
        }
    }
}
