// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/delay.h"

#include <unordered_map>

#include "compiler/ir/remap.h"
#include "compiler/partition/place_stages.h"

namespace einc {

namespace {

class Delays {
 public:
  Delays(const Graph& graph, std::span<const Layout> declared, std::span<const Factors> factors, std::span<const Layout> wants,
         const LayoutValues& values, std::span<const int> stages)
      : graph_(graph),
        factors_(factors),
        wants_(wants),
        values_(values),
        stages_(stages),
        lazy_(declared.begin(), declared.end()),
        passed_(graph.size()),
        taken_(graph.size()),
        readers_(graph.size(), 0),
        reader_(graph.size(), 0) {}

  // Twice: which sums wait depends on how small they are where they lie, and that on which sums were taken in parts.
  WaitingSums run() {
    count_readers();
    let_wait(nullptr);
    const std::vector<AxisList> first = choose();
    let_wait(&first);  // sums that come out in parts, and what they are read by
    return {choose(), std::move(taken_)};
  }

 private:
  void count_readers() {
    for (uint32_t i = 0; i < graph_.size(); ++i)
      for (const NodeId operand : graph_.nodes[i].operands) ++readers_[operand.index], reader_[operand.index] = i;
    // A root is read by the program's edge as well: counted twice, so that no other reader is taken for its only one.
    for_each_root(graph_, [&](NodeId id) {
      if (id.valid()) readers_[id.index] += 2;
    });
  }

  // Layouts as if every sum waited as long as it can, but for those that `waits` leaves out and whose users want parts.
  void let_wait(const std::vector<AxisList>* waits) {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.operands.empty()) continue;
      if (node.op == Op::scan_result) {
        const uint32_t scan = node.operands[0].index;
        lazy_[i] = scan_result_layout(factors_[scan], scans_.at(scan), node.as<ScanResultAttr>().index);
        continue;
      }
      std::vector<Layout> given;
      for (const NodeId operand : node.operands) given.push_back(lazy_[operand.index]);
      LayoutDecision decision = decide_layouts(graph_, NodeId{i}, factors_[i], given, wants_[i], values_);
      passed_[i] = decision.passed;
      if (node.op == Op::scan) scans_[i] = decision.over;
      for (size_t k = 0; k < node.operands.size(); ++k) taken_[node.operands[k].index] = std::move(decision.operands[k]);
      lazy_[i] = std::move(decision.result);
      if (waits != nullptr) take_in_parts(lazy_[i], node.type, wants_[i], (*waits)[i], graph_.mesh, values_);
    }
  }

  // Elements on one device: two sums in a narrow dtype are as many bytes as theirs in a wide one.
  double elements(uint32_t i) const {
    const Type& type = graph_.nodes[i].type;
    return values_.typical(local_bytes(type, lazy_[i], graph_.mesh), 0) / static_cast<double>(bytes_of(type.dtype));
  }

  // Terms that stages add up, as both gradients of a table that is read at both ends of a model: what is wanted in parts goes from stage to
  // stage in parts.
  bool meet_from_stages(uint32_t i, uint32_t user, int mesh_axis) const {
    if (stages_.empty() || wants_[i].axis_on(mesh_axis) < 0) return false;
    const auto other = [&](NodeId x) { return stages_[x.index] != kEveryStage && stages_[x.index] != stages_[i]; };
    return std::ranges::any_of(graph_.nodes[user].operands, other);
  }

  // A product of fp8 in f32 that becomes one of 16 bits when it gets back its scale: devices add up those, as they do products of 16 bits.
  bool is_narrowed_product(uint32_t i, uint32_t user) const {
    const Node& node = graph_.nodes[i];
    return node.op == Op::contract && bytes_of(graph_.type(node.operands[0]).dtype) == 1 && graph_.nodes[user].op == Op::map &&
           bytes_of(graph_.nodes[user].type.dtype) < bytes_of(node.type.dtype);
  }

  // From the results backwards, since a sum may wait for a reader whose own sum waits.
  std::vector<AxisList> choose() const {
    std::vector<AxisList> waits(graph_.size());
    for (uint32_t i = graph_.size(); i-- > 0;) {
      if (readers_[i] != 1) continue;
      const uint32_t user = reader_[i];
      for (const Unreduced& partial : lazy_[i].partial) {
        if (partial.fn != ReduceFn::sum || !passed_[user].contains(partial.mesh)) continue;
        if (meet_from_stages(i, user, partial.mesh)) continue;
        const double here = elements(i), there = elements(user);
        const bool joined = factors_[user].linear[0] == Linearity::together;
        const bool shrinks = there < here || (there == here && is_narrowed_product(i, user));
        if (there <= here && (joined || shrinks || waits[user].contains(partial.mesh))) waits[i].push_back(partial.mesh);
      }
    }
    return waits;
  }

  const Graph& graph_;
  std::span<const Factors> factors_;
  std::span<const Layout> wants_;
  const LayoutValues& values_;
  std::span<const int> stages_;
  std::vector<Layout> lazy_;
  std::vector<AxisList> passed_;
  std::unordered_map<uint32_t, std::vector<AxisList>> scans_;  // by node: what splits the labels of its factors
  std::vector<Layout> taken_;
  std::vector<int> readers_;
  std::vector<uint32_t> reader_;
};

}  // namespace

bool take_in_parts(Layout& layout, const Type& type, const Layout& want, const AxisList& waits, const Mesh& mesh,
                   const LayoutValues& values) {
  bool taken = false;
  for (const Unreduced& p : std::vector<Unreduced>(layout.partial)) {
    const int axis = p.fn == ReduceFn::sum && waits.contains(p.mesh) ? -1 : want.axis_on(p.mesh);
    if (axis < 0) continue;
    AxisList over = layout.over(axis);
    over.push_back(p.mesh);
    const AxisList& wanted = want.over(axis);
    if (over.size() > wanted.size() || !std::equal(over.begin(), over.end(), wanted.begin())) continue;
    if (!divides_evenly(type.axis(axis).size, over, mesh, values)) continue;
    layout.over(axis) = over;
    std::erase(layout.partial, p);
    taken = true;
  }
  return taken;
}

WaitingSums delayed_sums(const Graph& graph, std::span<const Layout> declared, std::span<const Factors> factors,
                         std::span<const Layout> wants, const LayoutValues& values, std::span<const int> stages) {
  return Delays(graph, declared, factors, wants, values, stages).run();
}

}  // namespace einc
