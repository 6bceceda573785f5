//! The functions of a module one behind the other, in memory that can be run.
//!
//! They find each other by distance, and everything of this process through the context of a call. So the bytes are the same wherever they lie, and are what is kept on disk.

use std::fmt::Write;

use memmap2::{Mmap, MmapMut};
use rustc_hash::FxHashMap;

use super::encode::Symbol;
use super::{Isa, Made, kernel_code, main_code};
use crate::abi::MainFn;
use crate::codegen::perf;
use crate::error::{Result, error};
use crate::ir::{Kernel, Module, Stmt};

/// Functions begin at multiples of so many bytes, as the constants behind them have to.
const ALIGN: usize = 64;

/// Machine code of a module. Dropping it frees the memory.
pub struct Compiled {
    memory: Mmap,
    text: String,
}

impl Compiled {
    /// The main body. It may be called as long as this lives, with a context of the module's buffers and sizes.
    pub fn main(&self) -> MainFn {
        // SAFETY: the code begins with the main body, which has this signature.
        unsafe { std::mem::transmute::<*const u8, MainFn>(self.memory.as_ptr()) }
    }

    /// The code: what [`load`] takes.
    pub fn image(&self) -> &[u8] {
        &self.memory
    }

    /// The instructions before and after registers were chosen for them, if that was asked for.
    pub fn assembly(&self) -> &str {
        &self.text
    }
}

/// Puts an image into memory, ready to run. It is of [`Compiled::image`], from a file that was found whole.
pub fn load(image: &[u8]) -> Result<Compiled> {
    let failed = |e: std::io::Error| error!(Size, "there is no memory for {} bytes of machine code: {e}", image.len());
    let mut memory = MmapMut::map_anon(image.len()).map_err(failed)?;
    memory.copy_from_slice(image);
    Ok(Compiled { memory: memory.make_exec().map_err(failed)?, text: String::new() })
}

/// Makes machine code of an expanded module, with its text if that is wanted.
pub fn compile(module: &Module, isa: Isa, text: bool) -> Result<Compiled> {
    let mut linker = Linker {
        module,
        isa,
        code: Vec::new(),
        starts: FxHashMap::default(),
        references: Vec::new(),
        text: text.then(String::new),
        names: Vec::new(),
    };
    linker.module()?;
    let Linker { code, text, names, .. } = linker;
    let made = Compiled { text: text.unwrap_or_default(), ..load(&code)? };
    let base = made.memory.as_ptr().addr();
    perf::name(names.into_iter().map(|(start, bytes, name)| (base + start, bytes, name)));
    Ok(made)
}

struct Linker<'a> {
    module: &'a Module,
    isa: Isa,
    code: Vec<u8>,
    starts: FxHashMap<Symbol, usize>,
    /// Where distances are written, and to what.
    references: Vec<(usize, Symbol)>,
    text: Option<String>,
    /// Where functions begin, their bytes and what they are called, if someone wants to know.
    names: Vec<(usize, usize, String)>,
}

impl Linker<'_> {
    fn module(&mut self) -> Result<()> {
        let module = self.module;
        let swapped = module.swapped();
        let body = |body: &[Stmt]| main_code(module, body, &swapped, self.isa);
        let mut made = vec![(None, module.name.as_str(), body(&module.main))];
        for (number, piece) in (0..).zip(&module.pieces) {
            made.push((Some(Symbol::Piece(number)), "a piece", body(piece)));
        }
        for (number, f) in (0..).zip(&module.functions) {
            // It is called as a kernel is.
            let kernel = Kernel {
                name: String::new(),
                inputs: f.params.clone(),
                outputs: vec![f.result],
                parallel: false,
                body: f.body.clone(),
            };
            made.push((Some(Symbol::Function(number)), "a function", kernel_code(module, &kernel, self.isa)));
        }
        for (number, k) in (0..).zip(&module.kernels) {
            made.push((Some(Symbol::Kernel(number)), &k.name, kernel_code(module, k, self.isa)));
        }
        for (symbol, name, made) in made {
            let made = made.ok_or_else(|| {
                error!(Rule, "the assembler has no code for `{name}` of `{}`", module.name).of_gradus()
            })?;
            self.add(symbol, name, &made);
        }
        self.link()
    }

    fn add(&mut self, symbol: Option<Symbol>, name: &str, made: &Made) {
        self.code.resize(self.code.len().next_multiple_of(ALIGN), 0xCC);
        let start = self.code.len();
        self.code.extend_from_slice(&made.bytes.code);
        self.references.extend(made.bytes.references.iter().map(|(at, to)| (start + at, *to)));
        if let Some(symbol) = symbol {
            self.starts.insert(symbol, start);
        }
        if perf::is_on() {
            self.names.push((start, made.bytes.code.len(), name.replace(' ', "_")));
        }
        if let Some(text) = &mut self.text {
            let _ = writeln!(
                text,
                "; {name}: {} bytes at {start:#x}, {} bytes of stack",
                made.bytes.code.len(),
                made.bytes.frame
            );
            for inst in &made.function.code {
                let _ = write!(text, "  {inst:?} ;");
                inst.visit(&mut |r, _| {
                    let _ = write!(text, " {r:?}={:?}", made.homes.homes[r.0 as usize]);
                });
                text.push('\n');
            }
        }
    }

    fn link(&mut self) -> Result<()> {
        for (at, symbol) in &self.references {
            let distance =
                self.starts.get(symbol).and_then(|start| i32::try_from(*start as i64 - (*at as i64 + 4)).ok());
            let distance = distance.ok_or_else(|| {
                error!(Rule, "the code of `{}` has no place for {symbol:?}", self.module.name).of_gradus()
            })?;
            self.code[*at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(())
    }
}
