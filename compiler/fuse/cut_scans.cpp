// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/cut_scans.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"
#include "compiler/ir/scan.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

using ScanAndResult = std::pair<uint32_t, int>;

// What is cut: scans, and of those the results that nobody keeps.
struct Cuts {
  std::set<uint32_t> scans;
  std::set<ScanAndResult> remade;

  bool is_remade(const Graph& graph, NodeId id) const {
    const Node& node = graph[id];
    return node.op == Op::scan_result && remade.contains({node.operands[0].index, node.as<ScanResultAttr>().index});
  }
};

class CutFinder {
 public:
  CutFinder(const BoundGraph& bound, const std::vector<NodeId>& roots) : bound_(bound), graph_(bound.graph), root_(graph_.size(), false) {
    for (NodeId id : roots) root_[id.index] = true;
  }

  Cuts run() {
    Cuts cuts;
    std::map<ScanAndResult, bool> remade;  // false: somebody reads it otherwise than by slices
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (!bound_.live[i]) continue;
      const Node& node = graph_.nodes[i];
      if (node.op == Op::scan_result && may_be_cut(node.operands[0]) && root_[i]) remade[of(node)] = false;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const Node& read = graph_[node.operands[k]];
        if (read.op != Op::scan_result || !is_collected(read) || !may_be_cut(read.operands[0])) continue;
        const bool slices = may_be_cut(NodeId{i}) && same_pieces(NodeId{i}, read.operands[0]) && is_slice(node, k);
        const auto [known, fresh] = remade.emplace(of(read), slices);
        known->second = known->second && slices;
      }
    }
    for (const auto& [result, whole] : remade)
      if (whole) cuts.remade.insert(result), cuts.scans.insert(result.first);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (bound_.live[i] && graph_.nodes[i].op == Op::scan)
        for (NodeId x : graph_.nodes[i].operands)
          if (cuts.is_remade(graph_, x)) cuts.scans.insert(i);
    return cuts;
  }

 private:
  static ScanAndResult of(const Node& result) { return {result.operands[0].index, result.as<ScanResultAttr>().index}; }
  bool is_collected(const Node& result) const { return of(result).second >= graph_[result.operands[0]].as<ScanAttr>().carries; }

  static bool is_slice(const Node& scan, size_t operand) {
    const auto k = static_cast<int>(operand);
    return k >= whole_operands(scan) && k < whole_operands(scan) + scan.as<ScanAttr>().slices;
  }

  // The carries of all pieces are a value of one more axis.
  bool may_be_cut(NodeId id) const {
    const auto* scan = std::get_if<ScanAttr>(&graph_[id].attr);
    if (scan == nullptr || scan->save_every == 0 || scan->save_every >= bound_.value(scan->length)) return false;
    const ScanSources sources = scan_sources(*scan->body);
    for (int c = 0; c < scan->carries; ++c)
      if (scan->body->type(sources.states[static_cast<size_t>(c)]).rank() == kMaxRank) return false;
    return true;
  }
  bool same_pieces(NodeId a, NodeId b) const {
    const ScanAttr &x = graph_[a].as<ScanAttr>(), &y = graph_[b].as<ScanAttr>();
    return x.save_every == y.save_every && bound_.value(x.length) == bound_.value(y.length);
  }

  const BoundGraph& bound_;
  const Graph& graph_;
  std::vector<bool> root_;
};

// The carries at the start of each piece, by scan.
using Starts = std::map<uint32_t, std::vector<NodeId>>;

// One scan as a scan of pieces, whose body runs its own piece and before that the pieces of what it reads and nobody has kept.
class PieceScan {
 public:
  PieceScan(const BoundGraph& bound, const Cuts& cuts, uint32_t scan, Builder& out, const std::vector<NodeId>& at, Starts& starts)
      : bound_(bound),
        graph_(bound.graph),
        cuts_(cuts),
        id_(scan),
        node_(graph_.nodes[scan]),
        attr_(node_.as<ScanAttr>()),
        length_(bound.value(attr_.length)),
        out_(out),
        at_(at),
        starts_(starts),
        body_graph_(std::make_shared<Graph>()),
        body_(*body_graph_) {
    body_graph_->name = graph_.name;
    body_graph_->dims = graph_.dims;
    body_graph_->loops = graph_.loops;
    body_graph_->loop_contexts = graph_.loop_contexts;
    body_graph_->policy = graph_.policy;
    body_.origin = node_.origin;
  }

  // The scan's node, and by number of a result what gives it now.
  std::map<int, NodeId> run() {
    const size_t carries = static_cast<size_t>(attr_.carries);
    const ScanSources sources = scan_sources(*attr_.body);
    std::vector<NodeId> states;
    for (size_t c = 0; c < carries; ++c) states.push_back(body_.state(state_named(c), attr_.body->type(sources.states[c])));
    const NodeId piece = run_piece(id_, states);
    for (size_t c = 0; c < carries; ++c) body_graph_->updates.push_back({states[c], result_of(piece, id_, static_cast<int>(c))});
    std::map<int, Type> kept = kept_results();
    for (const auto& [r, type] : kept) collect(result_of(piece, id_, r));
    const bool starts = std::ranges::any_of(cuts_.remade, [&](const ScanAndResult& r) { return r.first == id_; });
    if (starts)
      for (const NodeId state : states) collect(state);
    const NodeId scan = finish();

    std::map<int, NodeId> results;
    int next = 0;
    for (; next < attr_.carries; ++next) results[next] = result(scan, next, body_.type(states[static_cast<size_t>(next)]));
    for (const auto& [r, type] : kept) results[r] = result(scan, next++, type);
    if (starts)
      for (const NodeId state : states) {
        Type type = body_.type(state);
        type.axes.insert(type.axes.begin(), Axis{Name(), Poly(pieces())});
        starts_[id_].push_back(result(scan, next++, type));
      }
    return results;
  }

 private:
  int64_t piece_length() const { return attr_.save_every; }
  int64_t pieces() const { return divide_up(length_, piece_length()); }
  static StateAttr state_named(size_t index) { return StateAttr{scan_name(index), Init{}, StateRole::user}; }

  // What others read of its results, with the type of the whole.
  std::map<int, Type> kept_results() const {
    std::map<int, Type> kept;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!bound_.live[i] || node.op != Op::scan_result || node.operands[0].index != id_ || cuts_.is_remade(graph_, NodeId{i})) continue;
      if (node.as<ScanResultAttr>().index >= attr_.carries) kept.emplace(node.as<ScanResultAttr>().index, node.type);
    }
    return kept;
  }

  void collect(NodeId value) {
    body_graph_->updates.push_back({body_.state(state_named(body_graph_->updates.size()), body_.type(value)), value});
  }

  NodeId read(std::map<uint32_t, NodeId>& inputs, NodeId outer, Type type) {
    const auto known = inputs.find(outer.index);
    if (known != inputs.end()) return known->second;
    body_.origin = out_.graph()[outer].origin;
    body_.origin.pinned = false;
    const NodeId input = body_.input(Name(), std::move(type));
    body_.origin = node_.origin;
    inputs.emplace(outer.index, input);
    return input;
  }

  // The iterations of a piece of `scan`, from carries at their start.
  NodeId run_piece(uint32_t scan, const std::vector<NodeId>& carries) {
    const Node& node = graph_.nodes[scan];
    ScanAttr attr = node.as<ScanAttr>();
    const int wholes = whole_operands(node);
    std::vector<NodeId> operands;
    for (int k = 0; k < wholes + attr.slices; ++k) {
      const NodeId given = node.operands[static_cast<size_t>(k)];
      if (k >= wholes && cuts_.is_remade(graph_, given)) {
        operands.push_back(made_again(given));
        continue;
      }
      const NodeId outer = at_[given.index];
      Type type = out_.type(outer);
      if (k >= wholes) type.axes[0].size = Poly(piece_length());
      operands.push_back(read(k < wholes ? wholes_ : slices_, outer, std::move(type)));
    }
    operands.insert(operands.end(), carries.begin(), carries.end());
    attr.all_pieces = length_;
    attr.length = Poly(piece_length());
    attr.save_every = 0;
    body_.origin = node.origin;
    body_.origin.phase = node_.origin.phase;
    const NodeId made = body_.scan(operands, std::move(attr));
    body_.origin = node_.origin;
    return made;
  }

  NodeId result_of(NodeId piece, uint32_t scan, int index) {
    for (uint32_t i = scan; i < graph_.size(); ++i)
      if (const Node& node = graph_.nodes[i];
          node.op == Op::scan_result && node.operands[0].index == scan && node.as<ScanResultAttr>().index == index)
        body_.origin = node.origin;
    const NodeId result = body_.scan_result(piece, index, Name());
    body_.origin = node_.origin;
    return result;
  }

  // Of what a scan before collected and nobody kept: this piece's.
  NodeId made_again(NodeId given) {
    const Node& node = graph_[given];
    const uint32_t scan = node.operands[0].index;
    auto known = again_.find(scan);
    if (known == again_.end()) {
      std::vector<NodeId> carries;
      for (const NodeId start : starts_.at(scan)) {
        Type type = out_.type(start);
        type.axes.erase(type.axes.begin());
        carries.push_back(read(slices_, start, std::move(type)));
      }
      known = again_.emplace(scan, run_piece(scan, carries)).first;
    }
    const ScanAndResult wanted{scan, node.as<ScanResultAttr>().index};
    const auto [result, fresh] = results_again_.try_emplace(wanted);
    if (fresh) result->second = result_of(known->second, scan, wanted.second);
    return result->second;
  }

  NodeId finish() {
    std::vector<NodeId> operands;
    for (const auto* inputs : {&wholes_, &slices_})
      for (const auto& [outer, input] : *inputs) {
        std::get<InputAttr>((*body_graph_)[input].attr).name = scan_name(operands.size());
        operands.push_back(NodeId{outer});
      }
    for (size_t k = node_.operands.size() - static_cast<size_t>(attr_.carries); k < node_.operands.size(); ++k)
      operands.push_back(at_[node_.operands[k].index]);
    out_.origin = node_.origin;
    return out_.scan(operands, ScanAttr{body_graph_, Poly(pieces()), static_cast<int>(slices_.size()), attr_.carries, attr_.direction});
  }

  NodeId result(NodeId scan, int index, Type type) {
    Node node;
    node.op = Op::scan_result;
    node.type = std::move(type);
    node.operands = {scan};
    node.attr = ScanResultAttr{index};
    node.origin = node_.origin;
    return out_.append(std::move(node));
  }

  const BoundGraph& bound_;
  const Graph& graph_;
  const Cuts& cuts_;
  const uint32_t id_;
  const Node& node_;
  const ScanAttr& attr_;
  const int64_t length_;
  Builder& out_;
  const std::vector<NodeId>& at_;
  Starts& starts_;
  std::shared_ptr<Graph> body_graph_;
  Builder body_;
  std::map<uint32_t, NodeId> wholes_, slices_;  // inputs of the body, by what they read outside
  std::map<uint32_t, NodeId> again_;            // scans that the body runs again
  std::map<ScanAndResult, NodeId> results_again_;
};

}  // namespace

CutScans cut_scans(const BoundGraph& bound, const std::vector<NodeId>& roots) {
  const Graph& given = bound.graph;
  const Cuts cuts = CutFinder(bound, roots).run();
  if (cuts.scans.empty()) return {};
  auto out = std::make_unique<Graph>(without_nodes(given));
  Builder build(*out);
  std::vector<NodeId> at(given.size());
  std::map<uint32_t, std::map<int, NodeId>> results;
  Starts starts;
  for (uint32_t i = 0; i < given.size(); ++i) {
    Node node = given.nodes[i];
    const bool of_cut = node.op == Op::scan_result && cuts.scans.contains(node.operands[0].index);
    if (cuts.scans.contains(i)) {
      results[i] = PieceScan(bound, cuts, i, build, at, starts).run();
      at[i] = build.graph()[results[i].begin()->second].operands[0];
    } else if (of_cut && results[node.operands[0].index].contains(node.as<ScanResultAttr>().index)) {
      at[i] = results[node.operands[0].index].at(node.as<ScanResultAttr>().index);
      (*out)[at[i]].origin = node.origin;
    } else if (of_cut) {
      const NodeId zero = build.constant(Poly(0), node.type.dtype);
      at[i] = build.broadcast(zero, {}, node.type.axes);
    } else {
      for (NodeId& x : node.operands) x = at[x.index];
      at[i] = build.append(std::move(node));
    }
  }
  for_each_root(*out, [&](NodeId& id) { id = at[id.index]; });
  return {std::move(out), std::move(at)};
}

}  // namespace einc
