//! The text of the vector language: what file tests are written in.

use std::fmt::{self, Display, Formatter, Write};

use super::{Access, Code, Expr, Loop, Memory, Shape, Spread, Stmt};
use crate::ir::{Value, constant_text};

impl Display for Shape {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_vector() { write!(f, "[{}]", self.lanes) } else { Ok(()) }
    }
}

impl Display for Access {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.memory {
            Memory::Buffer(b) => write!(f, "{b}")?,
            Memory::Local(n) => write!(f, "local{n}")?,
        }
        write!(f, "[{}", self.at)?;
        if let Some(l) = &self.lanes {
            match l.spread {
                Spread::Strided(by) => write!(f, "; {} by {by}", l.shape.lanes)?,
                Spread::Scattered(by) => write!(f, "; {} at {by}", l.shape.lanes)?,
            }
            if let Some(n) = l.active {
                write!(f, ", first {n}")?;
            }
        }
        f.write_char(']')
    }
}

struct Printer<'a> {
    code: &'a Code,
    out: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.depth * 2);
    }

    fn block(&mut self, body: &[Stmt]) {
        self.depth += 1;
        body.iter().for_each(|s| self.stmt(s));
        self.depth -= 1;
    }

    fn stmt(&mut self, s: &Stmt) {
        match s {
            Stmt::Let(v, e) => {
                let (ty, shape) = (self.code.ty(*v), self.code.shape(*v));
                let made = match e {
                    Expr::Const(bits) => constant_text(ty, *bits),
                    Expr::Size(i) => format!("size {i}"),
                    Expr::Op(op, args) => format!("{op} {}", list(args, " ")),
                    Expr::Load(access) => access.to_string(),
                    Expr::Ramp(from, by) => format!("ramp {from} by {by}"),
                    Expr::Active(n) => format!("first {n}"),
                    Expr::Half(v, upper) => format!("{} half {v}", if *upper { "upper" } else { "lower" }),
                    Expr::First(v) => format!("lane 0 of {v}"),
                };
                self.line(format_args!("{v}: {ty}{shape} = {made}"));
            }
            Stmt::Store(access, v) => self.line(format_args!("{access} = {v}")),
            Stmt::Loop(l) => self.loop_(l),
        }
    }

    fn loop_(&mut self, l: &Loop) {
        let mut results: Vec<Value> = l.carried.iter().map(|c| c.result).collect();
        results.extend(l.left);
        let to = if results.is_empty() { String::new() } else { format!("{} = ", list(&results, ", ")) };
        let with: Vec<String> = l
            .carried
            .iter()
            .map(|c| {
                let (ty, shape) = (self.code.ty(c.param), self.code.shape(c.param));
                format!("{}: {ty}{shape} = {}", c.param, c.init)
            })
            .collect();
        let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) };
        let left = if l.left.is_some() { ", counter" } else { "" };
        self.line(format_args!("{to}for {} from {} to {} by {}{with} {{", l.var, l.from, l.to, l.step));
        self.block(&l.body);
        let nexts: Vec<Value> = l.carried.iter().map(|c| c.next).collect();
        if !nexts.is_empty() {
            self.depth += 1;
            self.line(format_args!("next {}{left}", list(&nexts, ", ")));
            self.depth -= 1;
        }
        self.line("}");
    }
}

fn list(values: &[Value], between: &str) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(between)
}

impl Display for Code {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut p = Printer { code: self, out: String::new(), depth: 0 };
        let mut inputs: Vec<String> = self.inputs.iter().map(|v| format!("{v}: {}", self.ty(*v))).collect();
        inputs.extend(self.range.map(|(lo, hi)| format!("iterations {lo} to {hi}")));
        p.line(format_args!("({}) {{", inputs.join(", ")));
        for (i, ty) in self.locals.iter().enumerate() {
            p.line(format_args!("  local{i}: {ty}"));
        }
        p.block(&self.body);
        if !self.outputs.is_empty() {
            p.line(format_args!("  give {}", list(&self.outputs, ", ")));
        }
        p.line("}");
        f.write_str(&p.out)
    }
}
