module @jit_depthwise_convolution_grad attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}, {}]>}, %arg1: tensor<4x1x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) -> (tensor<8x16x16xf32> {jax.result_info = "result[0]"}, tensor<4x1x16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[3, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16x16xf32>, tensor<4x1x16xf32>) -> tensor<8x16x16xf32>
    %1 = stablehlo.tanh %0 : tensor<8x16x16xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x16x16xf32>
    %3 = stablehlo.add %2, %1 : tensor<8x16x16xf32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x16x16xf32>
    %5 = stablehlo.subtract %4, %1 : tensor<8x16x16xf32>
    %6 = stablehlo.multiply %3, %5 : tensor<8x16x16xf32>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %7 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x16x16xf32>
    %8 = stablehlo.multiply %7, %6 : tensor<8x16x16xf32>
    %9 = stablehlo.convolution(%arg0, %8) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {stride = [1], pad = [[3, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 16 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16x16xf32>, tensor<8x16x16xf32>) -> tensor<4x1x16xf32>
    %10 = stablehlo.reshape %arg1 : (tensor<4x1x16xf32>) -> tensor<4x1x16x1xf32>
    %11 = stablehlo.transpose %10, dims = [0, 2, 1, 3] : (tensor<4x1x16x1xf32>) -> tensor<4x16x1x1xf32>
    %12 = stablehlo.reshape %11 : (tensor<4x16x1x1xf32>) -> tensor<4x16x1xf32>
    %13 = stablehlo.reverse %12, dims = [0] : tensor<4x16x1xf32>
    %14 = stablehlo.convolution(%8, %13) dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f], window = {stride = [1], pad = [[0, 3]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<8x16x16xf32>, tensor<4x16x1xf32>) -> tensor<8x16x16xf32>
    return %14, %9 : tensor<8x16x16xf32>, tensor<4x1x16xf32>
  }
}
