module @jit_attention_in_blocks attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "tensor"=4]> {stablehlo.mesh = {axes = [{name = "data", size = 2 : i64}, {name = "tensor", size = 4 : i64}]}}
  func.func public @main(%arg0: tensor<4x32x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {"tensor"}, {}]>}, %arg1: tensor<4x32x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {"tensor"}, {}]>}, %arg2: tensor<4x32x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {"tensor"}, {}]>}) -> (tensor<4x4x32x8xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_0 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<4x4x32xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<4x4x32x8xf32>
    %3 = stablehlo.iota dim = 0 : tensor<4xi32>
    %c = stablehlo.constant dense<8> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %5 = stablehlo.multiply %4, %3 : tensor<4xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<4xi32>
    %7 = stablehlo.add %6, %5 : tensor<4xi32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %8:8 = stablehlo.while(%iterArg = %7, %iterArg_4 = %arg1, %iterArg_5 = %arg2, %iterArg_6 = %arg0, %iterArg_7 = %c_3, %iterArg_8 = %0, %iterArg_9 = %1, %iterArg_10 = %2) : tensor<4xi32>, tensor<4x32x4x8xf32>, tensor<4x32x4x8xf32>, tensor<4x32x4x8xf32>, tensor<i32>, tensor<4x4x32xf32>, tensor<4x4x32xf32>, tensor<4x4x32x8xf32>
    cond {
      %c_11 = stablehlo.constant dense<4> : tensor<i32>
      %12 = stablehlo.compare LT, %iterArg_7, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %12 : tensor<i1>
    } do {
      %12 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_7) : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
      %c_11 = stablehlo.constant dense<0> : tensor<i32>
      %13 = stablehlo.compare LT, %12, %c_11, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_12 = stablehlo.constant dense<32> : tensor<i32>
      %14 = stablehlo.add %12, %c_12 : tensor<i32>
      %15 = stablehlo.select %13, %14, %12 : tensor<i1>, tensor<i32>
      %c_13 = stablehlo.constant dense<0> : tensor<i32>
      %c_14 = stablehlo.constant dense<0> : tensor<i32>
      %c_15 = stablehlo.constant dense<0> : tensor<i32>
      %16 = stablehlo.dynamic_slice %iterArg_4, %c_13, %15, %c_14, %c_15, sizes = [4, 8, 4, 8] : (tensor<4x32x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x4x8xf32>
      %c_16 = stablehlo.constant dense<0> : tensor<i32>
      %17 = stablehlo.compare LT, %12, %c_16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_17 = stablehlo.constant dense<32> : tensor<i32>
      %18 = stablehlo.add %12, %c_17 : tensor<i32>
      %19 = stablehlo.select %17, %18, %12 : tensor<i1>, tensor<i32>
      %c_18 = stablehlo.constant dense<0> : tensor<i32>
      %c_19 = stablehlo.constant dense<0> : tensor<i32>
      %c_20 = stablehlo.constant dense<0> : tensor<i32>
      %20 = stablehlo.dynamic_slice %iterArg_5, %c_18, %19, %c_19, %c_20, sizes = [4, 8, 4, 8] : (tensor<4x32x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x4x8xf32>
      %21 = stablehlo.dot_general %iterArg_6, %16, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<4x32x4x8xf32>, tensor<4x8x4x8xf32>) -> tensor<4x4x32x8xf32>
      %22 = stablehlo.iota dim = 0 : tensor<32xi32>
      %23 = stablehlo.broadcast_in_dim %22, dims = [0] : (tensor<32xi32>) -> tensor<32x1xi32>
      %24 = stablehlo.iota dim = 0 : tensor<8xi32>
      %25 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<i32>) -> tensor<8xi32>
      %26 = stablehlo.add %25, %24 : tensor<8xi32>
      %27 = stablehlo.broadcast_in_dim %26, dims = [1] : (tensor<8xi32>) -> tensor<1x8xi32>
      %28 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<32x1xi32>) -> tensor<32x8xi32>
      %29 = stablehlo.broadcast_in_dim %27, dims = [0, 1] : (tensor<1x8xi32>) -> tensor<32x8xi32>
      %30 = stablehlo.compare GE, %28, %29, SIGNED : (tensor<32x8xi32>, tensor<32x8xi32>) -> tensor<32x8xi1>
      %cst_21 = stablehlo.constant dense<-1.000000e+30> : tensor<f32>
      %31 = func.call @_where(%30, %21, %cst_21) : (tensor<32x8xi1>, tensor<4x4x32x8xf32>, tensor<f32>) -> tensor<4x4x32x8xf32>
      %cst_22 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %32 = stablehlo.reduce(%31 init: %cst_22) applies stablehlo.maximum across dimensions = [3] : (tensor<4x4x32x8xf32>, tensor<f32>) -> tensor<4x4x32xf32>
      %33 = stablehlo.convert %iterArg_9 : tensor<4x4x32xf32>
      %34 = stablehlo.maximum %33, %32 : tensor<4x4x32xf32>
      %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
      %36 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x8xf32>
      %37 = stablehlo.subtract %31, %36 : tensor<4x4x32x8xf32>
      %38 = stablehlo.exponential %37 : tensor<4x4x32x8xf32>
      %39 = stablehlo.convert %iterArg_9 : tensor<4x4x32xf32>
      %40 = stablehlo.subtract %39, %34 : tensor<4x4x32xf32>
      %41 = stablehlo.exponential %40 : tensor<4x4x32xf32>
      %42 = stablehlo.multiply %iterArg_8, %41 : tensor<4x4x32xf32>
      %cst_23 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %43 = stablehlo.reduce(%38 init: %cst_23) applies stablehlo.add across dimensions = [3] : (tensor<4x4x32x8xf32>, tensor<f32>) -> tensor<4x4x32xf32>
      %44 = stablehlo.add %42, %43 : tensor<4x4x32xf32>
      %45 = stablehlo.broadcast_in_dim %41, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
      %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x8xf32>
      %47 = stablehlo.multiply %iterArg_10, %46 : tensor<4x4x32x8xf32>
      %48 = stablehlo.dot_general %38, %20, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<4x4x32x8xf32>, tensor<4x8x4x8xf32>) -> tensor<4x4x32x8xf32>
      %49 = stablehlo.add %47, %48 : tensor<4x4x32x8xf32>
      %c_24 = stablehlo.constant dense<1> : tensor<i32>
      %50 = stablehlo.add %iterArg_7, %c_24 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_4, %iterArg_5, %iterArg_6, %50, %44, %34, %49 : tensor<4xi32>, tensor<4x32x4x8xf32>, tensor<4x32x4x8xf32>, tensor<4x32x4x8xf32>, tensor<i32>, tensor<4x4x32xf32>, tensor<4x4x32xf32>, tensor<4x4x32x8xf32>
    }
    %9 = stablehlo.broadcast_in_dim %8#5, dims = [0, 1, 2] : (tensor<4x4x32xf32>) -> tensor<4x4x32x1xf32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [0, 1, 2, 3] : (tensor<4x4x32x1xf32>) -> tensor<4x4x32x8xf32>
    %11 = stablehlo.divide %8#7, %10 : tensor<4x4x32x8xf32>
    return %11 : tensor<4x4x32x8xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4xi32>, %arg1: tensor<i32>) -> tensor<i32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>
    return %1 : tensor<i32>
  }
  func.func private @_where(%arg0: tensor<32x8xi1>, %arg1: tensor<4x4x32x8xf32>, %arg2: tensor<f32>) -> tensor<4x4x32x8xf32> {
    %0 = stablehlo.convert %arg2 : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %arg0, dims = [2, 3] : (tensor<32x8xi1>) -> tensor<4x4x32x8xi1>
    %2 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x4x32x8xf32>
    %3 = stablehlo.select %1, %arg1, %2 : tensor<4x4x32x8xi1>, tensor<4x4x32x8xf32>
    return %3 : tensor<4x4x32x8xf32>
  }
}
