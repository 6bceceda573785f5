//! Random bits as a function of a key: Threefry-2x32, counted by the place of each element.
//!
//! Element `i` of a draw, in row-major order, is the hash of the 64-bit number `i` under the key. So a draw of any shape is
//! one loop without state, every part of it can be computed again, and the numbers are those of JAX's default generator
//! (`jax_threefry_partitionable`). Keys may be an array of them: then each gives a draw of its own.

use super::elementwise::kernel::{one_output, operand, zip};
use super::reduce::{array, elements};
use super::rules::one;
use super::shaping::{Broadcast, Iota, Reshape, known};
use super::{
    Batch, Batched, Derivative, Expansion, Infer, Jvp, Op, Outputs, Primitive, Sample, Transpose, Transposed, Types,
};
use crate::array::{Array, Concrete, reserve};
use crate::error::{Result, error, fail};
use crate::rules_of;
use crate::trace::{bind, record};
use crate::types::{DType, Effects, Element, KeyBits, Scalar, Shape, Type};

/// The rotations of the eight rounds, four by four in turns.
const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
/// What the third word of the key schedule starts from, by the definition of Threefry.
const PARITY: u32 = 0x1BD1_1BDA;

/// Threefry-2x32 with 20 rounds.
pub fn threefry(key: [u32; 2], counter: [u32; 2]) -> [u32; 2] {
    let schedule = [key[0], key[1], key[0] ^ key[1] ^ PARITY];
    let [mut a, mut b] = [counter[0].wrapping_add(key[0]), counter[1].wrapping_add(key[1])];
    for i in 0..5 {
        for r in ROTATIONS[i % 2] {
            a = a.wrapping_add(b);
            b = b.rotate_left(r) ^ a;
        }
        a = a.wrapping_add(schedule[(i + 1) % 3]);
        b = b.wrapping_add(schedule[(i + 2) % 3]).wrapping_add(i as u32 + 1);
    }
    [a, b]
}

/// The two words of a key, or of a 64-bit counter.
fn words(bits: u64) -> [u32; 2] {
    [(bits >> 32) as u32, bits as u32]
}

/// The hash of a counter, as 64 bits with the first word in the high half.
fn hash(key: KeyBits, counter: u64) -> u64 {
    let [a, b] = threefry(words(key.0), words(counter));
    u64::from(a) << 32 | u64::from(b)
}

/// Random bits: for each key of the operand, an array of this shape. As `u64` or as new keys an element is the whole hash of
/// its place; as a narrower integer the low bits of both words together.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomBits {
    /// An unsigned integer, or `key`.
    pub dtype: DType,
    /// The dimensions of the draw.
    pub shape: Shape,
}

impl RandomBits {
    /// The whole shape: the keys' dimensions, then those of the draw.
    fn shape_for(&self, keys: &Shape) -> Shape {
        keys.iter().chain(self.shape.iter()).cloned().collect()
    }

    /// The place of each element of a draw as two words.
    fn counter(&self, shape: &Shape, keys: usize) -> [Array; 2] {
        let size = self.shape.size();
        let count = |dtype: DType| {
            let flat = record(Op::new(Iota { dtype, shape: [size.clone()].into_iter().collect(), axis: 0 }), &[]);
            let placed = record(Op::new(Reshape { shape: self.shape.clone() }), &[flat]);
            let axes = (keys..shape.rank()).collect();
            record(Op::new(Broadcast { shape: shape.clone(), axes }), &[placed])
        };
        // What is known to have at most 2^32 elements counts in one word.
        if size.as_usize().is_some_and(|n| n as u64 <= 1 << 32) {
            return [Array::full_scalar(shape.clone(), Scalar::U32(0)), count(DType::U32)];
        }
        let places = count(DType::U64);
        [high(&places), low(&places)]
    }
}

fn high(x: &Array) -> Array {
    x.shift_right_logical(32u64).cast(DType::U32)
}

fn low(x: &Array) -> Array {
    x.cast(DType::U32)
}

/// [`threefry`] on arrays of words, all of one shape.
pub fn threefry_arrays(key: [Array; 2], counter: [Array; 2]) -> [Array; 2] {
    let third = &key[0] ^ &key[1] ^ PARITY;
    let schedule = [key[0].clone(), key[1].clone(), third];
    let [mut a, mut b] = [&counter[0] + &key[0], &counter[1] + &key[1]];
    for i in 0..5usize {
        for r in ROTATIONS[i % 2] {
            a = &a + &b;
            b = ((&b << r) | b.shift_right_logical(32 - r)) ^ &a;
        }
        a = &a + &schedule[(i + 1) % 3];
        b = &b + (&schedule[(i + 2) % 3] + (i as u32 + 1));
    }
    [a, b]
}

impl Primitive for RandomBits {
    rules_of!("random_bits"; dtype, shape);

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(1)?;
        infer.dtype(0, "keys", |d| d == DType::Key).map_err(|e| e.help(NEEDS_A_KEY))?;
        if !self.dtype.is_unsigned() && self.dtype != DType::Key {
            return Err(error!(DType, "random bits are unsigned integers or keys, not {}", self.dtype)
                .help("draw unsigned integers of the same size and cast or bitcast them"));
        }
        let shape = self.shape_for(infer.inputs[0].shape()); // invariant: the arity was checked
        one(Type::checked(self.dtype, shape)?)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let keys = operand(inputs, 0)?;
        let ty = Type::checked(self.dtype, self.shape_for(keys.ty().shape()))?;
        let count = known(&self.shape)?.iter().product::<usize>() as u64;
        let keys = elements::<KeyBits>(keys)?;
        fn draw<T: Element>(ty: Type, keys: &[KeyBits], count: u64, of: impl Fn(u64) -> T) -> Result<Concrete> {
            let mut values: Vec<T> = reserve(&ty)?;
            keys.iter().for_each(|key| values.extend((0..count).map(|i| of(hash(*key, i)))));
            Ok(Concrete::dense(ty, values))
        }
        let folded = |bits: u64| (bits >> 32) as u32 ^ bits as u32;
        one_output(match self.dtype {
            DType::U8 => draw(ty, &keys, count, |bits| folded(bits) as u8),
            DType::U16 => draw(ty, &keys, count, |bits| folded(bits) as u16),
            DType::U32 => draw(ty, &keys, count, folded),
            DType::U64 => draw(ty, &keys, count, |bits| bits),
            DType::Key => draw(ty, &keys, count, KeyBits),
            other => fail!(DType, "no random bits in {other}"),
        })
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        // A batch of keys is an array of keys.
        Batched::one(bind(Op::new(self.clone()), batch.inputs))
    }

    /// The same bits by arithmetic on 32-bit words, for code that runs many elements at once.
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|inputs| {
            let [key] = inputs else { fail!(Verify, "takes one operand") };
            let keys = key.ty()?;
            let shape = self.shape_for(keys.shape());
            let spread = |word: Array| {
                record(Op::new(Broadcast { shape: shape.clone(), axes: (0..keys.rank()).collect() }), &[word])
            };
            let whole = key.bitcast(DType::U64);
            let key_words = [high(&whole), low(&whole)].map(spread);
            let counter = self.counter(&shape, keys.rank());
            let [a, b] = threefry_arrays(key_words, counter);
            Ok(smallvec::smallvec![match self.dtype {
                DType::U32 => a ^ b,
                DType::U64 | DType::Key => {
                    let bits = (a.cast(DType::U64) << 32u64) | b.cast(DType::U64);
                    if self.dtype == DType::Key { bits.bitcast(DType::Key) } else { bits }
                }
                narrow => (a ^ b).cast(narrow),
            }])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |dtype, dims: &[usize], keys: Array| {
            Sample::new(Op::new(RandomBits { dtype, shape: dims.into() }), vec![keys])
        };
        let key = |bits| array(&[], vec![KeyBits(bits)]);
        let three = || array(&[3], vec![KeyBits(0), KeyBits(42), KeyBits(u64::MAX)]);
        vec![
            make(DType::U32, &[5], key(42)),
            make(DType::U64, &[2, 3], key(42)),
            make(DType::U8, &[7], key(7)),
            make(DType::U16, &[], key(1 << 40)),
            make(DType::Key, &[3], key(42)),
            make(DType::U32, &[2, 2], three()),
            make(DType::Key, &[2], three()),
            make(DType::U32, &[0, 4], key(1)),
        ]
    }
}

/// What an operation on keys says to another operand.
const NEEDS_A_KEY: &str = "make a key with `Key::new(seed)`";

/// For each key another one that follows from it and a number.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldIn;

impl Primitive for FoldIn {
    rules_of!("fold_in");

    fn infer(&self, infer: &mut Infer<'_>) -> Result<Types> {
        infer.arity(2)?;
        infer.dtype(0, "keys", |d| d == DType::Key).map_err(|e| e.help(NEEDS_A_KEY))?;
        infer.dtype(1, "numbers of dtype u32", |d| d == DType::U32)?;
        let [key, data] = infer.inputs else { fail!(Verify, "takes two operands") };
        let (key, data) = (key.clone(), data.clone());
        if !infer.same_shape(key.shape(), data.shape()) {
            fail!(Shape, "there is one number for each key, not {data} for {key}");
        }
        one(key)
    }

    fn evaluate(&self, inputs: &[Array]) -> Result<Outputs> {
        let (key, data) = (operand(inputs, 0)?, operand(inputs, 1)?);
        one_output(zip(key, data, |key: KeyBits, data: u32| KeyBits(hash(key, u64::from(data)))))
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Derivative> {
        Ok(Derivative::Zero)
    }

    fn transpose(&self, _: &Transpose<'_>) -> Result<Transposed> {
        Ok(Transposed::NotLinear)
    }

    fn batch(&self, batch: &Batch<'_>) -> Result<Batched> {
        batch.elementwise(Op::fixed(&FoldIn))
    }

    /// The same keys by arithmetic on 32-bit words.
    fn expand(&self, _: &[Type]) -> Option<Expansion<'_>> {
        Some(Box::new(|inputs| {
            let [key, data] = inputs else { fail!(Verify, "takes two operands") };
            let whole = key.bitcast(DType::U64);
            let zero = Array::full_scalar(key.ty()?.shape().clone(), Scalar::U32(0));
            let [a, b] = threefry_arrays([high(&whole), low(&whole)], [zero, data.clone()]);
            Ok(smallvec::smallvec![((a.cast(DType::U64) << 32u64) | b.cast(DType::U64)).bitcast(DType::Key)])
        }))
    }

    fn is_total(&self) -> bool {
        true
    }

    fn effects(&self) -> Effects {
        Effects::PURE
    }

    fn samples() -> Vec<Sample> {
        let make = |key: Array, data: Array| Sample::new(Op::fixed(&FoldIn), vec![key, data]);
        vec![
            make(array(&[], vec![KeyBits(42)]), array(&[], vec![7u32])),
            make(array(&[2], vec![KeyBits(0), KeyBits(u64::MAX)]), array(&[2], vec![0u32, u32::MAX])),
            make(array::<KeyBits>(&[0], vec![]), array::<u32>(&[0], vec![])),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Program;
    use crate::trace::trace_closed;
    use crate::types::Dim;

    /// The vectors of the paper's reference implementation (Random123, `kat_vectors`).
    #[test]
    fn the_hash_is_threefry() {
        assert_eq!(threefry([0, 0], [0, 0]), [0x6b20_0159, 0x99ba_4efe]);
        assert_eq!(threefry([u32::MAX; 2], [u32::MAX; 2]), [0x1cb9_96fc, 0xbb00_2be7]);
        assert_eq!(threefry([0x13198a2e, 0x03707344], [0x243f6a88, 0x85a308d3]), [0xc492_3a9c, 0x483d_f7a0]);
    }

    fn written_out(op: &Op, inputs: &[Array]) -> Program {
        let specs: Vec<Array> = inputs.iter().map(|a| Array::of_type(a.ty().unwrap().clone())).collect();
        let types: Vec<Type> = inputs.iter().map(|a| a.ty().unwrap().clone()).collect();
        let expand = op.expand(&types).unwrap();
        trace_closed("parts", &specs, |xs| Ok(expand(xs)?.to_vec())).unwrap()
    }

    #[test]
    fn arithmetic_on_words_gives_the_same_bits() {
        for sample in RandomBits::samples().into_iter().chain(FoldIn::samples()) {
            let program = written_out(&sample.op, &sample.inputs);
            let out = crate::interpret(&program, &sample.inputs).unwrap();
            assert!(out[0].is_identical(&bind(sample.op.clone(), &sample.inputs)), "{program}");
        }
    }

    #[test]
    fn a_symbolic_draw_counts_in_two_words() {
        let op = RandomBits {
            dtype: DType::U32,
            shape: [Dim::symbol("B").unwrap(), Dim::from(3usize)].into_iter().collect(),
        };
        let program = written_out(&Op::new(op), &[Array::of_type(Type::scalar(DType::Key))]);
        assert!(program.to_string().contains("iota{dtype=u64"), "{program}");
    }
}
