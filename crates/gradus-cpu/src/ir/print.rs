//! The text of a module: what reports and tests show.

use std::fmt::{self, Display, Formatter, Write};

use super::{Call, Carried, Expr, Function, Index, Int, Kind, Module, Role, Stmt, Value};

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
            o if o < 0 => write!(f, " - {}", -o),
            o => write!(f, " + {o}"),
        }
    }
}

fn constant(ty: super::Ty, bits: u64) -> String {
    use super::Ty;
    match ty {
        Ty::F32 => format!("{:?}", f32::from_bits(bits as u32)),
        Ty::F64 => format!("{:?}", f64::from_bits(bits)),
        Ty::Bool => format!("{}", bits != 0),
        Ty::I8 => format!("{}", bits as i8),
        Ty::I16 => format!("{}", bits as i16),
        Ty::I32 => format!("{}", bits as i32),
        Ty::I64 => format!("{}", bits as i64),
        Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 => format!("{bits}"),
    }
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

    fn block(&mut self, body: &[Stmt]) {
        self.depth += 1;
        body.iter().for_each(|s| self.stmt(s));
        self.depth -= 1;
    }

    fn nexts(&mut self, carried: &[Carried]) {
        if !carried.is_empty() {
            let all: Vec<_> = carried.iter().map(|c| c.next.to_string()).collect();
            self.depth += 1;
            self.line(format_args!("next {}", all.join(", ")));
            self.depth -= 1;
        }
    }

    fn stmt(&mut self, s: &Stmt) {
        let m = self.module;
        match s {
            Stmt::Let(v, e) => {
                let ty = m.ty(*v);
                match e {
                    Expr::Const(bits) => self.line(format_args!("{v}: {ty} = {}", constant(ty, *bits))),
                    Expr::Size(i) => self.line(format_args!("{v}: {ty} = size {i}")),
                    Expr::Op(op, args) => {
                        let args: Vec<_> = args.iter().map(Value::to_string).collect();
                        self.line(format_args!("{v}: {ty} = {op} {}", args.join(" ")));
                    }
                    Expr::Load(b, at) => self.line(format_args!("{v}: {ty} = {b}[{at}]")),
                }
            }
            Stmt::Store { buffer, at, value } => self.line(format_args!("{buffer}[{at}] = {value}")),
            Stmt::Loop(l) => {
                let kind = if l.kind == Kind::Lanes { "lanes" } else { "for" };
                let carried: Vec<_> = l.carried.iter().map(|c| format!("{} = {}", c.param, c.init)).collect();
                let with = if carried.is_empty() { String::new() } else { format!(" with {}", carried.join(", ")) };
                let mut results: Vec<_> = l.carried.iter().map(|c| c.result.to_string()).collect();
                results.extend(l.folds.iter().map(|f| f.result.to_string()));
                let to = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
                self.line(format_args!("{to}{kind} {} < {}{with} {{", l.var, l.count));
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
                let carried: Vec<_> = w.carried.iter().map(|c| format!("{} = {}", c.param, c.init)).collect();
                let results: Vec<_> = w.carried.iter().map(|c| c.result.to_string()).collect();
                let to = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
                self.line(format_args!("{to}while with {} {{", carried.join(", ")));
                self.block(&w.before);
                self.line(format_args!("}} {} {{", w.condition));
                self.block(&w.body);
                self.nexts(&w.carried);
                self.line("}");
            }
            Stmt::Switch(s) => {
                let results: Vec<_> = s.results.iter().map(Value::to_string).collect();
                let to = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
                self.line(format_args!("{to}switch {} {{", s.index));
                for (i, (body, ends)) in s.cases.iter().enumerate() {
                    let ends: Vec<_> = ends.iter().map(Value::to_string).collect();
                    self.line(format_args!("case {i}:"));
                    self.block(body);
                    if !ends.is_empty() {
                        self.depth += 1;
                        self.line(format_args!("give {}", ends.join(", ")));
                        self.depth -= 1;
                    }
                }
                self.line("}");
            }
            Stmt::Kernel(k) => {
                let k = &m.kernels[*k as usize];
                let inputs: Vec<_> = k.inputs.iter().map(Value::to_string).collect();
                let outputs: Vec<_> = k.outputs.iter().map(Value::to_string).collect();
                let to = if outputs.is_empty() { String::new() } else { format!("{} = ", outputs.join(", ")) };
                self.line(format_args!("{to}run {}({})", k.name, inputs.join(", ")));
            }
            Stmt::Call(c) => {
                let Call { entry, buffers, .. } = &**c;
                let args: Vec<_> = buffers.iter().map(|(b, at)| format!("{b}[{at}]")).collect();
                let name = m.calls.get(*entry as usize).map_or("?", String::as_str);
                self.line(format_args!("call {name}({})", args.join(", ")));
            }
            Stmt::Swap(a, b) => self.line(format_args!("swap {a} {b}")),
            Stmt::Note(_) => {}
        }
    }
}

/// The text of one kernel.
pub fn kernel_text(module: &Module, index: usize) -> String {
    let k = &module.kernels[index];
    let inputs: Vec<_> = k.inputs.iter().map(|v| format!("{v}: {}", module.ty(*v))).collect();
    let mut p = Printer { module, out: String::new(), depth: 0 };
    let parallel = if k.parallel { "parallel " } else { "" };
    p.line(format_args!("{parallel}kernel {}({}) {{", k.name, inputs.join(", ")));
    p.block(&k.body);
    if !k.outputs.is_empty() {
        let outputs: Vec<_> = k.outputs.iter().map(Value::to_string).collect();
        p.depth = 1;
        p.line(format_args!("give {}", outputs.join(", ")));
        p.depth = 0;
    }
    p.line("}");
    p.out
}

/// The text of an elementary function.
fn function_text(module: &Module, function: &Function) -> String {
    let params: Vec<_> = function.params.iter().map(|v| format!("{v}: {}", module.ty(*v))).collect();
    let mut p = Printer { module, out: String::new(), depth: 0 };
    p.line(format_args!("function {}({}) {{", function.of.name, params.join(", ")));
    p.block(&function.body);
    p.line(format_args!("  give {}", function.result));
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
        for i in 0..self.kernels.len() {
            f.write_str(&kernel_text(self, i))?;
        }
        for function in &self.functions {
            f.write_str(&function_text(self, function))?;
        }
        let mut p = Printer { module: self, out: String::new(), depth: 0 };
        p.line(format_args!("main {} {{", self.name));
        p.block(&self.main);
        p.line("}");
        f.write_str(&p.out)
    }
}
