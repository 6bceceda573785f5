//! GradBench's protocol: a message of JSON a line, each answered by one. `define` asks whether a module of functions is
//! known, `evaluate` runs a function of it on an input, often enough, and wants the output and all times.

mod input;
mod modules;

use std::time::Instant;

use gradus::prelude::*;
use serde_json::{Map, Value, json};

use input::Input;

/// Why a message has no answer: a text for whoever sent it.
#[derive(Debug)]
struct Fault(String);

impl From<Error> for Fault {
    fn from(e: Error) -> Fault {
        Fault(e.to_string())
    }
}

impl From<String> for Fault {
    fn from(text: String) -> Fault {
        Fault(text)
    }
}

type Answer<T> = std::result::Result<T, Fault>;

/// An output and the times of the calls that it took.
struct Evaluated {
    output: Value,
    timings: Vec<Value>,
}

/// The answer to a line.
pub fn respond(line: &str) -> String {
    let message: Value = match serde_json::from_str(line) {
        Ok(message) => message,
        Err(e) => return json!({"id": null, "success": false, "error": format!("not JSON: {e}")}).to_string(),
    };
    let mut answer = Map::new();
    answer.insert("id".to_owned(), message["id"].clone());
    match message["kind"].as_str() {
        Some("start") => {
            answer.insert("tool".to_owned(), "gradus".into());
        }
        Some("define") => {
            let known = modules::functions(word(&message, "module"));
            finish(&mut answer, known.map(|_| Map::new()));
        }
        Some("evaluate") => {
            let evaluated = evaluate(&message).map(|e| {
                let mut fields = Map::new();
                fields.insert("output".to_owned(), e.output);
                fields.insert("timings".to_owned(), Value::Array(e.timings));
                fields
            });
            finish(&mut answer, evaluated);
        }
        // All others are answered by their number alone.
        _ => {}
    }
    Value::Object(answer).to_string()
}

fn finish(answer: &mut Map<String, Value>, result: Answer<Map<String, Value>>) {
    answer.insert("success".to_owned(), result.is_ok().into());
    match result {
        Ok(fields) => answer.extend(fields),
        Err(Fault(text)) => {
            answer.insert("error".to_owned(), text.into());
        }
    }
}

/// A field that is a word; the empty one if it is not.
fn word<'a>(message: &'a Value, field: &str) -> &'a str {
    message[field].as_str().unwrap_or_default()
}

fn evaluate(message: &Value) -> Answer<Evaluated> {
    let (module, function) = (word(message, "module"), word(message, "function"));
    let functions = modules::functions(module)?;
    let Some((_, run)) = functions.iter().find(|(name, _)| *name == function) else {
        let names: Vec<&str> = functions.iter().map(|(name, _)| *name).collect();
        return Err(Fault(format!("`{module}` has no function `{function}`, only {}", names.join(" and "))));
    };
    run(&Input(&message["input"]))
}

/// Calls a function as often as an input asks for. The first call, which traces and compiles, is a time of its own.
fn repeated<O>(input: &Input<'_>, call: impl Fn() -> Answer<O>) -> Answer<(O, Vec<Value>)> {
    let (least_runs, least_seconds) = input.effort()?;
    let mut timings = Vec::new();
    let mut timed = |name: &str| {
        let started = Instant::now();
        let result = call();
        let taken = started.elapsed();
        timings.push(json!({"name": name, "nanoseconds": taken.as_nanos() as u64}));
        result.map(|r| (r, taken.as_secs_f64()))
    };
    timed("prepare")?;
    let (mut result, mut seconds) = timed("evaluate")?;
    let mut runs = 1;
    while runs < least_runs || seconds < least_seconds {
        let (again, taken) = timed("evaluate")?;
        (result, seconds, runs) = (again, seconds + taken, runs + 1);
    }
    Ok((result, timings))
}
