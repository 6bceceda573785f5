//! Laws on loops: every way in which two carries can be kept, swapped, doubled, fixed or changed, with constants, sequences and
//! results of every kind; products that leave loops; and sums over rows of unknown number.

use std::sync::LazyLock;

use gradus_core::{Program, Type};

use crate::support::{Seen, Share, inputs_for};

fn parsed(text: &str) -> Program {
    text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn check(seen: &mut Seen, text: &str) {
    let p = parsed(text);
    seen.check(&p, &inputs_for(p.inputs(), false));
}

/// What a body can return: `x0` is a constant, `x1` and `x2` the carries, `x3` an element of a sequence; the others are made.
const VALUES: [&str; 12] = ["x0", "x1", "x2", "x3", "1.5:f64[2]", "x4", "x5", "x6", "x7", "x8", "x9", "-0.0:f64[2]"];
const MADE: &str = "    x4: f64[2] = add x1 x0
    x5: f64[2] = add x1 x2
    x6: f64[2] = abs x0
    x7: f64[2] = mul x3 x6
    x8: f64[2] = neg x2
    x9: f64[2] = mul x6 1.5:f64[2]
";

fn scans() -> Seen {
    let mut seen = Seen::default();
    let mut share = Share::one_in(150, 1);
    for a in VALUES {
        for b in VALUES {
            for (k, y) in VALUES.iter().enumerate() {
                for (length, reverse) in [(0, false), (1, false), (3, true), (3, false)] {
                    for start in ["x0", "x1", "1.5:f64[2]"] {
                        let sequence = if k % 3 == 0 { format!("2.0:f64[{length},2]") } else { "x3".to_owned() };
                        if !share.takes() {
                            continue;
                        }
                        let z = VALUES[(k * 5 + 1) % 12];
                        check(
                            &mut seen,
                            &format!(
                                "fn f(x0: f64[2], x1: f64[2], x2: f64[2], x3: f64[{length},2]) -> (f64[2], f64[2], f64[{length},2], f64[{length},2]) {{
  x4: f64[2], x5: f64[2], x6: f64[{length},2], x7: f64[{length},2] = scan{{body=fn step(x0: f64[2], x1: f64[2], x2: f64[2], x3: f64[2]) -> (f64[2], f64[2], f64[2], f64[2]) {{
{MADE}    return {a}, {b}, {y}, {z}
  }}, consts=1, carries=2, length={length}, reverse={reverse}}} x0 {start} x2 {sequence}
  return x4, x5, x6, x7
}}
"
                            ),
                        );
                    }
                }
            }
        }
    }
    seen.report("scans");
    seen
}

fn whiles() -> Seen {
    let mut seen = Seen::default();
    let mut share = Share::one_in(20, 1);
    for a in VALUES {
        for b in VALUES {
            for (steps, limit) in [(0, "[]"), (1, "[]"), (3, "[]"), (3, "[2]"), (3, "[0]")] {
                for start in ["x0", "x1", "1.5:f64[2]"] {
                    for bound in ["x3", "x11"] {
                        if !share.takes() {
                            continue;
                        }
                        let body = MADE.replace("x3", "x2");
                        let (a, b) = (a.replace("x3", "x2"), b.replace("x3", "x2"));
                        check(
                            &mut seen,
                            &format!(
                                "fn f(x0: f64[2], x1: f64[2], x2: f64[2]) -> (i64[], f64[2], f64[2]) {{
  x3: i64[], x4: f64[2], x5: f64[2] = while{{condition=fn more(x0: f64[2], x1: f64[2], x2: f64[2], x3: i64[]) -> bool[] {{
    x4: f64[2] = abs x0
    x5: f64[] = reduce_max{{axes=[0]}} x4
    x6: bool[] = compare{{direction=ge}} x5 0.0:f64[]
    x7: i64[] = convert{{dtype=i64}} x6
    x8: i64[] = mul x7 {steps}:i64[]
    x9: i64[] = max x8 {steps}:i64[]
    x10: i64[] = min x9 {steps}:i64[]
    x11: i64[] = add x3 0:i64[]
    x12: bool[] = compare{{direction=lt}} {bound} x10
    return x12
  }}, body=fn step(x0: f64[2], x1: f64[2], x2: f64[2], x3: i64[]) -> (f64[2], f64[2], i64[]) {{
{body}    x10: i64[] = add x3 1:i64[]
    return {a}, {b}, x10
  }}, consts=1, limit={limit}, checkpoints=32}} x0 {start} x2 0:i64[]
  return x5, x3, x4
}}
"
                            )
                            .replace("x3: i64[], x4: f64[2], x5: f64[2] = while", "x3: f64[2], x4: f64[2], x5: i64[] = while"),
                        );
                    }
                }
            }
        }
    }
    seen.report("whiles");
    seen
}

/// Products and sums of steps, in every direction of their axes: they leave the loop.
fn fissions() -> Seen {
    let mut seen = Seen::default();
    for length in [0, 1, 2, 4] {
        for reverse in [false, true] {
            for (lhs, rhs) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                for side in [0, 1] {
                    let (ops, out) = if side == 0 { ("x2 x3", "x2 x0") } else { ("x3 x2", "x0 x2") };
                    for start in ["x1", "0.0:f64[3,3]", "-0.0:f64[3,3]"] {
                        for (view, viewed) in
                            [("transpose{axes=[1,0]}", "f64[3,3]"), ("reshape{shape=[3,3]}", "f64[3,3]")]
                        {
                            check(
                                &mut seen,
                                &format!(
                                    "fn f(x0: f64[3,3], x1: f64[3,3], x2: f64[{length},3,3], x3: f64[{length},3,3]) -> (f64[3,3], f64[{length},3,3], f64[3]) {{
  x4: f64[3,3], x5: f64[3], x6: f64[{length},3,3] = scan{{body=fn step(x0: f64[3,3], x1: f64[3,3], x4: f64[3], x2: f64[3,3], x3: f64[3,3]) -> (f64[3,3], f64[3], f64[3,3]) {{
    x5: {viewed} = {view} x2
    x6: f64[3,3] = dot_general{{lhs_contract=[{lhs}], rhs_contract=[{rhs}], lhs_batch=[], rhs_batch=[]}} {ops}
    x7: f64[3,3] = transpose{{axes=[1,0]}} x6
    x8: f64[3,3] = add x7 x1
    x9: f64[3,3] = dot_general{{lhs_contract=[{lhs}], rhs_contract=[{rhs}], lhs_batch=[], rhs_batch=[]}} {out}
    x10: f64[3] = reduce_sum{{axes=[{lhs}]}} x5
    x11: f64[3] = add x4 x10
    return x8, x11, x9
  }}, consts=1, carries=2, length={length}, reverse={reverse}}} x0 {start} 0.0:f64[3] x2 x3
  return x4, x6, x5
}}
"
                                )
                                // Inputs of a body are numbered in their order.
                                .replace("x4: f64[3], x2: f64[3,3], x3: f64[3,3])", "x2: f64[3], x3: f64[3,3], x4: f64[3,3])")
                                .replace(&format!("{view} x2\n"), &format!("{view} x3\n"))
                                .replace(&format!("lhs_batch=[], rhs_batch=[]}} {ops}\n"), &format!("lhs_batch=[], rhs_batch=[]}} {}\n", ops.replace("x3", "x4").replace("x2", "x5")))
                                .replace(&format!("lhs_batch=[], rhs_batch=[]}} {out}\n"), &format!("lhs_batch=[], rhs_batch=[]}} {}\n", out.replace("x2", "x3")))
                                .replace("add x4 x10", "add x2 x10"),
                            );
                        }
                    }
                }
            }
        }
    }
    seen.report("products that leave loops");
    seen
}

/// Steps that carry nothing: elements, sums and views of them, of constants and of sequences.
fn steps() -> Seen {
    let mut seen = Seen::default();
    for length in [0, 1, 3] {
        for reverse in [false, true] {
            for axis in [0, 1] {
                for made in ["reduce_sum", "reduce_max"] {
                    for value in ["x4", "x0", "x5", "-0.0:f64[2,2]"] {
                        check(
                            &mut seen,
                            &format!(
                                "fn f(x0: f64[2,2], x1: f64[{length},2,2], x2: f64[{length}]) -> (f64[{length},2], f64[{length},2,2]) {{
  x3: f64[{length},2], x4: f64[{length},2,2] = scan{{body=fn step(x0: f64[2,2], x1: f64[2,2], x2: f64[]) -> (f64[2], f64[2,2]) {{
    x3: f64[2,2] = broadcast{{shape=[2,2], axes=[]}} x2
    x4: f64[2,2] = mul x1 x3
    x5: f64[2,2] = transpose{{axes=[1,0]}} x1
    x6: f64[2,2] = add x4 x0
    x7: f64[2] = {made}{{axes=[{axis}]}} x6
    return x7, {value}
  }}, consts=1, carries=0, length={length}, reverse={reverse}}} x0 x1 x2
  return x3, x4
}}
"
                            ),
                        );
                    }
                }
            }
        }
    }
    seen.report("steps at once");
    seen
}

/// What a loop stacks, and what is then only summed: plainly, times what is the same in every step, times numbers, times another one in every step; and what is
/// also wanted for itself, summed along one axis only, or made of much.
fn again() -> Seen {
    let mut seen = Seen::default();
    for (shape, axes) in [("[3,44000]", "[1]"), ("[3,2,22000]", "[1,2]")] {
        let one = shape.replace("[3,", "[");
        let repeated = format!("broadcast{{shape={shape}, axes={axes}}}");
        for made in [
            "reduce_sum{axes=AXES} x5".to_owned(),
            format!(
                "mul x5 x7\n  x9: f64SHAPE = {repeated} x1\n  x10: f64SHAPE = sub x8 x9\n  x11: f64[3] = reduce_sum{{axes=AXES}} x10"
            ),
            "mul x5 2.5:f64SHAPE\n  x9: f64SHAPE = mul x8 x5\n  x10: f64[3] = reduce_sum{axes=AXES} x9".to_owned(),
            "mul x5 x2\n  x9: f64[3] = reduce_sum{axes=AXES} x8\n  x10: f64[3] = reduce_sum{axes=AXES} x5".to_owned(),
            "exp x5\n  x9: f64[3] = reduce_max{axes=AXES} x8".to_owned(),
        ] {
            for kept in ["x4", "x6"] {
                let last = made.matches("\n").count() + 8;
                let first = if last == 8 { "f64[3]" } else { "f64SHAPE" };
                let text = format!(
                    "fn f(x0: f64ONE, x1: f64ONE, x2: f64SHAPE, x3: f64[3]) -> (f64ONE, f64[3]) {{
  x4: f64ONE, x5: f64SHAPE, x6: f64SHAPE = scan{{body=fn step(x0: f64ONE, x1: f64ONE, x2: f64[]) -> (f64ONE, f64ONE, f64ONE) {{
    x3: f64ONE = broadcast{{shape=ONE, axes=[]}} x2
    x4: f64ONE = mul x1 x3
    x5: f64ONE = add x4 x0
    x6: f64ONE = mul x5 x5
    return x6, x1, x5
  }}, consts=1, carries=1, length=3, reverse=false}} x0 x1 x3
  x7: f64SHAPE = {repeated} x4
  x8: {first} = {made}
  return x4, x{last}
}}
"
                );
                let text = text.replace("SHAPE", shape).replace("ONE", &one).replace("AXES", axes);
                let text = if kept == "x6" {
                    // The stacked result is an output as well.
                    text.replace(
                        &format!("(f64{one}, f64[3]) {{\n  x4"),
                        &format!("(f64{one}, f64[3], f64{shape}) {{\n  x4"),
                    )
                    .replace(&format!("return x4, x{last}"), &format!("return x4, x{last}, x5"))
                } else {
                    text
                };
                check(&mut seen, &text);
            }
        }
    }
    seen.report("made again in sums");
    seen
}

/// Sums over rows of which only a call knows how many there are.
fn rows() -> Seen {
    let mut seen = Seen::default();
    for axes in ["[0,1]", "[1]", "[0]", "[]"] {
        for n in [0, 1, 5] {
            let p = parsed(&format!(
                "fn f(x0: f64[B,3]) -> ({}, f64[B]) {{
  x1: f64[B] = reduce_max{{axes=[1]}} x0
  x2: {} = reduce_sum{{axes={axes}}} x0
  return x2, x1
}}
",
                result(axes),
                result(axes)
            ));
            let inputs = [Type::new(gradus_core::DType::F64, &[n, 3][..])];
            seen.check(&p, &inputs_for(&inputs, false));
        }
    }
    // Of known sizes, where elements lie apart: repeated, cut, turned, in short rows and long ones.
    for (kind, result) in [("reduce_max", "f64[]"), ("reduce_sum", "f64[]"), ("reduce_min", "f64[]")] {
        for view in [
            "broadcast{shape=[4,40,3,35], axes=[1,2,3]} x1",
            "broadcast{shape=[4,40,3,35], axes=[0]} x2",
            "slice{start=[0,0,0,1], limit=[4,40,3,36], step=[1,1,1,1]} x3",
            "transpose{axes=[2,1,0,3]} x4",
            "reverse{axes=[3]} x0",
        ] {
            for shape in ["[4,40,3,35]", "[4,40,3,3]"] {
                let text = format!(
                    "fn f(x0: f64[4,40,3,35], x1: f64[40,3,35], x2: f64[4], x3: f64[4,40,3,36], x4: f64[3,40,4,35]) -> {result} {{
  x5: f64[4,40,3,35] = {view}
  x6: f64[4,40,3,35] = abs x5
  x7: f64[4,40,3,35] = max x0 x6
  x8: {result} = {kind}{{axes=[0,1,2,3]}} x7
  return x8
}}
"
                );
                let short = text.replace("35]", "3]").replace("36", "4");
                check(&mut seen, if shape == "[4,40,3,35]" { &text } else { &short });
            }
        }
    }
    seen.report("sums by rows");
    seen
}

fn result(axes: &str) -> &'static str {
    match axes {
        "[0,1]" => "f64[]",
        "[1]" => "f64[B]",
        "[0]" => "f64[3]",
        _ => "f64[B,3]",
    }
}

/// Calls, marks, checkpoints and branches that are written out.
fn written_out() -> Seen {
    let mut seen = Seen::default();
    let inner = "fn g(x0: f64[2], x1: f64[2]) -> (f64[2], f64[2]) {
    x2: f64[2] = sub x0 x1
    x3: f64[2] = stop_gradient x2
    return x3, x0
  }";
    for (a, b) in [("x0", "x1"), ("x1", "x0"), ("x0", "x0"), ("x0", "-0.0:f64[2]")] {
        for op in [
            format!("call{{program={inner}}} {a} {b}"),
            format!("checkpoint{{program={inner}, policy=nothing}} {a} {b}"),
            format!("switch{{branches=[{inner}, {}]}} 1:i32[] {a} {b}", inner.replace("sub", "add")),
            format!("switch{{branches=[{inner}, {}]}} 9:i32[] {a} {b}", inner.replace("sub", "add")),
            format!("switch{{branches=[{inner}, {}]}} -3:i32[] {a} {b}", inner.replace("sub", "mul")),
        ] {
            for outputs in ["x2, x3", "x3, x2", "x3, x3", "x4, x0"] {
                check(
                    &mut seen,
                    &format!(
                        "fn f(x0: f64[2], x1: f64[2]) -> (f64[2], f64[2]) {{
  x2: f64[2], x3: f64[2] = {op}
  x4: f64[2] = add x2 x3
  return {outputs}
}}
"
                    ),
                );
            }
        }
    }
    seen.report("calls, checkpoints and branches");
    seen
}

static SCANS: LazyLock<Seen> = LazyLock::new(scans);
static WHILES: LazyLock<Seen> = LazyLock::new(whiles);
static FISSIONS: LazyLock<Seen> = LazyLock::new(fissions);
static STEPS: LazyLock<Seen> = LazyLock::new(steps);
static AGAIN: LazyLock<Seen> = LazyLock::new(again);
static ROWS: LazyLock<Seen> = LazyLock::new(rows);
static WRITTEN_OUT: LazyLock<Seen> = LazyLock::new(written_out);

/// What was seen.
pub fn seen() -> Vec<&'static Seen> {
    vec![&SCANS, &WHILES, &FISSIONS, &STEPS, &AGAIN, &ROWS, &WRITTEN_OUT]
}

#[test]
fn scans_keep_their_bits() {
    assert!(!SCANS.laws.is_empty());
}

#[test]
fn whiles_keep_their_bits() {
    assert!(!WHILES.laws.is_empty());
}

#[test]
fn products_that_leave_loops_keep_their_bits() {
    assert!(!FISSIONS.laws.is_empty());
}

#[test]
fn steps_at_once_keep_their_bits() {
    assert!(!STEPS.laws.is_empty());
}

#[test]
fn what_is_made_again_keeps_its_bits() {
    assert!(!AGAIN.laws.is_empty());
}

#[test]
fn sums_by_rows_keep_their_bits() {
    assert!(!ROWS.laws.is_empty());
}

#[test]
fn what_is_written_out_keeps_its_bits() {
    assert!(!WRITTEN_OUT.laws.is_empty());
}
