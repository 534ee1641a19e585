#include "assay/profile/trace/work.h"

#include <algorithm>
#include <cmath>

#include "assay/base/json_scanner.h"
#include "assay/base/text.h"

namespace assay::trace {
namespace {

using Inputs = std::vector<InputTensor>;

std::optional<std::int64_t> to_whole(std::string_view text) {
  const auto value = parse_number(text);
  constexpr double largest_size = 1e12;
  if (!value || !(std::abs(*value) <= largest_size) || *value != std::trunc(*value)) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

const InputTensor* input_at(const Inputs& inputs, std::int64_t place) {
  return place >= 0 && static_cast<std::size_t>(place) < inputs.size() ? &inputs[static_cast<std::size_t>(place)]
                                                                       : nullptr;
}

double elements(const std::vector<std::int64_t>& dims) {
  double product = 1.0;
  for (const std::int64_t size : dims) product *= static_cast<double>(size);
  return product;
}

/// Bytes of so many elements of an input's type.
std::optional<Bytes> stored(const Vocabulary& vocabulary, const InputTensor& like, double count) {
  const auto format = vocabulary.dtype(like.type);
  if (!format) return std::nullopt;
  return storage(*format, count);
}

std::optional<Bytes> sum(std::initializer_list<std::optional<Bytes>> parts) {
  Bytes total(0);
  for (const auto& part : parts) {
    if (!part) return std::nullopt;
    total += *part;
  }
  return total;
}

std::vector<std::int64_t> listed(const InputTensor* input) {
  std::vector<std::int64_t> out;
  if (!input || input->value.size() < 2) return out;
  std::string_view text = input->value;
  if (text.front() == '[') text = text.substr(1, text.size() - 2);
  for (const std::string& part : split(text, ','))
    if (const auto value = to_whole(trim(part))) out.push_back(*value);
  return out;
}

bool is_true(const InputTensor* input) { return input && (input->value == "True" || input->value == "1"); }

/// [..., m, k] times [..., k, n]. Where only one operand has a leading dimension, it is a list of groups that share the
/// rows of the other: each row is multiplied once.
std::optional<Work> product_work(const OperationForm& form, const Inputs& inputs, const Vocabulary& vocabulary) {
  const InputTensor *a = input_at(inputs, form.a), *b = input_at(inputs, form.b);
  if (!a || !b || a->dims.size() < 2 || b->dims.size() < 2) return std::nullopt;
  const std::size_t last_a = a->dims.size() - 1, last_b = b->dims.size() - 1;
  const double k = static_cast<double>(a->dims[last_a]);
  const double n = static_cast<double>(b->dims[form.transposed ? last_b - 1 : last_b]);
  double rows = elements(a->dims) / std::max(k, 1.0);
  if (a->dims.size() > b->dims.size() && !form.transposed && b->dims.size() == 2 && a->dims.size() == 3)
    rows = static_cast<double>(a->dims[1]);
  const InputTensor* bias = input_at(inputs, form.bias);
  const bool adds = bias && !bias->dims.empty();
  Work work;
  work.flops = Flops(2.0 * rows * n * k + (adds ? rows * n : 0.0));
  work.format = vocabulary.dtype(a->type);
  work.matrix = true;
  work.bytes = sum({stored(vocabulary, *a, elements(a->dims)), stored(vocabulary, *b, elements(b->dims)),
                    stored(vocabulary, *a, rows * n), adds ? stored(vocabulary, *bias, n) : Bytes(0)});
  return work;
}

std::optional<Work> attention_work(const OperationForm& form, const Inputs& inputs, const Vocabulary& vocabulary) {
  const InputTensor *q = input_at(inputs, form.query), *k = input_at(inputs, form.key),
                    *v = input_at(inputs, form.value);
  if (!q || !k || !v || q->dims.size() != 4 || k->dims.size() != 4 || v->dims.size() != 4) return std::nullopt;
  const std::size_t heads = form.sequence_first ? 2 : 1, sequence = form.sequence_first ? 1 : 2;
  const auto size = [](const InputTensor* of, std::size_t dim) { return static_cast<double>(of->dims[dim]); };
  const double pairs = size(q, 0) * size(q, heads) * size(q, sequence) * size(k, sequence);
  const bool gradient = form.form == Form::attention_gradient;
  // Scores and values; the gradient recomputes the scores, and has two products for each of both.
  double flops = 2.0 * pairs * (gradient ? 3.0 * size(q, 3) + 2.0 * size(v, 3) : size(q, 3) + size(v, 3));
  Work work;
  work.causal = is_true(input_at(inputs, form.causal)) && q->dims[sequence] == k->dims[sequence];
  if (work.causal) flops /= 2.0;
  work.flops = Flops(flops);
  work.format = vocabulary.dtype(q->type);
  work.matrix = true;
  const double result = size(q, 0) * size(q, heads) * size(q, sequence) * size(v, 3);
  work.bytes = sum({stored(vocabulary, *q, elements(q->dims)), stored(vocabulary, *k, elements(k->dims)),
                    stored(vocabulary, *v, elements(v->dims)), stored(vocabulary, *q, result)});
  if (gradient && work.bytes) *work.bytes *= 2.0;  // what the forward pass moved, and a gradient of each
  return work;
}

/// The sizes of the result of a convolution.
std::optional<std::vector<std::int64_t>> convolved(const OperationForm& form, const Inputs& inputs,
                                                   const InputTensor& x, const InputTensor& w) {
  const std::vector<std::int64_t> stride = listed(input_at(inputs, form.stride)),
                                  padding = listed(input_at(inputs, form.padding)),
                                  dilation = listed(input_at(inputs, form.dilation));
  std::vector<std::int64_t> out = {x.dims[0], w.dims[0]};
  const auto of = [](const std::vector<std::int64_t>& list, std::size_t i) {
    return i < list.size() ? list[i] : list.empty() ? 0 : list.back();
  };
  for (std::size_t i = 0; i + 2 < x.dims.size(); ++i) {
    const std::int64_t step = of(stride, i);
    constexpr std::int64_t largest_filter = 1'000'000;
    if (step < 1 || of(dilation, i) > largest_filter || w.dims[i + 2] > largest_filter) return std::nullopt;
    const std::int64_t reach = of(dilation, i) * (w.dims[i + 2] - 1);
    out.push_back((x.dims[i + 2] + 2 * of(padding, i) - reach - 1) / step + 1);
  }
  return out;
}

std::optional<Work> convolution_work(const OperationForm& form, const Inputs& inputs, const Vocabulary& vocabulary) {
  const InputTensor *x = input_at(inputs, form.a), *w = input_at(inputs, form.b);
  if (!x || !w || x->dims.size() < 3 || x->dims.size() != w->dims.size() || w->dims[0] < 1) return std::nullopt;
  std::optional<std::vector<std::int64_t>> result;
  const bool gradient = form.form == Form::convolution_gradient;
  if (gradient) {
    if (const InputTensor* of_result = input_at(inputs, form.query)) result = of_result->dims;
  } else if (!is_true(input_at(inputs, form.turned))) {
    result = convolved(form, inputs, *x, *w);
  }
  if (!result) return std::nullopt;
  const InputTensor* bias = input_at(inputs, form.bias);
  const std::vector<std::int64_t> bias_sizes = listed(bias);  // of a gradient: the sizes of the bias, 0 without one
  const bool adds = bias && (gradient ? !bias_sizes.empty() && bias_sizes.front() > 0 : !bias->dims.empty());
  const double filter = elements(w->dims) / static_cast<double>(w->dims[0]), written = elements(*result);
  Work work;
  // The gradient is two convolutions of the same size: of the input and of the filter.
  work.flops = Flops((gradient ? 2.0 : 1.0) * 2.0 * written * filter + (adds ? written : 0.0));
  work.format = vocabulary.dtype(x->type);
  work.matrix = true;
  const double once = elements(x->dims) + elements(w->dims) + written;
  work.bytes = stored(vocabulary, *x, (gradient ? 2.0 : 1.0) * once);
  return work;
}

/// One operation for each element of the result, which is as large as the inputs broadcast to each other.
std::optional<Work> element_wise_work(const Inputs& inputs, const Vocabulary& vocabulary) {
  std::vector<std::int64_t> result;
  const InputTensor* widest = nullptr;
  Bytes read(0);
  for (const InputTensor& input : inputs) {
    if (input.dims.empty()) continue;
    const auto bytes = stored(vocabulary, input, elements(input.dims));
    if (!bytes) return std::nullopt;
    read += *bytes;
    if (!widest || elements(input.dims) > elements(widest->dims)) widest = &input;
    if (input.dims.size() > result.size()) result.insert(result.begin(), input.dims.size() - result.size(), 1);
    for (std::size_t i = 0; i < input.dims.size(); ++i) {
      std::int64_t& size = result[result.size() - input.dims.size() + i];
      size = std::max(size, input.dims[i]);
    }
  }
  if (!widest) return std::nullopt;
  const auto written = stored(vocabulary, *widest, elements(result));
  return Work{Flops(elements(result)), read + *written, vocabulary.dtype(widest->type), false};
}

}  // namespace

std::vector<InputTensor> parse_inputs(std::string_view text) {
  const std::vector<std::string> parts = split(text, '\x1f');
  Inputs out;
  JsonScanner dims(parts[0]);
  dims.array([&] {
    InputTensor& input = out.emplace_back();
    if (dims.peek() != '[') return;
    std::vector<std::int64_t> sizes;
    const auto read_size = [&](std::vector<std::int64_t>& to) {
      if (const auto size = dims.number_text())
        if (const auto value = to_whole(*size)) to.push_back(*value);
    };
    dims.array([&] {
      if (dims.peek() != '[') return read_size(input.dims);
      sizes.clear();
      dims.array([&] { read_size(sizes); });
      double numbers = sizes.empty() ? 0.0 : 1.0;
      for (const std::int64_t size : sizes) numbers *= static_cast<double>(size);
      input.listed += numbers;
    });
  });
  const auto fill = [&](std::size_t part, std::string InputTensor::*member) {
    if (parts.size() <= part || parts[part].empty()) return;
    JsonScanner scanner(parts[part]);
    std::size_t i = 0;
    scanner.array([&] {
      if (scanner.peek() == '"' && i < out.size()) out[i].*member = unescaped(scanner.string());
      ++i;
    });
  };
  fill(1, &InputTensor::type);
  fill(2, &InputTensor::value);
  return out;
}

std::string shapes_text(const std::vector<InputTensor>& inputs) {
  std::string out;
  for (const InputTensor& input : inputs) {
    if (input.dims.empty()) continue;
    std::vector<std::string> sizes;
    for (const std::int64_t size : input.dims) sizes.push_back(std::to_string(size));
    out += (out.empty() ? "[" : " [") + join(sizes, ",") + "]";
  }
  return out;
}

std::optional<Work> work_of(const OperationForm& form, const std::vector<InputTensor>& inputs,
                            const Vocabulary& vocabulary) {
  switch (form.form) {
    case Form::product:
      return product_work(form, inputs, vocabulary);
    case Form::attention:
    case Form::attention_gradient:
      return attention_work(form, inputs, vocabulary);
    case Form::convolution:
    case Form::convolution_gradient:
      return convolution_work(form, inputs, vocabulary);
    case Form::element_wise:
      return element_wise_work(inputs, vocabulary);
  }
  return std::nullopt;
}

}  // namespace assay::trace
