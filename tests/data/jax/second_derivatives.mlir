module @jit_second_derivatives attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"Y"}]>}) -> (tensor<16x8x8xf32> {jax.result_info = "result[0]"}, tensor<8x8xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %1 = stablehlo.sine %0 : tensor<16x8xf32>
    %2 = stablehlo.cosine %0 : tensor<16x8xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %4 = stablehlo.multiply %3, %1 : tensor<16x8xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0, 1] : (tensor<1x8xf32>) -> tensor<16x8xf32>
    %8 = stablehlo.multiply %7, %4 : tensor<16x8xf32>
    %9 = stablehlo.multiply %8, %2 : tensor<16x8xf32>
    %10 = stablehlo.dot_general %9, %arg0, batching_dims = [0] x [0], contracting_dims = [] x [], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8x8xf32>
    %11 = stablehlo.transpose %10, dims = [0, 2, 1] : (tensor<16x8x8xf32>) -> tensor<16x8x8xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    %13 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %14 = stablehlo.dot_general %arg0, %12, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %15 = stablehlo.sine %13 : tensor<16x8xf32>
    %16 = stablehlo.cosine %13 : tensor<16x8xf32>
    %17 = stablehlo.multiply %14, %16 : tensor<16x8xf32>
    %18 = stablehlo.cosine %13 : tensor<16x8xf32>
    %19 = stablehlo.sine %13 : tensor<16x8xf32>
    %20 = stablehlo.multiply %14, %19 : tensor<16x8xf32>
    %21 = stablehlo.negate %20 : tensor<16x8xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %23 = stablehlo.multiply %22, %15 : tensor<16x8xf32>
    %cst_3 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %24 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x8xf32>
    %25 = stablehlo.multiply %24, %17 : tensor<16x8xf32>
    %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %26 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %27 = stablehlo.broadcast_in_dim %26, dims = [0] : (tensor<16xf32>) -> tensor<16x8xf32>
    %28 = stablehlo.multiply %27, %23 : tensor<16x8xf32>
    %29 = stablehlo.multiply %27, %25 : tensor<16x8xf32>
    %30 = stablehlo.multiply %29, %18 : tensor<16x8xf32>
    %31 = stablehlo.multiply %28, %21 : tensor<16x8xf32>
    %32 = stablehlo.add %30, %31 : tensor<16x8xf32>
    %33 = stablehlo.dot_general %32, %arg0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %34 = stablehlo.transpose %33, dims = [1, 0] : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %11, %34 : tensor<16x8x8xf32>, tensor<8x8xf32>
  }
}
