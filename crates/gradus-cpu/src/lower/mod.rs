//! From a program to the kernel language: which equations share loops, where arrays live, how control flow runs.

mod content;
mod control;
mod cumulative;
mod emit;
mod fusion;
mod indexed;
mod joined;
mod made;
mod nest;
mod picked;
mod recurrence;
mod running;
mod scalars;
mod scatter;
mod singles;
mod strips;
mod values;
mod views;
mod walk;

use gradus_core::optimize::{as_numbers, in_pairs, in_wide};
use gradus_core::program::{Atom, Constant, Equation, Program, ValueId};
use gradus_core::types::Scalar;
use gradus_core::{Array, Dim, Type};
use rustc_hash::{FxHashMap, FxHashSet};

use self::emit::{Emitter, form_of};
use self::fusion::{Class, FusionPlan, Unit};
use self::scalars::{Inner, places, unroll};
pub use self::values::SMALL;
use self::values::{NOWHERE, Repr, Root, SMALL_CONSTANT, Values, constant_index, dims_of, storage};
use self::views::{At, View, count, is_empty};
use crate::check::{self, Access, Apart};
use crate::cost::Work;
use crate::error::{Result, error};
use crate::ir::meaning::{Note, Tag, TagName};
use crate::ir::{Buffer, BufferInfo, Expr, Index, Int, Kernel, Module, Role, Stmt, Ty, Value};
use crate::runtime::LibraryCall;
use crate::size::{self, Size};

/// Arrays of at most so many elements are copied in one nest where several are: running one takes longer than what it does.
const COPIED_TOGETHER: usize = 256;

/// Lines of a plan that are shown with the error that it was refused.
const PLAN_SHOWN: usize = 40;

/// What a program returns: memory that the run made, or an array that was there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Output {
    /// The output buffer of this number.
    Made(usize),
    /// The input of this number.
    Input(usize),
    /// The constant of this number.
    Constant(usize),
}

/// A program in the kernel language, with what its run needs.
#[derive(Debug)]
pub struct Lowered {
    /// The code.
    pub module: Module,
    /// What the numbers in its table of sizes are.
    pub sizes: Vec<Dim>,
    /// The bytes of each buffer.
    pub bytes: Vec<Size>,
    /// Arrays that the code reads.
    pub constants: Vec<Array>,
    /// What its calls do.
    pub entries: Vec<LibraryCall<Size>>,
    /// For each kernel that threads may share: how many points it has, and about how many nanoseconds each takes.
    pub(crate) work: Vec<Work>,
    /// Its input types.
    pub inputs: Vec<Type>,
    /// Its output types and where they come from.
    pub outputs: Vec<(Type, Output)>,
    /// The types of the output buffers.
    pub made: Vec<Type>,
    /// What was copied, and why.
    pub copies: Vec<String>,
    /// The places that the code reaches.
    pub(crate) accesses: Vec<Access>,
    /// Indices that must lead to different places, where only the sizes tell.
    pub(crate) apart: Vec<Apart>,
    /// The outputs that it does not certainly write as a whole: they are cleared before it runs, and lend no memory.
    pub uncovered: Vec<Buffer>,
}

/// The values of the block that is being lowered.
#[derive(Default)]
struct Frame {
    /// How each value is there; views are looked up by their root.
    reprs: Vec<Option<Repr>>,
    /// Scalars of arrays that are also in memory.
    loaded: FxHashMap<Root, Vec<Value>>,
    /// Memory of arrays that are in scalars.
    spilled: FxHashMap<usize, View>,
    /// Where results should go.
    wanted: FxHashMap<usize, View>,
    /// Where results go that are only wanted with their axes in another order, if a nest makes them.
    laid: FxHashMap<usize, View>,
    /// Those of them that lie as picks go through them.
    picked: FxHashSet<usize>,
    /// Memory of what is put together of parts, of which some are made there.
    joined: FxHashMap<usize, View>,
    /// Results whose points' elements lie apart: how many at each point, and how many points.
    apart: FxHashMap<usize, (usize, Size)>,
    /// The equations that are done where a window is found, by their result.
    made: FxHashMap<usize, usize>,
    /// Memory of the block's constants.
    constants: FxHashMap<usize, Buffer>,
    /// How many units still read a root.
    uses: FxHashMap<Root, u32>,
    /// Buffers that this block may overwrite when nothing needs them any more.
    owned: FxHashSet<Buffer>,
    /// Those of them that a loop carries.
    carried: FxHashSet<Buffer>,
}

#[derive(Default)]
pub(crate) struct Lower {
    emitter: Emitter,
    bytes: Vec<Size>,
    constants: Vec<Array>,
    entries: Vec<LibraryCall<Size>>,
    work: Vec<Work>,
    copies: Vec<String>,
    /// Buffers whose elements have 16 bytes.
    wide: FxHashSet<Buffer>,
    /// Arrays of at most so many elements live in scalars.
    small: usize,
    /// Whether threads may share kernels.
    threads: bool,
    frame: Frame,
    /// How many blocks there are.
    blocks: u32,
    /// The loop whose step is being written; 0 is none.
    scope: u32,
}

/// Lowers a program; arrays that certainly have at most `small` elements (at least one) live in scalars. `threads`: whether threads may share what it does.
pub fn lower_with(p: &Program, small: usize, threads: bool) -> Result<Lowered> {
    let (mut lowered, sizes) = size::collect(|| lower_inside(p, (small, threads)))?;
    lowered.module.sizes = sizes.len() as u32;
    lowered.sizes = sizes;
    Ok(lowered)
}

/// Complex numbers are pairs of real ones inside; from outside they are what they are.
fn lower_inside(p: &Program, how: (usize, bool)) -> Result<Lowered> {
    let Some(pairs) = in_pairs(p)? else { return lower_wide(p, how) };
    let mut lowered = lower_wide(&pairs, how)?;
    let mut made = vec![None; lowered.made.len()];
    lowered.inputs = p.inputs().to_vec();
    for ((ty, output), &a) in lowered.outputs.iter_mut().zip(p.outputs()) {
        *ty = p.ty(a).clone();
        match *output {
            Output::Made(i) => made[i] = Some(ty.clone()),
            Output::Constant(i) if ty.dtype().is_complex() => {
                lowered.constants[i] = as_numbers(&lowered.constants[i])?;
            }
            _ => {}
        }
    }
    for (ty, own) in lowered.made.iter_mut().zip(made) {
        *ty = own.unwrap_or_else(|| ty.clone());
    }
    Ok(lowered)
}

/// Half floats are 16 bits between operations, and numbers of 32 bits in them.
fn lower_wide(p: &Program, how: (usize, bool)) -> Result<Lowered> {
    match in_wide(p)? {
        Some(wide) => lower_real(&wide, how),
        None => lower_real(p, how),
    }
}

fn lower_real(p: &Program, (small, threads): (usize, bool)) -> Result<Lowered> {
    let mut l = Lower { small: small.max(1), threads, ..Lower::default() };
    l.emitter.module.name = p.name().to_string();
    let mut inputs = Vec::new();
    for (i, ty) in p.inputs().iter().enumerate() {
        let buffer = l.buffer(ty, Role::Input(i as u32))?;
        let tag = l.given(buffer, TagName::Value(0, i as u32), ty.dtype().size());
        inputs.push(Repr::Memory(View::dense(buffer, &dims_of(ty)).of(tag)));
    }
    // Outputs that are inputs or constants are given back as they are; equal ones are made once.
    let mut outputs: Vec<(Type, Output)> = Vec::new();
    let mut made: Vec<(Atom, View)> = Vec::new();
    let mut constants: Vec<Array> = Vec::new();
    for &a in p.outputs() {
        let ty = p.ty(a).clone();
        let output = match (a.value(), p.constant(a)) {
            (Some(v), _) if v.index() < p.inputs().len() => Output::Input(v.index()),
            (None, Some(c)) if !ty.shape().is_symbolic() => {
                constants.push(c.to_array()?);
                Output::Constant(constants.len() - 1)
            }
            _ => match made.iter().position(|(b, _)| *b == a) {
                Some(i) => Output::Made(i),
                None => {
                    let buffer = l.buffer(&ty, Role::Output(made.len() as u32))?;
                    let tag = l.tag(TagName::Output(made.len() as u32));
                    l.emitter.module.meanings.made.push((buffer, tag, ty.dtype().size()));
                    made.push((a, View::dense(buffer, &dims_of(&ty)).of(tag)));
                    Output::Made(made.len() - 1)
                }
            },
        };
        outputs.push((ty, output));
    }
    l.constants = constants;
    l.emitter.begin();
    let wanted: Vec<(Atom, Option<View>)> = made.iter().map(|(a, v)| (*a, Some(v.clone()))).collect();
    l.block(p, inputs, &wanted, FxHashSet::default())?;
    let main = l.emitter.end();
    let main = l.in_strips(main);
    l.emitter.module.main = l.emitter.take_sizes();
    l.emitter.module.main.extend(main);
    let made = made.iter().map(|(a, _)| p.ty(*a).clone()).collect();
    l.emitter.module.calls = l.entries.iter().map(LibraryCall::name).collect();
    let module = &l.emitter.module;
    // A report wants the program, which its text has; of the plan the beginning is enough to see by.
    let refused = |e: crate::error::Error| {
        let text = module.to_string();
        let plan: Vec<&str> = text.lines().take(PLAN_SHOWN).collect();
        let more = if text.lines().nth(PLAN_SHOWN).is_some() { "\n..." } else { "" };
        e.note(format!("the plan of `{}` was refused\n{}{more}", p.name(), plan.join("\n")))
    };
    let accesses = check::accesses(module).map_err(refused)?;
    let apart = check::check_order(module).map_err(refused)?;
    let uncovered = check::uncovered(module, &l.bytes);
    Ok(Lowered {
        module: l.emitter.module,
        bytes: l.bytes,
        constants: l.constants,
        entries: l.entries,
        work: l.work,
        sizes: Vec::new(),
        inputs: p.inputs().to_vec(),
        outputs,
        made,
        copies: l.copies,
        accesses,
        apart,
        uncovered,
    })
}

impl Lower {
    // ---- memory ----

    fn buffer(&mut self, ty: &Type, role: Role) -> Result<Buffer> {
        let bytes = match ty.bytes() {
            Some(bytes) => Size::from(bytes),
            None if ty.shape().is_symbolic() => count(&dims_of(ty)) * ty.dtype().size(),
            None => return Err(error!(Size, "an array of type {ty} is too large")),
        };
        // Numbers of 16 bytes are only moved by the library; code counts their bytes.
        let storage = storage(ty.dtype());
        let buffer = self.new_buffer(storage.unwrap_or(Ty::U8), bytes, role);
        if storage.is_none() {
            self.wide.insert(buffer);
        }
        Ok(buffer)
    }

    // ---- meanings ----

    /// A new tag of the step that is being written.
    fn tag(&mut self, name: TagName) -> Tag {
        self.emitter.module.meanings.tag(self.scope, name, None)
    }

    /// The tag of a buffer that is there before the code runs.
    fn given(&mut self, buffer: Buffer, name: TagName, bytes: usize) -> Tag {
        let meanings = &mut self.emitter.module.meanings;
        let tag = meanings.tag(0, name, None);
        meanings.given.push((buffer, tag, bytes));
        tag
    }

    /// Tags for all values of a block, then for its constants.
    fn tags_for(&mut self, p: &Program) -> Tag {
        let (block, scope) = (self.blocks, self.scope);
        self.blocks += 1;
        let tags = &mut self.emitter.module.meanings;
        let first = Tag(tags.tags.len() as u32);
        for v in 0..p.value_count() {
            tags.tag(scope, TagName::Value(block, v as u32), None);
        }
        for e in p.equations() {
            for r in e.results() {
                tags.tags[first.0 as usize + r.index()].place = Some(e.place());
            }
        }
        for c in 0..p.constants().len() {
            tags.tag(0, TagName::Constant(block, c as u32), None);
        }
        first
    }

    /// Says that what is in a view is from now on also another value, or another part of one.
    fn becomes(&mut self, from: &View, to: &View, dtype: gradus_core::DType) {
        if from.mean == to.mean || is_empty(&from.dims) {
            return;
        }
        let element = (to.mean.base.clone(), to.mean.strides.clone());
        self.emitter.push(Stmt::Note(Box::new(Note::Becomes(from.region(dtype.size()), to.mean.tag, element))));
    }

    fn new_buffer(&mut self, ty: Ty, bytes: Size, role: Role) -> Buffer {
        self.emitter.module.buffers.push(BufferInfo { ty, role });
        self.bytes.push(bytes);
        Buffer(self.bytes.len() as u32 - 1)
    }

    fn new_scratch(&mut self, ty: Ty, elements: Size) -> Buffer {
        let b = self.new_buffer(ty, elements * ty.size(), Role::Scratch);
        self.frame.owned.insert(b);
        b
    }

    /// New memory for a value.
    fn scratch(&mut self, p: &Program, v: usize) -> Result<Buffer> {
        let b = self.buffer(p.ty(ValueId::new(v)), Role::Scratch)?;
        self.frame.owned.insert(b);
        Ok(b)
    }

    /// Where a result goes: its wanted place, or new memory.
    fn place_for(&mut self, p: &Program, values: &Values, v: usize) -> Result<View> {
        // What a loop carries in one place may be needed as it was, for another result or another carry.
        if let Some(view) = self.frame.wanted.get(&v)
            && !(self.frame.carried.contains(&view.buffer) && self.is_held(view.buffer))
        {
            return Ok(view.clone());
        }
        let buffer = self.scratch(p, v)?;
        Ok(View::dense(buffer, &values.dims[v]).of(values.tag(v)))
    }

    /// Whether something that lies in a buffer is still needed.
    fn is_held(&self, buffer: Buffer) -> bool {
        self.frame.reprs.iter().enumerate().any(|(i, repr)| {
            matches!(repr, Some(Repr::Memory(view)) if view.buffer == buffer)
                && self.frame.uses.get(&Root::Value(i as u32)).copied().unwrap_or(0) > 0
        })
    }

    /// A value in memory: stores its scalars if that is how it is there.
    fn in_memory(&mut self, p: &Program, values: &Values, v: usize) -> Result<View> {
        match self.frame.reprs[v].clone() {
            Some(Repr::Memory(view)) => Ok(view),
            Some(Repr::Elements(elements)) => {
                if let Some(view) = self.frame.spilled.get(&v) {
                    return Ok(view.clone());
                }
                let view = self.place_for(p, values, v)?;
                self.store_all(&view, &elements);
                self.frame.spilled.insert(v, view.clone());
                Ok(view)
            }
            None => Err(error!(Rule, "x{v} is used before it is made")),
        }
    }

    fn constant_memory(&mut self, p: &Program, values: &Values, c: usize) -> Result<Buffer> {
        if let Some(b) = self.frame.constants.get(&c) {
            return Ok(*b);
        }
        let constant = &p.constants()[c];
        let array = match constant.splat_value() {
            Some(value) => Constant::splat(Type::scalar(constant.ty().dtype()), value).to_array()?,
            None => constant.to_array()?,
        };
        let b = self.buffer(array.ty()?, Role::Constant(self.constants.len() as u32))?;
        self.constants.push(array);
        self.emitter.module.meanings.given.push((b, values.constant_tag(c), constant.ty().dtype().size()));
        self.frame.constants.insert(c, b);
        Ok(b)
    }

    /// The view of an atom in memory, bringing it there if need be.
    fn memory(&mut self, p: &Program, values: &Values, a: Atom) -> Result<View> {
        match values.origin(a).root {
            Root::Value(r) => drop(self.in_memory(p, values, r as usize)?),
            Root::Constant(c) if p.constants()[c as usize].splat_value().is_some() => {
                // One number is enough: along every axis the next element is the same one.
                let buffer = self.constant_memory(p, values, c as usize)?;
                let mut view = View::repeated(buffer, values.dims(a));
                view.mean.tag = values.constant_tag(c as usize);
                return Ok(view);
            }
            Root::Constant(c) => drop(self.constant_memory(p, values, c as usize)?),
        }
        self.placed(values, a).ok_or_else(|| error!(Rule, "an operand is not in memory"))
    }

    /// The view of an atom, if its root is in memory.
    fn placed(&self, values: &Values, a: Atom) -> Option<View> {
        let o = values.origin(a);
        if o.view.buffer != NOWHERE {
            return Some(o.view.clone());
        }
        let home = match o.root {
            Root::Value(r) => match self.frame.reprs[r as usize].as_ref()? {
                Repr::Memory(view) => view.clone(),
                Repr::Elements(_) => self.frame.spilled.get(&(r as usize))?.clone(),
            },
            Root::Constant(c) => {
                let buffer = *self.frame.constants.get(&(c as usize))?;
                View::dense(buffer, &[]).of(values.constant_tag(c as usize))
            }
        };
        let mut view = match o.root {
            Root::Value(r) if self.frame.apart.contains_key(&(r as usize)) => {
                let (inside, n) = self.frame.apart[&(r as usize)];
                o.view.apart(inside, n)?
            }
            // Whoever reads it shows all of it.
            Root::Value(r) if self.frame.picked.contains(&(r as usize)) => {
                View { strides: home.strides.clone(), ..o.view.clone() }
            }
            _ => o.view.clone(),
        };
        let offset = view.base.offset;
        view.buffer = home.buffer;
        view.base = home.base.further(offset);
        view.mean.tag = home.mean.tag;
        view.mean.base = home.mean.base.further(o.view.mean.base.offset);
        Some(view)
    }

    /// The scalars of a root, if they are there or cost nothing.
    fn elements_at_hand(&mut self, p: &Program, root: Root) -> Option<Vec<Value>> {
        match root {
            Root::Value(r) => match self.frame.reprs[r as usize].as_ref()? {
                Repr::Elements(e) => Some(e.clone()),
                Repr::Memory(_) => None,
            },
            Root::Constant(c) => {
                let constant = &p.constants()[c as usize];
                let n = constant.ty().shape().count()?;
                if n > SMALL_CONSTANT || constant.splat_value().is_some() {
                    return None;
                }
                let ty = Ty::holding(constant.ty().dtype())?;
                let array = constant.to_array().ok()?;
                let concrete = array.concrete()?;
                (0..n).map(|i| Some(self.emitter.constant(ty, bits_of(concrete.scalar_at(i).ok()?)))).collect()
            }
        }
    }

    /// The one number that a constant holds, or that a view shows of one.
    fn splat_of(&mut self, p: &Program, values: &Values, a: Atom) -> Option<Value> {
        splat(p, values, a).map(|(ty, bits)| self.emitter.constant(ty, bits))
    }

    /// The scalars of a small operand, in its own order.
    fn elements(&mut self, p: &Program, values: &Values, a: Atom) -> Result<Vec<Value>> {
        let o = values.origin(a).clone();
        if let Some(v) = self.splat_of(p, values, a) {
            return Ok(vec![v; count(values.dims(a)).written_out()]);
        }
        if let Some(elements) = self.elements_at_hand(p, o.root) {
            let view = View { base: At::start().further(o.view.base.offset), ..o.view };
            return Ok(places(&view).map(|k| elements[k as usize]).collect());
        }
        let key = match a.value() {
            Some(v) => Root::Value(v.index() as u32),
            None => Root::Constant(constant_index(a) as u32),
        };
        if let Some(e) = self.frame.loaded.get(&key) {
            return Ok(e.clone());
        }
        let view = self.memory(p, values, a)?;
        let elements = self.load_all(&view);
        self.frame.loaded.insert(key, elements.clone());
        Ok(elements)
    }

    /// Every element of a small view, in its order.
    fn load_all(&mut self, view: &View) -> Vec<Value> {
        view.all().into_iter().map(|(at, meaning)| self.emitter.load(view.buffer, at, meaning)).collect()
    }

    /// Writes every element of a small view, in its order.
    fn store_all(&mut self, view: &View, elements: &[Value]) {
        for ((at, meaning), x) in view.all().into_iter().zip(elements) {
            self.emitter.store(view.buffer, at, *x, meaning);
        }
    }

    /// Writes every element of a small view that is a part of what is written already.
    fn store_again(&mut self, view: &View, elements: &[Value]) {
        for ((at, meaning), x) in view.all().into_iter().zip(elements) {
            self.emitter.store(view.buffer, at, *x, meaning.again());
        }
    }

    /// Adds a kernel and runs it. What it takes from outside is found in its body.
    fn push_kernel(&mut self, name: &str, outputs: Vec<Value>, work: Work, body: Vec<Stmt>) {
        let index = self.emitter.module.kernels.len() as u32;
        let parallel = work.is_shared();
        self.work.push(work);
        let (name, inputs) = (format!("k{index}_{name}"), free_values(&body));
        self.emitter.module.kernels.push(Kernel { name, inputs, outputs, parallel, body });
        self.emitter.push(Stmt::Kernel(index));
    }

    // ---- blocks ----

    /// Writes a program's equations. `wanted`: atoms of the program that must be there in the end, some of them at a
    /// given place; gives how they are there.
    fn block(
        &mut self,
        p: &Program,
        inputs: Vec<Repr>,
        wanted: &[(Atom, Option<View>)],
        owned: FxHashSet<Buffer>,
    ) -> Result<Vec<Repr>> {
        // A form that does not fit together is a user's, and said before anything is planned by it.
        p.equations().iter().try_for_each(|e| form_of(p, e).map(|_| ()))?;
        let first = self.tags_for(p);
        let values = Values::new(p, &inputs, self.small, first);
        let plan = fusion::plan(p, &values, self.threads);
        let mut reprs: Vec<Option<Repr>> = inputs.into_iter().map(Some).collect();
        reprs.resize(p.value_count(), None);
        let (uses, made) = (plan.uses.clone(), plan.makers.clone());
        let frame = Frame { reprs, uses, made, carried: owned.clone(), owned, ..Frame::default() };
        let outer = std::mem::replace(&mut self.frame, frame);
        let result = self.block_inside(p, &values, &plan, wanted);
        self.frame = outer;
        result
    }

    fn block_inside(
        &mut self,
        p: &Program,
        values: &Values,
        plan: &FusionPlan,
        wanted: &[(Atom, Option<View>)],
    ) -> Result<Vec<Repr>> {
        for (a, view) in wanted {
            let o = values.origin(*a);
            if let (Some(view), Root::Value(r)) = (view, o.root)
                && r as usize >= p.inputs().len()
                && o.view.is_dense()
                && o.view.base == At::start()
                && o.view.buffer == NOWHERE
                && count(&values.dims[r as usize]) == count(&view.dims)
                && !self.frame.wanted.contains_key(&(r as usize))
            {
                let dims = values.dims[r as usize].clone();
                let place = View { strides: views::row_major(&dims), dims, ..view.clone() };
                self.frame.wanted.insert(r as usize, place.of(values.tag(r as usize)));
            } else if let (Some(view), Root::Value(r)) = (view, o.root)
                && r as usize >= p.inputs().len()
                && o.view.buffer == NOWHERE
                && self.frame.uses.get(&o.root) == Some(&1)
                && !self.frame.carried.contains(&view.buffer)
                && let Some(place) = o.view.laid_out(&values.dims[r as usize], view)
            {
                self.frame.laid.insert(r as usize, place.of(values.tag(r as usize)));
            }
        }
        for c in 0..p.constants().len() {
            if p.constants()[c].splat_value().is_none() && !is_empty(&values.constants[c].0) {
                self.constant_memory(p, values, c)?;
            }
        }
        self.place_parts(p, values, plan)?;
        self.place_picked(p, values, plan)?;
        for (unit, reads) in plan.units.iter().zip(&plan.reads) {
            match *unit {
                Unit::Cluster(c) => nest::emit(self, p, values, plan, &plan.clusters[c])?,
                Unit::Equation(i) => {
                    let e = &p.equations()[i];
                    match plan.classes[i] {
                        Class::Scalars => self.scalar_equation(p, values, e)?,
                        _ => self.single(p, values, e).map_err(|err| err.at(e.place()))?,
                    }
                }
            }
            for root in reads {
                if let Some(n) = self.frame.uses.get_mut(root) {
                    *n = n.saturating_sub(1);
                }
            }
        }
        // An array that is updated where it is may be read for another output: it comes last.
        let in_place =
            |view: &View, l: &Lower| l.frame.owned.contains(&view.buffer) && l.frame.carried.contains(&view.buffer);
        for last in [false, true] {
            let mut copies: Vec<(View, View)> = Vec::new();
            for (a, view) in wanted {
                if let Some(view) = view
                    && in_place(view, self) == last
                {
                    copies.extend(self.deliver(p, values, *a, view)?);
                }
            }
            self.copy_all(copies);
        }
        let mut out = Vec::new();
        for (a, view) in wanted {
            out.push(match view {
                Some(view) => Repr::Memory(view.clone()),
                None if self.is_small(p.ty(*a), values.dims(*a)) && !values.in_lanes(*a) => {
                    Repr::Elements(self.elements(p, values, *a)?)
                }
                None => Repr::Memory(self.memory(p, values, *a)?),
            });
        }
        Ok(out)
    }

    /// Makes sure that an array is at a place; gives what is left to be copied there.
    fn deliver(&mut self, p: &Program, values: &Values, a: Atom, to: &View) -> Result<Option<(View, View)>> {
        if let Some(v) = self.splat_of(p, values, a) {
            self.fill(to, v)?;
            return Ok(None);
        }
        let dtype = p.ty(a).dtype();
        if self.is_laid(values, a, to, dtype) {
            return Ok(None);
        }
        if let Root::Value(r) = values.origin(a).root
            && self.frame.wanted.get(&(r as usize)).is_some_and(|w| w.buffer == to.buffer && w.base == to.base)
        {
            // It was made there, or is in scalars and goes there now.
            self.in_memory(p, values, r as usize)?;
            if let Some(here) = self.placed(values, a)
                && here.is_at(to)
            {
                self.becomes(&here, to, dtype);
                return Ok(None);
            }
        }
        if values.in_scalars(a) && values.ty(a).is_some() {
            let elements = self.elements(p, values, a)?;
            self.store_all(to, &elements);
            return Ok(None);
        }
        let from = self.memory(p, values, a)?;
        self.copies.push(format!("{} is copied to {}: it is made elsewhere", p.ty(a), to.buffer));
        let in_place = self.frame.owned.contains(&to.buffer) && self.frame.carried.contains(&to.buffer);
        if storage(dtype).is_none() || in_place || !count(&to.dims).at_most(COPIED_TOGETHER) {
            self.copy(&from, to, dtype)?;
            return Ok(None);
        }
        Ok(Some((from, to.clone())))
    }

    fn scalar_equation(&mut self, p: &Program, values: &Values, e: &Equation) -> Result<()> {
        let v = e.result().index();
        let operands = p.operands(e).iter().map(|a| self.elements(p, values, *a)).collect::<Result<Vec<_>>>()?;
        let inner: Vec<Inner<'_>> =
            operands.iter().zip(p.operands(e)).map(|(elements, a)| Inner { elements, dims: values.dims(*a) }).collect();
        let ty = values.types[v].ok_or_else(|| error!(Rule, "no scalar type for {}", p.ty(e.result())))?;
        let elements = unroll(&mut self.emitter, (p, e), 0, &inner, &values.dims[v], ty);
        self.frame.reprs[v] = Some(Repr::Elements(elements));
        Ok(())
    }
}

/// The type and the bits of the one number that a constant holds, or that a view shows of one.
fn splat(p: &Program, values: &Values, a: Atom) -> Option<(Ty, u64)> {
    let Root::Constant(c) = values.origin(a).root else { return None };
    let constant = &p.constants()[c as usize];
    Some((storage(constant.ty().dtype())?, bits_of(constant.splat_value()?)))
}

/// The bits of a number in the low bytes.
fn bits_of(s: Scalar) -> u64 {
    match s {
        Scalar::Bool(v) => u64::from(v),
        Scalar::I8(v) => u64::from(v as u8),
        Scalar::I16(v) => u64::from(v as u16),
        Scalar::I32(v) => u64::from(v as u32),
        Scalar::I64(v) => v as u64,
        Scalar::U8(v) => u64::from(v),
        Scalar::U16(v) => u64::from(v),
        Scalar::U32(v) => u64::from(v),
        Scalar::U64(v) => v,
        Scalar::F16(v) => u64::from(v.to_bits()),
        Scalar::BF16(v) => u64::from(v.to_bits()),
        Scalar::F32(v) => u64::from(v.to_bits()),
        Scalar::F64(v) => v.to_bits(),
        Scalar::C64(v) => u64::from(v.re.to_bits()) | u64::from(v.im.to_bits()) << 32,
        Scalar::Key(v) => v.0,
        Scalar::C128(_) => 0,
    }
}

/// Values that a body uses and does not define.
fn free_values(body: &[Stmt]) -> Vec<Value> {
    #[derive(Default)]
    struct Uses {
        defined: FxHashSet<Value>,
        seen: FxHashSet<Value>,
        free: Vec<Value>,
    }
    impl Uses {
        fn use_(&mut self, v: Value) {
            if !self.defined.contains(&v) && self.seen.insert(v) {
                self.free.push(v);
            }
        }
        fn int(&mut self, i: Int) {
            if let Int::Value(v) = i {
                self.use_(v);
            }
        }
        fn index(&mut self, at: &Index) {
            for (v, s) in &at.terms {
                self.use_(*v);
                self.int(*s);
            }
        }
        fn body(&mut self, body: &[Stmt]) {
            for s in body {
                match s {
                    Stmt::Let(v, e) => {
                        match e {
                            Expr::Op(_, args) => args.iter().for_each(|a| self.use_(*a)),
                            Expr::Load(_, at) => self.index(at),
                            Expr::Const(_) | Expr::Size(_) => {}
                        }
                        self.defined.insert(*v);
                    }
                    Stmt::Store { at, value, .. } => {
                        self.index(at);
                        self.use_(*value);
                    }
                    Stmt::Loop(l) => {
                        self.int(l.count);
                        self.defined.insert(l.var);
                        for c in &l.carried {
                            self.use_(c.init);
                            self.defined.insert(c.param);
                        }
                        self.body(&l.body);
                        l.carried.iter().for_each(|c| self.use_(c.next));
                        l.folds.iter().for_each(|f| self.use_(f.value));
                        self.defined.extend(l.carried.iter().map(|c| c.result));
                        self.defined.extend(l.folds.iter().map(|f| f.result));
                    }
                    _ => {}
                }
            }
        }
    }
    let mut walk = Uses::default();
    walk.body(body);
    walk.free
}
