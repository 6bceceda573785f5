//! What main bodies and kernels share: values, memory, plain statements and serial loops.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegionData, BlockArg, ExtFuncData, ExternalName, FuncRef, InstBuilder, MemFlagsData, SigRef,
    Signature, StackSlotData, StackSlotKind, UserExternalName, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::packed_option::PackedOption;
use cranelift_frontend::FunctionBuilder;
use cranelift_module::FuncId;
use rustc_hash::FxHashSet;

use super::{Simd, machine_type, scalar};
use crate::error::{Result, error, fail};
use crate::ir::{Buffer, Carried, Expr, Function, Index, Int, Loop, Math, Module, Special, Stmt, Ty, Value};
use crate::runtime::special;

/// Where the context of a run has its fields.
pub(super) mod field {
    pub const BUFFERS: i32 = 0;
    pub const SIZES: i32 = 8;
    pub const CALL: i32 = 16;
    pub const PARALLEL: i32 = 24;
}

/// The values of the module in the function that is being made. One table serves all functions: a verified module reads
/// nothing in a function that was not defined in it.
pub(super) struct Values(Vec<PackedOption<ir::Value>>);

impl Values {
    pub fn new(n: usize) -> Values {
        Values(vec![None.into(); n])
    }
}

/// What a function is part of, besides its own code.
pub(super) struct Shared<'a> {
    pub module: &'a Module,
    pub simd: Simd,
    pub convention: CallConv,
    pub kernels: &'a [FuncId],
    /// The elementary functions of the module.
    pub functions: &'a [FuncId],
    /// The pieces of the main body.
    pub pieces: &'a [FuncId],
    /// The buffers that trade places.
    pub swapped: FxHashSet<Buffer>,
}

/// The table of buffers is no array: stores to arrays do not change it, which saves loading it again.
fn table_flags(f: &mut ir::Function) -> MemFlagsData {
    let region = f.dfg.alias_regions.insert(AliasRegionData { user_id: 0, description: "buffers".into() });
    MemFlagsData::trusted().with_alias_region(Some(region))
}

/// One function on its way into Cranelift.
pub(super) struct Emitter<'a, 'f> {
    pub shared: &'a Shared<'a>,
    pub b: FunctionBuilder<'f>,
    pub values: &'f mut Values,
    /// How the addresses of buffers are read.
    pub of_table: MemFlagsData,
    /// The context of the run.
    pub context: ir::Value,
    /// Addresses of buffers that are read once: in kernels all of them.
    pub pointers: Vec<(Buffer, ir::Value)>,
    /// Room for what is passed to calls, with its size.
    pub room: Option<(ir::StackSlot, u32)>,
    /// How many loops are around.
    pub loops: usize,
    /// The pieces that loops run.
    pub repeated: Vec<u32>,
    special_signature: Option<SigRef>,
}

impl<'a, 'f> Emitter<'a, 'f> {
    /// Begins a function: its entry block is open, its parameters follow.
    pub fn new(shared: &'a Shared<'a>, values: &'f mut Values, mut b: FunctionBuilder<'f>) -> (Self, Vec<ir::Value>) {
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        b.seal_block(entry);
        let params = b.block_params(entry).to_vec();
        let emitter = Emitter {
            shared,
            values,
            of_table: table_flags(b.func),
            context: params[0],
            pointers: Vec::new(),
            room: None,
            loops: 0,
            repeated: Vec::new(),
            special_signature: None,
            b,
        };
        (emitter, params)
    }

    pub fn module(&self) -> &'a Module {
        self.shared.module
    }

    pub fn ty(&self, v: Value) -> Ty {
        self.module().ty(v)
    }

    /// A value of the module.
    pub fn get(&self, v: Value) -> ir::Value {
        // invariant: the module is verified, so a value is defined before it is used.
        self.values.0[v.index()].unwrap()
    }

    /// Defines a value of the module.
    pub fn define(&mut self, v: Value, to: ir::Value) {
        self.values.0[v.index()] = to.into();
    }

    /// A constant by its bits.
    pub fn constant(&mut self, ty: Ty, bits: u64) -> ir::Value {
        match ty {
            Ty::F32 => self.b.ins().f32const(f32::from_bits(bits as u32)),
            Ty::F64 => self.b.ins().f64const(f64::from_bits(bits)),
            ty => self.b.ins().iconst(machine_type(ty), (bits & (u64::MAX >> (64 - ty.size() * 8))) as i64),
        }
    }

    pub fn i64(&mut self, v: i64) -> ir::Value {
        self.b.ins().iconst(types::I64, v)
    }

    pub fn int(&mut self, i: Int) -> ir::Value {
        match i {
            Int::Const(v) => self.i64(v),
            Int::Value(v) => self.get(v),
        }
    }

    /// The address of a buffer. The main body reads it anew each time: buffers may have been swapped.
    pub fn pointer(&mut self, b: Buffer) -> ir::Value {
        if let Some((_, p)) = self.pointers.iter().find(|p| p.0 == b) {
            return *p;
        }
        let table = self.table();
        self.b.ins().load(types::I64, self.of_table, table, b.0 as i32 * 8)
    }

    /// Where the addresses of the buffers are.
    pub fn table(&mut self) -> ir::Value {
        let flags = MemFlagsData::trusted().with_readonly();
        self.b.ins().load(types::I64, flags, self.context, field::BUFFERS)
    }

    /// The address of an element, with what is left to add in the instruction.
    pub fn address(&mut self, b: Buffer, at: &Index) -> (ir::Value, i32) {
        let size = self.module().buffers[b.index()].ty.size() as i64;
        let mut address = self.pointer(b);
        // Outer counters first: their sum does not change in the inner loops.
        let mut terms = at.terms.clone();
        terms.sort_by_key(|(v, _)| v.0);
        for (v, stride) in terms {
            let v = self.get(v);
            let term = match stride {
                Int::Const(s) => {
                    let by = s.wrapping_mul(size);
                    if by == 1 { v } else { self.b.ins().imul_imm_s(v, by) }
                }
                Int::Value(s) => {
                    let s = self.get(s);
                    let term = self.b.ins().imul(v, s);
                    self.b.ins().imul_imm_s(term, size)
                }
            };
            address = self.b.ins().iadd(address, term);
        }
        match i32::try_from(at.offset.wrapping_mul(size)) {
            Ok(offset) => (address, offset),
            Err(_) => (self.b.ins().iadd_imm_s(address, at.offset.wrapping_mul(size)), 0),
        }
    }

    pub fn expression(&mut self, v: Value, e: &Expr) -> Result<ir::Value> {
        let ty = self.ty(v);
        Ok(match e {
            Expr::Const(bits) => self.constant(ty, *bits),
            Expr::Size(i) => {
                let flags = MemFlagsData::trusted().with_readonly();
                let table = self.b.ins().load(types::I64, flags, self.context, field::SIZES);
                self.b.ins().load(types::I64, flags, table, *i as i32 * 8)
            }
            Expr::Load(b, at) => {
                let (address, offset) = self.address(*b, at);
                self.b.ins().load(machine_type(ty), MemFlagsData::trusted(), address, offset)
            }
            Expr::Op(op, args) => {
                let types: smallvec::SmallVec<[Ty; 3]> = args.iter().map(|a| self.ty(*a)).collect();
                let args: smallvec::SmallVec<[ir::Value; 3]> = args.iter().map(|a| self.get(*a)).collect();
                scalar::operation(self, *op, &types, &args)?
            }
        })
    }

    pub fn statement(&mut self, s: &'a Stmt) -> Result<()> {
        match s {
            Stmt::Let(v, e) => {
                let value = self.expression(*v, e)?;
                self.define(*v, value);
                Ok(())
            }
            Stmt::Store { buffer, at, value } => {
                let value = self.get(*value);
                let (address, offset) = self.address(*buffer, at);
                self.b.ins().store(MemFlagsData::trusted(), value, address, offset);
                Ok(())
            }
            Stmt::Loop(l) => {
                let count = self.int(l.count);
                let zero = self.i64(0);
                self.serial(l, zero, count)
            }
            Stmt::While(w) => self.while_(w),
            Stmt::Switch(s) => self.switch(s),
            Stmt::Kernel(k) => self.run(*k),
            Stmt::Call(c) => self.call(c),
            Stmt::Swap(x, y) => {
                self.swap(*x, *y);
                Ok(())
            }
            Stmt::Piece(p) => {
                self.run_piece(*p);
                Ok(())
            }
            Stmt::Note(_) => Ok(()),
        }
    }

    pub fn gets(&mut self, values: impl Iterator<Item = Value>) -> Vec<BlockArg> {
        values.map(|v| self.get(v).into()).collect()
    }

    /// A block with a parameter for each value, in their types.
    pub fn block_for(&mut self, types: impl Iterator<Item = Ty>) -> ir::Block {
        let block = self.b.create_block();
        for ty in types {
            self.b.append_block_param(block, machine_type(ty));
        }
        block
    }

    pub fn carried_types(&self, carried: &[Carried]) -> Vec<Ty> {
        carried.iter().map(|c| self.ty(c.init)).collect()
    }

    /// A serial loop from `lo` to `hi`. The test stands at the end: one branch each time around.
    pub fn serial(&mut self, l: &'a Loop, lo: ir::Value, hi: ir::Value) -> Result<()> {
        let types = self.carried_types(&l.carried);
        let inits = self.gets(l.carried.iter().map(|c| c.init));
        let (head, exit) = (self.b.create_block(), self.block_for(types.iter().copied()));
        let var = self.b.append_block_param(head, types::I64);
        types.iter().for_each(|ty| {
            self.b.append_block_param(head, machine_type(*ty));
        });
        let some = self.b.ins().icmp(IntCC::SignedLessThan, lo, hi);
        let first: Vec<BlockArg> = std::iter::once(lo.into()).chain(inits.iter().copied()).collect();
        self.b.ins().brif(some, head, &first, exit, &inits);
        self.b.switch_to_block(head);
        self.define(l.var, var);
        for (k, c) in l.carried.iter().enumerate() {
            let param = self.b.block_params(head)[k + 1];
            self.define(c.param, param);
        }
        self.loops += 1;
        self.block(&l.body)?;
        self.loops -= 1;
        let nexts = self.gets(l.carried.iter().map(|c| c.next));
        let after = self.b.ins().iadd_imm_s(var, 1);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, after, hi);
        let again: Vec<BlockArg> = std::iter::once(after.into()).chain(nexts.iter().copied()).collect();
        self.b.ins().brif(more, head, &again, exit, &nexts);
        self.b.seal_block(head);
        self.b.seal_block(exit);
        self.b.switch_to_block(exit);
        for (k, c) in l.carried.iter().enumerate() {
            let result = self.b.block_params(exit)[k];
            self.define(c.result, result);
        }
        Ok(())
    }

    /// Stack memory of its own.
    pub fn stack(&mut self, bytes: u32) -> ir::StackSlot {
        self.b.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes.max(8), 4))
    }

    /// Stack memory that calls share, one after the other.
    pub fn room(&mut self, bytes: u32) -> ir::Value {
        let slot = match self.room {
            Some((slot, size)) if size >= bytes => slot,
            Some((slot, _)) => {
                self.b.func.sized_stack_slots[slot].size = bytes;
                self.room = Some((slot, bytes));
                slot
            }
            None => {
                let slot = self.stack(bytes);
                self.room = Some((slot, bytes));
                slot
            }
        };
        self.b.ins().stack_addr(types::I64, slot, 0)
    }

    /// A signature of machine words.
    pub fn signature(&mut self, params: usize, returns: bool) -> SigRef {
        let signature = words(self.shared.convention, params, returns);
        self.b.import_signature(signature)
    }

    /// Another function of the module. Its code may lie far away.
    pub fn function(&mut self, id: FuncId, signature: SigRef) -> FuncRef {
        let name = UserExternalName { namespace: 0, index: id.as_u32() };
        let name = ExternalName::user(self.b.func.declare_imported_user_function(name));
        self.b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false })
    }

    /// Calls an elementary function of the module.
    pub fn elementary(&mut self, of: Math, ty: Ty, args: &[ir::Value]) -> Result<ir::Value> {
        let Some(number) = self.module().function(of, ty) else {
            fail!(Rule, "{} is not expanded", crate::ir::Op::Math(of));
        };
        let signature = elementary(self.shared.convention, ty, args.len());
        let signature = self.b.import_signature(signature);
        let function = self.function(self.shared.functions[number], signature);
        let args: smallvec::SmallVec<[ir::Value; 3]> = [self.context].into_iter().chain(args.iter().copied()).collect();
        let call = self.b.ins().call(function, &args);
        Ok(self.b.inst_results(call)[0])
    }

    /// The body of an elementary function.
    pub fn define_elementary(&mut self, f: &'a Function, params: &[ir::Value]) -> Result<()> {
        f.params.iter().zip(&params[1..]).for_each(|(v, p)| self.define(*v, *p));
        f.body.iter().try_for_each(|s| self.statement(s))?;
        let result = self.get(f.result);
        self.b.ins().return_(&[result]);
        Ok(())
    }

    /// Calls compiled Rust for one number: `arrays` are the addresses of result and operands, `n` elements each.
    pub fn call_special(&mut self, s: Special, ty: Ty, arrays: [ir::Value; 3], n: i64) {
        let (field, code) = special::entry(s, ty);
        let signature = match self.special_signature {
            Some(s) => s,
            None => {
                let signature = self.signature(5, false);
                *self.special_signature.insert(signature)
            }
        };
        let flags = MemFlagsData::trusted().with_readonly();
        let function = self.b.ins().load(types::I64, flags, self.context, field);
        let (n, code) = (self.i64(n), self.i64(code as i64));
        self.b.ins().call_indirect(signature, function, &[arrays[0], arrays[1], arrays[2], n, code]);
    }
}

/// A signature of machine words in a convention.
pub(super) fn words(convention: CallConv, params: usize, returns: bool) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params.extend((0..params).map(|_| AbiParam::new(types::I64)));
    if returns {
        signature.returns.push(AbiParam::new(types::I64));
    }
    signature
}

/// The signature of an elementary function: the context, then its operands.
pub(super) fn elementary(convention: CallConv, ty: Ty, params: usize) -> Signature {
    let mut signature = words(convention, 1, false);
    signature.params.extend((0..params).map(|_| AbiParam::new(machine_type(ty))));
    signature.returns.push(AbiParam::new(machine_type(ty)));
    signature
}

/// What went wrong in Cranelift.
pub(super) fn failed(name: &str, e: impl std::fmt::Display) -> gradus_core::Error {
    error!(Rule, "machine code of {name}: {e}")
}
