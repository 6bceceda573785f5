//! The command that speaks GradBench's protocol, driven as the runner does it: lines in, lines out. Values are worked out by
//! hand.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The answers to these messages, numbered in their order.
fn answers(messages: &[Value]) -> Vec<Value> {
    let mut text = String::new();
    for (id, message) in messages.iter().enumerate() {
        let mut message = message.clone();
        message["id"] = id.into();
        text += &format!("{message}\n");
    }
    let answers = lines(&text);
    assert_eq!(answers.len(), messages.len());
    for (id, answer) in answers.iter().enumerate() {
        assert_eq!(answer["id"], id, "{answer}");
    }
    answers
}

fn lines(text: &str) -> Vec<Value> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_gradbench"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let text = text.to_owned();
    // On a thread: answers may fill their pipe before all is sent.
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().expect("the command ends");
    writer.join().expect("no panic").expect("all is read");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect()
}

fn evaluate(module: &str, function: &str, input: &Value) -> Value {
    json!({"kind": "evaluate", "module": module, "function": function, "input": input})
}

/// Whether two values are the same, but for rounding.
fn close(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| close(v, w)))
        }
        _ => a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < 1e-12),
    }
}

/// Both functions of a module, on an input.
fn check(module: &str, input: &Value, expected: [(&str, Value); 2]) {
    let messages: Vec<Value> = expected.iter().map(|(function, _)| evaluate(module, function, input)).collect();
    for (answer, (function, value)) in answers(&messages).iter().zip(&expected) {
        assert_eq!(answer["success"], true, "{module}.{function}: {answer}");
        assert!(close(&answer["output"], value), "{module}.{function}: {} is not {value}", answer["output"]);
    }
}

#[test]
fn the_command_answers_as_the_protocol_says() {
    let messages = [
        json!({"kind": "start", "eval": "hello"}),
        json!({"kind": "define", "module": "hello"}),
        evaluate("hello", "square", &json!(3.0)),
        evaluate("hello", "double", &json!(3.0)),
        json!({"kind": "analysis", "of": 2, "valid": true}),
        json!({"kind": "define", "module": "saddle"}),
    ];
    let answers = answers(&messages);
    assert_eq!(answers[0], json!({"id": 0, "tool": "gradus"}));
    assert_eq!(answers[1], json!({"id": 1, "success": true}));
    assert!(close(&answers[2]["output"], &json!(9.0)) && close(&answers[3]["output"], &json!(6.0)));
    assert_eq!(answers[4], json!({"id": 4}));
    assert_eq!(answers[5]["success"], false);
}

#[test]
fn a_function_is_called_as_often_as_is_asked() {
    let input = json!({"x": [1.0, 2.0], "min_runs": 5, "min_seconds": 0});
    let longer = json!({"x": [1.0, 2.0], "min_runs": 1, "min_seconds": 0.01});
    let answers = answers(&[evaluate("lse", "primal", &input), evaluate("lse", "primal", &longer)]);
    let times = |answer: &Value| -> Vec<u64> {
        let timings = answer["timings"].as_array().expect("a list").clone();
        timings.iter().filter(|t| t["name"] == "evaluate").filter_map(|t| t["nanoseconds"].as_u64()).collect()
    };
    assert_eq!(times(&answers[0]).len(), 5);
    assert!(times(&answers[1]).iter().sum::<u64>() >= 10_000_000);
}

#[test]
fn kmeans_llsq_and_lse_give_known_values() {
    let points = json!({"points": [[0, 0], [2, 0], [10, 0]], "centroids": [[0, 0], [10, 0]]});
    check("kmeans", &points, [("cost", json!(4)), ("dir", json!([[-1, 0], [0, 0]]))]);
    // At -1, 0 and 1 the polynomial 1/2 + t/4 is off by -5/4, -1/2 and 1/4.
    let line = json!({"x": [0.5, 0.25], "n": 3});
    check("llsq", &line, [("primal", json!(0.9375)), ("gradient", json!([1.5, -1.5]))]);
    let half = json!({"x": [7.0, 7.0]});
    check("lse", &half, [("primal", json!(7.0 + 2.0_f64.ln())), ("gradient", json!([0.5, 0.5]))]);
}

#[test]
fn gmm_and_lstm_give_known_values() {
    let one = json!({
        "d": 1, "k": 1, "n": 1, "x": [[1.0]], "m": 0, "gamma": 1.0,
        "alpha": [0.3], "mu": [[0.0]], "q": [[0.0]], "l": [[]],
    });
    // The density of a normal distribution at 1, and the prior of a precision of 1 with two degrees of freedom.
    let objective = -0.5 * std::f64::consts::TAU.ln() - 0.5 - 0.5 - 2.0_f64.ln();
    let gradient = json!({"alpha": [0.0], "mu": [[1.0]], "q": [[-1.0]], "l": [[]]});
    check("gmm", &one, [("objective", json!(objective)), ("jacobian", gradient)]);

    // Without weights the guess is 0, and the norm log(1 + 2).
    let zeros = json!({
        "main_params": [[0, 0, 0, 0], [0, 0, 0, 0]], "extra_params": [[0], [0], [0]],
        "state": [[0], [0]], "sequence": [[1], [1]],
    });
    let mut slopes = vec![0.0; 11];
    slopes[10] = -2.0 / 3.0;
    check("lstm", &zeros, [("objective", json!(3.0_f64.ln())), ("jacobian", json!(slopes))]);
}

#[test]
fn ba_gives_known_values() {
    let p = 12;
    let input = json!({
        "n": 2, "m": 3, "p": p, "cam": [0, 0, 0, 0, 0, 0, 2, 0.5, -0.5, 0, 0],
        "x": [1, 2, 4], "w": 0.5, "feat": [0, 0],
    });
    let objective = json!({
        "reproj_error": {"elements": [0.5, 0.25], "repeated": p},
        "w_err": {"element": 0.75, "repeated": p},
    });
    let answer = &answers(&[evaluate("ba", "objective", &input), evaluate("ba", "jacobian", &input)]);
    assert!(close(&answer[0]["output"], &objective), "{}", answer[0]);
    let square = 0.3125;
    let first = [
        [
            -0.125,
            1.0625,
            -0.5,
            -0.25,
            0.0,
            0.0625,
            0.125,
            0.5,
            0.0,
            0.25 * square,
            0.25 * square * square,
            0.25,
            0.0,
            -0.0625,
            1.0,
        ],
        [
            -1.25,
            0.125,
            0.25,
            0.0,
            -0.25,
            0.125,
            0.25,
            0.0,
            0.5,
            0.5 * square,
            0.5 * square * square,
            0.0,
            0.25,
            -0.125,
            0.5,
        ],
    ];
    let mut values = first.concat();
    values.push(-1.0);
    let output = &answer[1]["output"];
    assert!(close(&output["vals"], &json!(values)), "{output}");
    let (points, weights) = (2 * 11, 2 * 11 + 3 * 3);
    let row: Vec<usize> = (0..11).chain(points..points + 3).chain([weights]).collect();
    let mut columns = [&row[..], &row[..]].concat();
    columns.push(weights + p - 1);
    assert_eq!(output["cols"], json!(columns));
    let rows: Vec<usize> = (0..=2 * p).map(|r| 15 * r).chain((1..=p).map(|r| 30 * p + r)).collect();
    assert_eq!(output["rows"], json!([&rows[..30], &rows[rows.len() - 1..]].concat()));
}

#[test]
fn ht_gives_known_values() {
    let eye = json!([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]);
    let mut theta = vec![0.0; 26];
    theta[3..6].copy_from_slice(&[0.1, 0.2, 0.3]);
    let mut weights = vec![0.0; 22];
    weights[0] = 1.0;
    let parents: Vec<i64> = (0..22)
        .map(|b: i64| {
            if b == 0 {
                -1
            } else if b % 4 == 1 {
                0
            } else {
                b - 1
            }
        })
        .collect();
    let model = json!({
        "bone_count": 22, "bone_names": [], "parents": parents, "is_mirrored": false,
        "base_relatives": vec![eye.clone(); 22], "inverse_base_absolutes": vec![eye; 22],
        "base_positions": [[1, 2, 3, 1], [1, 2, 4, 1]], "weights": [weights, weights], "triangles": [[0, 0, 1]],
    });
    let data = json!({"model": model, "correspondences": [0], "points": [[1, 2, 3]]});
    // All is shifted, and nothing else moves what hangs on the wrist alone: at rest a rotation has no slope here.
    let by_theta = |i: usize| (0..26).map(|j| if j == 3 + i { -1.0 } else { 0.0 }).collect::<Vec<f64>>();
    let simple = json!({"theta": theta, "data": data, "us": []});
    let rows = json!([by_theta(0), by_theta(1), by_theta(2)]);
    check("ht", &simple, [("objective", json!([-0.1, -0.2, -0.3])), ("jacobian", rows)]);
    // A quarter of the way to the third corner, which is one further along z.
    let complicated = json!({"theta": theta, "data": data, "us": [[0.25, 0.5]]});
    let by_us = |i: usize| if i == 2 { vec![1.0, 1.0] } else { vec![0.0, 0.0] };
    let rows: Vec<Vec<f64>> = (0..3).map(|i| [by_us(i), by_theta(i)].concat()).collect();
    check("ht", &complicated, [("objective", json!([-0.1, -0.2, -0.55])), ("jacobian", json!(rows))]);
}

#[test]
fn bad_input_is_answered() {
    let messages = [
        evaluate("kmeans", "cost", &json!({"points": [[1.0]]})),
        evaluate("kmeans", "cost", &json!({"points": [[1.0], [1.0, 2.0]], "centroids": [[1.0]]})),
        evaluate("kmeans", "cost", &json!({"points": [[1.0]], "centroids": [[1.0, 2.0, 3.0]]})),
        evaluate("kmeans", "nonsense", &json!({})),
        evaluate("nonsense", "cost", &json!({})),
        evaluate("ba", "jacobian", &json!({"n": 0, "m": 1, "p": 1})),
        evaluate("llsq", "primal", &json!({"x": [1.0], "n": -4})),
        evaluate("lse", "primal", &json!({"x": [1.0], "min_runs": "many"})),
        evaluate("lstm", "objective", &json!({"main_params": [], "extra_params": [], "state": [], "sequence": []})),
        evaluate("hello", "square", &json!([1])),
    ];
    let answers = answers(&messages);
    for (message, answer) in messages.iter().zip(answers) {
        assert_eq!(answer["success"], false, "{message}");
        assert!(answer["error"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
    }
    assert_eq!(lines("not JSON\n")[0]["success"], false);
}
