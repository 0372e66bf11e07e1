// SPDX-License-Identifier: Apache-2.0
// A contraction reads its right factor in panels whose vectors run along the columns of the result. A weight that lies with its columns
// outermost is copied into such panels by each launch. In a recurrence that copy is repeated in every iteration, and costs as much as the
// product itself where the batch is small.
#include "compiler/fuse/orient_scans.h"

#include <algorithm>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"
#include "compiler/ir/scan.h"

namespace einc {
namespace {

constexpr int64_t kSmallest = 1024;  // elements: a panel of fewer costs no more than the extra launch

// An operand of the scan, and the order in which the body wants its axes.
struct Turn {
  size_t operand = 0;
  NodeId product;
  size_t factor = 0;  // which of the product's
  AxisList order;
};

// Batches, then the depth in the order of the other factor, then the columns as the result has them. Empty: it lies so, or close enough.
AxisList wanted_order(const ContractAttr& attr, size_t factor, int rank) {
  const AxisList &own = factor == 0 ? attr.left : attr.right, &other = factor == 0 ? attr.right : attr.left;
  // The last axis is the columns already, or there is nothing to turn.
  if (own.size() < 2 || own[own.size() - 1] == rank - 1) return {};
  const auto place = [&](int label) {
    for (int i = 0; i < own.size(); ++i)
      if (own[i] == label) return i;
    return -1;
  };
  AxisList order;
  for (int label = 0; label < rank; ++label)
    if (place(label) >= 0 && other.contains(label)) order.push_back(place(label));
  for (int i = 0; i < other.size(); ++i)
    if (other[i] >= rank) order.push_back(place(other[i]));
  for (int label = 0; label < rank; ++label)
    if (place(label) >= 0 && !other.contains(label)) order.push_back(place(label));
  return order.size() == own.size() ? order : AxisList{};
}

// Turns that a body wants of what it reads whole and in one product alone.
std::vector<Turn> turns_of(const BoundGraph& graph, const Node& scan) {
  const Graph& body = *scan.as<ScanAttr>().body;
  std::vector<int> readers(body.size(), 0);
  for (const Node& node : body.nodes)
    for (NodeId x : node.operands) ++readers[x.index];
  for (const Update& update : body.updates) ++readers[update.value.index];
  const ScanSources sources = scan_sources(body);
  std::vector<Turn> turns;
  for (size_t k = 0; k < static_cast<size_t>(whole_operands(scan)) && k < sources.inputs.size(); ++k) {
    const NodeId input = sources.inputs[k];
    // A second reader may want it the way it lies, and a copy for each would cost what the turn saves.
    if (!input.valid() || readers[input.index] != 1 || graph.count(scan.operands[k]) < kSmallest) continue;
    for (uint32_t i = 0; i < body.size(); ++i) {
      const Node& node = body.nodes[i];
      if (node.op != Op::contract || std::ranges::find(node.operands, input) == node.operands.end()) continue;
      const auto& attr = node.as<ContractAttr>();
      const size_t factor = node.operands[0] == input ? 0 : 1;
      const int rank = node.type.rank(), last = rank - 1;
      const bool columns = (factor == 0 ? attr.left : attr.right).contains(last) && !(factor == 0 ? attr.right : attr.left).contains(last);
      if (!columns) continue;
      if (AxisList order = wanted_order(attr, factor, rank); !order.empty()) turns.push_back({k, NodeId{i}, factor, order});
    }
  }
  return turns;
}

// The body with those inputs turned: their types, and the labels of the one product that reads each.
std::shared_ptr<const Graph> turned(const Graph& body, const std::vector<Turn>& turns) {
  auto out = std::make_shared<Graph>(body);
  const ScanSources sources = scan_sources(body);
  for (const Turn& turn : turns) {
    Type& type = out->nodes[sources.inputs[turn.operand].index].type;
    auto& attr = std::get<ContractAttr>(out->nodes[turn.product.index].attr);
    AxisList& labels = turn.factor == 0 ? attr.left : attr.right;
    const Type lay = type;
    const AxisList were = labels;
    labels = AxisList();
    for (int i = 0; i < turn.order.size(); ++i) {
      type.axes[static_cast<size_t>(i)] = lay.axis(turn.order[i]);
      labels.push_back(were[turn.order[i]]);
    }
  }
  return out;
}

}  // namespace

OrientedScans orient_scans(const BoundGraph& graph) {
  const Graph& given = graph.graph;
  const auto of = [&](NodeId id) {
    // One iteration reads it once: turning it first would only add a launch.
    const bool runs = graph[id].op == Op::scan && graph.live[id.index] && graph.value(graph[id].as<ScanAttr>().length) > 1;
    return runs ? turns_of(graph, graph[id]) : std::vector<Turn>();
  };
  bool any = false;
  for (uint32_t i = 0; i < given.size(); ++i) any = any || !of(NodeId{i}).empty();
  if (!any) return {};
  auto out = std::make_unique<Graph>(without_nodes(given));
  Builder build(*out);
  std::vector<NodeId> at(given.size());
  for (uint32_t i = 0; i < given.size(); ++i) {
    Node node = given.nodes[i];
    for (NodeId& x : node.operands) x = at[x.index];
    if (const std::vector<Turn> turns = of(NodeId{i}); !turns.empty()) {
      build.origin = node.origin;
      build.origin.label = Name();
      for (const Turn& turn : turns) node.operands[turn.operand] = build.permute(node.operands[turn.operand], turn.order);
      auto& scan = std::get<ScanAttr>(node.attr);
      scan.body = turned(*scan.body, turns);
    }
    at[i] = build.append(std::move(node));
  }
  for_each_root(*out, [&](NodeId& id) { id = at[id.index]; });
  return {std::move(out), std::move(at)};
}

}  // namespace einc
