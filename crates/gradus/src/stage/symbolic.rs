//! Declared dimensions: which axes of which arguments are symbols, so that one program serves all their sizes.
//!
//! A declaration is read once and compared with the arguments of each call: what it leaves open (`_`) stays as it comes, what it names
//! must fit, and a symbol fits every size. Whether one symbol has one size everywhere is checked when the program runs.

use gradus_core::array::Form;
use gradus_core::error::counted;
use gradus_core::{Array, Constraint, DType, Dim, Error, ErrorKind, Location, Result, Type};

use super::Replace;
use crate::arguments::Arguments;
use crate::tree::{Frozen, Segment, Visitor};

/// The text of a declaration, and what it says: `"_, f32[B, 16] where B >= 1"`.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    text: String,
    place: Location,
    arguments: Vec<Argument>,
    pub(super) constraints: Vec<Constraint>,
}

/// What is said of one argument.
#[derive(Clone, Debug)]
enum Argument {
    /// It stays as it comes: `_`.
    Open,
    /// Its only array: `f32[B, 16]`.
    One(Leaf),
    /// Its arrays in order: `(f32[B, 16], _)`.
    Each(Vec<Option<Leaf>>),
}

/// What is said of one array; what is open is none.
#[derive(Clone, Debug)]
struct Leaf {
    text: String,
    dtype: Option<DType>,
    dims: Vec<Option<Dim>>,
}

fn wrong(place: Location, text: &str, why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Parse, format!("the declaration `{text}` cannot be read: {why}"))
        .at(place)
        .help("write what each argument is, separated by commas: `_` for one that stays as it comes, a type such as `f32[B, 16]` with \
               symbols for sizes that vary, `(f32[B, 16], _)` for the arrays of a structure; after `where`, conditions such as `B >= 1, B % 8 == 0`")
}

impl Declared {
    pub(crate) fn read(text: &str, place: Location) -> Result<Declared> {
        let wrong = |why: String| wrong(place, text, why);
        let (types, conditions) = match text.split_once(" where ") {
            Some((types, conditions)) => (types, Some(conditions)),
            None => (text, None),
        };
        let arguments = parts(types)
            .map_err(wrong)?
            .into_iter()
            .map(|part| match part.strip_prefix('(').and_then(|p| p.strip_suffix(')')) {
                Some(inside) => Ok(Argument::Each(
                    parts(inside)?.into_iter().map(Leaf::read).collect::<std::result::Result<Vec<_>, String>>()?,
                )),
                None => Ok(Leaf::read(part)?.map_or(Argument::Open, Argument::One)),
            })
            .collect::<std::result::Result<Vec<_>, String>>()
            .map_err(wrong)?;
        let constraints = match conditions {
            Some(list) => parts(list)
                .map_err(wrong)?
                .into_iter()
                .map(|c| c.parse::<Constraint>().map_err(|e| wrong(format!("`{c}`: {e}"))))
                .collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let declared = Declared { text: text.to_string(), place, arguments, constraints };
        let known = declared.symbols();
        for c in &declared.constraints {
            if let Some(s) = c.symbols().into_iter().find(|s| !known.contains(&s.to_string())) {
                return Err(wrong(format!("the condition `{c}` speaks of {s}, which stands in no type")));
            }
        }
        Ok(declared)
    }

    fn symbols(&self) -> Vec<String> {
        let leaves = self.arguments.iter().flat_map(|a| match a {
            Argument::Open => Vec::new(),
            Argument::One(leaf) => vec![leaf],
            Argument::Each(leaves) => leaves.iter().flatten().collect(),
        });
        leaves.flat_map(|l| l.dims.iter().flatten()).flat_map(Dim::symbols).map(|s| s.to_string()).collect()
    }

    /// Whether the declared conditions hold for arrays of these sizes, in the place of the symbols of others.
    pub(super) fn holds(&self, symbolic: &[Array], sizes: &[Array]) -> bool {
        let pairs = symbolic.iter().zip(sizes).flat_map(|(a, b)| a.shape().iter().zip(b.shape().iter()));
        let told: Vec<_> = pairs.filter_map(|(symbol, size)| symbol.solve_for(size.constant()?)).collect();
        let number = |name: &str| told.iter().find(|(symbol, _)| **symbol == *name).map(|(_, number)| *number);
        self.constraints.iter().all(|c| c.check(&number).unwrap_or(false))
    }

    /// The arguments with declared arrays replaced by their types. Values of an outer trace stay: their dimensions are that trace's.
    pub(super) fn apply<A: Arguments>(&self, args: A::Refs<'_>, name: &str) -> Result<A> {
        let mut places = Places::default();
        A::visit_all(args, &mut places);
        if places.arguments != self.arguments.len() {
            let (takes, declared) = (places.arguments, self.arguments.len());
            let s = if takes == 1 { "" } else { "s" };
            return Err(Error::new(
                ErrorKind::Signature,
                format!("`{name}` takes {takes} argument{s}, and `{}` declares {declared}", self.text),
            )
            .at(self.place)
            .help("give each argument its entry: `_` for one that stays as it comes"));
        }
        let mut error = None;
        let mut next = places.leaves.iter();
        let declared = A::map_all(
            args,
            &mut Replace(|a: &Array| {
                let declared =
                    next.next().and_then(|(argument, leaf, of)| self.leaf(*argument, *leaf, *of).transpose());
                match declared {
                    Some(Ok(leaf)) => match leaf.fit(a) {
                        Ok(replaced) => replaced,
                        Err(why) => {
                            let i = places.leaves.len() - next.len() - 1;
                            let place = &places.paths[i];
                            error.get_or_insert_with(|| misfit(name, place, a, leaf, &why, self.place));
                            a.clone()
                        }
                    },
                    Some(Err(why)) => {
                        error.get_or_insert_with(|| wrong(self.place, &self.text, why));
                        a.clone()
                    }
                    None => a.clone(),
                }
            }),
        );
        match error {
            Some(e) => Err(e),
            None => Ok(declared),
        }
    }

    /// What is said of an array: the `leaf`-th of `of` in an argument.
    fn leaf(&self, argument: usize, leaf: usize, of: usize) -> std::result::Result<Option<&Leaf>, String> {
        match self.arguments.get(argument) {
            None | Some(Argument::Open) => Ok(None),
            Some(Argument::One(one)) if of == 1 => Ok(Some(one)),
            Some(Argument::One(one)) => Err(format!(
                "argument {argument} has {}, and `{}` is one: write `(...)` with an entry for each",
                counted(of, "array"),
                one.text
            )),
            Some(Argument::Each(all)) if all.len() == of => Ok(all[leaf].as_ref()),
            Some(Argument::Each(all)) => {
                Err(format!("argument {argument} has {}, and {} are declared", counted(of, "array"), all.len()))
            }
        }
    }
}

fn misfit(name: &str, path: &str, have: &Array, want: &Leaf, why: &str, declared: Location) -> Error {
    let have = have.ty().map_or_else(|_| "an error".to_string(), Type::to_string);
    Error::new(ErrorKind::Signature, format!("{path} of `{name}` is {have} where {} is declared: {why}", want.text))
        .at(declared)
        .help("call it with what was declared, or declare a dimension that varies as a symbol")
}

impl Leaf {
    /// A type with open parts; none for `_`.
    fn read(text: &str) -> std::result::Result<Option<Leaf>, String> {
        if text == "_" {
            return Ok(None);
        }
        let (dtype, dims) = match text.split_once('[') {
            Some((dtype, rest)) => {
                let inside = rest.strip_suffix(']').ok_or_else(|| format!("`{text}` has no closing bracket"))?;
                (dtype.trim(), if inside.trim().is_empty() { Vec::new() } else { parts(inside)? })
            }
            None => (text, Vec::new()),
        };
        let dtype = match dtype {
            "_" => None,
            d => Some(d.parse::<DType>().map_err(|_| format!("`{d}` is no element type"))?),
        };
        let dims = dims
            .into_iter()
            .map(|d| match d {
                "_" => Ok(None),
                d => d.parse::<Dim>().map(Some).map_err(|e| format!("`{d}`: {e}")),
            })
            .collect::<std::result::Result<Vec<_>, String>>()?;
        Ok(Some(Leaf { text: text.to_string(), dtype, dims }))
    }

    /// The type that stands for an array, or why it does not fit.
    fn fit(&self, a: &Array) -> std::result::Result<Array, String> {
        if matches!(a.form(), Form::Traced(_)) {
            return Ok(a.clone());
        }
        let Ok(ty) = a.ty() else { return Ok(a.clone()) };
        if let Some(dtype) = self.dtype.filter(|d| *d != ty.dtype()) {
            return Err(format!("its elements are {}, not {dtype}", ty.dtype()));
        }
        if ty.rank() != self.dims.len() {
            return Err(format!("it has {}, not {}", counted(ty.rank(), "axis"), self.dims.len()));
        }
        let mut dims = Vec::with_capacity(self.dims.len());
        for (axis, (want, have)) in self.dims.iter().zip(ty.shape().iter()).enumerate() {
            match want {
                None => dims.push(have.clone()),
                Some(want) => {
                    if want.constant().is_some() && have.constant().is_some() && want != have {
                        return Err(format!("dimension {axis} is {have}, not {want}"));
                    }
                    dims.push(want.clone());
                }
            }
        }
        Ok(Array::of_type(Type::new(ty.dtype(), dims)))
    }
}

/// Splits at commas outside of brackets and parentheses.
fn parts(text: &str) -> std::result::Result<Vec<&str>, String> {
    let (mut depth, mut start, mut found) = (0i32, 0, Vec::new());
    for (i, c) in text.char_indices() {
        match c {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
        if depth < 0 {
            return Err("a bracket closes that was not opened".into());
        }
    }
    if depth != 0 {
        return Err("a bracket is not closed".into());
    }
    found.push(text[start..].trim());
    if found.iter().any(|p| p.is_empty()) {
        return Err("there is nothing between two commas, or no text at all".into());
    }
    Ok(found)
}

/// For every array of a call: its argument, its number there, how many there are, and the way to it.
#[derive(Default)]
struct Places {
    arguments: usize,
    depth: usize,
    leaves: Vec<(usize, usize, usize)>,
    paths: Vec<String>,
    path: Vec<String>,
}

impl Visitor for Places {
    fn enter(&mut self, segment: Segment<'_>) {
        let text = match segment {
            Segment::Index(i) if self.depth == 0 => format!("argument {i}"),
            other => other.to_string(),
        };
        if self.depth == 0 {
            self.arguments += 1;
        }
        self.path.push(text);
        self.depth += 1;
    }
    fn leave(&mut self) {
        self.depth -= 1;
        self.path.pop();
        if self.depth == 0 {
            let argument = self.arguments - 1;
            let of = self.leaves.iter().filter(|l| l.0 == argument).count();
            self.leaves.iter_mut().filter(|l| l.0 == argument).for_each(|l| l.2 = of);
        }
    }
    fn structure(&mut self, _: &str, _: usize) {}
    fn array(&mut self, _: &Array) {
        let argument = self.arguments - 1;
        let number = self.leaves.iter().filter(|l| l.0 == argument).count();
        self.leaves.push((argument, number, 0));
        self.paths.push(self.path.concat());
    }
    fn frozen(&mut self, _: &dyn Frozen) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_read_or_refused() {
        let read = |text: &str| Declared::read(text, Location::unknown());
        let d = read("_, f32[B, 2*B+1], (f64[_, B], _), _[N] where B >= 1, N % 8 == 0").unwrap();
        assert_eq!(d.arguments.len(), 4);
        assert_eq!(d.constraints.len(), 2);
        for text in ["", "f32[B", "f99[B]", "f32[B],,_", "f32[B*]", "f32[B] where C >= 1", "f32[B] where B", "f32[B])"]
        {
            let e = read(text).unwrap_err();
            assert!(e.to_string().contains("cannot be read"), "{text}: {e}");
        }
    }
}
