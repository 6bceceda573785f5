//! Shapes that are computed: integers that follow from sizes become dimensions, numbers or expressions of symbols.

use gradus_core::error::{Error, ErrorKind, Result};
use gradus_core::primitives::Op;
use gradus_core::primitives::shaping::{Pad, Slice};
use gradus_core::trace::bind;
use gradus_core::{Array, Constraint, Decision, Dim, Shape, Type as Ty};

use super::shaping::{broadcast_in_dim, iota, reshape};
use super::{Answer, Importer, Item, On, Scope, one, types};
use crate::module::{Attribute, Element, Function, Type, Value};

/// The types of a function's arguments, tuples taken apart. Each `?` is a symbol of its own.
pub(super) fn argument_types(importer: &Importer<'_>, function: &Function) -> Result<Vec<Ty>> {
    fn collect(ty: &Type, symbols: &mut usize, all: &mut Vec<Ty>) -> Result<()> {
        match ty {
            Type::Tensor(t) => {
                let mut dims = Vec::with_capacity(t.dims.len());
                for d in &t.dims {
                    dims.push(match d.and_then(|d| usize::try_from(d).ok()) {
                        Some(n) => Dim::from(n),
                        None => {
                            *symbols += 1;
                            let name = format!("d{}", *symbols - 1);
                            Dim::symbol(&name).map_err(|e| Error::new(ErrorKind::Size, e.to_string()))?
                        }
                    });
                }
                all.push(Ty::checked(types::dtype(&t.element)?, Shape::from(dims))?);
            }
            Type::Tuple(types) => types.iter().try_for_each(|t| collect(t, symbols, all))?,
            Type::Token => {}
            other => return Err(Error::new(ErrorKind::DType, format!("an argument of type {other:?} has no numbers"))),
        }
        Ok(())
    }
    let (mut symbols, mut all) = (0, Vec::new());
    for argument in &function.body.arguments {
        let ty = function.values.get(argument.0 as usize);
        let ty = ty.ok_or_else(|| Error::new(ErrorKind::Verify, "an argument that has no type"))?;
        collect(ty, &mut symbols, &mut all).map_err(|e| e.at(importer.place(function.place)))?;
    }
    Ok(all)
}

/// The most elements that an array of sizes has; more is no shape.
const MOST: usize = 64;

impl Scope<'_> {
    /// The integers that a value is, if they follow from numbers and sizes alone.
    pub(super) fn sizes(&self, value: Value) -> Option<Vec<Dim>> {
        if let Some(sizes) = self.sizes.get(&value) {
            return Some(sizes.clone());
        }
        let tensor = self.ty(value).ok()?.tensor()?;
        if !(tensor.element.is_signed() || tensor.element.integer_bytes().is_some()) {
            return None;
        }
        if let Some(Item::Array(a)) = self.values.get(value.0 as usize).and_then(Option::as_ref)
            && let Some(c) = a.concrete()
        {
            let all = (0..c.count().min(MOST + 1)).map(|i| c.scalar_at(i).ok()?.to_i64().map(Dim::from));
            return all.collect::<Option<Vec<_>>>().filter(|v| v.len() <= MOST);
        }
        let op = *self.definitions.get(&value)?;
        let operand = |i: usize| op.operands.get(i).and_then(|v| self.sizes(*v));
        let pairwise = |f: &dyn Fn(&Dim, &Dim) -> Option<Dim>| {
            let (a, b) = (operand(0)?, operand(1)?);
            (a.len() == b.len()).then(|| a.iter().zip(&b).map(|(a, b)| f(a, b)).collect::<Option<Vec<_>>>()).flatten()
        };
        let name = op.name.split_once('.').map(|(_, short)| short)?;
        match name {
            "get_dimension_size" => {
                let Some(Item::Array(x)) = op.operands.first().and_then(|v| self.get(*v).ok()) else { return None };
                let axis = usize::try_from(op.attributes.integer("dimension")?).ok()?;
                Some(vec![x.shape().get(axis)?.clone()])
            }
            "convert" | "reshape" | "optimization_barrier" => operand(0),
            "concatenate" => {
                let parts = (0..op.operands.len()).map(operand).collect::<Option<Vec<_>>>()?;
                Some(parts.concat()).filter(|v| v.len() <= MOST)
            }
            "broadcast_in_dim" => {
                let (x, count) = (operand(0)?, tensor.count()?);
                match x.as_slice() {
                    [one] if count <= MOST => Some(vec![one.clone(); count]),
                    all if all.len() == count => Some(x),
                    _ => None,
                }
            }
            "slice" if tensor.dims.len() == 1 => {
                let at = |name| op.attributes.integers(name).and_then(|v| usize::try_from(*v.first()?).ok());
                let (start, limit, step) = (at("start_indices")?, at("limit_indices")?, at("strides").unwrap_or(1));
                Some(operand(0)?.get(start..limit)?.iter().step_by(step.max(1)).cloned().collect())
            }
            "add" | "broadcast_add" => pairwise(&|a, b| Some(a + b)),
            "subtract" | "broadcast_subtract" => pairwise(&|a, b| Some(a - b)),
            "multiply" | "broadcast_multiply" => pairwise(&|a, b| Some(a * b)),
            "maximum" => pairwise(&|a, b| Some(a.max(b))),
            "minimum" => pairwise(&|a, b| Some(a.min(b))),
            // Toward zero and down are the same for sizes, which are not negative; other numbers are not folded.
            "divide" => pairwise(&|a, b| {
                whole_and_positive(a, b).then(|| a.exact_quotient(b).unwrap_or_else(|| a.floor_div(b)))
            }),
            "remainder" => pairwise(&|a, b| whole_and_positive(a, b).then(|| a.modulo(b))),
            // JAX's dimension variables are at least 1, which its text asserts only later.
            "sign" => operand(0)?.iter().map(|d| self.sign(d)).collect(),
            "and" | "or" => {
                let all = |v: i64| move |d: &Dim| d.constant() == Some(v);
                let decided = if name == "and" { 0 } else { 1 };
                match (operand(0), operand(1)) {
                    (Some(a), _) if a.iter().all(all(decided)) => Some(a),
                    (_, Some(b)) if b.iter().all(all(decided)) => Some(b),
                    (Some(a), Some(b)) if a.iter().all(all(1 - decided)) => Some(b),
                    (Some(a), Some(b)) if b.iter().all(all(1 - decided)) => Some(a),
                    _ => None,
                }
                .filter(|v| tensor.element == Element::I1 && tensor.count() == Some(v.len()))
            }
            "negate" => Some(operand(0)?.iter().map(|d| Dim::from(0usize) - d).collect()),
            "clamp" => {
                let (low, x, high) = (operand(0)?, operand(1)?, operand(2)?);
                let at = |v: &[Dim], i: usize| v.get(if v.len() == 1 { 0 } else { i }).cloned();
                (0..x.len()).map(|i| Some(x[i].max(&at(&low, i)?).min(&at(&high, i)?))).collect()
            }
            "compare" => {
                let word = match op.attributes.get("comparison_direction")? {
                    Attribute::Enum(_, word) => &**word,
                    _ => return None,
                };
                let holds = |a: &Dim, b: &Dim| {
                    let decision = match word {
                        "EQ" => a.equals(b),
                        "NE" => turned(a.equals(b)),
                        "GE" => a.at_least(b),
                        "LE" => b.at_least(a),
                        "GT" => a.greater_than(b),
                        "LT" => b.greater_than(a),
                        _ => return None,
                    };
                    match decision {
                        Decision::Yes => Some(Dim::from(1usize)),
                        Decision::No => Some(Dim::from(0usize)),
                        Decision::AtRunTime => None,
                    }
                };
                pairwise(&holds)
            }
            "select" => {
                let (mask, a, b) = (operand(0)?, operand(1)?, operand(2)?);
                let pick = |i: usize| {
                    let mask = mask.get(if mask.len() == 1 { 0 } else { i })?.constant()?;
                    if mask != 0 { a.get(i).cloned() } else { b.get(i).cloned() }
                };
                (0..a.len()).map(pick).collect()
            }
            _ => None,
        }
    }
}

impl Scope<'_> {
    fn sign(&self, d: &Dim) -> Option<Dim> {
        let (zero, one) = (Dim::from(0usize), Dim::from(1usize));
        if let Some(n) = d.constant() {
            return Some(Dim::from(n.signum()));
        }
        if d.at_least(&one) == Decision::Yes {
            return Some(one);
        }
        let polymorphic = self.importer.module.attributes.has("jax.uses_shape_polymorphism");
        if !polymorphic || d.at_least(&zero) != Decision::Yes {
            return None;
        }
        gradus_core::trace::require(&[Constraint::AtLeast(d.clone(), one.clone())]);
        Some(one)
    }
}

fn turned(decision: Decision) -> Decision {
    match decision {
        Decision::Yes => Decision::No,
        Decision::No => Decision::Yes,
        Decision::AtRunTime => Decision::AtRunTime,
    }
}

fn whole_and_positive(a: &Dim, b: &Dim) -> bool {
    a.at_least(&Dim::from(0usize)) == Decision::Yes && b.at_least(&Dim::from(1usize)) == Decision::Yes
}

impl On<'_, '_> {
    /// The integers that an operand is, if they follow from sizes.
    pub(super) fn sizes_of(&self, at: usize) -> Option<Vec<Dim>> {
        self.op.operands.get(at).and_then(|v| self.scope.sizes(*v))
    }

    /// The integers that an operand must be.
    pub(super) fn sizes_at(&self, at: usize) -> Result<Vec<Dim>> {
        self.sizes_of(at).ok_or_else(|| {
            self.refused(
                format!("operand {at} is a shape that does not follow from constants and sizes"),
                "compute shapes from `get_dimension_size` and constants by integer arithmetic",
            )
        })
    }

    /// The same as numbers.
    pub(super) fn numbers_at(&self, at: usize) -> Result<Vec<i64>> {
        let known = self.sizes_at(at)?.iter().map(Dim::constant).collect::<Option<Vec<_>>>();
        known.ok_or_else(|| self.refused(format!("operand {at} must be numbers"), "give it as a constant"))
    }

    pub(super) fn dynamic(&mut self, name: &str) -> Answer {
        match name {
            "get_dimension_size" => {
                let (x, axis, to) = (self.x(0)?, self.index("dimension")?, self.result_dtype()?);
                let Some(dim) = x.shape().get(axis).cloned() else {
                    return Err(self.wrong("there is no such dimension"));
                };
                one(Array::from_dim(&dim, to))
            }
            "dynamic_reshape" => {
                let shape = self.sizes_at(1)?;
                one(reshape(&self.x(0)?, shape))
            }
            "dynamic_broadcast_in_dim" => {
                let (shape, axes) = (Shape::from(self.sizes_at(1)?), self.axes("broadcast_dimensions")?);
                let x = self.x(0)?;
                one(broadcast_in_dim(&x, &shape, &axes))
            }
            "dynamic_iota" => {
                let shape = Shape::from(self.sizes_at(0)?);
                one(iota(self.result_dtype()?, shape, self.index("iota_dimension")?))
            }
            "dynamic_pad" => {
                let (x, value) = (self.x(0)?, self.x(1)?);
                let (low, high) = (self.sizes_at(2)?, self.sizes_at(3)?);
                let interior = self.numbers_at(4)?.into_iter().map(|n| self.natural("interior_padding", n));
                let interior = interior.collect::<Result<Vec<_>>>()?;
                one(bind(Op::new(Pad { low, high, interior }), &[x, value]))
            }
            "real_dynamic_slice" => {
                let x = self.x(0)?;
                let (start, limit) = (self.sizes_at(1)?, self.sizes_at(2)?);
                let step =
                    self.numbers_at(3)?.into_iter().map(|n| self.natural("strides", n)).collect::<Result<_>>()?;
                one(bind(Op::new(Slice { start, limit, step }), &[x]))
            }
            "dynamic_gather" => {
                let sizes = Shape::from(self.sizes_at(2)?);
                one(self.gather(sizes)?)
            }
            "dynamic_conv" => {
                let padding = self.sizes_at(2)?;
                let low = padding.iter().step_by(2).cloned().collect();
                let high = padding.iter().skip(1).step_by(2).cloned().collect();
                one(self.convolution(low, high)?)
            }
            _ => Ok(None),
        }
    }

    /// A condition on sizes, written as a call.
    pub(super) fn shape_assertion(&mut self) -> Answer {
        if let Some(holds) = self.sizes_of(0) {
            return match holds.first().and_then(Dim::constant) {
                Some(0) => Err(self.refused("the condition on sizes can never hold", "give other shapes")),
                _ => Ok(Some(Vec::new())),
            };
        }
        let Some(op) = self.op.operands.first().and_then(|v| self.scope.definitions.get(v)).copied() else {
            return Err(self.refused("its condition is not a comparison", "compare sizes"));
        };
        let sides: Option<Vec<Dim>> = op.operands.iter().map(|v| self.scope.sizes(*v)?.first().cloned()).collect();
        let word = match op.attributes.get("comparison_direction") {
            Some(Attribute::Enum(_, word)) => &**word,
            _ => "",
        };
        let one_more = |d: &Dim| d + Dim::from(1usize);
        let constraint = match (word, sides.as_deref()) {
            ("EQ", Some([a, b])) => Constraint::Equal(a.clone(), b.clone()),
            ("GE", Some([a, b])) => Constraint::AtLeast(a.clone(), b.clone()),
            ("LE", Some([a, b])) => Constraint::AtLeast(b.clone(), a.clone()),
            ("GT", Some([a, b])) => Constraint::AtLeast(a.clone(), one_more(b)),
            ("LT", Some([a, b])) => Constraint::AtLeast(b.clone(), one_more(a)),
            _ => return Err(self.refused("its condition is not a comparison of sizes", "compare sizes")),
        };
        gradus_core::trace::require(&[constraint]);
        Ok(Some(Vec::new()))
    }
}
