// SPDX-License-Identifier: Apache-2.0
// The rule is not the buffer planner's, which asks what one result may alias: here every pair of a load and a store that can meet in
// memory is looked at, with the stages that the load is needed in. tests/unit/lower compares the answers with an enumeration of all
// elements of small kernels.
#include "compiler/lower/verify_overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace einc {
namespace {

class OverlapVerifier {
 public:
  OverlapVerifier(const Kernel& kernel, std::span<const int64_t> offsets) : kernel_(kernel), offsets_(offsets) {
    for (const Stage& stage : kernel.stages) needed_.push_back(needed_by(kernel, stage));
  }

  std::string run() {
    for (uint16_t written = 0; written < offsets_.size(); ++written) {
      if (access(written) == BufferAccess::read) continue;
      for (uint16_t other = 0; other < offsets_.size() && problem_.empty(); ++other)
        if (other != written && meet(written, other)) check(written, other);
    }
    return problem_;
  }

 private:
  // Where a load and a store lie in the order of a point, and the bytes of an element.
  struct Access {
    size_t stage;
    const Subscript* index;
    int64_t size;
  };

  struct Span {
    int64_t low, high;
  };

  BufferAccess access(uint16_t b) const { return kernel_.buffers[b].access; }
  int64_t size_of(uint16_t b) const { return bytes_of(kernel_.buffers[b].dtype); }
  int64_t end_of(uint16_t b) const { return offsets_[b] + kernel_.buffers[b].count * size_of(b); }
  bool meet(uint16_t a, uint16_t b) const {
    return offsets_[a] != kNoPlace && offsets_[b] != kNoPlace && offsets_[a] < end_of(b) && offsets_[b] < end_of(a);
  }

  void check(uint16_t written, uint16_t other) {
    const auto fail = [&](std::string_view why) { problem_ = fmt::format("b{} overlaps b{}: {}", written, other, why); };
    if (access(other) != BufferAccess::read) return write_apart(written, other) ? void() : fail("both are written");
    if (kernel_.attention) return fail("attention reads rows that others have stored");
    if (kernel_.collective) return fail("devices read what others have sent");
    if (kernel_.scan) return fail("iterations read what earlier ones have stored");
    if (kernel_.sequence) return fail("a later round reads what an earlier one has stored");
    if (offsets_[written] != offsets_[other]) return fail("they begin at different places");
    for (size_t s = 0; s < kernel_.stages.size(); ++s)
      for (const Store& store : kernel_.stages[s].stores) {
        if (store.buffer != written) continue;
        if (store.mode != StoreMode::set || kernel_.stages[s].ordered) return fail("the store adds to what is there");
        for (const Access& load : loads_of(other))
          if (const std::string_view why = conflict(load, {s, &store.index, size_of(written)}); !why.empty()) return fail(why);
      }
  }

  // Whether two buffers at one place are slices of it: no element of the one's stores is one of the other's.
  bool write_apart(uint16_t a, uint16_t b) const {
    if (offsets_[a] != offsets_[b] || size_of(a) != size_of(b)) return false;
    for (const Store* x : stores_of(a))
      for (const Store* y : stores_of(b))
        if (!are_apart(x->index, y->index)) return false;
    return true;
  }

  std::vector<const Store*> stores_of(uint16_t buffer) const {
    std::vector<const Store*> stores;
    const auto add = [&](const std::vector<Store>& some) {
      for (const Store& s : some)
        if (s.buffer == buffer) stores.push_back(&s);
    };
    for (const Stage& stage : kernel_.stages) add(stage.stores);
    if (kernel_.attention)
      for (const AttentionStep& step : kernel_.attention->steps) add(step.stores);
    return stores;
  }

  // The indices lie in ranges that do not meet, as they are or modulo some step of theirs, whatever the axes' values.
  bool are_apart(const Subscript& a, const Subscript& b) const {
    if (!a.dynamic.empty() || !b.dynamic.empty()) return false;
    const auto within = [&](const Affine& index, int64_t step) {
      Span span{index.constant, index.constant};
      for (const Affine::Term& t : index.terms)
        if (t.coefficient % step != 0) (t.coefficient < 0 ? span.low : span.high) += t.coefficient * (kernel_.extent(t.axis) - 1);
      return span;
    };
    const auto apart = [&](int64_t step) {
      const Span x = within(a.affine, step), y = within(b.affine, step);
      return x.low >= 0 && y.low >= 0 && x.high < step && y.high < step && (x.high < y.low || y.high < x.low);
    };
    return apart(INT64_MAX) || std::ranges::any_of(a.affine.terms, [&](const Affine::Term& t) { return apart(std::abs(t.coefficient)); });
  }

  // Every load of a buffer, once for each stage that needs it: a code generator may load again.
  std::vector<Access> loads_of(uint16_t buffer) const {
    std::vector<Access> loads;
    for (size_t s = 0; s < kernel_.stages.size(); ++s)
      for (ValueId id = 0; id < kernel_.values.size(); ++id)
        if (needed_[s][id] && kernel_.values[id].kind == ScalarKind::load && kernel_.values[id].slot == buffer)
          loads.push_back({s, &kernel_.values[id].index, size_of(buffer)});
    return loads;
  }

  std::string_view conflict(const Access& load, const Access& store) const {
    if (load.stage > store.stage) return "a later stage reads what an earlier one has stored";
    if (load.stage == store.stage) {
      if (kernel_.stages[load.stage].ordered) return "an ordered stage reads what it has stored";
      return meet_at_one_element(load, store) ? "" : "another element of the stage may be stored first";
    }
    return meet_at_one_element(load, store) || stay_in_rows(load, store) ? "" : "another point may be stored first";
  }

  std::vector<AxisId> loops(size_t stage) const {
    std::vector<AxisId> axes = kernel_.outer;
    axes.insert(axes.end(), kernel_.stages[stage].axes.begin(), kernel_.stages[stage].axes.end());
    std::erase_if(axes, [&](AxisId a) { return kernel_.extent(a) == 1; });
    return axes;
  }

  // One address for each element of the store's loops, the load's the same: equal addresses belong to one element of both, so to one point.
  bool meet_at_one_element(const Access& load, const Access& store) const {
    if (!(*load.index == *store.index) || load.size != store.size || !store.index->dynamic.empty()) return false;
    const auto reads = loops(load.stage);
    for (AxisId a : kernel_.outer)
      if (kernel_.extent(a) > 1 && store.index->affine.coefficient(a) == 0) return false;
    for (const Affine::Term& t : load.index->affine.terms)
      if (kernel_.extent(t.axis) > 1 && std::ranges::find(reads, t.axis) == reads.end()) return false;
    return one_to_one(store.index->affine, loops(store.stage));
  }

  // Whether different values of the axes give different indices: each coefficient exceeds all that smaller ones reach together.
  bool one_to_one(const Affine& index, const std::vector<AxisId>& axes) const {
    std::vector<std::pair<int64_t, int64_t>> steps;  // coefficient, extent
    for (AxisId a : axes) steps.emplace_back(std::abs(index.coefficient(a)), kernel_.extent(a));
    std::ranges::sort(steps);
    int64_t reach = 0;
    for (const auto& [step, extent] : steps) {
      if (step <= reach) return false;
      reach += step * (extent - 1);
    }
    return true;
  }

  // The bytes that an access touches at one outer point, from the place that the outer axes give; nothing where that is not known.
  std::optional<Span> span_at_point(const Access& access) const {
    const Subscript& index = *access.index;
    Span span{index.affine.constant, index.affine.constant};
    const auto widen = [&](int64_t by) { (by < 0 ? span.low : span.high) += by; };
    for (const Affine::Term& t : index.affine.terms)
      if (!(bits(kernel_.outer) >> t.axis & 1)) widen(t.coefficient * (kernel_.extent(t.axis) - 1));
    for (const Subscript::Dynamic& d : index.dynamic) {
      const Scalar& position = kernel_.values[d.value];
      if (position.kind != ScalarKind::checked) return std::nullopt;
      widen(d.coefficient * (position.integer - 1));
    }
    return Span{span.low * access.size, (span.high + 1) * access.size};
  }

  // At each outer point both stay in a row of its own: the points give both the same place, and these lie further apart than a row is long.
  bool stay_in_rows(const Access& load, const Access& store) const {
    const auto read = span_at_point(load), written = span_at_point(store);
    if (!read || !written) return false;
    Affine row;
    std::vector<AxisId> points;
    for (AxisId a : kernel_.outer) {
      if (kernel_.extent(a) == 1) continue;
      const int64_t step = store.index->affine.coefficient(a) * store.size;
      if (load.index->affine.coefficient(a) * load.size != step) return false;
      row = row + Affine::of_axis(a, step);
      points.push_back(a);
    }
    const int64_t width = std::max(read->high, written->high) - std::min(read->low, written->low);
    if (points.empty()) return true;
    // Different points lie apart by multiples of what divides all their steps.
    int64_t common = 0;
    for (AxisId a : points) common = std::gcd(common, row.coefficient(a));
    return common >= width && one_to_one(row, points);
  }

  const Kernel& kernel_;
  std::span<const int64_t> offsets_;
  std::vector<std::vector<bool>> needed_;  // by stage
  std::string problem_;
};

}  // namespace

std::string verify_overlap(const Kernel& kernel, std::span<const int64_t> offsets) { return OverlapVerifier(kernel, offsets).run(); }

}  // namespace einc
