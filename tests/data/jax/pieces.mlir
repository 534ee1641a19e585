module @jit_pieces attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg1: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> (tensor<16x32xf32> {jax.result_info = "result[0]"}, tensor<19x35xf32> {jax.result_info = "result[1]"}, tensor<16x32xf32> {jax.result_info = "result[2]"}, tensor<32x32xf32> {jax.result_info = "result[3]"}, tensor<16x32xf32> {jax.result_info = "result[4]"}, tensor<2x4x16x4xf32> {jax.result_info = "result[5]"}, tensor<16x32xf32> {jax.result_info = "result[6]"}, tensor<16x32xf32> {jax.result_info = "result[7]"}, tensor<16x31xf32> {jax.result_info = "result[8]"}) {
    %0 = stablehlo.slice %arg0 [0:16:2, 0:32] : (tensor<16x32xf32>) -> tensor<8x32xf32>
    %1 = stablehlo.concatenate %arg0, %arg1, %0, dim = 0 : (tensor<16x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<32x32xf32>
    %2 = call @_roll_static(%arg0) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %3 = call @_pad(%arg0, %c) : (tensor<16x32xf32>, tensor<i32>) -> tensor<19x35xf32>
    %4 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<16x32xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
    %6 = stablehlo.add %arg1, %5 : tensor<8x32xf32>
    %7 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<8x32xf32>) -> tensor<8x1x32xf32>
    %8 = stablehlo.broadcast_in_dim %6, dims = [0, 2] : (tensor<8x32xf32>) -> tensor<8x1x32xf32>
    %9 = stablehlo.concatenate %7, %8, dim = 1 : (tensor<8x1x32xf32>, tensor<8x1x32xf32>) -> tensor<8x2x32xf32>
    %10 = stablehlo.reshape %9 : (tensor<8x2x32xf32>) -> tensor<16x32xf32>
    %11 = stablehlo.reshape %arg0 : (tensor<16x32xf32>) -> tensor<4x4x2x16xf32>
    %12 = stablehlo.transpose %11, dims = [2, 0, 3, 1] : (tensor<4x4x2x16xf32>) -> tensor<2x4x16x4xf32>
    %13 = call @tril(%arg0) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %14 = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<8x32xf32>) -> tensor<8x2x32xf32>
    %15 = stablehlo.reshape %14 : (tensor<8x2x32xf32>) -> tensor<16x32xf32>
    %16 = call @diff(%arg0) : (tensor<16x32xf32>) -> tensor<16x31xf32>
    return %2, %3, %4, %1, %10, %12, %13, %15, %16 : tensor<16x32xf32>, tensor<19x35xf32>, tensor<16x32xf32>, tensor<32x32xf32>, tensor<16x32xf32>, tensor<2x4x16x4xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x31xf32>
  }
  func.func private @_roll_static(%arg0: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = stablehlo.slice %arg0 [0:16, 29:32] : (tensor<16x32xf32>) -> tensor<16x3xf32>
    %1 = stablehlo.slice %arg0 [0:16, 0:29] : (tensor<16x32xf32>) -> tensor<16x29xf32>
    %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<16x3xf32>, tensor<16x29xf32>) -> tensor<16x32xf32>
    return %2 : tensor<16x32xf32>
  }
  func.func private @_pad(%arg0: tensor<16x32xf32>, %arg1: tensor<i32>) -> tensor<19x35xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [2, 3], interior = [0, 0] : (tensor<16x32xf32>, tensor<f32>) -> tensor<19x35xf32>
    return %1 : tensor<19x35xf32>
  }
  func.func private @tril(%arg0: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = stablehlo.iota dim = 0 : tensor<16x32xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x32xi32>
    %2 = stablehlo.add %0, %1 : tensor<16x32xi32>
    %3 = stablehlo.iota dim = 1 : tensor<16x32xi32>
    %4 = stablehlo.compare GE, %2, %3, SIGNED : (tensor<16x32xi32>, tensor<16x32xi32>) -> tensor<16x32xi1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %6 = stablehlo.select %4, %arg0, %5 : tensor<16x32xi1>, tensor<16x32xf32>
    return %6 : tensor<16x32xf32>
  }
  func.func private @diff(%arg0: tensor<16x32xf32>) -> tensor<16x31xf32> {
    %0 = stablehlo.slice %arg0 [0:16, 1:32] : (tensor<16x32xf32>) -> tensor<16x31xf32>
    %1 = stablehlo.slice %arg0 [0:16, 0:31] : (tensor<16x32xf32>) -> tensor<16x31xf32>
    %2 = stablehlo.subtract %0, %1 : tensor<16x31xf32>
    return %2 : tensor<16x31xf32>
  }
}
