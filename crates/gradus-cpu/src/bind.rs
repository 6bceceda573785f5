//! What is known of a lowered program only when its sizes are: the numbers in its table, the types of its arrays, its calls.

use gradus_core::program::Program;
use gradus_core::{Dim, Type};
use rustc_hash::FxHashMap;

use crate::error::{Error, Result, error};
use crate::lower::Lowered;
use crate::runtime::LibraryCall;

/// A lowered program for given sizes.
#[derive(Debug)]
pub struct Bound {
    /// The table of sizes.
    pub sizes: Vec<i64>,
    /// The bytes of each buffer.
    pub bytes: Vec<usize>,
    /// The input types.
    pub inputs: Vec<Type>,
    /// The types of the output buffers.
    pub made: Vec<Type>,
    /// What its calls do.
    pub entries: Vec<LibraryCall>,
    /// For each kernel, whether it is too little work for more than one thread.
    pub serial: Vec<bool>,
}

impl Lowered {
    /// The program for inputs of these types. `signature`: the program as it was before passes, which names symbols as the user did.
    pub fn bind(&self, signature: &Program, types: &[Type]) -> Result<Bound> {
        // Also where a condition leaves only one number for each symbol: the other conditions want to be met all the same.
        let symbols = if signature.is_symbolic() { signature.solve_symbols(types)? } else { FxHashMap::default() };
        let value = |s: &str| symbols.get(s).copied();
        let number = |d: &Dim| -> Result<i64> {
            d.evaluate(&value).map_err(|e| {
                if d.symbols().iter().all(|s| value(s).is_some()) {
                    return error!(Size, "a dimension of `{}` has no number at these sizes: {e}", self.module.name);
                }
                error!(Signature, "`{}` computes with a dimension that its inputs do not determine", self.module.name)
                    .note(e.to_string())
                    .help("every symbol must stand in the shape of an input, alone or in a linear expression")
            })
        };
        let sizes = self.sizes.iter().map(number).collect::<Result<Vec<i64>>>()?;
        let known = |d: &Dim| d.substitute(&|s| value(s).map(Dim::from));
        let types = |all: &[Type]| -> Vec<Type> { all.iter().map(|t| t.map_dims(&known)).collect() };
        let bytes = self.bytes.iter().map(|b| {
            let bytes = usize::try_from(b.in_table(&sizes)).ok().filter(|b| *b < isize::MAX as usize);
            bytes.ok_or_else(|| error!(Size, "an array of `{}` is too large at these sizes", self.module.name))
        });
        let bytes = bytes.collect::<Result<Vec<usize>>>()?;
        // Nothing is run that reaches outside of its memory, or into what it still reads.
        self.accesses.iter().try_for_each(|a| a.check(&sizes, &bytes)).map_err(Error::of_gradus)?;
        self.apart.iter().try_for_each(|a| a.check(&sizes)).map_err(Error::of_gradus)?;
        Ok(Bound {
            bytes,
            inputs: types(&self.inputs),
            made: types(&self.made),
            entries: self.entries.iter().map(|e| e.bind(&sizes, &known)).collect::<Result<Vec<LibraryCall>>>()?,
            serial: self.work.iter().map(|w| w.is_little(&sizes)).collect(),
            sizes,
        })
    }
}
