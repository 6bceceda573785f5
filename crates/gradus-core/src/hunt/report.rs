//! What is said of an operation that was caught: what it made, of what, where, and through which rules it came there.

use super::{Class, Subject, not_finite};
use crate::array::{Array, Concrete};
use crate::error::Error;
use crate::location::Named;
use crate::primitives::NotFinite;
use crate::types::{Element, Type, Wide, dispatch};

/// An array's numbers, each with its class.
pub(super) struct Seen {
    concrete: Concrete,
    /// The classes, if some number is not finite.
    classes: Option<Vec<Class>>,
}

fn class_of<T: Element>(v: T) -> Class {
    let of = |x: f64| match x {
        _ if x.is_nan() => Class::Nan,
        _ if x.is_infinite() => Class::Infinite,
        _ => Class::Finite,
    };
    match v.to_wide() {
        Wide::Int(_) | Wide::UInt(_) => Class::Finite,
        Wide::Real(x) => of(x),
        Wide::Complex(re, im) => of(re).max(of(im)),
    }
}

impl Seen {
    pub(super) fn of(array: &Array) -> Option<Seen> {
        let concrete = array.concrete()?.clone();
        let classes = dispatch!(concrete.ty().dtype(), T => {
            let values = concrete.values::<T>();
            let finite = values.iter().all(|v| class_of(*v) == Class::Finite);
            (!finite).then(|| values.iter().map(|v| class_of(*v)).collect())
        });
        Some(Seen { concrete, classes })
    }

    pub(super) fn count(&self) -> usize {
        self.concrete.count()
    }

    fn ty(&self) -> &Type {
        self.concrete.ty()
    }

    pub(super) fn class_at(&self, i: usize) -> Class {
        self.classes.as_ref().and_then(|all| all.get(i).copied()).unwrap_or(Class::Finite)
    }

    pub(super) fn worst(&self) -> Class {
        self.classes.iter().flatten().copied().max().unwrap_or(Class::Finite)
    }

    fn number_at(&self, i: usize) -> String {
        match self.concrete.scalar_at(i) {
            // The bits of a NaN are the machine's business.
            Ok(s) if self.class_at(i) == Class::Nan && !s.dtype().is_complex() => "NaN".into(),
            Ok(s) => s.to_string(),
            Err(_) => "?".into(),
        }
    }

    /// The type, the range of what is finite, and how much is not.
    fn summary(&self) -> String {
        let (ty, count) = (self.ty(), self.count());
        if count == 1 {
            return format!("{ty}, {}", self.number_at(0));
        }
        let finite = (0..count).filter(|i| self.class_at(*i) == Class::Finite);
        let numbers: Vec<(f64, usize)> =
            finite.filter_map(|i| Some((self.concrete.scalar_at(i).ok()?.to_f64(), i))).collect();
        let least = numbers.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let most = numbers.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let mut text = ty.to_string();
        if let (Some((_, i)), Some((_, j)), false) = (least, most, ty.dtype().is_complex()) {
            let (least, most) = (self.number_at(*i), self.number_at(*j));
            text += &if least == most { format!(", {least}") } else { format!(", from {least} to {most}") };
        }
        for (class, name) in [(Class::Nan, "NaN"), (Class::Infinite, "infinite")] {
            let bad = (0..count).filter(|i| self.class_at(*i) == class).count();
            if bad > 0 {
                text += &format!(", {bad} of {count} {name}");
            }
        }
        text
    }

    /// The indices of an element.
    fn indices(&self, mut number: usize) -> Vec<usize> {
        let mut at: Vec<usize> = Vec::new();
        for d in self.concrete.dims().iter().rev() {
            at.push(number % (*d).max(1));
            number /= (*d).max(1);
        }
        at.reverse();
        at
    }
}

/// What was caught.
pub(super) struct Found<'a> {
    pub(super) result: &'a Seen,
    pub(super) operands: &'a [Seen],
    /// The first bad element.
    pub(super) first: usize,
    pub(super) by_element: bool,
    /// The worst number that the element is made of.
    pub(super) from: Class,
}

impl Found<'_> {
    pub(super) fn error(&self, subject: Subject) -> Error {
        let nan = self.result.class_at(self.first) == Class::Nan;
        let what = if nan { "a NaN" } else { "an infinity" };
        let out_of = match self.from {
            _ if self.operands.is_empty() => "out of nothing",
            Class::Finite => "out of finite operands",
            Class::Infinite | Class::Nan => "out of operands that are infinite but not NaN",
        };
        let path = subject.place.path();
        let mut e = not_finite(format!("`{}` made {what} {out_of}", subject.name), subject.place);
        if !path.is_empty() {
            let pass = match (path.is_backward(), path.is_derivative()) {
                (true, _) => "in the backward pass",
                (false, true) => "in a forward derivative",
                (false, false) => "in a batch",
            };
            e = e.note(format!("{pass}: {path}"));
        }
        e = e.note(self.where_it_is(path.batches()));
        for (i, operand) in self.operands.iter().enumerate() {
            let here = if self.by_element && operand.count() > 1 {
                format!("; there it is {}", operand.number_at(self.first))
            } else {
                String::new()
            };
            e = e.note(format!("operand {i} is {}{here}", operand.summary()));
        }
        match hint(subject, path.named().filter(|_| path.is_derivative())) {
            Some(help) => e.help(help),
            None => e,
        }
    }

    fn where_it_is(&self, batches: usize) -> String {
        let (ty, count) = (self.result.ty(), self.result.count());
        let number = self.result.number_at(self.first);
        if count == 1 && batches == 0 {
            return format!("the result is {ty}, {number}");
        }
        let at = self.result.indices(self.first);
        let bad = (0..count).filter(|i| self.result.class_at(*i) != Class::Finite).count();
        let example = match at.get(..batches) {
            Some([]) | None => String::new(),
            Some([i]) => format!(", which is example {i} of the batch"),
            Some(many) => format!(", which is example {many:?} of the batches"),
        };
        format!("the result is {ty}, {bad} of {count} not finite; the first is {number} at {at:?}{example}")
    }
}

/// The way out, by what is known of the operation that was caught and of the user's operation whose derivative it belongs to.
fn hint(subject: Subject, written: Option<Named>) -> Option<String> {
    let away = |safe: &str| format!("keep such operands away with `mask.guarded(&x, {safe}, |x| .., 0.0)`");
    let safe = away(subject.safe);
    if let Some((written, where_)) = written.and_then(|w| Some((w, w.slope?))) {
        return Some(format!(
            "the slope of `{}` is infinite {where_}, also where a `select` drops its value: {}; \
             `.trace(..)?.lints()` lists such places",
            written.name,
            away(written.safe)
        ));
    }
    Some(match subject.not_finite? {
        NotFinite::Outside => {
            format!("the operand is outside of where `{}` is defined: {safe}, or clamp it", subject.name)
        }
        NotFinite::ByZero => format!("a division by zero: {safe}, or add a small number"),
        NotFinite::Power => format!("a power of a number that is zero or negative: {safe}"),
        NotFinite::Exponent => {
            "the exponent is too large: subtract the largest one first, as `softmax` and `logsumexp` do".into()
        }
        NotFinite::Narrow => "the number is too large for the dtype: scale it, or use a wider dtype".into(),
        NotFinite::Range => {
            "look at the operand that is infinite, or overflows: `Hunt::NanAndInf` finds where that began".into()
        }
        NotFinite::Words(words) => words.into(),
    })
}
