// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/interpret.h"

#include <algorithm>
#include <map>

#include "compiler/ir/interpret_ops.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

class Interpreter {
 public:
  Interpreter(const Graph& graph, Bindings dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
              const InterpretOptions& options)
      : graph_(graph), dims_(std::move(dims)), inputs_(inputs), params_(params), states_(states), options_(options) {}

  InterpretResult run() {
    mark_needed();
    find_shapes();
    refuse_too_large();
    values_.resize(graph_.size());
    result_.counts.resize(graph_.size());
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (users_[i] == 0) continue;
      compute(NodeId{i});
      for (const NodeId operand : graph_.nodes[i].operands)
        if (--users_[operand.index] == 0) values_[operand.index] = Tensor();
    }
    collect();
    return std::move(result_);
  }

 private:
  bool wanted(const Update& update) const {
    if (options_.mode == RunMode::training) return true;
    return is_updated_always(graph_[update.target]);
  }

  // users_[i]: how often node i is read by needed nodes and roots; 0: not needed.
  void mark_needed() {
    users_.assign(graph_.size(), 0);
    const auto root = [&](NodeId id) {
      if (id.valid()) ++users_[id.index];
    };
    for (const Output& output : graph_.outputs) root(output.node);
    for (const Update& update : graph_.updates)
      if (wanted(update)) root(update.value);
    if (options_.mode == RunMode::training || graph_.outputs.empty()) root(graph_.loss);
    if (options_.mode == RunMode::training)
      for (const Update& gradient : graph_.gradients) root(gradient.value);
    for (const NodeId id : options_.watch) root(id);
    for (uint32_t i = graph_.size(); i-- > 0;)
      if (users_[i] > 0)
        for (const NodeId operand : graph_.nodes[i].operands) ++users_[operand.index];
  }

  void find_shapes() {
    shapes_.resize(graph_.size());
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (users_[i] > 0) shapes_[i] = shape_of(graph_, NodeId{i}, dims_);
  }

  // Follows the values that are alive together, eight bytes an element, before any is made.
  void refuse_too_large() const {
    std::vector<uint32_t> users = users_;
    std::vector<uint64_t> bytes(graph_.size(), 0);
    uint64_t alive = 0, peak = 0;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (users[i] == 0) continue;
      bytes[i] = value_bytes(shapes_[i]);
      alive += bytes[i];
      peak = std::max(peak, alive);
      for (const NodeId operand : graph_.nodes[i].operands)
        if (--users[operand.index] == 0) alive -= bytes[operand.index];
    }
    refuse_above(peak, options_.memory_limit);
  }

  void compute(NodeId id) {
    const Node& node = graph_[id];
    Evaluation e{graph_, node, dims_, options_, {}, {}, {}};
    for (const NodeId operand : node.operands) e.in.push_back(&values_[operand.index]);
    if (node.op == Op::input || node.op == Op::param || node.op == Op::state) {
      e.out = given_value(graph_, id, shapes_[id.index], node.op == Op::input ? inputs_ : node.op == Op::param ? params_ : states_);
    } else if (node.op == Op::scan) {
      scans_[id.index] = interpret_scan(e);
      e.out = Tensor::zeros(node.type.dtype, shapes_[id.index]);
    } else if (node.op == Op::scan_result) {
      e.out = scans_.at(node.operands[0].index)[static_cast<size_t>(node.as<ScanResultAttr>().index)];
    } else {
      e.out = Tensor::zeros(node.type.dtype, shapes_[id.index]);
      evaluate(e);
    }
    if (options_.computed) options_.computed(node, e.out);
    round_reals(e.out, options_.arithmetic);
    values_[id.index] = std::move(e.out);
    result_.counts[id.index] = e.counts;
  }

  static void evaluate(Evaluation& e) {
    switch (e.node.op) {
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::scan:
      case Op::scan_result:
        return;
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
        EINC_CHECK(false, "{} is carried out by several devices", to_string(e.node.op));
        return;
      case Op::shift:
        return evaluate_shift(e);
      case Op::constant:
        return constant(e);
      case Op::iota:
        return iota(e);
      case Op::random:
        return evaluate_random(e);
      case Op::map:
        return evaluate_map(e);
      case Op::reduce:
        return evaluate_reduce(e);
      case Op::cumulate:
        return evaluate_cumulate(e);
      case Op::arg_reduce:
        return evaluate_arg_reduce(e);
      case Op::top_k_index:
        return evaluate_top_k(e);
      case Op::contract:
        return evaluate_contract(e);
      case Op::permute:
      case Op::broadcast:
      case Op::split:
      case Op::merge:
      case Op::slice:
      case Op::diagonal:
      case Op::window:
      case Op::stop_gradient:
        return evaluate_view(e);
      case Op::fold:
        return evaluate_fold(e);
      case Op::pad:
        return evaluate_pad(e);
      case Op::concat:
        return evaluate_concat(e);
      case Op::gather:
        return evaluate_gather(e);
      case Op::scatter_add:
        return evaluate_scatter_add(e);
      case Op::scatter_max:
      case Op::scatter_min:
        return evaluate_scatter_extreme(e);
      case Op::scatter_set:
        return evaluate_scatter_set(e);
      case Op::cast:
        e.out = convert(*e.in[0], e.out.dtype);
        // A cast to `real` asks for no format: the simplifier leaves it where `1 * x` stood.
        if (e.options.arithmetic == Arithmetic::casts && e.out.dtype != DType::real) round_reals(e.out, Arithmetic::stored);
        return;
      case Op::softmax:
        return evaluate_softmax(e);
      case Op::logsumexp:
        return evaluate_logsumexp(e);
      case Op::dropout:
        return evaluate_dropout(e);
      case Op::training:
        e.out.ints[0] = e.options.mode == RunMode::training ? 1 : 0;
        return;
    }
  }

  static void constant(Evaluation& e) {
    const ScalarValue& value = e.node.as<ConstantAttr>().value;
    if (e.out.is_real())
      e.out.reals[0] = e.value_of(value);
    else
      e.out.ints[0] = e.integer_of(value);
  }

  static void iota(Evaluation& e) {
    for (int64_t i = 0; i < e.out.count(); ++i) {
      if (e.out.is_real())
        e.out.reals[static_cast<size_t>(i)] = static_cast<double>(i);
      else
        e.out.ints[static_cast<size_t>(i)] = i;
    }
  }

  void collect() {
    for (const Output& output : graph_.outputs) result_.outputs.emplace_back(output.name, values_[output.node.index]);
    for (const Update& update : graph_.updates) {
      if (!wanted(update)) continue;
      const Node& target = graph_[update.target];
      if (target.op == Op::param)
        result_.params[target.as<ParamAttr>().path] = stored_as(target, update.value);
      else
        result_.states[target.as<StateAttr>().path] = stored_as(target, update.value);
    }
    if (graph_.loss.valid() && users_[graph_.loss.index] > 0) result_.loss = values_[graph_.loss.index];
    if (options_.mode == RunMode::training)
      for (const Update& gradient : graph_.gradients) {
        const Node& target = graph_[gradient.target];
        result_.gradients[target.as<ParamAttr>().path] = gradient.value.valid()
                                                             ? values_[gradient.value.index]
                                                             : Tensor::zeros(target.type.dtype, shape_of(graph_, gradient.target, dims_));
      }
    for (const NodeId id : options_.watch) result_.watched.push_back(values_[id.index]);
  }

  Tensor stored_as(const Node& target, NodeId value) const {
    Tensor tensor = convert(values_[value.index], target.type.dtype);
    round_reals(tensor, options_.arithmetic);
    return tensor;
  }

  const Graph& graph_;
  const Bindings dims_;
  const TensorMap &inputs_, &params_, &states_;
  const InterpretOptions& options_;
  std::vector<uint32_t> users_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<Tensor> values_;
  std::map<uint32_t, std::vector<Tensor>> scans_;  // results, by node
  InterpretResult result_;
};

}  // namespace

int64_t Evaluation::value_of(const Poly& poly) const {
  const std::optional<int64_t> value = poly.evaluate_integer(dims);
  if (!value) throw RuntimeFailure(FailureKind::data, fmt::format("{} is no integer for the dims in use", poly.str()));
  return *value;
}

double Evaluation::value_of(const ScalarValue& scalar) const {
  if (const auto* number = std::get_if<double>(&scalar)) return *number;
  const Poly& poly = std::get<Poly>(scalar);
  const std::optional<double> value = poly.to_double(dims);
  if (!value) throw RuntimeFailure(FailureKind::data, fmt::format("{} has no value: set its dims", poly.str()));
  return *value;
}

int64_t Evaluation::integer_of(const ScalarValue& scalar) const {
  if (const auto* poly = std::get_if<Poly>(&scalar)) return wrap_integer(out.dtype, value_of(*poly));
  return convert(Tensor::of_reals({}, {std::get<double>(scalar)}), out.dtype).ints[0];
}

std::string describe_location(const SourceLocation& location) {
  return location.line == 0 ? "" : fmt::format(" ({}:{}:{})", location.file.str(), location.line, location.column);
}

const double* as_reals(const Tensor& tensor, std::vector<double>& storage) {
  if (tensor.is_real()) return tensor.reals.data();
  storage.assign(tensor.ints.begin(), tensor.ints.end());
  return storage.data();
}

Counts& Counts::operator+=(const Counts& b) {
  contraction += b.contraction;
  elementwise += b.elementwise;
  transcendental += b.transcendental;
  reduction += b.reduction;
  other += b.other;
  return *this;
}

InterpretResult interpret_bound(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& states,
                                const InterpretOptions& options) {
  return Interpreter(graph, dims, inputs, {}, states, options).run();
}

InterpretResult interpret(const Graph& graph, const Bindings& given, const TensorMap& inputs, const TensorMap& params,
                          const TensorMap& states, const InterpretOptions& options) {
  return Interpreter(graph, bind_dims(graph, given), inputs, params, states, options).run();
}

Counts count_phase(const Graph& graph, const InterpretResult& result, Phase phase) {
  const std::vector<bool> constant = constant_nodes(graph);
  Counts total;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (!constant[i] && graph.nodes[i].origin.phase == phase) total += result.counts[i];
  return total;
}

}  // namespace einc
