#include "compiler/driver/cpu_program.h"

#include "runtime/base/failure.h"

namespace einc {
namespace {

bool is_user_state(const Graph& graph, NodeId id) {
  const auto* state = std::get_if<StateAttr>(&graph[id].attr);
  return state != nullptr && state->role == StateRole::user;
}

// Nodes whose values a run must leave in memory.
std::vector<NodeId> roots_of(const Graph& graph, RunMode mode) {
  std::vector<NodeId> roots;
  for (const Output& output : graph.outputs) roots.push_back(output.node);
  for (const Update& update : graph.updates)
    if (mode == RunMode::training || is_user_state(graph, update.target)) roots.push_back(update.value);
  if (graph.loss.valid() && (mode == RunMode::training || graph.outputs.empty())) roots.push_back(graph.loss);
  if (mode == RunMode::training)
    for (const Update& gradient : graph.gradients) roots.push_back(gradient.value);
  return roots;
}

std::vector<bool> needed_by(const Graph& graph, const std::vector<NodeId>& roots) {
  std::vector<bool> live(graph.size(), false);
  for (NodeId id : roots) live[id.index] = true;
  for (const Update& update : graph.updates)
    if (live[update.value.index]) live[update.target.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Op op = graph.nodes[i].op;
    if (op == Op::param || op == Op::state || op == Op::input) live[i] = true;
    if (live[i])
      for (NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  }
  return live;
}

}  // namespace

std::unique_ptr<LoweredGraph> lower_graph(const Graph& graph, const Bindings& given, const CpuOptions& options) {
  const BindResult bound = graph.dims.bind(given);
  if (!bound.ok()) throw RuntimeFailure(FailureKind::data, bound.problems.front().message);
  const std::vector<NodeId> roots = roots_of(graph, options.mode);
  auto result = std::make_unique<LoweredGraph>(LoweredGraph{bind_graph(graph, given, needed_by(graph, roots)), {}, {}});
  result->list = form_kernels(result->bound, roots, options.fusion);
  const BufferPlan plan = plan_buffers(result->bound, result->list, roots);
  result->lowered = make_program(result->bound, result->list, plan, native_processor());
  return result;
}

CpuProgram::CpuProgram(const Graph& graph, const Bindings& given, const CpuOptions& options)
    : lowered_(lower_graph(graph, given, options)) {
  FileCache cache(options.cache);
  native_ = compile_native(lowered_->lowered, cache);
}

}  // namespace einc
