//! Cuts a long main body into functions of bounded size: the last pass over a module.
//!
//! Making one function takes more than linear time in its length, and what it cannot hold in registers lies on the stack of
//! whoever calls it. A program that was unrolled is one straight line of any length. So a main body that is too long becomes
//! *pieces*, each a function of its own, and what is left of it calls them one after the other.
//!
//! A piece sees no value of another. What one defines and another uses goes through the *frame*: scratch buffers, one for
//! each type, that are planned like all others. So each call has its own, in its arena, and the stack holds no more than
//! one piece needs. A loop or a choice that is longer than a piece stays behind, and its bodies are cut; what goes around it
//! lies in the frame too, so that the main function holds nothing but counters. Constants and sizes are made anew.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{
    Buffer, BufferInfo, Carried, Expr, Index, Int, Kernel, Loop, Module, Role, Stmt, Switch, Ty, Value, While,
};

/// About how many statements a piece has.
pub const PIECE: usize = 1000;

/// Whose a value is that was not met yet, and what a value has that needs no slot.
const NONE: u32 = u32::MAX;
/// Whose the counters of loops are that are cut.
const MAIN: u32 = u32::MAX - 1;
/// Whose a value is that lies in the frame from the beginning.
const FRAME: u32 = u32::MAX - 2;

/// The same module with its main body in pieces of about so many statements, and the bytes of the buffers that were added.
/// A main body that is short enough stays as it is.
pub fn cut(mut module: Module, limit: usize) -> (Module, Vec<usize>) {
    if !module.pieces.is_empty() || weight(&module.main, &module.kernels) <= limit {
        return (module, Vec::new());
    }
    let main = std::mem::take(&mut module.main);
    let mut shaper = Shaper { module: &mut module, home: FxHashMap::default(), limit };
    let nodes = shaper.nodes(main, &[]);
    let home = shaper.home;
    let mut walk = Crossings::new(&module, &home);
    walk.nodes(&nodes);
    walk.begin_slots();
    walk.nodes(&nodes);
    let Crossings { owner, slots, known, frames, .. } = walk;
    let bytes = frames.iter().map(|f| f.len as usize * f.ty.size()).collect();
    let buffers: Vec<(Ty, Buffer)> =
        frames.iter().zip(module.buffers.len() as u32..).map(|(f, b)| (f.ty, Buffer(b))).collect();
    module.buffers.extend(frames.iter().map(|f| BufferInfo { ty: f.ty, role: Role::Scratch }));
    let seen = vec![NONE; module.types.len()];
    let mut writer = Writer { module, home, owner, slots, known, buffers, seen };
    writer.module.main = writer.nodes(nodes);
    (writer.module, bytes)
}

/// About how much code a body becomes.
fn weight(body: &[Stmt], kernels: &[Kernel]) -> usize {
    body.iter().map(|s| weight_of(s, kernels)).sum()
}

fn weight_of(s: &Stmt, kernels: &[Kernel]) -> usize {
    let weight = |body: &[Stmt]| weight(body, kernels);
    match s {
        Stmt::Let(..) | Stmt::Store { .. } => 1,
        Stmt::Loop(l) => 4 + l.carried.len() + weight(&l.body),
        Stmt::While(w) => 4 + w.carried.len() + weight(&w.before) + weight(&w.body),
        Stmt::Switch(s) => 4 + s.results.len() + s.cases.iter().map(|(b, _)| 2 + weight(b)).sum::<usize>(),
        Stmt::Kernel(k) => 4 + kernels[*k as usize].inputs.len() + kernels[*k as usize].outputs.len(),
        Stmt::Call(c) => 4 + 2 * c.buffers.len(),
        Stmt::Swap(..) => 4,
        Stmt::Piece(_) | Stmt::Note(_) => 0,
    }
}

/// What lies in the frame for `to` becomes `from`.
#[derive(Clone, Copy)]
struct Move {
    from: Value,
    to: Value,
    /// Whether it had no value before.
    first: bool,
}

/// A step of a piece.
enum Item {
    Stmt(Stmt),
    Move(Move),
}

/// A part of a body that is cut. What control flow carries is in moves around it and inside of it.
enum Node {
    Piece(Vec<Item>),
    Loop(Box<Loop>, Vec<Node>),
    While(Box<While>, [Vec<Node>; 2]),
    Switch(Box<Switch>, Vec<Vec<Node>>),
}

// ---- which statements a piece has ----

/// The pieces of one body, as they are found.
struct Pieces {
    nodes: Vec<Node>,
    open: Vec<Item>,
    weight: usize,
    limit: usize,
}

impl Pieces {
    fn push(&mut self, item: Item, weight: usize) {
        if self.weight + weight > self.limit {
            self.close();
        }
        self.open.push(item);
        self.weight += weight;
    }

    /// What goes around a loop lies in the frame from here on.
    fn begin(&mut self, carried: &[Carried]) {
        carried.iter().for_each(|c| self.push(Item::Move(Move { from: c.init, to: c.result, first: true }), 1));
        self.close();
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.nodes.push(Node::Piece(std::mem::take(&mut self.open)));
        }
        self.weight = 0;
    }
}

struct Shaper<'a> {
    module: &'a mut Module,
    /// For values that go around a loop: their name after it, under which they lie in the frame.
    home: FxHashMap<Value, Value>,
    limit: usize,
}

impl Shaper<'_> {
    /// The parts of a body, and behind it some moves.
    fn nodes(&mut self, body: Vec<Stmt>, end: &[Move]) -> Vec<Node> {
        let mut pieces = Pieces { nodes: Vec::new(), open: Vec::new(), weight: 0, limit: self.limit };
        for s in body {
            let weight = weight_of(&s, &self.module.kernels);
            match s {
                Stmt::Loop(mut l) if weight > self.limit => {
                    pieces.begin(&l.carried);
                    let body = self.around(std::mem::take(&mut l.body), &l.carried);
                    pieces.nodes.push(Node::Loop(l, body));
                }
                Stmt::While(mut w) if weight > self.limit => {
                    pieces.begin(&w.carried);
                    let before = self.nodes(std::mem::take(&mut w.before), &[]);
                    let body = self.around(std::mem::take(&mut w.body), &w.carried);
                    pieces.nodes.push(Node::While(w, [before, body]));
                }
                Stmt::Switch(mut s) if weight > self.limit => {
                    pieces.close();
                    let bodies = s.cases.iter_mut().map(|(body, ends)| {
                        let pairs = ends.drain(..).zip(&s.results);
                        let moves: Vec<Move> = pairs.map(|(from, to)| Move { from, to: *to, first: false }).collect();
                        self.nodes(std::mem::take(body), &moves)
                    });
                    let bodies = bodies.collect();
                    pieces.nodes.push(Node::Switch(s, bodies));
                }
                s => pieces.push(Item::Stmt(s), weight),
            }
        }
        end.iter().for_each(|m| pieces.push(Item::Move(*m), 1));
        pieces.close();
        pieces.nodes
    }

    /// The body of a loop, and behind it what goes around: all at once, since one may be the next of another.
    fn around(&mut self, body: Vec<Stmt>, carried: &[Carried]) -> Vec<Node> {
        let params: FxHashSet<Value> = carried.iter().map(|c| c.param).collect();
        let (mut aside, mut plain, mut back) = (Vec::new(), Vec::new(), Vec::new());
        for Carried { param, next, result, .. } in carried.iter().copied() {
            self.home.insert(param, result);
            if next == param {
                continue;
            }
            if !params.contains(&next) {
                plain.push(Move { from: next, to: result, first: false });
                continue;
            }
            let kept = self.module.value(self.module.ty(next));
            aside.push(Move { from: next, to: kept, first: true });
            back.push(Move { from: kept, to: result, first: false });
        }
        self.nodes(body, &[aside, plain, back].concat())
    }
}

// ---- which values cross, and where they lie ----

/// The frame of a type.
struct Frame {
    ty: Ty,
    len: u32,
    free: Vec<u32>,
}

/// A walk over all parts in the order of the code. The first one finds what crosses pieces and where it is last used, the
/// second one gives out slots.
struct Crossings<'a> {
    module: &'a Module,
    home: &'a FxHashMap<Value, Value>,
    /// The piece that defines each value.
    owner: Vec<u32>,
    /// Where in the frame of its type each value is that crosses; [`NONE`] for the others.
    slots: Vec<u32>,
    /// Constants and sizes: whoever needs one makes it.
    known: FxHashMap<Value, Expr>,
    frames: Vec<Frame>,
    pieces: u32,
    /// Counts steps.
    place: u32,
    /// For each body around: the step in it that is being walked.
    places: Vec<u32>,
    /// How deep each value is defined.
    depth: Vec<u32>,
    /// The last step that uses a value, of those in the body that defines it.
    last: Vec<u32>,
    crossing: Vec<Value>,
    /// In the second walk: the values that are used last in a step.
    ending: Option<FxHashMap<u32, Vec<Value>>>,
}

impl<'a> Crossings<'a> {
    fn new(module: &'a Module, home: &'a FxHashMap<Value, Value>) -> Crossings<'a> {
        let n = module.types.len();
        Crossings {
            module,
            home,
            owner: vec![NONE; n],
            slots: vec![NONE; n],
            known: FxHashMap::default(),
            frames: Vec::new(),
            pieces: 0,
            place: 0,
            places: vec![0],
            depth: vec![0; n],
            last: vec![0; n],
            crossing: Vec::new(),
            ending: None,
        }
    }

    fn begin_slots(&mut self) {
        let mut ending: FxHashMap<u32, Vec<Value>> = FxHashMap::default();
        for v in std::mem::take(&mut self.crossing) {
            ending.entry(self.last[v.index()]).or_default().push(v);
        }
        self.ending = Some(ending);
        (self.place, self.places, self.pieces) = (0, vec![0], 0);
    }

    /// Runs `f` as a step of the innermost body. What is used there for the last time leaves its slot.
    fn step(&mut self, f: impl FnOnce(&mut Self)) {
        self.place += 1;
        let place = self.place;
        self.places.pop();
        self.places.push(place);
        f(self);
        let Some(ending) = &mut self.ending else { return };
        for v in ending.remove(&place).unwrap_or_default() {
            let (slot, frame) = (self.slots[v.index()], self.frame(v));
            self.frames[frame].free.push(slot);
        }
    }

    /// Runs `f` as a body of its own.
    fn inside(&mut self, f: impl FnOnce(&mut Self)) {
        self.places.push(0);
        f(self);
        self.places.pop();
    }

    /// The number of the frame that a value lies in.
    fn frame(&mut self, v: Value) -> usize {
        let ty = self.module.ty(v);
        self.frames.iter().position(|f| f.ty == ty).unwrap_or_else(|| {
            self.frames.push(Frame { ty, len: 0, free: Vec::new() });
            self.frames.len() - 1
        })
    }

    fn define(&mut self, v: Value, owner: u32) {
        self.owner[v.index()] = owner;
        self.depth[v.index()] = self.places.len() as u32 - 1;
        if self.ending.is_none() {
            if owner == FRAME {
                self.cross(v);
            }
        } else if self.slots[v.index()] != NONE {
            let frame = self.frame(v);
            let frame = &mut self.frames[frame];
            self.slots[v.index()] = frame.free.pop().unwrap_or_else(|| {
                frame.len += 1;
                frame.len - 1
            });
        }
    }

    /// Notes that a value will have a slot.
    fn cross(&mut self, v: Value) {
        if self.slots[v.index()] == NONE {
            self.slots[v.index()] = 0;
            self.crossing.push(v);
        }
        self.last[v.index()] = self.places[self.depth[v.index()] as usize];
    }

    fn use_(&mut self, v: Value, piece: u32) {
        let v = self.home.get(&v).copied().unwrap_or(v);
        let elsewhere = self.owner[v.index()] != piece && !self.known.contains_key(&v);
        if self.ending.is_none() && elsewhere {
            self.cross(v);
        }
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes {
            match node {
                Node::Piece(items) => {
                    let piece = self.pieces;
                    self.pieces += 1;
                    items.iter().for_each(|item| self.step(|w| w.item(item, piece)));
                }
                Node::Loop(l, body) => self.step(|w| {
                    if let Int::Value(count) = l.count {
                        w.use_(count, MAIN);
                    }
                    l.carried.iter().for_each(|c| w.use_(c.result, MAIN));
                    w.inside(|w| {
                        w.step(|w| w.define(l.var, MAIN));
                        w.nodes(body);
                    });
                }),
                Node::While(l, [before, body]) => self.step(|w| {
                    l.carried.iter().for_each(|c| w.use_(c.result, MAIN));
                    w.inside(|w| {
                        w.nodes(before);
                        w.step(|w| w.use_(l.condition, MAIN));
                        w.nodes(body);
                    });
                }),
                Node::Switch(s, cases) => self.step(|w| {
                    w.use_(s.index, MAIN);
                    s.results.iter().for_each(|r| w.define(*r, FRAME));
                    cases.iter().for_each(|nodes| w.inside(|w| w.nodes(nodes)));
                }),
            }
        }
    }

    fn item(&mut self, item: &Item, piece: u32) {
        match item {
            Item::Move(m) => {
                self.use_(m.from, piece);
                if m.first {
                    self.define(m.to, FRAME);
                }
                // Also what nobody reads keeps its slot until it is written.
                self.use_(m.to, MAIN);
            }
            Item::Stmt(s) => {
                let module = self.module;
                let kernels = &module.kernels;
                inner(s, kernels, &mut |v| self.owner[v.index()] = piece);
                uses(s, kernels, &mut |v| self.use_(v, piece));
                if let Stmt::Let(v, e @ (Expr::Const(_) | Expr::Size(_))) = s {
                    self.known.insert(*v, e.clone());
                }
                results(s, kernels, &mut |v| self.define(v, piece));
            }
        }
    }
}

/// Every use of a value by a statement and what is in it.
fn uses(s: &Stmt, kernels: &[Kernel], f: &mut dyn FnMut(Value)) {
    match s {
        Stmt::Let(_, Expr::Op(_, args)) => args.iter().for_each(|a| f(*a)),
        Stmt::Let(_, Expr::Load(_, at)) => places(at, f),
        Stmt::Let(_, Expr::Const(_) | Expr::Size(_)) | Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => {}
        Stmt::Store { at, value, .. } => {
            places(at, f);
            f(*value);
        }
        Stmt::Loop(l) => {
            int(l.count, f);
            l.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
            l.folds.iter().for_each(|fold| f(fold.value));
            l.body.iter().for_each(|s| uses(s, kernels, f));
        }
        Stmt::While(w) => {
            f(w.condition);
            w.carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut *f));
            w.before.iter().chain(&w.body).for_each(|s| uses(s, kernels, f));
        }
        Stmt::Switch(s) => {
            f(s.index);
            for (body, ends) in &s.cases {
                ends.iter().for_each(|v| f(*v));
                body.iter().for_each(|s| uses(s, kernels, f));
            }
        }
        Stmt::Kernel(k) => kernels[*k as usize].inputs.iter().for_each(|v| f(*v)),
        Stmt::Call(c) => c.buffers.iter().for_each(|(_, at)| places(at, f)),
    }
}

fn places(at: &Index, f: &mut dyn FnMut(Value)) {
    for (v, stride) in &at.terms {
        f(*v);
        int(*stride, f);
    }
}

fn int(i: Int, f: &mut dyn FnMut(Value)) {
    if let Int::Value(v) = i {
        f(v);
    }
}

/// What can be seen of a statement after it.
fn results(s: &Stmt, kernels: &[Kernel], f: &mut dyn FnMut(Value)) {
    match s {
        Stmt::Let(v, _) => f(*v),
        Stmt::Loop(l) => {
            l.carried.iter().for_each(|c| f(c.result));
            l.folds.iter().for_each(|fold| f(fold.result));
        }
        Stmt::While(w) => w.carried.iter().for_each(|c| f(c.result)),
        Stmt::Switch(s) => s.results.iter().for_each(|r| f(*r)),
        Stmt::Kernel(k) => kernels[*k as usize].outputs.iter().for_each(|v| f(*v)),
        Stmt::Store { .. } | Stmt::Call(_) | Stmt::Swap(..) | Stmt::Piece(_) | Stmt::Note(_) => {}
    }
}

/// What the bodies in a statement define for themselves.
fn inner(s: &Stmt, kernels: &[Kernel], f: &mut dyn FnMut(Value)) {
    let mut bodies: SmallVec<[&[Stmt]; 2]> = SmallVec::new();
    match s {
        Stmt::Loop(l) => {
            f(l.var);
            l.carried.iter().for_each(|c| f(c.param));
            bodies.push(&l.body);
        }
        Stmt::While(w) => {
            w.carried.iter().for_each(|c| f(c.param));
            bodies.extend([&w.before[..], &w.body]);
        }
        Stmt::Switch(s) => bodies.extend(s.cases.iter().map(|(body, _)| &body[..])),
        _ => {}
    }
    for s in bodies.into_iter().flatten() {
        results(s, kernels, f);
        inner(s, kernels, f);
    }
}

// ---- the module in pieces ----

struct Writer {
    module: Module,
    home: FxHashMap<Value, Value>,
    owner: Vec<u32>,
    slots: Vec<u32>,
    known: FxHashMap<Value, Expr>,
    /// The frame of each type.
    buffers: Vec<(Ty, Buffer)>,
    /// The last piece that read a value of another.
    seen: Vec<u32>,
}

impl Writer {
    /// Where a value lies; none for one that does not cross.
    fn place(&self, v: Value) -> Option<(Buffer, Index)> {
        let v = self.home.get(&v).copied().unwrap_or(v);
        let (ty, slot) = (self.module.ty(v), *self.slots.get(v.index())?);
        let (_, buffer) = self.buffers.iter().find(|(t, _)| *t == ty)?;
        (slot != NONE).then(|| (*buffer, Index::at(i64::from(slot))))
    }

    /// How a value of another piece is had; none for one that is here.
    fn foreign(&self, v: Value, piece: u32) -> Option<Expr> {
        let home = self.home.get(&v).copied().unwrap_or(v);
        match self.known.get(&v) {
            _ if self.owner[home.index()] == piece => None,
            Some(known) => Some(known.clone()),
            None => self.place(v).map(|(buffer, at)| Expr::Load(buffer, at)),
        }
    }

    /// A value for the main function, under a name of its own.
    fn fetch(&mut self, v: Value, out: &mut Vec<Stmt>) -> Value {
        let Some(e) = self.foreign(v, MAIN) else { return v };
        let name = self.module.value(self.module.ty(v));
        out.push(Stmt::Let(name, e));
        name
    }

    /// Puts a value where another lies, if that crosses.
    fn save(&self, value: Value, to: Value, out: &mut Vec<Stmt>) {
        if let Some((buffer, at)) = self.place(to) {
            out.push(Stmt::Store { buffer, at, value });
        }
    }

    fn nodes(&mut self, nodes: Vec<Node>) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(nodes.len());
        for node in nodes {
            match node {
                Node::Piece(items) => {
                    let piece = self.module.pieces.len() as u32;
                    let body = self.piece(items, piece);
                    self.module.pieces.push(body);
                    out.push(Stmt::Piece(piece));
                }
                Node::Loop(mut l, nodes) => {
                    if let Int::Value(count) = l.count {
                        l.count = match self.known.get(&count) {
                            Some(Expr::Const(n)) => Int::Const(*n as i64),
                            _ => Int::Value(self.fetch(count, &mut out)),
                        };
                    }
                    l.carried.clear();
                    self.save(l.var, l.var, &mut l.body);
                    l.body.extend(self.nodes(nodes));
                    out.push(Stmt::Loop(l));
                }
                Node::While(mut w, [before, body]) => {
                    w.carried.clear();
                    w.before = self.nodes(before);
                    w.condition = self.fetch(w.condition, &mut w.before);
                    w.body = self.nodes(body);
                    out.push(Stmt::While(w));
                }
                Node::Switch(mut s, cases) => {
                    s.index = self.fetch(s.index, &mut out);
                    s.results.clear();
                    s.cases = cases.into_iter().map(|nodes| (self.nodes(nodes), Vec::new())).collect();
                    out.push(Stmt::Switch(s));
                }
            }
        }
        out
    }

    fn piece(&mut self, items: Vec<Item>, piece: u32) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(items.len() * 2);
        let mut values: Vec<Value> = Vec::new();
        for item in items {
            match &item {
                Item::Stmt(s) => uses(s, &self.module.kernels, &mut |v| values.push(v)),
                Item::Move(m) => values.push(m.from),
            }
            for v in values.drain(..) {
                if self.seen[v.index()] != piece
                    && let Some(e) = self.foreign(v, piece)
                {
                    self.seen[v.index()] = piece;
                    out.push(Stmt::Let(v, e));
                }
            }
            match item {
                Item::Move(m) => self.save(m.from, m.to, &mut out),
                Item::Stmt(s) => {
                    results(&s, &self.module.kernels, &mut |v| values.push(v));
                    out.push(s);
                    values.drain(..).for_each(|v| self.save(v, v, &mut out));
                }
            }
        }
        out
    }
}
