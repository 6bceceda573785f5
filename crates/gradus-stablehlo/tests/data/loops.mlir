module @jit_f attributes {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<6x4xf32>, %arg1: tensor<i32>) -> (tensor<6xf32> {jax.result_info = "result[0]"}, tensor<6x4xf32> {jax.result_info = "result[1]"}, tensor<4x4xf32> {jax.result_info = "result[2]"}, tensor<6x2xf32> {jax.result_info = "result[3]"}, tensor<1x2x3x4xf32> {jax.result_info = "result[4]"}, tensor<3xcomplex<f32>> {jax.result_info = "result[5]"}, tensor<6x4xf32> {jax.result_info = "result[6]"}) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %c_1 = stablehlo.constant dense<3> : tensor<i32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %c_3 = stablehlo.constant dense<false> : tensor<i1>
    %cst_4 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c_6 = stablehlo.constant dense<1> : tensor<i32>
    %c_7 = stablehlo.constant dense<6> : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %cst_9 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.slice %arg0 [0:1, 0:4] : (tensor<6x4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
    %2 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<6xf32>
    %3:4 = stablehlo.while(%iterArg = %arg0, %iterArg_10 = %c_8, %iterArg_11 = %1, %iterArg_12 = %2) : tensor<6x4xf32>, tensor<i32>, tensor<4xf32>, tensor<6xf32>
    cond {
      %40 = stablehlo.compare LT, %iterArg_10, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %40 : tensor<i1>
    } do {
      %40 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_10) : (tensor<6x4xf32>, tensor<i32>) -> tensor<4xf32>
      %41:2 = func.call @closed_call(%iterArg_11, %40) : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>)
      %42 = func.call @dynamic_update_index_in_dim(%iterArg_12, %41#1, %iterArg_10) : (tensor<6xf32>, tensor<f32>, tensor<i32>) -> tensor<6xf32>
      %43 = stablehlo.add %iterArg_10, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %43, %41#0, %42 : tensor<6x4xf32>, tensor<i32>, tensor<4xf32>, tensor<6xf32>
    }
    %4:3 = stablehlo.while(%iterArg = %arg1, %iterArg_10 = %c_8, %iterArg_11 = %cst_5) : tensor<i32>, tensor<i32>, tensor<f32>
    cond {
      %40 = stablehlo.convert %iterArg_10 : tensor<i32>
      %41 = stablehlo.compare LT, %40, %iterArg, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %42 = stablehlo.compare GT, %iterArg_11, %cst_4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %43 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i1>) -> tensor<i1>
      %44 = stablehlo.compare NE, %42, %43, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %45 = stablehlo.convert %44 : tensor<i1>
      %46 = stablehlo.and %41, %45 : tensor<i1>
      stablehlo.return %46 : tensor<i1>
    } do {
      %40 = stablehlo.add %iterArg_10, %c_6 : tensor<i32>
      %41 = stablehlo.divide %iterArg_11, %cst_2 : tensor<f32>
      stablehlo.return %iterArg, %40, %41 : tensor<i32>, tensor<i32>, tensor<f32>
    }
    %5 = call @remainder(%4#1, %c_1) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %6 = stablehlo.convert %5 : tensor<i32>
    %7 = stablehlo.clamp %c_8, %6, %c : tensor<i32>
    %8 = "stablehlo.case"(%7) ({
      %40 = stablehlo.sine %3#2 : tensor<4xf32>
      stablehlo.return %40 : tensor<4xf32>
    }, {
      %40 = stablehlo.cosine %3#2 : tensor<4xf32>
      stablehlo.return %40 : tensor<4xf32>
    }, {
      %40 = stablehlo.reverse %3#2, dims = [0] : tensor<4xf32>
      stablehlo.return %40 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %9 = stablehlo.iota dim = 0 : tensor<4xi32>
    %10:2 = "stablehlo.sort"(%8, %9) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>, %arg4: tensor<i32>, %arg5: tensor<i32>):
      %40 = stablehlo.compare EQ, %arg2, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %41 = stablehlo.select %40, %cst_9, %arg2 : tensor<i1>, tensor<f32>
      %42 = stablehlo.compare NE, %arg2, %arg2, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %43 = stablehlo.select %42, %cst_0, %41 : tensor<i1>, tensor<f32>
      %44 = stablehlo.compare EQ, %arg3, %cst_9, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %45 = stablehlo.select %44, %cst_9, %arg3 : tensor<i1>, tensor<f32>
      %46 = stablehlo.compare NE, %arg3, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %47 = stablehlo.select %46, %cst_0, %45 : tensor<i1>, tensor<f32>
      %48 = stablehlo.compare LT, %43, %47, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %48 : tensor<i1>
    }) : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %12 = "stablehlo.reduce_window"(%arg0, %11) <{padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %40 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x2xf32>
    %13 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<6x4xf32>) -> tensor<1x1x6x4xf32>
    %14 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<2x1x3x3xf32>
    %15 = stablehlo.convolution(%13, %14) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[0, 1], [2, 2]], rhs_dilate = [1, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x6x4xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x3x4xf32>
    %16 = call @fft(%10#0) : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
    %17 = stablehlo.slice %10#1 [0:2] : (tensor<4xi32>) -> tensor<2xi32>
    %18 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %19 = stablehlo.compare LT, %17, %18, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %20 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %21 = stablehlo.add %17, %20 : tensor<2xi32>
    %22 = stablehlo.select %19, %21, %17 : tensor<2xi1>, tensor<2xi32>
    %23 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %24 = stablehlo.convert %23 : tensor<2xi32>
    %25 = stablehlo.broadcast_in_dim %22, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %26 = stablehlo.broadcast_in_dim %24, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %27 = stablehlo.concatenate %25, %26, dim = 1 : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x2xi32>
    %28 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %29 = "stablehlo.scatter"(%arg0, %27, %28) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %40 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<6x4xf32>, tensor<2x2xi32>, tensor<2xf32>) -> tensor<6x4xf32>
    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %31 = stablehlo.compare LT, %10#1, %30, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
    %32 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %33 = stablehlo.add %10#1, %32 : tensor<4xi32>
    %34 = stablehlo.select %31, %33, %10#1 : tensor<4xi1>, tensor<4xi32>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
    %36 = "stablehlo.gather"(%arg0, %35) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<4x1xi32>) -> tensor<4x4xf32>
    %37 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %38 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %39 = stablehlo.clamp %37, %arg0, %38 : tensor<6x4xf32>
    return %3#3, %29, %36, %12, %15, %16, %39 : tensor<6xf32>, tensor<6x4xf32>, tensor<4x4xf32>, tensor<6x2xf32>, tensor<1x2x3x4xf32>, tensor<3xcomplex<f32>>, tensor<6x4xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<6x4xf32>, %arg1: tensor<i32>) -> tensor<4xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 4] : (tensor<6x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @closed_call(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %cst_0 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<4xf32>
    %2 = stablehlo.add %1, %arg1 : tensor<4xf32>
    %3 = stablehlo.reduce(%arg0 init: %cst) applies stablehlo.maximum across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    return %2, %3 : tensor<4xf32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<6xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<6xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<6xf32>, tensor<1xf32>, tensor<i32>) -> tensor<6xf32>
    return %1 : tensor<6xf32>
  }
  func.func private @remainder(%arg0: tensor<i32>, %arg1: tensor<i32>) -> tensor<i32> {
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.compare EQ, %arg1, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %1 = call @_where(%0, %c, %arg1) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<i32>
    %3 = stablehlo.compare NE, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.compare LT, %2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.compare LT, %1, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %6 = stablehlo.compare NE, %4, %5, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %7 = stablehlo.and %6, %3 : tensor<i1>
    %8 = stablehlo.add %2, %1 : tensor<i32>
    %9 = stablehlo.select %7, %8, %2 : tensor<i1>, tensor<i32>
    return %9 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @fft(%arg0: tensor<4xf32>) -> tensor<3xcomplex<f32>> {
    %0 = stablehlo.fft %arg0, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>
    return %0 : tensor<3xcomplex<f32>>
  }
}
