//! Canonical text of programs: numbered by definition order, a type on each binding, floats that read back exactly.
//!
//! *Invariant.* `parse(print(p)) == p`, bits of floats and of NaN included; equal programs have one text.

use std::fmt::Write;

use super::{Atom, Constant, Content, Program};
use crate::primitives::Param;
use crate::types::{Element, dispatch};

/// Whether functions' names are part of the text; a fingerprint leaves them out.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Names {
    Shown,
    Hidden,
}

pub(super) fn to_text(program: &Program, names: Names) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_program(&mut out, program, 0, names);
    out.push('\n');
    out
}

fn write_program(out: &mut String, p: &Program, indent: usize, names: Names) -> std::fmt::Result {
    let pad = "  ".repeat(indent);
    write!(out, "fn {}(", if names == Names::Shown { p.name.as_str() } else { "f" })?;
    for (i, ty) in p.inputs().iter().enumerate() {
        write!(out, "{}x{i}: {ty}", if i > 0 { ", " } else { "" })?;
    }
    out.push_str(") -> ");
    match p.outputs() {
        [one] => write!(out, "{}", p.ty(*one))?,
        many => {
            let types: Vec<_> = many.iter().map(|a| p.ty(*a).to_string()).collect();
            write!(out, "({})", types.join(", "))?;
        }
    }
    if !p.constraints.is_empty() {
        let all: Vec<_> = p.constraints.iter().map(|c| c.to_string()).collect();
        write!(out, " where {}", all.join(", "))?;
    }
    let effects = p.effects();
    if !effects.is_pure() {
        write!(out, " does {effects}")?;
    }
    out.push_str(" {\n");
    for e in p.equations() {
        write!(out, "{pad}  ")?;
        for (i, r) in e.results().enumerate() {
            write!(out, "{}{r}: {}", if i > 0 { ", " } else { "" }, p.ty(r))?;
        }
        if e.results().len() > 0 {
            out.push_str(" = ");
        }
        out.push_str(e.op().name());
        // A user's operation may have the name of another: what is computed is told by its type.
        if names == Names::Hidden && !e.op().is_built_in() {
            write!(out, "@{}", e.op().rust_type())?;
        }
        write_params(out, &e.op().params(), indent, names)?;
        for &a in p.operands(e) {
            out.push(' ');
            write_atom(out, p, a)?;
        }
        out.push('\n');
    }
    write!(out, "{pad}  return")?;
    for (i, &a) in p.outputs().iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { " " });
        write_atom(out, p, a)?;
    }
    write!(out, "\n{pad}}}")
}

fn write_params(out: &mut String, params: &[(&str, Param)], indent: usize, names: Names) -> std::fmt::Result {
    if params.is_empty() {
        return Ok(());
    }
    out.push('{');
    for (i, (name, value)) in params.iter().enumerate() {
        write!(out, "{}{name}=", if i > 0 { ", " } else { "" })?;
        write_param(out, value, indent, names)?;
    }
    out.push('}');
    Ok(())
}

fn write_param(out: &mut String, param: &Param, indent: usize, names: Names) -> std::fmt::Result {
    match param {
        Param::Program(p) => write_program(out, p, indent + 1, names),
        Param::List(items) if items.iter().any(|p| matches!(p, Param::Program(_))) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                write_param(out, item, indent, names)?;
            }
            out.push(']');
            Ok(())
        }
        other => write!(out, "{other}"),
    }
}

fn write_atom(out: &mut String, p: &Program, atom: Atom) -> std::fmt::Result {
    match (atom.value(), p.constant(atom)) {
        (Some(v), _) => write!(out, "{v}"),
        (None, Some(c)) => write_constant(out, c),
        (None, None) => Ok(()),
    }
}

fn write_constant(out: &mut String, constant: &Constant) -> std::fmt::Result {
    match &constant.content {
        Content::Splat(s) => write!(out, "{s}")?,
        Content::Capture(i) => write!(out, "capture {i}")?,
        Content::Dense(c) => {
            out.push('[');
            dispatch!(c.ty().dtype(), T => for (i, v) in c.values::<T>().iter().enumerate() {
                write!(out, "{}{}", if i > 0 { "," } else { "" }, v.into_scalar())?;
            });
            out.push(']');
        }
    }
    write!(out, ":{}", constant.ty)
}
