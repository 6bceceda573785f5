//! What the functions take, with the names that the C headers give.
//! Written by `scripts/pjrt/sys.py` from the headers of openxla/xla (C API 0.114); not edited by hand.

use std::ffi::{c_char, c_void};

use super::api::XLA_FFI_Api;
use super::{Unused, c_structs};

pub mod PJRT_Error_Code {
    pub const RESOURCE_EXHAUSTED: u32 = 8;
    pub const UNIMPLEMENTED: u32 = 12;
}

pub mod PJRT_NamedValue_Type {
    pub const STRING: u32 = 0;
    pub const INT64: u32 = 1;
    pub const INT64_LIST: u32 = 2;
    pub const FLOAT: u32 = 3;
    pub const BOOL: u32 = 4;
}

pub mod PJRT_Buffer_Type {
    pub const PRED: u32 = 1;
    pub const S8: u32 = 2;
    pub const S16: u32 = 3;
    pub const S32: u32 = 4;
    pub const S64: u32 = 5;
    pub const U8: u32 = 6;
    pub const U16: u32 = 7;
    pub const U32: u32 = 8;
    pub const U64: u32 = 9;
    pub const F16: u32 = 10;
    pub const F32: u32 = 11;
    pub const F64: u32 = 12;
    pub const BF16: u32 = 13;
    pub const C64: u32 = 14;
    pub const C128: u32 = 15;
}

pub mod PJRT_HostBufferSemantics {
    pub const IMMUTABLE_ONLY_DURING_CALL: u32 = 0;
    pub const IMMUTABLE_UNTIL_TRANSFER_COMPLETES: u32 = 1;
    pub const IMMUTABLE_ZERO_COPY: u32 = 2;
}

pub mod PJRT_Buffer_MemoryLayout_Type {
    pub const TILED: u32 = 0;
}

pub mod PJRT_Extension_Type {
    pub const FFI: u32 = 5;
}

pub mod XLA_FFI_Error_Code {
    pub const INTERNAL: u32 = 13;
}

pub mod XLA_FFI_DataType {
    pub const PRED: u32 = 1;
    pub const S8: u32 = 2;
    pub const S16: u32 = 3;
    pub const S32: u32 = 4;
    pub const S64: u32 = 5;
    pub const U8: u32 = 6;
    pub const U16: u32 = 7;
    pub const U32: u32 = 8;
    pub const U64: u32 = 9;
    pub const F16: u32 = 10;
    pub const F32: u32 = 11;
    pub const F64: u32 = 12;
    pub const BF16: u32 = 16;
    pub const C64: u32 = 15;
    pub const C128: u32 = 18;
}

pub mod XLA_FFI_ExecutionStage {
    pub const EXECUTE: u32 = 3;
}

pub mod XLA_FFI_AttrType {
    pub const SCALAR: u32 = 3;
}

pub mod XLA_FFI_InternalExtension_Type {
    pub const XLA_FFI_EXTENSION_METADATA: u32 = 1;
}

#[repr(C)]
pub struct PJRT_Buffer([u8; 0]);

#[repr(C)]
pub struct PJRT_Client([u8; 0]);

#[repr(C)]
pub struct PJRT_Device([u8; 0]);

#[repr(C)]
pub struct PJRT_DeviceDescription([u8; 0]);

#[repr(C)]
pub struct PJRT_Error([u8; 0]);

#[repr(C)]
pub struct PJRT_Event([u8; 0]);

#[repr(C)]
pub struct PJRT_Executable([u8; 0]);

#[repr(C)]
pub struct PJRT_ExecuteContext([u8; 0]);

#[repr(C)]
pub struct PJRT_LoadedExecutable([u8; 0]);

#[repr(C)]
pub struct PJRT_Memory([u8; 0]);

#[repr(C)]
pub struct PJRT_MultiSlice_Config([u8; 0]);

#[repr(C)]
pub struct PJRT_RecvCallbackInfo([u8; 0]);

#[repr(C)]
pub struct PJRT_SendCallbackInfo([u8; 0]);

#[repr(C)]
pub struct PJRT_SerializedExecutable([u8; 0]);

#[repr(C)]
pub struct PJRT_TopologyDescription([u8; 0]);

#[repr(C)]
pub struct XLA_FFI_Error([u8; 0]);

#[repr(C)]
pub struct XLA_FFI_Future([u8; 0]);

#[repr(C)]
pub struct XLA_FFI_InternalApi([u8; 0]);

#[repr(C)]
pub struct XLA_FFI_InvokeContext([u8; 0]);

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_NamedValue_Value {
    pub string_value: *const c_char,
    pub int64_value: i64,
    pub int64_array_value: *const i64,
    pub float_value: f32,
    pub bool_value: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_Buffer_MemoryLayout_Value {
    pub tiled: PJRT_Buffer_MemoryLayout_Tiled,
    pub strides: PJRT_Buffer_MemoryLayout_Strides,
}

c_structs! {
    PJRT_Extension_Base {
        struct_size: usize,
        kind: u32,
        next: *mut PJRT_Extension_Base,
    }
    PJRT_Api_Version {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        major_version: i32,
        minor_version: i32,
    }
    PJRT_Error_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        error: *mut PJRT_Error,
    }
    PJRT_Error_Message_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        error: *const PJRT_Error,
        message: *const c_char,
        message_size: usize,
    }
    PJRT_Error_GetCode_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        error: *const PJRT_Error,
        code: u32,
    }
    PJRT_Plugin_Initialize_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
    }
    PJRT_Plugin_Attributes_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        attributes: *const PJRT_NamedValue,
        num_attributes: usize,
    }
    PJRT_NamedValue {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        name: *const c_char,
        name_size: usize,
        kind: u32,
        value: PJRT_NamedValue_Value,
        value_size: usize,
    }
    PJRT_Event_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        event: *mut PJRT_Event,
    }
    PJRT_Event_IsReady_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        event: *mut PJRT_Event,
        is_ready: bool,
    }
    PJRT_Event_Await_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        event: *mut PJRT_Event,
    }
    PJRT_Event_OnReady_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        event: *mut PJRT_Event,
        callback: Option<unsafe extern "C" fn(*mut PJRT_Error, *mut c_void)>,
        user_arg: *mut c_void,
    }
    PJRT_Client_Create_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        create_options: *const PJRT_NamedValue,
        num_options: usize,
        kv_get_callback: Unused,
        kv_get_user_arg: *mut c_void,
        kv_put_callback: Unused,
        kv_put_user_arg: *mut c_void,
        client: *mut PJRT_Client,
        kv_try_get_callback: Unused,
        kv_try_get_user_arg: *mut c_void,
    }
    PJRT_Client_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
    }
    PJRT_Client_PlatformName_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        platform_name: *const c_char,
        platform_name_size: usize,
    }
    PJRT_Client_PlatformVersion_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        platform_version: *const c_char,
        platform_version_size: usize,
    }
    PJRT_Client_AddressableDevices_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        addressable_devices: *const *mut PJRT_Device,
        num_addressable_devices: usize,
    }
    PJRT_Client_Compile_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        program: *const PJRT_Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_Program {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        code: *mut c_char,
        code_size: usize,
        format: *const c_char,
        format_size: usize,
    }
    PJRT_Client_BufferFromHostBuffer_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        data: *const c_void,
        kind: u32,
        dims: *const i64,
        num_dims: usize,
        byte_strides: *const i64,
        num_byte_strides: usize,
        host_buffer_semantics: u32,
        device: *mut PJRT_Device,
        memory: *mut PJRT_Memory,
        device_layout: *mut PJRT_Buffer_MemoryLayout,
        done_with_host_buffer: *mut PJRT_Event,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_MemoryLayout {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        value: PJRT_Buffer_MemoryLayout_Value,
        kind: u32,
    }
    PJRT_Buffer_MemoryLayout_Tiled {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        minor_to_major: *const i64,
        minor_to_major_size: usize,
        tile_dims: *const i64,
        tile_dim_sizes: *const usize,
        num_tiles: usize,
    }
    PJRT_Buffer_MemoryLayout_Strides {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        byte_strides: *const i64,
        num_byte_strides: usize,
    }
    PJRT_DeviceDescription_Id_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        device_description: *mut PJRT_DeviceDescription,
        id: i32,
    }
    PJRT_DeviceDescription_Kind_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        device_description: *mut PJRT_DeviceDescription,
        device_kind: *const c_char,
        device_kind_size: usize,
    }
    PJRT_DeviceDescription_ToString_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        device_description: *mut PJRT_DeviceDescription,
        to_string: *const c_char,
        to_string_size: usize,
    }
    PJRT_Device_GetDescription_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        device: *mut PJRT_Device,
        device_description: *mut PJRT_DeviceDescription,
    }
    PJRT_Device_MemoryStats_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        device: *mut PJRT_Device,
        bytes_in_use: i64,
        peak_bytes_in_use: i64,
        peak_bytes_in_use_is_set: bool,
        num_allocs: i64,
        num_allocs_is_set: bool,
        largest_alloc_size: i64,
        largest_alloc_size_is_set: bool,
        bytes_limit: i64,
        bytes_limit_is_set: bool,
        bytes_reserved: i64,
        bytes_reserved_is_set: bool,
        peak_bytes_reserved: i64,
        peak_bytes_reserved_is_set: bool,
        bytes_reservable_limit: i64,
        bytes_reservable_limit_is_set: bool,
        largest_free_block_bytes: i64,
        largest_free_block_bytes_is_set: bool,
        pool_bytes: i64,
        pool_bytes_is_set: bool,
        peak_pool_bytes: i64,
        peak_pool_bytes_is_set: bool,
        peak_allocated_bytes: i64,
        peak_allocated_bytes_is_set: bool,
    }
    PJRT_Executable_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_Executable,
    }
    PJRT_Executable_NumOutputs_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_Executable,
        num_outputs: usize,
    }
    PJRT_Executable_Serialize_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *const PJRT_Executable,
        serialized_bytes: *const c_char,
        serialized_bytes_size: usize,
        serialized_executable: *mut PJRT_SerializedExecutable,
        serialized_executable_deleter: Option<unsafe extern "C" fn(*mut PJRT_SerializedExecutable)>,
    }
    PJRT_LoadedExecutable_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_LoadedExecutable,
    }
    PJRT_LoadedExecutable_GetExecutable_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        loaded_executable: *mut PJRT_LoadedExecutable,
        executable: *mut PJRT_Executable,
    }
    PJRT_LoadedExecutable_Execute_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_LoadedExecutable,
        options: *mut PJRT_ExecuteOptions,
        argument_lists: *const *const *mut PJRT_Buffer,
        num_devices: usize,
        num_args: usize,
        output_lists: *const *mut *mut PJRT_Buffer,
        device_complete_events: *mut *mut PJRT_Event,
        execute_device: *mut PJRT_Device,
    }
    PJRT_ExecuteOptions {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        send_callbacks: *mut *mut PJRT_SendCallbackInfo,
        recv_callbacks: *mut *mut PJRT_RecvCallbackInfo,
        num_send_ops: usize,
        num_recv_ops: usize,
        launch_id: i32,
        non_donatable_input_indices: *const i64,
        num_non_donatable_input_indices: usize,
        context: *mut PJRT_ExecuteContext,
        call_location: *const c_char,
        num_tasks: usize,
        task_ids: *mut i32,
        incarnation_ids: *mut i64,
        multi_slice_config: *mut PJRT_MultiSlice_Config,
        use_major_to_minor_data_layout_for_callbacks: bool,
        hlo_output_callbacks: *mut PJRT_HloOutputCallbackInfo,
        num_hlo_output_callbacks: usize,
    }
    PJRT_HloOutputCallbackInfo {
        user_arg: *mut c_void,
        callback: Option<unsafe extern "C" fn(i64, i64, *const c_void, *const i64, u64, u32, i64, *mut c_void)>,
        callback_id: i64,
        num_operands: usize,
    }
    PJRT_Executable_DeserializeAndLoad_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        client: *mut PJRT_Client,
        serialized_executable: *const c_char,
        serialized_executable_size: usize,
        loaded_executable: *mut PJRT_LoadedExecutable,
        overridden_serialized_compile_options: *const c_char,
        overridden_serialized_compile_options_size: usize,
        load_options: *mut PJRT_LoadOptions,
    }
    PJRT_LoadOptions {
        struct_size: usize,
        computation_origin: *const i32,
        computation_origin_size: usize,
        multi_slice_config: *mut PJRT_MultiSlice_Config,
    }
    PJRT_Buffer_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_IsDeleted_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        buffer: *mut PJRT_Buffer,
        is_deleted: bool,
    }
    PJRT_Buffer_CopyToDevice_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        buffer: *mut PJRT_Buffer,
        dst_device: *mut PJRT_Device,
        dst_buffer: *mut PJRT_Buffer,
    }
    PJRT_Buffer_ToHostBuffer_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        src: *mut PJRT_Buffer,
        host_layout: *mut PJRT_Buffer_MemoryLayout,
        dst: *mut c_void,
        dst_size: usize,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_ReadyEvent_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        buffer: *mut PJRT_Buffer,
        event: *mut PJRT_Event,
    }
    PJRT_Buffer_UnsafePointer_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        buffer: *mut PJRT_Buffer,
        buffer_pointer: usize,
    }
    PJRT_TopologyDescription_Create_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        topology_name: *const c_char,
        topology_name_size: usize,
        create_options: *const PJRT_NamedValue,
        num_options: usize,
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        topology: *mut PJRT_TopologyDescription,
    }
    PJRT_TopologyDescription_GetDeviceDescriptions_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        topology: *const PJRT_TopologyDescription,
        descriptions: *const *mut PJRT_DeviceDescription,
        num_descriptions: usize,
    }
    PJRT_Compile_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        topology: *const PJRT_TopologyDescription,
        program: *const PJRT_Program,
        compile_options: *const c_char,
        compile_options_size: usize,
        client: *mut PJRT_Client,
        executable: *mut PJRT_Executable,
    }
    PJRT_Executable_OutputElementTypes_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_Executable,
        output_types: *mut u32,
        num_output_types: usize,
    }
    PJRT_Executable_OutputDimensions_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_Executable,
        num_outputs: usize,
        dims: *const i64,
        dim_sizes: *const usize,
    }
    PJRT_Executable_GetCompiledMemoryStats_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        executable: *mut PJRT_Executable,
        generated_code_size_in_bytes: i64,
        argument_size_in_bytes: i64,
        output_size_in_bytes: i64,
        alias_size_in_bytes: i64,
        temp_size_in_bytes: i64,
        host_generated_code_size_in_bytes: i64,
        host_argument_size_in_bytes: i64,
        host_output_size_in_bytes: i64,
        host_alias_size_in_bytes: i64,
        host_temp_size_in_bytes: i64,
        peak_memory_in_bytes: i64,
        total_size_in_bytes: i64,
        total_allocation_bytes: i64,
        indefinite_allocations: i64,
        peak_unpadded_heap_bytes: i64,
    }
    PJRT_ExecuteContext_Create_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        context: *mut PJRT_ExecuteContext,
    }
    PJRT_ExecuteContext_Destroy_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        context: *mut PJRT_ExecuteContext,
    }
    XLA_FFI_InternalExtension {
        struct_size: usize,
        kind: u32,
        next: *mut XLA_FFI_InternalExtension,
    }
    XLA_FFI_Api_Version {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        major_version: i32,
        minor_version: i32,
    }
    XLA_FFI_Error_Create_Args {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        message: *const c_char,
        errc: u32,
    }
    XLA_FFI_Error_Destroy_Args {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        error: *mut XLA_FFI_Error,
    }
    XLA_FFI_InvokeContext_Get_Args {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        ctx: *mut XLA_FFI_InvokeContext,
        type_id: *mut XLA_FFI_TypeId,
        data: *mut c_void,
    }
    XLA_FFI_TypeId {
        type_id: i64,
    }
    PJRT_FFI_Extension {
        base: PJRT_Extension_Base,
        type_register: Option<unsafe extern "C" fn(*mut PJRT_FFI_Type_Register_Args) -> *mut PJRT_Error>,
        user_data_add: Option<unsafe extern "C" fn(*mut PJRT_FFI_UserData_Add_Args) -> *mut PJRT_Error>,
        register_handler: Option<unsafe extern "C" fn(*mut PJRT_FFI_Register_Handler_Args) -> *mut PJRT_Error>,
    }
    PJRT_FFI_Type_Register_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        type_name: *const c_char,
        type_name_size: usize,
        type_id: i64,
        type_info: *mut PJRT_FFI_Type_Info,
    }
    PJRT_FFI_Type_Info {
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
        serialize: Option<unsafe extern "C" fn()>,
        deserialize: Option<unsafe extern "C" fn()>,
    }
    PJRT_FFI_UserData_Add_Args {
        struct_size: usize,
        extension_start: *mut PJRT_Extension_Base,
        context: *mut PJRT_ExecuteContext,
        user_data: PJRT_FFI_UserData,
    }
    PJRT_FFI_UserData {
        type_id: i64,
        data: *mut c_void,
    }
    PJRT_FFI_Register_Handler_Args {
        struct_size: usize,
        target_name: *const c_char,
        target_name_size: usize,
        handler: *mut c_void,
        platform_name: *const c_char,
        platform_name_size: usize,
        traits: u32,
    }
    XLA_FFI_CallFrame {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        api: *const XLA_FFI_Api,
        ctx: *mut XLA_FFI_InvokeContext,
        stage: u32,
        args: XLA_FFI_Args,
        rets: XLA_FFI_Rets,
        attrs: XLA_FFI_Attrs,
        future: *mut XLA_FFI_Future,
    }
    XLA_FFI_Args {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        size: i64,
        types: *mut u32,
        args: *mut *mut c_void,
    }
    XLA_FFI_Rets {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        size: i64,
        types: *mut u32,
        rets: *mut *mut c_void,
    }
    XLA_FFI_Attrs {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        size: i64,
        types: *mut u32,
        names: *mut *mut XLA_FFI_ByteSpan,
        attrs: *mut *mut c_void,
    }
    XLA_FFI_ByteSpan {
        ptr: *const c_char,
        len: usize,
    }
    XLA_FFI_Buffer {
        struct_size: usize,
        extension_start: *mut XLA_FFI_InternalExtension,
        dtype: u32,
        data: *mut c_void,
        rank: i64,
        dims: *mut i64,
    }
    XLA_FFI_Scalar {
        dtype: u32,
        value: *mut c_void,
    }
    XLA_FFI_Metadata_Extension {
        extension_base: XLA_FFI_InternalExtension,
        metadata: *mut XLA_FFI_Metadata,
    }
    XLA_FFI_Metadata {
        struct_size: usize,
        api_version: XLA_FFI_Api_Version,
        traits: u32,
        state_type_id: XLA_FFI_TypeId,
    }
}
