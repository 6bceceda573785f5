module @jit_loss attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<4xf32>, %arg2: tensor<4x2xf32>, %arg3: tensor<5x3xf32>, %arg4: tensor<5x2xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<3x4xf32> {jax.result_info = "result[1][0]"}, tensor<4xf32> {jax.result_info = "result[1][1]"}, tensor<4x2xf32> {jax.result_info = "result[1][2]"}) {
    %cst = stablehlo.constant dense<1.000000e+01> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_1 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %0 = stablehlo.dot_general %arg3, %arg0, contracting_dims = [1] x [0] : (tensor<5x3xf32>, tensor<3x4xf32>) -> tensor<5x4xf32>
    %1 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<1x4xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<5x4xf32>
    %3 = stablehlo.add %0, %2 : tensor<5x4xf32>
    %4 = stablehlo.tanh %3 : tensor<5x4xf32>
    %5 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<5x4xf32>
    %6 = stablehlo.subtract %5, %4 : tensor<5x4xf32>
    %7 = stablehlo.dot_general %4, %arg2, contracting_dims = [1] x [0] : (tensor<5x4xf32>, tensor<4x2xf32>) -> tensor<5x2xf32>
    %8 = stablehlo.subtract %7, %arg4 : tensor<5x2xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<5x2xf32>
    %10 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %11 = stablehlo.multiply %10, %8 : tensor<5x2xf32>
    %12 = stablehlo.reduce(%9 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<5x2xf32>, tensor<f32>) -> tensor<f32>
    %13 = stablehlo.divide %12, %cst : tensor<f32>
    %14 = stablehlo.divide %cst_2, %cst : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<5x2xf32>
    %16 = stablehlo.multiply %15, %11 : tensor<5x2xf32>
    %17 = stablehlo.dot_general %16, %4, contracting_dims = [0] x [0] : (tensor<5x2xf32>, tensor<5x4xf32>) -> tensor<2x4xf32>
    %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %19 = stablehlo.dot_general %16, %arg2, contracting_dims = [1] x [1] : (tensor<5x2xf32>, tensor<4x2xf32>) -> tensor<5x4xf32>
    %20 = stablehlo.multiply %19, %6 : tensor<5x4xf32>
    %21 = stablehlo.multiply %20, %4 : tensor<5x4xf32>
    %22 = stablehlo.add %20, %21 : tensor<5x4xf32>
    %23 = stablehlo.reduce(%22 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<5x4xf32>, tensor<f32>) -> tensor<4xf32>
    %24 = stablehlo.reshape %23 : (tensor<4xf32>) -> tensor<1x4xf32>
    %25 = stablehlo.reduce(%24 init: %cst_0) applies stablehlo.add across dimensions = [0] : (tensor<1x4xf32>, tensor<f32>) -> tensor<4xf32>
    %26 = stablehlo.dot_general %22, %arg3, contracting_dims = [0] x [0] : (tensor<5x4xf32>, tensor<5x3xf32>) -> tensor<4x3xf32>
    %27 = stablehlo.transpose %26, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    return %13, %27, %25, %18 : tensor<f32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4x2xf32>
  }
}
