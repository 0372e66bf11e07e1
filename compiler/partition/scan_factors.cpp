// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/scan_factors.h"

#include <boost/pending/disjoint_sets.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "compiler/ir/scan.h"

namespace einc {
namespace {

// Axes of all nodes of a body by number, those that belong together joined: an axis is carried through an iteration by many ops, and from
// one iteration to the next by a carry, so that what one op needs whole is whole everywhere.
class BodyAxes {
 public:
  explicit BodyAxes(const Graph& body) : body_(body) {
    int count = 0;
    for (const Node& node : body.nodes) first_.push_back(count), count += node.type.rank();
    rank_.resize(static_cast<size_t>(count)), parent_.resize(static_cast<size_t>(count));
    sets_.emplace(rank_.data(), parent_.data());
    for (int a = 0; a < count; ++a) sets_->make_set(a);
  }

  int set_of(NodeId node, int axis) { return sets_->find_set(first_[node.index] + axis); }
  void join(NodeId a, int axis, NodeId b, int other) { sets_->union_set(first_[a.index] + axis, first_[b.index] + other); }
  void join_all(NodeId a, NodeId b) {
    for (int i = 0; i < body_.type(a).rank(); ++i) join(a, i, b, i);
  }
  // Found by its set once all are joined.
  void keep_whole(NodeId node, int axis) { whole_.push_back(first_[node.index] + axis); }
  void keep_whole(NodeId node) {
    for (int i = 0; i < body_.type(node).rank(); ++i) keep_whole(node, i);
  }
  std::set<int> whole_sets() {
    std::set<int> sets;
    for (const int axis : whole_) sets.insert(sets_->find_set(axis));
    return sets;
  }

 private:
  const Graph& body_;
  std::vector<int> first_, rank_, parent_, whole_;
  std::optional<boost::disjoint_sets<int*, int*>> sets_;
};

class ScanFactorBuilder {
 public:
  ScanFactorBuilder(const Graph& graph, NodeId scan)
      : graph_(graph), scan_(graph[scan]), attr_(scan_.as<ScanAttr>()), body_(*attr_.body), sources_(scan_sources(body_)), axes_(body_) {}

  ScanFactors run() {
    for (uint32_t i = 0; i < body_.size(); ++i) node(NodeId{i});
    for (size_t c = 0; c < body_.updates.size(); ++c) axes_.join_all(sources_.states[c], body_.updates[c].value);
    whole_ = axes_.whole_sets();
    // Sizes inside may be others than those of the operands' axes, as where a split makes a coarser axis of one.
    for (uint32_t i = 0; i < body_.size(); ++i) {
      std::vector<int>& labels = out_.body.emplace_back();
      for (int a = 0; a < body_.type(NodeId{i}).rank(); ++a) {
        labels.push_back(label_of(NodeId{i}, a));
        if (labels.back() >= 0) out_.factors.sizes.emplace_back(labels.back(), body_.type(NodeId{i}).axis(a).size);
      }
    }
    for (size_t k = 0; k < scan_.operands.size(); ++k) out_.factors.operands.push_back(operand(k));
    for (size_t r = 0; r < body_.updates.size(); ++r) out_.factors.results.push_back(result(r));
    out_.factors.linear.assign(scan_.operands.size(), Linearity::none);
    return std::move(out_);
  }

 private:
  void node(NodeId id) {
    const Node& node = body_[id];
    // A scan inside would have to be split by labels of its own: it is done whole.
    if (node.op == Op::dropout || node.op == Op::scan || node.op == Op::scan_result) {
      axes_.keep_whole(id);
      for (const NodeId operand : node.operands) axes_.keep_whole(operand);
      return;
    }
    const Factors factors = factors_of(body_, id);
    std::vector<std::optional<std::pair<NodeId, int>>> first(factors.labels.size());
    const auto meet = [&](NodeId at, int axis, int label) {
      if (label < 0) return;
      auto& known = first[static_cast<size_t>(label)];
      if (known)
        axes_.join(known->first, known->second, at, axis);
      else
        known = {at, axis};
      if (factors.labels[static_cast<size_t>(label)].kind != LabelKind::keep) axes_.keep_whole(at, axis);
    };
    for (size_t k = 0; k < node.operands.size(); ++k)
      for (int a = 0; a < body_.type(node.operands[k]).rank(); ++a) meet(node.operands[k], a, factors.operands[k][static_cast<size_t>(a)]);
    for (int a = 0; a < node.type.rank(); ++a) {
      meet(id, a, factors.result[static_cast<size_t>(a)]);
      // What no operand has is new where it is repeated, and else follows from all of an operand.
      if (factors.result[static_cast<size_t>(a)] < 0 && !node.operands.empty() && node.op != Op::broadcast && node.op != Op::map)
        axes_.keep_whole(id, a);
    }
  }

  int label_of(NodeId id, int axis) {
    const int set = axes_.set_of(id, axis);
    if (whole_.contains(set)) return -1;
    const auto [at, fresh] = labels_.try_emplace(set, static_cast<int>(out_.factors.labels.size()));
    if (fresh) out_.factors.labels.push_back({LabelKind::keep});
    return at->second;
  }

  int whole_label() {
    out_.factors.labels.push_back({LabelKind::whole});
    return static_cast<int>(out_.factors.labels.size()) - 1;
  }

  std::vector<int> operand(size_t k) {
    const size_t wholes = static_cast<size_t>(whole_operands(scan_)), slices = static_cast<size_t>(attr_.slices);
    const bool is_slice = k >= wholes && k < wholes + slices, is_initial = k >= wholes + slices;
    const NodeId inside = is_initial ? sources_.states[k - wholes - slices] : k < sources_.inputs.size() ? sources_.inputs[k] : NodeId{};
    std::vector<int> labels;
    for (int a = 0; a < graph_.type(scan_.operands[k]).rank(); ++a) {
      const int own = a - (is_slice ? 1 : 0);
      const int label = inside.valid() && own >= 0 ? out_.body[inside.index][static_cast<size_t>(own)] : -1;
      labels.push_back(label >= 0 ? label : whole_label());
    }
    return labels;
  }

  std::vector<int> result(size_t r) const {
    std::vector<int> labels = out_.body[body_.updates[r].value.index];
    if (r >= static_cast<size_t>(attr_.carries)) labels.insert(labels.begin(), -1);
    return labels;
  }

  const Graph& graph_;
  const Node& scan_;
  const ScanAttr& attr_;
  const Graph& body_;
  const ScanSources sources_;
  BodyAxes axes_;
  std::set<int> whole_;
  std::unordered_map<int, int> labels_;  // by set
  ScanFactors out_;
};

}  // namespace

ScanFactors scan_factors(const Graph& graph, NodeId scan) { return ScanFactorBuilder(graph, scan).run(); }

}  // namespace einc
