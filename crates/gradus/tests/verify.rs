//! Calls that are held against the interpreter, and compilers that fail: what is found, what is said, what is written, and what is
//! not taken for a fault.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gradus::Interpreter;
use gradus::cpu::Cpu;
use gradus::extend::optimize::Pass;
use gradus::extend::oracle::Reproduction;
use gradus::extend::pipeline::Pipeline;
use gradus::extend::primitives::Outputs;
use gradus::extend::{Backend, Executable, Passed};
use gradus::prelude::*;
use gradus::warnings::{WarningKind, collect};

fn embedded(program: &Program) -> Result<Arc<dyn Executable>> {
    Pipeline::on(Cpu::new().tier(Tier::Embedded)).code(program)
}

/// A compiler that takes one operation for another.
fn mistaken(program: &Program, from: &str, to: &str) -> Result<Arc<dyn Executable>> {
    let text = program.to_string().replace(&format!("= {from} "), &format!("= {to} "));
    embedded(&text.parse()?)
}

/// Takes every sine for a cosine.
#[derive(Debug)]
struct Mistaken;

impl Backend for Mistaken {
    fn name(&self) -> &'static str {
        "mistaken"
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        mistaken(program, "sin", "cos")
    }
}

/// Takes an exponential for a sine if both are in a program that gives one result: a fault of equations that share a kernel.
#[derive(Debug)]
struct Fusing;

impl Backend for Fusing {
    fn name(&self) -> &'static str {
        "fusing"
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        match program.outputs().len() == 1 && program.count("sin") > 0 && program.count("exp") > 0 {
            true => mistaken(program, "exp", "sin"),
            false => embedded(program),
        }
    }
}

/// Code that is right or wrong by the number of its call.
#[derive(Debug)]
struct Counting {
    code: Arc<dyn Executable>,
    calls: AtomicU32,
    /// The calls that are wrong.
    wrong: fn(u32) -> bool,
    /// The call from which on it is another code.
    better: u32,
}

impl Executable for Counting {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        let mut outputs = self.code.run(inputs)?;
        if (self.wrong)(self.calls.fetch_add(1, Ordering::Relaxed)) {
            outputs[0] = outputs[0].at(1).add(1.0_f64).ok()?;
        }
        Ok(outputs)
    }
    fn bytes(&self) -> usize {
        self.code.bytes()
    }
    fn generation(&self) -> u32 {
        u32::from(self.calls.load(Ordering::Relaxed) >= self.better)
    }
    fn as_any(self: Arc<Self>) -> Arc<dyn std::any::Any + Send + Sync> {
        self
    }
}

#[derive(Debug)]
struct ByCall(&'static str, fn(u32) -> bool, u32);

impl Backend for ByCall {
    fn name(&self) -> &'static str {
        self.0
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        let (code, calls) = (embedded(program)?, AtomicU32::new(0));
        Ok(Arc::new(Counting { code, calls, wrong: self.1, better: self.2 }))
    }
}

/// A right compiler that asks for a pass which takes a sine for a cosine.
#[derive(Debug)]
struct BadPass;

impl Backend for BadPass {
    fn name(&self) -> &'static str {
        "with a bad pass"
    }
    fn passes(&self, program: &Program) -> Vec<Pass> {
        let turned = |p: &Program, _| p.to_string().replace("= sin ", "= cos ").parse();
        let mut passes = Cpu::new().passes(program);
        passes.push(Pass { name: "turn", run: turned });
        passes
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        Cpu::new().tier(Tier::Embedded).compile(program)
    }
}

#[test]
fn row_r7_a_pass_that_a_backend_asks_for_is_followed_too() -> Result<()> {
    let f = jit(|x: &Array| x.sin() * x + 1.0_f64).backend(BadPass);
    let names: Vec<&str> = f.phases(&three())?.iter().map(|p| p.name).collect();
    let at = |name: &str| names.iter().position(|n| *n == name);
    assert!(at("turn").is_some() && at("contract") < at("turn") && at("turn") < at("lower"), "{names:?}");
    let e = f.verify()(&three()).ok().unwrap_err().to_string();
    assert!(e.contains("the pass `turn` changes what the program computes"), "{e}");
    Ok(())
}

fn three() -> Array {
    Array::from([0.25_f64, 1.0, -2.0])
}

/// The folder that an error names.
fn folder_of(e: &Error) -> PathBuf {
    let text = e.to_string();
    let from = text.split("the program and its inputs are in ").nth(1).unwrap_or_else(|| panic!("{text}"));
    from.split(';').next().unwrap().into()
}

#[test]
fn row_r7_a_wrong_number_is_an_error_that_names_element_line_and_kernel() -> Result<()> {
    let here = line!() + 2;
    let f = jit(|x: &Array| {
        let y = x.sin();
        (x.exp().sum(), y * 3.0_f64)
    });
    let f = f.backend(Mistaken).verify();
    let (sum, _) = f(&three());
    let e = sum.ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch);
    let text = e.to_string();
    let (have, want) = (0.25_f64.cos() * 3.0, 0.25_f64.sin() * 3.0);
    assert!(text.contains(" at [0] is ") && text.contains("output 1 of `"), "{text}");
    for number in [have, want] {
        assert!(text.contains(&format!("{number}")), "{number} in {text}");
    }
    assert!(text.contains("by `mistaken`") && text.contains("3 of 3 elements differ"), "{text}");
    assert!(text.contains("the first to differ is `sin`") && text.contains("in the kernel `"), "{text}");
    assert_eq!(e.place().line(), Some(here), "{text}");
    assert!(e.place().file().is_some_and(|f| f.ends_with("verify.rs")));
    assert!(text.contains("fault of Gradus, not of your program") && text.contains(".backend(Interpreter)"), "{text}");

    // The folder has all that it takes to see it again.
    let folder = folder_of(&e);
    let made = Reproduction::read(&folder)?;
    assert_eq!(made.inputs[0].to_vec::<f64>()?, three().to_vec::<f64>()?);
    let (output, difference) = made.run(Arc::new(Mistaken))?.expect("the same fault");
    assert_eq!((output, difference.at, difference.count), (1, vec![0], 3));
    assert_eq!(made.run(Arc::new(Cpu::default()))?, None);
    let smaller = std::fs::read_to_string(folder.join("smaller.txt")).unwrap();
    assert!(smaller.contains("sin"), "{smaller}");

    // And a command that does so.
    let run = |folder: &std::path::Path| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"));
        let output = command.arg("verify").arg(folder).output().unwrap();
        let text = |b: Vec<u8>| String::from_utf8(b).unwrap();
        (output.status.success(), text(output.stdout) + &text(output.stderr))
    };
    let (ok, said) = run(&folder);
    assert!(ok && said.contains("embedded: the same") && said.contains("llvm: "), "{said}");
    let (ok, said) = run(&folder.join("nowhere"));
    assert!(!ok && said.contains("program.txt"), "{said}");
    // What does not run is a failure, too.
    std::fs::write(folder.join("inputs.txt"), "fn inputs() -> f64[] {\n  return 1.0:f64[]\n}\n").unwrap();
    let (ok, said) = run(&folder);
    assert!(!ok && said.contains("embedded: "), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
fn row_r7_a_fault_of_equations_together_is_found_by_beginnings() {
    let here = line!() + 3;
    let f = jit(|x: &Array| {
        let y = x.sin() * 2.0_f64;
        let z = y.exp();
        (z + 1.0_f64).sqrt()
    });
    let e = f.backend(Fusing).verify()(&three()).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch);
    let text = e.to_string();
    assert!(text.contains("the first to differ is `exp`") && text.contains("together with those before it"), "{text}");
    assert_eq!(e.place().line(), Some(here), "{text}");
    std::fs::remove_dir_all(folder_of(&e)).unwrap();
}

#[test]
fn row_r7_the_first_call_of_each_code_is_verified() -> Result<()> {
    let f = |x: &Array| x * 2.0_f64;
    // Wrong in its second call, which is not looked at.
    let second = jit(f).backend(ByCall("second", |n| n == 1, u32::MAX)).verify_calls(Verify::First);
    assert_eq!(second(&three()).to_vec::<f64>()?, [0.5, 2.0, -4.0]);
    assert_eq!(second(&three()).to_vec::<f64>()?, [0.5, 3.0, -4.0]);
    // But it is if it is the first of better code.
    let better = jit(f).backend(ByCall("better", |n| n >= 2, 2)).verify_calls(Verify::First);
    assert_eq!(better(&three()).to_vec::<f64>()?, [0.5, 2.0, -4.0]);
    assert_eq!(better(&three()).to_vec::<f64>()?, [0.5, 2.0, -4.0]);
    let e = better(&three()).ok().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch);
    std::fs::remove_dir_all(folder_of(&e)).unwrap();
    // Every call means every call.
    let every = jit(f).backend(ByCall("every", |n| n == 1, u32::MAX)).verify();
    assert_eq!(every(&three()).to_vec::<f64>()?, [0.5, 2.0, -4.0]);
    let e = every(&three()).ok().unwrap_err();
    assert!(e.to_string().contains("a second run of the same code gave the interpreter's numbers"), "{e}");
    std::fs::remove_dir_all(folder_of(&e)).unwrap();
    let off = jit(f).backend(ByCall("off", |_| true, u32::MAX)).verify_calls(Verify::Off);
    assert_eq!(off(&three()).to_vec::<f64>()?, [0.5, 3.0, -4.0]);
    Ok(())
}

#[test]
fn row_r7_llvm_code_that_takes_over_is_verified_too() -> Result<()> {
    // More calls than make a program hot: right numbers are not complained about, whichever code runs.
    let f = jit(|x: &Array| x.tanh().sum()).tier(Tier::Auto).verify_calls(Verify::First);
    let want = three().tanh().sum().item::<f64>()?;
    for _ in 0..80 {
        assert!((f(&three()).item::<f64>()? - want).abs() < 1e-15);
    }
    Ok(())
}

#[test]
fn row_r7_effects_happen_once() -> Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    let f = jit(|x: &Array| {
        let number = io_callback(
            |_| Ok(vec![Array::from(f64::from(NEXT.fetch_add(1, Ordering::Relaxed)))]),
            &["f64[]".parse().unwrap()],
            &[],
        );
        let y = x.sin() + &number[0];
        debug_print!("{:.2}", y.sum());
        debug_check!(y.lt(100.0_f64), "too large");
        fori_loop(
            0,
            3,
            |_, y: &Array| {
                debug_callback(|_| assert!(LOOKED.fetch_add(1, Ordering::Relaxed) < 100), &[y]);
                y * 2.0_f64
            },
            y,
        )
    });
    let f = f.verify();
    for call in 0..3 {
        let (y, text) = capture_prints(|| f(&Array::from([0.0_f64])).to_vec::<f64>());
        assert_eq!(y?, [f64::from(call) * 8.0]);
        assert_eq!(text, format!("{call}.00\n"));
    }
    assert_eq!((NEXT.load(Ordering::Relaxed), LOOKED.load(Ordering::Relaxed)), (3, 9));
    Ok(())
}

#[test]
fn row_r7_what_the_host_is_told_is_verified_too() {
    let f = jit(|x: &Array| {
        debug_callback(|_| {}, &[&x.sin()]);
        x * 2.0_f64
    });
    let e = f.backend(Mistaken).verify()(&three()).ok().unwrap_err();
    let text = e.to_string();
    assert!(text.contains("operand 0 of call 0 of `debug_callback`"), "{text}");
    assert!(text.contains("the first to differ is `sin`"), "{text}");
    std::fs::remove_dir_all(folder_of(&e)).unwrap();
}

#[test]
fn row_r7_rounding_is_no_fault() -> Result<()> {
    // Products of matrices are summed in another order than the interpreter's. Here that decides which way `floor` goes.
    let product = |x: &Array, y: &Array| x.matmul(y);
    let far = |n: usize, by: f64| Array::from((0..n * n).map(|i| (i as f64 * by).sin()).collect::<Vec<_>>());
    let (mut tried, mut differed) = (0, 0);
    for n in [33_usize, 48] {
        let (x, y) = (far(n, 1.37).reshape([n, n]), far(n, 0.73).reshape([n, n]));
        let ours = jit(product).verify()(&x, &y).to_vec::<f64>()?;
        let theirs = jit(product).backend(Interpreter)(&x, &y).to_vec::<f64>()?;
        for (i, (a, b)) in ours.iter().zip(&theirs).enumerate().filter(|(_, (a, b))| a != b).take(2) {
            tried += 1;
            let at = [i / n, i % n];
            let step = move |x: &Array, y: &Array, c: &Array| (x.matmul(y).index((at[0], at[1])) - c).floor();
            let tie = Array::from(a.max(*b));
            let have = jit(step).verify_calls(Verify::Off)(&x, &y, &tie).item::<f64>()?;
            let want = jit(step).backend(Interpreter)(&x, &y, &tie).item::<f64>()?;
            differed += usize::from(have != want);
            assert_eq!(jit(step).verify()(&x, &y, &tie).item::<f64>()?, have);
        }
    }
    assert!(tried == 0 || differed > 0, "{tried} ties and none went two ways");
    // What cancels is measured by what was added.
    let cancels = jit(|x: &Array, y: &Array| x.matmul(y) - y.t().matmul(&x.t()).t()).verify();
    let n = 48;
    cancels(&far(n, 1.37).reshape([n, n]), &far(n, 0.73).reshape([n, n])).ok()?;
    Ok(())
}

#[test]
fn row_r7_derivatives_loops_sizes_and_prepared_calls_are_verified() -> Result<()> {
    let loss = |w: &Array, x: &Array| {
        let h = scan(|h: &Array, x: &Array| ((h + x).tanh(), h.clone()), w.clone(), x);
        (h.0.sum() + h.1.sum()).sin()
    };
    let (w, x) = (three(), Array::ones::<f64>([5, 3]));
    let g = jit(grad(loss)).verify();
    let want = jit(grad(loss)).backend(Interpreter)(&w, &x).to_vec::<f64>()?;
    for (a, b) in g(&w, &x).to_vec::<f64>()?.iter().zip(&want) {
        assert!((a - b).abs() < 1e-12);
    }
    let sizes = jit(|x: &Array| x.softmax(0)).symbolic("f64[N]").verify_calls(Verify::First);
    for n in [1_usize, 4, 9, 4] {
        assert!((sizes(&Array::ones::<f64>([n])).sum().item::<f64>()? - 1.0).abs() < 1e-12);
    }
    let specialized = jit(|x: &Array| x.softmax(0)).symbolic("f64[N]").specialize_after(1).verify();
    for _ in 0..3 {
        specialized(&Array::ones::<f64>([6])).ok()?;
    }
    assert_eq!(specialized.stats().specialized, 1);

    let scale = Array::from((0..100).map(f64::from).collect::<Vec<_>>());
    let compiled = jit(move |x: &Array| (x * &scale).sin()).verify().compile(&Array::ones::<f64>([100]))?;
    let mut prepared = compiled.prepared()?;
    for value in [0.5, 2.0] {
        prepared.input::<f64>(0)?.fill(value);
        prepared.run()?;
        assert!((prepared.output::<f64>(0)?[3] - (value * 3.0).sin()).abs() < 1e-15);
    }
    let wrong = jit(|x: &Array| x.sin()).backend(Mistaken).verify().compile(&three())?;
    let e = wrong.prepared()?.run().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch);
    std::fs::remove_dir_all(folder_of(&e)).unwrap();
    Ok(())
}

#[test]
fn row_r7_a_process_is_verified_by_a_variable() {
    // In a process of its own: the variables are read once.
    if std::env::var_os("GRADUS_TEST_CHILD").is_none() {
        let folder = std::env::temp_dir().join(format!("gradus-verified-{}", std::process::id()));
        let run = |variable: &str| {
            let mut child = std::process::Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "row_r7_a_process_is_verified_by_a_variable", "--nocapture"]);
            child.env("GRADUS_TEST_CHILD", "1").env("GRADUS_VERIFY", variable).env("GRADUS_VERIFY_DIR", &folder);
            let output = child.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stderr).unwrap()
        };
        assert!(!run("").contains("[G0020]"));
        for how in ["1", "first"] {
            let said = run(how);
            assert!(said.contains("[G0020]") && said.contains(&folder.display().to_string()), "{said}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
        std::fs::remove_dir_all(&folder).unwrap();
        return;
    }
    if let Err(e) = jit(|x: &Array| x.sin()).backend(Mistaken)(&three()).ok() {
        eprintln!("{e}");
    }
}

/// A compiler that fails.
#[derive(Debug)]
struct Failing(&'static str, ErrorKind);

impl Backend for Failing {
    fn name(&self) -> &'static str {
        self.0
    }
    fn compile(&self, _: &Passed) -> Result<Arc<dyn Executable>> {
        match self.1 {
            ErrorKind::Internal => panic!("the compiler has had enough"),
            kind => Err(Error::new(kind, "x10 is used before it is made")),
        }
    }
}

#[test]
fn row_e4_a_fault_of_gradus_says_so_and_the_call_is_interpreted() -> Result<()> {
    for (name, kind) in [("broken", ErrorKind::Rule), ("invalid", ErrorKind::Verify), ("panics", ErrorKind::Internal)] {
        let here = line!() + 1;
        let f = jit(|x: &Array| x * 3.0_f64).backend(Failing(name, kind));
        let (y, warnings) = collect(|| f(&three()).to_vec::<f64>());
        assert_eq!(y?, [0.75, 3.0, -6.0]);
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(warning.kind(), WarningKind::Interpreted);
        assert_eq!(warning.place().line(), Some(here));
        let text = warning.to_string();
        assert!(text.contains("fault of Gradus, not of your program") && text.contains(".strict()"), "{text}");
        assert!(text.contains("had enough") || text.contains("x10 is used before it is made"), "{text}");
        // Said once, and interpreted from then on.
        let (y, warnings) = collect(|| f(&three()).to_vec::<f64>());
        assert_eq!((y?, warnings.len()), (vec![0.75, 3.0, -6.0], 0));
        assert_eq!(f.stats().compiles, 0);

        let (y, warnings) = collect(|| f.strict()(&three()).ok());
        let e = y.unwrap_err();
        assert_eq!((e.kind(), warnings.len()), (ErrorKind::Internal, 0));
        let text = e.to_string();
        assert!(text.starts_with("fault of Gradus [G0021]: "), "{text}");
        assert!(text.contains("not of your program") && text.contains(".backend(Interpreter)"), "{text}");
        assert!(text.contains("please report") && text.contains("program()"), "{text}");
    }
    Ok(())
}

#[test]
fn row_e4_what_is_the_users_stays_an_error() {
    for (name, kind) in [("large", ErrorKind::Size), ("misfit", ErrorKind::Signature), ("value", ErrorKind::Value)] {
        let f = jit(|x: &Array| x * 3.0_f64).backend(Failing(name, kind));
        let (y, warnings) = collect(|| f(&three()).ok());
        assert_eq!((y.unwrap_err().kind(), warnings.len()), (kind, 0));
    }
}
