module @kinds attributes {mhlo.note = "all kinds", mhlo.weights = [1 : i32, -2, 5.000000e-01 : f32, true, unit, @main]} {
  func.func private @elsewhere(tensor<2xi8>) -> tensor<2xi8>
  func.func public @main(%arg0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<2x3xf32> {
    %c = stablehlo.constant dense<[true, false, true, true, false, false, true, false, true]> : tensor<9xi1>
    %c_0 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %c_1 = stablehlo.constant dense<true> : tensor<3x5xi1>
    %c_2 = stablehlo.constant dense<false> : tensor<i1>
    %c_3 = stablehlo.constant dense<[-8, 7, -1]> : tensor<3xi4>
    %c_4 = stablehlo.constant dense<[0, 15, 8]> : tensor<3xui4>
    %c_5 = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi16>
    %c_6 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>
    %cst = stablehlo.constant dense<[1.500000e+00, -0.000000e+00, 0x7FC0]> : tensor<3xbf16>
    %cst_7 = stablehlo.constant dense<[(1.000000e+00,-2.000000e+00), (5.000000e-01,0.000000e+00)]> : tensor<2xcomplex<f32>>
    %cst_8 = stablehlo.constant dense<> : tensor<0x3xf64>
    %cst_9 = stablehlo.constant dense<[5.000000e-01, 4.480000e+02]> : tensor<2xf8E4M3FN>
    %0 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:3>>
    %1 = stablehlo.uniform_quantize %arg0 : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<u8:f32:1, {1.000000e-01:1,2.000000e-01:2,3.000000e-01:3}>>
    %2 = stablehlo.custom_call @away(%arg0) {api_version = 2 : i32, backend_config = "x", called_computations = [@elsewhere], operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %4 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    stablehlo.custom_call @keep(%c, %c_0, %c_1, %c_2, %c_3, %c_4, %c_5, %c_6, %cst, %cst_7, %cst_8, %cst_9, %0, %1) {has_side_effect = true} : (tensor<9xi1>, tensor<2xi1>, tensor<3x5xi1>, tensor<i1>, tensor<3xi4>, tensor<3xui4>, tensor<2x2xi16>, tensor<ui64>, tensor<3xbf16>, tensor<2xcomplex<f32>>, tensor<0x3xf64>, tensor<2xf8E4M3FN>, tensor<2x3x!quant.uniform<i8<-127:127>:f32, 5.000000e-01:3>>, tensor<2x3x!quant.uniform<u8:f32:1, {1.000000e-01:1,2.000000e-01:2,3.000000e-01:3}>>) -> ()
    return %3 : tensor<2x3xf32>
  }
}
