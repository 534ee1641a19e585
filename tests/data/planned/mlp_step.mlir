module @mlp_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["X"=4, "Y"=2]>
  func.func public @main(%x: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>}, %w_in: tensor<4096x16384xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, %w_out: tensor<16384x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {"X"}]>}) -> (tensor<4096x16384xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {"Y"}]>}, tensor<16384x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"Y"}, {"X"}]>}) {
    %h = stablehlo.dot_general %x, %w_in, contracting_dims = [1] x [0] : (tensor<8192x4096xbf16>, tensor<4096x16384xbf16>) -> tensor<8192x16384xbf16>
    %a = stablehlo.tanh %h : tensor<8192x16384xbf16>
    %y = stablehlo.dot_general %a, %w_out, contracting_dims = [1] x [0] : (tensor<8192x16384xbf16>, tensor<16384x4096xbf16>) -> tensor<8192x4096xbf16>
    %dy = stablehlo.subtract %y, %x : tensor<8192x4096xbf16>
    %dw_out = stablehlo.dot_general %a, %dy, contracting_dims = [0] x [0] : (tensor<8192x16384xbf16>, tensor<8192x4096xbf16>) -> tensor<16384x4096xbf16>
    %da = stablehlo.dot_general %dy, %w_out, contracting_dims = [1] x [1] : (tensor<8192x4096xbf16>, tensor<16384x4096xbf16>) -> tensor<8192x16384xbf16>
    %a2 = stablehlo.multiply %a, %a : tensor<8192x16384xbf16>
    %one = stablehlo.constant dense<1.0> : tensor<bf16>
    %ones = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<bf16>) -> tensor<8192x16384xbf16>
    %slope = stablehlo.subtract %ones, %a2 : tensor<8192x16384xbf16>
    %dh = stablehlo.multiply %da, %slope : tensor<8192x16384xbf16>
    %dw_in = stablehlo.dot_general %x, %dh, contracting_dims = [0] x [0] : (tensor<8192x4096xbf16>, tensor<8192x16384xbf16>) -> tensor<4096x16384xbf16>
    %rate = stablehlo.constant dense<0.01> : tensor<bf16>
    %rates = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<bf16>) -> tensor<4096x16384xbf16>
    %step_in = stablehlo.multiply %rates, %dw_in : tensor<4096x16384xbf16>
    %new_in = stablehlo.subtract %w_in, %step_in : tensor<4096x16384xbf16>
    %rates_2 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<bf16>) -> tensor<16384x4096xbf16>
    %step_out = stablehlo.multiply %rates_2, %dw_out : tensor<16384x4096xbf16>
    %new_out = stablehlo.subtract %w_out, %step_out : tensor<16384x4096xbf16>
    return %new_in, %new_out : tensor<4096x16384xbf16>, tensor<16384x4096xbf16>
  }
}
