// SPDX-License-Identifier: Apache-2.0
// Liveness of one scan, found as in a loop: a result that is read makes its value in the body live, a live carry makes its next value
// live, and so on until nothing is added. A fixpoint is needed because a carry's next value may read another carry. Operands, states and
// results are numbered densely by their names (compiler/ir/scan.h), so what stays is numbered anew.
#include "compiler/scan/prune.h"

#include "compiler/ir/scan.h"

namespace einc {
namespace {

// What of one scan is needed.
struct Needs {
  // Per node of the body, per state of it (carries first, then what is collected), and per operand of the scan.
  std::vector<bool> nodes, results, inputs;
};

Needs find_needs(const ScanAttr& scan, const std::vector<bool>& read, size_t operands) {
  const Graph& body = *scan.body;
  const ScanSources sources = scan_sources(body);
  Needs needs{std::vector<bool>(body.size(), false), std::vector<bool>(body.updates.size(), false), std::vector<bool>(operands, false)};
  std::vector<NodeId> open;
  const auto take = [&](NodeId id) {
    if (needs.nodes[id.index]) return;
    needs.nodes[id.index] = true;
    open.push_back(id);
  };
  std::vector<int> state_of(body.size(), -1);
  for (size_t c = 0; c < sources.states.size(); ++c) state_of[sources.states[c].index] = static_cast<int>(c);
  for (size_t r = 0; r < read.size(); ++r)
    if (read[r]) take(sources.states[r]);
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    for (NodeId x : body[id].operands) take(x);
    // The value at the start of an iteration is the one that the iteration before has made.
    if (const int c = state_of[id.index]; c >= 0) {
      needs.results[static_cast<size_t>(c)] = true;
      take(body.updates[static_cast<size_t>(c)].value);
    }
  }
  for (size_t k = 0; k < sources.inputs.size(); ++k) needs.inputs[k] = sources.inputs[k].valid() && needs.nodes[sources.inputs[k].index];
  // Initial values are the last operands, one for each carry.
  for (size_t c = 0; c < static_cast<size_t>(scan.carries); ++c)
    needs.inputs[operands - static_cast<size_t>(scan.carries) + c] = needs.results[c];
  return needs;
}

// The new number of each that is kept.
std::vector<size_t> numbers_of(const std::vector<bool>& kept) {
  std::vector<size_t> numbers(kept.size(), 0);
  size_t next = 0;
  for (size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) numbers[i] = next++;
  return numbers;
}

// The live nodes, in their order. Bodies are shared between scans and never changed, so this is a new graph.
std::shared_ptr<const Graph> reduced_body(const Graph& body, const Needs& needs) {
  auto out = std::make_shared<Graph>(body);
  out->nodes.clear();
  out->updates.clear();
  const std::vector<size_t> operand = numbers_of(needs.inputs), result = numbers_of(needs.results);
  const ScanSources sources = scan_sources(body);
  std::vector<NodeId> to(body.size());
  std::vector<size_t> place(body.size(), 0);
  for (size_t k = 0; k < sources.inputs.size(); ++k)
    if (sources.inputs[k].valid()) place[sources.inputs[k].index] = operand[k];
  for (size_t c = 0; c < sources.states.size(); ++c) place[sources.states[c].index] = result[c];
  for (uint32_t i = 0; i < body.size(); ++i) {
    if (!needs.nodes[i]) continue;
    Node node = body.nodes[i];
    for (NodeId& x : node.operands) x = to[x.index];
    if (node.op == Op::input) std::get<InputAttr>(node.attr).name = scan_name(place[i]);
    if (node.op == Op::state) std::get<StateAttr>(node.attr).path = scan_name(place[i]);
    to[i] = NodeId{out->size()};
    out->nodes.push_back(std::move(node));
  }
  for (size_t c = 0; c < body.updates.size(); ++c)
    if (needs.results[c]) out->updates.push_back({to[body.updates[c].target.index], to[body.updates[c].value.index]});
  return out;
}

size_t dropped(const std::vector<bool>& kept) {
  size_t count = 0;
  for (const bool k : kept) count += !k;
  return count;
}

}  // namespace

Pruned prune_scans(Graph graph) {
  Pruned out{std::move(graph), 0};
  std::vector<std::vector<NodeId>> results(out.graph.size());
  for (uint32_t i = 0; i < out.graph.size(); ++i)
    if (out.graph.nodes[i].op == Op::scan_result) results[out.graph.nodes[i].operands[0].index].push_back(NodeId{i});
  for (uint32_t i = 0; i < out.graph.size(); ++i) {
    Node& node = out.graph.nodes[i];
    if (node.op != Op::scan) continue;
    ScanAttr& scan = std::get<ScanAttr>(node.attr);
    std::vector<bool> read(scan.body->updates.size(), false);
    for (NodeId r : results[i]) read[static_cast<size_t>(out.graph[r].as<ScanResultAttr>().index)] = true;
    const Needs needs = find_needs(scan, read, node.operands.size());
    const size_t count = dropped(needs.inputs) + dropped(needs.results);
    if (count == 0 || dropped(needs.results) == needs.results.size()) continue;  // the scan itself is dead
    out.count += count;
    const std::vector<size_t> numbers = numbers_of(needs.results);
    for (NodeId r : results[i]) {
      int& index = std::get<ScanResultAttr>(out.graph[r].attr).index;
      index = static_cast<int>(numbers[static_cast<size_t>(index)]);
    }
    const auto wholes = static_cast<size_t>(whole_operands(node)), slices = static_cast<size_t>(scan.slices);
    scan.body = reduced_body(*scan.body, needs);
    decltype(node.operands) kept;
    int kept_slices = 0, kept_carries = 0;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      if (!needs.inputs[k]) continue;
      kept.push_back(node.operands[k]);
      kept_slices += k >= wholes && k < wholes + slices;
      kept_carries += k >= wholes + slices;
    }
    node.operands = std::move(kept);
    scan.slices = kept_slices;
    scan.carries = kept_carries;
  }
  return out;
}

}  // namespace einc
