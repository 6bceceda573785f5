//! Inputs of evaluations: numbers and nested lists of JSON as arrays, with errors that name the field.

use gradus::prelude::*;
use serde_json::Value;

use super::{Answer, Fault};

/// An input, or an object in one.
pub struct Input<'a>(pub &'a Value);

/// Numbers of nested lists, all of the same lengths.
struct Nested<T> {
    values: Vec<T>,
    shape: Vec<usize>,
}

impl<T: Element> Nested<T> {
    /// Reads lists of a depth; `number` reads what is inside.
    fn read(value: &Value, depth: usize, number: fn(&Value) -> Option<T>) -> Option<Nested<T>> {
        let mut nested = Nested { values: Vec::new(), shape: Vec::new() };
        nested.add(value, depth, 0, number)?;
        // Of no lists nobody knows how long they would be.
        nested.shape.resize(depth, 0);
        Some(nested)
    }

    fn add(&mut self, value: &Value, depth: usize, axis: usize, number: fn(&Value) -> Option<T>) -> Option<()> {
        if axis == depth {
            self.values.push(number(value)?);
            return Some(());
        }
        let list = value.as_array()?;
        match self.shape.get(axis) {
            Some(len) if *len != list.len() => return None,
            Some(_) => {}
            None => self.shape.push(list.len()),
        }
        list.iter().try_for_each(|inner| self.add(inner, depth, axis + 1, number))
    }

    fn array(self) -> Array {
        Array::from_vec(self.values, self.shape)
    }
}

impl<'a> Input<'a> {
    /// The field of a name.
    fn field(&self, name: &str) -> Answer<&'a Value> {
        self.0.get(name).ok_or_else(|| Fault(format!("the input has no field `{name}`")))
    }

    /// The field, as what `read` makes of it.
    fn read<T>(&self, name: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Answer<T> {
        read(self.field(name)?).ok_or_else(|| Fault(format!("`{name}` in the input is not {what}")))
    }

    /// An object in this one.
    pub fn object(&self, name: &str) -> Answer<Input<'a>> {
        self.read(name, "an object", |v| v.is_object().then_some(Input(v)))
    }

    /// A number.
    pub fn number(&self, name: &str) -> Answer<f64> {
        self.read(name, "a number", Value::as_f64)
    }

    /// A count, at least `least`.
    pub fn count(&self, name: &str, least: usize) -> Answer<usize> {
        let read = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| *n >= least);
        self.read(name, &format!("a whole number from {least} on"), read)
    }

    /// Yes or no.
    pub fn flag(&self, name: &str) -> Answer<bool> {
        self.read(name, "true or false", Value::as_bool)
    }

    /// Lists in lists, so deep, of numbers.
    pub fn numbers(&self, name: &str, depth: usize) -> Answer<Array> {
        let what = format!("numbers in lists of equal lengths, {depth} deep");
        self.read(name, &what, |v| Nested::read(v, depth, Value::as_f64)).map(Nested::array)
    }

    /// As [`Input::numbers`], with this many numbers.
    pub fn vector(&self, name: &str, len: usize) -> Answer<Array> {
        let list = self.numbers(name, 1)?;
        match list.sizes::<1>()? {
            [n] if n == len => Ok(list),
            [n] => Err(Fault(format!("`{name}` in the input has {n} numbers, not {len}"))),
        }
    }

    /// Lists in lists, so deep, of places on an axis of a length.
    pub fn places(&self, name: &str, depth: usize, len: usize) -> Answer<Array> {
        let what = format!("whole numbers in lists of equal lengths, {depth} deep");
        let nested = self.read(name, &what, |v| Nested::read(v, depth, Value::as_i64))?;
        match nested.values.iter().find(|at| usize::try_from(**at).map_or(true, |at| at >= len)) {
            Some(at) => Err(Fault(format!("`{name}` in the input has {at}, where there are {len} places"))),
            None => Ok(nested.array()),
        }
    }

    /// The parents of bones: an earlier one of each, or -1 for none.
    pub fn parents(&self, name: &str) -> Answer<Vec<Option<usize>>> {
        let all = self.read(name, "a list of whole numbers", |v| Nested::read(v, 1, Value::as_i64))?;
        let parent = |(bone, at): (usize, &i64)| match usize::try_from(*at) {
            Ok(at) if at < bone => Ok(Some(at)),
            Err(_) if *at == -1 => Ok(None),
            _ => Err(Fault(format!("`{name}` in the input: {at} does not come before {bone}"))),
        };
        all.values.iter().enumerate().map(parent).collect()
    }

    /// How often a function has to be called at least, and for how many seconds.
    pub fn effort(&self) -> Answer<(usize, f64)> {
        let runs = if self.0.get("min_runs").is_some() { self.count("min_runs", 0)? } else { 1 };
        let seconds = if self.0.get("min_seconds").is_some() { self.number("min_seconds")? } else { 0.0 };
        Ok((runs, seconds))
    }
}
