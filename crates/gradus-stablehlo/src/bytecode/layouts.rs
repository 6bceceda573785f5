//! Which properties an operation has. Bytecode writes them without their names, in the order of the names: this table has the names.
//!
//! An operation of which versions differ in the number of properties has several rows. Names without properties are here as well, since VHLO's operations
//! are those of StableHLO with a version behind the name.

use std::rc::Rc;

/// An operation and the names of its properties; `?` marks one that may be absent.
type Row = (&'static str, &'static str);

/// The operations of StableHLO, CHLO, Shardy, `check` and `func`.
const NATIVE: &[Row] = &[
    ("arith.constant", "value"),
    ("builtin.module", "sym_name? sym_visibility?"),
    ("check.expect_almost_eq", "tolerance?"),
    ("check.expect_almost_eq_const", "tolerance? value"),
    ("check.expect_close", "max_ulp_difference? min_ulp_difference?"),
    ("check.expect_eq", ""),
    ("check.expect_eq_const", "value"),
    ("chlo._asin_acos_kernel", ""),
    ("chlo.acos", ""),
    ("chlo.acosh", ""),
    ("chlo.asin", ""),
    ("chlo.asinh", ""),
    ("chlo.atan", ""),
    ("chlo.atanh", ""),
    ("chlo.bessel_i1e", ""),
    ("chlo.broadcast_add", "broadcast_dimensions?"),
    ("chlo.broadcast_and", "broadcast_dimensions?"),
    ("chlo.broadcast_atan2", "broadcast_dimensions?"),
    ("chlo.broadcast_compare", "broadcast_dimensions? compare_type? comparison_direction"),
    ("chlo.broadcast_complex", "broadcast_dimensions?"),
    ("chlo.broadcast_divide", "broadcast_dimensions?"),
    ("chlo.broadcast_maximum", "broadcast_dimensions?"),
    ("chlo.broadcast_minimum", "broadcast_dimensions?"),
    ("chlo.broadcast_multiply", "broadcast_dimensions?"),
    ("chlo.broadcast_next_after", "broadcast_dimensions?"),
    ("chlo.broadcast_or", "broadcast_dimensions?"),
    ("chlo.broadcast_polygamma", "broadcast_dimensions?"),
    ("chlo.broadcast_power", "broadcast_dimensions?"),
    ("chlo.broadcast_remainder", "broadcast_dimensions?"),
    ("chlo.broadcast_select", ""),
    ("chlo.broadcast_shift_left", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_right_arithmetic", "broadcast_dimensions?"),
    ("chlo.broadcast_shift_right_logical", "broadcast_dimensions?"),
    ("chlo.broadcast_subtract", "broadcast_dimensions?"),
    ("chlo.broadcast_xor", "broadcast_dimensions?"),
    ("chlo.broadcast_zeta", "broadcast_dimensions?"),
    ("chlo.conj", ""),
    ("chlo.constant", "value"),
    ("chlo.constant_like", "value"),
    ("chlo.cosh", ""),
    ("chlo.digamma", ""),
    ("chlo.erf", ""),
    ("chlo.erf_inv", ""),
    ("chlo.erfc", ""),
    ("chlo.is_inf", ""),
    ("chlo.is_neg_inf", ""),
    ("chlo.is_pos_inf", ""),
    ("chlo.lgamma", ""),
    ("chlo.mulhi", ""),
    ("chlo.next_after", ""),
    ("chlo.polygamma", ""),
    ("chlo.ragged_dot", "precision_config? ragged_dot_dimension_numbers"),
    ("chlo.sinh", ""),
    ("chlo.square", ""),
    ("chlo.tan", ""),
    ("chlo.top_k", "is_stable? k"),
    ("chlo.top_k", "k"),
    ("chlo.zeta", ""),
    ("func.call", "arg_attrs? callee no_inline? res_attrs?"),
    ("func.call", "callee no_inline?"),
    ("func.call", "callee"),
    ("func.func", "arg_attrs? function_type no_inline? res_attrs? sym_name sym_visibility?"),
    ("func.func", "arg_attrs? function_type res_attrs? sym_name sym_visibility?"),
    ("func.return", ""),
    ("sdy.constant", "value"),
    ("sdy.data_flow_edge", "sharding?"),
    ("sdy.manual_computation", "in_shardings manual_axes out_shardings"),
    ("sdy.mesh", "mesh sym_name"),
    ("sdy.named_computation", "in_shardings? name out_shardings?"),
    ("sdy.propagation_barrier", "allowed_direction"),
    ("sdy.reshard", "sharding"),
    ("sdy.return", ""),
    ("sdy.sharding_constraint", "sharding"),
    ("sdy.sharding_group", "group_id"),
    ("stablehlo.abs", ""),
    ("stablehlo.add", ""),
    ("stablehlo.after_all", ""),
    ("stablehlo.all_gather", "all_gather_dim channel_handle? replica_groups use_global_device_ids?"),
    ("stablehlo.all_reduce", "channel_handle? replica_groups use_global_device_ids?"),
    ("stablehlo.all_to_all", "channel_handle? concat_dimension replica_groups split_count split_dimension"),
    ("stablehlo.and", ""),
    ("stablehlo.async_done", ""),
    ("stablehlo.async_start", ""),
    ("stablehlo.atan2", ""),
    ("stablehlo.batch_norm_grad", "epsilon feature_index"),
    ("stablehlo.batch_norm_inference", "epsilon feature_index"),
    ("stablehlo.batch_norm_training", "epsilon feature_index"),
    ("stablehlo.bitcast_convert", ""),
    ("stablehlo.broadcast", "broadcast_sizes"),
    ("stablehlo.broadcast_in_dim", "broadcast_dimensions"),
    ("stablehlo.case", ""),
    ("stablehlo.cbrt", "result_accuracy?"),
    ("stablehlo.ceil", ""),
    ("stablehlo.cholesky", "lower?"),
    ("stablehlo.clamp", ""),
    ("stablehlo.collective_broadcast", "channel_handle? has_dynamic_root? replica_groups"),
    ("stablehlo.collective_broadcast", "channel_handle? replica_groups"),
    ("stablehlo.collective_permute", "channel_handle? source_target_pairs"),
    ("stablehlo.collective_reduce", "channel_handle? has_dynamic_root? replica_groups use_global_device_ids?"),
    ("stablehlo.compare", "compare_type? comparison_direction"),
    ("stablehlo.complex", ""),
    ("stablehlo.composite", "composite_attributes? decomposition name version?"),
    ("stablehlo.concatenate", "dimension"),
    ("stablehlo.constant", "value"),
    ("stablehlo.convert", ""),
    (
        "stablehlo.convolution",
        "batch_group_count dimension_numbers feature_group_count lhs_dilation? padding? precision_config? rhs_dilation? window_reversal? window_strides?",
    ),
    ("stablehlo.cosine", "result_accuracy?"),
    ("stablehlo.count_leading_zeros", ""),
    ("stablehlo.create_token", ""),
    ("stablehlo.cross-replica-sum", "replica_groups"),
    (
        "stablehlo.custom_call",
        "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts? result_tilings?",
    ),
    (
        "stablehlo.custom_call",
        "api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts? output_operand_aliases? result_layouts?",
    ),
    ("stablehlo.divide", ""),
    ("stablehlo.dot", "precision_config?"),
    ("stablehlo.dot_general", "algorithm? dot_dimension_numbers precision_config?"),
    ("stablehlo.dot_general", "dot_dimension_numbers precision_config?"),
    (
        "stablehlo.dynamic_broadcast_in_dim",
        "broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?",
    ),
    (
        "stablehlo.dynamic_conv",
        "batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? rhs_dilation? window_reversal? window_strides?",
    ),
    ("stablehlo.dynamic_gather", "dimension_numbers indices_are_sorted?"),
    ("stablehlo.dynamic_iota", "iota_dimension"),
    ("stablehlo.dynamic_pad", ""),
    ("stablehlo.dynamic_reshape", ""),
    ("stablehlo.dynamic_slice", "slice_sizes"),
    ("stablehlo.dynamic_update_slice", ""),
    ("stablehlo.einsum", "einsum_config"),
    ("stablehlo.exponential", "result_accuracy?"),
    ("stablehlo.exponential_minus_one", "result_accuracy?"),
    ("stablehlo.fft", "fft_length fft_type"),
    ("stablehlo.floor", ""),
    ("stablehlo.gather", "dimension_numbers indices_are_sorted? slice_sizes"),
    ("stablehlo.get_dimension_size", "dimension"),
    ("stablehlo.get_tuple_element", "index"),
    ("stablehlo.if", ""),
    ("stablehlo.imag", ""),
    ("stablehlo.infeed", "infeed_config? layout?"),
    ("stablehlo.iota", "iota_dimension"),
    ("stablehlo.is_finite", ""),
    ("stablehlo.log", "result_accuracy?"),
    ("stablehlo.log_plus_one", "result_accuracy?"),
    ("stablehlo.logistic", "result_accuracy?"),
    ("stablehlo.map", "dimensions"),
    ("stablehlo.maximum", ""),
    ("stablehlo.minimum", ""),
    ("stablehlo.multiply", ""),
    ("stablehlo.negate", ""),
    ("stablehlo.not", ""),
    ("stablehlo.optimization_barrier", ""),
    ("stablehlo.or", ""),
    ("stablehlo.outfeed", "outfeed_config?"),
    ("stablehlo.pad", "edge_padding_high edge_padding_low interior_padding"),
    ("stablehlo.partition_id", ""),
    ("stablehlo.popcnt", ""),
    ("stablehlo.power", ""),
    ("stablehlo.real", ""),
    ("stablehlo.real_dynamic_slice", ""),
    ("stablehlo.recv", "channel_handle is_host_transfer? source_target_pairs?"),
    ("stablehlo.recv", "channel_handle is_host_transfer?"),
    ("stablehlo.reduce", "dimensions"),
    ("stablehlo.reduce_precision", "exponent_bits mantissa_bits"),
    ("stablehlo.reduce_scatter", "channel_handle? replica_groups scatter_dimension use_global_device_ids?"),
    ("stablehlo.reduce_window", "base_dilations? padding? window_dilations? window_dimensions window_strides?"),
    ("stablehlo.remainder", ""),
    ("stablehlo.replica_id", ""),
    ("stablehlo.reshape", ""),
    ("stablehlo.return", ""),
    ("stablehlo.reverse", "dimensions"),
    ("stablehlo.rng", "rng_distribution"),
    ("stablehlo.rng_bit_generator", "rng_algorithm"),
    ("stablehlo.round_nearest_afz", ""),
    ("stablehlo.round_nearest_even", ""),
    ("stablehlo.rsqrt", "result_accuracy?"),
    ("stablehlo.scatter", "indices_are_sorted? scatter_dimension_numbers unique_indices?"),
    ("stablehlo.select", ""),
    ("stablehlo.select_and_scatter", "padding? window_dimensions? window_strides?"),
    ("stablehlo.send", "channel_handle is_host_transfer? source_target_pairs?"),
    ("stablehlo.send", "channel_handle is_host_transfer?"),
    ("stablehlo.set_dimension_size", "dimension"),
    ("stablehlo.shift_left", ""),
    ("stablehlo.shift_right_arithmetic", ""),
    ("stablehlo.shift_right_logical", ""),
    ("stablehlo.sign", ""),
    ("stablehlo.sine", "result_accuracy?"),
    ("stablehlo.slice", "limit_indices start_indices strides"),
    ("stablehlo.sort", "dimension? is_stable?"),
    ("stablehlo.sqrt", "result_accuracy?"),
    ("stablehlo.subtract", ""),
    ("stablehlo.tan", "result_accuracy?"),
    ("stablehlo.tanh", "result_accuracy?"),
    ("stablehlo.torch_index_select", "batch_dims dim"),
    ("stablehlo.transpose", "permutation"),
    ("stablehlo.triangular_solve", "left_side lower transpose_a unit_diagonal"),
    ("stablehlo.tuple", ""),
    ("stablehlo.unary_einsum", "einsum_config"),
    ("stablehlo.uniform_dequantize", ""),
    ("stablehlo.uniform_quantize", ""),
    ("stablehlo.while", ""),
    ("stablehlo.xor", ""),
];

/// The dimensions of a convolution, which VHLO has one by one.
macro_rules! convolution {
    ($padding:literal) => {
        concat!(
            "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions ",
            "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation ",
            "output_batch_dimension output_feature_dimension output_spatial_dimensions ",
            $padding,
            "precision_config rhs_dilation window_reversal window_strides"
        )
    };
}

/// The operations of VHLO that have properties, all of which are there. The number behind the name is the version of the operation.
const VERSIONED: &[Row] = &[
    ("all_gather_v1", "all_gather_dim channel_id replica_groups use_global_device_ids"),
    ("all_gather_v2", "all_gather_dim channel_id replica_groups use_global_device_ids"),
    ("all_reduce_v1", "channel_id replica_groups use_global_device_ids"),
    ("all_reduce_v2", "channel_id replica_groups use_global_device_ids"),
    ("all_to_all_v1", "channel_id concat_dimension replica_groups split_count split_dimension"),
    ("all_to_all_v2", "channel_id concat_dimension replica_groups split_count split_dimension"),
    ("batch_norm_grad_v1", "epsilon feature_index"),
    ("batch_norm_inference_v1", "epsilon feature_index"),
    ("batch_norm_training_v1", "epsilon feature_index"),
    ("broadcast_in_dim_v1", "broadcast_dimensions"),
    ("broadcast_v1", "broadcast_sizes"),
    ("call_v1", "callee"),
    ("cbrt_v2", "result_accuracy"),
    ("cholesky_v1", "lower"),
    ("collective_broadcast_v1", "channel_id replica_groups"),
    ("collective_broadcast_v2", "channel_id has_dynamic_root replica_groups"),
    ("collective_reduce_v1", "channel_id has_dynamic_root replica_groups use_global_device_ids"),
    ("collective_permute_v1", "channel_id source_target_pairs"),
    ("compare_v1", "compare_type comparison_direction"),
    ("composite_v1", "composite_attributes decomposition name version"),
    ("composite_v2", "composite_attributes decomposition name version"),
    ("concatenate_v1", "dimension"),
    ("constant_v1", "value"),
    ("convolution_v1", convolution!("padding ")),
    ("cosine_v2", "result_accuracy"),
    ("cross-replica-sum_v1", "replica_groups"),
    (
        "custom_call_v1",
        "api_version backend_config call_target_name called_computations has_side_effect operand_layouts output_operand_aliases result_layouts",
    ),
    (
        "custom_call_v2",
        "api_version backend_config call_target_name called_computations has_side_effect operand_layouts output_operand_aliases result_layouts result_tilings",
    ),
    (
        "dot_general_v1",
        "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions rhs_contracting_dimensions",
    ),
    (
        "dot_general_v2",
        "accumulation_type allow_imprecise_accumulation lhs_batching_dimensions lhs_component_count lhs_contracting_dimensions lhs_precision_type num_primitive_operations precision_config rhs_batching_dimensions rhs_component_count rhs_contracting_dimensions rhs_precision_type",
    ),
    ("dot_v1", "precision_config"),
    ("dynamic_broadcast_in_dim_v1", "broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions"),
    ("dynamic_conv_v1", convolution!("padding ")),
    ("dynamic_conv_v2", convolution!("")),
    ("dynamic_gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"),
    (
        "dynamic_gather_v2",
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims start_index_map start_indices_batching_dims",
    ),
    ("dynamic_iota_v1", "iota_dimension"),
    ("dynamic_slice_v1", "slice_sizes"),
    ("einsum_v1", "einsum_config"),
    ("exponential_minus_one_v2", "result_accuracy"),
    ("exponential_v2", "result_accuracy"),
    ("fft_v1", "fft_length fft_type"),
    ("func_v1", "arg_attrs function_type res_attrs sym_name sym_visibility"),
    ("gather_v1", "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims slice_sizes start_index_map"),
    (
        "gather_v2",
        "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims operand_batching_dims slice_sizes start_index_map start_indices_batching_dims",
    ),
    ("get_dimension_size_v1", "dimension"),
    ("get_tuple_element_v1", "index"),
    ("infeed_v1", "infeed_config layout"),
    ("iota_v1", "iota_dimension"),
    ("log_plus_one_v2", "result_accuracy"),
    ("logistic_v2", "result_accuracy"),
    ("log_v2", "result_accuracy"),
    ("map_v1", "dimensions"),
    ("outfeed_v1", "outfeed_config"),
    ("pad_v1", "edge_padding_high edge_padding_low interior_padding"),
    ("recv_v1", "channel_id channel_type is_host_transfer"),
    ("recv_v2", "channel_id channel_type is_host_transfer source_target_pairs"),
    ("reduce_v1", "dimensions"),
    ("reduce_precision_v1", "exponent_bits mantissa_bits"),
    ("reduce_scatter_v1", "channel_id replica_groups scatter_dimension use_global_device_ids"),
    ("reduce_window_v1", "base_dilations padding window_dilations window_dimensions window_strides"),
    ("reverse_v1", "dimensions"),
    ("rng_bit_generator_v1", "rng_algorithm"),
    ("rng_v1", "rng_distribution"),
    ("rsqrt_v2", "result_accuracy"),
    (
        "scatter_v1",
        "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices update_window_dims",
    ),
    (
        "scatter_v2",
        "index_vector_dim indices_are_sorted input_batching_dims inserted_window_dims scatter_dims_to_operand_dims scatter_indices_batching_dims unique_indices update_window_dims",
    ),
    ("select_and_scatter_v1", "padding window_dimensions window_strides"),
    ("send_v1", "channel_id channel_type is_host_transfer"),
    ("send_v2", "channel_id channel_type is_host_transfer source_target_pairs"),
    ("set_dimension_size_v1", "dimension"),
    ("sine_v2", "result_accuracy"),
    ("slice_v1", "limit_indices start_indices strides"),
    ("sort_v1", "dimension is_stable"),
    ("sqrt_v2", "result_accuracy"),
    ("tan_v2", "result_accuracy"),
    ("tanh_v2", "result_accuracy"),
    ("torch_index_select_v1", "batch_dims dim"),
    ("transpose_v1", "permutation"),
    ("triangular_solve_v1", "left_side lower transpose_a unit_diagonal"),
    ("unary_einsum_v1", "einsum_config"),
];

/// The operations of VHLO without properties that StableHLO has under the same name: in these versions.
const PLAIN: &str = "abs_v1 add_v1 after_all_v1 and_v1 async_done_v1 async_start_v1 atan2_v1 bitcast_convert_v1 case_v1 cbrt_v1 ceil_v1 clamp_v1 \
    complex_v1 convert_v1 cosine_v1 count_leading_zeros_v1 create_token_v1 divide_v1 dynamic_pad_v1 dynamic_reshape_v1 dynamic_update_slice_v1 \
    exponential_minus_one_v1 exponential_v1 floor_v1 if_v1 imag_v1 is_finite_v1 log_plus_one_v1 log_v1 logistic_v1 maximum_v1 minimum_v1 multiply_v1 \
    negate_v1 not_v1 optimization_barrier_v1 or_v1 partition_id_v1 popcnt_v1 power_v1 real_dynamic_slice_v1 real_v1 remainder_v1 replica_id_v1 \
    reshape_v1 return_v1 round_nearest_afz_v1 round_nearest_even_v1 rsqrt_v1 select_v1 shift_left_v1 shift_right_arithmetic_v1 shift_right_logical_v1 \
    sign_v1 sine_v1 sqrt_v1 subtract_v1 tan_v1 tanh_v1 tuple_v1 uniform_dequantize_v1 uniform_quantize_v1 while_v1 xor_v1";

/// What is known of an operation by its name in the file.
#[derive(Clone)]
pub(super) struct Layout {
    /// The name in the tree.
    pub(super) name: &'static str,
    /// Whether it is one of VHLO's, whose attributes become StableHLO's.
    pub(super) versioned: bool,
    /// For each version of the operation the names of its properties, and whether each may be absent.
    rows: Vec<Vec<(&'static str, bool)>>,
}

impl Layout {
    fn new(name: &'static str, versioned: bool, rows: &'static [Row]) -> Layout {
        let property = |name: &'static str| match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let rows = rows.iter().map(|(_, names)| names.split_whitespace().map(property).collect()).collect();
        Layout { name, versioned, rows }
    }

    /// The names of so many properties; nothing if no version of the operation has so many.
    pub(super) fn properties(&self, count: usize) -> Option<&[(&'static str, bool)]> {
        self.rows.iter().find(|row| row.len() == count).map(Vec::as_slice)
    }
}

/// What is known of an operation.
#[derive(Clone)]
pub(super) enum Found {
    /// All of it.
    Layout(Rc<Layout>),
    /// It is one of VHLO, which has none of this name and version.
    Newer,
    /// It is of a dialect of which nothing is known here.
    Foreign,
}

/// Looks an operation up.
pub(super) fn find(name: &str) -> Found {
    let Some(short) = name.strip_prefix("vhlo.") else {
        return match rows_of(NATIVE, name) {
            [] => Found::Foreign,
            rows => Found::Layout(Rc::new(Layout::new(rows[0].0, false, rows))),
        };
    };
    let rows = rows_of(VERSIONED, short);
    if rows.is_empty() && !PLAIN.split_whitespace().any(|n| n == short) {
        return Found::Newer;
    }
    let stem = short.rfind("_v").map_or(short, |at| &short[..at]);
    let native = match stem {
        "func" => "func.func".to_owned(),
        "call" => "func.call".to_owned(),
        stem => format!("stablehlo.{stem}"),
    };
    match rows_of(NATIVE, &native) {
        [] => Found::Newer,
        native => Found::Layout(Rc::new(Layout::new(native[0].0, true, rows))),
    }
}

/// The rows of a name, which stand together.
fn rows_of(table: &'static [Row], name: &str) -> &'static [Row] {
    let start = table.iter().position(|row| row.0 == name).unwrap_or(table.len());
    let length = table[start..].iter().take_while(|row| row.0 == name).count();
    &table[start..start + length]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_stand_in_the_order_of_their_names() {
        for (name, properties) in NATIVE.iter().chain(VERSIONED) {
            let names: Vec<&str> = properties.split_whitespace().map(|n| n.trim_end_matches('?')).collect();
            assert!(names.is_sorted(), "{name}");
        }
    }

    #[test]
    fn every_versioned_operation_is_one_of_stablehlo() {
        for name in VERSIONED.iter().map(|r| r.0).chain(PLAIN.split_whitespace()) {
            assert!(matches!(find(&format!("vhlo.{name}")), Found::Layout(_)), "{name}");
        }
        assert!(matches!(find("vhlo.add_v99"), Found::Newer));
        assert!(matches!(find("arith.addf"), Found::Foreign));
    }
}
