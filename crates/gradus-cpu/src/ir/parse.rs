//! Reads modules back from their text, so that a test of the compiler can begin at any pass over the kernel language.
//!
//! `text.parse::<Module>()` gives the module that was printed, floats and the bits of a NaN included. No part of the text are:
//!
//! - what memory means ([`Meanings`](super::meaning::Meanings), notes, the regions of calls): the printer says it in comments, and comments are skipped;
//! - the types of values that a pass left without a definition: they read back as `bool`.
//!
//! [`written`] gives the part of a module that its text carries. Kernels are found by their names, so no two have the same one. Every error of the
//! reader says the line and column; what it reads is verified.

mod words;

use std::str::FromStr;

use gradus_core::math::Rare;
use gradus_core::scalar::Half;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use self::words::{TYPES, is_number, short};
use super::{
    Buffer, BufferInfo, Call, Carried, Expr, Fold, FoldOp, Function, Index, Int, Kernel, Kind, Loop, Math, Module, Op,
    Role, Special, Stmt, Switch, Ty, Value, While, strip, verify,
};
use crate::error::{Error, Result, error, fail};

/// Bodies deeper than this are refused, so that no text can exhaust the stack.
const DEEPEST: usize = 256;
/// Values have smaller numbers than this: each number below that of a value takes a byte, used or not.
const MOST_VALUES: u32 = 1 << 24;

/// Lists the plain variants of a type. One that is left out does not compile.
macro_rules! listed {
    ($list:ident: $ty:ident = $($variant:ident)*; $($other:pat),*) => {
        const $list: &[$ty] = &[$($ty::$variant),*];
        const _: fn($ty) = |x| match x {
            $($ty::$variant)|* => {}
            $($other => {})*
        };
    };
}

listed! { OPS: Op =
    Add Sub Mul Div Rem Neg Abs Fma Sqrt Floor Ceil Round Trunc Lesser Greater Max Min And Or Xor Not Shl Shr Sar Rotl
    Popcount LeadingZeros Eq Ne Lt Le Select;
    Op::Convert(_), Op::Bitcast(_), Op::Widen(_), Op::Narrow(_), Op::Math(_), Op::Special(_)
}
listed! { SPECIAL: Special = ErfInv Lgamma Digamma Nextafter FloatRem; Special::Polygamma(_), Special::Rare(_) }
listed! { FOLDS: FoldOp = Add Mul Max Min And Or; }

/// Every operation that is a name alone.
fn operations() -> impl Iterator<Item = Op> {
    let math = Math::all().iter().map(|m| Op::Math(*m));
    let special = SPECIAL.iter().map(|s| Op::Special(*s));
    let rare = Rare::ALL.iter().map(|r| Op::Special(Special::Rare(*r)));
    OPS.iter().copied().chain(math).chain(special).chain(rare)
}

impl FromStr for Module {
    type Err = Error;

    fn from_str(text: &str) -> Result<Module> {
        let operations = operations().map(|op| (op.to_string(), op)).collect();
        let mut p = Parser {
            text,
            at: 0,
            depth: 0,
            module: Module::default(),
            types: FxHashMap::default(),
            uses: Vec::new(),
            operations,
        };
        p.module().map_err(|e| {
            let (line, column) = p.position();
            e.note(format!("at line {line}, column {column} of the kernel text"))
        })?;
        verify(&p.module)?;
        Ok(p.module)
    }
}

/// A name of the text, and where it stands.
type Placed<T> = (T, usize);

struct Parser<'a> {
    text: &'a str,
    /// Where the next character is. After an error: what the error is about.
    at: usize,
    depth: usize,
    module: Module,
    types: FxHashMap<Value, Ty>,
    /// Where values are used: all of them must be defined somewhere.
    uses: Vec<Placed<Value>>,
    operations: FxHashMap<String, Op>,
}

impl<'a> Parser<'a> {
    // ---- values and places ----

    fn value(&mut self) -> Result<Placed<Value>> {
        let (n, at) = self.numbered('v', "a value as `v0`")?;
        if n >= MOST_VALUES {
            return self.at_place(at, error!(Parse, "v{n} is too large a number for a value"));
        }
        Ok((Value(n), at))
    }

    fn used(&mut self) -> Result<Value> {
        let found = self.value()?;
        self.uses.push(found);
        Ok(found.0)
    }

    /// Values with commas between them.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.take(",") {
            all.push(one(self)?);
        }
        Ok(all)
    }

    fn define(&mut self, (v, at): Placed<Value>, ty: Ty) -> Result<Value> {
        match self.types.insert(v, ty) {
            Some(before) if before != ty => self.at_place(at, error!(Parse, "{v} is {ty} here, and {before} above")),
            _ => Ok(v),
        }
    }

    /// The type of a value that must have one by now.
    fn type_of(&mut self, (v, at): Placed<Value>) -> Result<Ty> {
        match self.types.get(&v) {
            Some(ty) => Ok(*ty),
            None => self.at_place(at, error!(Parse, "{v} is used before it is defined")),
        }
    }

    fn int(&mut self) -> Result<Int> {
        match self.peek() {
            Some('v') => Ok(Int::Value(self.used()?)),
            _ => Ok(Int::Const(self.integer()?)),
        }
    }

    /// `v0*8 + v1 + 3`, in brackets.
    fn index(&mut self) -> Result<Index> {
        self.want("[")?;
        let mut at = Index::default();
        loop {
            if self.peek() != Some('v') {
                at.offset = self.integer()?;
                break;
            }
            let value = self.used()?;
            let stride = if self.take("*") { self.int()? } else { Int::Const(1) };
            at.terms.push((value, stride));
            match self.peek() {
                Some('+') => self.want("+")?,
                // The minus belongs to the number.
                Some('-') => {}
                _ => break,
            }
        }
        self.want("]")?;
        Ok(at)
    }

    fn buffer(&mut self) -> Result<Buffer> {
        let (n, at) = self.numbered('b', "a buffer as `b0`")?;
        match self.module.buffers.get(n as usize) {
            Some(_) => Ok(Buffer(n)),
            None => self.at_place(at, error!(Parse, "there is no b{n}")),
        }
    }

    // ---- the module ----

    fn module(&mut self) -> Result<()> {
        self.lines();
        while self.next_word().starts_with('b') {
            self.memory()?;
        }
        if self.keyword("sizes") {
            self.module.sizes = self.unsigned("how many sizes there are")?;
            self.end_of_line()?;
        }
        while self.next_word().starts_with('c') {
            let (n, at) = self.numbered('c', "a call as `c0`")?;
            if n as usize != self.module.calls.len() {
                let e =
                    error!(Parse, "expected `c{}`, found `c{n}`: calls are numbered in order", self.module.calls.len());
                return self.at_place(at, e);
            }
            self.want("=")?;
            let name = self.name()?;
            self.module.calls.push(name);
            self.end_of_line()?;
        }
        while matches!(self.next_word(), "parallel" | "kernel") {
            self.kernel()?;
        }
        while self.keyword("function") {
            self.function()?;
        }
        while self.keyword("piece") {
            self.piece()?;
        }
        if !self.keyword("main") {
            return self.wanted(
                "a line that begins with `b0:`, `sizes`, `c0`, `kernel`, `function`, `piece` or `main`, in this order",
            );
        }
        self.module.name = self.name()?;
        self.brace("{")?;
        self.module.main = self.body()?;
        self.brace("}")?;
        if self.peek().is_some() {
            return self.wanted("the end of the text");
        }
        for found in std::mem::take(&mut self.uses) {
            if !self.types.contains_key(&found.0) {
                return self.at_place(found.1, error!(Parse, "{} is used and not defined", found.0));
            }
        }
        let values = self.types.keys().map(|v| v.index() + 1).max().unwrap_or(0);
        self.module.types = vec![Ty::Bool; values];
        self.types.iter().for_each(|(v, ty)| self.module.types[v.index()] = *ty);
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        let (n, at) = self.numbered('b', "a buffer as `b0`")?;
        if n as usize != self.module.buffers.len() {
            let e =
                error!(Parse, "expected `b{}`, found `b{n}`: buffers are numbered in order", self.module.buffers.len());
            return self.at_place(at, e);
        }
        self.want(":")?;
        let ty = self.ty()?;
        self.want("=")?;
        let role = match self.next_word() {
            "input" => Role::Input,
            "output" => Role::Output,
            "constant" => Role::Constant,
            "scratch" => |_| Role::Scratch,
            _ => return self.wanted("`input`, `output`, `constant` or `scratch`"),
        };
        let number = match self.keyword("scratch") {
            true => 0,
            false => {
                self.at += self.next_word().len();
                self.unsigned("a number")?
            }
        };
        self.module.buffers.push(BufferInfo { ty, role: role(number) });
        self.end_of_line()
    }

    /// Values with their types, in parentheses.
    fn params(&mut self) -> Result<Vec<Value>> {
        self.want("(")?;
        if self.take(")") {
            return Ok(Vec::new());
        }
        let all = self.list(|p| {
            let v = p.value()?;
            p.want(":")?;
            let ty = p.ty()?;
            p.define(v, ty)
        })?;
        self.want(")")?;
        Ok(all)
    }

    fn kernel(&mut self) -> Result<()> {
        let parallel = self.keyword("parallel");
        if !self.keyword("kernel") {
            return self.wanted("`kernel`");
        }
        let at = self.here();
        let name = self.name()?;
        if self.module.kernels.iter().any(|k| k.name == name) {
            return self.at_place(at, error!(Parse, "there is a kernel `{}` already", short(&name)));
        }
        let inputs = self.params()?;
        self.brace("{")?;
        let body = self.body()?;
        let outputs = self.gives()?;
        self.brace("}")?;
        self.module.kernels.push(Kernel { name, inputs, outputs, parallel, body });
        Ok(())
    }

    fn function(&mut self) -> Result<()> {
        let word = self.next_word();
        let Some(Op::Math(of)) = self.operation(word) else {
            return self.wanted("an elementary function as `exp`");
        };
        self.at += word.len();
        let at = self.here();
        let params = self.params()?;
        let Some(ty) = params.first().and_then(|p| self.types.get(p)).copied() else {
            return self.at_place(at, error!(Parse, "a function takes at least one operand"));
        };
        self.brace("{")?;
        let body = self.body()?;
        if self.next_word() != "give" {
            return self.wanted("`give` and the result of the function");
        }
        let at = self.at;
        let [result] = self.gives()?[..] else {
            return self.at_place(at, error!(Parse, "a function gives one value"));
        };
        self.brace("}")?;
        self.module.functions.push(Function { of, ty, params, body, result });
        Ok(())
    }

    fn piece(&mut self) -> Result<()> {
        let (n, at) = self.numbered('p', "a piece as `p0`")?;
        let next = self.module.pieces.len();
        if n as usize != next {
            return self.at_place(at, error!(Parse, "expected `p{next}`, found `p{n}`: pieces are numbered in order"));
        }
        self.brace("{")?;
        let body = self.body()?;
        self.brace("}")?;
        self.module.pieces.push(body);
        Ok(())
    }

    // ---- bodies ----

    /// Statements up to a line that ends the body.
    fn body(&mut self) -> Result<Vec<Stmt>> {
        if self.depth >= DEEPEST {
            fail!(Parse, "bodies nest more than {DEEPEST} deep");
        }
        self.depth += 1;
        let mut all = Vec::new();
        loop {
            let ends = matches!(self.next_word(), "next" | "fold" | "give" | "case");
            if ends || matches!(self.peek(), Some('}') | None) {
                self.depth -= 1;
                return Ok(all);
            }
            all.push(self.stmt()?);
        }
    }

    /// What a body ends with: `give v1, v2`.
    fn gives(&mut self) -> Result<Vec<Value>> {
        if !self.keyword("give") {
            return Ok(Vec::new());
        }
        let all = self.list(Self::used)?;
        self.end_of_line()?;
        Ok(all)
    }

    fn stmt(&mut self) -> Result<Stmt> {
        let mut results = Vec::new();
        let word = self.next_word();
        if word.starts_with('v') {
            results = self.list(Self::value)?;
            if let ([v], true) = (&results[..], self.take(":")) {
                return self.definition(*v);
            }
            self.want("=")?;
        } else if word.starts_with('b') {
            let buffer = self.buffer()?;
            let at = self.index()?;
            self.want("=")?;
            let value = self.used()?;
            self.end_of_line()?;
            return Ok(Stmt::Store { buffer, at, value });
        }
        let word = self.next_word();
        match word {
            "for" | "lanes" | "while" | "switch" | "run" => self.at += word.len(),
            "call" | "swap" | "do" if results.is_empty() => self.at += word.len(),
            _ if results.is_empty() => return self.wanted("a statement"),
            _ => return self.wanted("`for`, `lanes`, `while`, `switch` or `run`"),
        }
        match word {
            "for" => self.counted(Kind::Serial, results),
            "lanes" => self.counted(Kind::Lanes, results),
            "while" => self.while_(results),
            "switch" => self.switch(results),
            "run" => self.run(results),
            "call" => self.call(),
            "do" => {
                let (n, at) = self.numbered('p', "a piece as `p0`")?;
                if n as usize >= self.module.pieces.len() {
                    return self.at_place(at, error!(Parse, "there is no p{n}"));
                }
                self.end_of_line()?;
                Ok(Stmt::Piece(n))
            }
            _ => {
                let swap = Stmt::Swap(self.buffer()?, self.buffer()?);
                self.end_of_line()?;
                Ok(swap)
            }
        }
    }

    fn definition(&mut self, v: Placed<Value>) -> Result<Stmt> {
        let ty = self.ty()?;
        let v = self.define(v, ty)?;
        self.want("=")?;
        let word = self.next_word();
        let memory = word.strip_prefix('b').is_some_and(|d| d.starts_with(|c: char| c.is_ascii_digit()));
        let e = if memory {
            Expr::Load(self.buffer()?, self.index()?)
        } else if self.keyword("size") {
            Expr::Size(self.unsigned("the number of a size")?)
        } else if let Some(op) = self.operation(word) {
            self.at += word.len();
            let args = (0..op.arity()).map(|_| self.used()).collect::<Result<SmallVec<_>>>()?;
            Expr::Op(op, args)
        } else if is_number(word) {
            Expr::Const(self.number(ty)?)
        } else {
            return self.wanted("a number, `size`, an operation or an element as `b0[3]`");
        };
        self.end_of_line()?;
        Ok(Stmt::Let(v, e))
    }

    fn operation(&self, word: &str) -> Option<Op> {
        let ty = |name: &str| TYPES.into_iter().find(|t| t.to_string() == name);
        match word.split_once('.') {
            Some(("convert", to)) => Some(Op::Convert(ty(to)?)),
            Some(("bitcast", to)) => Some(Op::Bitcast(ty(to)?)),
            Some(("widen", half)) => Some(Op::Widen(Half::ALL.into_iter().find(|h| h.name() == half)?)),
            Some(("narrow", half)) => Some(Op::Narrow(Half::ALL.into_iter().find(|h| h.name() == half)?)),
            Some(("polygamma", n)) => Some(Op::Special(Special::Polygamma(n.parse().ok()?))),
            _ => self.operations.get(word).copied(),
        }
    }

    /// ` with v1 = v0, ...`: params and what they start from.
    fn with(&mut self) -> Result<Vec<(Value, Value)>> {
        if !self.keyword("with") {
            return Ok(Vec::new());
        }
        self.list(|p| {
            let param = p.value()?;
            p.want("=")?;
            let init = p.value()?;
            let ty = p.type_of(init)?;
            Ok((p.define(param, ty)?, init.0))
        })
    }

    /// `next v1, ...`: what goes around, with the results that it has after the loop.
    fn carried(&mut self, with: &[(Value, Value)], results: &[Placed<Value>]) -> Result<Vec<Carried>> {
        if with.is_empty() {
            return Ok(Vec::new());
        }
        if !self.keyword("next") {
            return self.wanted("`next` and what goes around");
        }
        let at = self.here();
        let next = self.list(Self::used)?;
        if next.len() != with.len() {
            let e =
                error!(Parse, "expected {} values, one for each that goes around, found {}", with.len(), next.len());
            return self.at_place(at, e);
        }
        self.end_of_line()?;
        let mut all = Vec::new();
        for (((param, init), next), result) in with.iter().zip(next).zip(results) {
            let ty = self.type_of((*init, result.1))?;
            all.push(Carried { init: *init, param: *param, next, result: self.define(*result, ty)? });
        }
        Ok(all)
    }

    /// Refuses a statement that has more or fewer results than names before it.
    fn count_results(&mut self, start: usize, names: usize, results: usize) -> Result<()> {
        match names == results {
            true => Ok(()),
            false => self.at_place(start, error!(Parse, "expected a name for each result ({results}), found {names}")),
        }
    }

    fn counted(&mut self, kind: Kind, results: Vec<Placed<Value>>) -> Result<Stmt> {
        let start = results.first().map_or(self.at, |r| r.1);
        let var = self.value()?;
        let var = self.define(var, Ty::I64)?;
        self.want("<")?;
        let count = self.int()?;
        let with = self.with()?;
        self.brace("{")?;
        let body = self.body()?;
        let (of_carried, of_folds) = results.split_at(with.len().min(results.len()));
        let carried = self.carried(&with, of_carried)?;
        let mut folds = Vec::new();
        while self.keyword("fold") {
            let word = self.next_word();
            let Some(op) = FOLDS.iter().copied().find(|f| f.op().to_string() == word) else {
                return self.wanted("how to fold: `add`, `mul`, `max`, `min`, `and` or `or`");
            };
            self.at += word.len();
            let value = self.value()?;
            let ty = self.type_of(value)?;
            self.end_of_line()?;
            if let Some(result) = of_folds.get(folds.len()) {
                folds.push(Fold { op, value: value.0, result: self.define(*result, ty)? });
            } else {
                return self.count_results(start, results.len(), with.len() + folds.len() + 1).and(self.wanted("`}`"));
            }
        }
        self.count_results(start, results.len(), with.len() + folds.len())?;
        self.brace("}")?;
        Ok(Stmt::Loop(Box::new(Loop { var, count, kind, carried, folds, body })))
    }

    fn while_(&mut self, results: Vec<Placed<Value>>) -> Result<Stmt> {
        let start = results.first().map_or(self.at, |r| r.1);
        let with = self.with()?;
        self.count_results(start, results.len(), with.len())?;
        self.brace("{")?;
        let before = self.body()?;
        self.want("}")?;
        if !self.keyword("if") {
            return self.wanted("`if` and the condition");
        }
        let condition = self.used()?;
        self.brace("{")?;
        let body = self.body()?;
        let carried = self.carried(&with, &results)?;
        self.brace("}")?;
        Ok(Stmt::While(Box::new(While { carried, before, condition, body })))
    }

    fn switch(&mut self, results: Vec<Placed<Value>>) -> Result<Stmt> {
        let index = self.used()?;
        self.brace("{")?;
        let mut cases: Vec<(Vec<Stmt>, Vec<Value>)> = Vec::new();
        while self.keyword("case") {
            let at = self.here();
            if self.unsigned("the number of the case")? as usize != cases.len() {
                return self
                    .at_place(at, error!(Parse, "expected `case {}`: cases are numbered in order", cases.len()));
            }
            self.want(":")?;
            self.end_of_line()?;
            let body = self.body()?;
            let at = self.here();
            let ends = self.gives()?;
            if ends.len() != results.len() {
                let e = error!(Parse, "a case gives {} values where {} are wanted", ends.len(), results.len());
                return self.at_place(at, e);
            }
            for (end, result) in ends.iter().zip(&results) {
                let ty = self.type_of((*end, at))?;
                self.define(*result, ty)?;
            }
            cases.push((body, ends));
        }
        if cases.is_empty() {
            return self.wanted("`case 0:`");
        }
        self.brace("}")?;
        let results = results.into_iter().map(|(v, _)| v).collect();
        Ok(Stmt::Switch(Box::new(Switch { index, cases, results })))
    }

    fn run(&mut self, results: Vec<Placed<Value>>) -> Result<Stmt> {
        let at = results.first().map_or(self.here(), |r| r.1);
        let name = self.name()?;
        self.want("(")?;
        let inputs = if self.peek() == Some(')') { Vec::new() } else { self.list(Self::used)? };
        self.want(")")?;
        let Some(k) = self.module.kernels.iter().position(|k| k.name == name) else {
            return self.at_place(at, error!(Parse, "there is no kernel `{}`", short(&name)));
        };
        let kernel = &self.module.kernels[k];
        let outputs: Vec<Value> = results.iter().map(|r| r.0).collect();
        if kernel.inputs != inputs || kernel.outputs != outputs {
            let e = error!(Parse, "`{}` is run with other values than it takes and gives", short(&name));
            return self.at_place(at, e);
        }
        self.end_of_line()?;
        Ok(Stmt::Kernel(k as u32))
    }

    fn call(&mut self) -> Result<Stmt> {
        let (entry, at) = self.numbered('c', "a call as `c0`")?;
        let name = self.name()?;
        if self.module.calls.get(entry as usize) != Some(&name) {
            return self.at_place(at, error!(Parse, "there is no call c{entry} of the name `{}`", short(&name)));
        }
        self.want("(")?;
        let mut buffers = Vec::new();
        if self.peek() != Some(')') {
            buffers = self.list(|p| Ok((p.buffer()?, p.index()?)))?;
        }
        self.want(")")?;
        self.end_of_line()?;
        Ok(Stmt::Call(Box::new(Call { entry, buffers, regions: Vec::new() })))
    }
}

/// The part of a module that its text carries: the same code without meanings, and without the types of values that nothing defines.
pub fn written(m: &Module) -> Module {
    fn body(stmts: &[Stmt], define: &mut dyn FnMut(Value)) {
        for s in stmts {
            match s {
                Stmt::Let(v, _) => define(*v),
                Stmt::Loop(l) => {
                    define(l.var);
                    l.carried.iter().for_each(|c| [c.param, c.result].into_iter().for_each(&mut *define));
                    l.folds.iter().for_each(|f| define(f.result));
                    body(&l.body, define);
                }
                Stmt::While(w) => {
                    w.carried.iter().for_each(|c| [c.param, c.result].into_iter().for_each(&mut *define));
                    body(&w.before, define);
                    body(&w.body, define);
                }
                Stmt::Switch(s) => {
                    s.results.iter().for_each(|r| define(*r));
                    s.cases.iter().for_each(|(b, _)| body(b, define));
                }
                Stmt::Store { .. } | Stmt::Kernel(_) | Stmt::Call(_) => {}
                Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => {}
            }
        }
    }
    let mut defined = vec![false; m.types.len()];
    let mut define = |v: Value| defined[v.index()] = true;
    m.pieces.iter().chain([&m.main]).for_each(|b| body(b, &mut define));
    for k in &m.kernels {
        k.inputs.iter().for_each(|v| define(*v));
        body(&k.body, &mut define);
    }
    for f in &m.functions {
        f.params.iter().for_each(|v| define(*v));
        body(&f.body, &mut define);
    }
    let mut m = strip(m.clone());
    m.types.truncate(defined.iter().rposition(|d| *d).map_or(0, |last| last + 1));
    m.types.iter_mut().zip(&defined).filter(|(_, d)| !**d).for_each(|(t, _)| *t = Ty::Bool);
    m
}

#[cfg(test)]
mod tests;
