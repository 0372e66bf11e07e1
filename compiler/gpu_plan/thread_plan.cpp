// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/thread_plan.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 256, kLargestBlock = 1024;
constexpr int64_t kShortLoop = 16;  // elements of a stage that one thread does
constexpr int kPackBytes = 16;      // of the smallest elements
constexpr int kWidestPack = 8;
constexpr int64_t kSharedAlignment = 1024;  // of dynamic shared memory, which begins behind what is declared (prelude.cu)
constexpr int64_t kSharedTile = 32 << 10;   // bytes that tiles of transposed stores take at most
constexpr int64_t kRowRegisters = 32;       // words of a row that a thread keeps
constexpr int64_t kOwnRegisters = 64;       // and of what is the row's own: else it comes from memory again for each stage
constexpr int64_t kRegisters = 65536;       // of a processor: for two blocks, one reading while the other computes, twice what they keep
// With what is loaded ahead: ptxas gives the backward of a norm of 768, which keeps 144 words so, 247 registers of 255.
constexpr int64_t kAheadOfSums = 144;
constexpr int64_t kRowsOfWarp = 8;  // at most
constexpr int kWarpsOfRows = 4;     // in a block
constexpr int kBlockOfRow = 512;    // threads at most, where more would not keep more warps on a processor

class ThreadPlanner {
 public:
  ThreadPlanner(const Kernel& kernel, const GpuShape& gpu)
      : kernel_(kernel), gpu_(gpu), processors_(gpu.processors), busy_threads_(gpu.threads(4)), axes_of_(axes_of_values(kernel)) {}

  ThreadPlan run() {
    weigh();
    order_loops();
    find_tiles();
    choose_team();
    choose_pack();
    if (kernel_.part && plan_.kind == CudaTeam::warp && words_of_sums() > kSumRegisters) {
      plan_.kind = CudaTeam::block;
      choose_pack();
    }
    choose_blocks();
    return std::move(plan_);
  }

 private:
  // Bytes that each axis reads or writes side by side, counted over all that the kernel visits.
  void weigh() {
    const auto weigh = [&](uint16_t buffer, const Subscript& index, uint64_t axes) {
      const double bytes = static_cast<double>(trips(kernel_, axes)) * bytes_of(kernel_.buffers[buffer].dtype);
      for (AxisId a = 0; a < kernel_.axes.size(); ++a)
        if (std::abs(index.affine.coefficient(a)) == 1) beside_[a] += bytes;
    };
    for (size_t i = 0; i < kernel_.values.size(); ++i)
      if (kernel_.values[i].kind == ScalarKind::load) weigh(kernel_.values[i].slot, kernel_.values[i].index, axes_of_[i]);
    const uint64_t outer = bits(kernel_.outer);
    for (const Stage& stage : kernel_.stages)
      for (const Store& s : stage.stores) weigh(s.buffer, s.index, outer | bits(stage.axes));
  }

  double beside(AxisId a) const {
    const auto found = beside_.find(a);
    return found == beside_.end() ? 0 : found->second;
  }

  // The axis whose neighbours are the most bytes side by side goes last.
  void neighbours_last(std::vector<AxisId>& axes) const {
    const auto best = std::max_element(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return beside(a) < beside(b); });
    if (best != axes.end() && beside(*best) > beside(axes.back())) std::rotate(best, best + 1, axes.end());
  }

  void order_loops() {
    plan_.outer = kernel_.outer;
    neighbours_last(plan_.outer);
    for (AxisId a : plan_.outer) plan_.points *= kernel_.extent(a);
    for (const Stage& stage : kernel_.stages) {
      plan_.stages.push_back(stage.axes);
      if (!stage.ordered) neighbours_last(plan_.stages.back());
      int64_t trips = 1;
      for (AxisId a : stage.axes) trips *= kernel_.extent(a);
      longest_ = std::max(longest_, trips);
      ordered_ = ordered_ || stage.ordered;
    }
  }

  // Stores whose neighbours are not the loop's, where a stage is a tile of both axes.
  void find_tiles() {
    if (ordered_ || kernel_.sequence || kernel_.part) return;
    int64_t left = kSharedTile;
    for (size_t s = 0; s < kernel_.stages.size(); ++s) {
      const std::vector<AxisId>& axes = plan_.stages[s];
      if (axes.size() != 2) continue;
      const int64_t elements = kernel_.extent(axes[0]) * kernel_.extent(axes[1]);
      for (size_t k = 0; k < kernel_.stages[s].stores.size(); ++k) {
        const Store& store = kernel_.stages[s].stores[k];
        const std::optional<AxisId> across = transposed_axis(store, axes, axes[1]);
        const int64_t bytes = elements * 2 * bytes_of(kernel_.buffers[store.buffer].dtype);
        if (!across || bytes > left) continue;
        left -= bytes;
        plan_.tiles.push_back({s, k, {axes[1], *across}});
      }
    }
  }
  bool in_tile(const Store& store) const {
    return std::ranges::any_of(plan_.tiles, [&](const TileStore& t) { return &kernel_.stages[t.stage].stores[t.store] == &store; });
  }

  double stage_beside() const {
    double most = 0;
    for (const std::vector<AxisId>& axes : plan_.stages)
      if (!axes.empty()) most = std::max(most, beside(axes.back()));
    return most;
  }

  void choose_team() {
    if (!plan_.tiles.empty()) {
      plan_.kind = CudaTeam::block;
      return;
    }
    if (kernel_.part) {
      plan_.kind = longest_ <= kWarpLoop ? CudaTeam::warp : CudaTeam::block;
      return;
    }
    if (ordered_ || longest_ < kShortLoop) return;
    const double outer = plan_.outer.empty() ? 0 : beside(plan_.outer.back());
    if (outer > stage_beside()) {
      if (plan_.points >= busy_threads_ || kernel_.sequence) return;
      plan_.kind = CudaTeam::column;
      plan_.team = longest_ >= 256 ? 32 : longest_ >= 128 ? 16 : 8;
      return;
    }
    plan_.kind = longest_ <= kWarpLoop && plan_.points >= 8 ? CudaTeam::warp : CudaTeam::block;
  }

  // As many elements as a load of the smallest moves at once, when the axis allows packs at all.
  int pack_along(AxisId axis) const {
    int smallest = kPackBytes;
    for (size_t i = 0; i < kernel_.values.size(); ++i) {
      const Scalar& v = kernel_.values[i];
      if (v.kind == ScalarKind::load && axes_of_[i] >> axis & 1) smallest = std::min(smallest, bytes_of(kernel_.buffers[v.slot].dtype));
    }
    for (const Stage& stage : kernel_.stages)
      for (const Store& s : stage.stores)
        if (s.index.affine.coefficient(axis) != 0 && !in_tile(s)) smallest = std::min(smallest, bytes_of(kernel_.buffers[s.buffer].dtype));
    for (int width = std::min(kPackBytes / smallest, kWidestPack); width > 1; width /= 2) {
      if (kernel_.extent(axis) % width != 0) continue;
      bool useful = false;
      for (size_t i = 0; i < kernel_.values.size(); ++i) {
        const Scalar& v = kernel_.values[i];
        if (v.kind == ScalarKind::load && v.guards.empty()) useful = useful || packs(kernel_, v.slot, v.index, axis, width);
      }
      for (const Stage& stage : kernel_.stages)
        for (const Store& s : stage.stores)
          if (s.mode == StoreMode::set) useful = useful || packs(kernel_, s.buffer, s.index, axis, width);
      if (useful) return width;
    }
    return 1;
  }

  // Long rows of which packs would be small, since they are of odd length, are read in the packs that lie in memory.
  void pack_from_anywhere(AxisId axis) {
    if (kernel_.part || !plan_.tiles.empty()) return;
    for (const std::vector<AxisId>& axes : plan_.stages)
      if (!axes.empty() && axes != std::vector<AxisId>{axis}) return;
    int smallest = kPackBytes;
    for_each_in_rows(axis, [&](uint16_t buffer, const Affine&) { smallest = std::min(smallest, bytes_of(kernel_.buffers[buffer].dtype)); });
    const int width = std::min(kPackBytes / smallest, kWidestPack);
    if (width <= 2 * plan_.pack || longest_ < int64_t{kWarp} * width) return;
    std::vector<std::pair<Affine, int>> starts;  // and the bytes of an element of all that start there
    for_each_in_rows(axis, [&](uint16_t buffer, const Affine& index) {
      const Affine start = start_in_pack(index, axis, width);
      auto known = std::ranges::find(starts, start, &std::pair<Affine, int>::first);
      if (known == starts.end()) known = starts.insert(known, {start, 0});
      known->second += bytes_of(kernel_.buffers[buffer].dtype);
    });
    plan_.row_start = std::ranges::max_element(starts, {}, &std::pair<Affine, int>::second)->first;
    plan_.pack = width;
  }

  // Loads and stores of neighbours along an axis at places that the loops alone determine.
  void for_each_in_rows(AxisId axis, const auto& visit) const {
    const auto look = [&](uint16_t buffer, const Subscript& index) {
      if (index.dynamic.empty() && index.affine.coefficient(axis) == 1) visit(buffer, index.affine);
    };
    for (const Scalar& v : kernel_.values)
      if (v.kind == ScalarKind::load && v.guards.empty()) look(v.slot, v.index);
    for (const Stage& stage : kernel_.stages)
      for (const Store& s : stage.stores)
        if (s.mode == StoreMode::set) look(s.buffer, s.index);
  }

  // Whether each element along an axis has reductions of its own.
  bool sums_by_element(AxisId axis) const {
    return std::all_of(kernel_.reductions.begin(), kernel_.reductions.end(),
                       [&](const Accumulation& r) { return axes_of_[r.value] >> axis & 1; });
  }

  void choose_pack() {
    if (ordered_ || kernel_.sequence) return;
    if (plan_.kind == CudaTeam::thread) {
      if (plan_.outer.empty() || !sums_by_element(plan_.outer.back())) return;
      plan_.pack_axis = plan_.outer.back();
      plan_.pack = pack_along(*plan_.pack_axis);
      while (plan_.pack > 1 && plan_.points / plan_.pack < busy_threads_ / 4) plan_.pack /= 2;
    } else if (plan_.kind != CudaTeam::column) {
      std::optional<AxisId> axis;
      for (const std::vector<AxisId>& axes : plan_.stages)
        if (!axes.empty() && (!axis || beside(axes.back()) > beside(*axis))) axis = axes.back();
      plan_.pack_axis = axis;
      plan_.pack = pack_along(*axis);
      while (plan_.pack > 1 && longest_ / plan_.pack < least_lanes()) plan_.pack /= 2;
      pack_from_anywhere(*axis);
    }
    if (plan_.pack == 1) plan_.pack_axis.reset();
  }

  // For each value, how many loops over the row need it.
  std::vector<int> loops_that_need() const {
    std::vector<int> loops(kernel_.values.size(), 0);
    for (const Stage& stage : kernel_.stages) {
      if (stage.axes.empty()) continue;
      const std::vector<bool> needed = needed_by(kernel_, stage);
      for (size_t i = 0; i < loops.size(); ++i) loops[i] += needed[i] ? 1 : 0;
    }
    return loops;
  }

  // The 32-bit words that a thread keeps of what several loops over the row load, and of what all rows read alike.
  int64_t words_of_row(int64_t steps, KeptLoads which) const {
    const std::vector<int> loops = loops_that_need();
    int64_t bytes = 0;
    for (size_t i = 0; i < kernel_.values.size(); ++i) {
      const Scalar& v = kernel_.values[i];
      const bool alike = kernel_.part && loops[i] > 0 && (axes_of_[i] & ~row_axes_) == 0;
      const bool own = which == KeptLoads::all || (axes_of_[i] & ~row_axes_) != 0;
      const bool kept = v.kind == ScalarKind::load && axes_of_[i] & row_axes_ && own && (loops[i] > 1 || alike);
      // Alone in a register, what is short of one takes it whole.
      if (kept) bytes += std::max<int64_t>(bytes_of(kernel_.buffers[v.slot].dtype) * plan_.pack, 4) * steps;
    }
    return divide_up(bytes, 4);
  }

  // The words that a thread of a warp keeps of a row and of sums over rows.
  int64_t words_of_sums() {
    for (const Stage& stage : kernel_.stages)
      if (!stage.axes.empty()) row_axes_ = bits(stage.axes);
    const int64_t steps = divide_up(longest_, int64_t{kWarp} * plan_.pack);
    return sums() * steps * plan_.pack + words_of_row(steps, KeptLoads::all);
  }

  int64_t sums() const {
    int64_t sums = 0;
    for (const Stage& stage : kernel_.stages) sums += std::ranges::count(stage.stores, StoreMode::sum, &Store::mode);
    return sums;
  }

  // Lanes of a warp that a row takes at least. The rows of a warp are all there or none is: lanes that return would miss the shuffles of
  // the others.
  int least_lanes() const {
    if (plan_.kind != CudaTeam::warp || kernel_.part || kernel_.sequence) return kWarp;
    return kWarp / static_cast<int>(std::gcd(plan_.points, kRowsOfWarp));
  }

  // Whole packs for fewer lanes move more bytes at once than parts of packs for all.
  int lanes() const {
    int64_t packs = 1;
    for (const std::vector<AxisId>& axes : plan_.stages) packs = std::max(packs, plan_.packs_of(kernel_, axes));
    return static_cast<int>(std::clamp<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(packs))), least_lanes(), kWarp));
  }

  void choose_blocks() {
    const int64_t packed = plan_.pack_axis ? plan_.pack : 1;
    switch (plan_.kind) {
      case CudaTeam::thread: {
        const int64_t threads = plan_.points / packed;
        plan_.block_threads = threads >= busy_threads_ * 2 ? kBlock : threads >= 64 * processors_ ? 128 : 64;
        plan_.blocks = divide_up(threads, plan_.block_threads);
        return;
      }
      case CudaTeam::warp:
        plan_.team = lanes();
        plan_.block_threads = kWarpsOfRows * kWarp;
        plan_.blocks = divide_up(plan_.points, plan_.teams());
        break;
      case CudaTeam::block: {
        const int64_t wanted = divide_up(longest_, packed);
        plan_.team =
            static_cast<int>(std::min<int64_t>(divide_up(wanted, kWarp) * kWarp, wanted > 8 * kLargestBlock ? kLargestBlock : kBlockOfRow));
        plan_.block_threads = plan_.team;
        plan_.blocks = plan_.points;
        break;
      }
      case CudaTeam::column: {
        const int64_t along = divide_up(kernel_.extent(plan_.outer.back()), kWarp);
        plan_.block_threads = kWarp * plan_.team;
        plan_.blocks = plan_.points / kernel_.extent(plan_.outer.back()) * along;
        return;
      }
    }
    if (kernel_.part) plan_.blocks = kernel_.extent(*kernel_.part);
    keep_rows();
  }

  // A row that all long stages go over stays in registers when it is short enough; sums over rows do in any case.
  void keep_rows() {
    if (kernel_.sequence) return;
    int rows = 0;
    for (const std::vector<AxisId>& axes : plan_.stages) {
      if (axes.empty()) continue;
      if (rows > 0 && bits(axes) != row_axes_) return;
      row_axes_ = bits(axes);
      ++rows;
    }
    if (rows < 2 && !kernel_.part) return;
    const auto row = std::ranges::find_if(plan_.stages, [](const std::vector<AxisId>& axes) { return !axes.empty(); });
    const int64_t steps = divide_up(plan_.packs_of(kernel_, *row), plan_.team);
    if (words_of_row(steps, KeptLoads::all) <= kRowRegisters || (kernel_.part && plan_.kind == CudaTeam::warp))
      plan_.keeps = KeptLoads::all;
    else if (words_of_row(steps, KeptLoads::of_row) <= kOwnRegisters && 4 * kOwnRegisters * plan_.block_threads <= kRegisters &&
             !kernel_.part)
      plan_.keeps = KeptLoads::of_row;
    if (plan_.keeps != KeptLoads::none || kernel_.part)
      plan_.row_steps = steps;
    else
      keep_in_shared(*row);
    load_ahead(*row, steps);
  }

  bool is_each_loop(const std::vector<AxisId>& row) const {
    return std::ranges::all_of(plan_.stages, [&](const std::vector<AxisId>& axes) { return axes.empty() || axes == row; });
  }

  // What the row's storing stages alone load is loaded with what is kept where registers can hold it, too.
  void load_ahead(const std::vector<AxisId>& row, int64_t steps) {
    if (plan_.keeps == KeptLoads::none || !plan_.pack_axis || !is_each_loop(row)) return;
    const std::vector<int> loops = loops_that_need();
    int64_t words = words_of_row(steps, plan_.keeps) + (kernel_.part ? sums() * steps * plan_.pack : 0);
    const int64_t most = kernel_.part ? std::min(kAheadOfSums, kRegisters / (2 * plan_.block_threads))
                                      : std::min(kOwnRegisters, kRegisters / (4 * plan_.block_threads));
    for (const Stage& stage : kernel_.stages) {
      if (stage.axes.empty() || std::ranges::none_of(stage.stores, [](const Store& s) { return s.mode == StoreMode::set; })) continue;
      const std::vector<bool> needed = needed_by(kernel_, stage);
      for (ValueId id = 0; id < kernel_.values.size(); ++id) {
        if (!needed[id] || loops[id] > 1 || !is_own_pack(id) || !kernel_.values[id].index.dynamic.empty()) continue;
        const int64_t more = steps * plan_.pack * bytes_of(kernel_.buffers[kernel_.values[id].slot].dtype) / 4;
        if (words + more <= most) plan_.ahead.push_back(id), words += more;
      }
    }
    std::ranges::sort(plan_.ahead);
  }

  // A load in packs of what is the row's own, from a buffer that the kernel does not write.
  bool is_own_pack(ValueId id) const {
    if (!(axes_of_[id] >> *plan_.pack_axis & 1) || (axes_of_[id] & ~row_axes_) == 0 || !plan_.loads_pack(kernel_, id)) return false;
    return kernel_.buffers[kernel_.values[id].slot].access == BufferAccess::read;
  }

  // A row of a block that registers cannot hold stays in shared memory where two blocks of such rows fit a processor.
  void keep_in_shared(const std::vector<AxisId>& row) {
    if (plan_.kind != CudaTeam::block || !plan_.pack_axis || !plan_.tiles.empty()) return;
    if (!is_each_loop(row)) return;  // else another thread has a pack in another stage
    const std::vector<int> loops = loops_that_need();
    for (ValueId id = 0; id < kernel_.values.size(); ++id) {
      if (loops[id] < 2 || !is_own_pack(id)) continue;
      if (bytes_of(kernel_.buffers[kernel_.values[id].slot].dtype) * plan_.pack <= kPackBytes) plan_.in_shared.push_back(id);
    }
    if (plan_.in_shared.empty()) return;
    const int64_t partial = static_cast<int64_t>(kernel_.reductions.size()) * (kLargestBlock / kWarp) * 16;  // a value and its place
    const int64_t bytes = plan_.shared_bytes(kernel_) + round_up(partial, kSharedAlignment);
    if (bytes > gpu_.shared_bytes_of(plan_.blocks_together())) return plan_.in_shared.clear();
    // Fewer blocks than the processor has room for: larger ones keep as many warps there.
    const bool few = bytes > gpu_.shared_bytes_of(divide_up(gpu_.processor_threads, kBlockOfRow));
    if (few && gpu_.processor_threads >= plan_.blocks_together() * kLargestBlock && plan_.packs_of(kernel_, row) >= kLargestBlock)
      plan_.team = plan_.block_threads = kLargestBlock;
  }

  const Kernel& kernel_;
  const GpuShape& gpu_;
  const int64_t processors_;    // of the GPU
  const int64_t busy_threads_;  // keep it busy
  const std::vector<uint64_t> axes_of_;
  ThreadPlan plan_;
  std::map<AxisId, double> beside_;
  int64_t longest_ = 1;
  bool ordered_ = false;
  uint64_t row_axes_ = 0;
};

}  // namespace

int64_t ThreadPlan::packs_of(const Kernel& kernel, const std::vector<AxisId>& axes) const {
  int64_t trips = 1;
  for (AxisId a : axes) {
    const int64_t extent = kernel.extent(a);
    trips *= pack_axis != a ? extent : row_start ? divide_up(extent + pack - 1, pack) : extent / pack;
  }
  return trips;
}

int64_t ThreadPlan::row_bytes(const Kernel& kernel, ValueId load) const {
  const auto row = std::ranges::find_if(stages, [](const std::vector<AxisId>& axes) { return !axes.empty(); });
  return round_up(packs_of(kernel, *row) * pack * bytes_of(kernel.buffers[kernel.values[load].slot].dtype), kPackBytes);
}

int64_t ThreadPlan::shared_bytes(const Kernel& kernel) const {
  int64_t bytes = 0;
  for (const ValueId id : in_shared) bytes += row_bytes(kernel, id);
  return bytes;
}

bool ThreadPlan::lies_in_packs(const Kernel& kernel, uint16_t buffer, const Subscript& index) const {
  if (!row_start) return packs(kernel, buffer, index, *pack_axis, pack);
  return index.dynamic.empty() && index.affine.coefficient(*pack_axis) == 1 && start_in_pack(index.affine, *pack_axis, pack) == *row_start;
}

bool ThreadPlan::loads_pack(const Kernel& kernel, ValueId value) const {
  const Scalar& v = kernel.values[value];
  return v.kind == ScalarKind::load && v.guards.empty() && lies_in_packs(kernel, v.slot, v.index);
}

Affine start_in_pack(const Affine& index, AxisId axis, int pack) {
  const auto rest = [&](int64_t x) { return (x % pack + pack) % pack; };
  Affine start;
  start.constant = rest(index.constant);
  for (const Affine::Term& t : index.terms)
    if (t.axis != axis && rest(t.coefficient) != 0) start.terms.push_back({t.axis, rest(t.coefficient)});
  return start;
}

bool lies_along(const Kernel& kernel, ValueId value, AxisId axis) {
  std::vector<bool> used(kernel.values.size(), false);
  used[value] = true;
  int64_t count = 0;
  bool result = false;
  for (size_t i = value + 1; i-- > 0;) {
    if (!used[i]) continue;
    const Scalar& v = kernel.values[i];
    for (ValueId x : v.operands) used[x] = true;
    if (v.kind != ScalarKind::load || kernel.buffers[v.slot].count <= count) continue;
    count = kernel.buffers[v.slot].count;
    result = v.index.affine.coefficient(axis) == 1;
  }
  return result;
}

bool packs(const Kernel& kernel, uint16_t buffer, const Subscript& index, AxisId axis, int width) {
  if (index.affine.coefficient(axis) != 1 || kernel.buffers[buffer].count % width != 0) return false;
  if (index.affine.constant % width != 0) return false;
  for (const Affine::Term& t : index.affine.terms)
    if (t.axis != axis && t.coefficient % width != 0) return false;
  if (index.dynamic.empty()) return true;
  const std::vector<uint64_t> axes = axes_of_values(kernel);
  return std::all_of(index.dynamic.begin(), index.dynamic.end(),
                     [&](const Subscript::Dynamic& d) { return d.coefficient % width == 0 && !(axes[d.value] >> axis & 1); });
}

ThreadPlan plan_threads(const Kernel& kernel, const GpuShape& gpu) { return ThreadPlanner(kernel, gpu).run(); }

}  // namespace einc
