//! The meaning of the vector language: a plain evaluator that tests hold the vectorizer against, without any machine code.

use gradus_core::scalar::evaluate as scalar;
use smallvec::SmallVec;

use super::{Access, Code, Expr, Loop, Memory, Spread, Stmt};
use crate::error::{Result, error};
use crate::ir::random::alone;
use crate::ir::{Index, Int, Kernel, LANES, Module, Ty, Value};

/// The lanes of a value; one if it is a scalar.
type Lanes = SmallVec<[u64; 1]>;

struct Machine<'a> {
    code: &'a Code,
    buffers: &'a mut [Vec<u8>],
    sizes: &'a [i64],
    /// The arrays of the kernel's own, and whether their elements were written.
    locals: Vec<Vec<Option<u64>>>,
    values: Vec<Lanes>,
}

/// Runs a kernel in the memory of a module, with the bits of its inputs and a share of its iterations. Gives the bits of its outputs.
pub fn evaluate(code: &Code, memory: &mut crate::ir::Memory, inputs: &[u64], share: (i64, i64)) -> Result<Vec<u64>> {
    let locals = code.locals.iter().map(|_| vec![None; LANES]).collect();
    let values = vec![Lanes::new(); code.types.len()];
    let mut m = Machine { code, buffers: &mut memory.buffers, sizes: &memory.sizes, locals, values };
    for (v, bits) in code.inputs.iter().zip(inputs) {
        m.values[v.index()] = Lanes::from_slice(&[*bits]);
    }
    if let Some((lo, hi)) = code.range {
        m.values[lo.index()] = Lanes::from_slice(&[share.0 as u64]);
        m.values[hi.index()] = Lanes::from_slice(&[share.1 as u64]);
    }
    m.block(&code.body)?;
    code.outputs.iter().map(|v| m.one(*v)).collect()
}

/// The bits of an element as many bytes as it has.
fn bits(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

impl Machine<'_> {
    /// A lane of a value; a scalar is the same in all of them.
    fn lane(&self, v: Value, lane: usize) -> Result<u64> {
        let lanes = &self.values[v.index()];
        let at = if self.code.shape(v).is_vector() { lane } else { 0 };
        lanes.get(at).copied().ok_or_else(|| error!(Verify, "lane {lane} of {v} is used where it is not there"))
    }

    fn one(&self, v: Value) -> Result<u64> {
        match self.code.shape(v).is_vector() {
            true => Err(error!(Verify, "{v} is a vector where a scalar is wanted")),
            false => self.lane(v, 0),
        }
    }

    fn int(&self, i: Int) -> Result<i64> {
        match i {
            Int::Const(n) => Ok(n),
            Int::Value(v) => self.one(v).map(|bits| bits as i64),
        }
    }

    fn place(&self, at: &Index) -> Result<i64> {
        at.terms.iter().try_fold(at.offset, |sum, (v, stride)| Ok(sum + self.one(*v)? as i64 * self.int(*stride)?))
    }

    /// The elements that an access touches, by lane.
    fn elements(&self, access: &Access) -> Result<Vec<i64>> {
        let first = self.place(&access.at)?;
        let Some(l) = &access.lanes else { return Ok(vec![first]) };
        let lanes = usize::from(l.shape.lanes);
        let active = match l.active {
            None => lanes,
            Some(n) => usize::try_from(self.int(n)?).map_err(|_| error!(Verify, "less than no lanes are active"))?,
        };
        if active > lanes {
            return Err(error!(Verify, "{active} of {lanes} lanes are active"));
        }
        (0..active)
            .map(|lane| {
                Ok(match l.spread {
                    Spread::Strided(by) => first + lane as i64 * self.int(by)?,
                    Spread::Scattered(by) => first + self.lane(by, lane)? as i64,
                })
            })
            .collect()
    }

    fn load(&self, access: &Access, ty: Ty) -> Result<Lanes> {
        let mut out = Lanes::new();
        for at in self.elements(access)? {
            out.push(match access.memory {
                Memory::Buffer(b) => {
                    let bytes = usize::try_from(at)
                        .ok()
                        .and_then(|i| self.buffers[b.index()].get(i * ty.size()..(i + 1) * ty.size()));
                    bits(bytes.ok_or_else(|| error!(Index, "element {at} of {b} is read"))?)
                }
                Memory::Local(n) => {
                    let element =
                        usize::try_from(at).ok().and_then(|i| self.locals[n as usize].get(i).copied().flatten());
                    element.ok_or_else(|| error!(Index, "element {at} of local{n} is read"))?
                }
            });
        }
        // What is loaded to lanes that are not active is any number.
        let lanes = access.lanes.as_ref().map_or(1, |l| usize::from(l.shape.lanes));
        let any = if ty == Ty::Bool { 1 } else { 0x5555_5555_5555_5555 >> (64 - 8 * ty.size()) };
        out.resize(lanes, any);
        Ok(out)
    }

    fn store(&mut self, access: &Access, v: Value) -> Result<()> {
        let size = self.code.ty(v).size();
        for (lane, at) in self.elements(access)?.into_iter().enumerate() {
            let bits = self.lane(v, lane)?;
            let there = match (access.memory, usize::try_from(at)) {
                (Memory::Buffer(b), Ok(i)) => {
                    let place = self.buffers[b.index()].get_mut(i * size..(i + 1) * size);
                    place.map(|p| p.copy_from_slice(&bits.to_le_bytes()[..size])).is_some()
                }
                (Memory::Local(n), Ok(i)) => self.locals[n as usize].get_mut(i).map(|p| *p = Some(bits)).is_some(),
                _ => false,
            };
            if !there {
                return Err(error!(Index, "element {at} is written by {access}"));
            }
        }
        Ok(())
    }

    fn expression(&self, v: Value, e: &Expr) -> Result<Lanes> {
        let (ty, lanes) = (self.code.ty(v), usize::from(self.code.shape(v).lanes));
        let cut = |x: u64| x & (u64::MAX >> (64 - 8 * ty.size()));
        match e {
            Expr::Const(bits) => Ok(Lanes::from_slice(&[*bits])),
            Expr::Size(i) => Ok(Lanes::from_slice(&[self.sizes[*i as usize] as u64])),
            Expr::Load(access) => self.load(access, ty),
            Expr::Ramp(from, by) => Ok((0..lanes as i64).map(|l| cut((from + l * by) as u64)).collect()),
            Expr::Active(n) => {
                let n = self.int(*n)?;
                Ok((0..lanes as i64).map(|l| u64::from(l < n)).collect())
            }
            Expr::Half(of, upper) => {
                let from = if *upper { lanes } else { 0 };
                (from..from + lanes).map(|l| self.lane(*of, l)).collect()
            }
            Expr::First(of) => Ok(Lanes::from_slice(&[self.lane(*of, 0)?])),
            Expr::Op(op, args) => {
                let types: SmallVec<[Ty; 3]> = args.iter().map(|a| self.code.ty(*a)).collect();
                (0..lanes)
                    .map(|l| {
                        let args = args.iter().map(|a| self.lane(*a, l)).collect::<Result<SmallVec<[u64; 3]>>>()?;
                        Ok(scalar(*op, &types, &args))
                    })
                    .collect()
            }
        }
    }

    fn block(&mut self, body: &[Stmt]) -> Result<()> {
        body.iter().try_for_each(|s| match s {
            Stmt::Let(v, e) => {
                self.values[v.index()] = self.expression(*v, e)?;
                Ok(())
            }
            Stmt::Store(access, v) => self.store(access, *v),
            Stmt::Loop(l) => self.loop_(l),
            // Main bodies are the same in both languages, and that of kernels runs them.
            Stmt::Main(_) => Err(error!(Verify, "a kernel has a step of a main body")),
        })
    }

    /// Values under other names, all at once; a scalar becomes a vector where its new name is one.
    fn assign(&mut self, pairs: impl Iterator<Item = (Value, Value)>) -> Result<()> {
        let all = pairs.map(|(from, to)| {
            let lanes = usize::from(self.code.shape(to).lanes);
            Ok(((0..lanes).map(|l| self.lane(from, l)).collect::<Result<Lanes>>()?, to))
        });
        let all = all.collect::<Result<Vec<_>>>()?;
        all.into_iter().for_each(|(lanes, to)| self.values[to.index()] = lanes);
        Ok(())
    }

    fn loop_(&mut self, l: &Loop) -> Result<()> {
        let (mut at, to) = (self.int(l.from)?, self.int(l.to)?);
        self.assign(l.carried.iter().map(|c| (c.init, c.param)))?;
        while at < to {
            self.values[l.var.index()] = Lanes::from_slice(&[at as u64]);
            self.block(&l.body)?;
            self.assign(l.carried.iter().map(|c| (c.next, c.param)))?;
            at += l.step;
        }
        self.assign(l.carried.iter().map(|c| (c.param, c.result)))?;
        if let Some(left) = l.left {
            self.values[left.index()] = Lanes::from_slice(&[at as u64]);
        }
        Ok(())
    }
}

/// Every kernel that a main body runs by itself, as `code` has it, against the kernel language. Gives how many there were.
pub fn compare(module: &Module, memory: &crate::ir::Memory, code: impl Fn(&Kernel) -> Code) -> Result<usize> {
    let kernels = alone(module, memory)?;
    for k in &kernels {
        let code = code(k.kernel);
        let (mut have, mut outputs) = (k.before.clone(), Vec::new());
        for share in &k.shares {
            outputs = evaluate(&code, &mut have, &k.inputs, *share)
                .map_err(|e| error!(Value, "{}: {e}\n{}{code}", k.kernel.name, k.text(module)))?;
        }
        if let Some(what) = k.difference(module, &have, &outputs) {
            return Err(error!(Value, "{}: {what}\n{}{code}", k.kernel.name, k.text(module)));
        }
    }
    Ok(kernels.len())
}
