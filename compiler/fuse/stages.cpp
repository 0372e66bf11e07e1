// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/stages.h"

#include <algorithm>

#include "compiler/fuse/column_sums.h"

namespace einc {
namespace {

class Stager {
 public:
  Stager(const KernelEvaluator& evaluator, Repeats repeats, Kernel& kernel) : evaluator_(evaluator), repeats_(repeats), kernel_(kernel) {}

  // Gives what is to be done with the sums over all rows, for a second kernel.
  ColumnSums run(std::vector<Store> stores) {
    find_columns(stores);
    find_loops();
    find_levels();
    for (uint16_t r = 0; r < kernel_.reductions.size(); ++r)
      if (!is_column(r)) place_reduction(r);
    for (uint16_t r : columns_.reductions) place_column(r);
    for (Store& store : stores)
      if (needs_columns(store.value))
        place_after(std::move(store));
      else
        place_store(std::move(store));
    join_points();
    std::stable_sort(staged_.begin(), staged_.end(), [](const Staged& a, const Staged& b) {
      if (a.level != b.level) return a.level < b.level;
      return a.stage.axes.size() > b.stage.axes.size();
    });
    for (Staged& s : staged_) kernel_.stages.push_back(std::move(s.stage));
    return std::move(columns_);
  }

 private:
  struct Staged {
    int level;
    Stage stage;
  };

  bool is_column(uint16_t r) const { return column_bits_ >> r & 1; }
  bool needs_columns(ValueId id) const { return needs_[id] & column_bits_; }

  // Sums, element by element of a row, over loops outside those that lie nearest in memory, where other reductions go over these.
  void find_columns(const std::vector<Store>& stores) {
    needs_ = reductions_of_values(kernel_);
    AxisId nearest = 0;
    for (const Store& store : stores)
      for (const Affine::Term& t : store.index.affine.terms) nearest = std::max(nearest, t.axis);
    uint64_t rows = 0;
    for (const auto& axes : evaluator_.reduction_axes)
      if (bits(axes) >> nearest & 1) rows |= bits(axes);
    if (rows == 0) return;
    for (uint16_t r = 0; r < kernel_.reductions.size(); ++r)
      if (!(bits(evaluator_.reduction_axes[r]) & rows) && (loops_of(kernel_.reductions[r].value) & rows) == rows)
        column_bits_ |= uint64_t{1} << r, columns_.reductions.push_back(r);
  }

  // Outer loops are those that nothing is reduced over.
  void find_loops() {
    for (uint16_t r = 0; r < kernel_.reductions.size(); ++r)
      if (!is_column(r)) inner_ |= bits(evaluator_.reduction_axes[r]);
    for (AxisId a = 0; a < kernel_.axes.size(); ++a)
      if (!(inner_ >> a & 1)) kernel_.outer.push_back(a);
    for (AxisId a = 0; a < kernel_.axes.size() && !columns_.reductions.empty(); ++a)
      if (inner_ >> a & 1) columns_.axes.push_back(a);
  }

  void find_levels() {
    for (const Scalar& v : kernel_.values) {
      int level = 0;
      for (ValueId x : v.operands) level = std::max(level, levels_[x]);
      for (const Subscript::Dynamic& d : v.index.dynamic) level = std::max(level, levels_[d.value]);
      for (const Range& g : v.guards)
        for (const Subscript::Dynamic& d : g.index.dynamic) level = std::max(level, levels_[d.value]);
      if (v.kind == ScalarKind::reduction) level = levels_[kernel_.reductions[v.slot].value] + 1;
      levels_.push_back(level);
    }
  }

  Stage& stage(int level, const std::vector<AxisId>& axes) {
    for (Staged& s : staged_)
      if (s.level == level && s.stage.axes == axes) return s.stage;
    staged_.push_back({level, {axes, {}, {}, false}});
    return staged_.back().stage;
  }

  void place_reduction(uint16_t r) {
    const Accumulation& reduction = kernel_.reductions[r];
    const uint64_t own = bits(evaluator_.reduction_axes[r]);
    if (loops_of(reduction.value) & inner_ & ~own) throw Refused{"a reduction inside the loop of another"};
    if (needs_columns(reduction.value)) throw Refused{"a reduction of sums over all rows"};
    for (const AxisId a : kernel_.outer)
      if (repeats_ == Repeats::refused && !(loops_of(reduction.value) >> a & 1) && kernel_.axes[a].extent > 1)
        throw Refused{"a reduction would run again at every point of a loop"};
    check_row(own);
    stage(levels_[reduction.value], evaluator_.reduction_axes[r]).reductions.push_back(r);
  }

  // Beside sums over all rows, what has loops at all goes over whole rows.
  void check_row(uint64_t axes) const {
    if (column_bits_ != 0 && axes != 0 && axes != inner_) throw Refused{"sums over all rows, and loops over less than a row"};
  }

  // Of each row the elements are added to those of other rows.
  void place_column(uint16_t r) {
    const Accumulation& sum = kernel_.reductions[r];
    const bool over_rows = bits(evaluator_.reduction_axes[r]) == bits(kernel_.outer) && (loops_of(sum.value) & inner_) == inner_;
    if (!over_rows || sum.fold != Fold::sum) throw Refused{"a reduction inside the loop of another"};
    if (needs_columns(sum.value)) throw Refused{"a reduction of sums over all rows"};
    stage(levels_[sum.value], columns_.axes).stores.push_back({columns_.buffer_of(r, kernel_), {}, sum.value, StoreMode::sum});
  }

  void place_store(Store store) {
    uint64_t used = 0;
    for (const Affine::Term& t : store.index.affine.terms) used |= bit(t.axis);
    if (bits(kernel_.outer) & ~used) throw Refused{"a stored value is the same at every point of some loop"};
    if (loops_of(store.value) & ~used) throw Refused{"a stored value depends on a loop that its place does not"};
    std::vector<AxisId> axes;
    for (AxisId a = 0; a < kernel_.axes.size(); ++a)
      if ((used & inner_) >> a & 1) axes.push_back(a);
    check_row(bits(axes));
    stage(levels_[store.value], axes).stores.push_back(std::move(store));
  }

  // What is stored once at an outer point is stored when all such values are known: a contraction with its epilogue stays two stages.
  void join_points() {
    const auto is_point = [](const Staged& s) { return s.stage.axes.empty() && s.stage.reductions.empty(); };
    Staged* last = nullptr;
    for (Staged& s : staged_)
      if (is_point(s) && (!last || s.level > last->level)) last = &s;
    if (!last) return;
    std::vector<Store> stores;
    for (Staged& s : staged_)
      if (is_point(s))
        stores.insert(stores.end(), std::make_move_iterator(s.stage.stores.begin()), std::make_move_iterator(s.stage.stores.end()));
    Staged joined{last->level, {{}, {}, std::move(stores), false}};
    std::erase_if(staged_, is_point);
    staged_.push_back(std::move(joined));
  }

  // What is made of sums over all rows.
  void place_after(Store store) {
    uint64_t used = 0;
    for (const Affine::Term& t : store.index.affine.terms) used |= bit(t.axis);
    if (used != inner_ || (loops_of(store.value) & ~inner_)) throw Refused{"sums over all rows are wanted in each row"};
    columns_.stores.push_back(std::move(store));
  }

  // Axes that a value depends on; reductions hide their own. Needs no stages yet.
  uint64_t loops_of(ValueId id) {
    if (loops_.empty()) {
      auto index_loops = [&](const Subscript& index) {
        uint64_t set = 0;
        for (const Affine::Term& t : index.affine.terms) set |= bit(t.axis);
        for (const Subscript::Dynamic& d : index.dynamic) set |= loops_[d.value];
        return set;
      };
      for (const Scalar& v : kernel_.values) {
        uint64_t set = index_loops(v.index);
        for (ValueId x : v.operands) set |= loops_[x];
        for (const Range& g : v.guards) set |= index_loops(g.index);
        if (v.kind == ScalarKind::reduction) set = loops_[kernel_.reductions[v.slot].value] & ~bits(evaluator_.reduction_axes[v.slot]);
        loops_.push_back(set);
      }
    }
    return loops_[id];
  }

  const KernelEvaluator& evaluator_;
  const Repeats repeats_;
  Kernel& kernel_;
  uint64_t inner_ = 0, column_bits_ = 0;  // loops of rows; reductions over all of them
  ColumnSums columns_;
  std::vector<int> levels_;
  std::vector<uint64_t> loops_, needs_;
  std::vector<Staged> staged_;
};

}  // namespace

void form_stages(const KernelEvaluator& evaluator, std::vector<Store> stores, Repeats repeats, BuiltKernel& out) {
  const ColumnSums columns = Stager(evaluator, repeats, out.kernel).run(std::move(stores));
  if (columns.reductions.empty()) return;
  out.buffers.resize(out.kernel.buffers.size());
  out.column_sums = add_columns(columns, out.kernel);
}

}  // namespace einc
