//! The text of the vector language: what file tests are written in.

use std::fmt::{self, Display, Formatter, Write};

use super::{Access, Callee, Code, Expr, Loop, Main, Memory, Run, Shape, Spread, Stmt};
use crate::ir::{Carried, Value, constant_text};

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
            Stmt::Main(m) => self.main(m),
        }
    }

    fn main(&mut self, m: &Main) {
        match m {
            Main::While(w) => {
                let results: Vec<Value> = w.carried.iter().map(|c| c.result).collect();
                self.line(format_args!("{}while{} {{", defines(&results), self.with(&w.carried)));
                self.block(&w.before);
                self.line(format_args!("}} if {} {{", w.condition));
                self.block(&w.body);
                self.next(&w.carried, "");
                self.line("}");
            }
            Main::Switch(s) => {
                self.line(format_args!("{}switch {} {{", defines(&s.results), s.index));
                for (i, (body, ends)) in s.cases.iter().enumerate() {
                    self.line(format_args!("case {i}:"));
                    self.block(body);
                    self.line(format_args!("  give {}", list(ends, ", ")));
                }
                self.line("}");
            }
            Main::Run(r) => self.run(r),
            Main::Swap(a, b) => self.line(format_args!("swap {a} {b}")),
        }
    }

    fn run(&mut self, r: &Run) {
        let callee = match &r.callee {
            Callee::Kernel(number, None) => format!("kernel {number}"),
            Callee::Kernel(number, Some(count)) => format!("kernel {number} shared {count}"),
            Callee::Function(number) => format!("function {number}"),
            Callee::Piece(number, _) => format!("piece {number}"),
            Callee::Library(entry, arrays) => {
                let arrays: Vec<String> = arrays.iter().map(|(_, a)| a.to_string()).collect();
                format!("library {entry} {}", arrays.join(" "))
            }
        };
        let given: String = r.inputs.iter().map(|v| format!(" {v}")).collect();
        self.line(format_args!("{}run {callee}{given}", defines(&r.outputs)));
    }

    /// What goes around a loop, with what it is at first.
    fn with(&self, carried: &[Carried]) -> String {
        let with: Vec<String> = carried
            .iter()
            .map(|c| {
                let (ty, shape) = (self.code.ty(c.param), self.code.shape(c.param));
                format!("{}: {ty}{shape} = {}", c.param, c.init)
            })
            .collect();
        if with.is_empty() { String::new() } else { format!(" with {}", with.join(", ")) }
    }

    fn next(&mut self, carried: &[Carried], behind: &str) {
        let nexts: Vec<Value> = carried.iter().map(|c| c.next).collect();
        if !nexts.is_empty() {
            self.depth += 1;
            self.line(format_args!("next {}{behind}", list(&nexts, ", ")));
            self.depth -= 1;
        }
    }

    fn loop_(&mut self, l: &Loop) {
        let mut results: Vec<Value> = l.carried.iter().map(|c| c.result).collect();
        results.extend(l.left);
        let left = if l.left.is_some() { ", counter" } else { "" };
        let (to, with) = (defines(&results), self.with(&l.carried));
        self.line(format_args!("{to}for {} from {} to {} by {}{with} {{", l.var, l.from, l.to, l.step));
        self.block(&l.body);
        self.next(&l.carried, left);
        self.line("}");
    }
}

/// What a step defines, before it.
fn defines(values: &[Value]) -> String {
    if values.is_empty() { String::new() } else { format!("{} = ", list(values, ", ")) }
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
