"""Writes crates/gradus-pjrt/src/sys/{api,types,layout}.rs from the C headers of openxla/xla, for what that crate uses and nothing else.

usage: python scripts/pjrt/sys.py FOLDER_OF_XLA    (needs `pip install libclang`; run it again only for a newer header)
"""
import os
import sys

import clang.cindex as ci

K, T = ci.CursorKind, ci.TypeKind
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "crates", "gradus-pjrt", "src", "sys")
HEADERS = ["xla/pjrt/c/pjrt_c_api.h", "xla/pjrt/c/pjrt_c_api_ffi_extension.h", "xla/ffi/api/c_api.h"]
# Functions that the crate calls, without their prefix. The others have their place in the table and no type.
USED = """Error_Destroy Error_Message Error_GetCode Plugin_Initialize Plugin_Attributes Event_Destroy Event_IsReady Event_Await Event_OnReady
Client_Create Client_Destroy Client_PlatformName Client_PlatformVersion Client_AddressableDevices Client_Compile Client_BufferFromHostBuffer
DeviceDescription_Id DeviceDescription_Kind DeviceDescription_ToString Device_GetDescription Device_MemoryStats
Executable_Destroy Executable_NumOutputs Executable_OutputElementTypes Executable_OutputDimensions Executable_Serialize
Executable_GetCompiledMemoryStats LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_Execute
Executable_DeserializeAndLoad Buffer_Destroy Buffer_ToHostBuffer Buffer_ReadyEvent Buffer_CopyToDevice Buffer_UnsafePointer Buffer_IsDeleted
TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_GetDeviceDescriptions Compile
ExecuteContext_Create ExecuteContext_Destroy""".split()
FFI_USED = ["Error_Create", "Error_Destroy", "InvokeContext_Get"]
STRUCTS = """PJRT_FFI_Extension PJRT_FFI_Register_Handler_Args XLA_FFI_CallFrame XLA_FFI_Buffer XLA_FFI_Scalar XLA_FFI_Metadata_Extension
XLA_FFI_Error_Create_Args XLA_FFI_Api PJRT_FFI_Type_Register_Args PJRT_FFI_UserData_Add_Args XLA_FFI_InvokeContext_Get_Args XLA_FFI_TypeId XLA_FFI_Error_Destroy_Args""".split()
# Structs whose inside is not looked at, and function pointers that are always null.
OPAQUE = {"PJRT_Error", "PJRT_Memory", "PJRT_SendCallbackInfo", "PJRT_RecvCallbackInfo"}
NULL = ("kv_get_callback", "kv_put_callback", "kv_try_get_callback")
# Enums, and which of their values are wanted.
ENUMS = {
    "PJRT_Error_Code": "RESOURCE_EXHAUSTED UNIMPLEMENTED",
    "PJRT_NamedValue_Type": "STRING INT64 INT64_LIST FLOAT BOOL",
    "PJRT_Buffer_Type": "PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128",
    "PJRT_HostBufferSemantics": "IMMUTABLE_ONLY_DURING_CALL IMMUTABLE_UNTIL_TRANSFER_COMPLETES IMMUTABLE_ZERO_COPY",
    "PJRT_Buffer_MemoryLayout_Type": "TILED",
    "PJRT_Extension_Type": "FFI",
    "XLA_FFI_Error_Code": "INTERNAL",
    "XLA_FFI_DataType": "PRED S8 S16 S32 S64 U8 U16 U32 U64 F16 F32 F64 BF16 C64 C128",
    "XLA_FFI_ExecutionStage": "EXECUTE",
    "XLA_FFI_AttrType": "SCALAR",
    "XLA_FFI_InternalExtension_Type": "XLA_FFI_EXTENSION_METADATA",
}
PRIMITIVES = {
    T.VOID: "c_void", T.BOOL: "bool", T.CHAR_S: "c_char", T.INT: "i32", T.UINT: "u32", T.LONG: "i64", T.ULONG: "u64", T.FLOAT: "f32",
    T.DOUBLE: "f64", T.UCHAR: "u8",
}
TYPEDEFS = {"size_t": "usize", "int64_t": "i64", "uint64_t": "u64", "int32_t": "i32", "uint32_t": "u32", "uint8_t": "u8", "uintptr_t": "usize"}
KEYWORDS = {"type": "kind"}

structs, opaque, enums, layout = {}, set(), {}, []


def field_name(name):
    return KEYWORDS.get(name, name)


def function(t):
    result = t.get_result()
    back = "" if result.get_canonical().kind == T.VOID else f" -> {rust(result)}"
    return f'Option<unsafe extern "C" fn({", ".join(rust(a) for a in t.argument_types())}){back}>'


def rust(t):
    d = t.get_declaration()
    if d.spelling in TYPEDEFS:
        return TYPEDEFS[d.spelling]
    c = t.get_canonical()
    if c.kind == T.POINTER:
        p = c.get_pointee()
        if p.kind == T.FUNCTIONNOPROTO:
            return 'Option<unsafe extern "C" fn()>'
        if p.kind == T.FUNCTIONPROTO:
            return function(p)
        inner = t.get_pointee() if t.kind == T.POINTER else p
        return f'*{"const" if p.is_const_qualified() else "mut"} {rust(inner)}'
    if c.kind == T.ENUM:
        return "u32" if c.get_declaration().enum_type.get_canonical().kind == T.UINT else "i32"
    if c.kind == T.RECORD:
        record(c.get_declaration())
        return c.get_declaration().spelling
    if c.kind == T.CONSTANTARRAY:
        return f"[{rust(c.element_type)}; {c.element_count}]"
    return PRIMITIVES[c.kind]


def record(d, used=None):
    name = d.spelling
    if name in structs or name in opaque:
        return
    definition = d.get_definition()
    if definition is None or name in OPAQUE or name in ("XLA_FFI_Api", "PJRT_Api") and used is None:
        opaque.add(name)
        return
    structs[name] = None
    rows, places, union = [], [], []
    for f in definition.type.get_fields():
        c = f.type.get_canonical()
        if c.kind == T.RECORD and c.get_declaration().kind == K.UNION_DECL:
            own = f"{name}_Value"
            union.append((own, [(field_name(u.spelling), rust(u.type)) for u in c.get_fields()]))
            rows.append(("value", own))
            places.append(("value", f.get_field_offsetof() // 8))
            continue
        if f.spelling in NULL:
            rows.append((f.spelling, "Unused"))
            places.append((f.spelling, f.get_field_offsetof() // 8))
            continue
        known = used is None or not (c.kind == T.POINTER and c.get_pointee().kind == T.FUNCTIONPROTO) or f.spelling in used
        rows.append((field_name(f.spelling), rust(f.type) if known else "Unused"))
        places.append((field_name(f.spelling), f.get_field_offsetof() // 8))
    structs[name] = (rows, union)
    layout.append((name, definition.type.get_size(), places))


def text(names):
    """Unions first, then all structs in one macro."""
    out = ""
    for own, fields in (u for n in names for u in structs[n][1]):
        out += f"#[repr(C)]\n#[derive(Clone, Copy)]\npub union {own} {{\n" + "".join(f"    pub {n}: {t},\n" for n, t in fields) + "}\n\n"
    body = lambda n: "".join(f"        {field}: {t},\n" for field, t in structs[n][0])
    return out + "c_structs! {\n" + "".join(f"    {n} {{\n{body(n)}    }}\n" for n in names) + "}\n"


def main():
    root = sys.argv[1]
    unit = "".join(f'#include "{h}"\n' for h in HEADERS)
    flags = ["-x", "c", "-std=c11", f"-I{root}"] + [f"-I{p}" for p in os.environ.get("C_INCLUDES", "").split(":") if p]
    tu = ci.Index.create().parse("all.h", args=flags, unsaved_files=[("all.h", unit)], options=1)
    for diagnostic in tu.diagnostics:
        print(diagnostic, file=sys.stderr)
    found, macros = {}, {}
    for c in tu.cursor.get_children():
        if c.kind in (K.STRUCT_DECL, K.ENUM_DECL, K.TYPEDEF_DECL) and c.spelling:
            if c.kind != K.TYPEDEF_DECL and c.get_definition() is None:
                continue
            found.setdefault(c.spelling, c)
        if c.kind == K.MACRO_DEFINITION:
            tokens = [t.spelling for t in c.get_tokens()]
            macros[c.spelling] = tokens[1:]
    declared = lambda n: found[n].underlying_typedef_type.get_canonical().get_declaration() if found[n].kind == K.TYPEDEF_DECL else found[n]
    record(declared("PJRT_Api"), {f"PJRT_{u}" for u in USED})
    for u in USED:
        record(declared(f"PJRT_{u}_Args"))
    record(declared("XLA_FFI_Api"), {f"XLA_FFI_{u}" for u in FFI_USED})
    for s in STRUCTS:
        record(declared(s))
    head = "//! {}\n//! Written by `scripts/pjrt/sys.py` from the headers of openxla/xla (C API {}.{}); not edited by hand.\n\n"
    version = (macros["PJRT_API_MAJOR"][0], macros["PJRT_API_MINOR"][0])
    with open(os.path.join(HERE, "api.rs"), "w") as f:
        f.write(head.format("The table of functions that a plugin hands out. Those that nobody here calls have a place and no type.", *version))
        f.write("use super::types::*;\nuse super::{Unused, c_structs};\n\n")
        f.write(f"/// The major version of the interface: another one is another interface.\npub const PJRT_API_MAJOR: i32 = {version[0]};\n\n")
        f.write(text(["PJRT_Api", "XLA_FFI_Api"]))
    with open(os.path.join(HERE, "types.rs"), "w") as f:
        f.write(head.format("What the functions take, with the names that the C headers give.", *version))
        f.write("use std::ffi::{c_char, c_void};\n\nuse super::api::XLA_FFI_Api;\nuse super::{Unused, c_structs};\n\n")
        for e, wanted in ENUMS.items():
            values = {shorten(e, c.spelling): c.enum_value for c in declared(e).get_children() if c.kind == K.ENUM_CONSTANT_DECL}
            f.write(f"pub mod {e} {{\n" + "".join(f"    pub const {w}: u32 = {values[w]};\n" for w in wanted.split()) + "}\n\n")
        for name in sorted(opaque - {"XLA_FFI_Api", "PJRT_Api"}):
            f.write(f"#[repr(C)]\npub struct {name}([u8; 0]);\n\n")
        f.write(text([s for s in structs if s not in ("PJRT_Api", "XLA_FFI_Api")]))
    with open(os.path.join(HERE, "layout.rs"), "w") as f:
        f.write(head.format("Sizes and places of fields, as the C compiler says they are.", *version))
        f.write("use super::{api::*, types::*};\n\nmacro_rules! same {\n    ($($name:ident $size:literal { $($field:ident $at:literal)* })*) => {\n")
        f.write("        $(\n            assert_eq!(size_of::<$name>(), $size, \"the size of {}\", stringify!($name));\n")
        f.write("            $(assert_eq!(std::mem::offset_of!($name, $field), $at, \"{}.{}\", stringify!($name), stringify!($field));)*\n        )*\n    };\n}\n\n")
        f.write("#[test]\nfn every_struct_lies_as_in_c() {\n    same! {\n")
        for name, size, places in layout:
            f.write(f"        {name} {size} {{ " + " ".join(f"{n} {o}" for n, o in places) + " }\n")
        f.write("    }\n}\n")


def shorten(enum, value):
    for prefix in (enum + "_", enum.rsplit("_", 1)[0] + "_"):
        if value.startswith(prefix):
            value = value[len(prefix):]
            break
    value = value[1:] if value[0] == "k" and value[1].isupper() else value
    return "".join(("_" if i and c.isupper() and not value[i - 1].isupper() and value[i - 1] != "_" else "") + c.upper() for i, c in enumerate(value)) if not value.isupper() else value


main()
