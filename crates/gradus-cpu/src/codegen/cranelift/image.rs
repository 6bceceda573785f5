//! The machine code of a module as bytes that can be kept: its functions and where they refer to one another.

use std::str::FromStr;

use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::ir::LibCall;
use cranelift_jit::JITModule;
use cranelift_module::{FuncId, Linkage, Module as _, ModuleReloc, ModuleRelocTarget};
use rustc_hash::FxHashSet;

use super::emit::failed;
use super::{Compiled, finish, linker, target};
use crate::disk::{Reader, Writer};
use crate::error::{Result, error};

/// One function as it is defined.
pub(super) struct Part {
    pub id: FuncId,
    pub alignment: u64,
    pub bytes: Vec<u8>,
    pub relocations: Vec<ModuleReloc>,
}

/// The references that are known. Others are not kept.
const KINDS: [Reloc; 11] = [
    Reloc::Abs4,
    Reloc::Abs8,
    Reloc::X86PCRel4,
    Reloc::X86CallPCRel4,
    Reloc::X86CallPLTRel4,
    Reloc::X86GOTPCRel4,
    Reloc::Arm64Call,
    Reloc::Aarch64AdrGotPage21,
    Reloc::Aarch64Ld64GotLo12Nc,
    Reloc::Aarch64AdrPrelPgHi21,
    Reloc::Aarch64AddAbsLo12Nc,
];

/// What a reference leads to.
const FUNCTION: u32 = 0;
const INSIDE: u32 = 1;
const LIBRARY: u32 = 2;

/// The image of functions, of which `main` is the one to call. None if something in them cannot be written down.
pub(super) fn write(parts: &[Part], main: FuncId) -> Option<Vec<u8>> {
    let mut w = Writer::default();
    w.u32(main.as_u32());
    w.u32(parts.iter().map(|p| p.id.as_u32() + 1).max()?);
    w.u32(u32::try_from(parts.len()).ok()?);
    for part in parts {
        w.u32(part.id.as_u32());
        w.u64(part.alignment);
        w.bytes(&part.bytes);
        w.u32(u32::try_from(part.relocations.len()).ok()?);
        for r in &part.relocations {
            w.u32(KINDS.iter().position(|k| *k == r.kind)? as u32);
            w.u32(r.offset);
            w.u64(r.addend as u64);
            match &r.name {
                ModuleRelocTarget::User { namespace: 0, index } => {
                    w.u32(FUNCTION);
                    w.u32(*index);
                }
                ModuleRelocTarget::FunctionOffset(id, offset) => {
                    w.u32(INSIDE);
                    w.u32(id.as_u32());
                    w.u32(*offset);
                }
                ModuleRelocTarget::LibCall(call) => {
                    w.u32(LIBRARY);
                    w.bytes(call.to_string().as_bytes());
                }
                ModuleRelocTarget::User { .. } | ModuleRelocTarget::KnownSymbol(_) => return None,
            }
        }
    }
    Some(w.0)
}

/// The functions of an image, how many were declared, and which is the main body.
fn read(image: &[u8]) -> Option<(Vec<Part>, u32, FuncId)> {
    let mut r = Reader(image);
    let main = r.u32()?;
    let count = r.u32().filter(|n| *n as usize <= image.len())?;
    let mut parts: Vec<Part> = Vec::new();
    let mut seen = FxHashSet::default();
    for _ in 0..r.u32()? {
        let id = r.u32().filter(|id| *id < count && seen.insert(*id))?;
        let alignment = r.u64().filter(|a| a.is_power_of_two() && *a <= 4096)?;
        let bytes = r.bytes()?.to_vec();
        let mut relocations = Vec::new();
        for _ in 0..r.u32()? {
            let kind = *KINDS.get(r.u32()? as usize)?;
            // No reference is wider than eight bytes.
            let width = if kind == Reloc::Abs8 { 8 } else { 4 };
            let offset = r.u32().filter(|o| (*o as usize).checked_add(width).is_some_and(|end| end <= bytes.len()))?;
            let addend = r.u64()? as i64;
            let function = |id: u32| (id < count).then_some(id);
            let name = match r.u32()? {
                FUNCTION => ModuleRelocTarget::user(0, function(r.u32()?)?),
                INSIDE => ModuleRelocTarget::FunctionOffset(FuncId::from_u32(function(r.u32()?)?), r.u32()?),
                LIBRARY => {
                    let name = std::str::from_utf8(r.bytes()?).ok()?;
                    ModuleRelocTarget::LibCall(LibCall::from_str(name).ok()?)
                }
                _ => return None,
            };
            relocations.push(ModuleReloc { offset, kind, name, addend });
        }
        parts.push(Part { id: FuncId::from_u32(id), alignment, bytes, relocations });
    }
    (r.0.is_empty() && seen.contains(&main)).then(|| (parts, count, FuncId::from_u32(main)))
}

/// Puts an image into memory, ready to run. It is of [`write`], from a file that was found whole.
pub fn load(image: &[u8]) -> Result<Compiled> {
    let (parts, declared, main) = read(image).ok_or_else(|| error!(Value, "this is no machine code of Gradus"))?;
    let mut jit = JITModule::new(linker(target(true, false)?));
    let bytes = parts.iter().map(|p| p.bytes.len()).sum();
    let linked = define(&mut jit, &parts, declared);
    finish(jit, linked.map(|()| main), bytes, String::new(), None)
}

fn define(jit: &mut JITModule, parts: &[Part], declared: u32) -> Result<()> {
    let signature = jit.make_signature();
    for i in 0..declared {
        // Numbers are given in order: those of the functions when they were made.
        jit.declare_function(&format!("f{i}"), Linkage::Local, &signature).map_err(|e| failed("an image", e))?;
    }
    for p in parts {
        jit.define_function_bytes(p.id, p.alignment, &p.bytes, &p.relocations).map_err(|e| failed("an image", e))?;
    }
    jit.finalize_definitions().map_err(|e| failed("an image", e))
}
