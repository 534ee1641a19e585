module @jit_mixed_precision_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<32x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg1: tensor<64x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {"X"}]>}, %arg2: tensor<16x32xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %arg3: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %arg4: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {"X"}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<32x64xbf16> {jax.result_info = "result[1]"}, tensor<64x32xbf16> {jax.result_info = "result[2]"}, tensor<32x64xf32> {jax.result_info = "result[3]"}, tensor<64x32xf32> {jax.result_info = "result[4]"}) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<32x64xbf16>) -> tensor<16x64xbf16>
    %1:3 = call @silu(%0) : (tensor<16x64xbf16>) -> (tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>)
    %2 = stablehlo.dot_general %1#0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x64xbf16>, tensor<64x32xbf16>) -> tensor<16x32xbf16>
    %3 = stablehlo.convert %2 : (tensor<16x32xbf16>) -> tensor<16x32xf32>
    %4 = chlo.square %3 : tensor<16x32xf32> -> tensor<16x32xf32>
    %cst = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %6 = stablehlo.multiply %5, %3 : tensor<16x32xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %7 = stablehlo.reduce(%4 init: %cst_0) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x32xf32>, tensor<f32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %8 = stablehlo.divide %7, %cst_1 : tensor<f32>
    %cst_2 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_3 = stablehlo.constant dense<5.120000e+02> : tensor<f32>
    %9 = stablehlo.divide %cst_2, %cst_3 : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
    %11 = stablehlo.multiply %10, %6 : tensor<16x32xf32>
    %12 = stablehlo.convert %11 : (tensor<16x32xf32>) -> tensor<16x32xbf16>
    %13 = stablehlo.dot_general %12, %1#0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<16x64xbf16>) -> tensor<32x64xbf16>
    %14 = stablehlo.transpose %13, dims = [1, 0] : (tensor<32x64xbf16>) -> tensor<64x32xbf16>
    %15 = stablehlo.dot_general %12, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<16x32xbf16>, tensor<64x32xbf16>) -> tensor<16x64xbf16>
    %16 = call @silu_0(%1#1, %1#2, %0, %15) : (tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x64xbf16>
    %17 = stablehlo.dot_general %16, %arg2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x64xbf16>, tensor<16x32xbf16>) -> tensor<64x32xbf16>
    %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<64x32xbf16>) -> tensor<32x64xbf16>
    %19 = stablehlo.convert %18 : (tensor<32x64xbf16>) -> tensor<32x64xf32>
    %20 = stablehlo.convert %14 : (tensor<64x32xbf16>) -> tensor<64x32xf32>
    %21 = stablehlo.multiply %19, %19 : tensor<32x64xf32>
    %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %22 = stablehlo.reduce(%21 init: %cst_4) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<f32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %23 = stablehlo.add %cst_5, %22 : tensor<f32>
    %24 = stablehlo.multiply %20, %20 : tensor<64x32xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %25 = stablehlo.reduce(%24 init: %cst_6) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x32xf32>, tensor<f32>) -> tensor<f32>
    %26 = stablehlo.add %23, %25 : tensor<f32>
    %27 = stablehlo.sqrt %26 : tensor<f32>
    %cst_7 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %28 = stablehlo.divide %cst_7, %27 : tensor<f32>
    %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %29 = stablehlo.minimum %cst_8, %28 : tensor<f32>
    %30 = stablehlo.broadcast_in_dim %29, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %31 = stablehlo.multiply %19, %30 : tensor<32x64xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %32 = stablehlo.divide %cst_9, %27 : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %33 = stablehlo.minimum %cst_10, %32 : tensor<f32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %35 = stablehlo.multiply %20, %34 : tensor<64x32xf32>
    %cst_11 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %36 = stablehlo.broadcast_in_dim %cst_11, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %37 = stablehlo.multiply %36, %arg3 : tensor<32x64xf32>
    %cst_12 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %38 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %39 = stablehlo.multiply %38, %31 : tensor<32x64xf32>
    %40 = stablehlo.add %37, %39 : tensor<32x64xf32>
    %cst_13 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %41 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %42 = stablehlo.multiply %41, %arg4 : tensor<64x32xf32>
    %cst_14 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %44 = stablehlo.multiply %43, %35 : tensor<64x32xf32>
    %45 = stablehlo.add %42, %44 : tensor<64x32xf32>
    %46 = stablehlo.convert %arg0 : (tensor<32x64xbf16>) -> tensor<32x64xf32>
    %cst_15 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %47 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<32x64xf32>
    %48 = stablehlo.multiply %47, %40 : tensor<32x64xf32>
    %49 = stablehlo.subtract %46, %48 : tensor<32x64xf32>
    %50 = stablehlo.convert %49 : (tensor<32x64xf32>) -> tensor<32x64xbf16>
    %51 = stablehlo.convert %arg1 : (tensor<64x32xbf16>) -> tensor<64x32xf32>
    %cst_16 = stablehlo.constant dense<0.00999999977> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<64x32xf32>
    %53 = stablehlo.multiply %52, %45 : tensor<64x32xf32>
    %54 = stablehlo.subtract %51, %53 : tensor<64x32xf32>
    %55 = stablehlo.convert %54 : (tensor<64x32xf32>) -> tensor<64x32xbf16>
    return %8, %50, %55, %40, %45 : tensor<f32>, tensor<32x64xbf16>, tensor<64x32xbf16>, tensor<32x64xf32>, tensor<64x32xf32>
  }
  func.func private @silu(%arg0: tensor<16x64xbf16>) -> (tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>) {
    %0 = stablehlo.negate %arg0 : tensor<16x64xbf16>
    %1 = stablehlo.exponential %0 : tensor<16x64xbf16>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %3 = stablehlo.add %2, %1 : tensor<16x64xbf16>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %4 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %5 = stablehlo.divide %4, %3 : tensor<16x64xbf16>
    %cst_1 = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %6 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<bf16>) -> tensor<16x64xbf16>
    %7 = stablehlo.subtract %6, %5 : tensor<16x64xbf16>
    %8 = stablehlo.multiply %5, %7 : tensor<16x64xbf16>
    %9 = stablehlo.multiply %arg0, %5 : tensor<16x64xbf16>
    return %9, %8, %5 : tensor<16x64xbf16>, tensor<16x64xbf16>, tensor<16x64xbf16>
  }
  func.func private @silu_0(%arg0: tensor<16x64xbf16>, %arg1: tensor<16x64xbf16>, %arg2: tensor<16x64xbf16>, %arg3: tensor<16x64xbf16>) -> tensor<16x64xbf16> {
    %0 = stablehlo.multiply %arg2, %arg3 : tensor<16x64xbf16>
    %1 = stablehlo.multiply %arg3, %arg1 : tensor<16x64xbf16>
    %2 = stablehlo.multiply %0, %arg0 : tensor<16x64xbf16>
    %3 = stablehlo.add %1, %2 : tensor<16x64xbf16>
    return %3 : tensor<16x64xbf16>
  }
}
