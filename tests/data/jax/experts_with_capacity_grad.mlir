module @jit_experts_with_capacity_grad attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg1: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<8x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}, {}]>}, %arg3: tensor<8x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}, {}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<16x8xf32> {jax.result_info = "result[1][0]"}, tensor<8x16x32xf32> {jax.result_info = "result[1][1]"}, tensor<8x32x16xf32> {jax.result_info = "result[1][2]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x16xf32>, tensor<16x8xf32>) -> tensor<64x8xf32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.maximum across dimensions = [1] : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
    %cst_0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<64xf32>
    %3 = stablehlo.maximum %2, %1 : tensor<64xf32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<64xf32>) -> tensor<64x1xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x8xf32>
    %6 = stablehlo.subtract %0, %5 : tensor<64x8xf32>
    %7 = stablehlo.exponential %6 : tensor<64x8xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [1] : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0] : (tensor<64xf32>) -> tensor<64x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x8xf32>
    %11 = stablehlo.divide %7, %10 : tensor<64x8xf32>
    %12 = stablehlo.multiply %9, %9 : tensor<64x1xf32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<64x1xf32>
    %14 = stablehlo.divide %13, %12 : tensor<64x1xf32>
    %values, %indices = chlo.top_k(%11, k = 2) : tensor<64x8xf32> -> (tensor<64x2xf32>, tensor<64x2xi32>)
    %15 = stablehlo.reshape %indices : (tensor<64x2xi32>) -> tensor<64x2x1xi32>
    %16 = call @_one_hot(%indices) : (tensor<64x2xi32>) -> tensor<64x2x8xf32>
    %17 = stablehlo.reshape %16 : (tensor<64x2x8xf32>) -> tensor<128x8xf32>
    %18 = call @cumsum(%17) : (tensor<128x8xf32>) -> tensor<128x8xf32>
    %19 = stablehlo.multiply %18, %17 : tensor<128x8xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<128x8xf32>
    %21 = stablehlo.subtract %19, %20 : tensor<128x8xf32>
    %22 = stablehlo.convert %21 : (tensor<128x8xf32>) -> tensor<128x8xi32>
    %23 = call @_one_hot_1(%22) : (tensor<128x8xi32>) -> tensor<128x8x20xf32>
    %24 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<128x8xf32>) -> tensor<128x8x1xf32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [0, 1, 2] : (tensor<128x8x1xf32>) -> tensor<128x8x20xf32>
    %26 = stablehlo.multiply %23, %25 : tensor<128x8x20xf32>
    %27 = stablehlo.reshape %26 : (tensor<128x8x20xf32>) -> tensor<64x2x8x20xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %28 = stablehlo.reduce(%27 init: %cst_4) applies stablehlo.add across dimensions = [1] : (tensor<64x2x8x20xf32>, tensor<f32>) -> tensor<64x8x20xf32>
    %29 = stablehlo.dot_general %28, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x8x20xf32>, tensor<64x16xf32>) -> tensor<8x20x16xf32>
    %30 = stablehlo.dot_general %29, %arg2, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x20x16xf32>, tensor<8x16x32xf32>) -> tensor<8x20x32xf32>
    %31:3 = call @silu(%30) : (tensor<8x20x32xf32>) -> (tensor<8x20x32xf32>, tensor<8x20x32xf32>, tensor<8x20x32xf32>)
    %32 = stablehlo.dot_general %31#0, %arg3, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x20x32xf32>, tensor<8x32x16xf32>) -> tensor<8x20x16xf32>
    %33 = stablehlo.dot_general %27, %values, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<64x2x8x20xf32>, tensor<64x2xf32>) -> tensor<64x8x20xf32>
    %34 = stablehlo.dot_general %33, %32, contracting_dims = [2, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<64x8x20xf32>, tensor<8x20x16xf32>) -> tensor<64x16xf32>
    %35 = stablehlo.subtract %34, %arg0 : tensor<64x16xf32>
    %36 = chlo.square %35 : tensor<64x16xf32> -> tensor<64x16xf32>
    %cst_5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %38 = stablehlo.multiply %37, %35 : tensor<64x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %39 = stablehlo.reduce(%36 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %cst_7 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %40 = stablehlo.divide %39, %cst_7 : tensor<f32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_9 = stablehlo.constant dense<1.024000e+03> : tensor<f32>
    %41 = stablehlo.divide %cst_8, %cst_9 : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %43 = stablehlo.multiply %42, %38 : tensor<64x16xf32>
    %44 = stablehlo.dot_general %43, %33, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x16xf32>, tensor<64x8x20xf32>) -> tensor<16x8x20xf32>
    %45 = stablehlo.transpose %44, dims = [1, 2, 0] : (tensor<16x8x20xf32>) -> tensor<8x20x16xf32>
    %46 = stablehlo.dot_general %43, %32, contracting_dims = [1] x [2], precision = [DEFAULT, DEFAULT] : (tensor<64x16xf32>, tensor<8x20x16xf32>) -> tensor<64x8x20xf32>
    %47 = stablehlo.dot_general %46, %27, batching_dims = [0] x [0], contracting_dims = [1, 2] x [2, 3], precision = [DEFAULT, DEFAULT] : (tensor<64x8x20xf32>, tensor<64x2x8x20xf32>) -> tensor<64x2xf32>
    %48 = stablehlo.dot_general %45, %31#0, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x20x16xf32>, tensor<8x20x32xf32>) -> tensor<8x16x32xf32>
    %49 = stablehlo.transpose %48, dims = [0, 2, 1] : (tensor<8x16x32xf32>) -> tensor<8x32x16xf32>
    %50 = stablehlo.dot_general %45, %arg3, batching_dims = [0] x [0], contracting_dims = [2] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x20x16xf32>, tensor<8x32x16xf32>) -> tensor<8x20x32xf32>
    %51 = call @silu_2(%31#1, %31#2, %30, %50) : (tensor<8x20x32xf32>, tensor<8x20x32xf32>, tensor<8x20x32xf32>, tensor<8x20x32xf32>) -> tensor<8x20x32xf32>
    %52 = stablehlo.dot_general %51, %29, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x20x32xf32>, tensor<8x20x16xf32>) -> tensor<8x32x16xf32>
    %53 = stablehlo.transpose %52, dims = [0, 2, 1] : (tensor<8x32x16xf32>) -> tensor<8x16x32xf32>
    %cst_10 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %54 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<64x8xf32>
    %55 = "stablehlo.scatter"(%54, %15, %47) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %70 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %70 : tensor<f32>
    }) : (tensor<64x8xf32>, tensor<64x2x1xi32>, tensor<64x2xf32>) -> tensor<64x8xf32>
    %56 = stablehlo.broadcast_in_dim %14, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x8xf32>
    %57 = stablehlo.multiply %55, %56 : tensor<64x8xf32>
    %58 = stablehlo.multiply %57, %7 : tensor<64x8xf32>
    %cst_11 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %59 = stablehlo.reduce(%58 init: %cst_11) applies stablehlo.add across dimensions = [1] : (tensor<64x8xf32>, tensor<f32>) -> tensor<64xf32>
    %60 = stablehlo.reshape %59 : (tensor<64xf32>) -> tensor<64x1xf32>
    %61 = stablehlo.negate %60 : tensor<64x1xf32>
    %62 = stablehlo.broadcast_in_dim %9, dims = [0, 1] : (tensor<64x1xf32>) -> tensor<64x8xf32>
    %63 = stablehlo.divide %55, %62 : tensor<64x8xf32>
    %cst_12 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %64 = stablehlo.reduce(%61 init: %cst_12) applies stablehlo.add across dimensions = [1] : (tensor<64x1xf32>, tensor<f32>) -> tensor<64xf32>
    %65 = stablehlo.broadcast_in_dim %64, dims = [0] : (tensor<64xf32>) -> tensor<64x8xf32>
    %66 = stablehlo.add %63, %65 : tensor<64x8xf32>
    %67 = stablehlo.multiply %66, %7 : tensor<64x8xf32>
    %68 = stablehlo.dot_general %67, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<64x8xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
    %69 = stablehlo.transpose %68, dims = [1, 0] : (tensor<8x16xf32>) -> tensor<16x8xf32>
    return %40, %69, %53, %49 : tensor<f32>, tensor<16x8xf32>, tensor<8x16x32xf32>, tensor<8x32x16xf32>
  }
  func.func private @_one_hot(%arg0: tensor<64x2xi32>) -> tensor<64x2x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<64x2xi32>) -> tensor<64x2x1xi32>
    %1 = stablehlo.iota dim = 2 : tensor<1x1x8xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<64x2x1xi32>) -> tensor<64x2x8xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x1x8xi32>) -> tensor<64x2x8xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<64x2x8xi32>, tensor<64x2x8xi32>) -> tensor<64x2x8xi1>
    %5 = stablehlo.convert %4 : (tensor<64x2x8xi1>) -> tensor<64x2x8xf32>
    return %5 : tensor<64x2x8xf32>
  }
  func.func private @cumsum(%arg0: tensor<128x8xf32>) -> tensor<128x8xf32> {
    %0 = call @cumsum_0(%arg0) : (tensor<128x8xf32>) -> tensor<128x8xf32>
    return %0 : tensor<128x8xf32>
  }
  func.func private @cumsum_0(%arg0: tensor<128x8xf32>) -> tensor<128x8xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[127, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 128, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<128x8xf32>, tensor<f32>) -> tensor<128x8xf32>
    return %1 : tensor<128x8xf32>
  }
  func.func private @_one_hot_1(%arg0: tensor<128x8xi32>) -> tensor<128x8x20xf32> {
    %0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<128x8xi32>) -> tensor<128x8x1xi32>
    %1 = stablehlo.iota dim = 2 : tensor<1x1x20xi32>
    %2 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<128x8x1xi32>) -> tensor<128x8x20xi32>
    %3 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x1x20xi32>) -> tensor<128x8x20xi32>
    %4 = stablehlo.compare EQ, %2, %3, SIGNED : (tensor<128x8x20xi32>, tensor<128x8x20xi32>) -> tensor<128x8x20xi1>
    %5 = stablehlo.convert %4 : (tensor<128x8x20xi1>) -> tensor<128x8x20xf32>
    return %5 : tensor<128x8x20xf32>
  }
  func.func private @silu(%arg0: tensor<8x20x32xf32>) -> (tensor<8x20x32xf32>, tensor<8x20x32xf32>, tensor<8x20x32xf32>) {
    %0 = stablehlo.negate %arg0 : tensor<8x20x32xf32>
    %1 = stablehlo.exponential %0 : tensor<8x20x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x20x32xf32>
    %3 = stablehlo.add %2, %1 : tensor<8x20x32xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x20x32xf32>
    %5 = stablehlo.divide %4, %3 : tensor<8x20x32xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x20x32xf32>
    %7 = stablehlo.subtract %6, %5 : tensor<8x20x32xf32>
    %8 = stablehlo.multiply %5, %7 : tensor<8x20x32xf32>
    %9 = stablehlo.multiply %arg0, %5 : tensor<8x20x32xf32>
    return %9, %8, %5 : tensor<8x20x32xf32>, tensor<8x20x32xf32>, tensor<8x20x32xf32>
  }
  func.func private @silu_2(%arg0: tensor<8x20x32xf32>, %arg1: tensor<8x20x32xf32>, %arg2: tensor<8x20x32xf32>, %arg3: tensor<8x20x32xf32>) -> tensor<8x20x32xf32> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<8x20x32xf32>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<8x20x32xf32>
    %2 = stablehlo.multiply %0, %arg0 : tensor<8x20x32xf32>
    %3 = stablehlo.add %1, %2 : tensor<8x20x32xf32>
    return %3 : tensor<8x20x32xf32>
  }
}
