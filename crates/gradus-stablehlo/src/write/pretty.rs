//! The operations that have a syntax of their own, and how each is written in it. What does not fit its syntax is left to the generic one.

use std::fmt::Write;

use super::Writer;
use super::attributes::{attribute, convolution, integers, list, symbol};
use crate::module::{Attribute, Dense, Operation, Region, Type};

/// How the types of an operation are written.
#[derive(Clone, Copy)]
enum Types {
    /// `: t` if all operands and results have one type, `: (..) -> ..` if not.
    Same,
    /// `: (..) -> ..`.
    All,
    /// `: t, t -> t`, as chlo writes it.
    Arrow,
}

/// Operations that are their operands and types, attributes behind.
fn plain(name: &str) -> Option<Types> {
    let (dialect, short) = name.split_once('.')?;
    Some(match (dialect, short) {
        (
            "stablehlo",
            "abs"
            | "add"
            | "and"
            | "atan2"
            | "cbrt"
            | "ceil"
            | "clamp"
            | "convert"
            | "cosine"
            | "count_leading_zeros"
            | "divide"
            | "exponential"
            | "exponential_minus_one"
            | "floor"
            | "imag"
            | "is_finite"
            | "log"
            | "log_plus_one"
            | "logistic"
            | "maximum"
            | "minimum"
            | "multiply"
            | "negate"
            | "not"
            | "or"
            | "popcnt"
            | "power"
            | "real"
            | "remainder"
            | "round_nearest_afz"
            | "round_nearest_even"
            | "rsqrt"
            | "shift_left"
            | "shift_right_arithmetic"
            | "shift_right_logical"
            | "sign"
            | "sine"
            | "sqrt"
            | "subtract"
            | "tan"
            | "tanh"
            | "xor",
        ) => Types::Same,
        (
            "stablehlo",
            "bitcast_convert"
            | "dynamic_pad"
            | "dynamic_reshape"
            | "dynamic_update_slice"
            | "real_dynamic_slice"
            | "reshape",
        ) => Types::All,
        (
            "chlo",
            "acos" | "acosh" | "asin" | "asinh" | "atan" | "atanh" | "bessel_i1e" | "conj" | "cosh" | "digamma" | "erf"
            | "erf_inv" | "erfc" | "is_inf" | "is_neg_inf" | "is_pos_inf" | "lgamma" | "next_after" | "polygamma"
            | "sinh" | "square" | "tan" | "zeta",
        ) => Types::Arrow,
        _ => return None,
    })
}

/// An attribute in the text behind the operands: what it is called there, and in the tree.
fn listed(name: &str) -> Option<(&'static [(&'static str, &'static str)], Types)> {
    Some(match name {
        "stablehlo.broadcast_in_dim" | "stablehlo.dynamic_broadcast_in_dim" => {
            (&[("dims", "broadcast_dimensions")], Types::All)
        }
        "stablehlo.transpose" => (&[("dims", "permutation")], Types::All),
        "stablehlo.reverse" => (&[("dims", "dimensions")], Types::Same),
        "stablehlo.concatenate" => (&[("dim", "dimension")], Types::All),
        "stablehlo.get_dimension_size" => (&[("dim", "dimension")], Types::All),
        "stablehlo.dynamic_iota" => (&[("dim", "iota_dimension")], Types::All),
        "stablehlo.dynamic_slice" => (&[("sizes", "slice_sizes")], Types::All),
        "stablehlo.pad" => (
            &[("low", "edge_padding_low"), ("high", "edge_padding_high"), ("interior", "interior_padding")],
            Types::All,
        ),
        _ => return None,
    })
}

impl Writer<'_> {
    /// Writes an operation in its own syntax, if it has one that can say it.
    pub(super) fn pretty(&mut self, op: &Operation, in_function: bool) -> bool {
        let start = self.out.len();
        let done = self.own_syntax(op, in_function).is_some();
        if !done {
            self.out.truncate(start);
        }
        done
    }

    fn own_syntax(&mut self, op: &Operation, in_function: bool) -> Option<()> {
        let name = &*op.name;
        if let Some(types) = plain(name).filter(|_| op.regions.is_empty() && op.results.len() == 1) {
            self.operands(op);
            self.extra(op, &|_| false);
            return self.types(op, types);
        }
        // A slice of an array without axes has no starts, which its syntax cannot say.
        if let Some((attributes, types)) =
            listed(name).filter(|_| name != "stablehlo.dynamic_slice" || op.operands.len() > 1)
        {
            self.operands(op);
            for (shown, held) in attributes {
                // A text takes what is written.
                let _ = write!(self.out, ", {shown} = ");
                match op.attributes.get(held)? {
                    Attribute::Integer(v, _) => write!(self.out, "{v}").ok()?,
                    other => integers(&mut self.out, &other.integers()?),
                }
            }
            self.extra(op, &|n| attributes.iter().any(|(_, held)| *held == n));
            return self.types(op, types);
        }
        match name {
            "func.return" | "stablehlo.return" => {
                self.out.push_str(if name == "func.return" { "return" } else { name });
                if !op.operands.is_empty() {
                    self.out.push(' ');
                    self.values(&op.operands);
                    self.extra(op, &|_| false);
                    self.out.push_str(" : ");
                    self.types_of(&op.operands);
                }
            }
            "func.call" => {
                let Attribute::Symbol(callee) = op.attributes.get("callee")? else { return None };
                self.out.push_str(if in_function { "call " } else { "func.call " });
                symbol(&mut self.out, callee.first().filter(|_| callee.len() == 1)?);
                self.out.push('(');
                self.values(&op.operands);
                self.out.push(')');
                self.extra(op, &|n| n == "callee");
                self.signature(op);
            }
            "stablehlo.constant" => {
                let value = op.attributes.get("value")?;
                let Attribute::Dense(Dense { ty, .. }) = value else { return None };
                if self.ty(*op.results.first()?) != &Type::Tensor(ty.clone()) {
                    return None;
                }
                self.out.push_str(name);
                self.extra(op, &|n| n == "value");
                self.out.push(' ');
                attribute(&mut self.out, value);
            }
            "stablehlo.compare" => self.compare(op)?,
            "stablehlo.select" => {
                let [p, yes, no] = op.operands[..] else { return None };
                if self.ty(yes) != self.ty(no) || self.ty(yes) != self.ty(*op.results.first()?) {
                    return None;
                }
                self.operands(op);
                self.extra(op, &|_| false);
                self.out.push_str(" : ");
                self.types_of(&[p, yes]);
            }
            "stablehlo.complex" => {
                self.operands(op);
                self.extra(op, &|_| false);
                self.out.push_str(" : ");
                self.types_of(&op.results);
            }
            "stablehlo.iota" => {
                let dim = op.attributes.integer("iota_dimension")?;
                write!(self.out, "{name} dim = {dim}").ok()?;
                self.extra(op, &|n| n == "iota_dimension");
                self.out.push_str(" : ");
                self.types_of(&op.results);
            }
            "stablehlo.cholesky" => {
                self.operands(op);
                if let Some(lower) = op.attributes.integer("lower") {
                    self.out.push_str(if lower == 1 { ", lower = true" } else { ", lower = false" });
                }
                self.extra(op, &|n| n == "lower");
                return self.types(op, Types::Same);
            }
            "stablehlo.fft" => {
                let Some(Attribute::Enum(_, kind)) = op.attributes.get("fft_type") else { return None };
                self.operands(op);
                write!(self.out, ", type = {kind}, length = ").ok()?;
                integers(&mut self.out, &op.attributes.integers("fft_length")?);
                self.extra(op, &|n| matches!(n, "fft_type" | "fft_length"));
                return self.types(op, Types::All);
            }
            "stablehlo.optimization_barrier" if !op.operands.is_empty() => {
                let same = op.operands.iter().zip(&op.results).all(|(a, b)| self.ty(*a) == self.ty(*b));
                if !same || op.operands.len() != op.results.len() {
                    return None;
                }
                self.operands(op);
                self.extra(op, &|_| false);
                self.out.push_str(" : ");
                self.types_of(&op.operands);
            }
            "stablehlo.slice" => self.slice(op)?,
            "stablehlo.dot_general" => self.dot_general(op)?,
            "stablehlo.convolution" => self.convolution(op)?,
            "stablehlo.custom_call" => {
                let target = op.attributes.text("call_target_name")?;
                self.out.push_str(name);
                self.out.push(' ');
                symbol(&mut self.out, target);
                self.out.push('(');
                self.values(&op.operands);
                self.out.push(')');
                self.extra(op, &|n| n == "call_target_name");
                self.signature(op);
            }
            "stablehlo.reduce" => self.reduce(op)?,
            "stablehlo.while" => self.while_loop(op)?,
            _ => return None,
        }
        Some(())
    }

    /// The name and the operands.
    fn operands(&mut self, op: &Operation) {
        self.out.push_str(&op.name);
        self.out.push_str(if op.operands.is_empty() { "" } else { " " });
        self.values(&op.operands);
    }

    fn types(&mut self, op: &Operation, how: Types) -> Option<()> {
        let result = *op.results.first().filter(|_| op.results.len() == 1)?;
        match how {
            Types::Same if op.operands.iter().all(|v| self.ty(*v) == self.ty(result)) => {
                self.out.push_str(" : ");
                self.type_of(result);
            }
            Types::Arrow => {
                self.out.push_str(" : ");
                self.types_of(&op.operands);
                self.out.push_str(" -> ");
                self.type_of(result);
            }
            Types::Same | Types::All => self.signature(op),
        }
        Some(())
    }

    fn compare(&mut self, op: &Operation) -> Option<()> {
        let Some(Attribute::Enum(_, direction)) = op.attributes.get("comparison_direction") else { return None };
        let [a, b] = op.operands[..] else { return None };
        write!(self.out, "{} {direction}, ", op.name).ok()?;
        self.values(&[a, b]);
        if let Some(kind) = op.attributes.get("compare_type") {
            let Attribute::Enum(_, kind) = kind else { return None };
            write!(self.out, ", {kind}").ok()?;
        }
        self.extra(op, &|n| matches!(n, "comparison_direction" | "compare_type"));
        self.signature(op);
        Some(())
    }

    fn slice(&mut self, op: &Operation) -> Option<()> {
        let [start, limit, step] = ["start_indices", "limit_indices", "strides"].map(|n| op.attributes.integers(n));
        let (start, limit, step) = (start?, limit?, step?);
        self.operands(op);
        self.out.push_str(" [");
        list(&mut self.out, start.iter().zip(&limit).zip(&step), |out, ((a, b), s)| {
            // A text takes what is written.
            let _ = if *s == 1 { write!(out, "{a}:{b}") } else { write!(out, "{a}:{b}:{s}") };
        });
        self.out.push(']');
        self.extra(op, &|n| matches!(n, "start_indices" | "limit_indices" | "strides"));
        self.signature(op);
        Some(())
    }

    fn precision(&mut self, op: &Operation) -> Option<()> {
        let Some(config) = op.attributes.get("precision_config") else { return Some(()) };
        let Attribute::Array(items) = config else { return None };
        if items.is_empty() {
            return Some(());
        }
        self.out.push_str(", precision = [");
        for (i, item) in items.iter().enumerate() {
            let Attribute::Enum(_, word) = item else { return None };
            write!(self.out, "{}{word}", if i > 0 { ", " } else { "" }).ok()?;
        }
        self.out.push(']');
        Some(())
    }

    fn dot_general(&mut self, op: &Operation) -> Option<()> {
        if op.attributes.has("algorithm") {
            return None;
        }
        let Attribute::Struct(_, dims) = op.attributes.get("dot_dimension_numbers")? else { return None };
        self.operands(op);
        for (shown, held) in [("batching_dims", "batching_dimensions"), ("contracting_dims", "contracting_dimensions")]
        {
            let lists = ["lhs", "rhs"].map(|side| dims.integers(&format!("{side}_{held}")).unwrap_or_default());
            if held == "batching_dimensions" && lists.iter().all(Vec::is_empty) {
                continue;
            }
            write!(self.out, ", {shown} = ").ok()?;
            integers(&mut self.out, &lists[0]);
            self.out.push_str(" x ");
            integers(&mut self.out, &lists[1]);
        }
        self.precision(op)?;
        self.extra(op, &|n| matches!(n, "dot_dimension_numbers" | "precision_config"));
        self.signature(op);
        Some(())
    }

    fn convolution(&mut self, op: &Operation) -> Option<()> {
        let Attribute::Struct(_, dims) = op.attributes.get("dimension_numbers")? else { return None };
        self.out.push_str("stablehlo.convolution(");
        self.values(&op.operands);
        self.out.push_str(") dim_numbers = ");
        convolution(&mut self.out, dims);
        self.out.push_str(", window = {");
        let mut first = true;
        for (shown, held) in [
            ("stride", "window_strides"),
            ("pad", "padding"),
            ("lhs_dilate", "lhs_dilation"),
            ("rhs_dilate", "rhs_dilation"),
            ("reverse", "window_reversal"),
        ] {
            let Some(values) = op.attributes.get(held) else { continue };
            let values = values.integers()?;
            write!(self.out, "{}{shown} = ", if first { "" } else { ", " }).ok()?;
            first = false;
            match held {
                "padding" => {
                    self.out.push('[');
                    list(&mut self.out, values.chunks(2), integers);
                    self.out.push(']');
                }
                "window_reversal" => {
                    self.out.push('[');
                    list(&mut self.out, &values, |out, v| out.push_str(if *v == 0 { "false" } else { "true" }));
                    self.out.push(']');
                }
                _ => integers(&mut self.out, &values),
            }
        }
        self.out.push('}');
        let written = |n: &str| {
            matches!(
                n,
                "dimension_numbers"
                    | "window_strides"
                    | "padding"
                    | "lhs_dilation"
                    | "rhs_dilation"
                    | "window_reversal"
            )
        };
        self.extra(op, &written);
        self.signature(op);
        Some(())
    }

    /// The operation that a region applies to its two arguments, if it does nothing else.
    fn applied(region: &Region) -> Option<&str> {
        let ([a, b], [op, end]) = (&region.arguments[..], &region.operations[..]) else { return None };
        let simple = op.operands[..] == [*a, *b] && op.attributes.is_empty() && op.regions.is_empty();
        let returns = end.name == "stablehlo.return" && end.operands[..] == op.results[..] && op.results.len() == 1;
        let known = matches!(plain(&op.name), Some(Types::Same)) && op.name.starts_with("stablehlo.");
        (simple && returns && known).then_some(&*op.name)
    }

    fn reduce(&mut self, op: &Operation) -> Option<()> {
        let [region] = &op.regions[..] else { return None };
        let n = op.operands.len() / 2;
        if n == 0 || op.operands.len() != 2 * n || region.arguments.len() != 2 * n {
            return None;
        }
        let dims = op.attributes.integers("dimensions")?;
        self.out.push_str("stablehlo.reduce");
        for i in 0..n {
            self.out.push_str(if i > 0 { ", (" } else { "(" });
            self.value(op.operands[i]); // invariant: there are twice as many
            self.out.push_str(" init: ");
            self.value(op.operands[n + i]); // invariant: as above
            self.out.push(')');
        }
        let applied = Self::applied(region);
        if let Some(applied) = applied {
            self.out.push_str(" applies ");
            self.out.push_str(applied);
        }
        self.out.push_str(" across dimensions = ");
        integers(&mut self.out, &dims);
        self.extra(op, &|n| n == "dimensions");
        self.signature(op);
        if applied.is_none() {
            self.out.push('\n');
            self.indent();
            self.out.push_str(" reducer");
            for i in 0..n {
                self.out.push_str(if i > 0 { " (" } else { "(" });
                self.argument(region.arguments[i]); // invariant: as above
                self.out.push_str(", ");
                self.argument(region.arguments[n + i]); // invariant: as above
                self.out.push(')');
            }
            self.out.push_str(" {\n");
            self.operations(region, false);
            self.indent();
            self.out.push('}');
        }
        Some(())
    }

    fn while_loop(&mut self, op: &Operation) -> Option<()> {
        let [condition, body] = &op.regions[..] else { return None };
        if [condition, body].iter().any(|r| r.arguments.len() != op.operands.len()) || op.operands.is_empty() {
            return None;
        }
        self.out.push_str("stablehlo.while(");
        // Both regions call their arguments by the same names.
        for (i, (held, start)) in condition.arguments.iter().zip(&op.operands).enumerate() {
            self.out.push_str(if i > 0 { ", " } else { "" });
            self.name_argument(*held);
            self.value(*held);
            self.out.push_str(" = ");
            self.value(*start);
        }
        for (a, b) in condition.arguments.iter().zip(&body.arguments) {
            let shown = self.shown(*a);
            self.set(*b, shown);
        }
        self.out.push_str(") : ");
        self.types_of(&op.operands);
        if op.attributes.iter().any(|(n, _)| n != super::LOCATION) {
            self.out.push_str(" attributes");
            self.extra(op, &|_| false);
        }
        self.out.push('\n');
        self.indent();
        self.out.push_str("cond {\n");
        self.operations(condition, false);
        self.indent();
        self.out.push_str("} do {\n");
        self.operations(body, false);
        self.indent();
        self.out.push('}');
        Some(())
    }
}
