module @jit_f attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<512x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<1024x2048xbf16>) -> (tensor<512x2048xbf16> {jax.result_info = ""}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<512x1024xbf16>, tensor<1024x2048xbf16>) -> tensor<512x2048xbf16>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<512x2048xbf16>
    %2 = stablehlo.tanh %1 : tensor<512x2048xbf16>
    return %2 : tensor<512x2048xbf16>
  }
}
