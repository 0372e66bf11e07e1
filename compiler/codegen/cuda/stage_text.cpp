// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/stage_text.h"

#include <algorithm>
#include <set>

#include "compiler/codegen/cuda/row_sums_text.h"
#include "runtime/base/check.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

class StageText : RowSumsText {
 public:
  StageText(const Kernel& kernel, const ThreadPlan& plan) : RowSumsText(kernel, plan) {}

  std::string run() {
    ++depth_;
    declare_shared();
    declare_tiles();
    declare_row();
    find_point();
    if (kernel_.part) {
      load_columns();
      rows_of_a_part([&] { stages(); });
    } else if (kernel_.sequence) {
      const AxisId a = *kernel_.sequence;
      axis_[a] = fmt::format("a{}", a);
      open(fmt::format("for ({0} a{1} = 0; a{1} < {2}; ++a{1})", index_type(), a, kernel_.extent(a)));
      stages();
      barrier();
      close();
    } else {
      stages();
    }
    return std::move(text_);
  }

 private:
  // --- the point ---

  void find_point() {
    switch (plan_.kind) {
      case CudaTeam::thread: {
        const int64_t points = plan_.points / (plan_.pack_axis ? plan_.pack : 1);
        line("const {0} point = {0}(blockIdx.x) * {1} + threadIdx.x;", index_type(), plan_.block_threads);
        line("if (point >= {}) return;", literal(points));
        decode(plan_.outer, "point");
        return;
      }
      case CudaTeam::warp:
        if (kernel_.part) return;
        line("const {0} point = {0}(blockIdx.x) * {1} + threadIdx.x / {2};", index_type(), plan_.teams(), plan_.team);
        line("if (point >= {}) return;", literal(plan_.points));
        decode(plan_.outer, "point");
        find_row_start();
        return;
      case CudaTeam::block:
        if (kernel_.part) return;
        line("const {0} point = {0}(blockIdx.x);", index_type());
        decode(plan_.outer, "point");
        find_row_start();
        return;
      case CudaTeam::column:
        columns();
        return;
    }
  }

  void find_row_start() {
    if (plan_.row_start) line("const {0} row_start = {0}(({1}) & {2});", index_type(), flat(*plan_.row_start), plan_.pack - 1);
  }

  void columns() {
    std::vector<AxisId> others = plan_.outer;
    const AxisId along = others.back();
    others.pop_back();
    const int64_t extent = kernel_.extent(along), chunks = (extent + 31) / 32;
    line("const {0} chunk = {0}(blockIdx.x) % {1}, others = {0}(blockIdx.x) / {1}, lane = chunk * 32 + {0}(threadIdx.x);", index_type(),
         chunks);
    decode(others, "others");
    axis_[along] = fmt::format("a{}", along);
    if (extent % 32 == 0) {
      line("const {} a{} = lane;", index_type(), along);
    } else {
      line("const bool inside = lane < {};", extent);
      line("const {} a{} = inside ? lane : {};", index_type(), along, extent - 1);
      inside_ = "inside";
    }
  }

  // --- stages ---

  void stages() {
    const uint64_t around = bits(kernel_.outer) | (kernel_.sequence ? bit(*kernel_.sequence) : 0);
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const Stage& stage = kernel_.stages[s];
      needed_ = needed_by(kernel_, stage);
      tiles_.assign(stage.stores.size(), nullptr);
      for (const TileStore& tile : plan_.tiles)
        if (tile.stage == s) tiles_[tile.store] = &tile;
      find_kept(s);
      // What the last stage stores once for the team is read by the thread that stores it: it may lie where it is read.
      once_inside_ = is_team() && stage.axes.empty() && stage.reductions.empty() && s + 1 == kernel_.stages.size();
      if (!per_element() && !once_inside_) hoist_values(around);
      for (uint16_t r : stage.reductions) start(r);
      if (stage.axes.empty())
        point_stage(stage, around);
      else if (!is_team())
        serial_stage(stage, plan_.stages[s], around, 0);
      else
        shared_stage(stage, plan_.stages[s], around);
      finish(stage.reductions);
      if (is_team() && s + 1 < kernel_.stages.size() && !synchronised_) barrier();
    }
  }

  // Packs of points: what depends on the packed axis is made element by element.
  bool per_element() const { return !is_team() && plan_.pack_axis.has_value(); }
  void hoist_values(uint64_t entered) { hoist(needed_, entered); }

  void start(uint16_t index) {
    const Accumulation& r = kernel_.reductions[index];
    if (per_element()) return start_elements(index);
    results_[index] = fmt::format("r{}", index);
    line("{} r{} = {};", register_type(folded_dtype(r)), index, identity(r.fold, folded_dtype(r)));
    if (!keeps_position(r)) return;
    places_[index] = fmt::format("p{}", index);
    line("i64 p{} = {};", index, literal(INT64_MAX));
  }

  // One accumulator for each element of a pack of points.
  void start_elements(uint16_t index) {
    const Accumulation& r = kernel_.reductions[index];
    results_[index] = fmt::format("r{}[u]", index);
    line("{} r{}[{}];", register_type(folded_dtype(r)), index, plan_.pack);
    if (keeps_position(r)) {
      places_[index] = fmt::format("p{}[u]", index);
      line("i64 p{}[{}];", index, plan_.pack);
    }
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", plan_.pack));
    line("{} = {};", results_[index], identity(r.fold, folded_dtype(r)));
    if (keeps_position(r)) line("{} = {};", places_[index], literal(INT64_MAX));
    close();
  }

  void point_stage(const Stage& stage, uint64_t around) {
    if (per_element()) return elements(stage, around);
    std::string once = inside_;
    if (is_team()) once = fmt::format("{}{}{} == 0", once, once.empty() ? "" : " && ", rank());
    if (!stage.reductions.empty())
      for (uint16_t r : stage.reductions) accumulate_one(r, once);
    if (stage.stores.empty()) return;
    if (!once.empty()) open(fmt::format("if ({})", once));
    if (once_inside_) hoist_values(around);
    for (const Store& s : stage.stores) store(s);
    if (!once.empty()) close();
  }

  void accumulate_one(uint16_t r, const std::string& once) {
    if (!once.empty()) open(fmt::format("if ({})", once));
    accumulate(r, results_[r], places_[r]);
    if (!once.empty()) close();
  }

  void serial_stage(const Stage& stage, const std::vector<AxisId>& axes, uint64_t entered, size_t level) {
    if (per_element() && level == axes.size()) return elements(stage, entered);
    if (level > 0) hoist_values(per_element() ? entered & ~bit(*plan_.pack_axis) : entered);
    if (level == axes.size()) {
      for (uint16_t r : stage.reductions) accumulate(r, results_[r], places_[r]);
      for (const Store& s : stage.stores) store(s);
      return;
    }
    const AxisId a = axes[level];
    axis_[a] = fmt::format("a{}", a);
    open(fmt::format("for ({0} a{1} = 0; a{1} < {2}; ++a{1})", index_type(), a, literal(kernel_.extent(a))));
    serial_stage(stage, axes, entered | bit(a), level + 1);
    close();
  }

  // The loops of a stage as one, divided among the team.
  void shared_stage(const Stage& stage, const std::vector<AxisId>& axes, uint64_t around) {
    const bool rows = keeps_row(axes);
    if (rows) {
      load_steps(first_kept_, axes);
      row_loop(axes);
    } else {
      open(fmt::format("for ({0} i = {0}({1}); i < {2}; i += {3})", index_type(), rank(), literal(packs_of(axes)), plan_.team));
      decode(axes, "i");
    }
    if (std::any_of(axes.begin(), axes.end(), [&](AxisId a) { return packed(a); })) {
      elements(stage, around | bits(axes));
    } else {
      if (rows) use_kept(around | bits(axes));
      hoist_values(around | bits(axes));
      if (!inside_.empty()) open(fmt::format("if ({})", inside_));
      for (uint16_t r : stage.reductions) accumulate(r, results_[r], places_[r]);
      for (size_t k = 0; k < stage.stores.size(); ++k) put(stage, k);
      if (!inside_.empty()) close();
    }
    close();
    store_tiles(stage);
  }

  // --- tiles of stores that transpose ---

  std::string tile_name(const TileStore& tile) const { return fmt::format("tile{}_{}", tile.stage, tile.store); }

  // Rows of a tile lie a word apart in the banks.
  void declare_tiles() {
    for (const TileStore& tile : plan_.tiles) {
      const DType dtype = dtype_of(kernel_.stages[tile.stage].stores[tile.store]);
      line("__shared__ {} {}[{}][{}];", storage_type(dtype), tile_name(tile), kernel_.extent(tile.axes.across),
           kernel_.extent(tile.axes.along) + std::max(1, 4 / bytes_of(dtype)));
    }
  }

  void put(const Stage& stage, size_t k) {
    const Store& s = stage.stores[k];
    const TileStore* tile = tiles_[k];
    if (s.mode == StoreMode::sum) return add_to_sum(s);
    if (!tile) return store(s);
    const DType dtype = dtype_of(s);
    line("{}[{}][{}] = {};", tile_name(*tile), axis_[tile->axes.across], axis_[tile->axes.along],
         stored(as(s.value, register_dtype(dtype)), register_dtype(dtype), dtype));
  }

  // From the tiles to memory, neighbours there in packs.
  void store_tiles(const Stage& stage) {
    if (std::ranges::none_of(tiles_, [](const TileStore* tile) { return tile != nullptr; })) return;
    line("__syncthreads();");
    for (size_t k = 0; k < stage.stores.size(); ++k) {
      if (!tiles_[k]) continue;
      const Store& s = stage.stores[k];
      const auto [along, across] = tiles_[k]->axes;
      int width = 16 / bytes_of(dtype_of(s));
      while (width > 1 && (kernel_.extent(across) % width != 0 || !packs(kernel_, s.buffer, s.index, across, width))) width /= 2;
      const int64_t packs_across = kernel_.extent(across) / width;
      const std::string type = fmt::format("Vec<{}, {}>", storage_type(dtype_of(s)), width);
      open(fmt::format("for (int i = threadIdx.x; i < {}; i += {})", packs_across * kernel_.extent(along), plan_.team));
      line("const int across = i % {0} * {1}, along = i / {0};", packs_across, width);
      line("{} pack;", type);
      line("#pragma unroll");
      line("for (int u = 0; u < {}; ++u) pack.at[u] = {}[across + u][along];", width, tile_name(*tiles_[k]));
      axis_[along] = "along", axis_[across] = "across";
      line("*reinterpret_cast<{}*>(b{} + ({})) = pack;", type, s.buffer, index(s.index));
      close();
    }
  }

  // --- packs ---

  bool loads_pack(ValueId id) const { return plan_.loads_pack(kernel_, id); }
  bool stores_pack(const Store& s) const { return s.mode == StoreMode::set && plan_.lies_in_packs(kernel_, s.buffer, s.index); }
  std::string pack_type(uint16_t buffer) const {
    return fmt::format("Vec<{}, {}>", storage_type(kernel_.buffers[buffer].dtype), plan_.pack);
  }

  // The elements of a pack: loads of whole packs, a loop over the elements, stores of whole packs.
  void elements(const Stage& stage, uint64_t entered) {
    const AxisId axis = *plan_.pack_axis;
    hoist_values(entered & ~bit(axis));
    std::vector<std::pair<ValueId, std::string>> loads;
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      if (!needed_[id] || !(axes_of_[id] >> axis & 1) || !loads_pack(id) || (axes_of_[id] & ~entered) != 0) continue;
      const Scalar& v = kernel_.values[id];
      const bool kept = kept_.count(id) > 0;
      const std::string pack = fmt::format("l{}{}", id, kept ? "[t]" : "");
      if (!kept) line("{} {};", pack_type(v.slot), pack);
      if (in_shared_.contains(id))
        line("{} = row{}[i];", pack, id);
      else if (!kept)
        load_pack(v, pack);
      if (std::ranges::count(plan_.in_shared, id) > 0 && in_shared_.insert(id).second) line("row{}[i] = {};", id, pack);
      loads.emplace_back(id, pack + ".at[u]");
    }
    std::vector<size_t> packs_stored;
    for (size_t k = 0; k < stage.stores.size(); ++k)
      if (stores_pack(stage.stores[k])) packs_stored.push_back(k), line("{} s{};", pack_type(stage.stores[k].buffer), k);
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", plan_.pack));
    const std::string whole = axis_[axis];
    axis_[axis] = fmt::format("({} + u)", whole);
    if (plan_.row_start) open(fmt::format("if ({})", in_row()));
    for (const auto& [id, element] : loads) {
      line("const {} v{} = {};", register_type(kernel_.values[id].dtype), id,
           loaded(element, kernel_.buffers[kernel_.values[id].slot].dtype));
      scopes_.back()[id] = fmt::format("v{}", id);
    }
    hoist_values(entered);
    for (uint16_t r : stage.reductions) accumulate(r, results_[r], places_[r]);
    for (size_t k = 0; k < stage.stores.size(); ++k) {
      const Store& s = stage.stores[k];
      if (!stores_pack(s)) {
        put(stage, k);
        continue;
      }
      const DType dtype = kernel_.buffers[s.buffer].dtype;
      line("s{}.at[u] = {};", k, stored(as(s.value, register_dtype(dtype)), register_dtype(dtype), dtype));
    }
    if (plan_.row_start) close();
    axis_[axis] = whole;
    close();
    for (size_t k : packs_stored) store_pack(stage.stores[k], k);
  }

  // Whether an element of a pack of memory is the row's; of a whole pack all are.
  std::string in_row() const {
    const AxisId axis = *plan_.pack_axis;
    return fmt::format("{}({}) < {}u", wide_ ? "u64" : "u32", axis_[axis], kernel_.extent(axis));
  }
  std::string whole_in_row() const {
    const AxisId axis = *plan_.pack_axis;
    return fmt::format("{0} >= 0 && {0} <= {1}", axis_[axis], literal(kernel_.extent(axis) - plan_.pack));
  }

  // Moves a pack as a whole, and one that is in part its row's element by element.
  void move_pack(const std::string& whole, const auto& element) {
    if (!plan_.row_start) return line("{}", whole);
    const AxisId axis = *plan_.pack_axis;
    const std::string first = axis_[axis];
    open(fmt::format("if ({})", whole_in_row()));
    line("{}", whole);
    close();
    open("else");
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", plan_.pack));
    axis_[axis] = fmt::format("({} + u)", first);
    line("if ({}) {}", in_row(), element());
    axis_[axis] = first;
    close();
    close();
  }

  void load_pack(const Scalar& v, const std::string& pack) {
    move_pack(fmt::format("{} = *reinterpret_cast<const {}*>(b{} + ({}));", pack, pack_type(v.slot), v.slot, index(v.index)),
              [&] { return fmt::format("{}.at[u] = b{}[{}];", pack, v.slot, index(v.index)); });
  }

  void store_pack(const Store& s, size_t k) {
    move_pack(fmt::format("*reinterpret_cast<{}*>(b{} + ({})) = s{};", pack_type(s.buffer), s.buffer, index(s.index), k),
              [&] { return fmt::format("b{}[{}] = s{}.at[u];", s.buffer, index(s.index), k); });
  }

  // --- rows in shared memory ---

  // A pack of the row is at the same place for each stage, and the same thread's: no barrier is needed.
  void declare_row() {
    if (plan_.in_shared.empty()) return;
    line("EINC_SHARED(shared);");
    int64_t at = 0;
    for (const ValueId id : plan_.in_shared) {
      line("{0}* row{1} = reinterpret_cast<{0}*>(shared + {2});", pack_type(kernel_.values[id].slot), id, at);
      at += plan_.row_bytes(kernel_, id);
    }
  }

  // --- rows in registers ---

  // Loads in a row that a later stage needs again stay in registers, and those that the plan has at the row's start. All steps of them come
  // before the stage's loop, since that may store: the compiler cannot move a load before a store to memory that it may share. The kernel
  // allows it: a buffer that it stores into is not among them, and where a stored one lies over what is loaded, no point but the load's
  // own stores there, and not before the load (verify_overlap). So a load may move towards its point's start.
  void find_kept(size_t s) {
    first_kept_.clear();
    if (plan_.keeps == KeptLoads::none || !keeps_row(plan_.stages[s])) return;
    const uint64_t row = bits(plan_.stages[s]);
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      if (kept_.contains(id)) continue;
      if (std::ranges::count(plan_.ahead, id) > 0) {
        keep(id, true);
        continue;
      }
      const Scalar& v = kernel_.values[id];
      if (!needed_[id] || v.kind != ScalarKind::load || !(axes_of_[id] & row) || is_stored(v.slot)) continue;
      const bool in_pack = plan_.pack_axis && axes_of_[id] >> *plan_.pack_axis & 1;
      if (plan_.pack_axis && (!in_pack || !loads_pack(id))) continue;
      if (plan_.keeps == KeptLoads::of_row && (axes_of_[id] & ~row) == 0) continue;
      const bool again = std::any_of(kernel_.stages.begin() + static_cast<ptrdiff_t>(s) + 1, kernel_.stages.end(),
                                     [&](const Stage& later) { return !later.axes.empty() && needed_by(kernel_, later)[id]; });
      if (again) keep(id, in_pack);
    }
  }

  void keep(ValueId id, bool in_pack) {
    const Scalar& v = kernel_.values[id];
    first_kept_.push_back(id);
    kept_[id] = in_pack;
    line("{} l{}[{}];", in_pack ? pack_type(v.slot) : std::string(register_type(v.dtype)), id, plan_.row_steps);
  }

  void load_steps(const std::vector<ValueId>& loads, const std::vector<AxisId>& axes) {
    if (loads.empty()) return;
    row_loop(axes);
    for (ValueId id : loads) {
      const Scalar& v = kernel_.values[id];
      if (kept_[id])
        load_pack(v, fmt::format("l{}[t]", id));
      else
        line("l{}[t] = {};", id, value(id));
    }
    close();
  }

  // What all rows of a part read alike is loaded before the first.
  void load_columns() {
    const auto stage = std::ranges::find_if(kernel_.stages, [](const Stage& s) { return !s.axes.empty(); });
    if (plan_.keeps == KeptLoads::none || stage == kernel_.stages.end()) return;
    const std::vector<AxisId>& axes = plan_.stages[static_cast<size_t>(stage - kernel_.stages.begin())];
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      const Scalar& v = kernel_.values[id];
      const bool in_row = v.kind == ScalarKind::load && axes_of_[id] != 0 && (axes_of_[id] & ~bits(axes)) == 0 && v.guards.empty();
      if (!in_row || !v.index.dynamic.empty() || is_stored(v.slot)) continue;
      const bool in_pack = plan_.pack_axis.has_value();
      if (in_pack && !loads_pack(id)) continue;
      keep(id, in_pack);
    }
    load_steps(first_kept_, axes);
  }

  bool is_stored(uint16_t buffer) const {
    return std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [&](const Stage& stage) {
      return std::any_of(stage.stores.begin(), stage.stores.end(), [&](const Store& s) { return s.buffer == buffer; });
    });
  }

  // Rows without packs: values themselves are kept.
  void use_kept(uint64_t entered) {
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      const auto kept = kept_.find(id);
      if (kept == kept_.end() || kept->second || !needed_[id] || (axes_of_[id] & ~entered) != 0) continue;
      scopes_.back()[id] = fmt::format("l{}[t]", id);
    }
  }

  std::vector<bool> needed_;
  std::vector<const TileStore*> tiles_;     // of the stage's stores
  bool once_inside_ = false;                // values of the stage stand where its one thread stores
  std::string inside_;                      // of a column: whether this lane has a point
  std::set<ValueId> in_shared_;             // loads that an earlier stage has put into shared memory
  std::unordered_map<ValueId, bool> kept_;  // kept in registers: as packs
  std::vector<ValueId> first_kept_;         // of them, those that the stage loads
};

}  // namespace

std::string stages_text(const Kernel& kernel, const ThreadPlan& plan) { return StageText(kernel, plan).run(); }

}  // namespace einc
