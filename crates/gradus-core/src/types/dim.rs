//! Symbolic array dimensions, so that one program serves every batch size: integer polynomials over named sizes, in a
//! normal form where equal polynomials are the same value, and a three-valued logic that never guesses.
//!
//! Every symbol stands for an integer of at least zero: an array may be empty, so nothing here divides by a symbol
//! as if it were positive. An expression that divides by zero has no value; a simplification may drop such an
//! expression (`0*floordiv(B,C)` is `0`) but never gives a wrong value where there is one.
//!
//! The text form, `Constraint`, `Decision` and `DimError` live in `dim_text.rs`.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::dim_range::{INF, Range, floor, gcd, rem};
pub use super::dim_text::{Constraint, Decision, DimError};

/// More monomials than this is a runaway expression, not a shape.
const MAX_MONOMIALS: usize = 256;
/// The highest total degree of a monomial.
const MAX_DEGREE: u32 = 32;
/// Atoms in the whole tree. Arguments are shared, so without this bound 64 doublings would print 2^64 symbols.
const MAX_SIZE: usize = 4096;
/// How deep function calls nest. It bounds every recursion here, and equals the parser's limit so that all text parses.
pub(super) const MAX_DEPTH: usize = 64;
/// How many atoms a range computation may open up; each `max` or `min` doubles the work.
const RANGE_FUEL: u32 = 6;

/// The size of an array axis: an integer, or a polynomial in named sizes.
///
/// Equality is structural on the normal form, so `B+B == 2*B`. Arithmetic never panics: overflow, division by the
/// constant zero and expressions of absurd size give an *invalid* dimension, which stays invalid. All invalid
/// dimensions are equal as values, though [`Dim::equals`] says nothing about them.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

const _: () = assert!(size_of::<Dim>() <= 16, "dimensions are stored by the million: keep them two words");

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Const(i64),
    /// Sorted by monomial, coefficients not zero, never a mere constant.
    Poly(Arc<Vec<(Monomial, i64)>>),
    Invalid,
}

/// A product of atoms with powers, sorted by atom; empty for the constant term.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Monomial(pub(super) Vec<(Atom, u32)>);

static ONE: Monomial = Monomial(Vec::new());

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Symbol(Arc<str>),
    Call(Arc<Call>),
}

/// A function of normal forms that polynomial algebra cannot see into.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) func: Func,
    pub(super) a: Dim,
    pub(super) b: Dim,
    // Kept so that no question about an outer expression walks the inner ones again.
    a_range: Range,
    range: Range,
    size: usize,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Func {
    FloorDiv,
    Mod,
    Max,
    Min,
}

impl Func {
    pub(super) const ALL: [Func; 4] = [Func::FloorDiv, Func::Mod, Func::Max, Func::Min];

    pub(super) fn name(self) -> &'static str {
        match self {
            Func::FloorDiv => "floordiv",
            Func::Mod => "mod",
            Func::Max => "max",
            Func::Min => "min",
        }
    }

    pub(super) fn apply(self, a: &Dim, b: &Dim) -> Dim {
        match self {
            Func::FloorDiv => a.floor_div(b),
            Func::Mod => a.modulo(b),
            Func::Max => a.max(b),
            Func::Min => a.min(b),
        }
    }
}

// The order of terms in the text: highest degree first, then alphabetical, the constant last. It is the graded
// lexicographic order, which multiplication respects; `exact_quotient` relies on that.

impl Ord for Monomial {
    fn cmp(&self, other: &Self) -> Ordering {
        other.degree().cmp(&self.degree()).then_with(|| {
            let ours = self.0.iter().map(|(atom, power)| (atom, Reverse(power)));
            ours.cmp(other.0.iter().map(|(atom, power)| (atom, Reverse(power))))
        })
    }
}

impl PartialOrd for Monomial {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Atom {
    fn cmp(&self, other: &Self) -> Ordering {
        // No symbol is named like a function, so equal names mean equal kinds.
        self.name().cmp(other.name()).then_with(|| match (self, other) {
            (Atom::Call(x), Atom::Call(y)) => x.a.order(&y.a).then_with(|| x.b.order(&y.b)),
            _ => Ordering::Equal,
        })
    }
}

impl PartialOrd for Atom {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Monomial {
    fn degree(&self) -> u32 {
        self.0.iter().map(|(_, power)| power).sum()
    }

    pub(super) fn is_one(&self) -> bool {
        self.0.is_empty()
    }

    /// The atom, where the monomial is nothing else.
    fn as_atom(&self) -> Option<&Atom> {
        match self.0.as_slice() {
            [(atom, 1)] => Some(atom),
            _ => None,
        }
    }

    pub(super) fn times(&self, other: &Monomial) -> Monomial {
        let mut factors = self.0.clone();
        for (atom, power) in &other.0 {
            match factors.binary_search_by(|(a, _)| a.cmp(atom)) {
                Ok(i) => factors[i].1 += power,
                Err(i) => factors.insert(i, (atom.clone(), *power)),
            }
        }
        Monomial(factors)
    }

    fn over(&self, other: &Monomial) -> Option<Monomial> {
        let mut factors = self.0.clone();
        for (atom, power) in &other.0 {
            let i = factors.binary_search_by(|(a, _)| a.cmp(atom)).ok()?;
            factors[i].1 = factors[i].1.checked_sub(*power)?;
        }
        factors.retain(|(_, power)| *power > 0);
        Some(Monomial(factors))
    }

    fn range(&self) -> Range {
        self.0.iter().fold(Range::point(1), |product, (atom, power)| product.times(atom.range().pow(*power)))
    }
}

impl Atom {
    fn name(&self) -> &str {
        match self {
            Atom::Symbol(name) => name,
            Atom::Call(call) => call.func.name(),
        }
    }

    fn range(&self) -> Range {
        match self {
            Atom::Symbol(_) => Range { lo: 0, hi: INF },
            Atom::Call(call) => call.range,
        }
    }

    fn size(&self) -> usize {
        match self {
            Atom::Symbol(_) => 1,
            Atom::Call(call) => call.size,
        }
    }

    fn evaluate(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<i64, DimError> {
        let call = match self {
            Atom::Symbol(name) => {
                let value = env(name).ok_or_else(|| DimError::new(format!("symbol `{name}` has no value")))?;
                return match value {
                    0.. => Ok(value),
                    // Simplifications have already assumed the sign: a value would be a wrong one.
                    _ => Err(DimError::new(format!("symbol `{name}` is {value}, but a dimension is at least 0"))),
                };
            }
            Atom::Call(call) => call,
        };
        let (a, b) = (call.a.evaluate(env)?, call.b.evaluate(env)?);
        let value = match call.func {
            Func::Max => return Ok(a.max(b)),
            Func::Min => return Ok(a.min(b)),
            _ if b == 0 => return Err(DimError::new(format!("`{call}` divides by zero"))),
            Func::FloorDiv => floor(a.into(), b.into()),
            Func::Mod => rem(a.into(), b.into()),
        };
        i64::try_from(value).map_err(|_| DimError::new(format!("`{call}` overflows 64 bits")))
    }
}

impl Call {
    fn new(func: Func, a: Dim, b: Dim, a_range: Range, b_range: Range) -> Call {
        let range = match func {
            Func::FloorDiv => a_range.floor_div(b_range),
            Func::Mod => a_range.modulo(b_range),
            Func::Max => a_range.max(b_range),
            Func::Min => a_range.min(b_range),
        };
        let size = 1 + a.size() + b.size();
        let depth = 1 + a.depth().max(b.depth());
        Call { func, a, b, a_range, range, size, depth }
    }
}

impl Dim {
    pub(super) const INVALID: Dim = Dim(Repr::Invalid);

    /// The named size `name`: a letter or `_`, then letters, digits and `_`; not `_` alone and not a function's name.
    pub fn symbol(name: &str) -> Result<Dim, DimError> {
        let well_formed = !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !well_formed || name == "_" {
            let rule = "expected a letter or `_`, then letters, digits or `_`, and not `_` alone";
            return Err(DimError::new(format!("`{}` cannot name a dimension: {rule}", name.escape_debug())));
        }
        if Func::ALL.iter().any(|func| func.name() == name) {
            return Err(DimError::new(format!("`{name}` cannot name a dimension: it is a function")));
        }
        Ok(Dim::atom(Atom::Symbol(name.into())))
    }

    /// The value, where no symbol is involved.
    #[inline]
    pub fn constant(&self) -> Option<i64> {
        match self.0 {
            Repr::Const(c) => Some(c),
            _ => None,
        }
    }

    /// The value as an array extent: a constant that is not negative.
    #[inline]
    pub fn as_usize(&self) -> Option<usize> {
        self.constant().and_then(|c| usize::try_from(c).ok())
    }

    /// Whether the arithmetic that made this overflowed, divided by zero or grew beyond all measure.
    #[inline]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0, Repr::Invalid)
    }

    /// The symbol's name, where the dimension is just one symbol.
    pub fn as_symbol(&self) -> Option<&str> {
        match self.as_atom()? {
            Atom::Symbol(name) => Some(name),
            Atom::Call(_) => None,
        }
    }

    /// All symbols, sorted, each once.
    pub fn symbols(&self) -> Vec<Arc<str>> {
        let mut names = BTreeSet::new();
        self.collect_symbols(&mut names);
        names.into_iter().collect()
    }

    pub(super) fn collect_symbols(&self, names: &mut BTreeSet<Arc<str>>) {
        for (atom, _) in self.terms().flat_map(|(m, _)| &m.0) {
            match atom {
                Atom::Symbol(name) => drop(names.insert(name.clone())),
                Atom::Call(call) => {
                    call.a.collect_symbols(names);
                    call.b.collect_symbols(names);
                }
            }
        }
    }

    /// Replaces symbols, all at once; `None` keeps a symbol. The replacements are taken to be at least zero, as
    /// symbols are.
    pub fn substitute(&self, env: &dyn Fn(&str) -> Option<Dim>) -> Dim {
        let Repr::Poly(terms) = &self.0 else { return self.clone() };
        let mut sum = Dim::from(0i64);
        for (monomial, coefficient) in terms.iter() {
            let mut product = Dim::from(*coefficient);
            for (atom, power) in &monomial.0 {
                let value = match atom {
                    Atom::Symbol(name) => env(name).unwrap_or_else(|| Dim::atom(atom.clone())),
                    Atom::Call(call) => call.func.apply(&call.a.substitute(env), &call.b.substitute(env)),
                };
                product = product * value.pow(*power);
            }
            sum = sum + product;
        }
        sum
    }

    /// The value under a binding of the symbols. The error names the unbound or negative symbol, the overflowing
    /// expression, or the division by zero.
    pub fn evaluate(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<i64, DimError> {
        let terms = match &self.0 {
            Repr::Const(c) => return Ok(*c),
            Repr::Invalid => return Err(DimError::new("the dimension overflowed when it was built")),
            Repr::Poly(terms) => terms,
        };
        let overflow = || DimError::new(format!("`{self}` overflows 64 bits"));
        let mut sum = 0i128;
        for (monomial, coefficient) in terms.iter() {
            let mut product = i128::from(*coefficient);
            for (atom, power) in &monomial.0 {
                let value = i128::from(atom.evaluate(env)?);
                product = value.checked_pow(*power).and_then(|v| product.checked_mul(v)).ok_or_else(overflow)?;
            }
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        i64::try_from(sum).map_err(|_| overflow())
    }

    /// For a dimension `a*S+b` in one symbol: `S` and the integer of at least zero that makes it `value`, if any.
    pub fn solve_for(&self, value: i64) -> Option<(Arc<str>, i64)> {
        let Repr::Poly(terms) = &self.0 else { return None };
        let (monomial, a, b) = match terms.as_slice() {
            [(monomial, a)] => (monomial, *a, 0),
            [(monomial, a), (one, b)] if one.is_one() => (monomial, *a, *b),
            _ => return None,
        };
        let Some(Atom::Symbol(name)) = monomial.as_atom() else { return None };
        let (a, gap) = (i128::from(a), i128::from(value) - i128::from(b));
        let solution = i64::try_from(gap / a).ok()?;
        (gap % a == 0 && solution >= 0).then(|| (name.clone(), solution))
    }

    /// A symbol that stands in it once, alone and once only, and what it must be for all of it to be zero.
    pub fn solve_for_zero(&self) -> Option<(Arc<str>, Dim)> {
        self.terms().find_map(|(monomial, c)| {
            let Some(Atom::Symbol(name)) = monomial.as_atom().filter(|_| c == 1 || c == -1) else { return None };
            let rest = self.clone() - Dim::build(vec![(monomial.clone(), c)]);
            let alone = !rest.symbols().contains(name) && !rest.is_invalid();
            alone.then(|| (name.clone(), if c == 1 { -rest } else { rest }))
        })
    }

    /// Division rounded down: the largest integer `q` with `q*divisor <= self`, for a positive divisor.
    pub fn floor_div(&self, divisor: &Dim) -> Dim {
        match (self.constant(), divisor.constant()) {
            _ if self.is_invalid() || divisor.is_invalid() => Dim::INVALID,
            (_, Some(0)) => Dim::INVALID,
            (Some(a), Some(b)) => Dim::from_wide(floor(a.into(), b.into())),
            (None, Some(k)) if k < 0 => (-self).floor_div(&-divisor),
            (None, Some(k)) => self.floor_div_by(k),
            (_, None) => match self.divide_symbolic(divisor) {
                Some((quotient, _)) => quotient,
                None => Dim::call(Func::FloorDiv, self, divisor),
            },
        }
    }

    /// `self - divisor*floordiv(self,divisor)`: the remainder with the divisor's sign.
    pub fn modulo(&self, divisor: &Dim) -> Dim {
        match (self.constant(), divisor.constant()) {
            _ if self.is_invalid() || divisor.is_invalid() => Dim::INVALID,
            (_, Some(0)) => Dim::INVALID,
            (Some(a), Some(b)) => Dim::from_wide(rem(a.into(), b.into())),
            (None, Some(k)) if k < 0 => -(-self).modulo(&-divisor),
            (None, Some(k)) => self.modulo_by(k),
            (_, None) => match self.divide_symbolic(divisor) {
                Some((_, remainder)) => remainder,
                None => Dim::call(Func::Mod, self, divisor),
            },
        }
    }

    /// The larger of the two.
    pub fn max(&self, other: &Dim) -> Dim {
        self.select(other, Func::Max)
    }

    /// The smaller of the two.
    pub fn min(&self, other: &Dim) -> Dim {
        self.select(other, Func::Min)
    }

    /// The product of `exponent` copies; `pow(0)` is one.
    pub fn pow(&self, exponent: u32) -> Dim {
        match &self.0 {
            Repr::Const(c) => c.checked_pow(exponent).map_or(Dim::INVALID, Dim::from),
            Repr::Poly(_) if exponent <= MAX_DEGREE => (0..exponent).fold(Dim::from(1i64), |power, _| power * self),
            _ => Dim::INVALID,
        }
    }

    /// Whether the two are the same number under every binding.
    pub fn equals(&self, other: &Dim) -> Decision {
        let decision = self.gap(other).is_zero();
        if decision != Decision::AtRunTime {
            return decision;
        }
        // Every atom is an integer, so the rest of the sum is a multiple of the common divisor: 2*B+1 is never 2*C.
        let difference = self - other;
        let divisor = difference.terms().filter(|(m, _)| !m.is_one()).fold(0, |g, (_, c)| gcd(g, c.into()));
        match difference.offset() {
            offset if divisor > 1 && offset % divisor != 0 => Decision::No,
            _ => Decision::AtRunTime,
        }
    }

    /// Whether `self >= other`.
    pub fn at_least(&self, other: &Dim) -> Decision {
        self.gap(other).at_least(0)
    }

    /// Whether `self > other`.
    pub fn greater_than(&self, other: &Dim) -> Decision {
        self.gap(other).at_least(1)
    }

    /// Whether `self` is `k` times an integer; of zero, only zero is a multiple.
    pub fn is_multiple_of(&self, k: i64) -> Decision {
        let remainder = if k == 0 { self.clone() } else { self.modulo(&Dim::from(k)) };
        remainder.equals(&Dim::from(0i64))
    }

    /// Whether `other` is `self` times an integer.
    pub fn divides(&self, other: &Dim) -> Decision {
        if let Some(k) = self.constant() {
            return other.is_multiple_of(k);
        }
        if !self.is_invalid() && other.exact_quotient(self).is_some() {
            return Decision::Yes;
        }
        match self.equals(&Dim::from(0i64)) {
            Decision::No => other.modulo(self).equals(&Dim::from(0i64)),
            _ => Decision::AtRunTime,
        }
    }
}

// The workings of the normal form.
impl Dim {
    /// The terms in text order. An invalid dimension has none: check for it first where zero would be wrong.
    pub(super) fn terms(&self) -> impl Iterator<Item = (&Monomial, i64)> {
        let (terms, constant) = match &self.0 {
            Repr::Const(0) | Repr::Invalid => (&[][..], None),
            Repr::Const(c) => (&[][..], Some((&ONE, *c))),
            Repr::Poly(terms) => (terms.as_slice(), None),
        };
        terms.iter().map(|(m, c)| (m, *c)).chain(constant)
    }

    fn atom(atom: Atom) -> Dim {
        Dim::build(vec![(Monomial(vec![(atom, 1)]), 1)])
    }

    fn as_atom(&self) -> Option<&Atom> {
        match &self.0 {
            Repr::Poly(terms) => match terms.as_slice() {
                [(monomial, 1)] => monomial.as_atom(),
                _ => None,
            },
            _ => None,
        }
    }

    fn call(func: Func, a: &Dim, b: &Dim) -> Dim {
        let call = Call::new(func, a.clone(), b.clone(), a.range(), b.range());
        if call.depth > MAX_DEPTH { Dim::INVALID } else { Dim::atom(Atom::Call(Arc::new(call))) }
    }

    fn from_wide(value: i128) -> Dim {
        i64::try_from(value).map_or(Dim::INVALID, Dim::from)
    }

    /// The normal form of terms that are sorted, distinct and not zero.
    fn build(terms: Vec<(Monomial, i64)>) -> Dim {
        match terms.as_slice() {
            [] => Dim(Repr::Const(0)),
            [(one, c)] if one.is_one() => Dim(Repr::Const(*c)),
            _ => {
                let fits = terms.len() <= MAX_MONOMIALS && terms.iter().all(|(m, _)| m.degree() <= MAX_DEGREE);
                let dim = Dim(Repr::Poly(Arc::new(terms)));
                if fits && dim.size() <= MAX_SIZE { dim } else { Dim::INVALID }
            }
        }
    }

    /// The normal form of any sum. Coefficients are wide until the end, so only a result can overflow, not a detour.
    fn sum(terms: impl Iterator<Item = (Monomial, i128)>) -> Dim {
        let mut sum = BTreeMap::new();
        for (monomial, coefficient) in terms {
            let total: &mut i128 = sum.entry(monomial).or_insert(0);
            let Some(new) = total.checked_add(coefficient) else { return Dim::INVALID };
            *total = new;
        }
        let narrow = sum.into_iter().filter(|(_, c)| *c != 0).map(|(m, c)| Some((m, i64::try_from(c).ok()?)));
        narrow.collect::<Option<Vec<_>>>().map_or(Dim::INVALID, Dim::build)
    }

    fn map_coefficients(&self, f: impl Fn(&Monomial, i128) -> i128) -> Dim {
        Dim::sum(self.terms().map(|(m, c)| (m.clone(), f(m, c.into()))))
    }

    #[inline]
    pub(super) fn plus(&self, other: &Dim) -> Dim {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_add(*b).map_or(Dim::INVALID, Dim::from),
            _ => self.plus_multiple(other, 1),
        }
    }

    #[inline]
    pub(super) fn minus(&self, other: &Dim) -> Dim {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_sub(*b).map_or(Dim::INVALID, Dim::from),
            _ => self.plus_multiple(other, -1),
        }
    }

    #[inline]
    pub(super) fn times(&self, other: &Dim) -> Dim {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.checked_mul(*b).map_or(Dim::INVALID, Dim::from),
            _ => self.times_slow(other),
        }
    }

    /// `self + k*other`.
    fn plus_multiple(&self, other: &Dim, k: i64) -> Dim {
        if self.is_invalid() || other.is_invalid() {
            return Dim::INVALID;
        }
        let ours = self.terms().map(|(m, c)| (m.clone(), i128::from(c)));
        Dim::sum(ours.chain(other.terms().map(|(m, c)| (m.clone(), i128::from(k) * i128::from(c)))))
    }

    fn times_slow(&self, other: &Dim) -> Dim {
        match (&self.0, &other.0) {
            (Repr::Invalid, _) | (_, Repr::Invalid) => Dim::INVALID,
            (Repr::Const(1), _) => other.clone(),
            (_, Repr::Const(1)) => self.clone(),
            _ => Dim::sum(
                self.terms()
                    .flat_map(|(m, c)| other.terms().map(move |(n, d)| (m.times(n), i128::from(c) * i128::from(d)))),
            ),
        }
    }

    fn size(&self) -> usize {
        self.terms().map(|(m, _)| 1 + m.0.iter().map(|(atom, _)| atom.size()).sum::<usize>()).sum()
    }

    fn depth(&self) -> usize {
        let atoms = self.terms().flat_map(|(m, _)| &m.0);
        atoms.map(|(atom, _)| if let Atom::Call(call) = atom { call.depth } else { 0 }).max().unwrap_or(0)
    }

    /// The constant term.
    fn offset(&self) -> i128 {
        self.terms().last().filter(|(m, _)| m.is_one()).map_or(0, |(_, c)| c.into())
    }

    /// An order for sorting, not for sizes; constants last, as in `max(B,1)`.
    fn order(&self, other: &Dim) -> Ordering {
        let is_constant = |dim: &Dim| dim.constant().is_some();
        is_constant(self).cmp(&is_constant(other)).then_with(|| self.terms().cmp(other.terms()))
    }

    /// The greatest common divisor of `k` and the coefficients of all terms but the constant.
    fn common_divisor(&self, k: i64) -> i128 {
        self.terms().filter(|(m, _)| !m.is_one()).fold(k.into(), |g, (_, c)| gcd(g, c.into()))
    }

    /// Division by `k > 0`. With `g` the common divisor of `k` and the coefficients,
    /// `floor((g*x+c)/(g*k)) = floor((x+floor(c/g))/k)`; then every coefficient's multiple of `k` moves out, and what
    /// stays has coefficients in `0..k`. Equal quotients thus mostly look equal: `floordiv(B-1,2)+1` is
    /// `floordiv(B+1,2)`.
    fn floor_div_by(&self, k: i64) -> Dim {
        let g = self.common_divisor(k);
        let (reduced, wide) = (self.map_coefficients(|_, c| floor(c, g)), i128::from(k) / g);
        if wide == 1 {
            return reduced;
        }
        let whole = reduced.map_coefficients(|_, c| floor(c, wide));
        let rest = reduced.map_coefficients(|_, c| rem(c, wide));
        let k = i64::try_from(wide).unwrap_or(k);
        // floor((floor(x/j)+c)/k) = floor((x+c*j)/(j*k))
        let bare = rest.plus(&Dim::from_wide(-rest.offset()));
        if let Some(Atom::Call(inner)) = bare.as_atom()
            && let (Func::FloorDiv, Some(j)) = (inner.func, inner.b.constant())
            && let Some(jk) = j.checked_mul(k)
        {
            return whole + inner.a.plus(&Dim::from_wide(rest.offset() * i128::from(j))).floor_div(&Dim::from(jk));
        }
        match rest.range().quotient(wide) {
            Some(quotient) => whole + Dim::from_wide(quotient),
            None => whole + Dim::call(Func::FloorDiv, &rest, &Dim::from(k)),
        }
    }

    /// The remainder by `k > 0`: `mod(g*x+c, g*k) = g*mod(x+floor(c/g), k) + mod(c,g)`, coefficients in `0..k`.
    fn modulo_by(&self, k: i64) -> Dim {
        let rest = self.map_coefficients(|_, c| rem(c, k.into()));
        // c*mod(x,j) differs from c*x by multiples of c*j: where k divides that, the inner mod does nothing.
        for (monomial, c) in rest.terms() {
            if let Some(Atom::Call(inner)) = monomial.as_atom()
                && let (Func::Mod, Some(j)) = (inner.func, inner.b.constant())
                && i128::from(c) * i128::from(j) % i128::from(k) == 0
            {
                let without = rest.map_coefficients(|m, c| if m == monomial { 0 } else { c });
                return without
                    .plus(&inner.a.map_coefficients(|_, d| rem(d * i128::from(c), k.into())))
                    .modulo(&k.into());
            }
        }
        let g = rest.common_divisor(k);
        let low = Dim::from_wide(rem(rest.offset(), g));
        let (reduced, wide) = (rest.map_coefficients(|_, c| floor(c, g)), i128::from(k) / g);
        if wide == 1 {
            return low;
        }
        let high = match reduced.range().quotient(wide) {
            Some(quotient) => reduced - Dim::from_wide(quotient * wide),
            None => Dim::call(Func::Mod, &reduced, &Dim::from_wide(wide)),
        };
        high * Dim::from_wide(g) + low
    }

    /// `q` with `q*divisor == self` as polynomials, by long division: it holds even where the divisor is zero.
    pub fn exact_quotient(&self, divisor: &Dim) -> Option<Dim> {
        let (lead, c) = divisor.terms().next()?;
        let (mut quotient, mut rest) = (Dim::from(0i64), self.clone());
        for _ in 0..MAX_MONOMIALS {
            let term = match rest.terms().next() {
                None => return (!rest.is_invalid()).then_some(quotient),
                Some((monomial, d)) if d.checked_rem(c)? == 0 => Dim::build(vec![(monomial.over(lead)?, d / c)]),
                Some(_) => return None,
            };
            rest = rest - &term * divisor;
            quotient = quotient + term;
        }
        None
    }

    /// Quotient and remainder, where the divisor is certainly not zero and they are plain to see.
    fn divide_symbolic(&self, divisor: &Dim) -> Option<(Dim, Dim)> {
        let zero = Dim::from(0i64);
        if divisor.equals(&zero) != Decision::No {
            return None;
        }
        if let Some(quotient) = self.exact_quotient(divisor) {
            return Some((quotient, zero));
        }
        let is_remainder = self.at_least(&zero).and(divisor.greater_than(self)) == Decision::Yes;
        is_remainder.then(|| (zero, self.clone()))
    }

    fn select(&self, other: &Dim, func: Func) -> Dim {
        if self.is_invalid() || other.is_invalid() {
            return Dim::INVALID;
        }
        // Sorted first, so that the answer does not depend on the side even where both always agree in value.
        let (first, second) = if self.order(other).is_gt() { (other, self) } else { (self, other) };
        let (high, low) = if func == Func::Max { (second, first) } else { (first, second) };
        match high.at_least(low) {
            Decision::Yes => second.clone(),
            Decision::No => first.clone(),
            Decision::AtRunTime if low.at_least(high) == Decision::Yes => first.clone(),
            Decision::AtRunTime => Dim::call(func, first, second),
        }
    }

    /// The range of `self - other`.
    fn gap(&self, other: &Dim) -> Range {
        match self - other {
            Dim(Repr::Invalid) => self.range().plus(other.range().scaled(-1)),
            difference => difference.range(),
        }
    }

    fn range(&self) -> Range {
        self.range_with(RANGE_FUEL)
    }

    /// The interval sum of the terms, narrowed by opening up one function after another where it stands alone, since
    /// it may cancel against the rest: `B - floordiv(B,2)` is at least zero, though its two terms say nothing.
    fn range_with(&self, fuel: u32) -> Range {
        if self.is_invalid() {
            return Range::ALL;
        }
        let terms = self.terms().map(|(m, c)| m.range().scaled(c.into()));
        let direct = terms.fold(Range::point(0), Range::plus);
        let candidates = self.terms().filter_map(|(m, c)| match m.as_atom()? {
            Atom::Call(call) if call.func == Func::Max || call.func == Func::Min => Some((m, c, call, 1)),
            Atom::Call(call) => call.b.constant().filter(|k| *k > 0).map(|k| (m, c, call, k)),
            Atom::Symbol(_) => None,
        });
        // Opening a floordiv forgets its remainder: first those that lose nothing.
        let opened = candidates.min_by_key(|(_, _, call, _)| call.func == Func::FloorDiv);
        let Some((monomial, c, call, k)) = opened.filter(|_| fuel > 0) else { return direct };
        let rest = self.map_coefficients(|m, c| if m == monomial { 0 } else { c });
        let with = |x: &Dim| rest.plus_multiple(x, c);
        let narrowed = match call.func {
            Func::Max | Func::Min => {
                let (x, y) = (with(&call.a).range_with(fuel - 1), with(&call.b).range_with(fuel - 1));
                if (call.func == Func::Max) == (c > 0) { x.max(y) } else { x.min(y) }
            }
            // k*floordiv(a,k) = a - r with r in 0..k
            Func::FloorDiv => {
                let scaled = (rest * k).plus_multiple(&call.a, c).range_with(fuel - 1);
                let remainder = Range { lo: 0, hi: i128::from(k) - 1 };
                scaled.plus(remainder.scaled(-i128::from(c))).divided_inward(k.into())
            }
            // mod(a,k) = a - k*floordiv(a,k)
            Func::Mod => {
                let k_range = Range::point(k.into());
                let div = Call::new(Func::FloorDiv, call.a.clone(), call.b.clone(), call.a_range, k_range);
                let div = Dim::atom(Atom::Call(Arc::new(div))) * k;
                with(&(&call.a - div)).range_with(fuel - 1)
            }
        };
        Range { lo: direct.lo.max(narrowed.lo), hi: direct.hi.min(narrowed.hi) }
    }
}

macro_rules! conversions {
    ($($int:ty)*) => {$(
        impl From<$int> for Dim {
            #[inline]
            fn from(value: $int) -> Dim {
                // Only a `usize` beyond `i64` fails; for the other types the check compiles away.
                i64::try_from(value).map_or(Dim(Repr::Invalid), |value| Dim(Repr::Const(value)))
            }
        }
    )*};
}

conversions!(usize isize u32 i32 i64);

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Dim {
        dim.clone()
    }
}
