// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/remade_values.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/fuse/drawn_parts.h"
#include "compiler/ir/remap.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

std::vector<bool> flags(size_t count, const std::vector<NodeId>& set) {
  std::vector<bool> result(count, false);
  for (NodeId id : set) result[id.index] = true;
  return result;
}

bool of_forward(const Node& node) { return node.origin.phase == Phase::forward; }

// Builds the graph node by node; copies stand right before what first reads them, so that they run, and live, as late as can be.
class Copier {
 public:
  Copier(const Graph& given, std::vector<bool> made, std::vector<bool> chosen, const RemadeValues::Places& places)
      : given_(given),
        made_(std::move(made)),
        chosen_(std::move(chosen)),
        places_(places),
        graph_(std::make_unique<Graph>(without_nodes(given))),
        late_(given.size()),
        where_read_(given.size()) {}

  RemadeValues::Copies run() {
    out_.at.assign(given_.size(), {});
    find_gathers();
    for (uint32_t i = 0; i < given_.size(); ++i) {
      Node node = given_.nodes[i];
      const bool reads_copies = !of_forward(node) && !places_.early[i];
      for (NodeId& x : node.operands) x = reads_copies ? for_reader(x) : out_.at[x.index];
      out_.at[i] = emit(std::move(node));
    }
    for (const auto* copies : {&late_, &where_read_})
      for (uint32_t i = 0; i < given_.size(); ++i)
        if ((*copies)[i].valid()) out_.twice.insert(out_.twice.end(), {out_.at[i], (*copies)[i]});
    for_each_root(*graph_, [&](NodeId& id) { id = out_.at[id.index]; });
    out_.graph = std::move(graph_);
    return std::move(out_);
  }

 private:
  NodeId emit(Node node) {
    graph_->nodes.push_back(std::move(node));
    return NodeId{graph_->size() - 1};
  }

  template <class Operand>
  NodeId copy(NodeId id, Operand operand) {
    Node node = given_[id];
    for (NodeId& x : node.operands) x = operand(x);
    node.origin.phase = Phase::backward;  // a kernel is due with the last of its nodes of the earliest phase
    return emit(std::move(node));
  }

  // What a mesh puts together once for the forward and once for the backward: copies read the latter, so that no whole is held in between.
  void find_gathers() {
    for (uint32_t i = 0; i < given_.size(); ++i) {
      const Node& node = given_.nodes[i];
      if (node.op == Op::all_gather && !of_forward(node)) again_.emplace(node.operands[0].index, NodeId{i});
    }
  }

  NodeId not_made(NodeId id) const {
    const Node& node = given_[id];
    if (node.op != Op::all_gather || !of_forward(node)) return out_.at[id.index];
    const auto at = again_.find(node.operands[0].index);
    const bool alike = at != again_.end() && given_[at->second].as<CollectiveAttr>() == node.as<CollectiveAttr>();
    return alike && out_.at[at->second.index].valid() ? out_.at[at->second.index] : out_.at[id.index];
  }

  // On the way to a chosen value, by kernels of its own.
  NodeId on_the_way(NodeId id) {
    if (!made_[id.index]) return not_made(id);
    NodeId& known = late_[id.index];
    if (known.valid()) return known;
    known = copy(id, [&](NodeId x) { return on_the_way(x); });
    out_.late.push_back(known);
    return known;
  }

  // A chosen value, or what follows from one as the reader makes it for itself.
  NodeId for_reader(NodeId id) {
    if (!made_[id.index]) return not_made(id);
    if (chosen_[id.index]) return on_the_way(id);
    NodeId& known = where_read_[id.index];
    if (known.valid()) return known;
    known = copy(id, [&](NodeId x) { return for_reader(x); });
    if (places_.where_read[id.index]) out_.where_read.push_back(known);
    return known;
  }

  const Graph& given_;
  const std::vector<bool> made_, chosen_;
  const RemadeValues::Places& places_;
  std::unique_ptr<Graph> graph_;
  std::vector<NodeId> late_, where_read_;       // copies of each node given
  std::unordered_map<uint32_t, NodeId> again_;  // what the backward gathers, by what it is put together of
  RemadeValues::Copies out_;
};

}  // namespace

bool RemadeValues::may_be_made(NodeId id) const {
  const Op op = graph_[id].op;
  if (places_.fixed[id.index]) return false;
  return op == Op::map || op == Op::cast || op == Op::contract || op == Op::random || op == Op::pad || op == Op::concat ||
         kind_of(op) == OpKind::view || is_drawn_part(graph_, id);
}

// Per node: whether it is made anew. The chosen values, what lies between them and what is saved, and what readers make of them; of these,
// what something reads.
std::vector<bool> RemadeValues::made_for(const std::vector<NodeId>& chosen) const {
  const Graph& graph = graph_.graph;
  const std::vector<bool> is_chosen = flags(graph.size(), chosen);
  std::vector<bool> made(graph.size(), false), read(graph.size(), false);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!of_forward(node) || !may_be_made(NodeId{i}) || (places_.saved[i] && !is_chosen[i])) continue;
    made[i] = is_chosen[i] || std::ranges::any_of(node.operands, [&](NodeId x) { return made[x.index]; });
  }
  for (uint32_t i = graph.size(); i-- > 0;)
    if (made[i])
      for (NodeId x : graph.nodes[i].operands)
        if (!places_.saved[x.index] && of_forward(graph[x]) && may_be_made(x)) made[x.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;)
    if (graph_.live[i] && ((!of_forward(graph.nodes[i]) && !places_.early[i]) || read[i]))
      for (NodeId x : graph.nodes[i].operands)
        if (made[x.index]) read[x.index] = true;
  return read;
}

int64_t RemadeValues::bytes(NodeId id) const {
  const DType dtype = graph_[id].type.dtype;
  return graph_.count(id) * bytes_of(dtype == DType::real ? DType::f32 : dtype);
}

double RemadeValues::cost(NodeId id) const {
  const Node& node = graph_[id];
  if (kind_of(node.op) == OpKind::view) return 0;
  const double stored = places_.saved[id.index] ? static_cast<double>(bytes(id)) * flops_per_byte_ : 0;
  double flops = static_cast<double>(graph_.count(id));
  if (node.op == Op::contract) {
    flops *= 2;  // a multiplication and an addition for each step of the depth
    const AxisList& left = node.as<ContractAttr>().left;
    for (int k = 0; k < left.size(); ++k)
      if (left[k] >= node.type.rank()) flops *= static_cast<double>(graph_.shape(node.operands[0])[static_cast<size_t>(k)]);
  }
  return flops + stored;
}

double RemadeValues::cost(const std::vector<NodeId>& chosen) const {
  const std::vector<bool> made = made_for(chosen);
  double sum = 0;
  for (uint32_t i = 0; i < made.size(); ++i)
    if (made[i]) sum += cost(NodeId{i});
  for (const Places::Epilogue& epilogue : places_.epilogues)
    if (std::ranges::any_of(epilogue.nodes, [&](NodeId id) { return made[id.index]; }))
      sum += static_cast<double>(epilogue.bytes) * flops_per_byte_;
  return sum;
}

std::vector<bool> RemadeValues::made_and_chosen(const std::vector<NodeId>& chosen) const {
  std::vector<bool> both = made_for(chosen);
  const std::vector<bool> is_chosen = flags(graph_.graph.size(), chosen);
  both.insert(both.end(), is_chosen.begin(), is_chosen.end());
  return both;
}

RemadeValues::Copies RemadeValues::copies(const std::vector<NodeId>& chosen) const {
  return Copier(graph_.graph, made_for(chosen), flags(graph_.graph.size(), chosen), places_).run();
}

}  // namespace einc
