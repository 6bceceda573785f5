//! A difference in a folder: the program and its inputs as text that reads back bit for bit, to be run again elsewhere.
//!
//! `program.txt` is the program as it was traced. `inputs.txt` is a program too: it takes nothing and returns the inputs, so
//! there is one format. `smaller.txt`, where it is there, is the part of the program in which the difference was seen.
//! `README.txt` has the error, the way to run it again, and the line `exactness: exact` or `exactness: relaxed`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::compare::Scale;
use super::{Difference, Run};
use crate::array::Array;
use crate::backend::Backend;
use crate::error::{Result, error};
use crate::interpret::interpret;
use crate::optimize::Exactness;
use crate::pipeline::Pipeline;
use crate::program::{Builder, Constant, Program};

/// The variable that names the folder for reproductions. Without it they are below the folder for temporary files.
pub const FOLDER_VARIABLE: &str = "GRADUS_VERIFY_DIR";

/// So many folders are written by a process: a fault in a loop must not fill the disk.
const MOST: u32 = 16;
/// Inputs of more elements are left out.
const MOST_ELEMENTS: usize = 1 << 22;

/// A program and inputs on which compiled code and the interpreter differed.
#[derive(Clone, Debug)]
pub struct Reproduction {
    /// The program, as it was traced.
    pub program: Program,
    /// What it was called with.
    pub inputs: Vec<Array>,
    /// How exactly it was compiled.
    pub exactness: Exactness,
}

fn is_relaxed(readme: &str) -> bool {
    readme.lines().any(|l| l == "exactness: relaxed")
}

impl Reproduction {
    /// Writes a folder; the error says why there is none.
    pub(super) fn write(&self, story: &str, smaller: Option<&Program>) -> std::result::Result<PathBuf, String> {
        static WRITTEN: AtomicU32 = AtomicU32::new(0);
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        if number >= MOST {
            return Err(format!("this process wrote {MOST} already"));
        }
        let base =
            std::env::var_os(FOLDER_VARIABLE).map_or_else(|| std::env::temp_dir().join("gradus-verify"), PathBuf::from);
        let name: String = self.program.name().chars().take(40).collect();
        let folder = base.join(format!("{name}-{}-{number}", std::process::id()));
        self.write_to(&folder, story, smaller).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }

    /// Writes it into a folder, which is made.
    pub fn write_to(&self, folder: &Path, story: &str, smaller: Option<&Program>) -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        let elements: usize = self.inputs.iter().filter_map(|a| a.concrete()).map(|c| c.count()).sum();
        let exactness = match self.exactness {
            Exactness::Exact => "exact",
            Exactness::Relaxed => "relaxed",
        };
        let mut readme = format!(
            "Compiled code gave other numbers than the interpreter.\n\nRun it again: gradus verify {}\n\n\
             program.txt  the program, as it was traced\n\
             inputs.txt   its inputs: a program that takes nothing and returns them\n\
             smaller.txt  the part of the program in which the difference was seen, after the passes\n\n\
             exactness: {exactness}\nversion: {}\n\n{story}\n",
            folder.display(),
            env!("CARGO_PKG_VERSION"),
        );
        std::fs::write(folder.join("program.txt"), self.program.to_string())?;
        if let Some(smaller) = smaller {
            std::fs::write(folder.join("smaller.txt"), smaller.to_string())?;
        }
        match self.inputs_as_program() {
            Some(inputs) if elements <= MOST_ELEMENTS => std::fs::write(folder.join("inputs.txt"), inputs.to_string())?,
            _ => readme += &format!("\nThe inputs are not here: they have {elements} elements.\n"),
        }
        std::fs::write(folder.join("README.txt"), readme)
    }

    fn inputs_as_program(&self) -> Option<Program> {
        let mut b = Builder::new("inputs");
        let outputs = self.inputs.iter().map(|a| Some(b.constant(Constant::array(a.concrete()?))));
        let outputs = outputs.collect::<Option<Vec<_>>>()?;
        Some(b.finish(outputs))
    }

    /// Reads a folder.
    pub fn read(folder: &Path) -> Result<Reproduction> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|e| {
                error!(Value, "cannot read {}: {e}", path.display())
                    .help("give the folder that the error named; it has `program.txt` and `inputs.txt`")
            })
        };
        let program: Program = read("program.txt")?.parse()?;
        let inputs: Program = read("inputs.txt")?.parse()?;
        let relaxed = read("README.txt").is_ok_and(|text| is_relaxed(&text));
        let exactness = if relaxed { Exactness::Relaxed } else { Exactness::Exact };
        Ok(Reproduction { program, inputs: interpret(&inputs, &[])?, exactness })
    }

    /// Runs it on a backend, through the stages of a call; gives the first output that differs from the interpreter's run of the
    /// program as it is, with its number.
    pub fn run(&self, backend: Arc<dyn Backend>) -> Result<Option<(usize, Difference)>> {
        let pipeline = Pipeline { exactness: self.exactness, ..Pipeline::new(backend) };
        let have = pipeline.code(&self.program)?.run(&self.inputs)?;
        let want = Run::interpreted(&self.program, &self.inputs, &[])?;
        let relaxed = self.exactness == Exactness::Relaxed;
        let one = |(i, (h, w))| super::compare::compare(h, w, Scale::Each, relaxed).map(|d| (i, d));
        Ok(have.iter().zip(&want.outputs).enumerate().find_map(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interpreter;
    use crate::array::Concrete;
    use crate::types::KeyBits;

    #[test]
    fn what_is_written_reads_back_bit_for_bit() {
        let text = "fn f(x0: f64[4], x1: i8[2, 2], x2: bf16[], x3: key[1], x4: c64[2], x5: f32[0]) -> f64[4] {\n  x6: f64[4] = sin x0\n  return x6\n}\n";
        let inputs = vec![
            Array::from([0.1, -0.0, f64::INFINITY, f64::from_bits(0x7ff8_0000_0000_1234)]),
            Array::from([1_i8, -2, 3, -128]).reshape([2, 2]),
            Array::from(crate::bf16::from_f32(0.1)),
            Concrete::from_vec(&[1], vec![KeyBits(0xfeed_beef_0123_4567)]).into(),
            Array::from([crate::Complex::new(1.5_f32, -0.25), crate::Complex::new(f32::NAN, 1e-40)]),
            Array::zeros::<f32>([0]),
        ];
        let made = Reproduction { program: text.parse().unwrap(), inputs, exactness: Exactness::Relaxed };
        let folder = std::env::temp_dir().join(format!("gradus-reproduction-{}", std::process::id()));
        made.write_to(&folder, "a story", None).unwrap();
        let read = Reproduction::read(&folder).unwrap();
        assert_eq!(read.program, made.program);
        assert_eq!(read.exactness, Exactness::Relaxed);
        assert_eq!(read.inputs.len(), made.inputs.len());
        for (a, b) in made.inputs.iter().zip(&read.inputs) {
            assert!(a.concrete().unwrap().same_bits(b.concrete().unwrap()), "{a:?} {b:?}");
            assert_eq!(a.ty().unwrap(), b.ty().unwrap());
        }
        assert_eq!(read.run(Arc::new(Interpreter)).unwrap(), None);
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(Reproduction::read(&folder).unwrap_err().to_string().contains("program.txt"));
    }
}
