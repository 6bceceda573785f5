//! The peers: C compiled here and called in this process, and Python processes that speak the line protocol of
//! `peers/protocol.py`.

use std::ffi::c_void;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use gradus::DType;
use libloading::Library;

use crate::Result;
use crate::buffer::Buffer;
use crate::cases::{Input, size_text};
use crate::check::Described;
use crate::clock::Taken;

/// What the C peers are compiled with.
pub const C_FLAGS: [&str; 2] = ["-O3", "-march=native"];
/// Those that also let it change results, as ours may only by choice.
pub const FAST: &str = "-ffast-math";
/// The C peers, all in one library.
pub const C_FILES: [&str; 7] =
    ["elementwise.c", "random.c", "lorenz.c", "rows.c", "geometry.c", "programs.c", "indexing.c"];

/// Where the peers' sources are.
pub fn sources() -> PathBuf {
    if let Some(folder) = std::env::var_os("GRADUS_BENCH_PEERS") {
        return folder.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers")
}

/// The top of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where what is built for the peers is put.
pub fn workshop() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("bench")
}

fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("GRADUS_BENCH_PYTHON") {
        return python.into();
    }
    workshop().join("python/bin/python")
}

/// Runs a command to its end; what it printed is in the error.
fn succeed(command: &mut Command) -> Result<String> {
    let out = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&out.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// How the C compiler is told to treat numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// As they are written: what ours does unless told otherwise.
    Exact,
    /// As it likes.
    Fast,
}

fn library_path(dtype: DType, threads: bool, rounding: Rounding) -> PathBuf {
    let cores = if threads { "all" } else { "one" };
    let exact = if rounding == Rounding::Exact { "-exact" } else { "" };
    workshop().join(format!("libpeers-{dtype}-{cores}{exact}.so"))
}

/// Builds everything that peers need: eight C libraries and a Python environment.
pub fn build() -> Result<()> {
    std::fs::create_dir_all(workshop())?;
    for (dtype, real) in [(DType::F32, "float"), (DType::F64, "double")] {
        for (threads, rounding) in
            [false, true].into_iter().flat_map(|t| [Rounding::Exact, Rounding::Fast].map(|r| (t, r)))
        {
            let mut gcc = Command::new("gcc");
            gcc.current_dir(sources()).args(C_FLAGS).args(["-fPIC", "-shared"]).arg(format!("-DREAL={real}"));
            if threads {
                gcc.arg("-fopenmp");
            }
            if rounding == Rounding::Fast {
                gcc.arg(FAST);
            }
            succeed(gcc.args(C_FILES).arg("-o").arg(library_path(dtype, threads, rounding)).arg("-lm"))?;
        }
    }
    if succeed(Command::new(python()).args(["-c", "import jax, numpy, scipy"])).is_err() {
        eprintln!("making a Python environment with jax and numpy in {}", workshop().display());
        succeed(Command::new("python3").args(["-m", "venv"]).arg(workshop().join("python")))?;
        succeed(Command::new(python()).args(["-m", "pip", "install", "jax", "numpy"]))?;
    }
    Ok(())
}

/// The first line that the C compiler says of itself.
pub fn c_version() -> String {
    let text = succeed(Command::new("gcc").arg("--version")).unwrap_or_default();
    text.lines().next().unwrap_or("gcc").to_owned()
}

type CFunction = unsafe extern "C" fn(*const i64, *const *const c_void, *const *mut c_void);

/// A C function with its arguments.
pub struct CPeer {
    function: CFunction,
    size: Vec<i64>,
    inputs: Vec<*const c_void>,
    outputs: Vec<*mut c_void>,
    // The pointers above point into these, and the function is in the library.
    _input_buffers: Vec<Buffer>,
    output_buffers: Vec<Buffer>,
    _library: Library,
}

impl CPeer {
    /// The function of a name, at a size, on these inputs, with room for results of these lengths.
    pub fn new(
        name: &str,
        size: &[usize],
        dtype: DType,
        (threads, rounding): (bool, Rounding),
        mut inputs: Vec<Buffer>,
        lengths: &[usize],
    ) -> Result<CPeer> {
        // The library of mathematics has some of the names.
        let symbol = if name == "tanh" { "tanh_" } else { name };
        // SAFETY: the library is the one that `build` made of our own sources, which run nothing when loaded.
        let library = unsafe { Library::new(library_path(dtype, threads, rounding))? };
        // SAFETY: every function in `peers/*.c` is declared by the macro PEER, which has this signature.
        let function: CFunction = unsafe { *library.get::<CFunction>(symbol.as_bytes())? };
        let mut outputs: Vec<Buffer> = lengths.iter().map(|n| Buffer::zeros(*n, dtype)).collect();
        Ok(CPeer {
            function,
            size: size.iter().map(|n| *n as i64).collect(),
            inputs: inputs.iter_mut().map(|b| b.pointer().cast_const().cast()).collect(),
            outputs: outputs.iter_mut().map(|b| b.pointer().cast()).collect(),
            _input_buffers: inputs,
            output_buffers: outputs,
            _library: library,
        })
    }

    /// Calls it.
    pub fn run(&mut self) {
        // SAFETY: the library is loaded as long as `self` is; the buffers have the lengths that the case says, are
        // aligned as the function assumes, and nobody else uses them meanwhile.
        unsafe { (self.function)(self.size.as_ptr(), self.inputs.as_ptr(), self.outputs.as_ptr()) }
    }

    /// What it wrote.
    pub fn results(&self) -> Vec<Described> {
        self.output_buffers.iter().map(|b| Described::of(&b.values())).collect()
    }
}

/// Why a Python peer has no number.
#[derive(Debug)]
pub enum Silence {
    /// It does not have the case.
    Missing,
    /// It took too long and was stopped.
    Slow(Duration),
    /// It failed.
    Failed(String),
}

/// A Python process that answers lines.
pub struct PythonPeer {
    script: &'static str,
    one_core: bool,
    /// Whether it may use what else the machine has.
    device: bool,
    process: Option<(Child, ChildStdin, Receiver<String>)>,
}

impl PythonPeer {
    /// A peer that is started when it is first asked.
    pub fn new(script: &'static str, one_core: bool) -> PythonPeer {
        PythonPeer { script, one_core, device: false, process: None }
    }

    /// The same peer on the machine's accelerator.
    pub fn on_device(mut self) -> PythonPeer {
        self.device = true;
        self
    }

    fn start(&self) -> Result<(Child, ChildStdin, Receiver<String>)> {
        let mut command = Command::new(python());
        command.arg(sources().join(self.script)).env("PYTHONDONTWRITEBYTECODE", "1");
        // On a device both sides have their arrays in its memory at once.
        match self.device {
            true => command.env("XLA_PYTHON_CLIENT_PREALLOCATE", "false"),
            false => command.env("JAX_PLATFORMS", "cpu"),
        };
        if self.one_core {
            // The process is bound to one core already; this keeps the libraries from making threads to share it.
            command.env("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false").env("OPENBLAS_NUM_THREADS", "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).ok_or("a process without pipes")?;
        let (send, receive) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Ok((child, stdin, receive))
    }

    fn stop(&mut self) {
        if let Some((mut child, stdin, _)) = self.process.take() {
            drop(stdin);
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a line and waits for the answer, for so long.
    fn ask(&mut self, line: &str, limit: Duration) -> std::result::Result<String, Silence> {
        let failed = |e: &dyn std::fmt::Display| Silence::Failed(e.to_string());
        if self.process.is_none() {
            self.process = Some(self.start().map_err(|e| failed(&e))?);
            // Imports are not part of what is asked.
            self.ask("version", Duration::from_secs(120))?;
        }
        let Some((_, stdin, answers)) = &mut self.process else { return Err(Silence::Missing) };
        let sent = writeln!(stdin, "{line}").and_then(|()| stdin.flush());
        let answer = match sent {
            Ok(()) => answers.recv_timeout(limit),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        match answer {
            Ok(text) if text == "missing" => Err(Silence::Missing),
            Ok(text) => match text.strip_prefix("error ") {
                Some(message) => Err(Silence::Failed(message.to_owned())),
                None => Ok(text),
            },
            Err(RecvTimeoutError::Timeout) => {
                self.stop();
                Err(Silence::Slow(limit))
            }
            Err(RecvTimeoutError::Disconnected) => {
                self.stop();
                Err(Silence::Failed("the process ended".to_owned()))
            }
        }
    }

    /// Makes a case ready; gives the nanoseconds from a fresh function to its first result.
    pub fn prepare(
        &mut self,
        name: &str,
        size: &[usize],
        dtype: DType,
        inputs: &[Input],
        limit: Duration,
    ) -> std::result::Result<f64, Silence> {
        let dtype = if dtype == DType::F32 { "float32" } else { "float64" };
        let inputs: Vec<String> = inputs.iter().map(Input::words).collect();
        let line = format!("prepare {name} {} {dtype} {}", size_text(size), inputs.join(" "));
        number(self.ask(&line, limit)?.trim_start_matches("ok "))
    }

    /// What one of so many calls takes.
    pub fn run(&mut self, reps: u64, limit: Duration) -> std::result::Result<Taken, Silence> {
        let text = self.ask(&format!("run {reps}"), limit)?;
        let (wall, cpu) = text.split_once(' ').unwrap_or((&text, ""));
        Ok(Taken { wall: number(wall)?, cpu: number(cpu)? })
    }

    /// The results of the case that is ready.
    pub fn results(&mut self, limit: Duration) -> std::result::Result<Vec<Described>, Silence> {
        let text = self.ask("check", limit)?;
        Described::parse_all(&text).ok_or(Silence::Failed(text))
    }

    /// The scratch bytes of the case that is ready.
    pub fn memory(&mut self, limit: Duration) -> Option<f64> {
        self.ask("memory", limit).ok()?.parse().ok()
    }

    /// Names and numbers of its libraries.
    pub fn version(&mut self) -> String {
        self.ask("version", Duration::from_secs(120)).unwrap_or_else(|e| format!("{e:?}"))
    }
}

impl Drop for PythonPeer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn number(text: &str) -> std::result::Result<f64, Silence> {
    text.trim().parse().map_err(|_| Silence::Failed(format!("`{text}` is not a number")))
}
