//! The text of a module: what reports show and tests are written in. `parse.rs` reads it back.
//!
//! A line is a statement, and what follows `//` on it is for readers: what loads, stores and calls mean, where the module still says so.

use std::fmt::{self, Display, Formatter, Write};

use gradus_core::Scalar;

use super::meaning::{Note, Tag, TagName};
use super::{Carried, Expr, Function, Index, Int, Kind, Module, Role, Stmt, Ty, Value};

impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl Display for super::Buffer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

impl Display for Int {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Int::Const(v) => write!(f, "{v}"),
            Int::Value(v) => write!(f, "{v}"),
        }
    }
}

impl Display for Index {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (v, stride) in &self.terms {
            let plus = if first { "" } else { " + " };
            match stride {
                Int::Const(1) => write!(f, "{plus}{v}")?,
                stride => write!(f, "{plus}{v}*{stride}")?,
            }
            first = false;
        }
        match self.offset {
            0 if !first => Ok(()),
            o if first => write!(f, "{o}"),
            o if o < 0 => write!(f, " - {}", o.unsigned_abs()),
            o => write!(f, " + {o}"),
        }
    }
}

/// A constant as its type writes it; floats keep every bit, those of a NaN too.
pub fn constant_text(ty: Ty, bits: u64) -> String {
    match ty {
        Ty::F32 => Scalar::F32(f32::from_bits(bits as u32)).to_string(),
        Ty::F64 => Scalar::F64(f64::from_bits(bits)).to_string(),
        Ty::Bool => (bits != 0).to_string(),
        Ty::I8 => (bits as i8).to_string(),
        Ty::I16 => (bits as i16).to_string(),
        Ty::I32 => (bits as i32).to_string(),
        Ty::I64 => (bits as i64).to_string(),
        Ty::U8 => (bits as u8).to_string(),
        Ty::U16 => (bits as u16).to_string(),
        Ty::U32 => (bits as u32).to_string(),
        Ty::U64 => bits.to_string(),
    }
}

/// A name of a module, a kernel or a call: as it is if it is one word, otherwise in quotes.
struct Name<'a>(&'a str);

/// Whether a character stands in names without quotes.
pub(super) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '.'
}

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.is_empty() && self.0.chars().all(is_plain) {
            return f.write_str(self.0);
        }
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                '\n' => f.write_str("\\n")?,
                '\r' => f.write_str("\\r")?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// What stands before a statement with results.
fn to(results: &[String]) -> String {
    if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) }
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().map(Value::to_string).collect()
}

fn with(carried: &[Carried]) -> String {
    let all: Vec<_> = carried.iter().map(|c| format!("{} = {}", c.param, c.init)).collect();
    if all.is_empty() { String::new() } else { format!(" with {}", all.join(", ")) }
}

struct Printer<'a> {
    module: &'a Module,
    out: String,
    depth: usize,
}

impl Printer<'_> {
    fn line(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "{:1$}{text}", "", self.depth * 2);
    }

    fn params(&self, values: &[Value]) -> String {
        let all: Vec<_> = values.iter().map(|v| format!("{v}: {}", self.module.ty(*v))).collect();
        all.join(", ")
    }

    fn block(&mut self, body: &[Stmt]) {
        self.depth += 1;
        body.iter().for_each(|s| self.stmt(s));
        self.depth -= 1;
    }

    /// A last line of a block.
    fn end(&mut self, word: &str, values: &[Value]) {
        if !values.is_empty() {
            self.depth += 1;
            self.line(format_args!("{word} {}", texts(values).join(", ")));
            self.depth -= 1;
        }
    }

    fn nexts(&mut self, carried: &[Carried]) {
        self.end("next", &carried.iter().map(|c| c.next).collect::<Vec<_>>());
    }

    /// What a tag stands for, for readers. The equations of the program itself are block 0.
    fn tag(&self, tag: Tag) -> String {
        match self.module.meanings.tags.get(tag.0 as usize).map(|t| t.name) {
            Some(TagName::Value(0, v)) => format!("x{v}"),
            Some(name) => name.to_string(),
            None => "nothing".into(),
        }
    }

    /// What a load or store means, for readers.
    fn meant(&self, at: &Index) -> String {
        match self.module.meanings.get(at.means) {
            Some(m) => format!("  // {}{}", self.tag(m.tag), if m.again { " again" } else { "" }),
            None => String::new(),
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        let m = self.module;
        match s {
            Stmt::Let(v, e) => {
                let ty = m.ty(*v);
                match e {
                    Expr::Const(bits) => self.line(format_args!("{v}: {ty} = {}", constant_text(ty, *bits))),
                    Expr::Size(i) => self.line(format_args!("{v}: {ty} = size {i}")),
                    Expr::Op(op, args) => self.line(format_args!("{v}: {ty} = {op} {}", texts(args).join(" "))),
                    Expr::Load(b, at) => self.line(format_args!("{v}: {ty} = {b}[{at}]{}", self.meant(at))),
                }
            }
            Stmt::Store { buffer, at, value } => {
                self.line(format_args!("{buffer}[{at}] = {value}{}", self.meant(at)));
            }
            Stmt::Loop(l) => {
                let kind = if l.kind == Kind::Lanes { "lanes" } else { "for" };
                let mut results: Vec<_> = l.carried.iter().map(|c| c.result.to_string()).collect();
                results.extend(l.folds.iter().map(|f| f.result.to_string()));
                self.line(format_args!("{}{kind} {} < {}{} {{", to(&results), l.var, l.count, with(&l.carried)));
                self.block(&l.body);
                self.nexts(&l.carried);
                self.depth += 1;
                for f in &l.folds {
                    self.line(format_args!("fold {} {}", f.op.op(), f.value));
                }
                self.depth -= 1;
                self.line("}");
            }
            Stmt::While(w) => {
                let results: Vec<_> = w.carried.iter().map(|c| c.result.to_string()).collect();
                self.line(format_args!("{}while{} {{", to(&results), with(&w.carried)));
                self.block(&w.before);
                self.line(format_args!("}} if {} {{", w.condition));
                self.block(&w.body);
                self.nexts(&w.carried);
                self.line("}");
            }
            Stmt::Switch(s) => {
                self.line(format_args!("{}switch {} {{", to(&texts(&s.results)), s.index));
                for (i, (body, ends)) in s.cases.iter().enumerate() {
                    self.line(format_args!("case {i}:"));
                    self.block(body);
                    self.end("give", ends);
                }
                self.line("}");
            }
            Stmt::Kernel(k) => {
                let k = &m.kernels[*k as usize];
                let inputs = texts(&k.inputs).join(", ");
                self.line(format_args!("{}run {}({inputs})", to(&texts(&k.outputs)), Name(&k.name)));
            }
            Stmt::Call(c) => {
                let args: Vec<_> = c.buffers.iter().map(|(b, at)| format!("{b}[{at}]")).collect();
                let name = m.calls.get(c.entry as usize).map_or("?", String::as_str);
                let of = |written: bool| -> Vec<String> {
                    c.regions.iter().filter(|(_, w)| *w == written).map(|(r, _)| self.tag(r.tag)).collect()
                };
                let mut says = String::new();
                for (verb, all) in [("reads", of(false)), ("writes", of(true))] {
                    if !all.is_empty() {
                        let before = if says.is_empty() { "  //" } else { "," };
                        says += &format!("{before} {verb} {}", all.join(" and "));
                    }
                }
                self.line(format_args!("call c{} {}({}){says}", c.entry, Name(name), args.join(", ")));
            }
            Stmt::Swap(a, b) => self.line(format_args!("swap {a} {b}")),
            Stmt::Piece(p) => self.line(format_args!("do p{p}")),
            Stmt::Note(n) => match &**n {
                Note::Step(scope) => self.line(format_args!("// a step of loop {scope}")),
                Note::Becomes(region, tag, _) => {
                    let (from, to) = (self.tag(region.tag), self.tag(*tag));
                    self.line(format_args!("// {from} in {} is {to} from here on", region.buffer));
                }
            },
        }
    }
}

/// The text of one kernel.
pub fn kernel_text(module: &Module, index: usize) -> String {
    let k = &module.kernels[index];
    let mut p = Printer { module, out: String::new(), depth: 0 };
    let parallel = if k.parallel { "parallel " } else { "" };
    p.line(format_args!("{parallel}kernel {}({}) {{", Name(&k.name), p.params(&k.inputs)));
    p.block(&k.body);
    p.end("give", &k.outputs);
    p.line("}");
    p.out
}

/// The text of an elementary function.
fn function_text(module: &Module, function: &Function) -> String {
    let mut p = Printer { module, out: String::new(), depth: 0 };
    p.line(format_args!("function {}({}) {{", function.of.name, p.params(&function.params)));
    p.block(&function.body);
    p.end("give", &[function.result]);
    p.line("}");
    p.out
}

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, b) in self.buffers.iter().enumerate() {
            match b.role {
                Role::Input(n) => writeln!(f, "b{i}: {} = input {n}", b.ty)?,
                Role::Output(n) => writeln!(f, "b{i}: {} = output {n}", b.ty)?,
                Role::Constant(n) => writeln!(f, "b{i}: {} = constant {n}", b.ty)?,
                Role::Scratch => writeln!(f, "b{i}: {} = scratch", b.ty)?,
            }
        }
        if self.sizes > 0 {
            writeln!(f, "sizes {}", self.sizes)?;
        }
        for (i, name) in self.calls.iter().enumerate() {
            writeln!(f, "c{i} = {}", Name(name))?;
        }
        for i in 0..self.kernels.len() {
            f.write_str(&kernel_text(self, i))?;
        }
        for function in &self.functions {
            f.write_str(&function_text(self, function))?;
        }
        let mut p = Printer { module: self, out: String::new(), depth: 0 };
        for (i, piece) in self.pieces.iter().enumerate() {
            p.line(format_args!("piece p{i} {{"));
            p.block(piece);
            p.line("}");
        }
        p.line(format_args!("main {} {{", Name(&self.name)));
        p.block(&self.main);
        p.line("}");
        f.write_str(&p.out)
    }
}
