// SPDX-License-Identifier: Apache-2.0
// Shapes, rounding and initial values: what the interpreter needs before it runs.
#include <unistd.h>

#include <algorithm>

#include "compiler/ir/init_arguments.h"
#include "compiler/ir/interpret_ops.h"
#include "compiler/ir/print.h"
#include "runtime/base/failure.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;  // of one value: sums over a graph stay below 2^63 bytes

[[noreturn]] void fail(FailureKind kind, const std::string& message) { throw RuntimeFailure(kind, message); }

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? " " : "") + std::to_string(size);
  return text + "]";
}

Tensor initial_value(const Graph& graph, NodeId id, const Init& init, Name path, const Bindings& dims, uint64_t seed,
                     Arithmetic arithmetic) {
  const std::optional<std::vector<double>> arguments = init_arguments(init, dims);
  if (!arguments) fail(FailureKind::data, fmt::format("the initialiser of '{}' has no value: set its dims", path.str()));
  const Type& type = graph.type(id);
  Tensor reals = Tensor::zeros(is_floating(type.dtype) ? type.dtype : DType::f64, shape_of(graph, id, dims));
  fill_init(init.kind, *arguments, seed, path.str(), 0, reals.reals);
  round_reals(reals, arithmetic);
  return reals.dtype == type.dtype ? std::move(reals) : convert(reals, type.dtype);
}

// Of every node with this attribute, by path.
template <class PathAttr>
TensorMap initial_values(const Graph& graph, const Bindings& given, uint64_t seed, Arithmetic arithmetic) {
  const Bindings dims = bind_dims(graph, given);
  uint64_t needed = 0;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (std::holds_alternative<PathAttr>(graph.nodes[i].attr)) needed += value_bytes(shape_of(graph, NodeId{i}, dims));
  refuse_above(needed, 0);
  TensorMap values;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (const auto* a = std::get_if<PathAttr>(&graph.nodes[i].attr))
      values[a->path] = initial_value(graph, NodeId{i}, a->init, a->path, dims, seed, arithmetic);
  return values;
}

// `2, 0, 1`: the order of the given axes in which their sizes are those wanted; empty where there is none.
std::string transposition(const std::vector<int64_t>& given, const std::vector<int64_t>& wanted) {
  std::vector<size_t> order;
  for (const int64_t size : wanted) {
    size_t at = 0;
    while (at < given.size() && (given[at] != size || std::ranges::find(order, at) != order.end())) ++at;
    if (at == given.size()) return "";
    order.push_back(at);
  }
  return fmt::format("{}", fmt::join(order, ", "));
}

// What makes room for a tensor of another shape: dims that can be set, or for a transposed weight a renaming that turns it.
std::string how_to_fit(const Graph& graph, const Node& node, const std::vector<int64_t>& given, const std::vector<int64_t>& wanted) {
  if (node.op == Op::input && given.size() > wanted.size()) {
    std::vector<int64_t> squeezed = given;
    std::erase(squeezed, 1);
    return squeezed == wanted ? "; drop the axes of size 1: numpy.squeeze(array)" : "";
  }
  if (given.size() != wanted.size()) return "";
  if (node.op == Op::param && given.size() == 2 && given[0] == wanted[1] && given[1] == wanted[0])
    return "; if it is transposed, a line of --rename's file turns it: name -> name : b a -> a b";
  if (const std::string order = transposition(given, wanted); node.op == Op::input && given.size() > 2 && !order.empty())
    return fmt::format("; if its axes are in another order: numpy.transpose(array, ({}))", order);
  std::string settings;
  for (size_t i = 0; i < wanted.size() && node.op == Op::input; ++i) {
    if (given[i] == wanted[i]) continue;
    const auto dim = std::ranges::find_if(
        graph.dims.dims(), [&](const Dim& d) { return d.kind != DimKind::derived && Poly::dim(d.name) == node.type.axes[i].size; });
    if (given[i] < 1 || dim == graph.dims.dims().end()) return "";
    settings += fmt::format(" -D {}={}", dim->name.str(), given[i]);
  }
  return settings.empty() ? "" : fmt::format(": give{} to the program", settings);
}

}  // namespace

Bindings bind_dims(const Graph& graph, const Bindings& given) {
  const BindResult result = graph.dims.bind(given);
  if (!result.ok()) fail(FailureKind::data, result.problems.front().message);
  return result.values;
}

Tensor given_value(const Graph& graph, NodeId id, const std::vector<int64_t>& shape, const TensorMap& given) {
  const Node& node = graph[id];
  const bool input = node.op == Op::input;
  const Name name = input ? node.as<InputAttr>().name : node.op == Op::param ? node.as<ParamAttr>().path : node.as<StateAttr>().path;
  const auto found = given.find(name);
  if (found == given.end()) fail(FailureKind::data, fmt::format("no value given for {} '{}'", to_string(node.op), name.str()));
  const Tensor& tensor = found->second;
  if (tensor.shape != shape)
    fail(FailureKind::data, fmt::format("{} '{}' has shape {}, but {} is {}{}", to_string(node.op), name.str(), shape_text(tensor.shape),
                                        to_string(node.type), shape_text(shape), how_to_fit(graph, node, tensor.shape, shape)));
  if (tensor.is_real() && !is_floating(node.type.dtype))
    fail(FailureKind::data, fmt::format("{} '{}' is {}, but given as {}", to_string(node.op), name.str(), to_string(node.type.dtype),
                                        to_string(tensor.dtype)));
  if (tensor.dtype == node.type.dtype) return tensor;
  for (int64_t i = 0; is_floating(node.type.dtype) && i < tensor.count(); ++i)
    if (!can_hold(node.type.dtype, tensor.real_at(i)))
      fail(FailureKind::data,
           fmt::format("{} '{}' at {} is {}, which {} cannot hold", to_string(node.op), name.str(), describe_position(shape, i),
                       tensor.real_at(i), to_string(node.type.dtype == DType::real ? DType::f32 : node.type.dtype)));
  Tensor converted = convert(tensor, node.type.dtype);
  for (size_t i = 0; i < converted.ints.size(); ++i)
    if (converted.ints[i] != tensor.ints[i])
      fail(FailureKind::data, fmt::format("{} '{}' at {} is {}, which {} cannot hold", to_string(node.op), name.str(),
                                          describe_position(shape, static_cast<int64_t>(i)), tensor.ints[i], to_string(node.type.dtype)));
  return converted;
}

std::vector<int64_t> shape_of(const Graph& graph, NodeId id, const Bindings& dims) {
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Axis& axis : graph.type(id).axes) {
    const std::optional<int64_t> size = axis.size.evaluate_integer(dims);
    if (!size)
      fail(FailureKind::data, fmt::format("the size {} of '{}' has no value: set its dims", axis.size.str(), describe_node(graph, id)));
    if (*size < 1) fail(FailureKind::data, fmt::format("the size {} of '{}' is {}", axis.size.str(), describe_node(graph, id), *size));
    if (*size > kMaxElements / count)
      fail(FailureKind::resource, fmt::format("'{}' {} is too large to interpret", describe_node(graph, id), to_string(graph.type(id))));
    count *= *size;
    shape.push_back(*size);
  }
  return shape;
}

void round_reals(Tensor& tensor, Arithmetic arithmetic) {
  if (arithmetic != Arithmetic::stored) return;
  for (double& x : tensor.reals) x = round_to_format(tensor.dtype, x);
}

uint64_t value_bytes(std::span<const int64_t> shape) {
  uint64_t bytes = sizeof(double);
  for (const int64_t size : shape) bytes *= static_cast<uint64_t>(size);
  return bytes;
}

void refuse_above(uint64_t needed, uint64_t limit) {
  const auto memory = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  if (limit == 0) limit = memory;
  if (needed > limit)
    fail(FailureKind::resource, fmt::format("interpreting this takes {:.2f} GB of memory, and there are {:.2f} GB: set smaller dims",
                                            static_cast<double>(needed) / 1e9, static_cast<double>(limit) / 1e9));
}

TensorMap initial_params(const Graph& graph, const Bindings& given, uint64_t seed, Arithmetic arithmetic) {
  return initial_values<ParamAttr>(graph, given, seed, arithmetic);
}

TensorMap initial_states(const Graph& graph, const Bindings& given, uint64_t seed, Arithmetic arithmetic) {
  return initial_values<StateAttr>(graph, given, seed, arithmetic);
}

}  // namespace einc
