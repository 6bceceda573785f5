//! How a main body runs other functions: arguments where the System V convention has them.

use super::emit::{Emitter, RAX, RCX, RDI, RDX, RSI, slot};
use super::encode::{Address, Cond, Label, Operand, Symbol};
use super::lir::{Callee, Reg, Ri};

/// The fifth argument.
const R8: u8 = 8;
/// Where the context has the functions of this process.
const CALL: i32 = std::mem::offset_of!(crate::abi::Context, call) as i32;
const PARALLEL: i32 = std::mem::offset_of!(crate::abi::Context, parallel) as i32;

impl Emitter<'_> {
    /// What outlives it is not in a register that it may change: `allocate.rs` sees to that.
    pub(super) fn run(&mut self, callee: Callee, context: Reg, count: Option<Ri>, fails: Option<Label>) {
        // The count first: it may be where the context goes.
        match count.map(|n| self.ri(n)) {
            Some(Ok(n)) => self.mov(RAX, n),
            Some(Err(n)) => self.code.constant(RAX, i64::from(n)),
            None => {}
        }
        let context = self.operand(context);
        self.mov(RDI, context);
        match callee {
            Callee::Inside(symbol) => {
                self.start_of_frame(RSI);
                self.code.constant(RDX, 0);
                self.code.constant(RCX, 0);
                self.code.raw(&[0xE8]);
                self.code.reference(symbol);
            }
            Callee::Shared(number) => {
                self.mov(R8, Operand::Reg(RAX));
                // lea rsi, [rip + distance]
                self.code.raw(&[0x48, 0x8D, 0x35]);
                self.code.reference(Symbol::Kernel(number));
                self.code.constant(RDX, i64::from(number));
                self.start_of_frame(RCX);
                self.through_context(PARALLEL);
            }
            Callee::Library(entry) => {
                self.code.constant(RSI, i64::from(entry));
                self.start_of_frame(RDX);
                self.through_context(CALL);
            }
        }
        if let Some(exit) = fails {
            self.code.plain(true, None, &[0x85], RAX, Operand::Reg(RAX), &[]); // test
            self.code.branch(Cond::Ne, exit);
        }
    }

    fn start_of_frame(&mut self, to: u8) {
        self.code.plain(true, None, &[0x8D], to, slot(0), &[]);
    }

    /// A call of a function of this process.
    fn through_context(&mut self, field: i32) {
        let function = Operand::Mem(Address::At { base: RDI, index: None, disp: field });
        self.code.plain(false, None, &[0xFF], 2, function, &[]);
    }
}
