#include "compiler/fuse/form_graph.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/fuse/exact_log_sums.h"
#include "compiler/fuse/guard_updates.h"
#include "compiler/fuse/library_layouts.h"
#include "compiler/fuse/narrow_products.h"
#include "compiler/fuse/orient_operands.h"
#include "compiler/fuse/store_concatenated.h"
#include "compiler/lower/divide_attention.h"
#include "compiler/lower/verify_plan.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr int64_t kLargestValue = int64_t{1} << 60;

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

// In training every param and state is held, read or not.
std::vector<bool> needed_by(const Graph& graph, const std::vector<NodeId>& roots, RunMode mode) {
  std::vector<bool> live(graph.size(), false);
  for (NodeId id : roots) live[id.index] = true;
  for (const Update& update : graph.updates)
    if (live[update.value.index]) live[update.target.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Op op = graph.nodes[i].op;
    if (mode == RunMode::training && (op == Op::param || op == Op::state)) live[i] = true;
    if (live[i])
      for (NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  }
  return live;
}

// Scatters whose updates have no axis but those of the table.
void find_one_hot(BoundGraph& graph) {
  graph.one_hot.assign(graph.graph.size(), false);
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const Node& node = graph.graph.nodes[i];
    if (!graph.live[i] || node.op != Op::scatter_add) continue;
    const GatherAttr& attr = node.as<GatherAttr>();
    std::vector<int> of_table(graph.shape(node.operands[0]).size(), 0);
    for (int k = 0; k < attr.table_map.size(); ++k)
      if (k != attr.axis) ++of_table[static_cast<size_t>(attr.table_map[k])];
    graph.one_hot[i] = std::ranges::all_of(of_table, [](int times) { return times == 1; });
  }
}

BoundGraph bind_for(const Graph& graph, const Bindings& given, RunMode mode) {
  return bind_graph(graph, given, needed_by(graph, roots_of(graph, mode), mode));
}

// What kernels are formed of, where it is not the graph given.
struct FormedOf {
  std::unique_ptr<const Graph> own;
  std::vector<NodeId> at;  // per node given: its place in `own`; empty where that is the same

  void move_to(std::unique_ptr<const Graph> graph, std::vector<NodeId> to) {
    own = std::move(graph);
    if (at.empty()) return void(at = std::move(to));
    for (NodeId& id : at)
      if (id.valid()) id = to[id.index];
  }
};

// The graph with products as a library takes them.
void suit_library(FormedOf& of, const Graph& given, const Bindings& dims, RunMode mode, const KernelTarget& target) {
  if (!target.library_products) return;
  const auto graph = [&]() -> const Graph& { return of.own ? *of.own : given; };
  if (std::unique_ptr<const Graph> narrow = narrow_products(bind_for(graph(), dims, mode), roots_of(graph(), mode), target))
    of.own = std::move(narrow);  // each node in its place
  if (OrientedGraph oriented = orient_operands(bind_for(graph(), dims, mode), target); oriented.graph)
    of.move_to(std::move(oriented.graph), std::move(oriented.at));
}

}  // namespace

bool sizes_fit(const Graph& graph, const Bindings& values) {
  std::unordered_map<Poly, bool> known;
  for (const Node& node : graph.nodes) {
    const Poly count = node.type.count();
    const auto found = known.find(count);
    if (found != known.end()) {
      if (!found->second) return false;
      continue;
    }
    const auto value = count.evaluate_integer(values);
    if (!known.emplace(count, value && *value <= kLargestValue / 8).first->second) return false;
  }
  return true;
}

void place_buffers(FormedGraph& formed, RunMode mode, const std::vector<HeldValue>& held) {
  formed.plan = plan_buffers(formed.bound, formed.list, formed.roots, mode, held);
  if (debug_level() < 1) return;
  const std::string problem = verify_plan(formed.bound, formed.list, formed.plan, formed.roots, held);
  EINC_CHECK(problem.empty(), "the plan of buffers loses a value: {}", problem);
}

FormedGraph form_graph(const Graph& graph, const Bindings& given, RunMode mode, Fusion fusion) {
  const BindResult bound = graph.dims.bind(given);
  if (!bound.ok()) throw RuntimeFailure(FailureKind::data, bound.problems.front().message);
  ExactLogSums exact = exact_log_sums(graph);
  FormedOf of{std::move(exact.graph), std::move(exact.at)};
  suit_library(of, graph, given, mode, fusion.target);
  UpdateGuard guard;
  if (fusion.guards)
    if (std::optional<GuardedGraph> guarded = guard_updates(bind_for(of.own ? *of.own : graph, given, mode), mode))
      of.own = std::move(guarded->graph), guard = std::move(guarded->guard);  // behind the nodes that it has
  const Graph& formed_of = of.own ? *of.own : graph;
  std::vector<NodeId> roots = roots_of(formed_of, mode);
  const std::vector<NodeId> looked_at = guard.roots();
  roots.insert(roots.end(), looked_at.begin(), looked_at.end());
  FormedGraph formed{std::move(of.own), bind_graph(formed_of, given, needed_by(formed_of, roots, mode)), {}, {}, roots};
  formed.at = std::move(of.at);
  formed.bound.guard = std::move(guard);
  if (fusion.target.compares_positions) find_one_hot(formed.bound);
  choose_layouts(formed.bound, roots, fusion.target);
  if (fusion.target.pads_rows) pad_rows(formed.bound, roots, fusion.target);
  formed.list = form_kernels(formed.bound, roots, fusion);
  if (fusion.target.divides_attention) divide_attention(formed.list);
  if (fusion.target.stores_concatenated) store_concatenated(formed.bound, roots, formed.list);
  place_buffers(formed, mode);
  return formed;
}

}  // namespace einc
