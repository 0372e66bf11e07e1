// SPDX-License-Identifier: Apache-2.0
// The compiler's report in the types that it hands out.
#include "compiler/report/report.h"

#include <unordered_map>

#include "compiler/api/compile_program.h"

namespace einc {
namespace {

class Translator {
 public:
  Translator(const Report& report, const Graph& graph) : report_(report), graph_(graph) {}

  cost::Report run() {
    cost::Report result;
    result.model = report_.model;
    result.precision = report_.precision;
    for (const auto& [name, value] : report_.dims) result.dims.emplace_back(name.str(), value);
    for (const Name name : report_.free_dims) result.free_dims.push_back(name.str());
    result.parameter_count = amount(report_.parameter_count);
    result.trained_count = amount(report_.trained_count);
    result.parameters = tensors(report_.parameters);
    result.inputs = tensors(report_.inputs);
    result.states = tensors(report_.states);
    result.forward = flops(report_.forward);
    result.backward = flops(report_.backward);
    result.optimizer = flops(report_.optimizer);
    result.step = amount(report_.step);
    result.executed = amount(report_.executed);
    result.per_token = amount(report_.per_token);
    result.per_example = amount(report_.per_example);
    result.examples = amount(report_.examples);
    for (const ModuleReport& m : report_.modules)
      result.modules.push_back({m.path, amount(m.parameters), amount(m.flops_forward), amount(m.flops_step), amount(m.saved_activations)});
    const SixNdReport& six = report_.six_nd;
    result.six_nd = {amount(six.parameters), amount(six.tokens), amount(six.estimate), six.ratio};
    result.memory = memory();
    for (const LaunchReport& l : report_.schedule) result.schedule.push_back(launch(l));
    for (const OpReport& o : report_.ops) result.ops.push_back(op(o));
    result.notes = report_.notes;
    return result;
  }

 private:
  const std::string& symbolic(const Poly& formula) {
    auto it = text_.find(formula);
    if (it == text_.end()) it = text_.emplace(formula, fold_names(formula, report_.definitions).str()).first;
    return it->second;
  }

  cost::Amount amount(const Amount& a) {
    cost::Amount result;
    result.symbolic = symbolic(a.formula);
    if (a.value) {
      result.value = a.value->as_integer();
      result.digits = a.value->str();
    }
    result.valid_for_dims = a.for_dims_only || a.holds_here;
    return result;
  }

  cost::Tensor tensor(std::string name, const Type& type, const Amount& count) {
    cost::Tensor result{std::move(name), type.dtype == DType::real ? DType::f32 : type.dtype, {}, {}, amount(count)};
    for (const Axis& axis : type.axes) {
      result.axes.push_back(axis.name.str());
      result.sizes.push_back(symbolic(axis.size));
    }
    return result;
  }

  std::vector<cost::Tensor> tensors(const std::vector<TensorReport>& list) {
    std::vector<cost::Tensor> result;
    for (const TensorReport& t : list) result.push_back(tensor(t.name, t.type, t.count));
    return result;
  }

  cost::Flops flops(const FlopReport& f) {
    return {amount(f.contraction), amount(f.elementwise), amount(f.reduction), amount(f.other), amount(f.total), amount(f.transcendental)};
  }

  cost::Memory memory() {
    const MemoryReport& m = report_.memory;
    return {amount(m.parameters),           amount(m.gradients),     amount(m.optimizer_state), amount(m.state),
            amount(m.saved_activations),    amount(m.saved_planned), amount(m.inputs),          amount(m.workspace),
            amount(m.workspace_per_thread), amount(m.peak_training), amount(m.peak_inference),  at_peak()};
  }

  std::optional<cost::PeakRows> at_peak() const {
    const std::optional<PlannedMemory>& m = report_.memory.at_peak;
    if (!m) return std::nullopt;
    return cost::PeakRows{m->parameters, m->gradients, m->optimizer_state, m->state, m->inputs,
                          m->saved,      m->workspace, m->fragmentation,   m->launch};
  }

  static cost::Launch launch(const LaunchReport& l) {
    const KernelWork& work = l.traffic.work;
    const SourceLocation& at = l.source;
    return {l.name, l.kind, phase(l.phase), l.count, work.flops(), work.bytes_read + work.bytes_written, at.file.str(), at.line, at.column};
  }

  static cost::Phase phase(Phase phase) {
    switch (phase) {
      case Phase::forward:
        return cost::Phase::forward;
      case Phase::backward:
        return cost::Phase::backward;
      case Phase::optimizer:
        return cost::Phase::optimizer;
    }
    return cost::Phase::forward;
  }

  static cost::Storage storage(Storage storage) {
    switch (storage) {
      case Storage::view:
        return cost::Storage::view;
      case Storage::fused:
        return cost::Storage::fused;
      case Storage::materialized:
        return cost::Storage::materialized;
    }
    return cost::Storage::materialized;
  }

  cost::Op op(const OpReport& o) {
    const Node& node = graph_[o.id];
    const SourceLocation& at = node.origin.location;
    cost::Op result;
    result.id = o.id.index;
    result.kind = to_string(node.op);
    result.label = node.origin.label.str();
    result.module = node.origin.module.str();
    result.phase = phase(node.origin.phase);
    result.param_path = o.param_path.str();
    result.file = at.file.str();
    result.line = at.line;
    result.column = at.column;
    const Poly count = node.type.count();
    result.result = tensor(result.label, node.type, {count, value_of(count)});
    result.storage = storage(o.storage);
    result.copy_reason = o.copy_reason;
    result.flops = amount(o.flops);
    result.bytes_read = amount(o.bytes_read);
    result.bytes_written = amount(o.bytes_written);
    result.intensity = o.intensity;
    return result;
  }

  std::optional<Rational> value_of(const Poly& formula) {
    if (dims_.empty())
      for (const auto& [name, value] : report_.dims)
        if (value) dims_.emplace(name, *value);
    return formula.evaluate(dims_);
  }

  const Report& report_;
  const Graph& graph_;
  Bindings dims_;
  std::unordered_map<Poly, std::string> text_;
};

}  // namespace

cost::Report to_public(const Report& report, const Graph& graph) { return Translator(report, graph).run(); }

}  // namespace einc
