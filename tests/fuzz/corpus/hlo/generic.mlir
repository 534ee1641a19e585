#loc1 = loc("x")
"builtin.module"() <{sym_name = "jit_f"}> ({
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> () loc(#loc)
  "func.func"() <{arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, {tf.aliasing_output = 0 : i32}], function_type = (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16>, res_attrs = [{jax.result_info = ""}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<8x4xbf16> loc("x"), %arg1: tensor<4x16xbf16> loc(unknown)):
    %c = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32> loc(#loc3)
    %c_0 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]}> : (tensor<8x4xbf16>, tensor<4x16xbf16>) -> tensor<8x16xbf16> loc("dot"("a.py":3:1 to :9))
    %1:2 = "stablehlo.while"(%c, %0) ({
    ^bb0(%iterArg: tensor<i32>, %iterArg_1: tensor<8x16xbf16>):
      %4 = "stablehlo.compare"(%iterArg, %c_0) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%4) : (tensor<i1>) -> ()
    }, {
    ^bb0(%iterArg: tensor<i32>, %iterArg_1: tensor<8x16xbf16>):
      %c_2 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %4 = "stablehlo.add"(%iterArg, %c_2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %5 = "func.call"(%iterArg_1) <{callee = @half}> : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
      "stablehlo.return"(%4, %5) : (tensor<i32>, tensor<8x16xbf16>) -> ()
    }) : (tensor<i32>, tensor<8x16xbf16>) -> (tensor<i32>, tensor<8x16xbf16>)
    %cst = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<bf16>}> : () -> tensor<bf16>
    %2 = "stablehlo.reduce"(%1#1, %cst) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %4 = "stablehlo.add"(%arg2, %arg3) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%4) : (tensor<bf16>) -> ()
    }) : (tensor<8x16xbf16>, tensor<bf16>) -> tensor<8xbf16>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>}> ({
    ^bb0(%arg2: tensor<bf16>, %arg3: tensor<bf16>):
      %4 = "stablehlo.add"(%arg2, %arg3) : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
      "stablehlo.return"(%4) : (tensor<bf16>) -> ()
    }) : (tensor<8xbf16>) -> tensor<8xbf16>
    "func.return"(%1#1) : (tensor<8x16xbf16>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<8x16xbf16>) -> tensor<8x16xbf16>, sym_name = "half", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<8x16xbf16>):
    %cst = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<bf16>}> : () -> tensor<bf16>
    %0 = "stablehlo.broadcast_in_dim"(%cst) <{broadcast_dimensions = array<i64>}> : (tensor<bf16>) -> tensor<8x16xbf16>
    %1 = "stablehlo.multiply"(%arg0, %0) : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
    "func.return"(%1) : (tensor<8x16xbf16>) -> ()
  }) : () -> ()
}) {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} : () -> () loc(#loc)
#loc = loc(unknown)
#loc3 = loc("zero"(#loc1))
