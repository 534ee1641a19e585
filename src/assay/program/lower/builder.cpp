#include "assay/program/lower/builder.h"

#include <algorithm>

#include "assay/base/index.h"

namespace assay::lower {
namespace {

bool is_narrow(Dtype dtype) { return facts(dtype).bits < 16; }

}  // namespace

int Builder::tensor(std::string_view name, std::span<const model::Weight::Size> dims, program::TensorClass tensor_class,
                    const NumberFormat& format) {
  program::ProgramTensor& made = program_.tensors.emplace_back();
  made.name = name;
  made.tensor_class = tensor_class;
  made.store_as(format);
  made.rank = static_cast<std::uint8_t>(dims.size());
  made.dims = program::TensorDims(dims);
  if (tensor_class != program::TensorClass::activation) made.sharding = ruled(tensor_class, made);
  made.elements = program::local_elements(program_, made);
  return static_cast<int>(program_.tensors.size()) - 1;
}

int Builder::given(std::string_view name, std::initializer_list<model::Weight::Size> dims,
                   program::TensorClass tensor_class, Dtype dtype) {
  const int id = tensor(name, dims, tensor_class, dtype);
  program_.tensors[at(id)].is_given = true;
  return id;
}

int Builder::weight(const model::Weight& weight) {
  const std::array<model::Weight::Size, 4> dims = ruled_dims(weight);
  const int id =
      tensor(weight.name, std::span(dims.data(), weight.rank), program::TensorClass::weight, formats_.of(weight));
  program_.tensors[at(id)].is_given = true;
  program_.tensors[at(id)].is_frozen = !weight.trained;
  program_.tensors[at(id)].is_shared = weight.shared;
  return id;
}

int Builder::used(int weight) {
  if (program_.tensor(weight).tensor_class != program::TensorClass::weight) return weight;
  if (const int known = notes_here(weight).used; known >= 0) return known;
  const program::Sharding target = ruled(program::TensorClass::used_weight, program_.tensor(weight));
  const bool stays = program_.tensor(weight).sharding == target;
  const int id = stays ? weight : moved(narrowed(weight), target, program::Urgency::ahead, {});
  notes_here(weight).used = static_cast<std::int16_t>(id);
  return id;
}

void Builder::begin_block(std::string_view name, program::Phase phase, int kind, std::int64_t layers) {
  const auto first = static_cast<std::int32_t>(program_.steps.size());
  program_.blocks.push_back({name, phase, kind, layers, first, first});
}

void Builder::end_block() { program_.blocks.back().last = static_cast<std::int32_t>(program_.steps.size()); }

program::Step& Builder::emit(program::Op op, std::initializer_list<int> in, std::initializer_list<int> out) {
  const auto number = static_cast<std::int16_t>(program_.steps.size());
  program::Step& step = program_.steps.emplace_back();
  step.op = op;
  Bytes moved;
  program::ProgramTensor* const tensors = program_.tensors.data();
  std::int16_t* place = step.in.data();
  for (int id : in) {
    *place++ = static_cast<std::int16_t>(id);
    if (id >= 0) moved += program::local_bytes(tensors[id], tensors[id].elements);
  }
  place = step.out.data();
  for (int id : out) {
    *place++ = static_cast<std::int16_t>(id);
    if (id < 0) continue;
    moved += program::local_bytes(tensors[id], tensors[id].elements);
    tensors[id].producer = number;
  }
  step.bytes = moved;
  return step;
}

int Builder::copy_of(int id, std::string_view name) {
  program_.tensors.push_back(program_.tensors[at(id)]);
  const program::ProgramTensor& of = program_.tensors[at(id)];
  program::ProgramTensor& copy = program_.tensors.back();
  if (!name.empty()) copy.name = name;
  copy.is_given = copy.is_kept = copy.is_cross_layer = false;
  copy.producer = -1;
  if (of.tensor_class == program::TensorClass::weight) copy.tensor_class = program::TensorClass::used_weight;
  return static_cast<int>(program_.tensors.size()) - 1;
}

int Builder::moved_once(int id, const program::Sharding& target) {
  if (program_.tensor(id).sharding == target) return id;
  int there = notes_here(id).moved;
  if (there < 0 || program_.tensor(there).sharding != target) there = reshard(id, target, program::Urgency::critical);
  notes_here(id).moved = static_cast<std::int16_t>(there);
  return there;
}

int Builder::settle(int from, program::TensorClass tensor_class, std::string_view name) {
  program::Sharding target = ruled(tensor_class, program_.tensor(from));
  const int id = reshard(from, target, program::Urgency::critical, name);
  program_.tensors[at(id)].tensor_class = tensor_class;
  return id;
}

int Builder::settle_sums(int from) {
  if (program_.tensor(from).sharding.unreduced == 0) return from;
  program::Sharding target = program_.tensor(from).sharding;
  target.unreduced = 0;
  return moved(from, target, program::Urgency::critical, {});
}

int Builder::cast(int id, Dtype to) {
  if (const int known = notes_here(id).cast; known >= 0) return known;
  const int made = copy_of(id, {});
  program_.tensors[at(made)].store_as(is_narrow(to) ? NumberFormat(to, facts(Dtype::fp32).bits, scale_block) : to);
  program::Step& step = emit(program::Op::cast, {id}, {made});
  step.urgency = program_.tensor(made).tensor_class == program::TensorClass::used_weight ? program::Urgency::ahead
                                                                                         : program::Urgency::critical;
  notes_here(id).cast = static_cast<std::int16_t>(made);
  return made;
}

int Builder::quantised(int id) { return is_narrow(program_.tensor(id).dtype) ? id : cast(id, formats_.compute); }

int Builder::unpacked(int id) {
  const program::ProgramTensor& tensor = program_.tensor(id);
  return tensor.is_frozen && is_narrow(tensor.dtype) ? cast(id, formats_.activations) : id;
}

bool Builder::is_quantised(const program::ProgramTensor& with) const {
  // Routers and adapters keep their precision; in a partly quantised model, only quantised weights use narrow products.
  const bool in_layer = program_.blocks.back().kind >= 0 && with.find(model::LogicalDim::other) < 0 &&
                        with.find(model::LogicalDim::adapter) < 0;
  return in_layer && (!formats_.quantised || is_narrow(with.dtype));
}

int Builder::quantised_at(int id, const program::Sharding& target) {
  const program::Sharding& here = program_.tensor(id).sharding;
  const int there = notes_here(id).moved;
  // Sums end in the wide format, slices have less to cast, and a tensor gathered wide is not gathered twice.
  const bool first = (here.unreduced & ~target.unreduced) == 0 &&
                     program_.ways(here.split_axes()) >= program_.ways(target.split_axes()) &&
                     !(there >= 0 && program_.tensor(there).sharding == target);
  return first ? moved_once(quantised(id), target) : quantised(moved_once(id, target));
}

program::AxisSet Builder::late_axes(const program::ProgramTensor& tensor) const {
  if (rules_.key_replicas == 0 || tensor.find(model::LogicalDim::kv_heads) < 0) return 0;
  return tensor.sharding.unreduced & rules_.key_replicas;
}

inline Builder::Wanted Builder::wanted(const program::ProgramTensor& x, const program::ProgramTensor& w) const {
  Wanted out;
  // Every device that needs copies of keys computes them, from the tokens it already has for the queries.
  const program::AxisSet copied = w.find(model::LogicalDim::kv_heads) >= 0 ? rules_.key_replicas : 0;
  for (int i = 0; i < w.rank; ++i) out.axes |= w.sharding.dims[at(i)].set();
  const program::AxisSet stationary = out.axes | copied;
  out.place.unreduced = x.is_gradient ? late_axes(x) : 0;
  // Partial sums of an adapter end together with the product it is added to.
  if (x.find(model::LogicalDim::adapter) >= 0 && !x.is_gradient) out.place.unreduced = x.sharding.unreduced;
  for (int i = 0; i < x.rank; ++i) {
    const int j = w.find(x.dims[at(i)].dim);
    out.place.dims[at(i)] = j >= 0 ? w.sharding.dims[at(j)] : remaining(x.sharding.dims[at(i)], stationary);
    out.axes |= out.place.dims[at(i)].set();
    if (j >= 0) out.shared |= 1u << j;
  }
  return out;
}

int Builder::brought_to(int activation, int weight) {
  const int w = used(weight);
  return moved_once(activation, wanted(program_.tensor(activation), program_.tensor(w)).place);
}

int Builder::product(std::string_view name, int activation, int weight, std::span<const model::LogicalDim> result,
                     int onto, int bias) {
  int b = narrowed(used(weight));
  const auto [target, axes, shared] = wanted(program_.tensor(activation), program_.tensor(b));
  const bool narrow = multiplies_narrow(b) && program_.tensor(activation).find(model::LogicalDim::adapter) < 0;
  const int a = narrow ? quantised_at(activation, target) : moved_once(activation, target);
  b = narrow ? quantised(b) : unpacked(b);
  int out = static_cast<int>(program_.tensors.size());
  bool partial;
  {
    program::ProgramTensor& made = program_.tensors.emplace_back();
    const program::ProgramTensor &x = program_.tensor(a), &w = program_.tensor(b);
    made.name = name;
    made.store_as(formats_.activations);
    program::AxisSet kept = 0;
    std::size_t rank = 0;
    for (model::LogicalDim dim : result) {
      const int i = x.find(dim);
      const program::ProgramTensor& from = i >= 0 ? x : w;
      const std::size_t there = at(i >= 0 ? i : w.find(dim));
      made.dims.set(rank, from.dims[there]);
      made.sharding.dims[rank] = from.sharding.dims[there];
      kept |= from.sharding.dims[there].set();
      ++rank;
    }
    made.rank = static_cast<std::uint8_t>(rank);
    made.sharding.unreduced = (axes & ~kept) | x.sharding.unreduced | w.sharding.unreduced;
    made.elements = program::local_elements(program_, made);
    partial = made.sharding.unreduced != 0;
  }
  if (bias >= 0 && !partial) {  // its tensors come before the result
    const program::ProgramTensor made = program_.tensors.back();
    program_.tensors.pop_back();
    bias = bias_for(bias, made);
    out = static_cast<int>(program_.tensors.size());
    program_.tensors.push_back(made);
  }
  program::Step& step = emit(program::Op::product, {a, b}, {out});
  const auto also_read = [&](std::size_t i, int id) {
    step.in[i] = static_cast<std::int16_t>(id);
    step.bytes += bytes(id);
  };
  if (onto >= 0) also_read(2, onto);
  if (bias >= 0 && !partial) also_read(3, bias);
  const program::ProgramTensor &x = program_.tensor(a), &w = program_.tensor(b);
  double extent = x.elements;  // over all dimensions of both
  for (int i = 0; i < w.rank; ++i)
    if (!(shared >> i & 1u)) extent *= program::local_extent(program_, w, i);
  step.flops = Flops(2.0 * extent);
  const bool of_weights =
      w.tensor_class == program::TensorClass::weight || w.tensor_class == program::TensorClass::used_weight;
  if (expert_load >= 0 && of_weights && w.find(model::LogicalDim::experts) >= 0) {
    step.detail = static_cast<std::int16_t>(expert_load);
    step.flops *= program_.expert_loads[at(expert_load)].filled(Plain{});
    count_traffic(step);
  }
  if (bias >= 0 && partial) {
    out = settle_sums(out);
    out = pointwise(program::Op::add, name, {out, bias_for(bias, program_.tensor(out))}, out);
  }
  return adapters_.empty() ? out : adapted(out, name, activation, weight, result);
}

int Builder::adapted(int made, std::string_view name, int activation, int weight,
                     std::span<const model::LogicalDim> result) {
  const auto adapter =
      std::find_if(adapters_.begin(), adapters_.end(), [&](const Adapter& a) { return a.weight == weight; });
  if (adapter == adapters_.end() || program_.blocks.back().phase != program::Phase::forward) return made;
  const int in = adapter->in, out = adapter->out;
  if (last_low_.of != activation || last_low_.in != in)  // matrices with the same input may share it
    last_low_ = {activation, in, product("Low", activation, in, {result[0], result[1], model::LogicalDim::adapter})};
  const int low = last_low_.made;
  int more = product(name, low, out, result);
  more = reshard(more, program_.tensor(made).sharding, program::Urgency::critical);
  return pointwise(program::Op::add, name, {made, more}, made);  // frameworks add it in a separate step
}

int Builder::bias_for(int bias, const program::ProgramTensor& to) {
  const program::ProgramTensor lying = to;  // a copy: adding tensors invalidates references
  bias = used(bias);
  program::Sharding like;
  for (int i = 0; i < program_.tensor(bias).rank; ++i)
    if (const int j = lying.find(program_.tensor(bias).dims[at(i)].dim); j >= 0)
      like.dims[at(i)] = lying.sharding.dims[at(j)];
  return reshard(bias, like, program::Urgency::ahead);
}

int Builder::norm(std::string_view name, int x, int scale, int bias, std::int64_t groups, bool centred) {
  centred |= program_.centred_norms;
  x = settle_sums(x);
  if (groups > 0) {  // gather a row that several devices share
    program::Sharding target = program_.tensor(x).sharding;
    program::AxisList& last = target.dims[at(program_.tensor(x).rank - 1)];
    while (!last.empty() && groups % static_cast<std::int64_t>(program_.ways(last.set())) != 0) last = last.popped();
    x = reshard(x, target, program::Urgency::critical);
  }
  if (scale >= 0) scale = used(scale);
  // Over the last dimension, or over all dimensions of a wider scale.
  const int rank = program_.tensor(x).rank, over = scale >= 0 ? program_.tensor(scale).rank : 1;
  program::AxisSet split = 0;
  for (int i = rank - over; i < rank; ++i) split |= program_.tensor(x).sharding.dims[at(i)].set();
  if (groups > 0) split = 0;
  int sums = -1;
  if (split) {  // the mean is over all devices
    program::ProgramTensor made = program_.tensor(x);
    made.name = "Sums";
    made.tensor_class = program::TensorClass::activation;
    made.store_as(sums_format());
    made.is_given = made.is_kept = false;
    made.rank = static_cast<std::uint8_t>(rank - over + 1);
    made.dims.set(at(rank - over), {model::LogicalDim::other, 2});
    for (int i = rank - over; i < rank; ++i) made.sharding.dims[at(i)] = {};
    made.sharding.unreduced = split;
    sums = program_.add(made);
    emit(program::Op::norm, {x}, {sums}).is_centred = centred;
    sums = settle_sums(sums);
  }
  program::Sharding like;
  for (int i = 0; i < over; ++i) like.dims[at(i)] = program_.tensor(x).sharding.dims[at(rank - over + i)];
  if (scale >= 0) scale = reshard(scale, like, program::Urgency::ahead);
  if (bias >= 0) bias = reshard(used(bias), like, program::Urgency::ahead);
  const int out = pointwise(program::Op::norm, name, {x, scale, sums, bias}, x);
  program::Step& step = program_.steps.back();
  step.is_centred = centred;
  step.composed = program_.composed_norms ? 1 : 0;
  if (groups > 0) step.detail = static_cast<std::int16_t>(groups);
  return out;
}

int Builder::pointwise(program::Op op, std::string_view name, std::initializer_list<int> in, int like) {
  const int out = copy_of(like, name);
  program_.tensors[at(out)].tensor_class = program::TensorClass::activation;
  emit(op, in, {out});
  return out;
}

void Builder::settle_gradient(int tensor) {
  program::Sharding target = program_.tensor(tensor).sharding;
  target.unreduced = 0;
  const int held = gradient(tensor);
  if (held < 0) return;
  const int whole = reshard(held, target, program::Urgency::critical);
  notes(tensor).gradient = whole;
}

int Builder::gradient(int tensor) const { return at(tensor) < notes_.size() ? notes_[at(tensor)].gradient : -1; }

}  // namespace assay::lower
