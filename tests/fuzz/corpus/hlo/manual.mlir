module @m attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]>
  func.func public @main(%arg0: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X":(1)2}, {?}]>}) -> (tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"X"}, {}]>] out_shardings=[<@mesh, [{"X"}, {}]>] manual_axes={"X"} (%a: tensor<16x32xf32>) {
      %1 = "stablehlo.all_reduce"(%a) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "X">]>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %2 = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) : (tensor<16x32xf32>) -> tensor<16x32xf32>
      sdy.return %1 : tensor<16x32xf32>
    } : (tensor<64x32xf32>) -> tensor<64x32xf32>
    %values, %indices = chlo.top_k(%0, k = 2) : tensor<64x32xf32> -> (tensor<64x2xf32>, tensor<64x2xi32>)
    return %0 : tensor<64x32xf32>
  }
}
