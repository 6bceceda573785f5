//! Laws on arrays that are put together of parts, and on parts of what was computed: programs of shifts, pads, slices and sums, as dice make them. Only large arrays are done
//! by boxes, so these are.

use std::sync::LazyLock;

use gradus_core::primitives::Op;
use gradus_core::primitives::elementwise::{Add, Exp, Max, Mul, Neg, Sub};
use gradus_core::primitives::reduce::ReduceMax;
use gradus_core::primitives::shaping::{Concatenate, Pad, Slice};
use gradus_core::program::{Atom, Builder, Constant};
use gradus_core::{DType, Dim, Location, Program, Scalar, Shape, Type};

use crate::support::{Seen, full, inputs_for};

/// A program under construction: values that all have the same shape.
struct Maker {
    b: Builder,
    dims: Vec<usize>,
    dtype: DType,
    values: Vec<Atom>,
    state: u64,
}

impl Maker {
    fn new(seed: u64, dims: &[usize], dtype: DType) -> Maker {
        let mut b = Builder::new("f");
        let ty = Type::new(dtype, Shape::from(dims));
        let values = (0..2).map(|_| b.input(ty.clone()).unwrap().into()).collect();
        let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Maker { b, dims: dims.to_vec(), dtype, values, state }
    }

    fn below(&mut self, n: usize) -> usize {
        self.state = self.state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.state >> 33) % n as u64) as usize
    }

    fn any(&mut self) -> Atom {
        // The last ones more often: then programs are deep.
        let n = self.values.len();
        let at = if self.below(3) == 0 { self.below(n) } else { n - 1 - self.below(n.min(3)) };
        self.values[at]
    }

    fn apply(&mut self, op: Op, operands: &[Atom]) -> Atom {
        self.b.equation(op, operands, Location::unknown()).unwrap().result().into()
    }

    fn slice(&mut self, x: Atom, axis: usize, start: usize, end: usize) -> Atom {
        let shape = self.b.ty(x).shape().clone();
        let mut op =
            Slice { start: vec![Dim::from(0usize); shape.rank()], limit: shape.to_vec(), step: vec![1; shape.rank()] };
        (op.start[axis], op.limit[axis]) = (Dim::from(start), Dim::from(end));
        self.apply(Op::new(op), &[x])
    }

    fn number(&mut self, value: f64, shape: Shape) -> Atom {
        self.b.constant(Constant::splat(Type::new(self.dtype, shape), Scalar::F64(value).cast(self.dtype)))
    }

    fn pad(&mut self, x: Atom, low: &[usize], high: &[usize]) -> Atom {
        let value = [0.0, -0.0, 2.0][self.below(3)];
        let value = self.number(value, Shape::from(&[] as &[usize]));
        let of = |n: &[usize]| n.iter().copied().map(Dim::from).collect();
        self.apply(Op::new(Pad { low: of(low), high: of(high), interior: vec![0; low.len()] }), &[x, value])
    }

    /// One value more, of the same shape.
    fn grow(&mut self) {
        let x = self.any();
        let axis = self.below(self.dims.len());
        let n = self.dims[axis];
        let by = 1 + self.below(3).min(n - 2);
        let made = match self.below(10) {
            // A shift.
            0 | 1 => {
                let (tail, head) = (self.slice(x, axis, n - by, n), self.slice(x, axis, 0, n - by));
                self.apply(Op::new(Concatenate { axis }), &[tail, head])
            }
            // A shift with a number coming in, by a pad or by a constant.
            2 => {
                let part = self.slice(x, axis, by, n);
                let (mut low, mut high) = (vec![0; self.dims.len()], vec![0; self.dims.len()]);
                *if self.below(2) == 0 { &mut low[axis] } else { &mut high[axis] } = by;
                self.pad(part, &low, &high)
            }
            3 => {
                let part = self.slice(x, axis, 0, n - by);
                let mut dims = self.dims.clone();
                dims[axis] = by;
                let number = self.number(3.0, Shape::from(&dims[..]));
                self.apply(Op::new(Concatenate { axis }), &[number, part])
            }
            // A window of what was padded along every axis.
            4 => {
                let room: Vec<usize> = self.dims.iter().map(|_| 1).collect();
                let mut padded = self.pad(x, &room, &room);
                for axis in 0..self.dims.len() {
                    let start = self.below(3);
                    padded = self.slice(padded, axis, start, start + self.dims[axis]);
                }
                padded
            }
            // A shift by a pad alone.
            9 => {
                let value = self.number(1.0, Shape::from(&[] as &[usize]));
                let by = if self.below(2) == 0 { by as i64 } else { -(by as i64) };
                let zeros = || vec![Dim::from(0usize); 3];
                let (mut low, mut high) = (zeros(), zeros());
                (low[axis], high[axis]) = (Dim::from(by), Dim::from(-by));
                let rank = self.dims.len();
                low.truncate(rank);
                high.truncate(rank);
                self.apply(Op::new(Pad { low, high, interior: vec![0; rank] }), &[x, value])
            }
            // The two halves of two values, what is computed of one among them.
            5 => {
                let y = self.any();
                let (a, b) = (self.slice(x, axis, 0, n / 2), self.slice(y, axis, n / 2, n));
                let a = if self.below(2) == 0 { self.apply(Op::fixed(&Neg), &[a]) } else { a };
                self.apply(Op::new(Concatenate { axis }), &[a, b])
            }
            6 => {
                let op = if self.dtype == DType::F64 && self.below(2) == 0 { Op::fixed(&Exp) } else { Op::fixed(&Neg) };
                self.apply(op, &[x])
            }
            _ => {
                let y = self.any();
                let op = match self.below(4) {
                    0 => Op::fixed(&Add),
                    1 => Op::fixed(&Sub),
                    2 => Op::fixed(&Mul),
                    _ => Op::fixed(&Max),
                };
                self.apply(op, &[x, y])
            }
        };
        self.values.push(made);
    }

    fn finish(mut self) -> Program {
        let mut outputs = vec![self.values[self.values.len() - 1]];
        for _ in 0..self.below(3) {
            let x = self.any();
            outputs.push(if self.below(3) == 0 {
                let axes = vec![self.below(self.dims.len())];
                self.apply(Op::new(ReduceMax { axes }), &[x])
            } else {
                x
            });
        }
        self.b.finish(outputs)
    }
}

fn made() -> Seen {
    let mut seen = Seen::default();
    // What the laws are called for, in short.
    let mut maker = Maker::new(0, &[2100], DType::F64);
    let x = maker.values[0];
    let (tail, head) = (maker.slice(x, 0, 2000, 2100), maker.slice(x, 0, 0, 2000));
    let shifted = maker.apply(Op::new(Concatenate { axis: 0 }), &[tail, head]);
    let sum = maker.apply(Op::fixed(&Add), &[x, shifted]);
    maker.values.push(sum);
    let p = maker.b.finish(vec![sum]);
    seen.check(&p, &inputs_for(p.inputs(), false));
    let mut maker = Maker::new(0, &[2100], DType::F64);
    let (x, y) = (maker.values[0], maker.values[1]);
    let product = maker.apply(Op::fixed(&Mul), &[x, y]);
    let part = maker.slice(product, 0, 1, 2000);
    let p = maker.b.finish(vec![part]);
    seen.check(&p, &inputs_for(p.inputs(), false));
    // What takes away along one side, or both, and brings in on the other.
    for dtype in [DType::F64, DType::I32] {
        for (n, low, high) in [(5, -1, 2), (5, -2, -1), (5, 3, -4), (5, -5, 1), (1, 2, -3), (4, -5, 6), (3, 0, -1)] {
            let mut maker = Maker::new(0, &[n, 2], dtype);
            let (x, value) = (maker.values[0], maker.number(2.0, Shape::from(&[] as &[usize])));
            let of = |n: i64| vec![Dim::from(n), Dim::from(0usize)];
            let pad = Pad { low: of(low), high: of(high), interior: vec![0; 2] };
            let padded = maker.apply(Op::new(pad), &[x, value]);
            let p = maker.b.finish(vec![padded]);
            seen.check(&p, &inputs_for(p.inputs(), false));
        }
    }
    let count = if full() { 3_000 } else { 120 };
    for seed in 1..=count {
        let all: &[&[usize]] = &[&[2100], &[48, 47], &[3, 700], &[110, 20], &[13, 14, 15], &[2, 40, 30]];
        let dtype = if seed % 3 == 0 { DType::I32 } else { DType::F64 };
        let mut maker = Maker::new(seed, all[seed as usize % all.len()], dtype);
        for _ in 0..3 + maker.below(10) {
            maker.grow();
        }
        let p = maker.finish();
        seen.check(&p, &inputs_for(p.inputs(), false));
    }
    seen.report("boxes");
    seen
}

static BOXES: LazyLock<Seen> = LazyLock::new(made);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&BOXES]
}

#[test]
fn what_is_computed_by_boxes_keeps_its_bits() {
    let law = "elementwise (concatenate or pad a) = concatenate (elementwise a), box by box";
    assert!(BOXES.laws.contains_key(law), "{:?}", BOXES.laws);
}
