module @jit_decode_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}, {}]>}, %arg1: tensor<8x32x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}, {"Y"}, {}]>}, %arg2: tensor<8x32x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}, {"Y"}, {}]>}, %arg3: tensor<8x4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}, {}]>}, %arg4: tensor<i32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<8x4x16xf32> {jax.result_info = "result[0]"}, tensor<8x32x4x16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.broadcast_in_dim %arg3, dims = [0, 2, 3] : (tensor<8x4x16xf32>) -> tensor<8x1x4x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare LT, %arg4, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<32> : tensor<i32>
    %2 = stablehlo.add %arg4, %c_0 : tensor<i32>
    %3 = stablehlo.select %1, %2, %arg4 : tensor<i1>, tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %4 = stablehlo.dynamic_update_slice %arg1, %0, %c_1, %3, %c_2, %c_3 : (tensor<8x32x4x16xf32>, tensor<8x1x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x32x4x16xf32>
    %5 = stablehlo.broadcast_in_dim %arg3, dims = [0, 2, 3] : (tensor<8x4x16xf32>) -> tensor<8x1x4x16xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x1x4x16xf32>
    %7 = stablehlo.multiply %5, %6 : tensor<8x1x4x16xf32>
    %c_4 = stablehlo.constant dense<0> : tensor<i32>
    %8 = stablehlo.compare LT, %arg4, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_5 = stablehlo.constant dense<32> : tensor<i32>
    %9 = stablehlo.add %arg4, %c_5 : tensor<i32>
    %10 = stablehlo.select %8, %9, %arg4 : tensor<i1>, tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.dynamic_update_slice %arg2, %7, %c_6, %10, %c_7, %c_8 : (tensor<8x32x4x16xf32>, tensor<8x1x4x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<8x32x4x16xf32>
    %12 = stablehlo.dot_general %arg0, %4, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x4x16xf32>, tensor<8x32x4x16xf32>) -> tensor<8x4x32xf32>
    %cst_9 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<8x4x32xf32>
    %14 = stablehlo.divide %12, %13 : tensor<8x4x32xf32>
    %15 = stablehlo.iota dim = 0 : tensor<32xi32>
    %16 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<i32>) -> tensor<32xi32>
    %17 = stablehlo.compare LE, %15, %16, SIGNED : (tensor<32xi32>, tensor<32xi32>) -> tensor<32xi1>
    %cst_10 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %18 = call @_where(%17, %14, %cst_10) : (tensor<32xi1>, tensor<8x4x32xf32>, tensor<f32>) -> tensor<8x4x32xf32>
    %cst_11 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %19 = stablehlo.reduce(%18 init: %cst_11) applies stablehlo.maximum across dimensions = [2] : (tensor<8x4x32xf32>, tensor<f32>) -> tensor<8x4xf32>
    %cst_12 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %21 = stablehlo.maximum %20, %19 : tensor<8x4xf32>
    %22 = stablehlo.broadcast_in_dim %21, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
    %23 = stablehlo.broadcast_in_dim %22, dims = [0, 1, 2] : (tensor<8x4x1xf32>) -> tensor<8x4x32xf32>
    %24 = stablehlo.subtract %18, %23 : tensor<8x4x32xf32>
    %25 = stablehlo.exponential %24 : tensor<8x4x32xf32>
    %cst_13 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %26 = stablehlo.reduce(%25 init: %cst_13) applies stablehlo.add across dimensions = [2] : (tensor<8x4x32xf32>, tensor<f32>) -> tensor<8x4xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
    %28 = stablehlo.broadcast_in_dim %27, dims = [0, 1, 2] : (tensor<8x4x1xf32>) -> tensor<8x4x32xf32>
    %29 = stablehlo.divide %25, %28 : tensor<8x4x32xf32>
    %30 = stablehlo.dot_general %29, %11, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x4x32xf32>, tensor<8x32x4x16xf32>) -> tensor<8x4x16xf32>
    return %30, %4 : tensor<8x4x16xf32>, tensor<8x32x4x16xf32>
  }
  func.func private @_where(%arg0: tensor<32xi1>, %arg1: tensor<8x4x32xf32>, %arg2: tensor<f32>) -> tensor<8x4x32xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2] : (tensor<32xi1>) -> tensor<8x4x32xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8x4x32xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<8x4x32xi1>, tensor<8x4x32xf32>
    return %3 : tensor<8x4x32xf32>
  }
}
