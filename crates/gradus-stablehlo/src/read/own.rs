//! The pretty forms that are not lists of operands and keys: a function for each.

use gradus_core::error::Result;
use smallvec::{SmallVec, smallvec};

use super::Reader;
use super::names::known;
use super::pretty::Short::{No, Pairwise, Same};
use super::pretty::{Holds, Types};
use super::structs::integer;
use crate::module::{Attribute, Dense, Element, Operation, Region, Tensor, Type, Value};

/// `{..} dense<..> : tensor<..>`, or the generic form without quotes.
pub(super) fn constant(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    if r.cur.peek() == b'(' {
        let parsed = r.generic_rest(operation, r.isolated)?;
        *operation = parsed.operation;
        return Ok(parsed.results);
    }
    r.dictionary_if(&mut operation.attributes)?;
    let at = r.cur.at();
    let value = r.attribute()?;
    let Attribute::Dense(dense) = &value else { return Err(r.cur.error_at(at, "expected `dense<..> : tensor<..>`")) };
    let ty = Type::Tensor(dense.ty.clone());
    operation.attributes.set("value", value);
    Ok(smallvec![ty])
}

/// `EQ, %a, %b, FLOAT : ..`.
pub(super) fn compare(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    let direction = known(r.cur.word("a direction: `EQ`, `NE`, `GE`, `GT`, `LE` or `LT`")?);
    operation
        .attributes
        .set("comparison_direction", Attribute::Enum("stablehlo.comparison_direction".into(), direction));
    r.cur.take(",")?;
    if r.operands(operation)? {
        let kind = known(r.cur.word("a kind of comparison")?);
        operation.attributes.set("compare_type", Attribute::Enum("stablehlo.comparison_type".into(), kind));
    }
    r.ending(operation, No)
}

/// `"name" %a, %b {..} : ..`.
pub(super) fn composite(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    operation.attributes.set("name", Attribute::String(r.cur.string()?.into_owned()));
    r.operands(operation)?;
    if r.cur.eat("(") {
        operation.regions = r.list(")", |r| r.region(Vec::new()))?;
    }
    r.ending(operation, No)
}

/// `(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], ..} {..} : ..`.
pub(super) fn convolution(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    r.cur.take("(")?;
    operation.operands = r.list(")", |r| r.value())?.into();
    r.cur.take_word("dim_numbers")?;
    r.cur.take("=")?;
    let numbers = r.convolution_dimensions()?;
    operation.attributes.set("dimension_numbers", numbers);
    r.cur.take(",")?;
    r.cur.take_word("window")?;
    r.cur.take("=")?;
    r.cur.take("{")?;
    r.list("}", |r| {
        let at = r.cur.at();
        let word = r.cur.word("`stride`, `pad`, `lhs_dilate`, `rhs_dilate` or `reverse`")?;
        r.cur.take("=")?;
        let (name, value) = match word {
            "stride" => ("window_strides", Attribute::numbers(r.integers()?)),
            "lhs_dilate" => ("lhs_dilation", Attribute::numbers(r.integers()?)),
            "rhs_dilate" => ("rhs_dilation", Attribute::numbers(r.integers()?)),
            "reverse" => {
                let flags = r.cur.take("[").and_then(|()| {
                    r.list("]", |r| match r.cur.peek_word() {
                        "true" | "false" => Ok(i64::from(r.cur.word("")? == "true")),
                        _ => Ok(i64::from(r.cur.i64()? != 0)),
                    })
                })?;
                ("window_reversal", Attribute::Numbers(Element::I1, flags))
            }
            "pad" => ("padding", pairs(r)?),
            _ => return Err(r.cur.error_at(at, &format!("a window has no `{word}`"))),
        };
        match operation.attributes.set(name, value) {
            None => Ok(()),
            Some(_) => Err(r.cur.error_at(at, &format!("`{word}` is given twice"))),
        }
    })?;
    r.ending(operation, No)
}

/// `[[0, 1], [2, 3]]` as a tensor of two columns.
fn pairs(r: &mut Reader<'_>) -> Result<Attribute> {
    r.cur.take("[")?;
    let rows = r.list("]", |r| {
        let at = r.cur.at();
        match r.integers()?.as_slice() {
            [low, high] => Ok([*low, *high]),
            row => Err(r.cur.error_at(at, &format!("{} numbers where two are wanted", row.len()))),
        }
    })?;
    let ty = Tensor::new([rows.len() as u64, 2], Element::I64);
    let bytes: Vec<u8> = rows.into_iter().flatten().flat_map(i64::to_le_bytes).collect();
    Ok(Attribute::Dense(Dense::new(ty, bytes)))
}

/// `@target(%a, %b) {..} : ..`.
pub(super) fn custom_call(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    let target = r.cur.symbol()?.into_owned();
    operation.attributes.set("call_target_name", Attribute::of_text(target));
    r.cur.take("(")?;
    operation.operands = r.list(")", |r| r.value())?.into();
    r.ending(operation, No)
}

/// `@callee(%a, %b) : ..`.
pub(super) fn call(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    let callee = r.attribute()?;
    operation.attributes.set("callee", callee);
    r.cur.take("(")?;
    operation.operands = r.list(")", |r| r.value())?.into();
    r.ending(operation, No)
}

/// `%tuple[0] : ..`.
pub(super) fn get_tuple_element(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    operation.operands.push(r.value()?);
    r.cur.take("[")?;
    operation.attributes.set("index", Attribute::Integer(r.cur.integer()?, Type::Scalar(Element::I32)));
    r.cur.take("]")?;
    r.ending(operation, No)
}

/// `%a [0:4, 2:8:2] : ..`.
pub(super) fn slice(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    operation.operands.push(r.value()?);
    r.cur.take("[")?;
    let ranges = r.list("]", |r| {
        let start = r.cur.i64()?;
        r.cur.take(":")?;
        let limit = r.cur.i64()?;
        Ok((start, limit, if r.cur.eat(":") { r.cur.i64()? } else { 1 }))
    })?;
    operation.attributes.set("start_indices", Attribute::numbers(ranges.iter().map(|r| r.0)));
    operation.attributes.set("limit_indices", Attribute::numbers(ranges.iter().map(|r| r.1)));
    operation.attributes.set("strides", Attribute::numbers(ranges.iter().map(|r| r.2)));
    r.ending(operation, No)
}

/// `%a, %b : a, b`, or `()` for nothing at all.
pub(super) fn optimization_barrier(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    r.dictionary_if(&mut operation.attributes)?;
    if r.cur.eat("(") {
        r.cur.take(")")?;
        return Ok(Types::new());
    }
    r.operands(operation)?;
    r.cur.take(":")?;
    r.signature(operation, Pairwise)
}

/// `(%a init: %b), .. applies stablehlo.add across dimensions = [0] : ..`, or with `reducer(..) {..}` at its end.
pub(super) fn reduce(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    let mut inits = SmallVec::<[_; 4]>::new();
    while r.cur.eat("(") {
        operation.operands.push(r.value()?);
        r.cur.take_word("init")?;
        r.cur.take(":")?;
        inits.push(r.value()?);
        r.cur.take(")")?;
        r.cur.eat(",");
    }
    operation.operands.extend(inits);
    let at = r.cur.at();
    let mut inner = None;
    if r.cur.eat_word("applies") {
        let name = r.cur.word("an operation")?;
        let known_ones = ["add", "multiply", "maximum", "minimum", "and", "or", "xor"];
        if !name.strip_prefix("stablehlo.").is_some_and(|n| known_ones.contains(&n)) {
            return Err(r.cur.error_at(
                at,
                &format!("`{name}` does not stand behind `applies`; these do: {}", known_ones.join(", ")),
            ));
        }
        inner = Some(known(name));
    }
    r.cur.take_word("across")?;
    r.cur.take_word("dimensions")?;
    r.cur.take("=")?;
    let dimensions = Attribute::numbers(r.integers()?);
    operation.attributes.set("dimensions", dimensions);
    let results = r.ending(operation, No)?;
    let Some(inner) = inner else {
        r.cur.take_word("reducer")?;
        let (mut elements, mut totals) = (Vec::new(), Vec::new());
        while r.cur.eat("(") {
            elements.push(r.typed_name()?);
            r.cur.take(",")?;
            totals.push(r.typed_name()?);
            r.cur.take(")")?;
        }
        // The block has its arguments in this order, and so they are numbered.
        elements.extend(totals);
        r.region_with(operation, &elements)?;
        return Ok(results);
    };
    let Some(Type::Tensor(first)) = operation.operands.first().and_then(|v| r.type_of(*v)) else {
        return Err(r.cur.error_at(at, "`applies` needs a tensor to reduce"));
    };
    let scalar = Type::Tensor(Tensor::new([], first.element.clone()));
    let first = Value(r.values.len() as u32);
    let [second, sum] = [1, 2].map(|i| Value(first.0 + i));
    r.values.extend([scalar.clone(), scalar.clone(), scalar]);
    let place = operation.place;
    operation.regions.push(Region {
        arguments: vec![first, second],
        operations: vec![
            Operation {
                name: inner,
                operands: smallvec![first, second],
                results: smallvec![sum],
                place,
                ..Operation::default()
            },
            Operation { name: "stablehlo.return".into(), operands: smallvec![sum], place, ..Operation::default() },
        ],
    });
    Ok(results)
}

/// `(%i = %a, ..) : types attributes {..} cond {..} do {..}`.
pub(super) fn while_loop<'a>(r: &mut Reader<'a>, operation: &mut Operation) -> Result<Types> {
    r.cur.take("(")?;
    let mut names: Vec<&'a str> = Vec::new();
    let operands = r.list(")", |r| {
        if r.cur.peek() != b'%' {
            return Err(r.cur.expected("`%name = %value`"));
        }
        names.push(r.cur.sigil_name("a value")?);
        r.cur.take("=")?;
        r.value()
    })?;
    operation.operands = operands.into();
    let mut types = Types::new();
    if !names.is_empty() {
        r.cur.take(":")?;
        types = r.signature(operation, Pairwise)?;
    }
    if r.cur.eat_word("attributes") {
        r.dictionary(&mut operation.attributes)?;
    }
    let names: Vec<(&'a str, Type)> = names.into_iter().zip(types.iter().cloned()).collect();
    r.cur.take_word("cond")?;
    r.region_with(operation, &names)?;
    r.cur.take_word("do")?;
    r.region_with(operation, &names)?;
    Ok(types)
}

/// `(%a) inits (%b) dimension=0 attributes {..} {..} : ..`.
pub(super) fn scan(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    r.cur.take("(")?;
    operation.operands = r.list(")", |r| r.value())?.into();
    let inputs = operation.operands.len();
    r.cur.take_word("inits")?;
    r.cur.take("(")?;
    let inits = r.list(")", |r| r.value())?;
    let carries = inits.len();
    operation.operands.extend(inits);
    r.cur.take_word("dimension")?;
    r.cur.take("=")?;
    operation.attributes.set("dimension", integer(r.cur.i64()?));
    if r.cur.eat_word("attributes") {
        r.dictionary(&mut operation.attributes)?;
    }
    let outside = std::mem::replace(&mut r.isolated, r.scope + 1);
    operation.regions.push(r.region(Vec::new())?);
    r.isolated = outside;
    r.cur.take(":")?;
    let at = r.cur.at();
    let results = r.signature(operation, No)?;
    let Some(outputs) = results.len().checked_sub(carries) else {
        return Err(r.cur.error_at(at, "fewer results than values that are carried"));
    };
    let sizes = |a: usize, b: usize| Attribute::Numbers(Element::I32, vec![a as i64, b as i64]);
    operation.attributes.set("operandSegmentSizes", sizes(inputs, carries));
    operation.attributes.set("resultSegmentSizes", sizes(outputs, carries));
    Ok(results)
}

/// `(%a, k = 8, is_stable = true) : ..`.
pub(super) fn top_k(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    r.cur.take("(")?;
    let mut more = r.operands(operation)?;
    while more {
        r.key(operation, &[("k", "k", Holds::I64), ("is_stable", "is_stable", Holds::Bool)])?;
        more = r.cur.eat(",");
    }
    r.cur.take(")")?;
    r.ending(operation, No)
}

/// `%a, dense<..> : tensor<..>, tolerance = 0.1`.
pub(super) fn expect_const(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    operation.operands.push(r.value()?);
    r.cur.take(",")?;
    let at = r.cur.at();
    let value = r.attribute()?;
    let Attribute::Dense(dense) = &value else { return Err(r.cur.error_at(at, "expected `dense<..> : tensor<..>`")) };
    let ty = Type::Tensor(dense.ty.clone());
    r.check_same(at, operation, &ty)?;
    operation.attributes.set("value", value);
    while r.cur.eat(",") {
        r.key(operation, &[("tolerance", "tolerance", Holds::Float)])?;
    }
    r.dictionary_if(&mut operation.attributes)?;
    Ok(Types::new())
}

/// `@name = <["x"=2]>`.
pub(super) fn mesh(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    let name = r.cur.symbol()?.into_owned();
    operation.attributes.set("sym_name", Attribute::of_text(name));
    r.cur.take("=")?;
    let value = match r.cur.peek() {
        b'<' => Attribute::Opaque(format!("sdy.mesh{}", r.bracketed()?)),
        _ => r.attribute()?,
    };
    operation.attributes.set("mesh", value);
    r.dictionary_if(&mut operation.attributes)?;
    Ok(Types::new())
}

/// `%a <@mesh, [{"x"}]> : ..`.
pub(super) fn sharding(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    operation.operands.push(r.value()?);
    let value = match r.cur.peek() {
        b'<' => Attribute::Opaque(format!("sdy.sharding{}", r.bracketed()?)),
        _ => r.attribute()?,
    };
    operation.attributes.set("sharding", value);
    r.ending(operation, Same)
}

/// `(%a) in_shardings=[..] out_shardings=[..] manual_axes={..} (%b: ..) {..} : ..`.
pub(super) fn manual_computation(r: &mut Reader<'_>, operation: &mut Operation) -> Result<Types> {
    r.cur.take("(")?;
    operation.operands = r.list(")", |r| r.value())?.into();
    for (name, before, after) in [
        ("in_shardings", "sdy.sharding_per_value<", ">"),
        ("out_shardings", "sdy.sharding_per_value<", ">"),
        ("manual_axes", "sdy<manual_axes", ">"),
    ] {
        r.cur.take_word(name)?;
        r.cur.take("=")?;
        let text = r.bracketed()?;
        operation.attributes.set(name, Attribute::Opaque(format!("{before}{text}{after}")));
    }
    r.dictionary_if(&mut operation.attributes)?;
    let outside = std::mem::replace(&mut r.isolated, r.scope + 1);
    let mark = r.undo.len();
    r.scope += 1;
    r.cur.take("(")?;
    let arguments = r.list(")", |r| r.argument())?;
    operation.regions.push(r.region(arguments)?);
    r.scope -= 1;
    r.forget(mark);
    r.isolated = outside;
    r.ending(operation, No)
}
