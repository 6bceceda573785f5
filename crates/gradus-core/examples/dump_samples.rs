//! Prints every sample of every primitive, one JSON object in a line: the input of `scripts/reference/primitives.py`.

#[path = "../tests/support/samples.rs"]
mod samples;

fn main() {
    for sample in samples::all() {
        println!("{}", samples::describe(&sample));
    }
}
