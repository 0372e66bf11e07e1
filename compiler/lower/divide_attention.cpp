// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/divide_attention.h"

#include <algorithm>

#include "compiler/lower/attention.h"
#include "compiler/lower/kernel_target.h"
#include "compiler/lower/prune_kernel.h"
#include "runtime/base/check.h"
#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

bool sums_over_rows(const AttentionStep& step) { return step.part == AttentionPart::gather; }
bool has(const Attention& a, AttentionPart part) {
  return std::any_of(a.steps.begin(), a.steps.end(), [&](const AttentionStep& s) { return s.part == part; });
}

class AttentionDivider {
 public:
  explicit AttentionDivider(const GraphKernel& whole) : whole_(whole), a_(*whole.kernel->attention) {}

  std::vector<GraphKernel> run() {
    Kernel rows = *whole_.kernel, keys = rows;
    std::erase_if(rows.attention->steps, sums_over_rows);
    std::erase_if(keys.attention->steps,
                  [](const AttentionStep& s) { return s.part == AttentionPart::mix || s.part == AttentionPart::fold; });
    for (const AttentionStep& step : a_.steps)
      if (step.part == AttentionPart::fold && is_read(keys, step.reduction)) hand_over(rows, keys, step.reduction);
    Attention& a = *rows.attention;
    a.batch.insert(a.batch.end(), a.turns.begin(), a.turns.end());
    a.turns.clear();
    return {finish(std::move(rows)), finish(std::move(keys))};
  }

 private:
  // Whether a product needs a reduction's result.
  static bool is_read(const Kernel& kernel, uint16_t reduction) {
    const std::vector<uint64_t> needs = reductions_of_values(kernel);
    return std::any_of(kernel.attention->steps.begin(), kernel.attention->steps.end(),
                       [&](const AttentionStep& s) { return (needs[s.left] | needs[s.right]) >> reduction & 1; });
  }

  // A row's fold goes through memory.
  void hand_over(Kernel& rows, Kernel& keys, uint16_t reduction) {
    Affine place;
    int64_t count = 1;
    std::vector<AxisId> axes = a_.batch;
    axes.insert(axes.end(), a_.turns.begin(), a_.turns.end());
    axes.push_back(a_.row);
    for (size_t k = axes.size(); k-- > 0; count *= rows.extent(axes[k])) place = place + Affine::of_axis(axes[k], count);
    const DType dtype = rows.reductions[reduction].dtype;
    const auto buffer = static_cast<uint16_t>(rows.buffers.size());
    for (Kernel* k : {&rows, &keys}) k->buffers.push_back({dtype, k == &rows ? BufferAccess::write : BufferAccess::read, count});
    parts_.push_back({buffer, end_});
    end_ += round_up(count * bytes_of(dtype), kCacheLine);
    Scalar result;
    result.kind = ScalarKind::reduction;
    result.dtype = dtype;
    result.slot = reduction;
    rows.values.push_back(result);
    for (AttentionStep& step : rows.attention->steps)
      if (step.reduction == reduction) step.stores.push_back({buffer, place, static_cast<ValueId>(rows.values.size() - 1), StoreMode::set});
    for (Scalar& v : keys.values) {
      if (v.kind != ScalarKind::reduction || v.slot != reduction) continue;
      EINC_CHECK(v.dtype == dtype, "a fold is read as it is");
      v.kind = ScalarKind::load;
      v.slot = buffer;
      v.index = place;
    }
  }

  GraphKernel finish(Kernel kernel) const {
    GraphKernel made = whole_;
    made.buffers.resize(kernel.buffers.size());
    made.parts = parts_;
    replace_kernel(made, std::move(kernel));
    return made;
  }

  const GraphKernel& whole_;
  const Attention& a_;
  std::vector<Parts> parts_;
  int64_t end_ = 0;
};

}  // namespace

void divide_attention(KernelList& list) {
  std::vector<GraphKernel> kernels;
  for (GraphKernel& k : list.kernels) {
    const auto& a = k.kernel->attention;
    if (!a || !has(*a, AttentionPart::gather) || !(has(*a, AttentionPart::mix) || has(*a, AttentionPart::fold))) {
      kernels.push_back(std::move(k));
      continue;
    }
    for (GraphKernel& part : AttentionDivider(k).run()) kernels.push_back(std::move(part));
  }
  list.kernels = std::move(kernels);
}

}  // namespace einc
