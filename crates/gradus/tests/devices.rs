//! Arrays on a device, with a device that is none: it counts what moves, works late, and fails where it is told to. What holds of it must hold of
//! every backend whose results stay where they were made.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gradus::devices::{Device, Host};
use gradus::extend::array::{Concrete, Data, Remote};
use gradus::extend::oracle::Freedom;
use gradus::extend::primitives::Outputs;
use gradus::extend::{Backend, Executable, Facts, Passed, Usage, interpret};
use gradus::prelude::*;
use gradus::warnings::{self, WarningKind};

/// What a pretended device was asked for.
#[derive(Debug, Default)]
struct Counts {
    uploads: AtomicUsize,
    downloads: AtomicUsize,
    runs: AtomicUsize,
    alive: AtomicUsize,
}

impl Counts {
    fn downloads(&self) -> usize {
        self.downloads.load(Ordering::Relaxed)
    }
}

#[derive(Clone, Debug)]
struct Pretended {
    counts: Arc<Counts>,
    /// Whether what it computes fails, which is noticed when it is read.
    fails: bool,
    /// Whether its compiler has a fault.
    refuses: bool,
    /// How far its sines are off.
    off: f64,
}

impl Pretended {
    fn new(fails: bool) -> Pretended {
        Pretended { counts: Arc::default(), fails, refuses: false, off: 0.0 }
    }

    fn put(&self, numbers: Concrete, fails: bool) -> Array {
        self.counts.alive.fetch_add(1, Ordering::Relaxed);
        Array::on_device(Arc::new(Buffer { device: self.clone(), numbers, fails }))
    }
}

#[derive(Debug)]
struct Buffer {
    device: Pretended,
    numbers: Concrete,
    fails: bool,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.device.counts.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Remote for Buffer {
    fn ty(&self) -> &Type {
        self.numbers.ty()
    }
    fn device(&self) -> Arc<dyn Device> {
        Arc::new(self.device.clone())
    }
    fn bytes(&self) -> usize {
        self.ty().bytes().unwrap_or(0)
    }
    fn is_ready(&self) -> bool {
        true
    }
    fn wait(&self) -> Result<()> {
        if self.fails { Err(Error::new(ErrorKind::Device, "the device fell over")) } else { Ok(()) }
    }
    fn download(&self) -> Result<Data> {
        self.device.counts.downloads.fetch_add(1, Ordering::Relaxed);
        if self.fails {
            return Err(Error::new(ErrorKind::Device, "the device fell over"));
        }
        Ok(match self.ty().dtype() {
            DType::F32 => Data::F32(self.numbers.values::<f32>().into_owned()),
            DType::I32 => Data::I32(self.numbers.values::<i32>().into_owned()),
            _ => Data::F64(self.numbers.values::<f64>().into_owned()),
        })
    }
}

impl Device for Pretended {
    fn name(&self) -> String {
        format!("pretended:{:?}", Arc::as_ptr(&self.counts))
    }
    fn upload(&self, numbers: &Concrete) -> Result<Array> {
        self.counts.uploads.fetch_add(1, Ordering::Relaxed);
        Ok(self.put(numbers.clone(), false))
    }
}

impl Backend for Pretended {
    fn name(&self) -> &'static str {
        "pretended"
    }
    fn key(&self) -> String {
        Device::name(self)
    }
    fn about(&self) -> String {
        "a pretended plugin, version 3".into()
    }
    fn device(&self) -> String {
        "pretended:0".into()
    }
    fn is_elsewhere(&self) -> bool {
        true
    }
    fn freedom(&self) -> Freedom {
        Freedom::Functions
    }
    fn compile(&self, program: &Passed) -> Result<Arc<dyn Executable>> {
        if self.refuses {
            return Err(Error::new(ErrorKind::Rule, "the writer of programs has a fault"));
        }
        Ok(Arc::new(Code { device: self.clone(), program: program.program().clone() }))
    }
}

#[derive(Debug)]
struct Code {
    device: Pretended,
    program: Arc<Program>,
}

impl Executable for Code {
    fn run(&self, inputs: &[Array]) -> Result<Outputs> {
        self.device.counts.runs.fetch_add(1, Ordering::Relaxed);
        // What is on the device already is used there: it must not be counted as a download.
        let home = |a: &Array| match a.remote().map(|b| &**b as &dyn Any).and_then(|b| b.downcast_ref::<Buffer>()) {
            Some(buffer) => Array::from(buffer.numbers.clone()),
            None => a.clone(),
        };
        let inputs: Vec<Array> = inputs.iter().map(home).collect();
        // Off at the end is off by as much as the last function would be.
        let off = |a: Array| if self.device.off == 0.0 { a } else { a * (1.0 + self.device.off) };
        let put = |a: Array| off(a).on_host().map(|c| self.device.put((**c).clone(), self.device.fails));
        interpret(&self.program, &inputs)?.into_iter().map(put).collect()
    }
    fn bytes(&self) -> usize {
        0
    }
    fn usage(&self) -> Usage {
        let runs = self.device.counts.runs.load(Ordering::Relaxed) as u64;
        Usage { uploaded: 16 * runs, downloaded: 0, sizes: 1, compile_time: Duration::from_millis(7) }
    }
    fn facts(&self) -> Facts {
        vec![("memory", "12 bytes".into())]
    }
    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

#[test]
fn results_stay_where_they_were_made_until_they_are_read() {
    let device = Pretended::new(false);
    let counts = device.counts.clone();
    let f = jit(|x: &Array| x * 2.0).backend(device.clone());
    let mut x = Array::from([1.0, 2.0]);
    for _ in 0..5 {
        x = f(&x);
    }
    // Type and place are known without a download.
    assert_eq!((x.ty().unwrap().to_string(), x.device().unwrap().name()), ("f64[2]".into(), Device::name(&device)));
    assert_eq!((counts.downloads(), counts.runs.load(Ordering::Relaxed)), (0, 5));
    let copy = x.clone();
    assert_eq!(x.to_vec::<f64>().unwrap(), [32.0, 64.0]);
    assert_eq!(x.to_string(), "[32.0 64.0]");
    assert_eq!(copy.as_slice::<f64>().unwrap(), [32.0, 64.0]);
    assert_eq!(counts.downloads(), 1, "clones share what was downloaded");
    // Four results on the way were freed by being dropped.
    assert_eq!(counts.alive.load(Ordering::Relaxed), 1);
    drop((x, copy));
    assert_eq!(counts.alive.load(Ordering::Relaxed), 0);
}

#[test]
fn an_error_of_a_run_comes_out_at_the_first_read_with_the_line_of_the_call() {
    let line = line!() + 1;
    let f = jit(|x: &Array| x.sin()).backend(Pretended::new(true));
    let y = f(&Array::from([1.0, 2.0]));
    assert!(y.error().is_none() && y.clone().ok().is_ok());
    let e = y.to_vec::<f64>().unwrap_err();
    assert_eq!((e.kind(), e.place().line()), (ErrorKind::Device, Some(line)), "{e}");
    // From then on everybody knows, and nobody panics.
    assert!(y.error().is_some() && y.clone().ok().is_err() && y.item::<f64>().is_err());
    assert!(y.to_string().contains("the device fell over"), "{y}");
    assert!((&y + 1.0).error().is_some() && y.reshape([2, 1]).error().is_some());
    assert!(y.to(&Host).is_err());
    assert!(format!("{y:?}").contains("the device fell over"));
    assert!(jit(|x: &Array| x.cos())(&y).error().is_some());
    // Without a read before, the operation is the first reader.
    let z = f(&Array::from([1.0, 2.0]));
    let e = (&z * 2.0).sum().item::<f64>().unwrap_err();
    assert_eq!((e.kind(), e.place().line()), (ErrorKind::Device, Some(line)), "{e}");
    let g = jit(|x: &Array| x.cos());
    assert_eq!(g(&f(&Array::from([1.0]))).item::<f64>().unwrap_err().kind(), ErrorKind::Device);
    let h = jit(|x: &Array| x.cos()).backend(gradus::Interpreter);
    assert_eq!(h(&f(&Array::from([1.0]))).item::<f64>().unwrap_err().kind(), ErrorKind::Device);
}

#[test]
fn arrays_move_when_they_are_told() {
    let (a, b) = (Pretended::new(false), Pretended::new(false));
    let x = Array::from([1.0_f32, 2.0]);
    assert_eq!(x.device().unwrap().name(), "host");
    let there = x.to(&a).unwrap();
    assert_eq!(there.device().unwrap().name(), Device::name(&a));
    assert_eq!(
        there.to(&a).unwrap().remote().map(Arc::as_ptr).map(<*const _>::addr),
        there.remote().map(Arc::as_ptr).map(<*const _>::addr)
    );
    assert_eq!((a.counts.uploads.load(Ordering::Relaxed), a.counts.downloads()), (1, 0));
    let other = there.to(&there.to(&b).unwrap().device().unwrap()).unwrap();
    assert_eq!((a.counts.downloads(), b.counts.uploads.load(Ordering::Relaxed)), (1, 2));
    let home = other.to(&Host).unwrap();
    assert!(home.remote().is_none() && home.is_identical(&x) && other.is_identical(&x) && x.is_identical(&other));
    // What has no numbers is nowhere.
    let e = Array::spec("f32[2]").to(&a).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotConcrete, "{e}");
    let moved = jit(move |x: &Array| x.to(&Host).unwrap_or_else(Array::from));
    assert_eq!(moved(&x).error().map(Error::kind), Some(ErrorKind::NotConcrete));
}

#[test]
fn captured_arrays_stay_on_the_device() {
    let device = Pretended::new(false);
    let weights = Array::from((0..100).map(f64::from).collect::<Vec<_>>()).to(&device).unwrap();
    let f = jit(move |x: &Array| (x * &weights).sum()).backend(device.clone());
    let g = f(&Array::from([1.0]));
    assert_eq!(device.counts.downloads(), 0);
    assert_eq!(g.item::<f64>().unwrap(), 4950.0);
    assert_eq!(device.counts.downloads(), 1);
}

#[test]
fn derivatives_batches_loops_and_guards_take_arrays_of_a_device() {
    let device = Pretended::new(false);
    let x = Array::from([1.0, 2.0, 3.0]).to(&device).unwrap();
    let square = |x: &Array| (x * x).sum();
    assert_eq!(grad(square)(&x).to_vec::<f64>().unwrap(), [2.0, 4.0, 6.0]);
    assert_eq!(jit(grad(square))(&x).to_vec::<f64>().unwrap(), [2.0, 4.0, 6.0]);
    assert_eq!(hessian(square)(&x).to_vec::<f64>().unwrap(), [2.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
    assert_eq!(vmap(|x: &Array| x.exp() * 0.0 + x)(&x).to_vec::<f64>().unwrap(), [1.0, 2.0, 3.0]);
    let (sum, _) = scan(|c: &Array, x: &Array| (c + x, c.clone()), Array::from(0.0), &x);
    assert_eq!(sum.item::<f64>().unwrap(), 6.0);
    let f = jit(|x: &Array| if x.max().item::<f64>().is_ok_and(|m| m > 2.5) { x + 1.0 } else { x - 1.0 })
        .mode(Mode::Concrete)
        .backend(device.clone());
    assert_eq!(f(&x).to_vec::<f64>().unwrap(), [2.0, 3.0, 4.0]);
    assert_eq!(f(&(&x * 0.5).to(&device).unwrap()).to_vec::<f64>().unwrap(), [-0.5, 0.0, 0.5]);
    assert_eq!(f.stats().traces, 2);
    // A view, an index, a cast: all of the numbers that were downloaded.
    assert_eq!(x.reshape([3, 1]).transpose([1, 0]).shape(), [1, 3]);
    assert_eq!(x.index(1).item::<f64>().unwrap(), 2.0);
    assert_eq!(x.cast(DType::I32).to_vec::<i32>().unwrap(), [1, 2, 3]);
}

#[test]
fn an_operation_outside_of_a_program_says_once_per_line_that_it_runs_here() {
    let device = Pretended::new(false);
    let x = Array::from([1.0, 2.0]).to(&device).unwrap();
    let (_, said) = warnings::collect(|| (0..3).map(|_| x.sin()).collect::<Vec<_>>());
    assert_eq!(said.iter().map(warnings::Warning::kind).collect::<Vec<_>>(), [WarningKind::OffDevice]);
    assert!(said[0].message().contains("`sin` runs on the host"), "{}", said[0]);
    let (_, said) = warnings::collect(|| (x.sin(), jit(|x: &Array| x.sin()).backend(device.clone())(&x)));
    assert_eq!(said.len(), 1, "another line, and a program is no operation");
}

#[test]
fn who_holds_a_buffer_is_known() {
    let device = Pretended::new(false);
    let x = Array::from([1.0]).to(&device).unwrap();
    assert!(x.is_unshared());
    let y = x.clone();
    assert!(!x.is_unshared());
    drop(y);
    assert!(x.is_unshared());
    assert!(!Array::from([1.0]).is_unshared());
}

#[test]
fn files_take_arrays_of_a_device() {
    let device = Pretended::new(false);
    let x = Array::from([1.5_f32, 2.5]).to(&device).unwrap();
    let path = std::env::temp_dir().join(format!("gradus-devices-{}.npz", std::process::id()));
    files::save(&path, &(x.clone(),)).unwrap();
    let (back,) = files::load(&path, &(x,)).unwrap();
    std::fs::remove_file(&path).ok();
    assert_eq!(back.to_vec::<f32>().unwrap(), [1.5, 2.5]);
}

#[test]
fn a_function_says_where_it_runs_and_what_that_took() {
    let device = Pretended::new(false);
    let f = jit(|x: &Array| x.sin()).backend(device);
    let x = Array::from([1.0, 2.0]);
    assert!(f.explain(&x).to_string().contains("device pretended:0"), "{}", f.explain(&x));
    f(&x);
    f(&x);
    let told = f.explain(&x).to_string();
    for part in
        ["version 3", "moved: 32 bytes to the device, 0 bytes back", "compiled: 1 size in 7.0ms", "memory: 12 bytes"]
    {
        assert!(told.contains(part), "{part} is not in {told}");
    }
    assert_eq!((f.stats().device.uploaded, f.stats().device.sizes), (32, 1));
    let phases = f.phases(&x).unwrap().to_string();
    for part in ["pretended ready on pretended:0", "a pretended plugin, version 3", "moved: 48 bytes to the device"] {
        assert!(phases.contains(part), "{part} is not in {phases}");
    }
    assert!(jit(|x: &Array| x.sin()).explain(&x).to_string().contains("device cpu"));
}

#[test]
fn what_a_device_cannot_compile_is_an_error_and_never_interpreted_here() {
    let device = Pretended { refuses: true, ..Pretended::new(false) };
    let line = line!() + 1;
    let f = jit(|x: &Array| x.sin()).backend(device);
    let (y, said) = warnings::collect(|| f(&Array::from([1.0])));
    let e = y.item::<f64>().unwrap_err();
    assert_eq!((e.kind(), e.place().line(), said.len()), (ErrorKind::Internal, Some(line), 0), "{e}");
    assert!(e.to_string().contains("the writer of programs has a fault"), "{e}");
}

#[test]
fn programs_that_are_called_run_on_the_backend_in_use() {
    let device = Pretended::new(false);
    let inner = jit(|x: &Array| x.sin() * x.exp());
    let f = grad(move |x: &Array| inner(x).sum()).backend(device.clone());
    let x = Array::from([0.5, 1.5]);
    let want: Vec<f64> = [0.5_f64, 1.5].iter().map(|x| x.exp() * (x.sin() + x.cos())).collect();
    let have = f(&x).to_vec::<f64>().unwrap();
    assert!(have.iter().zip(&want).all(|(h, w)| (h - w).abs() < 1e-12), "{have:?} {want:?}");
    assert!(device.counts.runs.load(Ordering::Relaxed) > 0, "the call inside ran elsewhere");
    // Who chose nothing is not meant.
    let runs = device.counts.runs.load(Ordering::Relaxed);
    let inner = jit(|x: &Array| x.sin() * x.exp());
    grad(move |x: &Array| inner(x).sum())(&x).to_vec::<f64>().unwrap();
    assert_eq!(device.counts.runs.load(Ordering::Relaxed), runs);
}

#[test]
fn a_device_is_verified_within_what_its_functions_may_be_off() {
    let x = Array::from([0.3, 0.7]);
    let on = |off: f64| {
        let device = Pretended { off, ..Pretended::new(false) };
        jit(|x: &Array| x.sin()).backend(device).verify()
    };
    assert!(on(1e-14)(&x).to_vec::<f64>().is_ok());
    let e = on(1e-6)(&x).to_vec::<f64>().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Mismatch, "{e}");
    assert!(e.to_string().contains("pretended:0 computes otherwise than rounding can explain"), "{e}");
    // A device that fails is no device that gives other numbers.
    let f = jit(|x: &Array| x.sin()).backend(Pretended::new(true)).verify();
    assert_eq!(f(&x).to_vec::<f64>().unwrap_err().kind(), ErrorKind::Device);
}

#[test]
fn a_device_has_no_buffers_to_prepare() {
    let f = jit(|x: &Array| x.sin()).backend(Pretended::new(false));
    let e = f.compile(&Array::spec("f64[2]")).unwrap().prepared().err().unwrap();
    assert!(e.to_string().contains("is run by `pretended`") && e.to_string().contains("x.to(&device)?"), "{e}");
}

/// The environment is read once, so each value has a process of its own: this test again, with the value.
#[test]
fn a_backend_that_the_environment_asks_for_is_there_or_missed() {
    const NAME: &str = "a_backend_that_the_environment_asks_for_is_there_or_missed";
    if std::env::var("GRADUS_DEVICES_CHILD").is_ok() {
        let y = jit(|x: &Array| x + 1.0)(&Array::from([1.0])).item::<f64>();
        print!("{}", y.map_or_else(|e| e.to_string(), |y| format!("gives {y}")));
        return;
    }
    let with = |backend: &str| {
        let this = std::env::current_exe().unwrap();
        let args = ["--exact", NAME, "--nocapture"];
        let mut child = std::process::Command::new(this);
        child.args(args).env("GRADUS_DEVICES_CHILD", "1").env("GRADUS_BACKEND", backend);
        String::from_utf8(child.output().unwrap().stdout).unwrap()
    };
    for known in ["", "native", "interpreter", "embedded", "llvm"] {
        assert!(with(known).contains("gives 2"), "{known}: {}", with(known));
    }
    let text = with("interpeter");
    assert!(
        text.contains("there is no backend `interpeter`") && text.contains("GRADUS_BACKEND is `interpeter`"),
        "{text}"
    );
    assert!(text.contains("devices.rs:"), "{text}");
    let text = with("pjrt:there-is-none");
    assert!(text.contains("[G0023]"), "{text}");
}
