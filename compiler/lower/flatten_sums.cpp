// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/flatten_sums.h"

#include <algorithm>
#include <map>
#include <optional>

namespace einc {
namespace {

class SumFlattener {
 public:
  explicit SumFlattener(Kernel& kernel) : kernel_(kernel), axes_of_(axes_of_values(kernel)) {}

  void run() {
    count_readers();
    std::vector<Stage> stages;
    for (Stage& stage : kernel_.stages) {
      std::map<int64_t, Stage> flat;  // by elements
      std::vector<uint16_t> left;
      for (const uint16_t r : stage.reductions) {
        const bool nested = stage.axes.size() > 1 && !stage.ordered;
        const std::optional<std::vector<ValueId>> made = nested ? made_for(r, bits(stage.axes)) : std::nullopt;
        if (!made || !flatten(*made, stage.axes, flat, r)) left.push_back(r);
      }
      for (auto it = flat.rbegin(); it != flat.rend(); ++it) stages.push_back(std::move(it->second));
      stage.reductions = std::move(left);
      if (!stage.reductions.empty() || !stage.stores.empty()) stages.push_back(std::move(stage));
    }
    kernel_.stages = std::move(stages);
    forget_unused_axes();
  }

 private:
  // An axis without a loop has one point.
  void forget_unused_axes() {
    uint64_t used = 0;
    for (const Stage& stage : kernel_.stages) used |= bits(stage.axes);
    for (AxisId a = 0; a < kernel_.axes.size(); ++a)
      if (!(used >> a & 1)) kernel_.axes[a].extent = 1;
  }

  void count_readers() {
    readers_.assign(kernel_.values.size(), 0);
    for (const Scalar& v : kernel_.values) {
      for (const ValueId x : v.operands) ++readers_[x];
      for (const Subscript::Dynamic& d : v.index.dynamic) ++readers_[d.value];
      for (const Range& g : v.guards)
        for (const Subscript::Dynamic& d : g.index.dynamic) ++readers_[d.value];
    }
    for (const Accumulation& r : kernel_.reductions) {
      ++readers_[r.value];
      if (r.position != kNoValue) ++readers_[r.position];
    }
    for (const Stage& stage : kernel_.stages)
      for (const Store& s : stage.stores) ++readers_[s.value];
  }

  // What depends on the loops and goes into this reduction alone; nothing when a value goes elsewhere, too.
  std::optional<std::vector<ValueId>> made_for(uint16_t r, uint64_t loops) const {
    const Accumulation& reduction = kernel_.reductions[r];
    if (reduction.position != kNoValue) return std::nullopt;
    std::vector<int> reads(kernel_.values.size(), 0);
    std::vector<ValueId> made;
    reads[reduction.value] = 1;
    for (ValueId id = reduction.value + 1; id-- > 0;) {
      if (reads[id] == 0 || (axes_of_[id] & loops) == 0) continue;
      if (reads[id] != readers_[id]) return std::nullopt;
      made.push_back(id);
      for (const ValueId x : kernel_.values[id].operands) ++reads[x];
    }
    return made;
  }

  // The elements that an index runs over, when it takes each of a block in order of some nesting of the loops.
  std::optional<int64_t> block_of(const Affine& index, const std::vector<AxisId>& loops) const {
    std::vector<Affine::Term> terms(index.terms.begin(), index.terms.end());
    std::sort(terms.begin(), terms.end(), [](const Affine::Term& a, const Affine::Term& b) { return a.coefficient < b.coefficient; });
    int64_t elements = 1;
    for (const Affine::Term& t : terms) {
      if (t.coefficient != elements || std::find(loops.begin(), loops.end(), t.axis) == loops.end()) return std::nullopt;
      elements *= kernel_.extent(t.axis);
    }
    int64_t points = 1;
    for (const AxisId a : loops) points *= kernel_.extent(a);
    return elements == points ? std::optional(elements) : std::nullopt;
  }

  bool flatten(const std::vector<ValueId>& made, const std::vector<AxisId>& loops, std::map<int64_t, Stage>& flat, uint16_t r) {
    const Affine* index = nullptr;
    for (const ValueId id : made) {
      const Scalar& v = kernel_.values[id];
      if (v.kind != ScalarKind::load && v.kind != ScalarKind::map && v.kind != ScalarKind::cast) return false;
      if (v.kind != ScalarKind::load) continue;
      if (!v.guards.empty() || !v.index.dynamic.empty() || (index && index->terms != v.index.affine.terms)) return false;
      index = &v.index.affine;
    }
    const std::optional<int64_t> elements = index ? block_of(*index, loops) : std::nullopt;
    if (!elements || (flat.count(*elements) == 0 && kernel_.axes.size() >= 60)) return false;
    Stage& stage = flat[*elements];
    if (stage.axes.empty()) {
      stage.axes = {static_cast<AxisId>(kernel_.axes.size())};
      kernel_.axes.push_back({*elements, kernel_.axes[loops.front()].name});
    }
    stage.reductions.push_back(r);
    for (const ValueId id : made) {
      Scalar& v = kernel_.values[id];
      if (v.kind == ScalarKind::load) v.index.affine.terms = Affine::of_axis(stage.axes.front()).terms;
    }
    return true;
  }

  Kernel& kernel_;
  const std::vector<uint64_t> axes_of_;
  std::vector<int> readers_;
};

}  // namespace

void flatten_sums(Kernel& kernel) {
  if (!kernel.outer.empty() || kernel.sequence || kernel.part || kernel.attention || kernel.reductions.size() < 2) return;
  SumFlattener(kernel).run();
}

}  // namespace einc
