//! Checks of test files: what is compared becomes results of the program, and how is told beside it.

use gradus_core::error::{Error, ErrorKind, Location, Result};
use gradus_core::{Array, Scalar};

use super::{Answer, On, types};
use crate::module::Attribute;

/// How two arrays are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CheckKind {
    /// Every element is equal; NaN is equal to nothing.
    Equal,
    /// Every element is at most so many numbers of its format away, and at least so many; NaN is near to NaN.
    Close {
        /// The most.
        max_ulp: u64,
        /// The least.
        min_ulp: u64,
    },
    /// The difference is at most this.
    AlmostEqual {
        /// The most that the difference may be.
        tolerance: f64,
    },
}

/// What is expected.
#[derive(Clone, Debug)]
pub enum Expected {
    /// An output of the program.
    Output(usize),
    /// Numbers of the text.
    Constant(Array),
}

/// A comparison that the text asks for.
#[derive(Clone, Debug)]
pub struct Check {
    /// How.
    pub kind: CheckKind,
    /// The output that is compared.
    pub actual: usize,
    /// What it should be.
    pub expected: Expected,
    /// Where it stands in the text.
    pub place: Location,
}

impl Check {
    /// What does not hold of a program's outputs: the first element that is not as expected, and how many there are. Nothing if the check holds.
    pub fn compare(&self, outputs: &[Array]) -> Result<Option<String>> {
        let missing = || Error::new(ErrorKind::Signature, "an output of a check is not there");
        let actual = outputs.get(self.actual).ok_or_else(missing)?;
        let expected = match &self.expected {
            Expected::Output(at) => outputs.get(*at).ok_or_else(missing)?,
            Expected::Constant(array) => array,
        };
        if actual.ty()? != expected.ty()? {
            return Ok(Some(format!("the result is {} and {} is expected", actual.ty()?, expected.ty()?)));
        }
        let (Some(a), Some(b)) = (actual.concrete(), expected.concrete()) else { return Err(missing()) };
        let (mut wrong, mut first) = (0usize, None);
        for i in 0..a.count() {
            let (x, y) = (a.scalar_at(i)?, b.scalar_at(i)?);
            if !self.kind.holds(x, y) {
                wrong += 1;
                first.get_or_insert((i, x, y));
            }
        }
        Ok(first.map(|(i, x, y)| {
            format!(
                "{wrong} of {} elements are not as expected; the first, element {i}, is {x:?} and not {y:?}",
                a.count()
            )
        }))
    }
}

/// The real parts of a number, as `f64` and as the bits of their own format.
fn parts(x: Scalar) -> Vec<(f64, u64)> {
    let real = |v: f64, bits: u64| (v, bits);
    match x {
        Scalar::F16(v) => vec![real(v.to_f64(), v.to_bits().into())],
        Scalar::BF16(v) => vec![real(v.to_f64(), v.to_bits().into())],
        Scalar::F32(v) => vec![real(v.into(), v.to_bits().into())],
        Scalar::F64(v) => vec![real(v, v.to_bits())],
        Scalar::C64(v) => vec![real(v.re.into(), v.re.to_bits().into()), real(v.im.into(), v.im.to_bits().into())],
        Scalar::C128(v) => vec![real(v.re, v.re.to_bits()), real(v.im, v.im.to_bits())],
        _ => Vec::new(),
    }
}

/// How many numbers of a format lie between two, given their bits and that of the sign.
fn ulps(a: u64, b: u64, sign: u64) -> u64 {
    let (x, y) = (a & !sign, b & !sign);
    if (a ^ b) & sign != 0 { x.saturating_add(y) } else { x.abs_diff(y) }
}

impl CheckKind {
    fn holds(self, x: Scalar, y: Scalar) -> bool {
        let (xs, ys) = (parts(x), parts(y));
        if xs.is_empty() {
            return x == y;
        }
        let sign = match x {
            Scalar::F16(_) | Scalar::BF16(_) => 1 << 15,
            Scalar::F32(_) | Scalar::C64(_) => 1 << 31,
            _ => 1 << 63,
        };
        let one = |(a, p): &(f64, u64), (b, q): &(f64, u64)| match self {
            CheckKind::Equal => a == b,
            CheckKind::Close { max_ulp, min_ulp } => {
                let apart = match (a.is_finite() && b.is_finite(), a.is_nan() && b.is_nan()) {
                    (true, _) => ulps(*p, *q, sign),
                    (_, true) => 0,
                    _ if p == q => 0,
                    _ => u64::MAX,
                };
                (min_ulp..=max_ulp).contains(&apart)
            }
            CheckKind::AlmostEqual { tolerance } => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance,
        };
        xs.iter().zip(&ys).all(|(a, b)| one(a, b))
    }
}

/// A check whose values are not outputs yet.
pub(super) struct Pending {
    kind: CheckKind,
    actual: Array,
    expected: Array,
    place: Location,
}

impl Pending {
    /// The check of a called function, for its caller.
    pub(super) fn again(check: &Check, outputs: &[Array]) -> Option<Pending> {
        let expected = match &check.expected {
            Expected::Output(at) => outputs.get(*at)?.clone(),
            Expected::Constant(array) => array.clone(),
        };
        Some(Pending { kind: check.kind, actual: outputs.get(check.actual)?.clone(), expected, place: check.place })
    }
}

/// Puts what is compared behind the results.
pub(super) fn outputs(pending: Vec<Pending>, outputs: &mut Vec<Array>) -> Vec<Check> {
    let add = |p: Pending| {
        let actual = outputs.len();
        outputs.push(p.actual);
        let expected = match p.expected.concrete() {
            Some(_) => Expected::Constant(p.expected),
            None => {
                outputs.push(p.expected);
                Expected::Output(actual + 1)
            }
        };
        Check { kind: p.kind, actual, expected, place: p.place }
    };
    pending.into_iter().map(add).collect()
}

impl On<'_, '_> {
    pub(super) fn add_check(&mut self, pending: Pending) -> Result<()> {
        if self.scope.closed > 0 {
            return Err(self.refused(
                "a check inside of a loop or branch has no one value",
                "check what the loop or branch gives",
            ));
        }
        self.scope.checks.push(pending);
        Ok(())
    }

    fn compared(&mut self, kind: CheckKind, expected: Array) -> Answer {
        let place = self.scope.importer.place(self.op.place);
        let actual = self.x(0)?;
        self.add_check(Pending { kind, actual, expected, place })?;
        Ok(Some(Vec::new()))
    }

    fn number(&self, name: &str, default: f64) -> f64 {
        match self.op.attributes.get(name) {
            Some(Attribute::Float(value, _)) => *value,
            _ => default,
        }
    }

    /// An operation of the dialect `check`.
    pub(super) fn check(&mut self, name: &str) -> Answer {
        let almost = CheckKind::AlmostEqual { tolerance: self.number("tolerance", 1e-4) };
        let constant = match self.op.attributes.get("value") {
            Some(Attribute::Dense(dense)) => Some(types::constant(dense)?),
            _ => None,
        };
        let ulp =
            |name, default| self.op.attributes.integer(name).and_then(|n| u64::try_from(n).ok()).unwrap_or(default);
        let close = CheckKind::Close { max_ulp: ulp("max_ulp_difference", 1), min_ulp: ulp("min_ulp_difference", 0) };
        match (name, constant) {
            ("expect_eq", _) => self.compared(CheckKind::Equal, self.x(1)?),
            ("expect_almost_eq", _) => self.compared(almost, self.x(1)?),
            ("expect_close", _) => self.compared(close, self.x(1)?),
            ("expect_eq_const", Some(value)) => self.compared(CheckKind::Equal, value),
            ("expect_almost_eq_const", Some(value)) => self.compared(almost, value),
            ("expect_serialized_eq", _) => {
                Err(self
                    .refused("it compares with a file that an interpreter wrote", "compare with numbers in the text"))
            }
            _ => Ok(None),
        }
    }

    /// A check as a custom call, with the tolerances of `stablehlo-translate`.
    pub(super) fn check_call(&mut self, name: &str) -> Answer {
        let expected = self.x(1)?;
        let kind = match name {
            "check.expect_eq" => CheckKind::Equal,
            "check.expect_close" => CheckKind::Close { max_ulp: 3, min_ulp: 0 },
            "check.expect_almost_eq" => CheckKind::AlmostEqual { tolerance: 1e-3 },
            "check.eq" if expected.dtype().is_inexact() => CheckKind::AlmostEqual { tolerance: 1e-4 },
            "check.eq" => CheckKind::Equal,
            _ => return Ok(None),
        };
        self.compared(kind, expected)?;
        // One form gives whether it holds; a program that goes on may say that it does, since who compares says if not.
        let results = (0..self.op.results.len()).map(|i| {
            let ty = types::ty(self.result(i)?)?;
            Ok(super::Item::Array(Array::full_scalar(ty.shape().clone(), Scalar::Bool(true)).cast(ty.dtype())))
        });
        results.collect::<Result<Vec<_>>>().map(Some)
    }
}
