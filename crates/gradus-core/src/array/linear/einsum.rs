//! `einsum`: sums of products written with index letters. Operands are reduced one by one (diagonals, sums over letters
//! that nobody else has), then contracted in pairs, the pair with the smallest result first.

use std::collections::BTreeMap;

use super::contract;
use crate::array::Array;
use crate::array::operand::checked;
use crate::array::shaping::{apply, collect_arrays, promoted};
use crate::error::{Error, Result, counted, error, fail};
use crate::primitives::reduce::ReduceSum;
use crate::types::{Decision, Dim, Shape};

/// A letter, or one of the axes that `...` stands for, counted from the last.
type Label = u32;
/// Above every letter.
const DOTS: Label = 0x11_0000;

/// What stands in a term.
#[derive(Clone, Copy, PartialEq)]
enum Symbol {
    Letter(char),
    Dots,
}

/// A symbol and where it stands, in characters.
type Placed = (Symbol, usize);

/// An equation as written.
struct Equation {
    /// Each term with the place it starts at.
    inputs: Vec<(Vec<Placed>, usize)>,
    output: Option<Vec<Placed>>,
}

/// An error that points at a character of the equation.
#[cold]
fn bad(equation: &str, at: usize, message: String) -> Error {
    // Only the surroundings: an equation may be a million characters long, and its control characters do not line up.
    let from = at.saturating_sub(40);
    let near: String = equation.chars().skip(from).take(80).map(|c| if c.is_control() { ' ' } else { c }).collect();
    error!(Parse, "`einsum`: {message} (character {at})").note(format!("{near}\n        {}^", " ".repeat(at - from)))
}

fn parse(equation: &str) -> Result<Equation> {
    let mut inputs = Vec::new();
    let mut term: Vec<Placed> = Vec::new();
    let mut start = 0;
    let mut arrow = false;
    let mut chars = equation.chars().enumerate().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c.is_whitespace() => {}
            'a'..='z' | 'A'..='Z' => term.push((Symbol::Letter(c), at)),
            '.' => {
                for _ in 0..2 {
                    if chars.next_if(|(_, c)| *c == '.').is_none() {
                        return Err(bad(equation, at, "an ellipsis is written with three dots".to_string()));
                    }
                }
                if term.iter().any(|(s, _)| *s == Symbol::Dots) {
                    return Err(bad(equation, at, "a term has one ellipsis at most".to_string()));
                }
                term.push((Symbol::Dots, at));
            }
            ',' if !arrow => {
                inputs.push((std::mem::take(&mut term), start));
                start = at + 1;
            }
            ',' => return Err(bad(equation, at, "there is one result, so no comma after `->`".to_string())),
            '-' if chars.next_if(|(_, c)| *c == '>').is_some() => {
                if arrow {
                    return Err(bad(equation, at, "`->` stands once".to_string()));
                }
                arrow = true;
                inputs.push((std::mem::take(&mut term), start));
            }
            _ => {
                let what = format!("unexpected `{}`, wanted a letter, `...`, `,` or `->`", c.escape_debug());
                return Err(bad(equation, at, what));
            }
        }
    }
    if arrow {
        return Ok(Equation { inputs, output: Some(term) });
    }
    inputs.push((term, start));
    Ok(Equation { inputs, output: None })
}

/// An operand on its way: an array and the label of each of its axes.
struct Term {
    array: Array,
    labels: Vec<Label>,
}

fn name(label: Label) -> String {
    char::from_u32(label).map_or_else(|| "...".to_string(), |c| c.to_string())
}

/// The labels of an operand's axes.
fn labels_of(equation: &str, (term, start): &(Vec<Placed>, usize), number: usize, array: &Array) -> Result<Vec<Label>> {
    let ty = array.ty()?;
    let letters = term.iter().filter(|(s, _)| *s != Symbol::Dots).count();
    let dots = letters != term.len();
    let extra = match ty.rank().checked_sub(letters) {
        Some(extra) if dots || extra == 0 => extra,
        _ => {
            let at_least = if dots { "at least " } else { "" };
            let what = format!("the term names {at_least}{}, but operand {number} is {ty}", counted(letters, "axis"));
            return Err(bad(equation, *start, what));
        }
    };
    let mut labels = Vec::with_capacity(ty.rank());
    for (symbol, _) in term {
        match symbol {
            Symbol::Letter(c) => labels.push(*c as Label),
            Symbol::Dots => labels.extend((0..extra).rev().map(|k| DOTS + k as Label)),
        }
    }
    Ok(labels)
}

/// The labels of the result: as written, or those that stand once, in the order of the alphabet after the ellipsis.
fn output_labels(equation: &str, output: Option<&[Placed]>, terms: &[Term]) -> Result<Vec<Label>> {
    let mut times: BTreeMap<Label, usize> = BTreeMap::new();
    for label in terms.iter().flat_map(|t| &t.labels) {
        *times.entry(*label).or_default() += 1;
    }
    let dots = || times.keys().rev().copied().filter(|l| *l >= DOTS);
    let Some(output) = output else {
        let once = times.iter().filter(|(l, n)| **l < DOTS && **n == 1).map(|(l, _)| *l);
        return Ok(dots().chain(once).collect());
    };
    let mut labels = Vec::new();
    for (symbol, at) in output {
        match symbol {
            Symbol::Dots => labels.extend(dots()),
            Symbol::Letter(c) => {
                if labels.contains(&(*c as Label)) {
                    return Err(bad(equation, *at, format!("`{c}` stands twice in the result")));
                }
                if !times.contains_key(&(*c as Label)) {
                    return Err(bad(equation, *at, format!("`{c}` of the result stands in no operand")));
                }
                labels.push(*c as Label);
            }
        }
    }
    if dots().next().is_some() && !output.iter().any(|(s, _)| *s == Symbol::Dots) {
        let at = output.first().map_or(equation.chars().count(), |(_, at)| *at);
        return Err(bad(
            equation,
            at,
            "the operands have axes under `...`, which the result does not name".to_string(),
        ));
    }
    Ok(labels)
}

/// The size of every label. An axis of size 1 fits any size.
fn sizes_of(terms: &[Term]) -> Result<BTreeMap<Label, Dim>> {
    let mut sizes: BTreeMap<Label, (Dim, usize)> = BTreeMap::new();
    for (number, term) in terms.iter().enumerate() {
        let ty = term.array.ty()?;
        for (i, (label, dim)) in term.labels.iter().zip(ty.shape().iter()).enumerate() {
            let twin = term.labels.iter().take(i).position(|l| l == label);
            if let Some(first) = twin.and_then(|i| ty.shape().get(i)).filter(|d| d.equals(dim) == Decision::No) {
                fail!(
                    Shape,
                    "`einsum`: `{}` is both {first} and {dim} in operand {number}, which is {ty}",
                    name(*label)
                );
            }
            match sizes.get(label) {
                Some((size, _)) if size.constant() != Some(1) => {
                    if dim.constant() != Some(1) && size.equals(dim) == Decision::No {
                        let other = sizes
                            .get(label)
                            .and_then(|(_, n)| terms.get(*n))
                            .map_or(ty, |t| t.array.ty().unwrap_or(ty));
                        fail!(Shape, "`einsum`: `{}` is {size} in {other} and {dim} in {ty}", name(*label));
                    }
                }
                _ => drop(sizes.insert(*label, (dim.clone(), number))),
            }
        }
    }
    Ok(sizes.into_iter().map(|(label, (dim, _))| (label, dim)).collect())
}

impl Term {
    /// Takes diagonals, drops axes of size 1 that others have larger, and sums over what nobody else needs.
    #[track_caller]
    fn simplified(mut self, sizes: &BTreeMap<Label, Dim>, needed: impl Fn(Label) -> bool) -> Result<Term> {
        while let Some((first, second)) = self.twins() {
            self.array = self.array.try_diagonal(0, first as isize, second as isize)?;
            let label = self.labels.remove(second);
            self.labels.remove(first);
            self.labels.push(label);
        }
        let one = |d: &Dim| d.constant() == Some(1);
        let spare = |(label, dim): (&Label, &Dim)| one(dim) && sizes.get(label).is_some_and(|d| !one(d));
        let drop: Vec<bool> = self.labels.iter().zip(self.array.shape().iter()).map(spare).collect();
        if drop.contains(&true) {
            let dropped = |i: usize| drop.get(i) == Some(&true);
            self.array = self.array.try_reshape(self.array.shape().without(dropped))?;
            let mut i = 0;
            self.labels.retain(|_| {
                i += 1;
                !dropped(i - 1)
            });
        }
        let axes: Vec<usize> =
            (0..self.labels.len()).filter(|i| !self.labels.get(*i).is_some_and(|l| needed(*l))).collect();
        if !axes.is_empty() {
            self.array = apply(ReduceSum { axes }, &[self.array])?;
            self.labels.retain(|l| needed(*l));
        }
        Ok(self)
    }

    /// Two axes with the same label.
    fn twins(&self) -> Option<(usize, usize)> {
        (1..self.labels.len()).find_map(|j| {
            let first = self.labels.iter().take(j).position(|l| Some(l) == self.labels.get(j))?;
            Some((first, j))
        })
    }

    fn place(&self, label: Label) -> Option<usize> {
        self.labels.iter().position(|l| *l == label)
    }

    /// The axes of some labels, all of which it has.
    fn places(&self, labels: &[Label]) -> Vec<usize> {
        labels.iter().filter_map(|l| self.place(*l)).collect()
    }

    /// The product with another operand, summed over what is not `needed` any more.
    #[track_caller]
    fn times(&self, other: &Term, needed: impl Fn(Label) -> bool) -> Result<Term> {
        let both: Vec<Label> = self.labels.iter().copied().filter(|l| other.place(*l).is_some()).collect();
        let (batch, summed): (Vec<Label>, Vec<Label>) = both.into_iter().partition(|l| needed(*l));
        let own: Vec<Label> = self.labels.iter().copied().filter(|l| other.place(*l).is_none()).collect();
        let others: Vec<Label> = other.labels.iter().copied().filter(|l| self.place(*l).is_none()).collect();
        let array = if summed.is_empty() {
            // Nothing to sum over: a plain product, with axes lined up.
            let left = self.array.permuted(self.places(&[&batch[..], &own[..]].concat()))?;
            let right = other.array.permuted(other.places(&[&batch[..], &others[..]].concat()))?;
            let wide: Shape = left.shape().iter().cloned().chain(others.iter().map(|_| Dim::from(1usize))).collect();
            let (mut shared, free) = (right.shape().to_vec(), right.shape().to_vec());
            shared.truncate(batch.len());
            shared.extend(own.iter().map(|_| Dim::from(1usize)));
            shared.extend(free.into_iter().skip(batch.len()));
            (&left.try_reshape(wide)? * &right.try_reshape(shared.into())?).ok()?
        } else {
            let axes = (self.places(&summed), other.places(&summed));
            contract(&self.array, &other.array, axes, (self.places(&batch), other.places(&batch)))?
        };
        Ok(Term { array, labels: [batch, own, others].concat() })
    }
}

/// Beyond this many operands looking at every pair costs more than a bad order.
const MANY: usize = 64;

/// The next pair to contract: the one whose result is smallest beside what it replaces.
fn best_pair(terms: &[Term], sizes: &BTreeMap<Label, Dim>, output: &[Label]) -> (usize, usize) {
    if terms.len() > MANY {
        return (0, 1);
    }
    // A symbolic size is taken for a middling one; only the order of contractions hangs on it.
    let size = |labels: &[Label]| -> f64 {
        labels.iter().map(|l| sizes.get(l).and_then(Dim::constant).map_or(64.0, |c| c as f64)).product()
    };
    let mut times: BTreeMap<Label, usize> = BTreeMap::new();
    for label in terms.iter().flat_map(|t| &t.labels) {
        *times.entry(*label).or_default() += 1;
    }
    let mut best = (0, 1);
    let mut least = f64::INFINITY;
    for (j, b) in terms.iter().enumerate() {
        for (i, a) in terms.iter().enumerate().take(j) {
            let stays = |l: &Label, here: usize| output.contains(l) || times.get(l).copied().unwrap_or(0) > here;
            let mut labels: Vec<Label> = Vec::new();
            for l in &a.labels {
                if stays(l, if b.place(*l).is_some() { 2 } else { 1 }) {
                    labels.push(*l);
                }
            }
            labels.extend(b.labels.iter().filter(|l| a.place(**l).is_none() && stays(l, 1)));
            let cost = size(&labels) - size(&a.labels) - size(&b.labels);
            if cost < least {
                (best, least) = ((i, j), cost);
            }
        }
    }
    best
}

impl Array {
    /// A sum of products by index letters: `einsum("ij,jk->ik", [&a, &b])` is the matrix product.
    ///
    /// Letters that are not in the result are summed over; a letter that stands twice in one operand is its diagonal;
    /// `...` stands for the axes that are left, which broadcast. Without `->` the result has the axes under `...` and
    /// then the letters that stand once, in the order of the alphabet (capitals first). An axis of size 1 fits any.
    ///
    /// ```
    /// # use gradus_core::Array;
    /// let a = Array::from([[1.0, 2.0], [3.0, 4.0]]);
    /// assert_eq!(Array::einsum("ii", [&a]).item::<f64>().unwrap(), 5.0);
    /// assert_eq!(Array::einsum("ij->j", [&a]).to_vec::<f64>().unwrap(), [4.0, 6.0]);
    /// ```
    #[doc(alias = "dot_general")]
    #[track_caller]
    pub fn einsum<I>(equation: &str, operands: I) -> Array
    where
        I: IntoIterator,
        I::Item: AsRef<Array>,
    {
        checked(Array::try_einsum(equation, collect_arrays(operands)))
    }

    #[track_caller]
    fn try_einsum(equation: &str, operands: Result<Vec<Array>>) -> Result<Array> {
        let operands = operands?;
        let parsed = parse(equation)?;
        if parsed.inputs.len() != operands.len() {
            let at = parsed.inputs.get(operands.len()).map_or(equation.chars().count(), |(_, start)| *start);
            let what = format!("{} terms for {} operands", parsed.inputs.len(), operands.len());
            return Err(bad(equation, at, what));
        }
        let operands = promoted(operands)?;
        let mut terms = Vec::with_capacity(operands.len());
        for (number, (array, term)) in operands.into_iter().zip(&parsed.inputs).enumerate() {
            terms.push(Term { labels: labels_of(equation, term, number, &array)?, array });
        }
        let output = output_labels(equation, parsed.output.as_deref(), &terms)?;
        let sizes = sizes_of(&terms)?;
        let mut ready = Vec::with_capacity(terms.len());
        let holders: Vec<Vec<Label>> = terms.iter().map(|t| t.labels.clone()).collect();
        for (i, term) in terms.into_iter().enumerate() {
            let elsewhere = |l: Label| holders.iter().enumerate().any(|(j, labels)| j != i && labels.contains(&l));
            ready.push(term.simplified(&sizes, |l| output.contains(&l) || elsewhere(l))?);
        }
        let mut terms = ready;
        while terms.len() > 1 {
            let (i, j) = best_pair(&terms, &sizes, &output);
            let b = terms.remove(j);
            let a = terms.remove(i);
            let needed = |l: Label| output.contains(&l) || terms.iter().any(|t| t.place(l).is_some());
            // A label that an axis of size 1 was dropped for can have been left to one operand alone.
            let a = a.simplified(&sizes, |l| needed(l) || b.place(l).is_some())?;
            let b = b.simplified(&sizes, |l| needed(l) || a.place(l).is_some())?;
            let product = a.times(&b, needed)?;
            terms.push(product);
        }
        match terms.pop() {
            Some(last) => {
                let last = last.simplified(&sizes, |l| output.contains(&l))?;
                last.array.permuted(last.places(&output))
            }
            None => fail!(Value, "`einsum` of no operands"),
        }
    }
}
