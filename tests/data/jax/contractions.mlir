module @jit_contractions attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<8x16x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}, {"Y"}, {}]>}, %arg1: tensor<8x4x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}, {}, {}]>}, %arg2: tensor<16x8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}]>}) -> (tensor<8x16x16xf32> {jax.result_info = "result[0]"}, tensor<8x4x12xf32> {jax.result_info = "result[1]"}, tensor<16x8x8x16xf32> {jax.result_info = "result[2]"}, tensor<8x4x16x16xf32> {jax.result_info = "result[3]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [3, 2] x [2, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x4x8xf32>, tensor<8x4x8x16xf32>) -> tensor<8x16x16xf32>
    %1 = stablehlo.dot_general %arg0, %arg2, contracting_dims = [3, 1] x [1, 0], precision = [DEFAULT, DEFAULT] : (tensor<8x16x4x8xf32>, tensor<16x8x12xf32>) -> tensor<8x4x12xf32>
    %2 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0, 2] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x16x4x8xf32>, tensor<8x4x8x16xf32>) -> tensor<16x8x8x16xf32>
    %3 = stablehlo.dot_general %arg0, %arg0, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x16x4x8xf32>, tensor<8x16x4x8xf32>) -> tensor<8x4x16x16xf32>
    return %0, %1, %2, %3 : tensor<8x16x16xf32>, tensor<8x4x12xf32>, tensor<16x8x8x16xf32>, tensor<8x4x16x16xf32>
  }
}
