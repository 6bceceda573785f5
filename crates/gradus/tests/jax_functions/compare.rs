//! The comparison: a function of one to six arrays with every transformation that its line of the file has numbers for.

use std::collections::BTreeSet;

use gradus::prelude::*;
use serde_json::Value;

const HOW: &str = "make the file anew: see the head of scripts/reference/functions.py";

/// How far a number may be off, relative to itself or to a thousandth of the largest number beside it.
const TOLERANCE: f64 = 1e-10;

/// A function with the name of its line in the file.
pub struct Entry {
    pub name: &'static str,
    /// Applies the function and its transformations to the line's arguments.
    run: Box<dyn Fn(&Line) -> Vec<Computed>>,
    tolerance: f64,
    differences: Vec<Difference>,
}

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Of {
    Value,
    /// The gradient by one of the arguments.
    Grad(usize),
    /// The gradient by the first argument in forward mode.
    ForwardGrad,
    Hessian,
    Jacobian,
}

/// A result, and which transformation made it.
type Computed = (&'static str, Of, Array);

/// Where ours is another convention.
struct Difference {
    of: Of,
    ours: Vec<f64>,
    why: &'static str,
}

impl Entry {
    /// Here ours is different from JAX's on purpose. A gradient by the first argument is that of both modes.
    pub fn differs(mut self, of: Of, ours: impl Into<Vec<f64>>, why: &'static str) -> Entry {
        self.differences.push(Difference { of, ours: ours.into(), why });
        self
    }

    /// Numbers that may be further off. Whoever asks for it says why in a comment.
    pub fn tolerance(mut self, tolerance: f64) -> Entry {
        self.tolerance = tolerance;
        self
    }
}

/// An array of the file: its type, and the real and imaginary parts of its elements.
#[derive(Clone, Debug)]
struct Numbers {
    ty: String,
    elements: Vec<[f64; 2]>,
}

/// One line of the file.
pub struct Line {
    name: String,
    inputs: Vec<Array>,
    wanted: Vec<(Of, Numbers)>,
}

impl Line {
    fn read(text: &str) -> Line {
        let json: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
        let mut wanted = Vec::new();
        for (key, of) in [("value", Of::Value), ("hessian", Of::Hessian), ("jacobian", Of::Jacobian)] {
            wanted.extend(json.get(key).map(|v| (of, Numbers::read(v))));
        }
        for (i, gradient) in list("grad").iter().enumerate() {
            // An integer has no derivative in JAX, and here zeros of its type.
            let zeros = || Numbers::read(&json["inputs"][i]).zeros();
            wanted.push((Of::Grad(i), if gradient.is_null() { zeros() } else { Numbers::read(gradient) }));
        }
        let forward = json.get("forward_grad").or_else(|| json.get("grad").map(|g| &g[0]));
        wanted.extend(forward.map(|v| (Of::ForwardGrad, Numbers::read(v))));
        Line {
            name: json["name"].as_str().unwrap_or_default().to_string(),
            inputs: list("inputs").iter().map(|v| Numbers::read(v).array()).collect(),
            wanted,
        }
    }

    fn wants(&self, of: Of) -> bool {
        self.wanted.iter().any(|(o, _)| *o == of)
    }

    /// Whether forward mode by the first argument is compared: not by complex numbers, of which it has two directions.
    fn goes_forward(&self) -> bool {
        self.wants(Of::ForwardGrad) && self.inputs[0].dtype() == DType::F64
    }
}

impl Numbers {
    fn read(json: &Value) -> Numbers {
        let (Some(ty), Some(values)) = (json["type"].as_str(), json["values"].as_str()) else {
            panic!("not an array: {json}");
        };
        let real = |t: &str| match t {
            "true" => 1.0,
            "false" => 0.0,
            _ => t.parse().unwrap_or_else(|e| panic!("{e}: {t}")),
        };
        let element = |t: &str| match t.strip_prefix('(').and_then(|t| t.strip_suffix(')')?.split_once(',')) {
            Some((re, im)) => [real(re), real(im)],
            None => [real(t), 0.0],
        };
        Numbers { ty: ty.to_string(), elements: values.split_whitespace().map(element).collect() }
    }

    fn of(array: &Array) -> Result<Numbers> {
        let ty = array.ty()?.to_string();
        let parts = array.cast(DType::C128).to_vec::<Complex<f64>>()?;
        Ok(Numbers { ty, elements: parts.iter().map(|z| [z.re, z.im]).collect() })
    }

    fn array(&self) -> Array {
        let spec = Array::spec(&self.ty);
        let parts = self.elements.iter().map(|[re, im]| Complex::new(*re, *im)).collect();
        let array = Array::from_vec::<Complex<f64>>(parts, spec.shape());
        if spec.dtype().is_complex() { array } else { array.real().cast(spec.dtype()) }
    }

    fn zeros(mut self) -> Numbers {
        self.elements.iter_mut().for_each(|e| *e = [0.0, 0.0]);
        self
    }

    /// The first place at which another is too far off.
    fn too_far(&self, other: &Numbers, tolerance: f64) -> Option<usize> {
        let finite = self.elements.iter().flatten().filter(|v| v.is_finite());
        let largest = finite.fold(0.0, |m: f64, v| m.max(v.abs()));
        let near = |want: [f64; 2], have: [f64; 2]| {
            let size = want[0].hypot(want[1]).max(largest / 1000.0);
            let close = |w: f64, h: f64| w == h || (w.is_nan() && h.is_nan()) || (w - h).abs() <= tolerance * size;
            close(want[0], have[0]) && close(want[1], have[1])
        };
        (0..self.elements.len().max(other.elements.len()))
            .find(|i| !matches!((self.elements.get(*i), other.elements.get(*i)), (Some(w), Some(h)) if near(*w, *h)))
    }
}

macro_rules! arities {
    ($($make:ident($($x:ident $t:ident),*);)*) => {$(
        /// A function of so many arrays.
        #[allow(dead_code)]
        pub fn $make(name: &'static str, f: fn($(&$t),*) -> Array) -> Entry {
            let run = move |line: &Line| -> Vec<Computed> {
                let [$($x),*] = line.inputs.as_slice() else { panic!("`{name}` takes other arguments; {HOW}") };
                let mut all = vec![("f", Of::Value, f($($x),*)), ("jit(f)", Of::Value, jit(f)($($x),*))];
                if line.wants(Of::Jacobian) {
                    all.push(("jacfwd(f)", Of::Jacobian, jacfwd(f)($($x),*)));
                    all.push(("jit(jacfwd(f))", Of::Jacobian, jit(jacfwd(f))($($x),*)));
                    all.push(("jacrev(f)", Of::Jacobian, jacrev(f)($($x),*)));
                    all.push(("jit(jacrev(f))", Of::Jacobian, jit(jacrev(f))($($x),*)));
                }
                if line.goes_forward() {
                    all.push(("jacfwd(f)", Of::ForwardGrad, jacfwd(f)($($x),*)));
                    all.push(("jit(jacfwd(f))", Of::ForwardGrad, jit(jacfwd(f))($($x),*)));
                }
                if line.wants(Of::Grad(0)) {
                    let (value, gradient) = jit(value_and_grad(f))($($x),*);
                    all.push(("jit(value_and_grad(f))", Of::Value, value));
                    all.push(("jit(value_and_grad(f))", Of::Grad(0), gradient));
                    all.push(("grad(f)", Of::Grad(0), grad(f)($($x),*)));
                    all.push(("jit(grad(f))", Of::Grad(0), jit(grad(f))($($x),*)));
                    for (i, gradient) in grad_all(f)($($x),*).leaves().into_iter().enumerate() {
                        all.push(("grad_all(f)", Of::Grad(i), gradient));
                    }
                    for (i, gradient) in jit(grad_all(f))($($x),*).leaves().into_iter().enumerate() {
                        all.push(("jit(grad_all(f))", Of::Grad(i), gradient));
                    }
                }
                if line.wants(Of::Hessian) {
                    all.push(("jacfwd(jacfwd(f))", Of::Hessian, jacfwd(jacfwd(f))($($x),*)));
                    all.push(("hessian(f)", Of::Hessian, hessian(f)($($x),*)));
                    all.push(("jit(hessian(f))", Of::Hessian, jit(hessian(f))($($x),*)));
                    all.push(("jacrev(grad(f))", Of::Hessian, jacrev(grad(f))($($x),*)));
                }
                all
            };
            Entry { name, run: Box::new(run), tolerance: TOLERANCE, differences: Vec::new() }
        }
    )*};
}
arities! {
    one(a Array);
    two(a Array, b Array);
    three(a Array, b Array, c Array);
    four(a Array, b Array, c Array, d Array);
    five(a Array, b Array, c Array, d Array, e Array);
    six(a Array, b Array, c Array, d Array, e Array, g Array);
}

/// The lines of a file.
pub fn lines(text: &str) -> Vec<Line> {
    text.lines().map(Line::read).collect()
}

/// What is wrong with a function, by its line of the file.
pub fn wrong(entry: &Entry, lines: &[Line]) -> Vec<String> {
    lines.iter().find(|l| l.name == entry.name).map(|line| check(entry, line)).unwrap_or_default()
}

/// Compares every function with its line of the file; there are no others on either side.
pub fn compare(all: &[Entry], text: &str) {
    let lines = lines(text);
    let here: BTreeSet<&str> = all.iter().map(|e| e.name).collect();
    let there: BTreeSet<&str> = lines.iter().map(|l| l.name.as_str()).collect();
    assert_eq!((here.len(), there.len()), (all.len(), lines.len()), "a name stands twice");
    let alone: Vec<_> = here.symmetric_difference(&there).collect();
    assert!(alone.is_empty(), "only in the table or only in the file: {alone:?}; {HOW}");
    let wrong: Vec<String> = all.iter().flat_map(|entry| wrong(entry, &lines)).collect();
    assert!(wrong.is_empty(), "{} results differ\n\n{}", wrong.len(), wrong.join("\n\n"));
}

fn check(entry: &Entry, line: &Line) -> Vec<String> {
    let (name, mut wrong, mut wanted) = (entry.name, Vec::new(), line.wanted.clone());
    for Difference { of, ours, why } in &entry.differences {
        let Some((_, jax)) = line.wanted.iter().find(|(o, _)| o == of) else {
            wrong.push(format!("`{name}` differs in {of:?}, which the file has not; {HOW}"));
            continue;
        };
        let ours = Numbers { ty: jax.ty.clone(), elements: ours.iter().map(|v| [*v, 0.0]).collect() };
        if jax.too_far(&ours, entry.tolerance).is_none() {
            wrong.push(format!("`{name}`: {of:?} is no longer different ({why})"));
        }
        // Both modes of ours have the same gradient.
        let both = |o: Of| o == *of || (*of, o) == (Of::Grad(0), Of::ForwardGrad);
        wanted.iter_mut().filter(|(o, _)| both(*o)).for_each(|(_, n)| *n = ours.clone());
    }
    let mut seen = Vec::new();
    for (way, of, array) in (entry.run)(line) {
        seen.push(of);
        let Some((_, want)) = wanted.iter().find(|(o, _)| *o == of) else { continue };
        let have = match Numbers::of(&array) {
            Ok(have) => have,
            Err(e) => {
                wrong.push(format!("`{name}`, {way}: {e}"));
                continue;
            }
        };
        if have.ty != want.ty {
            wrong.push(format!("`{name}`, {of:?} by {way}: {} where {} is expected", have.ty, want.ty));
        } else if let Some(i) = want.too_far(&have, entry.tolerance) {
            let (have, want) = (&have.elements, &want.elements);
            wrong.push(format!(
                "`{name}`, {of:?} by {way}: element {i} is {:?} where {:?} is expected\n  have {have:?}\n  want {want:?}",
                have.get(i),
                want.get(i)
            ));
        }
    }
    let left_out = |of: &Of| *of == Of::ForwardGrad && !line.goes_forward();
    for (of, _) in wanted.iter().filter(|(of, _)| !seen.contains(of) && !left_out(of)) {
        wrong.push(format!("`{name}`: nothing was compared with {of:?}"));
    }
    wrong
}
