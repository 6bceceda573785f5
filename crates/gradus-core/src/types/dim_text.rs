//! What is said about dimensions: their text (`2*B+1`, `max(B,1)`), which programs print, file tests read and error
//! messages quote; the constraints between them; and the answers, three-valued or an error.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::dim::{Atom, Call, Dim, Func, MAX_DEPTH};

/// How an invalid dimension prints. It also parses, so that every program text reads back.
const INVALID: &str = "<overflow>";

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_invalid() {
            return f.write_str(INVALID);
        }
        let mut first = true;
        for (monomial, coefficient) in self.terms() {
            match (coefficient < 0, first) {
                (true, _) => f.write_str("-")?,
                (false, true) => {}
                (false, false) => f.write_str("+")?,
            }
            first = false;
            let size = coefficient.unsigned_abs();
            let mut separator = "";
            if size != 1 || monomial.is_one() {
                write!(f, "{size}")?;
                separator = "*";
            }
            for (atom, power) in &monomial.0 {
                match atom {
                    Atom::Symbol(name) => write!(f, "{separator}{name}")?,
                    Atom::Call(call) => write!(f, "{separator}{call}")?,
                }
                if *power != 1 {
                    write!(f, "^{power}")?;
                }
                separator = "*";
            }
        }
        if first { f.write_str("0") } else { Ok(()) }
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({},{})", self.func.name(), self.a, self.b)
    }
}

impl FromStr for Dim {
    type Err = DimError;

    fn from_str(text: &str) -> Result<Dim, DimError> {
        let mut parser = Parser::new(text);
        let dim = parser.sum()?;
        parser.finish("an operator or the end")?;
        Ok(dim)
    }
}

impl Dim {
    /// Reads the longest dimension at the start of `text`, as inside a longer type text: also returns the number of
    /// bytes it takes. Stops before anything that cannot continue it (`,`, `]`, `==`, `->`, trailing space).
    pub fn parse_prefix(text: &str) -> Result<(Dim, usize), DimError> {
        let mut parser = Parser::new(text);
        let dim = parser.sum()?;
        Ok((dim, parser.end))
    }
}

/// A recursive-descent reader:
/// `sum = product (("+"|"-") product)*`, `product = factor ("*" factor)*`, `factor = "-"* base ("^" number)?`,
/// `base = number | name | function "(" sum "," sum ")" | "(" sum ")"`.
struct Parser<'a> {
    text: &'a str,
    /// The next byte to look at; always a character boundary, since only ASCII is ever passed.
    at: usize,
    /// Just behind the last token: space after it is not part of the dimension.
    end: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0, end: 0, depth: 0 }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&mut self) -> Option<u8> {
        self.at += self.rest().bytes().take_while(u8::is_ascii_whitespace).count();
        self.rest().bytes().next()
    }

    /// Passes `token` if it is next.
    fn eat(&mut self, token: &str) -> bool {
        self.peek();
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
            self.end = self.at;
        }
        found
    }

    fn want(&mut self, token: &str) -> Result<(), DimError> {
        if self.eat(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    fn expected(&mut self, what: &str) -> DimError {
        self.peek();
        let found = match self.rest().chars().next() {
            Some(c) => format!("`{}`", c.escape_debug()),
            None => "the end of the text".to_string(),
        };
        DimError::at(self.at, format!("expected {what}, found {found}"))
    }

    fn finish(&mut self, what: &str) -> Result<(), DimError> {
        if self.peek().is_some() { Err(self.expected(what)) } else { Ok(()) }
    }

    /// A written expression that overflows is an error at its place; only the text of an invalid dimension gives one.
    fn valid(&self, at: usize, operands: [&Dim; 2], result: Dim) -> Result<Dim, DimError> {
        if result.is_invalid() && !operands.iter().any(|dim| dim.is_invalid()) {
            return Err(DimError::at(at, "expected a smaller expression: this one overflows or divides by zero"));
        }
        Ok(result)
    }

    fn sum(&mut self) -> Result<Dim, DimError> {
        let mut sum = self.product(false)?;
        loop {
            let negative = match self.peek() {
                Some(b'+') => false,
                // An arrow after a dimension belongs to the text around it.
                Some(b'-') if !self.rest().starts_with("->") => true,
                _ => return Ok(sum),
            };
            let at = self.at;
            self.eat(if negative { "-" } else { "+" });
            let term = self.product(negative)?;
            sum = self.valid(at, [&sum, &term], &sum + &term)?;
        }
    }

    fn product(&mut self, negative: bool) -> Result<Dim, DimError> {
        let mut product = self.factor(negative)?;
        while self.peek() == Some(b'*') {
            let at = self.at;
            self.eat("*");
            let factor = self.factor(false)?;
            product = self.valid(at, [&product, &factor], &product * &factor)?;
        }
        Ok(product)
    }

    /// The sign comes down to here because the least `i64` has no positive counterpart to negate.
    fn factor(&mut self, mut negative: bool) -> Result<Dim, DimError> {
        while self.eat("-") {
            negative = !negative;
        }
        let first = self.peek();
        let at = self.at;
        let base = match first {
            Some(b'0'..=b'9') => {
                let size = i128::from(self.number()?);
                let signed = negative && self.peek() != Some(b'^');
                negative &= !signed;
                let value = i64::try_from(if signed { -size } else { size });
                Dim::from(value.map_err(|_| DimError::at(at, "expected a number that fits 64 bits"))?)
            }
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => self.name()?,
            Some(b'(') => self.nested(|parser| {
                parser.want("(")?;
                let inner = parser.sum()?;
                parser.want(")")?;
                Ok(inner)
            })?,
            Some(b'<') if self.eat(INVALID) => Dim::INVALID,
            _ => return Err(self.expected("a number, a name or `(`")),
        };
        let power = if self.eat("^") {
            self.peek();
            let at = self.at;
            let exponent = u32::try_from(self.number()?).unwrap_or(u32::MAX);
            self.valid(at, [&base, &base], base.pow(exponent))?
        } else {
            base
        };
        if negative { self.valid(at, [&power, &power], -&power) } else { Ok(power) }
    }

    fn number(&mut self) -> Result<u64, DimError> {
        self.peek();
        let (at, digits) = (self.at, self.rest().bytes().take_while(u8::is_ascii_digit).count());
        if digits == 0 {
            return Err(self.expected("a number"));
        }
        self.at += digits;
        self.end = self.at;
        let text = self.text.get(at..self.at).unwrap_or("");
        text.parse().map_err(|_| DimError::at(at, "expected a number that fits 64 bits"))
    }

    fn name(&mut self) -> Result<Dim, DimError> {
        let (at, rest) = (self.at, self.rest());
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = rest.get(..length).unwrap_or("");
        self.at += length;
        self.end = self.at;
        let Some(func) = Func::ALL.into_iter().find(|func| func.name() == name) else {
            return Dim::symbol(name).map_err(|error| DimError::at(at, error.message()));
        };
        let (a, b) = self.nested(|parser| {
            parser.want("(")?;
            let a = parser.sum()?;
            parser.want(",")?;
            let b = parser.sum()?;
            parser.want(")")?;
            Ok((a, b))
        })?;
        self.valid(at, [&a, &b], func.apply(&a, &b))
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, DimError>) -> Result<T, DimError> {
        if self.depth == MAX_DEPTH {
            return Err(DimError::at(self.at, format!("expected at most {MAX_DEPTH} nested parentheses")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }
}

/// Why a dimension could not be read, built or evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimError {
    message: String,
    position: Option<usize>,
}

impl DimError {
    pub(super) fn new(message: impl Into<String>) -> DimError {
        DimError { message: message.into(), position: None }
    }

    pub(super) fn at(position: usize, message: impl Into<String>) -> DimError {
        DimError { message: message.into(), position: Some(position) }
    }

    /// What failed, without the position.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The byte of the text that could not be read, when the error came from a text.
    pub fn position(&self) -> Option<usize> {
        self.position
    }
}

impl fmt::Display for DimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(position) => write!(f, "at byte {position}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for DimError {}

/// The answer to a question about dimensions whose symbols are not bound yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// True for every binding of the symbols.
    Yes,
    /// False for every binding of the symbols.
    No,
    /// Depends on the binding, or is beyond what can be decided here.
    AtRunTime,
}

impl Decision {
    /// Both hold.
    pub fn and(self, other: Decision) -> Decision {
        match (self, other) {
            (Decision::No, _) | (_, Decision::No) => Decision::No,
            (Decision::Yes, Decision::Yes) => Decision::Yes,
            _ => Decision::AtRunTime,
        }
    }

    /// At least one holds.
    pub fn or(self, other: Decision) -> Decision {
        self.not().and(other.not()).not()
    }

    /// The opposite holds. Inherent rather than `std::ops::Not`, so that it chains without an import.
    #[allow(clippy::should_implement_trait)]
    pub fn not(self) -> Decision {
        match self {
            Decision::Yes => Decision::No,
            Decision::No => Decision::Yes,
            Decision::AtRunTime => Decision::AtRunTime,
        }
    }
}

/// What a program asks of its dimensions before it may run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Constraint {
    /// The two are equal: `A==B`.
    Equal(Dim, Dim),
    /// The first is at least the second: `A>=1`.
    AtLeast(Dim, Dim),
    /// The dimension is a multiple of the number: `A%8==0`. Of zero, only zero is a multiple.
    Multiple(Dim, i64),
}

impl Constraint {
    /// All symbols, sorted, each once.
    pub fn symbols(&self) -> Vec<Arc<str>> {
        let mut names = BTreeSet::new();
        match self {
            Constraint::Equal(a, b) | Constraint::AtLeast(a, b) => {
                a.collect_symbols(&mut names);
                b.collect_symbols(&mut names);
            }
            Constraint::Multiple(a, _) => a.collect_symbols(&mut names),
        }
        names.into_iter().collect()
    }

    /// Whether it holds for every binding, for none, or depends.
    pub fn decide(&self) -> Decision {
        match self {
            Constraint::Equal(a, b) => a.equals(b),
            Constraint::AtLeast(a, b) => a.at_least(b),
            Constraint::Multiple(a, k) => a.is_multiple_of(*k),
        }
    }

    /// Whether it holds under this binding.
    pub fn check(&self, env: &dyn Fn(&str) -> Option<i64>) -> Result<bool, DimError> {
        Ok(match self {
            Constraint::Equal(a, b) => a.evaluate(env)? == b.evaluate(env)?,
            Constraint::AtLeast(a, b) => a.evaluate(env)? >= b.evaluate(env)?,
            Constraint::Multiple(a, 0) => a.evaluate(env)? == 0,
            Constraint::Multiple(a, k) => i128::from(a.evaluate(env)?) % i128::from(*k) == 0,
        })
    }

    /// Replaces symbols as [`Dim::substitute`] does.
    pub fn substitute(&self, env: &dyn Fn(&str) -> Option<Dim>) -> Constraint {
        match self {
            Constraint::Equal(a, b) => Constraint::Equal(a.substitute(env), b.substitute(env)),
            Constraint::AtLeast(a, b) => Constraint::AtLeast(a.substitute(env), b.substitute(env)),
            Constraint::Multiple(a, k) => Constraint::Multiple(a.substitute(env), *k),
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::Equal(a, b) => write!(f, "{a}=={b}"),
            Constraint::AtLeast(a, b) => write!(f, "{a}>={b}"),
            // Everything left of `%` is meant; a sum needs the parentheses to look like it.
            Constraint::Multiple(a, k) if a.terms().count() > 1 => write!(f, "({a})%{k}==0"),
            Constraint::Multiple(a, k) => write!(f, "{a}%{k}==0"),
        }
    }
}

impl FromStr for Constraint {
    type Err = DimError;

    fn from_str(text: &str) -> Result<Constraint, DimError> {
        let mut parser = Parser::new(text);
        let left = parser.sum()?;
        let constraint = if parser.eat("==") {
            Constraint::Equal(left, parser.sum()?)
        } else if parser.eat(">=") {
            Constraint::AtLeast(left, parser.sum()?)
        } else if parser.eat("<=") {
            // The same the other way around, and written so.
            Constraint::AtLeast(parser.sum()?, left)
        } else if parser.eat("%") {
            parser.peek();
            let at = parser.at;
            let sign = if parser.eat("-") { -1 } else { 1 };
            let k = i64::try_from(sign * i128::from(parser.number()?));
            parser.want("==")?;
            parser.want("0")?;
            Constraint::Multiple(left, k.map_err(|_| DimError::at(at, "expected a number that fits 64 bits"))?)
        } else {
            return Err(parser.expected("`==`, `>=`, `<=` or `%`"));
        };
        parser.finish("the end")?;
        Ok(constraint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_may_stand_on_either_side() {
        let read = |text: &str| text.parse::<Constraint>().unwrap().to_string();
        assert_eq!(read("A <= 8"), "8>=A");
        assert_eq!(read("2*A+1<=B"), "B>=2*A+1");
        assert!("A < 8".parse::<Constraint>().is_err());
    }

    fn dim(text: &str) -> Dim {
        text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"))
    }

    fn shows(text: &str, canonical: &str) {
        assert_eq!(dim(text).to_string(), canonical, "from `{text}`");
    }

    fn bind(names: &'static [(&'static str, i64)]) -> impl Fn(&str) -> Option<i64> {
        move |name| names.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    const NAMES: [&str; 3] = ["A", "B", "max_len"];

    /// A linear congruential generator: tests must not depend on a crate or on luck.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) % n
        }

        fn small(&mut self) -> i64 {
            self.below(15) as i64 - 5
        }

        /// A random expression as a dimension, and its plain integer values at all bindings; `None` is no value.
        fn expression(&mut self, depth: u32, bindings: &[[i64; 3]]) -> (Dim, Vec<Option<i128>>) {
            if depth == 0 || self.below(8) == 0 {
                let which = self.below(5) as usize;
                return match NAMES.get(which) {
                    Some(name) => {
                        (Dim::symbol(name).unwrap(), bindings.iter().map(|b| Some(b[which].into())).collect())
                    }
                    None => {
                        let c = self.small();
                        (Dim::from(c), vec![Some(c.into()); bindings.len()])
                    }
                };
            }
            let op = self.below(10);
            let (x, xs) = self.expression(depth - 1, bindings);
            let (y, ys) = if (3..7).contains(&op) && self.below(3) > 0 {
                let k = self.small();
                (Dim::from(k), vec![Some(k.into()); bindings.len()])
            } else {
                self.expression(depth - 1, bindings)
            };
            let floor = |a: i128, b: i128| (b != 0).then(|| (a - (a % b + b) % b) / b);
            let result = match op {
                0 => &x + &y,
                1 => &x - &y,
                2 => &x * &y,
                3 | 4 => x.floor_div(&y),
                5 | 6 => x.modulo(&y),
                7 => x.max(&y),
                8 => x.min(&y),
                _ => -&x,
            };
            let value = |(a, b): (Option<i128>, Option<i128>)| {
                let (a, b) = (a?, b?);
                match op {
                    0 => a.checked_add(b),
                    1 => a.checked_sub(b),
                    2 => a.checked_mul(b),
                    3 | 4 => floor(a, b),
                    5 | 6 => floor(a, b).map(|q| a - q * b),
                    7 => Some(a.max(b)),
                    8 => Some(a.min(b)),
                    _ => Some(-a),
                }
            };
            (result, xs.into_iter().zip(ys).map(value).collect())
        }
    }

    #[test]
    fn random_expressions_agree_with_integers() {
        let mut random = Random(7);
        let mut decided = [0; 5];
        for round in 0..30_000 {
            let limit = if round % 2 == 0 { 4 } else { 40 };
            let bindings: Vec<[i64; 3]> =
                (0..6).map(|_| [(); 3].map(|()| random.below(limit) as i64)).chain([[0; 3]]).collect();
            let depth = 1 + round % 4;
            let (x, xs) = random.expression(depth, &bindings);
            let (y, ys) = random.expression(depth, &bindings);
            let k = random.small();
            assert_eq!(dim(&x.to_string()), x);
            let answers = [x.equals(&y), x.at_least(&y), x.greater_than(&y), x.is_multiple_of(k), y.divides(&x)];
            for (count, answer) in decided.iter_mut().zip(answers) {
                *count +=
                    usize::from(answer != Decision::AtRunTime && !(x.constant().is_some() && y.constant().is_some()));
            }
            for ((binding, a), b) in bindings.iter().zip(xs).zip(ys) {
                let env = |name: &str| NAMES.iter().position(|n| *n == name).map(|i| binding[i]);
                let (Some(a), Some(b)) = (a, b) else { continue };
                if let (Ok(narrow), false) = (i64::try_from(a), x.is_invalid()) {
                    assert_eq!(x.evaluate(&env), Ok(narrow), "{x} at {binding:?}");
                    let filled = x.substitute(&|name| env(name).map(Dim::from));
                    assert_eq!(filled.constant(), Some(narrow), "{x} at {binding:?}");
                }
                let multiple = |of: i128| if of == 0 { a == 0 } else { a % of == 0 };
                let truths = [a == b, a >= b, a > b, multiple(k.into()), multiple(b)];
                for (truth, answer) in truths.into_iter().zip(answers) {
                    let allowed = if truth { Decision::Yes } else { Decision::No };
                    assert!(answer == allowed || answer == Decision::AtRunTime, "{x} ? {y}, {k} at {binding:?}");
                }
            }
        }
        assert!(decided.iter().all(|count| *count > 300), "the logic decides too little to be tested: {decided:?}");
    }

    #[test]
    fn random_polynomials_obey_the_ring_laws() {
        let mut random = Random(11);
        for _ in 0..2_000 {
            let [x, y, z] = [(); 3].map(|()| random.expression(2, &[]).0);
            let laws = [
                (&x + &y, &y + &x),
                (&x * &y, &y * &x),
                ((&x + &y) + &z, &x + (&y + &z)),
                ((&x * &y) * &z, &x * (&y * &z)),
                (&x * (&y + &z), &x * &y + &x * &z),
                (&x - &y, &x + -&y),
                (x.max(&y), y.max(&x)),
                (x.min(&y), y.min(&x)),
                ((&x - &x) * &y, &y - &y),
            ];
            for (left, right) in laws {
                assert!(left == right || left.is_invalid() || right.is_invalid(), "{x}, {y}, {z}: {left} {right}");
            }
        }
    }

    #[test]
    fn text_is_canonical() {
        shows("B+B", "2*B");
        shows("(B+1)*(B-1)", "B^2-1");
        shows(" 4 - B ", "-B+4");
        shows("1+B+C*B+B^2+A*0", "B^2+B*C+B+1");
        shows("-B^2--B*-2", "-B^2-2*B");
        shows("floordiv( B , 2 )*z+max(1,B)^2", "floordiv(B,2)*z+max(B,1)^2");
        shows("floordiv(6*B+4,2)", "3*B+2");
        shows("mod(6*B+5,2)", "1");
        shows("mod(B,1)", "0");
        shows("floordiv(B-1,2)+1", "floordiv(B+1,2)");
        shows("floordiv(4*B+8*C+3,4)", "B+2*C");
        shows("floordiv(floordiv(B,2)+1,3)", "floordiv(B+2,6)");
        shows("floordiv(mod(B,8)+16,8)", "2");
        shows("mod(mod(B,16)+3,8)", "mod(B+3,8)");
        shows("mod(4*B+3,6)", "2*mod(2*B+1,3)+1");
        shows("floordiv(B*C+B,C+1)", "B");
        shows("mod(B,B+1)", "B");
        shows("floordiv(B*C,C)", "floordiv(B*C,C)");
        shows("floordiv(-7,2)+mod(7,-4)", "-5");
        shows("max(B,0)+min(B+1,B)+max(max(B,C),C)", "2*B+max(B,C)");
        shows("min(floordiv(B,2),B)+max(mod(B,8),B)", "B+floordiv(B,2)");
        shows("9223372036854775807*B-9223372036854775808", "9223372036854775807*B-9223372036854775808");
        shows("<overflow>+1", "<overflow>");
        assert_eq!(format!("{:?}", dim("2*B")), "2*B");
    }

    #[test]
    fn decisions() {
        let answer = |text: &str| text.parse::<Constraint>().unwrap().decide();
        for text in [
            "B+1>=1",
            "B*C>=0",
            "B+C==C+B",
            "8*B%4==0",
            "B>=floordiv(B,2)",
            "2*floordiv(B,2)+mod(B,2)==B",
            "max(B,C)>=C",
            "9223372036854775807>=-9",
            "B^2-2*B*C+C^2-B^2+2*B*C>=0",
            "floordiv(B,C)>=0",
        ] {
            assert_eq!(answer(text), Decision::Yes, "{text}");
        }
        for text in ["2*B+1==2*C", "B==-1", "0>=B+1", "4*B+2%4==0", "mod(B,8)>=8", "min(B,4)==5"] {
            assert_eq!(answer(text), Decision::No, "{text}");
        }
        for text in ["B==C", "B>=1", "B%8==0", "2*B==3*C", "<overflow>==<overflow>", "B%0==0"] {
            assert_eq!(answer(text), Decision::AtRunTime, "{text}");
        }
        assert_eq!(dim("B").divides(&dim("B*C")), Decision::Yes);
        assert_eq!(dim("B").divides(&dim("C")), Decision::AtRunTime);
        assert_eq!(dim("B+1").greater_than(&dim("B")), Decision::Yes);
        let all = [Decision::Yes, Decision::No, Decision::AtRunTime];
        for (a, b) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
            assert_eq!(a.and(b).not(), a.not().or(b.not()));
        }
    }

    #[test]
    fn overflow_and_blow_up_are_values() {
        let (b, max) = (dim("B"), Dim::from(i64::MAX));
        assert!((&max + 1i64).is_invalid() && (&max * &b * 2i64).is_invalid() && (-Dim::from(i64::MIN)).is_invalid());
        assert!(Dim::from(i64::MIN).floor_div(&Dim::from(-1)).is_invalid() && b.modulo(&Dim::from(0)).is_invalid());
        assert!(b.floor_div(&Dim::from(i64::MIN)).is_invalid() && Dim::from(usize::MAX).is_invalid());
        assert!(b.pow(32).as_symbol().is_none() && !b.pow(32).is_invalid() && b.pow(33).is_invalid());
        assert!(((&max + 1i64) * (&b - &b)).is_invalid() && (&max + 1i64).pow(0).is_invalid());
        assert_eq!((&max + 1i64).to_string(), "<overflow>");
        assert!((&max + 1i64).evaluate(&|_| None).is_err());
        let wide = (0..17).fold(Dim::from(0), |sum, i| sum + Dim::symbol(&format!("s{i}")).unwrap());
        assert!(wide.pow(2).as_usize().is_none() && !wide.pow(2).is_invalid() && wide.pow(3).is_invalid());
        let mut deep = b.clone();
        for i in 0..1000i64 {
            deep = (&deep * 3i64 - &b).max(&(&deep * 2i64 - i)).modulo(&dim("C"));
        }
        assert!(deep.is_invalid());
    }

    #[test]
    fn values_and_solutions() {
        let env = bind(&[("B", 6), ("C", 0), ("N", -1)]);
        assert_eq!(dim("2*B^2+floordiv(B,4)").evaluate(&env), Ok(73));
        let error = |text: &str| dim(text).evaluate(&env).unwrap_err().to_string();
        assert_eq!(error("B+D"), "symbol `D` has no value");
        assert_eq!(error("1+mod(B,C)"), "`mod(B,C)` divides by zero");
        assert_eq!(error("9223372036854775807*B"), "`9223372036854775807*B` overflows 64 bits");
        assert!(error("N").contains("at least 0"));
        assert_eq!(dim("3*B+1").solve_for(10), Some(("B".into(), 3)));
        assert_eq!(dim("-B+4").solve_for(1), Some(("B".into(), 3)));
        for text in ["3*B+1", "B+11", "B*C", "B+C", "4", "B^2", "mod(B,8)"] {
            assert_eq!(dim(text).solve_for(9), None, "{text}");
        }
        let names: Vec<Arc<str>> = vec!["A".into(), "B".into(), "C".into()];
        assert_eq!(dim("max(C,B)*A+B").symbols(), names);
        let swap = |name: &str| if name == "B" { Some(dim("C")) } else { Some(dim("B")) };
        assert_eq!(dim("2*B+floordiv(C,3)").substitute(&swap), dim("2*C+floordiv(B,3)"));
        assert_eq!((dim("B").as_symbol(), dim("2*B").as_symbol()), (Some("B"), None));
        assert_eq!((2usize * &dim("B") - 1i64 + Dim::from(1u32)) * 3, dim("6*B"));
        for name in ["", "_", "3x", "a-b", "mod", "é", "a b"] {
            assert!(Dim::symbol(name).is_err(), "{name}");
        }
    }

    #[test]
    fn bad_text_is_an_error_with_a_place() {
        let error = |text: &str| text.parse::<Dim>().expect_err(text).to_string();
        assert_eq!(error("B+]"), "at byte 2: expected a number, a name or `(`, found `]`");
        assert_eq!(error("max(B 2)"), "at byte 6: expected `,`, found `2`");
        assert_eq!(error("2*B C"), "at byte 4: expected an operator or the end, found `C`");
        assert_eq!(
            error("B+floordiv(2,0)"),
            "at byte 2: expected a smaller expression: this one overflows or divides by zero"
        );
        for depth in [63, 64, 65, 100_000] {
            let text = "(".repeat(depth) + "B" + &")".repeat(depth);
            assert_eq!(text.parse::<Dim>().is_ok(), depth <= 64, "{depth}");
            let text =
                (0..depth).fold("B".to_string(), |text, i| if i < 70 { format!("mod({text}+1,C)") } else { text });
            assert_eq!(text.parse::<Dim>().is_ok(), depth <= 64, "{depth}");
        }
        assert_eq!("-".repeat(100_001).parse::<Dim>().ok(), None);
        assert_eq!(("-".repeat(100_001) + "B").parse::<Dim>(), Ok(dim("-B")));
        let mut random = Random(3);
        let pieces = [
            "B",
            "C",
            "2",
            "+",
            "-",
            "*",
            "^",
            "(",
            ")",
            ",",
            "max(",
            "mod(",
            " ",
            "é",
            "_",
            "<overflow>",
            "99999999999",
        ];
        for _ in 0..20_000 {
            let text: String =
                (0..random.below(12)).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
            match text.parse::<Dim>() {
                Ok(dim) => assert_eq!(dim.to_string().parse(), Ok(dim)),
                Err(error) => assert!(error.position().is_some_and(|at| at <= text.len()), "{text}: {error}"),
            }
            let _ = (text.parse::<Constraint>(), Dim::parse_prefix(&text));
        }
    }

    #[test]
    fn prefixes_and_constraints() {
        for (text, used) in [("2*B+1,C]", 5), (" B ]", 2), ("B->C", 1), ("B==C", 1), ("max(B,1)]x", 8), ("B é", 1)] {
            assert_eq!(Dim::parse_prefix(text).map(|(_, used)| used), Ok(used), "{text}");
        }
        for text in ["A==B", "A>=1", "A%8==0", "(2*A+1)%-8==0", "-A%0==0", "A>=B*C+1", "<overflow>==2"] {
            assert_eq!(text.parse::<Constraint>().unwrap().to_string(), text);
        }
        for text in ["A", "A=B", "A==", "A%B==0", "A%2==1", "A>=1 x", "A%99999999999999999999==0"] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
        let check = |text: &str| text.parse::<Constraint>().unwrap().check(&bind(&[("A", 8), ("B", 9)]));
        assert_eq!((check("A==B"), check("B>=A"), check("A%8==0")), (Ok(false), Ok(true), Ok(true)));
        assert!(check("A%-9223372036854775808==0") == Ok(false) && check("D==1").is_err());
        let constraint: Constraint = "A==B+C".parse().unwrap();
        assert_eq!(constraint.symbols().len(), 3);
        let doubled = constraint.substitute(&|name| Some(Dim::symbol(name).unwrap() * 2));
        assert_eq!(doubled.to_string(), "2*A==2*B+2*C");
    }
}
