module @jit_gathers attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}, {"Y"}]>}, %arg1: tensor<12xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<12xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg3: tensor<32x3xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) -> (tensor<12x8xf32> {jax.result_info = "result[0]"}, tensor<12x16x8xf32> {jax.result_info = "result[1]"}, tensor<32x12x8xf32> {jax.result_info = "result[2]"}, tensor<32x3x8xf32> {jax.result_info = "result[3]"}, tensor<5x6xf32> {jax.result_info = "result[4]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<12xi32>, tensor<12xi32>) -> tensor<12xi1>
    %c_0 = stablehlo.constant dense<32> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<12xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<12xi1>, tensor<12xi32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %5 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %6 = stablehlo.compare LT, %arg2, %5, SIGNED : (tensor<12xi32>, tensor<12xi32>) -> tensor<12xi1>
    %c_2 = stablehlo.constant dense<16> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %8 = stablehlo.add %arg2, %7 : tensor<12xi32>
    %9 = stablehlo.select %6, %8, %arg2 : tensor<12xi1>, tensor<12xi32>
    %10 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<12xi32>) -> tensor<12x1xi32>
    %11 = stablehlo.broadcast_in_dim %9, dims = [0] : (tensor<12xi32>) -> tensor<12x1xi32>
    %12 = stablehlo.concatenate %10, %11, dim = 1 : (tensor<12x1xi32>, tensor<12x1xi32>) -> tensor<12x2xi32>
    %13 = "stablehlo.gather"(%arg0, %12) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 8>}> : (tensor<32x16x8xf32>, tensor<12x2xi32>) -> tensor<12x8xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %15 = stablehlo.compare LT, %arg1, %14, SIGNED : (tensor<12xi32>, tensor<12xi32>) -> tensor<12xi1>
    %c_4 = stablehlo.constant dense<32> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %17 = stablehlo.add %arg1, %16 : tensor<12xi32>
    %18 = stablehlo.select %15, %17, %arg1 : tensor<12xi1>, tensor<12xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<12xi32>) -> tensor<12x1xi32>
    %20 = "stablehlo.gather"(%arg0, %19) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16, 8>}> : (tensor<32x16x8xf32>, tensor<12x1xi32>) -> tensor<12x16x8xf32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %22 = stablehlo.compare LT, %arg2, %21, SIGNED : (tensor<12xi32>, tensor<12xi32>) -> tensor<12xi1>
    %c_6 = stablehlo.constant dense<16> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_6, dims = [] : (tensor<i32>) -> tensor<12xi32>
    %24 = stablehlo.add %arg2, %23 : tensor<12xi32>
    %25 = stablehlo.select %22, %24, %arg2 : tensor<12xi1>, tensor<12xi32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<12xi32>) -> tensor<12x1xi32>
    %27 = "stablehlo.gather"(%arg0, %26) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 32, 1, 8>}> : (tensor<32x16x8xf32>, tensor<12x1xi32>) -> tensor<32x12x8xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %28 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<32x3xi32>
    %29 = stablehlo.compare LT, %arg3, %28, SIGNED : (tensor<32x3xi32>, tensor<32x3xi32>) -> tensor<32x3xi1>
    %c_8 = stablehlo.constant dense<16> : tensor<i32>
    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<32x3xi32>
    %31 = stablehlo.add %arg3, %30 : tensor<32x3xi32>
    %32 = stablehlo.select %29, %31, %arg3 : tensor<32x3xi1>, tensor<32x3xi32>
    %33 = stablehlo.broadcast_in_dim %32, dims = [0, 1] : (tensor<32x3xi32>) -> tensor<32x3x1xi32>
    %34 = "stablehlo.gather"(%arg0, %33) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 8>}> : (tensor<32x16x8xf32>, tensor<32x3x1xi32>) -> tensor<32x3x8xf32>
    %35 = stablehlo.slice %arg0 [27:32, 0:16:3, 1:2] : (tensor<32x16x8xf32>) -> tensor<5x6x1xf32>
    %36 = stablehlo.reshape %35 : (tensor<5x6x1xf32>) -> tensor<5x6xf32>
    return %13, %20, %27, %34, %36 : tensor<12x8xf32>, tensor<12x16x8xf32>, tensor<32x12x8xf32>, tensor<32x3x8xf32>, tensor<5x6xf32>
  }
}
