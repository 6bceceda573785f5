//! Operations that hold programs: calls, branches, loops, checkpoints, and calls of the host.

use std::sync::Arc;

use gradus_core::optimize::run_by;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::{Checkpoint, CustomLinear, Scan, Switch, While};
use gradus_core::primitives::effects::{Callback, Kind};
use gradus_core::{DType, Dim, Program, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, no_attributes};
use super::sizes::symbols_of;
use super::{Target, error, fail};
use crate::module::{Attribute, Attributes, Element, Type as TreeType, Value};

impl Emit<'_> {
    /// The rule of an operation that holds programs, if it is one.
    pub fn control(&mut self, op: &Op, operands: &[Value], results: &[Type]) -> Result<Option<Vec<Value>>> {
        if let Some(checkpoint) = op.downcast::<Checkpoint>() {
            return self.checkpoint(&checkpoint.program, operands).map(Some);
        }
        if let Some(custom) = op.downcast::<CustomLinear>() {
            // Its map is the transpose of a rule of the user's, which may be none.
            return self.call_program(&custom.forward()?, operands).map(Some);
        }
        if let Some(program) = run_by(op) {
            return self.call_program(&program, operands).map(Some);
        }
        if let Some(switch) = op.downcast::<Switch>() {
            return self.switch(switch, operands, results).map(Some);
        }
        if let Some(scan) = op.downcast::<Scan>() {
            return self.scan(scan, operands, results).map(Some);
        }
        if let Some(looped) = op.downcast::<While>() {
            return self.while_loop(looped, operands).map(Some);
        }
        if let Some(callback) = op.downcast::<Callback>() {
            return self.callback(op, callback, operands, results).map(Some);
        }
        Ok(None)
    }

    /// A call of the function of a program.
    pub fn call_program(&mut self, program: &Arc<Program>, operands: &[Value]) -> Result<Vec<Value>> {
        let name = self.shared.called(program)?;
        let mut all = Vec::new();
        for s in symbols_of(program) {
            let Some(value) = self.symbols.get(&s) else {
                fail!(Size, "nothing says what `{s}` is in a call of `{name}`")
            };
            all.push(*value);
        }
        for (value, ty) in operands.iter().zip(program.inputs()) {
            all.push(self.retyped(*value, ty)?);
        }
        self.call(&name, &all, &program.output_types())
    }

    /// What is computed again must not be merged with the first time: nobody looks past a barrier.
    fn checkpoint(&mut self, program: &Arc<Program>, operands: &[Value]) -> Result<Vec<Value>> {
        if operands.is_empty() {
            return self.call_program(program, operands);
        }
        let types: Vec<Type> = operands.iter().map(|v| self.ty(*v)).collect();
        let apart = self.operation("stablehlo.optimization_barrier", operands, no_attributes(), vec![], &types)?;
        self.call_program(program, &apart)
    }

    /// Branches capture what they need. An index out of range is the nearest branch here, and the last one there.
    fn switch(&mut self, switch: &Switch, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
        let Some((index, rest)) = operands.split_first() else { fail!(Internal, "a branch without an index") };
        let zero = self.integer(DType::I32, 0)?;
        let last = self.integer(DType::I32, switch.branches.len() as i64 - 1)?;
        let index = self.same("stablehlo.clamp", &[zero, *index, last])?;
        let mut regions = Vec::new();
        for branch in &switch.branches {
            regions.push(self.region(&[], |e, _| e.typed(branch, rest, results))?);
        }
        self.operation("stablehlo.case", &[index], no_attributes(), regions, results)
    }

    /// The outputs of a program, as the types that its place wants.
    fn typed(&mut self, program: &Program, inputs: &[Value], wanted: &[Type]) -> Result<Vec<Value>> {
        let outputs = self.program(program, inputs)?;
        outputs.into_iter().zip(wanted).map(|(v, t)| self.retyped(v, t)).collect()
    }

    fn while_loop(&mut self, looped: &While, operands: &[Value]) -> Result<Vec<Value>> {
        let (consts, carries) = operands.split_at(looped.consts.min(operands.len()));
        let mut types: Vec<Type> = carries.iter().map(|v| self.ty(*v)).collect();
        let count = types.len();
        let mut start = carries.to_vec();
        // A limit is part of what the loop does: it ends there.
        if looped.limit.is_some() {
            start.push(self.integer(DType::I64, 0)?);
            types.push(Type::scalar(DType::I64));
        }
        if start.is_empty() {
            fail!(Internal, "a loop that carries nothing");
        }
        let inputs = |args: &[Value]| -> Vec<Value> { consts.iter().chain(&args[..count]).copied().collect() };
        let condition = self.region(&types, |e, args| {
            let holds = e.program(&looped.condition, &inputs(args))?;
            let Some(holds) = holds.first().copied() else { fail!(Internal, "a condition without a result") };
            let Some(limit) = looped.limit else { return Ok(vec![holds]) };
            let most = e.integer(DType::I64, limit as i64)?;
            let before = e.compare("LT", args[count], most)?; // invariant: the counter is there
            Ok(vec![e.same("stablehlo.and", &[before, holds])?])
        })?;
        let body = self.region(&types, |e, args| {
            let mut next = e.typed(&looped.body, &inputs(args), &types)?;
            if looped.limit.is_some() {
                let one = e.integer(DType::I64, 1)?;
                next.push(e.same("stablehlo.add", &[args[count], one])?); // invariant: as above
            }
            Ok(next)
        })?;
        let mut made = self.operation("stablehlo.while", &start, no_attributes(), vec![condition, body], &types)?;
        made.truncate(count);
        Ok(made)
    }

    /// A loop with a counter: sequences are read and results written one place at a time.
    fn scan(&mut self, scan: &Scan, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
        let (consts, rest) = operands.split_at(scan.consts.min(operands.len()));
        let (carries, sequences) = rest.split_at(scan.carries.min(rest.len()));
        let stacks = &results[scan.carries.min(results.len())..];
        let mut start = vec![self.integer(DType::I32, 0)?];
        for (v, t) in carries.iter().zip(results) {
            start.push(self.retyped(*v, t)?);
        }
        for t in stacks {
            let zero = if t.dtype() == DType::Key { Scalar::U64(0) } else { Scalar::zero(t.dtype()) };
            start.push(self.splat(t, zero)?);
        }
        if scan.length.constant() == Some(0) {
            return Ok(start.split_off(1));
        }
        let types: Vec<Type> = start.iter().map(|v| self.ty(*v)).collect();
        let length = self.size(&scan.length)?;
        let condition = self.region(&types, |e, args| Ok(vec![e.compare("LT", args[0], length)?]))?; // invariant: the counter is first
        let body = self.region(&types, |e, args| {
            let (counter, state) = (args[0], &args[1..]); // invariant: as above
            let one = e.integer(DType::I32, 1)?;
            let at = if scan.reverse {
                let last = e.same("stablehlo.subtract", &[length, one])?;
                e.same("stablehlo.subtract", &[last, counter])?
            } else {
                counter
            };
            let mut inputs: Vec<Value> = consts.iter().chain(&state[..carries.len()]).copied().collect();
            for x in sequences {
                inputs.push(e.element(*x, at)?);
            }
            let made = e.program(&scan.body, &inputs)?;
            let mut next = vec![e.same("stablehlo.add", &[counter, one])?];
            for (value, ty) in made.iter().zip(results).take(carries.len()) {
                next.push(e.retyped(*value, ty)?);
            }
            for (value, stack) in made[carries.len()..].iter().zip(&state[carries.len()..]) {
                next.push(e.put(*stack, *value, at)?);
            }
            Ok(next)
        })?;
        let mut made = self.operation("stablehlo.while", &start, no_attributes(), vec![condition, body], &types)?;
        Ok(made.split_off(1))
    }

    /// The element of a sequence at a place.
    fn element(&mut self, x: Value, at: Value) -> Result<Value> {
        let shape = self.shape(x);
        let zero = self.integer(DType::I32, 0)?;
        let starts: Vec<Value> = (0..shape.rank()).map(|a| if a == 0 { at } else { zero }).collect();
        let piece = self.dynamic_slice(x, &starts, &shape.replaced(0, Dim::from(1usize)))?;
        self.reshape(piece, &shape.without(|a| a == 0))
    }

    /// A sequence with an element put at a place.
    fn put(&mut self, stack: Value, value: Value, at: Value) -> Result<Value> {
        let ty = self.ty(stack);
        let one: Shape = ty.shape().replaced(0, Dim::from(1usize));
        let piece = self.reshape(value, &one)?;
        let zero = self.integer(DType::I32, 0)?;
        let mut operands = vec![stack, piece];
        operands.extend((0..ty.rank()).map(|a| if a == 0 { at } else { zero }));
        self.op("stablehlo.dynamic_update_slice", &operands, no_attributes(), &ty)
    }

    /// A function of the host is called by its number, in this process and nowhere else.
    fn callback(&mut self, op: &Op, callback: &Callback, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
        if self.shared.options.target == Target::File {
            return Err(error!(MissingRule, "`{}`: a function of the host cannot leave the process", op.name())
                .at(callback.host().place())
                .help("leave it out of what is exported, or run the program here, on a backend of this process"));
        }
        let id = self.shared.callbacks.len();
        self.shared.callbacks.push(op.clone());
        let number = Attribute::Integer(id as i128, TreeType::Scalar(Element::I64));
        let more = attributes([
            ("call_target_name", Attribute::of_text("gradus_host")),
            ("api_version", Attribute::Integer(4, TreeType::Scalar(Element::I32))),
            ("backend_config", Attribute::Dictionary(Attributes::default().with("id", number))),
            ("has_side_effect", Attribute::Bool(callback.kind() != Kind::Pure)),
        ]);
        self.operation("stablehlo.custom_call", operands, more, vec![], results)
    }
}
