//! The records of StableHLO and CHLO: `#stablehlo.gather<offset_dims = [1], ..>`. A table of kinds and their fields; what is not said has its default.

use gradus_core::error::Result;

use super::Reader;
use super::names::known;
use crate::module::{Attribute, Attributes, Element, Float, Name, Type};

/// What a field of a record holds.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Field {
    /// `[1, 2]`; nothing if not said.
    Dims,
    /// An integer; 0 if not said.
    Int,
    /// A float; 0 if not said.
    Float,
    /// Any attribute, absent if not said.
    Any,
    /// A word or text, which becomes a text.
    Text,
}

/// The fields of one kind.
type Fields = [(&'static str, Field)];

const DOT: &Fields = &[
    ("lhs_batching_dimensions", Field::Dims),
    ("rhs_batching_dimensions", Field::Dims),
    ("lhs_contracting_dimensions", Field::Dims),
    ("rhs_contracting_dimensions", Field::Dims),
];

pub(super) const CONV: &Fields = &[
    ("input_batch_dimension", Field::Int),
    ("input_feature_dimension", Field::Int),
    ("input_spatial_dimensions", Field::Dims),
    ("kernel_input_feature_dimension", Field::Int),
    ("kernel_output_feature_dimension", Field::Int),
    ("kernel_spatial_dimensions", Field::Dims),
    ("output_batch_dimension", Field::Int),
    ("output_feature_dimension", Field::Int),
    ("output_spatial_dimensions", Field::Dims),
];

const KINDS: &[(&str, &Fields)] = &[
    (
        "stablehlo.gather",
        &[
            ("offset_dims", Field::Dims),
            ("collapsed_slice_dims", Field::Dims),
            ("operand_batching_dims", Field::Dims),
            ("start_indices_batching_dims", Field::Dims),
            ("start_index_map", Field::Dims),
            ("index_vector_dim", Field::Int),
        ],
    ),
    (
        "stablehlo.scatter",
        &[
            ("update_window_dims", Field::Dims),
            ("inserted_window_dims", Field::Dims),
            ("input_batching_dims", Field::Dims),
            ("scatter_indices_batching_dims", Field::Dims),
            ("scatter_dims_to_operand_dims", Field::Dims),
            ("index_vector_dim", Field::Int),
        ],
    ),
    ("stablehlo.dot", DOT),
    (
        "chlo.ragged_dot",
        &[
            ("lhs_batching_dimensions", Field::Dims),
            ("rhs_batching_dimensions", Field::Dims),
            ("lhs_contracting_dimensions", Field::Dims),
            ("rhs_contracting_dimensions", Field::Dims),
            ("lhs_ragged_dimensions", Field::Dims),
            ("rhs_group_dimensions", Field::Dims),
        ],
    ),
    ("stablehlo.conv", CONV),
    (
        "stablehlo.dot_algorithm",
        &[
            ("lhs_precision_type", Field::Any),
            ("rhs_precision_type", Field::Any),
            ("accumulation_type", Field::Any),
            ("lhs_component_count", Field::Int),
            ("rhs_component_count", Field::Int),
            ("num_primitive_operations", Field::Int),
            ("allow_imprecise_accumulation", Field::Any),
        ],
    ),
    (
        "stablehlo.output_operand_alias",
        &[("output_tuple_indices", Field::Dims), ("operand_index", Field::Int), ("operand_tuple_indices", Field::Dims)],
    ),
    ("stablehlo.channel_handle", &[("handle", Field::Int), ("type", Field::Int)]),
    (
        "stablehlo.result_accuracy",
        &[("atol", Field::Float), ("rtol", Field::Float), ("ulps", Field::Int), ("mode", Field::Any)],
    ),
    ("stablehlo.replica_group_mesh_axes", &[("mesh", Field::Any), ("axes", Field::Any)]),
    ("stablehlo.mesh_axis", &[("name", Field::Text), ("size", Field::Int)]),
];

/// The fields of a kind.
pub(super) fn find(kind: &str) -> Option<&'static Fields> {
    KINDS.iter().find(|(name, _)| *name == kind).map(|(_, fields)| *fields)
}

/// Whether a kind is one of a few words.
pub(super) fn is_enum(kind: &str) -> bool {
    let Some((dialect, kind)) = kind.split_once('.') else { return false };
    let words = [
        "precision",
        "comparison_direction",
        "comparison_type",
        "fft_type",
        "transpose",
        "rng_distribution",
        "rng_algorithm",
        "result_accuracy_mode",
        "custom_call_api_version",
    ];
    (dialect == "stablehlo" || dialect == "chlo") && words.contains(&kind)
}

impl Reader<'_> {
    /// Behind the kind of a record: `<a = 1, b = [2]>`.
    pub(super) fn record(&mut self, kind: Name, fields: &'static Fields) -> Result<Attribute> {
        self.cur.take("<")?;
        if kind == "stablehlo.conv" && !self.cur.eat_word("raw") {
            let value = self.convolution_dimensions()?;
            self.cur.take(">")?;
            return Ok(value);
        }
        let mut all = Attributes::default();
        while !self.cur.eat(">") {
            let at = self.cur.at();
            let word = self.cur.word("the name of a field")?;
            let Some((name, field)) = fields.iter().find(|(name, _)| *name == word).copied() else {
                let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
                return Err(self
                    .cur
                    .error_at(at, &format!("`{kind}` has no field `{word}`; it has {}", names.join(", "))));
            };
            self.cur.take("=")?;
            let value = match field {
                Field::Dims => Attribute::numbers(self.integers()?),
                Field::Int => integer(self.cur.i64()?),
                Field::Float => match self.attribute()? {
                    Attribute::Float(v, t) => Attribute::Float(v, t),
                    _ => return Err(self.cur.error_at(at, &format!("`{name}` is a float"))),
                },
                Field::Any => self.attribute()?,
                Field::Text if self.cur.peek() == b'"' => Attribute::String(self.cur.string()?.into_owned()),
                Field::Text => Attribute::of_text(self.cur.word("a name")?),
            };
            if all.set(name, value).is_some() {
                return Err(self.cur.error_at(at, &format!("the field `{name}` is given twice")));
            }
            if !self.cur.eat(",") {
                self.cur.take(">")?;
                break;
            }
        }
        fill(&mut all, fields);
        Ok(Attribute::Struct(kind, all))
    }

    /// `[1, 2]`, also `array<i64: 1, 2>` and `dense<..>`.
    pub(super) fn integers(&mut self) -> Result<Vec<i64>> {
        if self.cur.eat("[") {
            return self.list("]", |r| if r.cur.eat("?") { Ok(i64::MIN) } else { r.cur.i64() });
        }
        let at = self.cur.at();
        self.attribute()?.integers().ok_or_else(|| self.cur.error_at(at, "expected a list of integers"))
    }

    /// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`: what each axis of image, kernel and result is.
    pub(super) fn convolution_dimensions(&mut self) -> Result<Attribute> {
        let mut all = Attributes::default();
        let parts = [
            ("b", "input_batch_dimension", "f", "input_feature_dimension", "input_spatial_dimensions"),
            (
                "i",
                "kernel_input_feature_dimension",
                "o",
                "kernel_output_feature_dimension",
                "kernel_spatial_dimensions",
            ),
            ("b", "output_batch_dimension", "f", "output_feature_dimension", "output_spatial_dimensions"),
        ];
        for (index, (one, one_name, two, two_name, spatial_name)) in parts.into_iter().enumerate() {
            match index {
                0 => {}
                1 => self.cur.take_word("x")?,
                _ => self.cur.take("->")?,
            }
            let at = self.cur.at();
            self.cur.take("[")?;
            let mut spatial: Vec<(i64, i64)> = Vec::new();
            let mut place = 0;
            self.list("]", |r| {
                let at = r.cur.at();
                if r.cur.peek().is_ascii_digit() {
                    spatial.push((r.cur.i64()?, place));
                } else {
                    let word = r.cur.word("an axis")?;
                    let name = match word {
                        _ if word == one => one_name,
                        _ if word == two => two_name,
                        _ => {
                            return Err(r.cur.error_at(
                                at,
                                &format!("expected `{one}`, `{two}` or the number of an axis, found `{word}`"),
                            ));
                        }
                    };
                    if all.set(name, integer(place)).is_some() {
                        return Err(r.cur.error_at(at, &format!("`{word}` is given twice")));
                    }
                }
                place += 1;
                Ok(())
            })?;
            spatial.sort_unstable();
            if spatial.iter().enumerate().any(|(i, (axis, _))| usize::try_from(*axis) != Ok(i)) {
                return Err(self.cur.error_at(at, "the numbers of spatial axes are not 0, 1, .. each once"));
            }
            if !all.has(one_name) || !all.has(two_name) {
                return Err(self.cur.error_at(at, &format!("expected `{one}` and `{two}` among the axes")));
            }
            all.set(spatial_name, Attribute::numbers(spatial.into_iter().map(|(_, place)| place)));
        }
        Ok(Attribute::Struct(known("stablehlo.conv"), all))
    }

    /// `batching_dims = [0] x [0], contracting_dims = [2] x [1]`.
    pub(super) fn dot_dimensions(&mut self) -> Result<Attribute> {
        let mut all = Attributes::default();
        if self.cur.eat_word("batching_dims") {
            self.cur.take("=")?;
            self.pair(&mut all, "lhs_batching_dimensions", "rhs_batching_dimensions")?;
            self.cur.take(",")?;
        }
        self.cur.take_word("contracting_dims")?;
        self.cur.take("=")?;
        self.pair(&mut all, "lhs_contracting_dimensions", "rhs_contracting_dimensions")?;
        fill(&mut all, DOT);
        Ok(Attribute::Struct(known("stablehlo.dot"), all))
    }

    /// `[0] x [0]`.
    fn pair(&mut self, all: &mut Attributes, left: &'static str, right: &'static str) -> Result<()> {
        all.set(left, Attribute::numbers(self.integers()?));
        self.cur.take_word("x")?;
        all.set(right, Attribute::numbers(self.integers()?));
        Ok(())
    }
}

/// The defaults of what was not said.
fn fill(all: &mut Attributes, fields: &'static Fields) {
    for (name, field) in fields {
        if !all.has(name) {
            match field {
                Field::Dims => drop(all.set(*name, Attribute::numbers([]))),
                Field::Int => drop(all.set(*name, integer(0))),
                Field::Float => drop(all.set(*name, Attribute::Float(0.0, Type::Scalar(Element::Float(Float::F64))))),
                Field::Any | Field::Text => {}
            }
        }
    }
}

/// An integer of 64 bits.
pub(super) fn integer(value: i64) -> Attribute {
    Attribute::Integer(value.into(), Type::Scalar(Element::I64))
}
