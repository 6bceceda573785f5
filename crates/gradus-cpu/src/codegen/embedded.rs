//! The embedded tier: our own assembler where the processor has what it makes code of, Cranelift elsewhere.

#[cfg(has_cranelift)]
use super::cranelift;
use super::x86::{self, Isa};
use crate::abi::MainFn;
use crate::error::Result;
#[cfg(not(has_cranelift))]
use crate::error::error;
use crate::ir::Module;

/// Machine code of a module, by whom it is made.
pub enum Compiled {
    /// Our own assembler.
    Assembled(x86::Compiled),
    /// Cranelift.
    #[cfg(has_cranelift)]
    Cranelift(Box<cranelift::Compiled>),
}

impl Compiled {
    /// The main body. It may be called as long as this lives, with a context of the module's buffers and sizes.
    pub fn main(&self) -> MainFn {
        match self {
            Compiled::Assembled(code) => code.main(),
            #[cfg(has_cranelift)]
            Compiled::Cranelift(code) => code.main(),
        }
    }

    /// How many bytes the machine code has.
    pub fn bytes(&self) -> usize {
        match self {
            Compiled::Assembled(code) => code.image().len(),
            #[cfg(has_cranelift)]
            Compiled::Cranelift(code) => code.bytes(),
        }
    }

    /// A text of the code, if it was made with one.
    pub fn assembly(&self) -> &str {
        match self {
            Compiled::Assembled(code) => code.assembly(),
            #[cfg(has_cranelift)]
            Compiled::Cranelift(code) => code.assembly(),
        }
    }

    /// The code as bytes that [`load`] takes, if it can be written down.
    pub fn image(&self) -> Option<&[u8]> {
        match self {
            Compiled::Assembled(code) => Some(code.image()),
            #[cfg(has_cranelift)]
            Compiled::Cranelift(code) => code.image(),
        }
    }
}

/// Makes machine code of an expanded module for a processor; without one that we know, by Cranelift. With a text, or as bytes that can be kept.
pub fn compile(module: &Module, isa: Option<Isa>, text: bool, image: bool) -> Result<Compiled> {
    match isa {
        Some(isa) => x86::compile(module, isa, text).map(Compiled::Assembled),
        #[cfg(has_cranelift)]
        None => {
            let options = cranelift::Options { text, image, ..cranelift::Options::default() };
            cranelift::compile(module, &options).map(|code| Compiled::Cranelift(Box::new(code)))
        }
        #[cfg(not(has_cranelift))]
        None => {
            let _ = image;
            Err(error!(Value, "the embedded compiler has no code for this processor: {WITHOUT}"))
        }
    }
}

/// Puts an image into memory, ready to run.
pub fn load(image: &[u8], isa: Option<Isa>) -> Result<Compiled> {
    match isa {
        Some(_) => x86::load(image).map(Compiled::Assembled),
        #[cfg(has_cranelift)]
        None => cranelift::load(image).map(|code| Compiled::Cranelift(Box::new(code))),
        #[cfg(not(has_cranelift))]
        None => Err(error!(Value, "the embedded compiler has no code for this processor: {WITHOUT}")),
    }
}

/// Why there may be no code, and what to do.
pub const WITHOUT: &str = "it has no AVX2, FMA and BMI2, and this build is without the feature `cranelift`";

/// Whether there is code for a processor.
pub fn available(isa: Option<Isa>) -> bool {
    isa.is_some() || cfg!(has_cranelift)
}

/// Who makes the code, as far as it depends on that.
pub fn about(isa: Option<Isa>) -> Result<String> {
    match isa {
        Some(isa) => Ok(format!("{isa:?}")),
        #[cfg(has_cranelift)]
        None => cranelift::about(),
        #[cfg(not(has_cranelift))]
        None => Ok("nobody".into()),
    }
}
