//! What a call through the backend costs over the bare C call: `cargo run --release -p gradus-pjrt --example call_overhead [PLATFORM]`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gradus_core::pipeline::Pipeline;
use gradus_core::{Array, Executable, Program, Result};
use gradus_pjrt::pjrt;

const ROUNDS: usize = 15;
const CALLS: u32 = 1000;

/// The least time of a call over some rounds.
fn least(mut call: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        for _ in 0..CALLS {
            call()?;
        }
        best = best.min(started.elapsed() / CALLS);
    }
    Ok(best)
}

fn program(inputs: usize, size: usize) -> Result<Program> {
    let ty = format!("f32[{size}]");
    let names: Vec<String> = (0..inputs).map(|i| format!("x{i}: {ty}")).collect();
    let mut text = format!(
        "fn f({}) -> {} {{\n",
        names.join(", "),
        if inputs == 1 { ty.clone() } else { format!("({ty}, {ty})") }
    );
    text += &format!("  x{inputs}: {ty} = add x0 x{}\n  x{}: {ty} = mul x{inputs} x0\n", inputs - 1, inputs + 1);
    text += &if inputs == 1 {
        format!("  return x{}\n}}\n", inputs + 1)
    } else {
        format!("  return x{inputs}, x{}\n}}\n", inputs + 1)
    };
    text.parse()
}

fn main() -> Result<()> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "cpu".into());
    let backend = pjrt(&name)?;
    println!("{:?}", backend.plugin());
    println!("| inputs | elements | bare C call | backend | arrays of the host | difference |");
    println!("|---|---|---|---|---|---|");
    for (inputs, size) in [(1, 8), (2, 1024), (10, 1024), (100, 1024)] {
        let program = program(inputs, size)?;
        let text = gradus_stablehlo::export::stablehlo_text(&program, &Default::default())?;
        let loaded = backend.load(text.as_bytes())?;
        let host: Vec<Array> = (0..inputs).map(|i| Array::full([size], i as f32)).collect();
        let place = backend.place()?;
        let there = host.iter().map(|a| a.to(&place)).collect::<Result<Vec<_>>>()?;
        let buffers = host.iter().map(|a| backend.upload(a.on_host()?)).collect::<Result<Vec<_>>>()?;
        let buffers: Vec<_> = buffers.iter().collect();
        let code: Arc<dyn Executable> = Pipeline::on(backend.clone()).code(&program)?;
        // Each waits for its results, so that what is compared is the same work.
        let bare = least(|| loaded.run(&buffers, &[])?.iter().try_for_each(|b| b.wait()))?;
        let run = |inputs: &[Array]| code.run(inputs)?.iter().try_for_each(Array::wait);
        let through = least(|| run(&there))?;
        let with_upload = least(|| run(&host))?;
        let us = |d: Duration| d.as_secs_f64() * 1e6;
        println!(
            "| {inputs} | {size} | {:.2} µs | {:.2} µs | {:.2} µs | {:+.2} µs |",
            us(bare),
            us(through),
            us(with_upload),
            us(through) - us(bare)
        );
    }
    Ok(())
}
