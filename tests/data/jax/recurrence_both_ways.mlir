module @jit_recurrence_both_ways attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<12x8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"X"}, {}]>}, %arg1: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"Y"}]>}, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> (tensor<8x16xf32> {jax.result_info = "result[0]"}, tensor<8x16xf32> {jax.result_info = "result[1]"}, tensor<12x8xf32> {jax.result_info = "result[2]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<12x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:5 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %c, %iterArg_3 = %arg2, %iterArg_4 = %0) : tensor<12x8x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<12x8xf32>
    cond {
      %c_5 = stablehlo.constant dense<12> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_2, %c_5, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_2) : (tensor<12x8x16xf32>, tensor<i32>) -> tensor<8x16xf32>
      %4 = stablehlo.dot_general %iterArg_3, %iterArg_1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %5 = stablehlo.add %4, %3 : tensor<8x16xf32>
      %6 = stablehlo.tanh %5 : tensor<8x16xf32>
      %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %7 = stablehlo.reduce(%6 init: %cst_5) applies stablehlo.add across dimensions = [1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
      %8 = func.call @dynamic_update_index_in_dim(%iterArg_4, %7, %iterArg_2) : (tensor<12x8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<12x8xf32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %iterArg_2, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_1, %9, %6, %8 : tensor<12x8x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<12x8xf32>
    }
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %2:4 = stablehlo.while(%iterArg = %arg0, %iterArg_1 = %arg1, %iterArg_2 = %c_0, %iterArg_3 = %arg2) : tensor<12x8x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>
    cond {
      %c_4 = stablehlo.constant dense<12> : tensor<i32>
      %3 = stablehlo.compare LT, %iterArg_2, %c_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %c_4 = stablehlo.constant dense<12> : tensor<i32>
      %3 = stablehlo.subtract %c_4, %iterArg_2 : tensor<i32>
      %c_5 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.subtract %3, %c_5 : tensor<i32>
      %5 = func.call @dynamic_index_in_dim(%iterArg, %4) : (tensor<12x8x16xf32>, tensor<i32>) -> tensor<8x16xf32>
      %6 = stablehlo.dot_general %iterArg_3, %iterArg_1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
      %7 = stablehlo.add %6, %5 : tensor<8x16xf32>
      %8 = stablehlo.tanh %7 : tensor<8x16xf32>
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %9 = stablehlo.add %iterArg_2, %c_6 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_1, %9, %8 : tensor<12x8x16xf32>, tensor<16x16xf32>, tensor<i32>, tensor<8x16xf32>
    }
    return %1#3, %2#3, %1#4 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<12x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<12x8x16xf32>, %arg1: tensor<i32>) -> tensor<8x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 16] : (tensor<12x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<12x8xf32>, %arg1: tensor<8xf32>, %arg2: tensor<i32>) -> tensor<12x8xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<8xf32>) -> tensor<1x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c : (tensor<12x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<12x8xf32>
    return %1 : tensor<12x8xf32>
  }
}
