//! Attributes of an operation, read as what they must be.

use gradus_core::error::Result;
use gradus_core::{DType, Dim, Shape};

use super::{On, types};
use crate::module::{Attribute, Attributes, Tensor};

impl<'m> On<'_, 'm> {
    /// Integers that must be there.
    pub(super) fn integers(&self, name: &str) -> Result<Vec<i64>> {
        self.op.attributes.integers(name).ok_or_else(|| self.wrong(format!("it lacks the integers `{name}`")))
    }

    /// Integers, or as many times a default.
    pub(super) fn integers_or(&self, name: &str, count: usize, default: i64) -> Result<Vec<i64>> {
        match self.op.attributes.get(name) {
            None => Ok(vec![default; count]),
            Some(_) => {
                let all = self.integers(name)?;
                if all.len() == count { Ok(all) } else { Err(self.wrong(format!("`{name}` has not {count} numbers"))) }
            }
        }
    }

    /// Axes or counts that must be there.
    pub(super) fn axes(&self, name: &str) -> Result<Vec<usize>> {
        self.integers(name)?.into_iter().map(|a| self.natural(name, a)).collect()
    }

    /// Counts, or as many times a default.
    pub(super) fn counts_or(&self, name: &str, count: usize, default: i64) -> Result<Vec<usize>> {
        self.integers_or(name, count, default)?.into_iter().map(|a| self.natural(name, a)).collect()
    }

    pub(super) fn natural(&self, name: &str, value: i64) -> Result<usize> {
        usize::try_from(value).map_err(|_| self.wrong(format!("`{name}` has {value}, which is below 0")))
    }

    /// One number that must be there.
    pub(super) fn index(&self, name: &str) -> Result<usize> {
        match self.op.attributes.integer(name) {
            Some(v) => self.natural(name, v),
            None => Err(self.wrong(format!("it lacks the number `{name}`"))),
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.op.attributes.integer(name).is_some_and(|v| v != 0)
    }

    /// The word of an enumeration, or of a text.
    pub(super) fn word(&self, name: &str) -> Option<&'m str> {
        match self.op.attributes.get(name)? {
            Attribute::Enum(_, word) => Some(word),
            Attribute::String(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The fields of a record.
    pub(super) fn record(&self, name: &str) -> Result<&'m Attributes> {
        match self.op.attributes.get(name) {
            Some(Attribute::Struct(_, fields) | Attribute::Dictionary(fields)) => Ok(fields),
            _ => Err(self.wrong(format!("it lacks the record `{name}`"))),
        }
    }

    /// Axes in a record; none if it does not say.
    pub(super) fn field(&self, record: &Attributes, name: &str) -> Result<Vec<usize>> {
        record.integers(name).unwrap_or_default().into_iter().map(|a| self.natural(name, a)).collect()
    }

    /// Pairs of padding, low and high, one for each of so many axes.
    pub(super) fn padding(&self, count: usize) -> Result<(Vec<Dim>, Vec<Dim>)> {
        let all = self.integers_or("padding", 2 * count, 0)?;
        Ok((
            all.iter().step_by(2).map(|n| Dim::from(*n)).collect(),
            all.iter().skip(1).step_by(2).map(|n| Dim::from(*n)).collect(),
        ))
    }

    /// The type of a result in the text.
    pub(super) fn result(&self, at: usize) -> Result<&'m Tensor> {
        let Some(value) = self.op.results.get(at) else { return Err(self.wrong(format!("it has no result {at}"))) };
        types::tensor(self.scope.ty(*value)?)
    }

    pub(super) fn result_dtype(&self) -> Result<DType> {
        types::dtype(&self.result(0)?.element)
    }

    /// The shape of the first result, if the text says it in full.
    pub(super) fn result_shape(&self) -> Result<Shape> {
        types::shape(self.result(0)?)
    }
}
