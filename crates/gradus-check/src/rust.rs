//! A program as a line of Rust, for a test or a report: what has a method of its own is written with it, the rest as an operation.

use gradus_core::primitives::Param;
use gradus_core::program::{Atom, Equation};
use gradus_core::{Program, Type};

/// A function that traces to the program, or to one that does the same.
pub fn snippet(p: &Program) -> String {
    let inputs: Vec<String> = (0..p.inputs().len()).map(|k| format!("x{k}: &Array")).collect();
    let mut body = String::new();
    for e in p.equations() {
        let names: Vec<String> = e.results().map(|r| r.to_string()).collect();
        let names = if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(", ")) };
        body += &format!(" let {names} = {};", expression(p, e));
    }
    let outputs: Vec<String> = p.outputs().iter().map(|a| atom(p, *a, false)).collect();
    let outputs = if outputs.len() == 1 { outputs[0].clone() } else { format!("({})", outputs.join(", ")) };
    let types: Vec<String> = p.inputs().iter().map(Type::to_string).collect();
    format!("jit(|{}| {{{body} {outputs} }}) // {}\n", inputs.join(", "), types.join(", "))
}

fn atom(p: &Program, a: Atom, borrowed: bool) -> String {
    match (a.value(), p.constant(a)) {
        (Some(v), _) if borrowed && v.index() >= p.inputs().len() => format!("&{v}"),
        (Some(v), _) => v.to_string(),
        (None, Some(c)) => match c.splat_value() {
            Some(s) => format!("{s:?}"),
            None => format!("array({})", c.ty()),
        },
        (None, None) => String::new(),
    }
}

fn expression(p: &Program, e: &Equation) -> String {
    let operands = p.operands(e);
    let name = e.op().name();
    let arg = |k: usize| operands.get(k).map_or(String::new(), |a| atom(p, *a, true));
    let this = operands.first().map_or(String::new(), |a| atom(p, *a, false));
    let param =
        |want: &str| e.op().params().into_iter().find(|(n, _)| *n == want).map_or(String::new(), |(_, v)| text(&v));
    let sign = match name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        _ => "",
    };
    if !sign.is_empty() {
        return format!("{} {sign} {}", arg(0), arg(1));
    }
    match name {
        "transpose" => format!("{this}.transpose({})", param("axes")),
        "reshape" => format!("{this}.reshape({})", param("shape")),
        "reverse" => format!("{this}.flip({})", param("axes")),
        "reduce_sum" => format!("{this}.sum_axes({})", param("axes")),
        "reduce_max" => format!("{this}.max_axes({})", param("axes")),
        "reduce_min" => format!("{this}.min_axes({})", param("axes")),
        "reduce_prod" => format!("{this}.prod_axes({})", param("axes")),
        "max" => format!("{this}.maximum({})", arg(1)),
        "min" => format!("{this}.minimum({})", arg(1)),
        "cumsum" => format!("{this}.cumsum({})", param("axis")),
        "convert" => format!("{this}.cast(DType::{})", param("dtype").to_uppercase()),
        "select" => format!("{this}.select({}, {})", arg(1), arg(2)),
        _ => {
            let params: Vec<String> = e.op().params().iter().map(|(n, v)| format!("{n}={}", text(v))).collect();
            let params = if params.is_empty() { String::new() } else { format!("{{{}}}", params.join(", ")) };
            let all: Vec<String> = operands.iter().map(|a| atom(p, *a, true)).collect();
            match (operands.len(), params.is_empty()) {
                (1, true) => format!("{this}.{name}()"),
                _ => format!("{name}{params}({})", all.join(", ")),
            }
        }
    }
}

fn text(v: &Param) -> String {
    match v {
        Param::Program(p) => format!("<{}>", p.name()),
        Param::List(items) => format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
