module @jit_newton attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg1: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) -> (tensor<16xf32> {jax.result_info = "result[0]"}, tensor<16xf32> {jax.result_info = "result[1]"}, tensor<i32> {jax.result_info = "result[2]"}) {
    %0 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %cst = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
    %3 = stablehlo.divide %1, %2 : tensor<16x16xf32>
    %4 = stablehlo.iota dim = 0 : tensor<16x16xi32>
    %5 = stablehlo.iota dim = 1 : tensor<16x16xi32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<16x16xi32>
    %7 = stablehlo.add %4, %6 : tensor<16x16xi32>
    %8 = stablehlo.compare EQ, %7, %5, SIGNED : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi1>
    %9 = stablehlo.convert %8 : (tensor<16x16xi1>) -> tensor<16x16xf32>
    %10 = stablehlo.add %3, %9 : tensor<16x16xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %12:5 = stablehlo.while(%iterArg = %10, %iterArg_4 = %arg1, %iterArg_5 = %11, %iterArg_6 = %arg1, %iterArg_7 = %c_1) : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<i32>
    cond {
      %14 = func.call @norm(%iterArg_6) : (tensor<16xf32>) -> tensor<f32>
      %cst_8 = stablehlo.constant dense<9.99999974E-5> : tensor<f32>
      %15 = stablehlo.compare GT, %14, %cst_8, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %c_9 = stablehlo.constant dense<40> : tensor<i32>
      %16 = stablehlo.compare LT, %iterArg_7, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_10 = stablehlo.constant dense<false> : tensor<i1>
      %17 = stablehlo.broadcast_in_dim %c_10, dims = [] : (tensor<i1>) -> tensor<i1>
      %18 = stablehlo.compare NE, %16, %17, UNSIGNED : (tensor<i1>, tensor<i1>) -> tensor<i1>
      %19 = stablehlo.convert %18 : tensor<i1>
      %20 = stablehlo.and %15, %19 : tensor<i1>
      stablehlo.return %20 : tensor<i1>
    } do {
      %cst_8 = stablehlo.constant dense<2.000000e-01> : tensor<f32>
      %14 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
      %15 = stablehlo.multiply %14, %iterArg_6 : tensor<16xf32>
      %16 = stablehlo.add %iterArg_5, %15 : tensor<16xf32>
      %17 = stablehlo.dot_general %iterArg, %16, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16xf32>
      %18 = stablehlo.subtract %iterArg_4, %17 : tensor<16xf32>
      %c_9 = stablehlo.constant dense<1> : tensor<i32>
      %19 = stablehlo.add %iterArg_7, %c_9 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %16, %18, %19 : tensor<16x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<i32>
    }
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %13:4 = stablehlo.while(%iterArg = %10, %iterArg_4 = %c_3, %iterArg_5 = %c_2, %iterArg_6 = %12#2) : tensor<16x16xf32>, tensor<i32>, tensor<i32>, tensor<16xf32>
    cond {
      %c_7 = stablehlo.constant dense<5> : tensor<i32>
      %14 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg_5, %c_7 : tensor<i32>
      %cst_8 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %15 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16xf32>
      %16 = stablehlo.multiply %iterArg_6, %15 : tensor<16xf32>
      %17 = stablehlo.convert %iterArg_5 : tensor<i32>
      %c_9 = stablehlo.constant dense<0> : tensor<i32>
      %18 = stablehlo.compare LT, %17, %c_9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_10 = stablehlo.constant dense<16> : tensor<i32>
      %19 = stablehlo.add %17, %c_10 : tensor<i32>
      %20 = stablehlo.select %18, %19, %17 : tensor<i1>, tensor<i32>
      %c_11 = stablehlo.constant dense<0> : tensor<i32>
      %c_12 = stablehlo.constant dense<0> : tensor<i32>
      %21 = stablehlo.compare LT, %c_11, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_13 = stablehlo.constant dense<0> : tensor<i32>
      %c_14 = stablehlo.constant dense<16> : tensor<i32>
      %22 = stablehlo.add %c_13, %c_14 : tensor<i32>
      %c_15 = stablehlo.constant dense<0> : tensor<i32>
      %23 = stablehlo.select %21, %22, %c_15 : tensor<i1>, tensor<i32>
      %24 = stablehlo.dynamic_slice %iterArg, %20, %23, sizes = [1, 16] : (tensor<16x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %25 = stablehlo.reshape %24 : (tensor<1x16xf32>) -> tensor<16xf32>
      %26 = stablehlo.add %16, %25 : tensor<16xf32>
      %c_16 = stablehlo.constant dense<1> : tensor<i32>
      %27 = stablehlo.add %iterArg_4, %c_16 : tensor<i32>
      stablehlo.return %iterArg, %27, %14, %26 : tensor<16x16xf32>, tensor<i32>, tensor<i32>, tensor<16xf32>
    }
    return %12#2, %13#3, %12#4 : tensor<16xf32>, tensor<16xf32>, tensor<i32>
  }
  func.func private @norm(%arg0: tensor<16xf32>) -> tensor<f32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %1 = stablehlo.reduce(%0 init: %cst) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.sqrt %1 : tensor<f32>
    return %2 : tensor<f32>
  }
}
