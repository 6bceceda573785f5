//! Types and attributes as text.

use std::fmt::Write;

use super::numbers;
use crate::module::{Attribute, Attributes, Element, Float, Quantized, Tensor, Type};
use crate::read::{name_of, storage_range};

/// Items with commas between.
pub(super) fn list<T>(out: &mut String, items: impl IntoIterator<Item = T>, mut each: impl FnMut(&mut String, T)) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push_str(", ");
        }
        each(out, item);
    }
}

/// A type.
pub(crate) fn ty(out: &mut String, t: &Type) {
    match t {
        Type::Tensor(t) => tensor(out, t),
        Type::Token => out.push_str("!stablehlo.token"),
        Type::Tuple(items) => {
            out.push_str("tuple<");
            list(out, items, ty);
            out.push('>');
        }
        Type::Scalar(e) => element(out, e),
        Type::Function(from, to) => function(out, from, to),
        Type::None => out.push_str("none"),
        Type::Opaque(text) => {
            if !Type::is_plain(text) {
                out.push('!');
            }
            out.push_str(text);
        }
    }
}

/// `(..) -> ..`, the results in parentheses unless there is one.
pub(super) fn function<'a>(
    out: &mut String,
    from: impl IntoIterator<Item = &'a Type>,
    to: impl IntoIterator<Item = &'a Type, IntoIter: ExactSizeIterator>,
) {
    out.push('(');
    list(out, from, ty);
    out.push_str(") -> ");
    let mut to = to.into_iter();
    if to.len() == 1 {
        if let Some(one) = to.next() {
            ty(out, one);
        }
        return;
    }
    out.push('(');
    list(out, to, ty);
    out.push(')');
}

/// A tensor.
pub(crate) fn tensor(out: &mut String, t: &Tensor) {
    out.push_str("tensor<");
    for d in &t.dims {
        match d {
            Some(n) => {
                numbers::whole(out, *n);
                out.push('x');
            }
            None => out.push_str("?x"),
        }
    }
    element(out, &t.element);
    if !t.bounds.is_empty() {
        out.push_str(", #stablehlo.bounds<");
        list(out, &t.bounds, |out, b| match b {
            Some(n) => out.push_str(&n.to_string()),
            None => out.push('?'),
        });
        out.push('>');
    }
    out.push('>');
}

/// The type of an element.
pub(super) fn element(out: &mut String, e: &Element) {
    match e {
        Element::Complex(part) => {
            out.push_str("complex<");
            element(out, &Element::Float(*part));
            out.push('>');
        }
        Element::Quantized(q) => quantized(out, q),
        named => out.push_str(name_of(named).unwrap_or("?")),
    }
}

fn quantized(out: &mut String, q: &Quantized) {
    out.push_str("!quant.uniform<");
    // Quantized integers say their sign: `i8` and `u8`.
    let mut storage = String::new();
    element(&mut storage, &q.storage);
    out.push_str(&storage.replace("ui", "u"));
    if (q.storage_min, q.storage_max) != storage_range(&q.storage) {
        let _ = write!(out, "<{}:{}>", q.storage_min, q.storage_max); // a text takes what is written
    }
    out.push(':');
    element(out, &Element::Float(q.expressed));
    if let Some(axis) = q.axis {
        let _ = write!(out, ":{axis}"); // as above
    }
    out.push_str(", ");
    if q.axis.is_some() {
        out.push('{');
    }
    list(out, q.scales.iter().zip(&q.zero_points), |out, (scale, zero)| {
        numbers::float_attribute(out, *scale, &Element::Float(Float::F64));
        if *zero != 0 {
            let _ = write!(out, ":{zero}"); // as above
        }
    });
    if q.axis.is_some() {
        out.push('}');
    }
    out.push('>');
}

/// A text in quotes.
pub(super) fn quoted(out: &mut String, bytes: &[u8]) {
    out.push('"');
    for &b in bytes {
        match b {
            b'"' | b'\\' => {
                out.push('\\');
                out.push(char::from(b));
            }
            0x20..=0x7e => out.push(char::from(b)),
            _ => {
                let _ = write!(out, "\\{b:02X}"); // a text takes what is written
            }
        }
    }
    out.push('"');
}

/// A name that stands as it is, or in quotes.
pub(super) fn name(out: &mut String, text: &str) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.starts_with(first) && text.chars().all(plain) { out.push_str(text) } else { quoted(out, text.as_bytes()) }
}

/// `@name`.
pub(super) fn symbol(out: &mut String, text: &str) {
    out.push('@');
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.' | '-');
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    if text.starts_with(first) && text.chars().all(plain) { out.push_str(text) } else { quoted(out, text.as_bytes()) }
}

/// `name = value, ..`.
pub(super) fn entries<'a>(out: &mut String, all: impl IntoIterator<Item = (&'a str, &'a Attribute)>) {
    list(out, all, |out, (n, a)| {
        name(out, n);
        if *a != Attribute::Unit {
            out.push_str(" = ");
            attribute(out, a);
        }
    });
}

/// `[1, 2]`.
pub(super) fn integers(out: &mut String, values: &[i64]) {
    out.push('[');
    list(out, values, |out, v| {
        if *v < 0 {
            out.push('-');
        }
        numbers::whole(out, v.unsigned_abs());
    });
    out.push(']');
}

/// An attribute with its type.
pub(super) fn attribute(out: &mut String, a: &Attribute) {
    match a {
        Attribute::Unit => out.push_str("unit"),
        Attribute::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Attribute::Integer(v, t) => {
            let _ = write!(out, "{v} : "); // a text takes what is written
            ty(out, t);
        }
        Attribute::Float(v, t) => {
            let float = Element::Float(Float::F64);
            numbers::float_attribute(out, *v, if let Type::Scalar(e) = t { e } else { &float });
            out.push_str(" : ");
            ty(out, t);
        }
        Attribute::String(bytes) => quoted(out, bytes),
        Attribute::Array(items) => {
            out.push('[');
            list(out, items, attribute);
            out.push(']');
        }
        Attribute::Dictionary(all) => {
            out.push('{');
            entries(out, all.iter());
            out.push('}');
        }
        Attribute::Type(t) => ty(out, t),
        Attribute::Symbol(names) => {
            for (i, n) in names.iter().enumerate() {
                out.push_str(if i > 0 { "::" } else { "" });
                symbol(out, n);
            }
        }
        Attribute::Dense(d) => {
            out.push_str("dense<");
            numbers::dense(out, d);
            out.push_str("> : ");
            tensor(out, &d.ty);
        }
        Attribute::Numbers(e, values) => {
            out.push_str("array<");
            element(out, e);
            out.push_str(if values.is_empty() { "" } else { ": " });
            list(out, values, |out, v| match e {
                Element::I1 => out.push_str(if *v == 0 { "false" } else { "true" }),
                _ => {
                    let _ = write!(out, "{v}"); // a text takes what is written
                }
            });
            out.push('>');
        }
        Attribute::Enum(kind, value) => {
            let (dialect, kind) = kind.split_once('.').unwrap_or(("stablehlo", kind));
            let _ = write!(out, "#{dialect}<{kind} {value}>"); // a text takes what is written
        }
        Attribute::Struct(kind, fields) if kind == "stablehlo.conv" => {
            out.push_str("#stablehlo.conv<");
            convolution(out, fields);
            out.push('>');
        }
        Attribute::Struct(kind, fields) => {
            let _ = write!(out, "#{kind}<"); // a text takes what is written
            let said = |(_, a): &(&str, &Attribute)| !matches!(a, Attribute::Numbers(_, v) if v.is_empty());
            list(out, fields.iter().filter(said), |out, (n, a)| {
                let _ = write!(out, "{n} = "); // as above
                field(out, a);
            });
            out.push('>');
        }
        Attribute::Opaque(text) => {
            out.push('#');
            out.push_str(text);
        }
    }
}

/// A field of a record, whose type is known from its name.
fn field(out: &mut String, a: &Attribute) {
    match a {
        Attribute::Numbers(_, values) => integers(out, values),
        Attribute::Integer(v, _) => {
            let _ = write!(out, "{v}"); // a text takes what is written
        }
        Attribute::Enum(_, value) => out.push_str(value),
        Attribute::Type(t) => ty(out, t),
        Attribute::Array(items) => {
            out.push('[');
            list(out, items, field);
            out.push(']');
        }
        other => attribute(out, other),
    }
}

/// `[b, 0, f]x[0, i, o]->[b, 0, f]`.
pub(super) fn convolution(out: &mut String, fields: &Attributes) {
    let part = |out: &mut String, first: (&str, &str), second: (&str, &str), spatial: &str| {
        let axes = fields.integers(spatial).unwrap_or_default();
        let mut shown: Vec<(i64, String)> = axes.iter().enumerate().map(|(i, a)| (*a, i.to_string())).collect();
        for (field, letter) in [first, second] {
            shown.push((fields.integer(field).unwrap_or(0), letter.to_string()));
        }
        shown.sort_by_key(|(axis, _)| *axis);
        out.push('[');
        list(out, shown, |out, (_, text)| out.push_str(&text));
        out.push(']');
    };
    part(out, ("input_batch_dimension", "b"), ("input_feature_dimension", "f"), "input_spatial_dimensions");
    out.push('x');
    let (i, o) = (("kernel_input_feature_dimension", "i"), ("kernel_output_feature_dimension", "o"));
    part(out, i, o, "kernel_spatial_dimensions");
    out.push_str("->");
    part(out, ("output_batch_dimension", "b"), ("output_feature_dimension", "f"), "output_spatial_dimensions");
}
