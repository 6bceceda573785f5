//! What a tree tells of itself, and that taking apart and putting together agree, for derived and built-in trees.

use std::collections::{BTreeMap, HashMap};
use std::marker::PhantomData;
use std::sync::Arc;

use gradus::prelude::*;
use gradus::tree::{Frozen, Mapper, Segment, Visitor};

/// Writes down all that a tree tells, one line each, with the path to it.
#[derive(Default)]
struct Listing {
    path: Vec<String>,
    lines: Vec<String>,
}

impl Listing {
    fn line(&mut self, text: String) {
        self.lines.push(format!("{} {text}", self.path.concat()).trim_start().to_owned());
    }
}

impl Visitor for Listing {
    fn enter(&mut self, segment: Segment<'_>) {
        self.path.push(segment.to_string());
    }

    fn leave(&mut self) {
        self.path.pop().expect("no more leaves than enters");
    }

    fn structure(&mut self, name: &str, value: usize) {
        self.line(format!("{name} = {value}"));
    }

    fn array(&mut self, array: &Array) {
        let number = array.item::<f64>().expect("the tests hold scalars");
        self.line(format!("array {number}"));
    }

    fn frozen(&mut self, value: &dyn Frozen) {
        let mut text = String::new();
        value.write(&mut text).expect("writing to a string");
        self.line(format!("frozen {text}"));
    }
}

fn listing(tree: &impl Tree) -> Vec<String> {
    let mut listing = Listing::default();
    tree.visit(&mut listing);
    assert!(listing.path.is_empty(), "each enter has its leave");
    listing.lines
}

/// Replaces each leaf by ten times its value, and notes the order in which the leaves came.
#[derive(Default)]
struct TenTimes(Vec<f64>);

impl Mapper for TenTimes {
    fn array(&mut self, array: &Array) -> Array {
        self.0.push(array.item::<f64>().expect("the tests hold scalars"));
        array * 10.0_f64
    }
}

fn values(arrays: &[Array]) -> Vec<f64> {
    arrays.iter().map(|array| array.item::<f64>().expect("the tests hold scalars")).collect()
}

/// The listing of a tree, after checking that `visit` and `map` go the same way and that `map` keeps all but the leaves.
fn checked(tree: &impl Tree) -> Vec<String> {
    let lines = listing(tree);
    let leaves = values(&tree.leaves());
    let mut ten_times = TenTimes::default();
    let mapped = tree.map(&mut ten_times);
    assert_eq!(ten_times.0, leaves, "visit and map go over the leaves in the same order");
    assert_eq!(values(&mapped.leaves()), leaves.iter().map(|leaf| leaf * 10.0).collect::<Vec<_>>());
    let without_arrays = |lines: &[String]| -> Vec<String> {
        lines.iter().map(|line| line.split("array ").next().unwrap_or_default().to_owned()).collect()
    };
    assert_eq!(without_arrays(&listing(&mapped)), without_arrays(&lines), "map keeps structure and frozen values");
    lines
}

fn a(value: f64) -> Array {
    Array::from(value)
}

#[derive(Clone, Tree)]
struct Layer {
    weight: Array,
    bias: Option<Array>,
    #[tree(skip)]
    name: &'static str,
    r#type: Static<u32>,
}

#[derive(Clone, Tree)]
struct Pair(Array, #[tree(skip)] usize, Array);

#[derive(Clone, Tree)]
struct Unit;

#[derive(Clone, Tree)]
struct Empty {}

#[derive(Clone, Debug, PartialEq)]
enum Rounding {
    Up,
}

#[derive(Clone, Tree)]
enum Step {
    Identity,
    Scale(Array, #[tree(skip)] Rounding),
    Affine { scale: Array, shift: Array },
}

#[test]
fn a_struct_is_told_field_by_field() {
    let layer = Layer { weight: a(1.0), bias: Some(a(2.0)), name: "first", r#type: Static(7) };
    assert_eq!(
        checked(&layer),
        [".weight array 1", ".bias some = 1", ".bias array 2", ".name frozen \"first\"", ".type frozen 7"]
    );
    let layer = Layer { bias: None, ..layer };
    assert_eq!(checked(&layer), [".weight array 1", ".bias some = 0", ".name frozen \"first\"", ".type frozen 7"]);
    assert_eq!((layer.name, *layer.r#type), ("first", 7));
}

#[test]
fn tuple_and_unit_structs() {
    let pair = Pair(a(1.0), 3, a(2.0));
    assert_eq!(checked(&pair), [".0 array 1", ".1 frozen 3", ".2 array 2"]);
    assert_eq!(pair.map(&mut TenTimes::default()).1, 3);
    assert!(checked(&Unit).is_empty());
    assert!(checked(&Empty {}).is_empty());
    assert!(checked(&()).is_empty());
}

#[test]
fn a_variant_is_structure() {
    assert_eq!(checked(&Step::Identity), ["variant Identity = 0"]);
    assert_eq!(
        checked(&Step::Scale(a(2.0), Rounding::Up)),
        ["variant Scale = 1", "::Scale.0 array 2", "::Scale.1 frozen Up"]
    );
    assert_eq!(
        checked(&vec![Step::Identity, Step::Affine { scale: a(1.0), shift: a(2.0) }]),
        [
            "len = 2",
            "[0] variant Identity = 0",
            "[1] variant Affine = 2",
            "[1]::Affine.scale array 1",
            "[1]::Affine.shift array 2",
        ]
    );
}

#[derive(Clone, Tree)]
struct Generic<T, S, const N: usize = 2>
where
    S: Copy,
{
    items: [T; N],
    last: T,
    tag: Static<S>,
    #[tree(skip)]
    also: Option<S>,
    marker: PhantomData<S>,
}

#[test]
fn generic_structs() {
    let generic: Generic<(Array,), u8> =
        Generic { items: [(a(1.0),), (a(2.0),)], last: (a(3.0),), tag: Static(1), also: Some(2), marker: PhantomData };
    assert_eq!(
        checked(&generic),
        [".items[0].0 array 1", ".items[1].0 array 2", ".last.0 array 3", ".tag frozen 1", ".also frozen Some(2)"]
    );
}

trait Family {
    type Member: Tree;
}

#[derive(Clone)]
struct Arrays;

impl Family for Arrays {
    type Member = Array;
}

#[derive(Clone, Tree)]
struct OfFamily<F: Family> {
    member: F::Member,
    members: Vec<<F as Family>::Member>,
}

#[test]
fn associated_types() {
    let family: OfFamily<Arrays> = OfFamily { member: a(1.0), members: vec![a(2.0)] };
    assert_eq!(checked(&family), [".member array 1", ".members len = 1", ".members[0] array 2"]);
}

#[derive(Clone, Tree)]
enum List<T> {
    Nil,
    Cons(T, Box<List<T>>),
}

#[derive(Clone, Tree)]
struct Chain<T> {
    value: Array,
    tag: Static<T>,
    next: Option<Box<Self>>,
}

#[derive(Clone, Tree)]
struct Node {
    value: Array,
    children: Vec<Node>,
}

#[test]
fn recursive_types() {
    let list = List::Cons(a(1.0), Box::new(List::Cons(a(2.0), Box::new(List::Nil))));
    assert_eq!(
        checked(&list),
        [
            "variant Cons = 1",
            "::Cons.0 array 1",
            "::Cons.1 variant Cons = 1",
            "::Cons.1::Cons.0 array 2",
            "::Cons.1::Cons.1 variant Nil = 0",
        ]
    );
    let end = Chain { value: a(2.0), tag: Static('b'), next: None };
    let chain = Chain { value: a(1.0), tag: Static('a'), next: Some(Box::new(end)) };
    assert_eq!(values(&chain.leaves()), [1.0, 2.0]);
    assert!(checked(&chain).contains(&".next.tag frozen 'b'".to_owned()));
    let node = Node { value: a(1.0), children: vec![Node { value: a(2.0), children: vec![] }] };
    assert_eq!(
        checked(&node),
        [".value array 1", ".children len = 1", ".children[0].value array 2", ".children[0].children len = 0"]
    );
}

#[derive(Clone, Tree)]
enum Never {}

#[test]
fn a_type_without_values_is_a_tree() {
    assert_eq!(checked(&None::<Never>), ["some = 0"]);
}

#[test]
fn tuples_vectors_and_boxes() {
    let tree = (a(1.0), vec![a(2.0), a(3.0)], [Box::new(a(4.0))], Arc::new((a(5.0),)));
    assert_eq!(
        checked(&tree),
        [".0 array 1", ".1 len = 2", ".1[0] array 2", ".1[1] array 3", ".2[0] array 4", ".3.0 array 5"]
    );
    let eight = (a(0.0), a(1.0), a(2.0), a(3.0), a(4.0), a(5.0), a(6.0), Unit);
    assert_eq!(checked(&eight).last().map(String::as_str), Some(".6 array 6"));
}

#[test]
fn maps_go_in_the_order_of_their_keys() {
    let keys = ["b", "c\"", "a"];
    let entries = || keys.iter().zip([2.0, 3.0, 1.0]).map(|(key, value)| (key.to_string(), a(value)));
    let want = [
        "len = 3",
        "key \"a\" = 0",
        "[\"a\"] array 1",
        "key \"b\" = 1",
        "[\"b\"] array 2",
        "key \"c\\\"\" = 2",
        "[\"c\\\"\"] array 3",
    ];
    assert_eq!(checked(&entries().collect::<BTreeMap<_, _>>()), want);
    assert_eq!(checked(&entries().collect::<HashMap<_, _>>()), want);

    let nested: BTreeMap<String, HashMap<String, Option<Array>>> =
        BTreeMap::from([("m".to_owned(), HashMap::from([("y".to_owned(), Some(a(2.0))), ("x".to_owned(), None)]))]);
    assert_eq!(
        checked(&nested),
        [
            "len = 1",
            "key \"m\" = 0",
            "[\"m\"] len = 2",
            "[\"m\"] key \"x\" = 0",
            "[\"m\"][\"x\"] some = 0",
            "[\"m\"] key \"y\" = 1",
            "[\"m\"][\"y\"] some = 1",
            "[\"m\"][\"y\"] array 2",
        ]
    );
}

#[test]
fn a_result_is_a_tree() {
    let ok: Result<(Array, Array)> = Ok((a(1.0), a(2.0)));
    assert_eq!(checked(&ok), ["ok = 1", ".0 array 1", ".1 array 2"]);
    // The read of a number from an array of two is the error here.
    let error = Array::from([1.0_f64, 2.0]).item::<f64>().expect_err("two elements are not a number");
    let err: Result<Array> = Err(error);
    let lines = checked(&err);
    assert_eq!(lines[0], "ok = 0");
    assert!(lines[1].starts_with("frozen "), "{lines:?}");
}

#[test]
fn statics_are_frozen_values() {
    let mut tree = (a(1.0), Static((3, "x")));
    assert_eq!(checked(&tree), [".0 array 1", ".1 frozen (3, \"x\")"]);
    assert_eq!(tree.1.0.1, "x");
    *tree.1 = (4, "x");
    assert_eq!(tree.1, Static::from((4, "x")));

    fn same(a: impl Frozen, b: impl Frozen) -> bool {
        a.same(&b)
    }
    assert!(same(1_u8, 1_u8) && !same(1_u8, 2_u8) && !same(1_u8, 1_i8));
    assert!(!same(0.0_f64, -0.0_f64));
    assert!(same(f64::NAN, f64::NAN));
}

#[derive(Clone, Tree)]
struct Params {
    values: Array,
    scale: Num,
    steps: Vec<Num>,
}

fn params() -> Params {
    Params { values: a(1.0), scale: Num::from(2.0_f64), steps: vec![Num::from(3_i32), Num::from(4.0_f32)] }
}

fn tracked(params: &Params) -> [bool; 3] {
    [params.scale.is_tracked(), params.steps[0].is_tracked(), params.steps[1].is_tracked()]
}

#[test]
fn numbers_are_tracked_by_choice() {
    let params = params();
    assert_eq!(tracked(&params), [false; 3]);
    assert_eq!(checked(&params).iter().filter(|line| line.contains("frozen")).count(), 3);
    assert_eq!(params.leaves().len(), 1);

    let all = params.track_numbers(TrackNumbers::All);
    assert_eq!(tracked(&all), [true; 3]);
    assert_eq!(
        all.leaves().iter().map(Array::dtype).collect::<Vec<_>>(),
        [DType::F64, DType::F64, DType::I32, DType::F32]
    );

    let only = params.track_numbers(TrackNumbers::Only(DType::I32));
    assert_eq!(tracked(&only), [false, true, false]);
    assert_eq!(tracked(&only.track_numbers(TrackNumbers::Only(DType::F64))), [true, true, false]);

    let none = all.track_numbers(TrackNumbers::None);
    assert_eq!(tracked(&none), [false; 3]);
    assert_eq!(listing(&none), listing(&params));
}

#[test]
fn a_number_is_an_operand() -> Result<()> {
    let frozen = Num::from(3.0_f64);
    let tracked = frozen.clone().track();
    assert_eq!((&a(2.0) * &frozen).item::<f64>()?, 6.0);
    assert_eq!((&a(2.0) * &tracked).item::<f64>()?, 6.0);
    assert_eq!((a(2.0) * frozen.clone()).item::<f64>()?, 6.0);
    assert_eq!(frozen.array().item::<f64>()?, 3.0);
    assert_eq!(frozen.value(), tracked.value());
    assert_eq!((frozen.dtype(), tracked.dtype()), (DType::F64, DType::F64));
    assert!(!tracked.clone().freeze().is_tracked());
    assert!(format!("{frozen} {frozen:?}").contains('3'));
    assert!(format!("{tracked:?}").contains("tracked"));
    Ok(())
}

#[test]
fn a_tracked_number_is_mapped_as_an_array() -> Result<()> {
    let frozen = Num::from(3.0_f64);
    let tracked = frozen.clone().track();
    let (frozen, tracked) = (frozen, tracked).map(&mut TenTimes::default());
    assert_eq!(frozen.array().item::<f64>()?, 3.0);
    assert_eq!(tracked.array().item::<f64>()?, 30.0);
    Ok(())
}

#[test]
fn numbers_of_every_type() {
    let numbers: [(Num, DType); 11] = [
        (Num::from(true), DType::Bool),
        (Num::from(1_i8), DType::I8),
        (Num::from(1_i16), DType::I16),
        (Num::from(1_i32), DType::I32),
        (Num::from(1_i64), DType::I64),
        (Num::from(1_u8), DType::U8),
        (Num::from(1_u16), DType::U16),
        (Num::from(1_u32), DType::U32),
        (Num::from(1_u64), DType::U64),
        (Num::from(1.0_f32), DType::F32),
        (Num::from(1.0_f64), DType::F64),
    ];
    for (number, dtype) in numbers {
        assert_eq!(number.dtype(), dtype);
        assert_eq!(number.clone().track().dtype(), dtype);
        assert_eq!(number.clone().track().freeze().value(), number.value());
    }
}

/// Names that the derive uses for itself must not clash with those of the user.
mod hygiene {
    use gradus::prelude::Array;

    #[allow(dead_code)]
    pub(crate) trait Tree {}

    #[derive(Clone, gradus::tree::Tree)]
    pub(crate) struct Odd {
        pub(crate) visitor: Array,
        pub(crate) mapper: Array,
        pub(crate) field0: Array,
    }
}

#[test]
fn field_names_do_not_clash() {
    let odd = hygiene::Odd { visitor: a(1.0), mapper: a(2.0), field0: a(3.0) };
    assert_eq!(checked(&odd), [".visitor array 1", ".mapper array 2", ".field0 array 3"]);
}
