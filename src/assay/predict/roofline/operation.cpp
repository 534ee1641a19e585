#include "assay/predict/roofline/operation.h"

#include <fmt/format.h>

#include <algorithm>

#include "assay/base/text.h"
#include "assay/program/lower/layers/layers.h"

namespace assay::roofline {
namespace {

constexpr PointwiseFunction functions[] = {
    {"copy", 1, 0, false, false, "no arithmetic"},
    {"add", 2, 1, false, false, "one addition per element"},
    {"sub", 2, 1, false, false, "one subtraction per element"},
    {"mul", 2, 1, false, false, "one product per element"},
    {"scale", 1, 1, false, false, "one product per element"},
    {"relu", 1, 1, false, false, "one comparison per element"},
    {"axpy", 2, 2, false, true, "a product and an addition per element"},
    {"fma", 3, 2, false, true, "a product and an addition per element"},
    {"gelu", 1, 8, false, false, "tanh form, each function counted as one"},
    {"silu", 1, 4, false, false, "negate, exp, add, divide"},
    {"swiglu", 2, 5, false, false, "silu and a product"},
    {"softmax", 1, 5, false, false, "max, subtract, exp, sum, divide"},
    {"rmsnorm", 1, 4, false, false, "square, sum, scale, gain"},
    {"layernorm", 1, 7, false, false, "mean, subtract, square, sum, scale, gain, bias"},
    {"sum", 1, 1, true, false, "n - 1 additions per result"},
    {"max", 1, 1, true, false, "n - 1 comparisons per result"},
    {"dot", 2, 2, true, true, "n products and n - 1 additions per result"},
    {"norm", 1, 2, true, true, "n products and n - 1 additions per result"},
    {"adamw", 4, 13, false, false, "two moments, square root, bias, decay and step", 3},
};
constexpr std::string_view attention_names[] = {"attention", "attention_backward", "attention_both"};

}  // namespace

std::span<const PointwiseFunction> pointwise_functions() { return functions; }

double size_product(const OperationTensor& tensor) {
  double product = 1.0;
  for (const OperationSize& size : tensor.sizes) product *= size.value.value_or(1.0);
  return product;
}

std::string size_text(const OperationSize& size) {
  if (size.value && !size.name.empty()) return fmt::format("{}={}", size.name, exact_number(*size.value));
  return size.value ? exact_number(*size.value) : size.name;
}

std::string tensor_text(const OperationTensor& tensor) {
  std::string text = fmt::format("{}[", tensor.block ? tensor.block->name : name(tensor.dtype));
  for (const OperationSize& size : tensor.sizes) text += (&size == &tensor.sizes.front() ? "" : ",") + size_text(size);
  return text + "]";
}

Bytes tensor_bytes(const OperationTensor& tensor) {
  const double elements = size_product(tensor);
  return storage(tensor.dtype, elements) + Bytes(elements * tensor.scale_bits() / 8.0);
}

program::AttentionShape Attention::shape() const {
  program::AttentionShape shape;
  shape.causal = causal;
  shape.queries = static_cast<std::int64_t>(queries);
  shape.keys = static_cast<std::int64_t>(keys);
  shape.window = window < keys ? static_cast<std::int64_t>(window) : 0;
  return shape;
}

Bytes Attention::bytes() const {
  const double seen = window > 0.0 ? std::min(keys, window + queries - 1.0) : keys;
  return storage(query, batch * (head_dim + value_dim) * heads * queries) +
         storage(cache, batch * (head_dim + value_dim) * kv_heads * seen);
}

std::vector<std::string> Operation::names() const {
  std::vector<std::string> all;
  const auto collect = [&](const OperationTensor& tensor) {
    for (const OperationSize& size : tensor.sizes)
      if (!size.name.empty() && std::find(all.begin(), all.end(), size.name) == all.end()) all.push_back(size.name);
  };
  for (const OperationTensor& tensor : operands_) collect(tensor);
  collect(result_);
  return all;
}

std::vector<std::string> Operation::free_sizes() const {
  std::vector<std::string> all = names();
  const auto bound = [&](const std::string& letter) {
    for (const OperationTensor& tensor : operands_)
      for (const OperationSize& size : tensor.sizes)
        if (size.name == letter && size.value) return true;
    return false;
  };
  all.erase(std::remove_if(all.begin(), all.end(), bound), all.end());
  return all;
}

Operation Operation::with(std::string_view letter, double value) const {
  Operation copy = *this;
  const auto set = [&](OperationTensor& tensor) {
    for (OperationSize& size : tensor.sizes)
      if (size.name == letter) size.value = value;
  };
  for (OperationTensor& tensor : copy.operands_) set(tensor);
  set(copy.result_);
  return copy;
}

Matmul Operation::matmul() const {
  Matmul product;
  product.a = operands_[0].dtype;
  product.b = operands_[1].dtype;
  product.out = result_.dtype;
  const std::string &roles_a = roles_[0], &roles_b = roles_[1];
  for (std::size_t i = 0; i < roles_a.size(); ++i) {
    const double size = operands_[0].sizes[i].value.value_or(1.0);
    (roles_a[i] == 'b' ? product.batch : roles_a[i] == 'k' ? product.k : product.m) *= size;
  }
  for (std::size_t i = 0; i < roles_b.size(); ++i)
    if (roles_b[i] == 'n') product.n *= operands_[1].sizes[i].value.value_or(1.0);
  product.a_scale = operands_[0].scale_bits();
  product.b_scale = operands_[1].scale_bits();
  product.accumulates = accumulates_;
  product.grouped = grouped_;
  product.even_rows = grouped_ && roles_a.size() > 2;
  if (grouped_ && roles_a.size() == 2) {
    // Rows reach groups at random; groups without rows do no work, and the others get more rows each. Gradients of
    // groups without rows are zeros, which are written.
    product.summed_rows = result_.sizes.size() == 3;
    const double groups = (product.summed_rows ? result_ : operands_[1]).sizes[0].value.value_or(1.0);
    double& rows = product.summed_rows ? product.k : product.m;
    product.batch = product.summed_rows ? groups : groups * lower::touched_share(rows, 1.0, groups);
    rows /= product.batch;
  }
  return product;
}

Pointwise Operation::pointwise() const {
  return {function_, size_product(operands_[0]), size_product(result_), operands_[0].dtype, result_.dtype};
}

Attention Operation::attention() const {
  const auto size = [&](std::size_t operand, std::size_t at) {
    return operands_[operand].sizes[at].value.value_or(1.0);
  };
  return {attention_->passes, size(0, 0),         size(0, 1),         size(1, 1),
          size(0, 2),         size(1, 2),         size(0, 3),         size(2, 3),
          operands_[0].dtype, operands_[1].dtype, attention_->causal, attention_->window};
}

std::string Operation::group_name(char group) const {
  std::string text;
  bool named = false;
  for (std::size_t operand = 0; operand < roles_.size(); ++operand)
    for (std::size_t i = 0; i < roles_[operand].size(); ++i) {
      if (roles_[operand][i] != group || (operand == 1 && group != 'n')) continue;
      const OperationSize& size = operands_[operand].sizes[i];
      named = named || !size.name.empty();
      text += (text.empty() ? "" : "*") + (size.name.empty() ? exact_number(*size.value) : size.name);
    }
  return named ? text : std::string(1, group == 'b' ? 'e' : group);
}

std::string Operation::text() const {
  if (attention_) {
    const bool same = tensor_text(operands_[1]) == tensor_text(operands_[2]);
    std::string text = fmt::format("{}({}, {}", attention_names[static_cast<std::size_t>(attention_->passes)],
                                   tensor_text(operands_[0]), tensor_text(operands_[1]));
    if (!same) text += ", " + tensor_text(operands_[2]);
    if (attention_->causal) text += ", causal";
    if (attention_->window > 0.0) text += fmt::format(", window={}", exact_number(attention_->window));
    return text + ")";
  }
  if (function_) return fmt::format("{}({}) -> {}", function_->name, tensor_text(operands_[0]), tensor_text(result_));
  const std::string product = fmt::format("{} @ {} {} {}", tensor_text(operands_[0]), tensor_text(operands_[1]),
                                          accumulates_ ? "+=" : "->", tensor_text(result_));
  return grouped_ ? fmt::format("grouped({})", product) : product;
}

}  // namespace assay::roofline
