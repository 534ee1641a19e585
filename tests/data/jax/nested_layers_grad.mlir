module @jit_nested_layers_grad attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]> {stablehlo.mesh = {axes = [{name = "X", size = 4 : i64}, {name = "Y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<3x2x16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"Y"}, {"X"}]>}, %arg1: tensor<3x2x32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"X"}, {"Y"}]>}, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<3x2x16x32xf32> {jax.result_info = "result[1][0]"}, tensor<3x2x32x16xf32> {jax.result_info = "result[1][1]"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<3x8x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:5 = stablehlo.while(%iterArg = %arg0, %iterArg_8 = %arg1, %iterArg_9 = %c, %iterArg_10 = %arg2, %iterArg_11 = %0) : tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<3x8x16xf32>
    cond {
      %c_12 = stablehlo.constant dense<3> : tensor<i32>
      %13 = stablehlo.compare LT, %iterArg_9, %c_12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    } do {
      %13 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_9) : (tensor<3x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %14 = func.call @dynamic_index_in_dim_0(%iterArg_8, %iterArg_9) : (tensor<3x2x32x16xf32>, tensor<i32>) -> tensor<2x32x16xf32>
      %c_12 = stablehlo.constant dense<0> : tensor<i32>
      %15:4 = stablehlo.while(%iterArg_14 = %13, %iterArg_15 = %14, %iterArg_16 = %c_12, %iterArg_17 = %iterArg_10) : tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>
      cond {
        %c_18 = stablehlo.constant dense<2> : tensor<i32>
        %18 = stablehlo.compare LT, %iterArg_16, %c_18, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %18 : tensor<i1>
      } do {
        %18 = func.call @dynamic_index_in_dim_1(%iterArg_14, %iterArg_16) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
        %19 = func.call @dynamic_index_in_dim_2(%iterArg_15, %iterArg_16) : (tensor<2x32x16xf32>, tensor<i32>) -> tensor<32x16xf32>
        %20:3 = stablehlo.optimization_barrier %iterArg_17, %18, %19 : tensor<8x16xf32>, tensor<16x32xf32>, tensor<32x16xf32>
        %21 = stablehlo.dot_general %20#0, %20#1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %22 = stablehlo.tanh %21 : tensor<8x32xf32>
        %23 = stablehlo.dot_general %22, %20#2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
        %cst_18 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
        %24 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
        %25 = stablehlo.divide %23, %24 : tensor<8x16xf32>
        %26 = stablehlo.add %20#0, %25 : tensor<8x16xf32>
        %c_19 = stablehlo.constant dense<1> : tensor<i32>
        %27 = stablehlo.add %iterArg_16, %c_19 : tensor<i32>
        stablehlo.return %iterArg_14, %iterArg_15, %27, %26 : tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>
      }
      %16 = func.call @dynamic_update_index_in_dim(%iterArg_11, %iterArg_10, %iterArg_9) : (tensor<3x8x16xf32>, tensor<8x16xf32>, tensor<i32>) -> tensor<3x8x16xf32>
      %c_13 = stablehlo.constant dense<1> : tensor<i32>
      %17 = stablehlo.add %iterArg_9, %c_13 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %17, %15#3, %16 : tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<3x8x16xf32>
    }
    %2 = stablehlo.multiply %1#3, %1#3 : tensor<8x16xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %4 = stablehlo.multiply %3, %1#3 : tensor<8x16xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%2 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %6 = stablehlo.divide %5, %cst_2 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<1.280000e+02> : tensor<f32>
    %7 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %9 = stablehlo.multiply %8, %4 : tensor<8x16xf32>
    %cst_5 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<3x2x16x32xf32>
    %cst_6 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<3x2x32x16xf32>
    %c_7 = stablehlo.constant dense<0> : tensor<i32>
    %12:7 = stablehlo.while(%iterArg = %1#4, %iterArg_8 = %arg0, %iterArg_9 = %arg1, %iterArg_10 = %c_7, %iterArg_11 = %9, %iterArg_12 = %10, %iterArg_13 = %11) : tensor<3x8x16xf32>, tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>
    cond {
      %c_14 = stablehlo.constant dense<3> : tensor<i32>
      %13 = stablehlo.compare LT, %iterArg_10, %c_14, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %13 : tensor<i1>
    } do {
      %c_14 = stablehlo.constant dense<3> : tensor<i32>
      %13 = stablehlo.subtract %c_14, %iterArg_10 : tensor<i32>
      %c_15 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.subtract %13, %c_15 : tensor<i32>
      %15 = func.call @dynamic_index_in_dim_3(%iterArg, %14) : (tensor<3x8x16xf32>, tensor<i32>) -> tensor<8x16xf32>
      %16 = func.call @dynamic_index_in_dim(%iterArg_8, %14) : (tensor<3x2x16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
      %17 = func.call @dynamic_index_in_dim_0(%iterArg_9, %14) : (tensor<3x2x32x16xf32>, tensor<i32>) -> tensor<2x32x16xf32>
      %18:4 = stablehlo.optimization_barrier %15, %16, %17, %iterArg_11 : tensor<8x16xf32>, tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<8x16xf32>
      %cst_16 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %19 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<2x8x16xf32>
      %c_17 = stablehlo.constant dense<0> : tensor<i32>
      %20:5 = stablehlo.while(%iterArg_22 = %18#1, %iterArg_23 = %18#2, %iterArg_24 = %c_17, %iterArg_25 = %18#0, %iterArg_26 = %19) : tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<2x8x16xf32>
      cond {
        %c_27 = stablehlo.constant dense<2> : tensor<i32>
        %27 = stablehlo.compare LT, %iterArg_24, %c_27, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %27 : tensor<i1>
      } do {
        %27 = func.call @dynamic_index_in_dim_1(%iterArg_22, %iterArg_24) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
        %28 = func.call @dynamic_index_in_dim_2(%iterArg_23, %iterArg_24) : (tensor<2x32x16xf32>, tensor<i32>) -> tensor<32x16xf32>
        %29 = stablehlo.dot_general %iterArg_25, %27, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %30 = stablehlo.tanh %29 : tensor<8x32xf32>
        %31 = stablehlo.dot_general %30, %28, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
        %cst_27 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
        %32 = stablehlo.broadcast_in_dim %cst_27, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
        %33 = stablehlo.divide %31, %32 : tensor<8x16xf32>
        %34 = stablehlo.add %iterArg_25, %33 : tensor<8x16xf32>
        %35 = func.call @dynamic_update_index_in_dim_4(%iterArg_26, %iterArg_25, %iterArg_24) : (tensor<2x8x16xf32>, tensor<8x16xf32>, tensor<i32>) -> tensor<2x8x16xf32>
        %c_28 = stablehlo.constant dense<1> : tensor<i32>
        %36 = stablehlo.add %iterArg_24, %c_28 : tensor<i32>
        stablehlo.return %iterArg_22, %iterArg_23, %36, %34, %35 : tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<2x8x16xf32>
      }
      %cst_18 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %21 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<2x16x32xf32>
      %cst_19 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %22 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<2x32x16xf32>
      %c_20 = stablehlo.constant dense<0> : tensor<i32>
      %23:7 = stablehlo.while(%iterArg_22 = %20#4, %iterArg_23 = %18#1, %iterArg_24 = %18#2, %iterArg_25 = %c_20, %iterArg_26 = %18#3, %iterArg_27 = %21, %iterArg_28 = %22) : tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<2x16x32xf32>, tensor<2x32x16xf32>
      cond {
        %c_29 = stablehlo.constant dense<2> : tensor<i32>
        %27 = stablehlo.compare LT, %iterArg_25, %c_29, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %27 : tensor<i1>
      } do {
        %c_29 = stablehlo.constant dense<2> : tensor<i32>
        %27 = stablehlo.subtract %c_29, %iterArg_25 : tensor<i32>
        %c_30 = stablehlo.constant dense<1> : tensor<i32>
        %28 = stablehlo.subtract %27, %c_30 : tensor<i32>
        %29 = func.call @dynamic_index_in_dim_5(%iterArg_22, %28) : (tensor<2x8x16xf32>, tensor<i32>) -> tensor<8x16xf32>
        %30 = func.call @dynamic_index_in_dim_1(%iterArg_23, %28) : (tensor<2x16x32xf32>, tensor<i32>) -> tensor<16x32xf32>
        %31 = func.call @dynamic_index_in_dim_2(%iterArg_24, %28) : (tensor<2x32x16xf32>, tensor<i32>) -> tensor<32x16xf32>
        %32:4 = stablehlo.optimization_barrier %29, %30, %31, %iterArg_26 : tensor<8x16xf32>, tensor<16x32xf32>, tensor<32x16xf32>, tensor<8x16xf32>
        %33 = stablehlo.dot_general %32#0, %32#1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
        %34 = stablehlo.tanh %33 : tensor<8x32xf32>
        %cst_31 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        %35 = stablehlo.broadcast_in_dim %cst_31, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
        %36 = stablehlo.add %35, %34 : tensor<8x32xf32>
        %cst_32 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
        %37 = stablehlo.broadcast_in_dim %cst_32, dims = [] : (tensor<f32>) -> tensor<8x32xf32>
        %38 = stablehlo.subtract %37, %34 : tensor<8x32xf32>
        %39 = stablehlo.multiply %36, %38 : tensor<8x32xf32>
        %cst_33 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
        %40 = stablehlo.broadcast_in_dim %cst_33, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
        %41 = stablehlo.divide %32#3, %40 : tensor<8x16xf32>
        %42 = stablehlo.dot_general %41, %34, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<8x32xf32>) -> tensor<16x32xf32>
        %43 = stablehlo.transpose %42, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
        %44 = stablehlo.dot_general %41, %32#2, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<32x16xf32>) -> tensor<8x32xf32>
        %45 = stablehlo.multiply %44, %39 : tensor<8x32xf32>
        %46 = stablehlo.dot_general %45, %32#0, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
        %47 = stablehlo.transpose %46, dims = [1, 0] : (tensor<32x16xf32>) -> tensor<16x32xf32>
        %48 = stablehlo.dot_general %45, %32#1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32>
        %49 = stablehlo.add %32#3, %48 : tensor<8x16xf32>
        %50 = func.call @dynamic_update_index_in_dim_6(%iterArg_27, %47, %28) : (tensor<2x16x32xf32>, tensor<16x32xf32>, tensor<i32>) -> tensor<2x16x32xf32>
        %51 = func.call @dynamic_update_index_in_dim_7(%iterArg_28, %43, %28) : (tensor<2x32x16xf32>, tensor<32x16xf32>, tensor<i32>) -> tensor<2x32x16xf32>
        %c_34 = stablehlo.constant dense<1> : tensor<i32>
        %52 = stablehlo.add %iterArg_25, %c_34 : tensor<i32>
        stablehlo.return %iterArg_22, %iterArg_23, %iterArg_24, %52, %49, %50, %51 : tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<2x16x32xf32>, tensor<2x32x16xf32>
      }
      %24 = func.call @dynamic_update_index_in_dim_8(%iterArg_12, %23#5, %14) : (tensor<3x2x16x32xf32>, tensor<2x16x32xf32>, tensor<i32>) -> tensor<3x2x16x32xf32>
      %25 = func.call @dynamic_update_index_in_dim_9(%iterArg_13, %23#6, %14) : (tensor<3x2x32x16xf32>, tensor<2x32x16xf32>, tensor<i32>) -> tensor<3x2x32x16xf32>
      %c_21 = stablehlo.constant dense<1> : tensor<i32>
      %26 = stablehlo.add %iterArg_10, %c_21 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_8, %iterArg_9, %26, %23#4, %24, %25 : tensor<3x8x16xf32>, tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>, tensor<i32>, tensor<8x16xf32>, tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>
    }
    return %6, %12#5, %12#6 : tensor<f32>, tensor<3x2x16x32xf32>, tensor<3x2x32x16xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<3x2x16x32xf32>, %arg1: tensor<i32>) -> tensor<2x16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 16, 32] : (tensor<3x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x16x32xf32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @dynamic_index_in_dim_0(%arg0: tensor<3x2x32x16xf32>, %arg1: tensor<i32>) -> tensor<2x32x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, %c_1, sizes = [1, 2, 32, 16] : (tensor<3x2x32x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x32x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x2x32x16xf32>) -> tensor<2x32x16xf32>
    return %1 : tensor<2x32x16xf32>
  }
  func.func private @dynamic_index_in_dim_1(%arg0: tensor<2x16x32xf32>, %arg1: tensor<i32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 16, 32] : (tensor<2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x16x32xf32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
  func.func private @dynamic_index_in_dim_2(%arg0: tensor<2x32x16xf32>, %arg1: tensor<i32>) -> tensor<32x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 32, 16] : (tensor<2x32x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x16xf32>) -> tensor<32x16xf32>
    return %1 : tensor<32x16xf32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<3x8x16xf32>, %arg1: tensor<8x16xf32>, %arg2: tensor<i32>) -> tensor<3x8x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<3x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x16xf32>
    return %1 : tensor<3x8x16xf32>
  }
  func.func private @dynamic_index_in_dim_3(%arg0: tensor<3x8x16xf32>, %arg1: tensor<i32>) -> tensor<8x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 16] : (tensor<3x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_4(%arg0: tensor<2x8x16xf32>, %arg1: tensor<8x16xf32>, %arg2: tensor<i32>) -> tensor<2x8x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x8x16xf32>, tensor<1x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x8x16xf32>
    return %1 : tensor<2x8x16xf32>
  }
  func.func private @dynamic_index_in_dim_5(%arg0: tensor<2x8x16xf32>, %arg1: tensor<i32>) -> tensor<8x16xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, %c_0, sizes = [1, 8, 16] : (tensor<2x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x16xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
    return %1 : tensor<8x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_6(%arg0: tensor<2x16x32xf32>, %arg1: tensor<16x32xf32>, %arg2: tensor<i32>) -> tensor<2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<16x32xf32>) -> tensor<1x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x16x32xf32>, tensor<1x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x32xf32>
    return %1 : tensor<2x16x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_7(%arg0: tensor<2x32x16xf32>, %arg1: tensor<32x16xf32>, %arg2: tensor<i32>) -> tensor<2x32x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2] : (tensor<32x16xf32>) -> tensor<1x32x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0 : (tensor<2x32x16xf32>, tensor<1x32x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x32x16xf32>
    return %1 : tensor<2x32x16xf32>
  }
  func.func private @dynamic_update_index_in_dim_8(%arg0: tensor<3x2x16x32xf32>, %arg1: tensor<2x16x32xf32>, %arg2: tensor<i32>) -> tensor<3x2x16x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x16x32xf32>) -> tensor<1x2x16x32xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x2x16x32xf32>, tensor<1x2x16x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x16x32xf32>
    return %1 : tensor<3x2x16x32xf32>
  }
  func.func private @dynamic_update_index_in_dim_9(%arg0: tensor<3x2x32x16xf32>, %arg1: tensor<2x32x16xf32>, %arg2: tensor<i32>) -> tensor<3x2x32x16xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1, 2, 3] : (tensor<2x32x16xf32>) -> tensor<1x2x32x16xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2, %c, %c_0, %c_1 : (tensor<3x2x32x16xf32>, tensor<1x2x32x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x2x32x16xf32>
    return %1 : tensor<3x2x32x16xf32>
  }
}
