//! Sizes and places of fields, as the C compiler says they are.
//! Written by `scripts/pjrt/sys.py` from the headers of openxla/xla (C API 0.114); not edited by hand.

use super::{api::*, types::*};

macro_rules! same {
    ($($name:ident $size:literal { $($field:ident $at:literal)* })*) => {
        $(
            assert_eq!(size_of::<$name>(), $size, "the size of {}", stringify!($name));
            $(assert_eq!(std::mem::offset_of!($name, $field), $at, "{}.{}", stringify!($name), stringify!($field));)*
        )*
    };
}

#[test]
fn every_struct_lies_as_in_c() {
    same! {
        PJRT_Extension_Base 24 { struct_size 0 kind 8 next 16 }
        PJRT_Api_Version 24 { struct_size 0 extension_start 8 major_version 16 minor_version 20 }
        PJRT_Error_Destroy_Args 24 { struct_size 0 extension_start 8 error 16 }
        PJRT_Error_Message_Args 40 { struct_size 0 extension_start 8 error 16 message 24 message_size 32 }
        PJRT_Error_GetCode_Args 32 { struct_size 0 extension_start 8 error 16 code 24 }
        PJRT_Plugin_Initialize_Args 16 { struct_size 0 extension_start 8 }
        PJRT_NamedValue 56 { struct_size 0 extension_start 8 name 16 name_size 24 kind 32 value 40 value_size 48 }
        PJRT_Plugin_Attributes_Args 32 { struct_size 0 extension_start 8 attributes 16 num_attributes 24 }
        PJRT_Event_Destroy_Args 24 { struct_size 0 extension_start 8 event 16 }
        PJRT_Event_IsReady_Args 32 { struct_size 0 extension_start 8 event 16 is_ready 24 }
        PJRT_Event_Await_Args 24 { struct_size 0 extension_start 8 event 16 }
        PJRT_Event_OnReady_Args 40 { struct_size 0 extension_start 8 event 16 callback 24 user_arg 32 }
        PJRT_Client_Create_Args 88 { struct_size 0 extension_start 8 create_options 16 num_options 24 kv_get_callback 32 kv_get_user_arg 40 kv_put_callback 48 kv_put_user_arg 56 client 64 kv_try_get_callback 72 kv_try_get_user_arg 80 }
        PJRT_Client_Destroy_Args 24 { struct_size 0 extension_start 8 client 16 }
        PJRT_Client_PlatformName_Args 40 { struct_size 0 extension_start 8 client 16 platform_name 24 platform_name_size 32 }
        PJRT_Client_PlatformVersion_Args 40 { struct_size 0 extension_start 8 client 16 platform_version 24 platform_version_size 32 }
        PJRT_Client_AddressableDevices_Args 40 { struct_size 0 extension_start 8 client 16 addressable_devices 24 num_addressable_devices 32 }
        PJRT_Program 48 { struct_size 0 extension_start 8 code 16 code_size 24 format 32 format_size 40 }
        PJRT_Client_Compile_Args 56 { struct_size 0 extension_start 8 client 16 program 24 compile_options 32 compile_options_size 40 executable 48 }
        PJRT_Buffer_MemoryLayout_Tiled 56 { struct_size 0 extension_start 8 minor_to_major 16 minor_to_major_size 24 tile_dims 32 tile_dim_sizes 40 num_tiles 48 }
        PJRT_Buffer_MemoryLayout_Strides 32 { struct_size 0 extension_start 8 byte_strides 16 num_byte_strides 24 }
        PJRT_Buffer_MemoryLayout 80 { struct_size 0 extension_start 8 value 16 kind 72 }
        PJRT_Client_BufferFromHostBuffer_Args 120 { struct_size 0 extension_start 8 client 16 data 24 kind 32 dims 40 num_dims 48 byte_strides 56 num_byte_strides 64 host_buffer_semantics 72 device 80 memory 88 device_layout 96 done_with_host_buffer 104 buffer 112 }
        PJRT_DeviceDescription_Id_Args 32 { struct_size 0 extension_start 8 device_description 16 id 24 }
        PJRT_DeviceDescription_Kind_Args 40 { struct_size 0 extension_start 8 device_description 16 device_kind 24 device_kind_size 32 }
        PJRT_DeviceDescription_ToString_Args 40 { struct_size 0 extension_start 8 device_description 16 to_string 24 to_string_size 32 }
        PJRT_Device_GetDescription_Args 32 { struct_size 0 extension_start 8 device 16 device_description 24 }
        PJRT_Device_MemoryStats_Args 208 { struct_size 0 extension_start 8 device 16 bytes_in_use 24 peak_bytes_in_use 32 peak_bytes_in_use_is_set 40 num_allocs 48 num_allocs_is_set 56 largest_alloc_size 64 largest_alloc_size_is_set 72 bytes_limit 80 bytes_limit_is_set 88 bytes_reserved 96 bytes_reserved_is_set 104 peak_bytes_reserved 112 peak_bytes_reserved_is_set 120 bytes_reservable_limit 128 bytes_reservable_limit_is_set 136 largest_free_block_bytes 144 largest_free_block_bytes_is_set 152 pool_bytes 160 pool_bytes_is_set 168 peak_pool_bytes 176 peak_pool_bytes_is_set 184 peak_allocated_bytes 192 peak_allocated_bytes_is_set 200 }
        PJRT_Executable_Destroy_Args 24 { struct_size 0 extension_start 8 executable 16 }
        PJRT_Executable_NumOutputs_Args 32 { struct_size 0 extension_start 8 executable 16 num_outputs 24 }
        PJRT_Executable_Serialize_Args 56 { struct_size 0 extension_start 8 executable 16 serialized_bytes 24 serialized_bytes_size 32 serialized_executable 40 serialized_executable_deleter 48 }
        PJRT_LoadedExecutable_Destroy_Args 24 { struct_size 0 extension_start 8 executable 16 }
        PJRT_LoadedExecutable_GetExecutable_Args 32 { struct_size 0 extension_start 8 loaded_executable 16 executable 24 }
        PJRT_HloOutputCallbackInfo 32 { user_arg 0 callback 8 callback_id 16 num_operands 24 }
        PJRT_ExecuteOptions 144 { struct_size 0 extension_start 8 send_callbacks 16 recv_callbacks 24 num_send_ops 32 num_recv_ops 40 launch_id 48 non_donatable_input_indices 56 num_non_donatable_input_indices 64 context 72 call_location 80 num_tasks 88 task_ids 96 incarnation_ids 104 multi_slice_config 112 use_major_to_minor_data_layout_for_callbacks 120 hlo_output_callbacks 128 num_hlo_output_callbacks 136 }
        PJRT_LoadedExecutable_Execute_Args 80 { struct_size 0 extension_start 8 executable 16 options 24 argument_lists 32 num_devices 40 num_args 48 output_lists 56 device_complete_events 64 execute_device 72 }
        PJRT_LoadOptions 32 { struct_size 0 computation_origin 8 computation_origin_size 16 multi_slice_config 24 }
        PJRT_Executable_DeserializeAndLoad_Args 72 { struct_size 0 extension_start 8 client 16 serialized_executable 24 serialized_executable_size 32 loaded_executable 40 overridden_serialized_compile_options 48 overridden_serialized_compile_options_size 56 load_options 64 }
        PJRT_Buffer_Destroy_Args 24 { struct_size 0 extension_start 8 buffer 16 }
        PJRT_Buffer_IsDeleted_Args 32 { struct_size 0 extension_start 8 buffer 16 is_deleted 24 }
        PJRT_Buffer_CopyToDevice_Args 40 { struct_size 0 extension_start 8 buffer 16 dst_device 24 dst_buffer 32 }
        PJRT_Buffer_ToHostBuffer_Args 56 { struct_size 0 extension_start 8 src 16 host_layout 24 dst 32 dst_size 40 event 48 }
        PJRT_Buffer_ReadyEvent_Args 32 { struct_size 0 extension_start 8 buffer 16 event 24 }
        PJRT_Buffer_UnsafePointer_Args 32 { struct_size 0 extension_start 8 buffer 16 buffer_pointer 24 }
        PJRT_TopologyDescription_Create_Args 56 { struct_size 0 extension_start 8 topology_name 16 topology_name_size 24 create_options 32 num_options 40 topology 48 }
        PJRT_TopologyDescription_Destroy_Args 24 { struct_size 0 extension_start 8 topology 16 }
        PJRT_TopologyDescription_GetDeviceDescriptions_Args 40 { struct_size 0 extension_start 8 topology 16 descriptions 24 num_descriptions 32 }
        PJRT_Compile_Args 64 { struct_size 0 extension_start 8 topology 16 program 24 compile_options 32 compile_options_size 40 client 48 executable 56 }
        PJRT_Executable_OutputElementTypes_Args 40 { struct_size 0 extension_start 8 executable 16 output_types 24 num_output_types 32 }
        PJRT_Executable_OutputDimensions_Args 48 { struct_size 0 extension_start 8 executable 16 num_outputs 24 dims 32 dim_sizes 40 }
        PJRT_Executable_GetCompiledMemoryStats_Args 144 { struct_size 0 extension_start 8 executable 16 generated_code_size_in_bytes 24 argument_size_in_bytes 32 output_size_in_bytes 40 alias_size_in_bytes 48 temp_size_in_bytes 56 host_generated_code_size_in_bytes 64 host_argument_size_in_bytes 72 host_output_size_in_bytes 80 host_alias_size_in_bytes 88 host_temp_size_in_bytes 96 peak_memory_in_bytes 104 total_size_in_bytes 112 total_allocation_bytes 120 indefinite_allocations 128 peak_unpadded_heap_bytes 136 }
        PJRT_ExecuteContext_Create_Args 24 { struct_size 0 extension_start 8 context 16 }
        PJRT_ExecuteContext_Destroy_Args 24 { struct_size 0 extension_start 8 context 16 }
        PJRT_Api 1144 { struct_size 0 extension_start 8 pjrt_api_version 16 PJRT_Error_Destroy 40 PJRT_Error_Message 48 PJRT_Error_GetCode 56 PJRT_Plugin_Initialize 64 PJRT_Plugin_Attributes 72 PJRT_Event_Destroy 80 PJRT_Event_IsReady 88 PJRT_Event_Error 96 PJRT_Event_Await 104 PJRT_Event_OnReady 112 PJRT_Client_Create 120 PJRT_Client_Destroy 128 PJRT_Client_PlatformName 136 PJRT_Client_ProcessIndex 144 PJRT_Client_PlatformVersion 152 PJRT_Client_Devices 160 PJRT_Client_AddressableDevices 168 PJRT_Client_LookupDevice 176 PJRT_Client_LookupAddressableDevice 184 PJRT_Client_AddressableMemories 192 PJRT_Client_Compile 200 PJRT_Client_DefaultDeviceAssignment 208 PJRT_Client_BufferFromHostBuffer 216 PJRT_DeviceDescription_Id 224 PJRT_DeviceDescription_ProcessIndex 232 PJRT_DeviceDescription_Attributes 240 PJRT_DeviceDescription_Kind 248 PJRT_DeviceDescription_DebugString 256 PJRT_DeviceDescription_ToString 264 PJRT_Device_GetDescription 272 PJRT_Device_IsAddressable 280 PJRT_Device_LocalHardwareId 288 PJRT_Device_AddressableMemories 296 PJRT_Device_DefaultMemory 304 PJRT_Device_MemoryStats 312 PJRT_Memory_Id 320 PJRT_Memory_Kind 328 PJRT_Memory_DebugString 336 PJRT_Memory_ToString 344 PJRT_Memory_AddressableByDevices 352 PJRT_Executable_Destroy 360 PJRT_Executable_Name 368 PJRT_Executable_NumReplicas 376 PJRT_Executable_NumPartitions 384 PJRT_Executable_NumOutputs 392 PJRT_Executable_SizeOfGeneratedCodeInBytes 400 PJRT_Executable_GetCostAnalysis 408 PJRT_Executable_OutputMemoryKinds 416 PJRT_Executable_OptimizedProgram 424 PJRT_Executable_Serialize 432 PJRT_LoadedExecutable_Destroy 440 PJRT_LoadedExecutable_GetExecutable 448 PJRT_LoadedExecutable_AddressableDevices 456 PJRT_LoadedExecutable_Delete 464 PJRT_LoadedExecutable_IsDeleted 472 PJRT_LoadedExecutable_Execute 480 PJRT_Executable_DeserializeAndLoad 488 PJRT_LoadedExecutable_Fingerprint 496 PJRT_Buffer_Destroy 504 PJRT_Buffer_ElementType 512 PJRT_Buffer_Dimensions 520 PJRT_Buffer_UnpaddedDimensions 528 PJRT_Buffer_DynamicDimensionIndices 536 PJRT_Buffer_GetMemoryLayout 544 PJRT_Buffer_OnDeviceSizeInBytes 552 PJRT_Buffer_Device 560 PJRT_Buffer_Memory 568 PJRT_Buffer_Delete 576 PJRT_Buffer_IsDeleted 584 PJRT_Buffer_CopyToDevice 592 PJRT_Buffer_ToHostBuffer 600 PJRT_Buffer_IsOnCpu 608 PJRT_Buffer_ReadyEvent 616 PJRT_Buffer_UnsafePointer 624 PJRT_Buffer_IncreaseExternalReferenceCount 632 PJRT_Buffer_DecreaseExternalReferenceCount 640 PJRT_Buffer_OpaqueDeviceMemoryDataPointer 648 PJRT_CopyToDeviceStream_Destroy 656 PJRT_CopyToDeviceStream_AddChunk 664 PJRT_CopyToDeviceStream_TotalBytes 672 PJRT_CopyToDeviceStream_GranuleSize 680 PJRT_CopyToDeviceStream_CurrentBytes 688 PJRT_TopologyDescription_Create 696 PJRT_TopologyDescription_Destroy 704 PJRT_TopologyDescription_PlatformName 712 PJRT_TopologyDescription_PlatformVersion 720 PJRT_TopologyDescription_GetDeviceDescriptions 728 PJRT_TopologyDescription_Serialize 736 PJRT_TopologyDescription_Attributes 744 PJRT_Compile 752 PJRT_Executable_OutputElementTypes 760 PJRT_Executable_OutputDimensions 768 PJRT_Buffer_CopyToMemory 776 PJRT_Client_CreateViewOfDeviceBuffer 784 PJRT_Executable_Fingerprint 792 PJRT_Client_TopologyDescription 800 PJRT_Executable_GetCompiledMemoryStats 808 PJRT_Memory_Kind_Id 816 PJRT_ExecuteContext_Create 824 PJRT_ExecuteContext_Destroy 832 PJRT_Buffer_CopyRawToHost 840 PJRT_AsyncHostToDeviceTransferManager_Destroy 848 PJRT_AsyncHostToDeviceTransferManager_TransferData 856 PJRT_Client_CreateBuffersForAsyncHostToDevice 864 PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer 872 PJRT_AsyncHostToDeviceTransferManager_Device 880 PJRT_AsyncHostToDeviceTransferManager_BufferCount 888 PJRT_AsyncHostToDeviceTransferManager_BufferSize 896 PJRT_AsyncHostToDeviceTransferManager_SetBufferError 904 PJRT_AsyncHostToDeviceTransferManager_AddMetadata 912 PJRT_Client_DmaMap 920 PJRT_Client_DmaUnmap 928 PJRT_Client_CreateUninitializedBuffer 936 PJRT_Client_UpdateGlobalProcessInfo 944 PJRT_TopologyDescription_Deserialize 952 PJRT_Client_CreateAliasBuffer 960 PJRT_Client_FulfillAliasBuffer 968 PJRT_LoadedExecutable_GetDeviceAssignment 976 PJRT_Client_CreateErrorBuffer 984 PJRT_AsyncHostToDeviceTransferManager_TransferLiteral 992 PJRT_Buffer_CopyRawToHostFuture 1000 PJRT_Device_PoisonExecution 1008 PJRT_Device_CreateAsyncTrackingEvent 1016 PJRT_AsyncTrackingEvent_Destroy 1024 PJRT_Executable_GetCompileOptions 1032 PJRT_Buffer_DonateWithControlDependency 1040 PJRT_Event_Create 1048 PJRT_Event_Set 1056 PJRT_Device_GetAttributes 1064 PJRT_Client_Load 1072 PJRT_LoadedExecutable_AddressableDeviceLogicalIds 1080 PJRT_Buffer_Bitcast 1088 PJRT_Error_ForEachPayload 1096 PJRT_TopologyDescription_Fingerprint 1104 PJRT_Executable_ParameterMemoryKinds 1112 PJRT_Device_ClearMemoryStats 1120 PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace 1128 PJRT_TopologyDescription_GetMemorySpaceKindIds 1136 }
        XLA_FFI_InternalExtension 24 { struct_size 0 kind 8 next 16 }
        XLA_FFI_Api_Version 24 { struct_size 0 extension_start 8 major_version 16 minor_version 20 }
        XLA_FFI_Error_Create_Args 32 { struct_size 0 extension_start 8 message 16 errc 24 }
        XLA_FFI_Error_Destroy_Args 24 { struct_size 0 extension_start 8 error 16 }
        XLA_FFI_TypeId 8 { type_id 0 }
        XLA_FFI_InvokeContext_Get_Args 40 { struct_size 0 extension_start 8 ctx 16 type_id 24 data 32 }
        XLA_FFI_Api 200 { struct_size 0 extension_start 8 api_version 16 internal_api 40 XLA_FFI_Error_Create 48 XLA_FFI_Error_GetDetails 56 XLA_FFI_Error_Destroy 64 XLA_FFI_Handler_Register 72 XLA_FFI_Stream_Get 80 XLA_FFI_Type_Register 88 XLA_FFI_InvokeContext_Get 96 XLA_FFI_State_Set 104 XLA_FFI_State_Get 112 XLA_FFI_DeviceMemory_Allocate 120 XLA_FFI_DeviceMemory_Free 128 XLA_FFI_ThreadPool_Schedule 136 XLA_FFI_ThreadPool_NumThreads 144 XLA_FFI_Future_Create 152 XLA_FFI_Future_SetAvailable 160 XLA_FFI_Future_SetError 168 XLA_FFI_RunId_Get 176 XLA_FFI_DeviceOrdinal_Get 184 XLA_FFI_InvokeContext_FindExtension 192 }
        PJRT_FFI_Type_Info 24 { deleter 0 serialize 8 deserialize 16 }
        PJRT_FFI_Type_Register_Args 48 { struct_size 0 extension_start 8 type_name 16 type_name_size 24 type_id 32 type_info 40 }
        PJRT_FFI_UserData 16 { type_id 0 data 8 }
        PJRT_FFI_UserData_Add_Args 40 { struct_size 0 extension_start 8 context 16 user_data 24 }
        PJRT_FFI_Register_Handler_Args 56 { struct_size 0 target_name 8 target_name_size 16 handler 24 platform_name 32 platform_name_size 40 traits 48 }
        PJRT_FFI_Extension 48 { base 0 type_register 24 user_data_add 32 register_handler 40 }
        XLA_FFI_Args 40 { struct_size 0 extension_start 8 size 16 types 24 args 32 }
        XLA_FFI_Rets 40 { struct_size 0 extension_start 8 size 16 types 24 rets 32 }
        XLA_FFI_ByteSpan 16 { ptr 0 len 8 }
        XLA_FFI_Attrs 48 { struct_size 0 extension_start 8 size 16 types 24 names 32 attrs 40 }
        XLA_FFI_CallFrame 176 { struct_size 0 extension_start 8 api 16 ctx 24 stage 32 args 40 rets 80 attrs 120 future 168 }
        XLA_FFI_Buffer 48 { struct_size 0 extension_start 8 dtype 16 data 24 rank 32 dims 40 }
        XLA_FFI_Scalar 16 { dtype 0 value 8 }
        XLA_FFI_Metadata 48 { struct_size 0 api_version 8 traits 32 state_type_id 40 }
        XLA_FFI_Metadata_Extension 32 { extension_base 0 metadata 24 }
    }
}
