//! Takes out of a module what only those who check it read, before code is made.

use super::{Expr, Module, Stmt, meaning};

/// The same code without meanings.
pub fn strip(mut m: Module) -> Module {
    fn body(stmts: &mut Vec<Stmt>) {
        stmts.retain(|s| !matches!(s, Stmt::Note(_)));
        for s in stmts {
            match s {
                Stmt::Let(_, Expr::Load(_, at)) | Stmt::Store { at, .. } => at.means = meaning::Means::default(),
                Stmt::Loop(l) => body(&mut l.body),
                Stmt::While(w) => {
                    body(&mut w.before);
                    body(&mut w.body);
                }
                Stmt::Switch(s) => s.cases.iter_mut().for_each(|(stmts, _)| body(stmts)),
                Stmt::Call(c) => c.regions.clear(),
                _ => {}
            }
        }
    }
    body(&mut m.main);
    m.pieces.iter_mut().for_each(body);
    m.kernels.iter_mut().for_each(|k| body(&mut k.body));
    m.meanings = meaning::Meanings::default();
    m
}
