module @jit_functions attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}) -> (tensor<16x32xf32> {jax.result_info = "result[0]"}, tensor<16x32xf32> {jax.result_info = "result[1]"}, tensor<16x32xf32> {jax.result_info = "result[2]"}, tensor<16x32xf32> {jax.result_info = "result[3]"}, tensor<16x32xf32> {jax.result_info = "result[4]"}, tensor<16x32xf32> {jax.result_info = "result[5]"}, tensor<16x32xf32> {jax.result_info = "result[6]"}, tensor<16x32xf32> {jax.result_info = "result[7]"}, tensor<16x32xf32> {jax.result_info = "result[8]"}, tensor<16x32xf32> {jax.result_info = "result[9]"}, tensor<16x32xf32> {jax.result_info = "result[10]"}, tensor<16x32xf32> {jax.result_info = "result[11]"}, tensor<16x32xf32> {jax.result_info = "result[12]"}, tensor<16x32xf32> {jax.result_info = "result[13]"}, tensor<16x32xf32> {jax.result_info = "result[14]"}, tensor<16x32xf32> {jax.result_info = "result[15]"}, tensor<16x32xf32> {jax.result_info = "result[16]"}, tensor<16x32xf32> {jax.result_info = "result[17]"}) {
    %cst = stablehlo.constant dense<-0.899999976> : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %0 = call @clip(%arg0, %cst, %cst_0) : (tensor<16x32xf32>, tensor<f32>, tensor<f32>) -> tensor<16x32xf32>
    %1 = chlo.erf %arg0 : tensor<16x32xf32> -> tensor<16x32xf32>
    %2 = chlo.erf_inv %0 : tensor<16x32xf32> -> tensor<16x32xf32>
    %cst_1 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %4 = stablehlo.add %arg0, %3 : tensor<16x32xf32>
    %5 = chlo.lgamma %4 : tensor<16x32xf32> -> tensor<16x32xf32>
    %cst_2 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %7 = stablehlo.add %arg0, %6 : tensor<16x32xf32>
    %8 = stablehlo.atan2 %arg0, %7 : tensor<16x32xf32>
    %9 = stablehlo.exponential_minus_one %arg0 : tensor<16x32xf32>
    %cst_3 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %11 = stablehlo.multiply %arg0, %10 : tensor<16x32xf32>
    %12 = stablehlo.log_plus_one %11 : tensor<16x32xf32>
    %13 = stablehlo.cbrt %arg0 : tensor<16x32xf32>
    %14 = chlo.asin %0 : tensor<16x32xf32> -> tensor<16x32xf32>
    %15 = chlo.atanh %0 : tensor<16x32xf32> -> tensor<16x32xf32>
    %16 = chlo.sinh %arg0 : tensor<16x32xf32> -> tensor<16x32xf32>
    %17 = stablehlo.tan %arg0 : tensor<16x32xf32>
    %18 = stablehlo.sign %arg0 : tensor<16x32xf32>
    %cst_4 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %20 = stablehlo.multiply %arg0, %19 : tensor<16x32xf32>
    %21 = stablehlo.floor %20 : tensor<16x32xf32>
    %cst_5 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
    %22 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %23 = stablehlo.multiply %arg0, %22 : tensor<16x32xf32>
    %24 = stablehlo.ceil %23 : tensor<16x32xf32>
    %cst_6 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %26 = stablehlo.multiply %arg0, %25 : tensor<16x32xf32>
    %27 = call @round(%26) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %cst_7 = stablehlo.constant dense<3.000000e-01> : tensor<f32>
    %28 = call @remainder(%arg0, %cst_7) : (tensor<16x32xf32>, tensor<f32>) -> tensor<16x32xf32>
    %cst_8 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %29 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %30 = stablehlo.add %arg0, %29 : tensor<16x32xf32>
    %cst_9 = stablehlo.constant dense<1.500000e+00> : tensor<f32>
    %31 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %32 = stablehlo.power %30, %31 : tensor<16x32xf32>
    %33 = stablehlo.convert %arg0 : (tensor<16x32xf32>) -> tensor<16x32xf16>
    %34 = stablehlo.convert %33 : (tensor<16x32xf16>) -> tensor<16x32xf32>
    return %1, %2, %5, %8, %9, %12, %13, %14, %15, %16, %17, %18, %21, %24, %27, %28, %32, %34 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
  }
  func.func private @clip(%arg0: tensor<16x32xf32>, %arg1: tensor<f32>, %arg2: tensor<f32>) -> tensor<16x32xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<16x32xf32>
    %3 = stablehlo.convert %arg2 : tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<16x32xf32>
    return %5 : tensor<16x32xf32>
  }
  func.func private @round(%arg0: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
  func.func private @remainder(%arg0: tensor<16x32xf32>, %arg1: tensor<f32>) -> tensor<16x32xf32> {
    %0 = stablehlo.convert %arg1 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %2 = stablehlo.remainder %arg0, %1 : tensor<16x32xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %4 = stablehlo.compare NE, %2, %3, FLOAT : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xi1>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %6 = stablehlo.compare LT, %2, %5, FLOAT : (tensor<16x32xf32>, tensor<16x32xf32>) -> tensor<16x32xi1>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.compare LT, %0, %cst_1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<i1>) -> tensor<16x32xi1>
    %9 = stablehlo.compare NE, %6, %8, UNSIGNED : (tensor<16x32xi1>, tensor<16x32xi1>) -> tensor<16x32xi1>
    %10 = stablehlo.and %9, %4 : tensor<16x32xi1>
    %11 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %12 = stablehlo.add %2, %11 : tensor<16x32xf32>
    %13 = stablehlo.select %10, %12, %2 : tensor<16x32xi1>, tensor<16x32xf32>
    return %13 : tensor<16x32xf32>
  }
}
