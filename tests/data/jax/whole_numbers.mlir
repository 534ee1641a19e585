module @jit_whole_numbers attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg1: tensor<64x16xi8> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {}]>}, %arg2: tensor<32x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg3: tensor<16x8xui32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) -> (tensor<32x16xi8> {jax.result_info = "result[0]"}, tensor<16x8xui32> {jax.result_info = "result[1]"}, tensor<16x8xui32> {jax.result_info = "result[2]"}, tensor<16x8xui32> {jax.result_info = "result[3]"}, tensor<32x16xi32> {jax.result_info = "result[4]"}, tensor<i32> {jax.result_info = "result[5]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<32x64xi8>, tensor<64x16xi8>) -> tensor<32x16xi32>
    %1 = stablehlo.convert %0 : (tensor<32x16xi32>) -> tensor<32x16xf32>
    %2 = stablehlo.broadcast_in_dim %arg2, dims = [0, 1] : (tensor<32x1xf32>) -> tensor<32x16xf32>
    %3 = stablehlo.multiply %1, %2 : tensor<32x16xf32>
    %cst = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
    %5 = stablehlo.divide %3, %4 : tensor<32x16xf32>
    %6 = call @round(%5) : (tensor<32x16xf32>) -> tensor<32x16xf32>
    %c = stablehlo.constant dense<-127> : tensor<i32>
    %c_0 = stablehlo.constant dense<127> : tensor<i32>
    %7 = call @clip(%6, %c, %c_0) : (tensor<32x16xf32>, tensor<i32>, tensor<i32>) -> tensor<32x16xf32>
    %8 = stablehlo.convert %7 : (tensor<32x16xf32>) -> tensor<32x16xi8>
    %c_1 = stablehlo.constant dense<16> : tensor<ui32>
    %9 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<ui32>) -> tensor<16x8xui32>
    %10 = stablehlo.shift_right_logical %arg3, %9 : tensor<16x8xui32>
    %11 = stablehlo.xor %arg3, %10 : tensor<16x8xui32>
    %c_2 = stablehlo.constant dense<2246822507> : tensor<ui32>
    %12 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<ui32>) -> tensor<16x8xui32>
    %13 = stablehlo.multiply %11, %12 : tensor<16x8xui32>
    %14 = stablehlo.popcnt %arg3 : tensor<16x8xui32>
    %15 = stablehlo.count_leading_zeros %arg3 : tensor<16x8xui32>
    %c_3 = stablehlo.constant dense<5> : tensor<i32>
    %16 = call @remainder(%0, %c_3) : (tensor<32x16xi32>, tensor<i32>) -> tensor<32x16xi32>
    %c_4 = stablehlo.constant dense<1> : tensor<i32>
    %17 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %18 = stablehlo.add %17, %16 : tensor<32x16xi32>
    %c_5 = stablehlo.constant dense<-7> : tensor<i32>
    %19 = call @floor_divide(%c_5, %18) : (tensor<i32>, tensor<32x16xi32>) -> tensor<32x16xi32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %20 = stablehlo.reduce(%0 init: %c_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x16xi32>, tensor<i32>) -> tensor<i32>
    return %8, %13, %14, %15, %19, %20 : tensor<32x16xi8>, tensor<16x8xui32>, tensor<16x8xui32>, tensor<16x8xui32>, tensor<32x16xi32>, tensor<i32>
  }
  func.func private @round(%arg0: tensor<32x16xf32>) -> tensor<32x16xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<32x16xf32>
    return %0 : tensor<32x16xf32>
  }
  func.func private @clip(%arg0: tensor<32x16xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<32x16xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<32x16xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<32x16xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<32x16xf32>
    return %5 : tensor<32x16xf32>
  }
  func.func private @remainder(%arg0: tensor<32x16xi32>, %arg1: tensor<i32>) -> tensor<32x16xi32> {
    %0 = stablehlo.convert %arg1 : tensor<i32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.compare EQ, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %2 = call @_where(%1, %c_0, %0) : (tensor<i1>, tensor<i32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %4 = stablehlo.remainder %arg0, %3 : tensor<32x16xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %6 = stablehlo.compare NE, %4, %5, SIGNED : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi1>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %8 = stablehlo.compare LT, %4, %7, SIGNED : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi1>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.compare LT, %2, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<i1>) -> tensor<32x16xi1>
    %11 = stablehlo.compare NE, %8, %10, UNSIGNED : (tensor<32x16xi1>, tensor<32x16xi1>) -> tensor<32x16xi1>
    %12 = stablehlo.and %11, %6 : tensor<32x16xi1>
    %13 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %14 = stablehlo.add %4, %13 : tensor<32x16xi32>
    %15 = stablehlo.select %12, %14, %4 : tensor<32x16xi1>, tensor<32x16xi32>
    return %15 : tensor<32x16xi32>
  }
  func.func private @_where(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<i1>, tensor<i32>
    return %0 : tensor<i32>
  }
  func.func private @floor_divide(%arg0: tensor<i32>, %arg1: tensor<32x16xi32>) -> tensor<32x16xi32> {
    %0 = stablehlo.convert %arg0 : tensor<i32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %2 = stablehlo.divide %1, %arg1 : tensor<32x16xi32>
    %3 = stablehlo.sign %0 : tensor<i32>
    %4 = stablehlo.sign %arg1 : tensor<32x16xi32>
    %5 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %6 = stablehlo.compare NE, %5, %4, SIGNED : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi1>
    %7 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %8 = stablehlo.remainder %7, %arg1 : tensor<32x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %10 = stablehlo.compare NE, %8, %9, SIGNED : (tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi1>
    %11 = stablehlo.and %6, %10 : tensor<32x16xi1>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %12 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<32x16xi32>
    %13 = stablehlo.subtract %2, %12 : tensor<32x16xi32>
    %14 = call @_where_0(%11, %13, %2) : (tensor<32x16xi1>, tensor<32x16xi32>, tensor<32x16xi32>) -> tensor<32x16xi32>
    return %14 : tensor<32x16xi32>
  }
  func.func private @_where_0(%arg0: tensor<32x16xi1>, %arg1: tensor<32x16xi32>, %arg2: tensor<32x16xi32>) -> tensor<32x16xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<32x16xi1>, tensor<32x16xi32>
    return %0 : tensor<32x16xi32>
  }
}
