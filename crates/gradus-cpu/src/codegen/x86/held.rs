//! What is read at indices that were held in range: nearly all of them were in range before, and then they are in memory as they are needed. Each is brought
//! from there into an address, which takes less than one instruction that gathers by a vector of them.

use rustc_hash::FxHashMap;

use super::encode::{Cond, Label};
use super::lir::{Inst, Mem, Reg, Ri, Size, Test, Unary};
use super::select::Select;
use crate::ir::{Int, Op, Ty, Value};
use crate::vector::{Access, Code, Expr, Spread, Stmt};

/// Reads of more registers in one function stay as they are: each of them is written twice.
const MOST: usize = 16;

/// A vector of indices, and what they were before they were held in range.
#[derive(Clone, Copy)]
pub(super) struct Before {
    /// As numbers of 64 bits.
    pub index: Value,
    /// As they were loaded: the same, or numbers of 32 bits.
    pub loaded: Value,
}

/// What indices were before, by what they are.
#[derive(Default)]
pub(super) struct Held(FxHashMap<Value, Before>);

impl Held {
    /// Those of a function that reads at few of them.
    pub fn of(code: &Code) -> Held {
        let mut places = Vec::new();
        scattered(&code.body, &mut places);
        let registers: usize = places.iter().map(|v| usize::from(code.shape(*v).registers)).sum();
        if places.is_empty() || registers > MOST {
            return Held::default();
        }
        let mut made = FxHashMap::default();
        definitions(code, &code.body, &mut made);
        Held(places.into_iter().filter_map(|v| Some((v, before(code, v, &made)?))).collect())
    }
}

/// The indices by which vectors are read.
fn scattered(body: &[Stmt], places: &mut Vec<Value>) {
    for s in body {
        match s {
            Stmt::Let(_, Expr::Load(Access { lanes: Some(l), .. })) if l.active.is_none() => {
                if let Spread::Scattered(v) = l.spread {
                    places.push(v);
                }
            }
            Stmt::Loop(l) => scattered(&l.body, places),
            _ => {}
        }
    }
}

/// How vectors of whole numbers are made.
fn definitions<'c>(code: &Code, body: &'c [Stmt], made: &mut FxHashMap<Value, &'c Expr>) {
    for s in body {
        match s {
            Stmt::Let(v, e) if code.shape(*v).is_vector() && matches!(code.ty(*v), Ty::I64 | Ty::I32) => {
                made.insert(*v, e);
            }
            Stmt::Loop(l) => definitions(code, &l.body, made),
            _ => {}
        }
    }
}

/// What an index was before it was held in range, counted from the end where it is negative, or neither.
fn before(code: &Code, place: Value, made: &FxHashMap<Value, &Expr>) -> Option<Before> {
    let mut v = place;
    loop {
        v = match made.get(&v)? {
            Expr::Op(Op::Min | Op::Max, args) => *args.iter().find(|a| code.shape(**a).is_vector())?,
            Expr::Op(Op::Select, args) => args[2],
            Expr::Op(Op::Convert(Ty::I64), args) if code.ty(args[0]) == Ty::I32 => {
                return is_loaded(made.get(&args[0])?).then_some(Before { index: v, loaded: args[0] });
            }
            e => return (is_loaded(e) && v != place).then_some(Before { index: v, loaded: v }),
        };
    }
}

/// Whether it is a run of elements.
fn is_loaded(e: &Expr) -> bool {
    let Expr::Load(Access { lanes: Some(l), .. }) = e else { return false };
    l.active.is_none() && l.spread == Spread::Strided(Int::Const(1))
}

/// Where the lanes of indices are in memory, if nothing was written since they were read.
pub(super) struct There {
    before: Before,
    at: Mem,
}

impl Select<'_> {
    /// Where indices are in memory that are perhaps the same as these.
    pub(super) fn indices_there(&mut self, by: Value) -> Option<There> {
        let before = *self.held.0.get(&by)?;
        let read = self.read.get(&before.loaded)?.clone();
        let same = self.code.shape(before.loaded) == self.code.shape(by);
        let ty = self.code.ty(before.loaded);
        let at = if same { self.address(read.memory, &read.at, ty)? } else { return None };
        Some(There { before, at })
    }

    /// A register of elements by the indices in memory, if all of them are what they are held to be; `otherwise` makes it in any case.
    pub(super) fn read_there(
        &mut self,
        there: &There,
        double: bool,
        (dst, from, index): (Reg, Mem, Reg),
        otherwise: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let size = self.code.ty(there.before.loaded).size();
        let (width, part) = (self.width(), self.part);
        let (mask, bits, len) = (self.mask_reg(8), self.general_reg(), self.len(8));
        let was = self.vector(there.before.index, part)?;
        self.compare(Op::Ne, Ty::I64, len, mask, index, was);
        self.emit(Inst::MaskTo { dst: bits, src: mask });
        let [same, done]: [Label; 2] = [self.label(), self.label()];
        self.emit(Inst::Branch(Test { cond: Cond::E, a: bits, b: Ri::Imm(0) }, same));
        otherwise(self)?;
        self.emit(Inst::Jump(done));
        self.emit(Inst::Label(same));
        let at = there.at.plus((part * width * size) as i32);
        let scale = if double { 3 } else { 2 };
        let places: Vec<Mem> = (0..width)
            .map(|lane| {
                let (at, place) = (at.plus((lane * size) as i32), self.general_reg());
                match size {
                    8 => self.emit(Inst::Load { size: Size::Quad, dst: place, from: at }),
                    _ => {
                        let low = self.general_reg();
                        self.emit(Inst::Load { size: Size::Double, dst: low, from: at });
                        self.emit(Inst::Unary { op: Unary::Signed32, dst: place, a: low });
                    }
                }
                Mem { index: Some((place, scale)), ..from }
            })
            .collect();
        let src = self.load_each(double, &places);
        self.emit(Inst::Copy { dst, src });
        self.emit(Inst::Label(done));
        Some(())
    }
}
