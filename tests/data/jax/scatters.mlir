module @jit_scatters attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg1: tensor<24xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %arg2: tensor<24x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg3: tensor<24xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<32x16xf32> {jax.result_info = "result[0]"}, tensor<32x16xf32> {jax.result_info = "result[1]"}, tensor<32x16xf32> {jax.result_info = "result[2]"}, tensor<32x16xf32> {jax.result_info = "result[3]"}, tensor<8x16xf32> {jax.result_info = "result[4]"}, tensor<32x16xf32> {jax.result_info = "result[5]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
    %c_0 = stablehlo.constant dense<32> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<24xi32>
    %4 = stablehlo.select %1, %3, %arg1 : tensor<24xi1>, tensor<24xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %6 = "stablehlo.scatter"(%arg0, %5, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<24x1xi32>, tensor<24x16xf32>) -> tensor<32x16xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %7 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %8 = stablehlo.compare LT, %arg1, %7, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
    %c_2 = stablehlo.constant dense<32> : tensor<i32>
    %9 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %10 = stablehlo.add %arg1, %9 : tensor<24xi32>
    %11 = stablehlo.select %8, %10, %arg1 : tensor<24xi1>, tensor<24xi32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %13 = "stablehlo.scatter"(%arg0, %12, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.maximum %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<24x1xi32>, tensor<24x16xf32>) -> tensor<32x16xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %14 = stablehlo.broadcast_in_dim %c_3, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %15 = stablehlo.compare LT, %arg1, %14, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
    %c_4 = stablehlo.constant dense<32> : tensor<i32>
    %16 = stablehlo.broadcast_in_dim %c_4, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %17 = stablehlo.add %arg1, %16 : tensor<24xi32>
    %18 = stablehlo.select %15, %17, %arg1 : tensor<24xi1>, tensor<24xi32>
    %19 = stablehlo.broadcast_in_dim %18, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<24x16xf32>
    %21 = "stablehlo.scatter"(%arg0, %19, %20) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.minimum %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<24x1xi32>, tensor<24x16xf32>) -> tensor<32x16xf32>
    %22 = stablehlo.slice %arg2 [0:4, 0:16] : (tensor<24x16xf32>) -> tensor<4x16xf32>
    %c_5 = stablehlo.constant dense<3> : tensor<i32>
    %23 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<1xi32>
    %24 = "stablehlo.scatter"(%arg0, %23, %22) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0, 1], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      stablehlo.return %arg5 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<1xi32>, tensor<4x16xf32>) -> tensor<32x16xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %26 = stablehlo.broadcast_in_dim %arg3, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %27 = "stablehlo.scatter"(%25, %26, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.add %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<8x16xf32>, tensor<24x1xi32>, tensor<24x16xf32>) -> tensor<8x16xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %28 = stablehlo.broadcast_in_dim %c_7, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %29 = stablehlo.compare LT, %arg1, %28, SIGNED : (tensor<24xi32>, tensor<24xi32>) -> tensor<24xi1>
    %c_8 = stablehlo.constant dense<32> : tensor<i32>
    %30 = stablehlo.broadcast_in_dim %c_8, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %31 = stablehlo.add %arg1, %30 : tensor<24xi32>
    %32 = stablehlo.select %29, %31, %arg1 : tensor<24xi1>, tensor<24xi32>
    %c_9 = stablehlo.constant dense<2> : tensor<i32>
    %33 = stablehlo.broadcast_in_dim %c_9, dims = [] : (tensor<i32>) -> tensor<24xi32>
    %34 = stablehlo.convert %33 : tensor<24xi32>
    %35 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %36 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<24xi32>) -> tensor<24x1xi32>
    %37 = stablehlo.concatenate %35, %36, dim = 1 : (tensor<24x1xi32>, tensor<24x1xi32>) -> tensor<24x2xi32>
    %cst_10 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_10, dims = [] : (tensor<f32>) -> tensor<24xf32>
    %39 = "stablehlo.scatter"(%arg0, %37, %38) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
      %40 = stablehlo.multiply %arg4, %arg5 : tensor<f32>
      stablehlo.return %40 : tensor<f32>
    }) : (tensor<32x16xf32>, tensor<24x2xi32>, tensor<24xf32>) -> tensor<32x16xf32>
    return %6, %13, %21, %24, %27, %39 : tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<32x16xf32>, tensor<8x16xf32>, tensor<32x16xf32>
  }
}
