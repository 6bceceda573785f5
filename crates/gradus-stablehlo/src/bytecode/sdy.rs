//! Shardings in the encoding of the dialect Shardy, which JAX keeps in portable files. They become the text that they are written as.

use gradus_core::Result;

use super::cursor::{Cursor, error};
use super::entries::Entries;
use crate::module::Attribute;

/// Reads an attribute. Its kind stands in front of its text: those that hold it take that away again.
pub(super) fn attribute(entries: &mut Entries, cursor: &mut Cursor) -> Result<Attribute> {
    let at = cursor.at();
    let text = match cursor.number()? {
        0 => {
            let names = list(cursor, |c| Ok(quoted(&entries.text(c)?)))?;
            format!("sdy<manual_axes{{{names}}}>")
        }
        1 => {
            let name = quoted(&String::from_utf8_lossy(entries.file.string(cursor)?));
            format!("sdy.mesh_axis{name}={}", cursor.signed()?)
        }
        2 => {
            let axes = nested(entries, cursor, "sdy.mesh_axis")?;
            let devices: Vec<String> = cursor.signed_list()?.iter().map(i64::to_string).collect();
            let devices =
                if devices.is_empty() { String::new() } else { format!(", device_ids=[{}]", devices.join(", ")) };
            format!("sdy.mesh<[{axes}]{devices}>")
        }
        3 => format!("sdy.sub_axis_info({}){}", cursor.signed()?, cursor.signed()?),
        4 => {
            let name = quoted(&String::from_utf8_lossy(entries.file.string(cursor)?));
            let at = cursor.at();
            let (index, there) = cursor.flagged()?;
            let part = match there {
                true => format!(":{}", stripped(at, entries.attribute_of(at, index)?, "sdy.sub_axis_info")?),
                false => String::new(),
            };
            format!("sdy.axis_ref{name}{part}")
        }
        5 => {
            let mut axes = nested(entries, cursor, "sdy.axis_ref")?;
            if cursor.byte()? == 0 {
                axes += if axes.is_empty() { "?" } else { ", ?" };
            }
            let (priority, there) = cursor.flagged()?;
            let priority = if there { format!("p{priority}") } else { String::new() };
            format!("sdy.dimension_sharding{{{axes}}}{priority}")
        }
        code @ (6 | 15 | 17) => {
            let mesh = match entries.attribute(cursor)? {
                Attribute::Symbol(path) => format!("@{}", path.join("::@")),
                mesh => format!("mesh{}", stripped(at, mesh, "sdy.mesh")?),
            };
            let dimensions = nested(entries, cursor, "sdy.dimension_sharding")?;
            let replicated = nested(entries, cursor, "sdy.axis_ref")?;
            let unreduced = if code == 6 { String::new() } else { nested(entries, cursor, "sdy.axis_ref")? };
            let reduction = match if code == 17 { cursor.signed()? } else { 0 } {
                0 => "",
                1 => "max",
                2 => "min",
                other => return Err(error(at, format!("the reduction {other} of a sharding"))),
            };
            let named = |name: &str, axes: String| {
                if axes.is_empty() { axes } else { format!(", {name}{{{axes}}}") }
            };
            let (replicated, unreduced) =
                (named("replicated=", replicated), named(&format!("unreduced={reduction}"), unreduced));
            format!("sdy.sharding<{mesh}, [{dimensions}]{replicated}{unreduced}>")
        }
        7 | 16 => format!("sdy.sharding_per_value<[{}]>", nested(entries, cursor, "sdy.sharding")?),
        8 => format!("sdy.dim_mapping{}", cursor.signed_list()?.into_iter().map(factor).collect::<String>()),
        9 => format!("sdy.tensor_mapping[{}]", nested(entries, cursor, "sdy.dim_mapping")?),
        10 => {
            let sizes = cursor.signed_list()?;
            let takes = nested(entries, cursor, "sdy.tensor_mapping")?;
            let gives = nested(entries, cursor, "sdy.tensor_mapping")?;
            let mut rest = String::new();
            if !sizes.is_empty() {
                let sizes: Vec<String> =
                    sizes.iter().zip(0..).map(|(size, i)| format!("{}={size}", factor(i))).collect();
                rest += &format!(" {{{}}}", sizes.join(", "));
            }
            for kind in ["reduction", "need_replication", "permutation", "blocked_propagation"] {
                let factors: Vec<String> = cursor.signed_list()?.into_iter().map(factor).collect();
                if !factors.is_empty() {
                    rest += &format!(" {kind}={{{}}}", factors.join(", "));
                }
            }
            if cursor.byte()? != 0 {
                rest += ", custom";
            }
            format!("sdy.op_sharding_rule<({takes})->({gives}){rest}>")
        }
        code @ 11..=14 => return Err(error(at, format!("attribute {code} of Shardy: its collectives are not read"))),
        code => return Err(error(at, format!("attribute {code} of Shardy, which is not known here"))),
    };
    Ok(Attribute::Opaque(text))
}

/// The name of a factor of a rule: letters from `i` on, then numbers.
fn factor(index: i64) -> String {
    match u8::try_from(index) {
        Ok(i @ 0..=17) => char::from(b'i' + i).to_string(),
        _ => format!("z_{}", index.wrapping_sub(17)),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn list(cursor: &mut Cursor, mut one: impl FnMut(&mut Cursor) -> Result<String>) -> Result<String> {
    let all = (0..cursor.count("attributes")?).map(|_| one(cursor)).collect::<Result<Vec<_>>>()?;
    Ok(all.join(", "))
}

/// Attributes of one kind, without it.
fn nested(entries: &mut Entries, cursor: &mut Cursor, kind: &str) -> Result<String> {
    list(cursor, |cursor| {
        let at = cursor.at();
        stripped(at, entries.attribute(cursor)?, kind)
    })
}

fn stripped(at: usize, attribute: Attribute, kind: &str) -> Result<String> {
    match &attribute {
        Attribute::Opaque(text) => match text.strip_prefix(kind) {
            Some(rest) => Ok(rest.to_owned()),
            None => Err(error(at, format!("`{text}` where a `{kind}` is expected"))),
        },
        other => Err(error(at, format!("{other:?} where a `{kind}` is expected"))),
    }
}
