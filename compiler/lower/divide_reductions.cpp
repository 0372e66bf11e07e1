// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/divide_reductions.h"

#include <algorithm>
#include <functional>
#include <unordered_map>

#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/kernel_target.h"
#include "compiler/lower/prune_kernel.h"
#include "compiler/lower/transposes.h"
#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

bool divides(Fold fold) { return fold == Fold::sum || fold == Fold::max || fold == Fold::min || fold == Fold::prod; }

// The divisor of n nearest to `wanted` from below that is at least `enough`; else the next above, up to `most`; else the
// largest below.
int64_t divisor(int64_t n, int64_t wanted, int64_t enough, int64_t most) {
  int64_t below = 1;
  for (int64_t d = std::min(n, wanted); d > 1 && below == 1; --d)
    if (n % d == 0) below = d;
  if (below >= enough) return below;
  for (int64_t d = std::max<int64_t>(wanted, 1); d <= std::min(n, most); ++d)
    if (n % d == 0 && d >= enough) return d;
  return below;
}

int64_t end_of_parts(const Kernel& kernel, const std::vector<Parts>& parts) {
  if (parts.empty()) return 0;
  const BufferUse& last = kernel.buffers[parts.back().buffer];
  return parts.back().offset + round_up(last.count * bytes_of(last.dtype), kCacheLine);
}

class ReductionDivider {
 public:
  ReductionDivider(Kernel kernel, const KernelTarget& target) : target_(target), k_(DividedKernel::whole(std::move(kernel))) {}

  std::vector<DividedKernel> run() {
    for (AxisId a : kernel_.outer) points_ *= kernel_.extent(a);
    const bool ordered = std::any_of(kernel_.stages.begin(), kernel_.stages.end(), [](const Stage& s) { return s.ordered; });
    if (!ordered && !kernel_.sequence) divide_stages();
    if (!out_.empty()) k_.prune();
    out_.push_back(std::move(k_));
    return std::move(out_);
  }

 private:
  void divide_stages() {
    std::vector<Stage>& stages = kernel_.stages;
    for (size_t s = 0; s < stages.size(); ++s) {
      finished_.clear();
      const std::vector<uint16_t> reductions = stages[s].reductions;
      for (uint16_t r : reductions)
        if (std::find(stages[s].reductions.begin(), stages[s].reductions.end(), r) != stages[s].reductions.end()) divide(s, r);
      if (finished_.empty()) continue;
      const bool nothing_left = stages[s].reductions.empty() && stages[s].stores.empty();
      if (nothing_left) stages.erase(stages.begin() + static_cast<ptrdiff_t>(s));
      stages.insert(stages.begin() + static_cast<ptrdiff_t>(s), finished_.begin(), finished_.end());
      s += finished_.size() - (nothing_left ? 1 : 0);
    }
  }

  // Takes a reduction, and those that read the same elements, out of a stage.
  void divide(size_t s, uint16_t reduction) {
    const Stage& stage = kernel_.stages[s];
    int64_t elements = 1;
    for (AxisId a : stage.axes) elements *= kernel_.extent(a);
    if (stage.axes.empty()) return;
    const DivideLimits& limits = limits_of(stage, reduction);
    if (points_ >= limits.points || points_ * elements <= limits.elements || kernel_.axes.size() + 2 > 64) return;
    std::vector<uint16_t> together;
    for (uint16_t r : stage.reductions)
      if (divides(kernel_.reductions[r].fold) && goes_with(loads_of(r), loads_of(reduction))) together.push_back(r);
    if (together.empty() || !divides(kernel_.reductions[reduction].fold)) return;
    DividedKernel part = k_;
    const bool stores = stores_in_parts(s, together);
    const int64_t parts = reduce_part(part, s, together, stores);
    if (parts < 2) return;
    if (stores) kernel_.stages[s].stores.clear();
    out_.push_back(std::move(part));
    reduce_parts(s, together, parts);
  }

  // Whether the kernels of parts, which go over all elements, also store what the stage stores.
  bool stores_in_parts(size_t s, const std::vector<uint16_t>& reductions) const {
    return target_.whole_reductions == WholeReductions::joined && s == 0 && kernel_.outer.empty() &&
           reductions.size() == kernel_.stages[s].reductions.size();
  }

  // Whether reductions of what these hold read the same elements; on a target where a pass more is dear, some of the same.
  bool goes_with(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b) const {
    return a == b || (target_.whole_reductions == WholeReductions::joined && (std::ranges::includes(a, b) || std::ranges::includes(b, a)));
  }

  std::vector<uint16_t> loads_of(uint16_t reduction) const {
    std::vector<bool> used(kernel_.values.size(), false);
    used[kernel_.reductions[reduction].value] = true;
    std::vector<uint16_t> buffers;
    for (size_t i = used.size(); i-- > 0;) {
      if (!used[i]) continue;
      for (ValueId x : kernel_.values[i].operands) used[x] = true;
      if (kernel_.values[i].kind == ScalarKind::load) buffers.push_back(kernel_.values[i].slot);
    }
    std::sort(buffers.begin(), buffers.end());
    buffers.erase(std::unique(buffers.begin(), buffers.end()), buffers.end());
    return buffers;
  }

  const Scalar* largest_of(uint16_t reduction) const {
    const std::vector<uint16_t> buffers = loads_of(reduction);
    const Scalar* largest = nullptr;
    for (const Scalar& v : kernel_.values)
      if (v.kind == ScalarKind::load && std::binary_search(buffers.begin(), buffers.end(), v.slot))
        if (!largest || kernel_.buffers[v.slot].count > kernel_.buffers[largest->slot].count) largest = &v;
    return largest;
  }

  // The stage's axes, those first along which the largest operand's elements are far apart.
  std::vector<AxisId> far_to_near(const Stage& stage, uint16_t reduction) const {
    const Scalar* largest = largest_of(reduction);
    std::vector<AxisId> axes = stage.axes;
    if (largest)
      std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) {
        return std::abs(largest->index.affine.coefficient(a)) > std::abs(largest->index.affine.coefficient(b));
      });
    return axes;
  }

  const DivideLimits& limits_of(const Stage& stage, uint16_t reduction) const {
    const std::vector<uint16_t> buffers = loads_of(reduction);
    const std::vector<AxisId> axes = far_to_near(stage, reduction);
    const Scalar* largest = largest_of(reduction);
    AxisId nearest = axes.back();
    for (const AxisId a : axes)  // not one that the largest operand does not have
      if (largest && largest->index.affine.coefficient(a) != 0) nearest = a;
    const bool row = std::any_of(kernel_.values.begin(), kernel_.values.end(), [&](const Scalar& v) {
      return v.kind == ScalarKind::load && std::binary_search(buffers.begin(), buffers.end(), v.slot) &&
             std::abs(v.index.affine.coefficient(nearest)) == 1;
    });
    return row ? target_.divide_rows : target_.divide_columns;
  }

  // Stages that other stages' values come from.
  std::vector<Stage> earlier_stages(const Kernel& kernel, size_t s, const std::vector<uint16_t>& reductions) const {
    const std::vector<uint64_t> needs = reductions_of_values(kernel);
    uint64_t needed = 0;
    for (uint16_t r : reductions) needed |= needs[kernel.reductions[r].value];
    std::vector<Stage> stages;
    for (size_t e = s; e-- > 0;) {
      Stage stage{kernel.stages[e].axes, {}, {}, false};
      for (uint16_t r : kernel.stages[e].reductions)
        if (needed >> r & 1) stage.reductions.push_back(r), needed |= needs[kernel.reductions[r].value];
      if (!stage.reductions.empty()) stages.insert(stages.begin(), std::move(stage));
    }
    return stages;
  }

  // Makes a copy of the kernel one that reduces parts: how many, 1 when the loops cannot be divided.
  int64_t reduce_part(DividedKernel& part, size_t s, const std::vector<uint16_t>& reductions, bool stores) const {
    Kernel& kernel = part.kernel;
    std::vector<Stage> stages = earlier_stages(kernel, s, reductions);
    uint64_t taken = 0;
    for (const Stage& stage : stages) taken |= bits(stage.axes);
    const std::vector<AxisId> axes = far_to_near(kernel.stages[s], reductions.front());
    const DivideLimits& limits = limits_of(kernel.stages[s], reductions.front());
    const int64_t most = std::max<int64_t>(1, std::min(limits.most_parts, limits.most_points / points_));
    int64_t elements = 1, parts = 1;
    for (AxisId a : axes) elements *= kernel.extent(a);
    Stage stage{{}, reductions, {}, false}, last;
    if (stores) stage.stores = kernel.stages[s].stores;
    const std::optional<TransposedAxes> transposed = transposed_by(stage, axes, largest_of(reductions.front()));
    const TransposeTile tile = transposed ? transpose_tile(kernel, *transposed) : TransposeTile{};
    for (AxisId a : axes) {
      const int64_t extent = kernel.extent(a), wanted = std::min(most, elements / limits.smallest_part) / parts;
      const int64_t side = transposed && a == transposed->along ? tile.along : transposed && a == transposed->across ? tile.across : 1;
      const int64_t ranges = transposed ? extent / side
                             : parts >= limits.enough_parts || taken >> a & 1
                                 ? 1
                                 : divisor(extent, wanted, std::min(limits.points, most) / parts, most / parts);
      parts *= ranges;
      if (ranges == extent)
        kernel.outer.push_back(a);
      else
        stage.axes.push_back(a);
      if (ranges > 1 && ranges < extent) kernel.outer.push_back(split_axis(kernel, a, ranges));
    }
    Affine place;
    int64_t count = 1;
    for (size_t k = kernel.outer.size(); k-- > 0; count *= kernel.extent(kernel.outer[k]))
      place = place + Affine::of_axis(kernel.outer[k], count);
    for (uint16_t r : reductions) {
      Scalar result;
      result.kind = ScalarKind::reduction;
      result.dtype = kernel.reductions[r].dtype;
      result.slot = r;
      kernel.values.push_back(result);
      last.stores.push_back(
          {add_parts(part, r, count, BufferAccess::write), place, static_cast<ValueId>(kernel.values.size() - 1), StoreMode::set});
    }
    for (size_t k = 0; k < stage.stores.size(); ++k) stage.stores[k].index = kernel.stages[s].stores[k].index;  // loops are divided by now
    stages.push_back(std::move(stage));
    stages.push_back(std::move(last));
    kernel.stages = std::move(stages);
    part.prune();
    return parts;
  }

  // Along the axis that neighbours of what is read lie along; not one that it does not have, as that of the halves that are put together.
  static std::optional<TransposedAxes> transposed_by(const Stage& stage, const std::vector<AxisId>& axes, const Scalar* largest) {
    if (!largest) return std::nullopt;
    const auto along = std::ranges::find_if(axes, [&](AxisId a) { return std::abs(largest->index.affine.coefficient(a)) == 1; });
    if (along == axes.end()) return std::nullopt;
    for (const Store& s : stage.stores)
      if (const auto across = transposed_axis(s, axes, *along)) return TransposedAxes{*along, *across};
    return std::nullopt;
  }

  static uint16_t add_parts(DividedKernel& k, uint16_t reduction, int64_t count, BufferAccess access) {
    const auto buffer = static_cast<uint16_t>(k.buffers.size());
    k.buffers.push_back(DividedKernel::kParts);
    k.kernel.buffers.push_back({k.kernel.reductions[reduction].dtype, access, count});
    k.add_parts(buffer);
    return buffer;
  }

  // In the kernel itself the reductions go over the parts.
  void reduce_parts(size_t s, const std::vector<uint16_t>& reductions, int64_t parts) {
    AxisId along = 0;
    while (along < kernel_.axes.size() && !(over_parts_ >> along & 1 && kernel_.extent(along) == parts)) ++along;
    if (along == kernel_.axes.size()) kernel_.axes.push_back({parts, Name("part")});
    over_parts_ |= bit(along);
    Affine place = Affine::of_axis(along);
    int64_t count = parts;
    for (size_t k = kernel_.outer.size(); k-- > 0; count *= kernel_.extent(kernel_.outer[k]))
      place = place + Affine::of_axis(kernel_.outer[k], count);
    auto to = std::find_if(finished_.begin(), finished_.end(), [&](const Stage& stage) { return stage.axes.front() == along; });
    if (to == finished_.end()) to = finished_.insert(to, Stage{{along}, {}, {}, false});
    for (uint16_t r : reductions) {
      Scalar load;
      load.kind = ScalarKind::load;
      load.dtype = kernel_.reductions[r].dtype;
      load.slot = add_parts(k_, r, count, BufferAccess::read);
      load.index = place;
      insert_first(kernel_, {load});
      kernel_.reductions[r].value = 0;
      std::erase(kernel_.stages[s].reductions, r);
      to->reductions.push_back(r);
    }
  }

  const KernelTarget& target_;
  DividedKernel k_;
  Kernel& kernel_ = k_.kernel;
  int64_t points_ = 1;  // of the outer loops
  uint64_t over_parts_ = 0;
  std::vector<Stage> finished_;
  std::vector<DividedKernel> out_;
};

// Whether a product is summed over places that are not one dimension in memory, as a library wants it; windows are such.
bool is_apart(const Kernel& kernel) {
  std::vector<AxisId> depth = kernel.contraction->depth;
  std::erase_if(depth, [&](AxisId a) { return kernel.extent(a) == 1; });
  for (const ValueId id : {kernel.contraction->left, kernel.contraction->right}) {
    const Scalar& v = kernel.values[id];
    if (v.kind != ScalarKind::load || !v.guards.empty() || !v.index.dynamic.empty()) return true;
    const auto stride = [&](AxisId a) { return v.index.affine.coefficient(a); };
    if (id == kernel.contraction->left) std::ranges::stable_sort(depth, std::greater{}, stride);
    for (size_t i = 0; i + 1 < depth.size(); ++i)
      if (stride(depth[i]) != stride(depth[i + 1]) * kernel.extent(depth[i + 1])) return true;
  }
  return false;
}

constexpr DivideLimits kUndivided{.points = 0};

// Parts of a depth are not smaller than the smallest, however few the sums are.
DivideLimits in_whole_parts(const Kernel& product, DivideLimits limits) {
  limits.most_parts = std::min(limits.most_parts, trips(product, bits(product.contraction->depth)) / limits.smallest_part);
  return limits.most_parts < 2 ? kUndivided : limits;
}

}  // namespace

DividedKernel DividedKernel::whole(Kernel kernel) {
  DividedKernel k{std::move(kernel), {}, {}};
  for (size_t b = 0; b < k.kernel.buffers.size(); ++b) k.buffers.push_back(static_cast<uint16_t>(b));
  return k;
}

void DividedKernel::add_parts(uint16_t buffer) {
  const int64_t offset = end_of_parts(kernel, parts);
  buffers[buffer] = kParts;
  parts.push_back({buffer, offset});
}

void DividedKernel::prune() {
  const std::vector<uint16_t> left = prune_kernel(kernel);
  std::vector<Parts> kept;
  for (size_t b = 0; b < left.size(); ++b) {
    buffers[b] = buffers[left[b]];
    for (const Parts& p : parts)
      if (p.buffer == left[b]) kept.push_back({static_cast<uint16_t>(b), p.offset});
  }
  buffers.resize(left.size());
  parts = std::move(kept);
}

std::vector<DividedKernel> divide_reductions(Kernel kernel, const KernelTarget& given) {
  KernelTarget target = given;
  Kernel product = kernel;
  find_contraction(product);
  if (product.contraction && !product.contraction->rows.empty() && !product.contraction->columns.empty()) {
    if (target.library)  // a library divides the depth itself
      target.divide_rows = target.divide_columns = is_apart(product) ? in_whole_parts(product, target.divide_products) : kUndivided;
    else if (trips(kernel, bits(kernel.outer)) >= target.divide_rows.points)
      target.divide_rows = target.divide_columns = target.divide_products;
  }
  std::vector<DividedKernel> kernels = ReductionDivider(std::move(kernel), target).run();
  for (DividedKernel& k : kernels) collapse_axes(k.kernel);  // loops that flattening and dividing have left
  return kernels;
}

void divide_reductions(KernelList& list, const KernelTarget& target) {
  struct Made {
    std::shared_ptr<const Kernel> of;  // held, so that no other kernel gets its address
    std::vector<DividedKernel> kernels;
    std::vector<std::shared_ptr<const Kernel>> shared;
  };
  std::unordered_map<const Kernel*, Made> made;
  std::vector<GraphKernel> kernels;
  for (GraphKernel& whole : list.kernels) {
    if (whole.kernel->attention || whole.kernel->reductions.empty() || !whole.parts.empty()) {
      kernels.push_back(std::move(whole));
      continue;
    }
    const auto [known, fresh] = made.try_emplace(whole.kernel.get());
    Made& m = known->second;
    if (fresh) {
      m.of = whole.kernel;
      m.kernels = divide_reductions(*whole.kernel, target);
      for (DividedKernel& k : m.kernels) m.shared.push_back(std::make_shared<Kernel>(std::move(k.kernel)));
    }
    for (size_t i = 0; i < m.kernels.size(); ++i) {
      GraphKernel& k = kernels.emplace_back(whole);
      k.kernel = m.shared[i];
      k.parts = m.kernels[i].parts;
      k.buffers.clear();
      for (uint16_t b : m.kernels[i].buffers) k.buffers.push_back(b == DividedKernel::kParts ? NodeId{} : whole.buffers[b]);
    }
  }
  list.kernels = std::move(kernels);
}

int64_t bytes_of_parts(const GraphKernel& k) { return end_of_parts(*k.kernel, k.parts); }

int64_t parts_bytes(const KernelList& list) {
  int64_t most = 0;
  for (const GraphKernel& k : list.kernels) most = std::max(most, bytes_of_parts(k));
  return most;
}

}  // namespace einc
