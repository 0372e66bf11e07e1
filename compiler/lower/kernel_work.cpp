// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/kernel_work.h"

#include <algorithm>

#include "compiler/lower/attention.h"
#include "compiler/lower/padded_axis.h"
#include "compiler/lower/scan_schedule.h"

namespace einc {
namespace {

class WorkCounter {
 public:
  explicit WorkCounter(const Kernel& kernel)
      : kernel_(kernel), axes_(axes_of_values(kernel)), touched_(kernel.buffers.size(), 0), stored_(kernel.buffers.size(), 0) {}

  KernelCount run() {
    for (const Stage& stage : kernel_.stages) count(stage);
    std::vector<BufferTraffic> traffic(kernel_.buffers.size());
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const BufferUse& use = kernel_.buffers[b];
      if (use.access == BufferAccess::scratch) continue;
      const int64_t bytes = bytes_of(use.dtype);
      if (use.access != BufferAccess::write) traffic[b].read = std::min(touched_[b], use.count) * bytes;
      if (use.access != BufferAccess::read) traffic[b].written = std::min(stored_[b], use.count) * bytes;
    }
    return {work_, std::move(traffic)};
  }

 private:
  void count(const Stage& stage) {
    const uint64_t around = bits(kernel_.outer) | (kernel_.sequence ? bit(*kernel_.sequence) : 0), all = around | bits(stage.axes);
    std::vector<bool> needed(kernel_.values.size(), false);
    const auto need_index = [&](const Subscript& index) {
      for (const Subscript::Dynamic& d : index.dynamic) needed[d.value] = true;
    };
    std::vector<bool> product(kernel_.values.size(), false);
    for (uint16_t r : stage.reductions) {
      const Accumulation& a = kernel_.reductions[r];
      const int64_t n = trips(kernel_, all);
      const bool contracts = a.fold == Fold::sum && kernel_.contraction && kernel_.contraction->reduction == r;
      (contracts ? work_.contraction : work_.reduction) += contracts ? 2 * made(n) : n;
      needed[a.value] = true;
      product[a.value] = contracts;
    }
    for (const Store& s : stage.stores) {
      needed[s.value] = true;
      need_index(s.index);
      stored_[s.buffer] += s.mode == StoreMode::sum ? kernel_.buffers[s.buffer].count : trips(kernel_, all);
      if (s.mode != StoreMode::set) work_.reduction += trips(kernel_, all);
      if (!folds_in_place(s.mode)) continue;
      touched_[s.buffer] += trips(kernel_, all);
    }
    for (size_t i = kernel_.values.size(); i-- > 0;) {
      if (!needed[i]) continue;
      const Scalar& v = kernel_.values[i];
      for (ValueId x : v.operands) needed[x] = true;
      need_index(v.index);
      for (const Range& g : v.guards) need_index(g.index);
      const int64_t n = trips(kernel_, axes_[i] & all);
      if (v.kind == ScalarKind::map && !product[i]) {
        work_.elementwise += n;
        if (is_transcendental(v.fn)) work_.transcendental += n;
      }
      if (v.kind == ScalarKind::load) touched_[v.slot] += n;
    }
  }

  // Of a contraction's products, those that are made.
  int64_t made(int64_t products) const {
    for (const PaddedAxis& axis : kernel_.contraction->padded) products = products / (axis.places * axis.elements) * pairs_inside(axis);
    return products;
  }

  const Kernel& kernel_;
  std::vector<uint64_t> axes_;
  std::vector<int64_t> touched_, stored_;  // elements of each buffer, loaded and stored
  KernelWork work_;
};

}  // namespace

KernelWork& KernelWork::operator+=(const KernelWork& more) {
  contraction += more.contraction;
  elementwise += more.elementwise;
  reduction += more.reduction;
  transcendental += more.transcendental;
  bytes_read += more.bytes_read;
  bytes_written += more.bytes_written;
  return *this;
}

// All iterations. A slice's elements are read once in all, so are those of a whole operand that stays in a cache: bytes are the buffers'.
static KernelCount count_scan(const Kernel& kernel) {
  KernelCount count;
  for_each_launch(
      kernel.scan->list,
      [&](const GraphKernel& k, int64_t times) {
        const KernelWork once = work_of(*k.kernel);
        for (auto field : {&KernelWork::contraction, &KernelWork::elementwise, &KernelWork::reduction, &KernelWork::transcendental})
          count.work.*field += times * once.*field;
      },
      kernel.scan->length);
  for (const BufferUse& b : kernel.buffers) {
    const int64_t bytes = b.count * bytes_of(b.dtype);
    count.traffic.push_back(b.access == BufferAccess::read ? BufferTraffic{bytes, 0} : BufferTraffic{0, bytes});
  }
  return count;
}

KernelCount count_kernel(const Kernel& kernel) {
  KernelCount count = kernel.scan ? count_scan(kernel) : kernel.attention ? count_attention(kernel) : WorkCounter(kernel).run();
  for (const BufferTraffic& t : count.traffic) count.work.bytes_read += t.read, count.work.bytes_written += t.written;
  return count;
}

KernelWork work_of(const Kernel& kernel) { return count_kernel(kernel).work; }

}  // namespace einc
