//! Operations that hold programs: calls, branches, loops, checkpoints, and calls of the host.

use std::sync::Arc;

use gradus_core::optimize::run_by;
use gradus_core::primitives::Op;
use gradus_core::primitives::control::{Checkpoint, CustomLinear, Scan, Switch, While};
use gradus_core::primitives::effects::{Callback, Kind};
use gradus_core::{DType, Dim, Program, Result, Scalar, Shape, Type};

use super::emit::{Emit, attributes, no_attributes};
use super::{Target, error, fail};
use crate::module::{Attribute, Attributes, Element, Type as TreeType, Value};

/// The type of what calls of the host wait for.
pub(super) fn turn_type() -> Type {
    Type::scalar(DType::I32)
}

impl Emit<'_> {
    /// What the next call of the host waits for. Calls come in the program's order: each takes a number from the one before it and gives one that nobody
    /// reads, through calls, branches and loops. XLA keeps no order among those that do not need each other.
    pub fn turn(&mut self) -> Result<Value> {
        let turn = match self.turn {
            Some(turn) => turn,
            None => self.integer(DType::I32, 0)?,
        };
        self.turn = Some(turn);
        Ok(turn)
    }

    /// Takes the turn from behind what an operation gave.
    fn took_turn(&mut self, waits: bool, mut made: Vec<Value>) -> Vec<Value> {
        if waits {
            self.turn = made.pop();
        }
        made
    }

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
        for s in self.shared.symbols_in(program) {
            let Some(value) = self.symbols.get(&s) else {
                fail!(Size, "nothing says what `{s}` is in a call of `{name}`")
            };
            all.push(*value);
        }
        for (value, ty) in operands.iter().zip(program.inputs()) {
            all.push(self.retyped(*value, ty)?);
        }
        let mut types = program.output_types();
        let waits = waits(&[program]);
        if waits {
            all.push(self.turn()?);
            types.push(turn_type());
        }
        let made = self.call(&name, &all, &types)?;
        Ok(self.took_turn(waits, made))
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
        let waits = waits(&switch.branches.iter().collect::<Vec<_>>());
        let before = if waits { Some(self.turn()?) } else { self.turn };
        let mut regions = Vec::new();
        for branch in &switch.branches {
            self.turn = before;
            regions.push(self.region(&[], |e, _| {
                let mut made = e.typed(branch, rest, results)?;
                made.extend(if waits { Some(e.turn()?) } else { None });
                Ok(made)
            })?);
        }
        let types: Vec<Type> = results.iter().cloned().chain(waits.then(turn_type)).collect();
        let made = self.operation("stablehlo.case", &[index], no_attributes(), regions, &types)?;
        Ok(self.took_turn(waits, made))
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
        let inputs = |args: &[Value]| -> Vec<Value> { consts.iter().chain(&args[..count]).copied().collect() };
        // A condition that calls the host is asked at the entry and at the end of each step, in the program's order: when, and how often, the condition of
        // a loop is run is XLA's choice.
        let asks = waits(&[&looped.condition]);
        if asks {
            start.push(self.holds(looped, &inputs(&start), start.get(count).copied())?);
            types.push(Type::scalar(DType::Bool));
        }
        let waits = asks || waits(&[&looped.body]);
        if waits {
            start.push(self.turn()?);
            types.push(turn_type());
        }
        if start.is_empty() {
            fail!(Internal, "a loop that carries nothing");
        }
        let counter = |args: &[Value]| looped.limit.and_then(|_| args.get(count).copied());
        let condition = self.region(&types, |e, args| match asks {
            // The turn is last, and what was asked is before it.
            true => Ok(args.iter().rev().skip(1).take(1).copied().collect()),
            false => Ok(vec![e.holds(looped, &inputs(args), counter(args))?]),
        })?;
        let body = self.region(&types, |e, args| {
            e.turn = if waits { args.last().copied() } else { e.turn };
            let mut next = e.typed(&looped.body, &inputs(args), &types)?;
            if let Some(counter) = counter(args) {
                let one = e.integer(DType::I64, 1)?;
                next.push(e.same("stablehlo.add", &[counter, one])?);
            }
            if asks {
                next.push(e.holds(looped, &inputs(&next), counter(&next))?);
            }
            next.extend(if waits { Some(e.turn()?) } else { None });
            Ok(next)
        })?;
        let made = self.operation("stablehlo.while", &start, no_attributes(), vec![condition, body], &types)?;
        let mut made = self.took_turn(waits, made);
        made.truncate(count);
        Ok(made)
    }

    /// Whether a loop goes on from these values, and from this step if it has a limit. A condition that calls the host is not asked at the limit.
    fn holds(&mut self, looped: &While, inputs: &[Value], counter: Option<Value>) -> Result<Value> {
        let asked = |e: &mut Self| -> Result<Value> {
            let holds = e.program(&looped.condition, inputs)?;
            holds.first().copied().ok_or_else(|| error!(Internal, "a condition without a result"))
        };
        let (Some(limit), Some(counter)) = (looped.limit, counter) else { return asked(self) };
        let most = self.integer(DType::I64, limit as i64)?;
        let before = self.compare("LT", counter, most)?;
        if !waits(&[&looped.condition]) {
            let holds = asked(self)?;
            return self.same("stablehlo.and", &[before, holds]);
        }
        let bool = Type::scalar(DType::Bool);
        let index = self.convert(before, DType::I32)?;
        let turn = Some(self.turn()?);
        let not = self.region(&[], |e, _| Ok(vec![e.splat(&bool, Scalar::Bool(false))?, e.turn()?]))?;
        self.turn = turn;
        let ask = self.region(&[], |e, _| Ok(vec![asked(e)?, e.turn()?]))?;
        let made = self.operation("stablehlo.case", &[index], no_attributes(), vec![not, ask], &[bool, turn_type()])?;
        let made = self.took_turn(true, made);
        made.first().copied().ok_or_else(|| error!(Internal, "a choice without a result"))
    }

    /// A loop with a counter: sequences are read and results written one place at a time.
    pub fn scan(&mut self, scan: &Scan, operands: &[Value], results: &[Type]) -> Result<Vec<Value>> {
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
        let waits = waits(&[&scan.body]);
        if waits {
            start.push(self.turn()?);
        }
        let types: Vec<Type> = start.iter().map(|v| self.ty(*v)).collect();
        let length = self.size(&scan.length)?;
        let condition = self.region(&types, |e, args| Ok(vec![e.compare("LT", args[0], length)?]))?; // invariant: the counter is first
        let body = self.region(&types, |e, args| {
            let (counter, state) = (args[0], &args[1..]); // invariant: as above
            e.turn = if waits { args.last().copied() } else { e.turn };
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
            next.extend(if waits { Some(e.turn()?) } else { None });
            Ok(next)
        })?;
        let made = self.operation("stablehlo.while", &start, no_attributes(), vec![condition, body], &types)?;
        Ok(self.took_turn(waits, made).split_off(1))
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
        let waits = !op.effects().is_pure();
        let turn = if waits { Some(self.turn()?) } else { None };
        let operands: Vec<Value> = operands.iter().copied().chain(turn).collect();
        let types: Vec<Type> = results.iter().cloned().chain(waits.then(turn_type)).collect();
        let made = self.operation("stablehlo.custom_call", &operands, more, vec![], &types)?;
        Ok(self.took_turn(waits, made))
    }
}

/// Whether one of these programs calls the host, so that who runs it waits for a turn.
fn waits(programs: &[&Arc<Program>]) -> bool {
    programs.iter().any(|p| !p.effects().is_pure())
}
