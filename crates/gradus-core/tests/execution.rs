//! What compilers are given: the optimizer's work grows with the program and not faster, calls of calls do not blow it up, and
//! checkpoints stay what they are.

use std::fmt::Write;

use std::sync::Arc;

use gradus_core::optimize::{CONTRACT, EXECUTION_PASSES, Exactness, for_execution, run_passes, visited};
use gradus_core::primitives::Op;
use gradus_core::primitives::control::Call;
use gradus_core::program::{Atom, Builder, Constant, ValueId, verify};
use gradus_core::testing::{Source, random_array};
use gradus_core::transform::vjp;
use gradus_core::{Array, Location, Program, Scalar, interpret};

fn parsed(text: &str) -> Program {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// A chain of `n` steps of eleven equations, in which every pass finds something to do.
fn chain(n: usize) -> Program {
    let mut text = String::from("fn chain(x0: f64[2,3], x1: f64[3]) -> f64[2,3] {\n");
    let (mut x, mut next) = (0, 2);
    for _ in 0..n {
        let v = |k: usize| format!("x{}", next + k);
        let _ = write!(
            text,
            "  {}: f64[2,3] = broadcast{{shape=[2,3], axes=[1]}} x1\n  {}: f64[2,3] = sin {}\n  {}: f64[2,3] = div {} 2.0:f64[2,3]\n  \
             {}: f64[3,2] = transpose{{axes=[1,0]}} x{x}\n  {}: f64[3,2] = neg {}\n  {}: f64[2,3] = transpose{{axes=[1,0]}} {}\n  \
             {}: f64[2,3] = add {} {}\n  {}: f64[2,3] = integer_pow{{exponent=2}} {}\n  {}: f64[2,3] = stop_gradient {}\n  \
             {}: f64[2,1,3] = reshape{{shape=[2,1,3]}} {}\n  {}: f64[2,3] = reshape{{shape=[2,3]}} {}\n",
            v(0),
            v(1),
            v(0),
            v(2),
            v(1),
            v(3),
            v(4),
            v(3),
            v(5),
            v(4),
            v(6),
            v(2),
            v(5),
            v(7),
            v(6),
            v(8),
            v(7),
            v(9),
            v(8),
            v(10),
            v(9),
        );
        x = next + 10;
        next += 11;
    }
    let _ = write!(text, "  return x{x}\n}}\n");
    parsed(&text)
}

fn work(p: &Program) -> u64 {
    let before = visited();
    for_execution(p, Exactness::Exact).unwrap();
    visited() - before
}

#[test]
fn the_work_grows_with_the_program_and_not_faster() {
    let (small, large) = (work(&chain(100)), work(&chain(800)));
    assert!(large <= 8 * small + small / 10, "{small} visits for 100 steps, {large} for 800");
    // Each of them is looked at, and by no pass often.
    assert!((100 * 11..=100 * 11 * 20).contains(&small), "{small} visits");
}

/// Adds a call of a program.
fn call(b: &mut Builder, program: &Arc<Program>, operands: &[Atom]) -> Vec<ValueId> {
    let op = Op::new(Call { program: program.clone() });
    b.equation(op, operands, Location::unknown()).unwrap().results().collect()
}

/// A function, called twice in a row by the next, and so on: written out it is 2ⁿ times the first.
fn doubling(depth: usize) -> Program {
    let mut p = parsed("fn f(x0: f64[]) -> f64[] {\n  x1: f64[] = sin x0\n  x2: f64[] = add x1 x0\n  return x2\n}\n");
    for _ in 0..depth {
        let inner = Arc::new(p);
        let mut b = Builder::new("twice");
        let x = b.input(inner.inputs()[0].clone()).unwrap();
        let y = call(&mut b, &inner, &[x.into()])[0];
        let z = call(&mut b, &inner, &[y.into()])[0];
        p = b.finish(vec![z.into()]);
    }
    p
}

#[test]
fn calls_of_calls_do_not_blow_up() {
    let p = doubling(50);
    let before = visited();
    let fast = for_execution(&p, Exactness::Exact).unwrap();
    verify(&fast).unwrap();
    assert!(visited() - before < 50_000, "{} visits", visited() - before);
    let shallow = doubling(3);
    let fast = for_execution(&shallow, Exactness::Exact).unwrap();
    assert_eq!(fast.count("call"), 0);
    let x = [Array::from(0.3_f64)];
    let (want, have) = (interpret(&shallow, &x).unwrap(), interpret(&fast, &x).unwrap());
    assert!(want[0].is_identical(&have[0]));
}

#[test]
fn products_into_sums_is_linear_too() {
    let work = |p: &Program| {
        let before = visited();
        run_passes(&[CONTRACT], p, Exactness::Exact, &mut |_, _, _| {}).unwrap();
        visited() - before
    };
    let (small, large) = (work(&chain(100)), work(&chain(800)));
    assert!(small >= 100, "{small} visits");
    assert!(large <= 8 * small + small / 10, "{small} visits for 100 steps, {large} for 800");
    // Written out these are 2⁵⁰ equations.
    let calls = work(&doubling(50));
    assert!(calls < 20_000, "{calls} visits");
}

#[test]
fn a_program_called_once_is_written_out_however_large() {
    let p = Arc::new(chain(50));
    let mut b = Builder::new("once");
    let inputs: Vec<Atom> = p.inputs().iter().map(|t| b.input(t.clone()).unwrap().into()).collect();
    let y = call(&mut b, &p, &inputs)[0];
    let fast = for_execution(&b.finish(vec![y.into()]), Exactness::Exact).unwrap();
    assert_eq!(fast.count("call"), 0);
    assert_eq!(fast.equations().len(), for_execution(&p, Exactness::Exact).unwrap().equations().len());
}

#[test]
fn a_checkpoint_computes_again_when_value_and_gradient_are_in_one_program() {
    let text = "fn f(x0: f64[4]) -> f64[] {\n  x1: f64[4] = checkpoint{program=fn g(x0: f64[4]) -> f64[4] {\n    \
        x1: f64[4] = sin x0\n    x2: f64[4] = exp x1\n    x3: f64[4] = tanh x2\n    return x3\n  }, policy=nothing} x0\n  \
        x2: f64[] = reduce_sum{axes=[0]} x1\n  return x2\n}\n";
    let halves = vjp(&parsed(text), &[true]).unwrap();
    let (primal, linear) = (Arc::new(halves.primal), Arc::new(halves.linear));
    let both = |with_value: bool| {
        let mut b = Builder::new("both");
        let x = b.input(primal.inputs()[0].clone()).unwrap();
        let first = call(&mut b, &primal, &[x.into()]);
        let mut operands: Vec<Atom> = first[1..].iter().map(|v| Atom::from(*v)).collect();
        let bar = linear.inputs()[operands.len()].clone();
        operands.push(b.constant(Constant::splat(bar, Scalar::F64(1.0))));
        let x_bar = call(&mut b, &linear, &operands)[0];
        let value = with_value.then(|| Atom::from(first[0]));
        let p = b.finish(value.into_iter().chain([x_bar.into()]).collect());
        for_execution(&p, Exactness::Exact).unwrap()
    };
    // The second half computes the first once more, and is kept apart from it.
    let p = both(true);
    assert_eq!((p.count("call"), p.count("checkpoint"), p.count("exp")), (0, 1, 2), "{p}");
    // Without the first half there is nothing to keep apart.
    let p = both(false);
    assert_eq!((p.count("call"), p.count("checkpoint"), p.count("exp")), (0, 0, 1), "{p}");
}

#[test]
fn passes_can_be_watched() {
    let mut seen = Vec::new();
    let p = chain(3);
    let fast = run_passes(EXECUTION_PASSES, &p, Exactness::Exact, &mut |name, program, _| {
        seen.push((name, program.equations().len()));
    })
    .unwrap();
    let names: Vec<&str> = seen.iter().map(|(name, _)| *name).collect();
    let wanted = [
        "inline",
        "simplify",
        "dead code",
        "checkpoints",
        "fission",
        "layout",
        "loops",
        "steps",
        "again",
        "boxes",
        "sum by rows",
        "expand",
        "strength",
        "dead code",
    ];
    assert_eq!(names, wanted);
    assert_eq!(seen.last().map(|(_, n)| *n), Some(fast.equations().len()));
}

fn shuffled(dice: &mut Source<'_>, n: usize) -> Vec<usize> {
    let mut all: Vec<usize> = (0..n).collect();
    (1..n).for_each(|i| all.swap(i, dice.below(i + 1)));
    all
}

/// A program of views, products and reductions under construction, one line at a time.
struct Lines {
    text: String,
    inputs: Vec<String>,
    next: usize,
}

impl Lines {
    fn add(&mut self, dims: &[usize], equation: &str) -> String {
        let name = format!("<{}>", self.next);
        self.next += 1;
        let _ = writeln!(self.text, "  {name}: i32{dims:?} = {equation}");
        name
    }

    /// A value of these dimensions, made of an input by views.
    fn value(&mut self, dice: &mut Source<'_>, dims: &[usize], views: usize) -> String {
        if views == 0 {
            self.inputs.push(format!("i32{dims:?}"));
            return format!("x{}", self.inputs.len() - 1);
        }
        match dice.below(4) {
            // A broadcast: some axes are not in the operand, or have size one there.
            0 => {
                let mut axes: Vec<usize> = (0..dims.len()).collect();
                axes.retain(|_| dice.below(2) == 0);
                let small: Vec<usize> = axes.iter().map(|a| if dice.below(4) == 0 { 1 } else { dims[*a] }).collect();
                let x = self.value(dice, &small, views - 1);
                self.add(dims, &format!("broadcast{{shape={dims:?}, axes={axes:?}}} {x}"))
            }
            1 => {
                let axes = shuffled(dice, dims.len());
                let mut from = vec![0; dims.len()];
                axes.iter().enumerate().for_each(|(to, a)| from[*a] = dims[to]);
                let x = self.value(dice, &from, views - 1);
                self.add(dims, &format!("transpose{{axes={axes:?}}} {x}"))
            }
            // A reshape that puts in or drops an axis of size one.
            2 => {
                let mut from = dims.to_vec();
                match from.iter().position(|d| *d == 1).filter(|_| dice.below(2) == 0) {
                    Some(at) => drop(from.remove(at)),
                    None => from.insert(dice.below(dims.len() + 1), 1),
                }
                let x = self.value(dice, &from, views - 1);
                self.add(dims, &format!("reshape{{shape={dims:?}}} {x}"))
            }
            _ => {
                let x = self.value(dice, dims, views - 1);
                let y = if dice.below(2) == 0 { x.clone() } else { self.value(dice, dims, views - 1) };
                self.add(dims, &format!("{} {x} {y}", ["add", "mul", "max"][dice.below(3)]))
            }
        }
    }

    fn finish(self, output: &str, dims: &[usize]) -> Program {
        let inputs: Vec<String> = self.inputs.iter().enumerate().map(|(i, t)| format!("x{i}: {t}")).collect();
        let head = format!("fn views({}) -> i32{dims:?} {{\n", inputs.join("; "));
        let mut text = format!("{head}{}  return {output}\n}}\n", self.text);
        // Values stand behind the inputs, whose number was not known before.
        for k in 0..self.next {
            text = text.replace(&format!("<{k}>"), &format!("x{}", inputs.len() + k));
        }
        // Dimensions are written without spaces.
        parsed(&text.replace(", ", ",").replace("],", "], ").replace("; ", ", "))
    }
}

#[test]
fn products_and_sums_of_views_keep_their_numbers() {
    let mut dots = 0;
    for seed in 0..600 {
        let mut dice = Source::seed(seed);
        let mut lines = Lines { text: String::new(), inputs: Vec::new(), next: 0 };
        let size = |dice: &mut Source<'_>| [1, 2, 3, 2][dice.below(4)];
        let sizes = |dice: &mut Source<'_>, n: usize| (0..n).map(|_| size(dice)).collect::<Vec<usize>>();
        let [shared, summed, left, right] = [2, 3, 3, 3].map(|n| {
            let n = dice.below(n);
            sizes(&mut dice, n)
        });
        // Each operand has its axes in an order of its own; the lists say where they are.
        let mut operand = |dice: &mut Source<'_>, own: &[usize]| {
            let all = [&shared[..], &summed[..], own].concat();
            let order = shuffled(dice, all.len());
            let dims: Vec<usize> = order.iter().map(|k| all[*k]).collect();
            let place = |k: usize| order.iter().position(|o| *o == k).unwrap();
            let batch: Vec<usize> = (0..shared.len()).map(place).collect();
            let contract: Vec<usize> = (shared.len()..shared.len() + summed.len()).map(place).collect();
            let free: Vec<usize> = (0..dims.len()).filter(|a| !batch.contains(a) && !contract.contains(a)).collect();
            let views = dice.below(4);
            (lines.value(dice, &dims, views), dims, batch, contract, free)
        };
        let (a, a_dims, a_batch, a_contract, a_free) = operand(&mut dice, &left);
        let (b, b_dims, b_batch, b_contract, b_free) = operand(&mut dice, &right);
        let mut dims = shared.clone();
        dims.extend(a_free.iter().map(|k| a_dims[*k]));
        dims.extend(b_free.iter().map(|k| b_dims[*k]));
        let mut y = lines.add(
            &dims,
            &format!("dot_general{{lhs_contract={a_contract:?}, rhs_contract={b_contract:?}, lhs_batch={a_batch:?}, rhs_batch={b_batch:?}}} {a} {b}"),
        );
        if dice.below(2) == 0 {
            let axes = shuffled(&mut dice, dims.len());
            dims = axes.iter().map(|k| dims[*k]).collect();
            y = lines.add(&dims, &format!("transpose{{axes={axes:?}}} {y}"));
        }
        if dice.below(2) == 0 {
            let mut axes: Vec<usize> = (0..dims.len()).collect();
            axes.retain(|_| dice.below(2) == 0);
            let reduce = ["reduce_sum", "reduce_max", "reduce_prod"][dice.below(3)];
            let kept: Vec<usize> = (0..dims.len()).filter(|k| !axes.contains(k)).map(|k| dims[k]).collect();
            let views = lines.value(&mut dice, &dims, 2);
            let (r, s) = (
                lines.add(&kept, &format!("{reduce}{{axes={axes:?}}} {y}")),
                lines.add(&kept, &format!("{reduce}{{axes={axes:?}}} {views}")),
            );
            dims = kept;
            y = lines.add(&dims, &format!("add {r} {s}"));
        }
        let p = lines.finish(&y, &dims);
        let fast = for_execution(&p, Exactness::Exact).unwrap();
        let mut source = Source::seed(seed);
        let inputs: Vec<Array> = p.inputs().iter().map(|t| random_array(&mut source, t, false)).collect();
        let (want, have) = (interpret(&p, &inputs).unwrap(), interpret(&fast, &inputs).unwrap());
        assert!(want[0].is_identical(&have[0]), "seed {seed}: {want:?} is not {have:?}\n{p}\n{fast}");
        dots += fast.count("dot_general");
    }
    assert!(dots > 100, "{dots} products are left to look at");
}

/// A recurrent layer and `sums` gradients by its weights, with axes in any order: what fission takes apart.
fn recurrent(dice: &mut Source<'_>, length: usize, sums: usize) -> Program {
    // What is stacked for a sum is smaller than the sum.
    let (b, n, m) = (1 + dice.below(3), 3 + dice.below(4), 1 + dice.below(5));
    let reverse = dice.below(2) == 1;
    let state = format!("f64[{b},{m}]");
    let mut inputs = format!("x0: f64[{n},{m}], x1: {state}");
    let (mut outputs, mut carried, mut equations) = (state.clone(), String::new(), String::new());
    let (mut returned, mut next) = (String::new(), 3 + sums);
    let mut line = |ty: &str, text: &str| {
        let _ = writeln!(equations, "    x{next}: {ty} = {text}");
        next += 1;
        format!("x{}", next - 1)
    };
    let dot = |a: usize, b: usize| {
        format!("dot_general{{lhs_contract=[{a}], rhs_contract=[{b}], lhs_batch=[], rhs_batch=[]}}")
    };
    let element = format!("x{}", 2 + sums);
    let product = line(&state, &format!("{} {element} x0", dot(1, 0)));
    let state_next = line(&state, &format!("add {product} x1"));
    let state_next = line(&state, &format!("tanh {state_next}"));
    for k in 0..sums {
        let turned = dice.below(2) == 1;
        let ty = if turned { format!("f64[{m},{n}]") } else { format!("f64[{n},{m}]") };
        let (mut left, mut axis) = (element.clone(), 0);
        if dice.below(2) == 1 {
            (left, axis) = (line(&format!("f64[{n},{b}]"), &format!("transpose{{axes=[1,0]}} {left}")), 1);
        }
        let right = line(&state, &format!("mul {state_next} {}.5:{state}", k + 1));
        let term = match dice.below(2) {
            0 if turned => line(&ty, &format!("{} {right} {left}", dot(0, axis))),
            _ => {
                let term = line(&format!("f64[{n},{m}]"), &format!("{} {left} {right}", dot(axis, 0)));
                if turned { line(&ty, &format!("transpose{{axes=[1,0]}} {term}")) } else { term }
            }
        };
        let sum = line(&ty, &format!("add x{} {term}", 2 + k));
        let _ = write!(inputs, ", x{}: {ty}", 2 + k);
        let _ = write!(outputs, ", {ty}");
        let _ = write!(carried, " x{}", 2 + k);
        let _ = write!(returned, ", {sum}");
    }
    let first = 3 + sums;
    let results: Vec<String> = outputs.split(", ").enumerate().map(|(i, ty)| format!("x{}: {ty}", first + i)).collect();
    let all: Vec<String> = (first..first + sums + 1).map(|i| format!("x{i}")).collect();
    parsed(&format!(
        "fn f({inputs}, {element}: f64[{length},{b},{n}]) -> ({outputs}) {{\n  {} = scan{{body=fn step({inputs}, {element}: f64[{b},{n}]) -> \
         ({outputs}) {{\n{equations}    return {state_next}{returned}\n  }}, consts=1, carries={}, length={length}, \
         reverse={reverse}}} x0 x1{carried} {element}\n  return {}\n}}\n",
        results.join(", "),
        1 + sums,
        all.join(", "),
    ))
}

#[test]
fn a_loop_without_its_products_gives_the_same_numbers() {
    for seed in 0..200 {
        let mut dice = Source::seed(seed);
        let (length, sums) = (dice.below(5), 1 + dice.below(3));
        let p = recurrent(&mut dice, length, sums);
        let fast = for_execution(&p, Exactness::Exact).unwrap();
        verify(&fast).unwrap();
        // The sums leave every loop of more than one step: what is left carries the state and stacks it.
        let carries = if length > 1 { "carries=1," } else { "consts=" };
        assert!(fast.to_string().contains(carries), "{p}{fast}");
        let inputs: Vec<Array> = p.inputs().iter().map(|t| random_array(&mut dice, t, true)).collect();
        let (want, have) = (interpret(&p, &inputs).unwrap(), interpret(&fast, &inputs).unwrap());
        for (a, b) in want.iter().zip(&have) {
            let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
            let close = |(x, y): (&f64, &f64)| (x - y).abs() <= 1e-9 * (1.0 + x.abs()) || (x.is_nan() && y.is_nan());
            assert!(a.len() == b.len() && a.iter().zip(&b).all(close), "{a:?}\n{b:?}\n{p}{fast}");
        }
    }
}

#[test]
fn taking_a_loop_apart_is_linear_in_what_it_adds_up() {
    let count = |sums: usize| work(&recurrent(&mut Source::seed(1), 8, sums));
    let (small, large) = (count(20), count(160));
    assert!(large <= 8 * small + small / 5, "{small} visits for 20 sums, {large} for 160");
}
