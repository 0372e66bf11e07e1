// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/launch_traffic.h"

#include <algorithm>
#include <unordered_map>

namespace einc {
namespace {

// Sums over a range of times, in logarithmic time (a Fenwick tree).
class TimeSums {
 public:
  explicit TimeSums(size_t count) : sums_(count + 1, 0) {}
  void add(size_t time, int64_t bytes) {
    for (size_t i = time + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += bytes;
  }
  int64_t before(size_t time) const {
    int64_t sum = 0;
    for (size_t i = time; i > 0; i &= i - 1) sum += sums_[i];
    return sum;
  }

 private:
  std::vector<int64_t> sums_;
};

struct Access {
  uint32_t launch;
  int64_t place;  // in the mapping: values that follow one another there overwrite one another in the cache
  BufferTraffic bytes;
};

// Whole buffers, not lines: kernels go over all of what they touch, and a step has thousands of buffers but billions of lines. The distance
// between two uses of a buffer is then one sum over the buffers last used in between.
class CacheModel {
 public:
  CacheModel(int64_t cache_bytes, std::vector<Access> accesses, std::vector<LaunchTraffic>& launches)
      : cache_(cache_bytes), accesses_(std::move(accesses)), launches_(launches), touched_(kSteps * accesses_.size()) {}

  // The first step finds an empty cache; the second is counted; the third shows what of the second's writes is read in time.
  void run() {
    for (int step = 0; step < kSteps; ++step)
      for (const Access& access : accesses_) touch(access, step);
  }

 private:
  static constexpr int kSteps = 3;
  struct Held {
    bool known = false, counts = false;  // counts: written in the step that is counted
    size_t time = 0;                     // of the last access
    int64_t bytes = 0;                   // then
    int64_t dirty = 0;                   // written and not in memory yet
    uint32_t writer = 0;                 // the launch that wrote them
  };

  void touch(const Access& access, int step) {
    Held& held = held_[access.place];
    const int64_t bytes = std::max(access.bytes.read, access.bytes.written);
    const int64_t since = held.known ? touched_.before(now_) - touched_.before(held.time + 1) : 0;
    const bool hit = held.known && since + bytes <= cache_;
    if (!hit) {
      // It left the cache meanwhile. Whether anybody still wants it, the cache does not know.
      if (held.counts) launches_[held.writer].to_memory += held.dirty;
      held.dirty = 0;
      if (step == kCounted) launches_[access.launch].from_memory += access.bytes.read;
    }
    if (held.known) touched_.add(held.time, -held.bytes);
    if (access.bytes.written > 0) {
      held.counts = step == kCounted;
      const bool stays = access.bytes.written <= cache_;
      if (!stays && held.counts) launches_[access.launch].to_memory += access.bytes.written;
      held.dirty = stays ? access.bytes.written : 0;
      held.writer = access.launch;
    }
    held.known = true, held.time = now_, held.bytes = bytes;
    touched_.add(now_++, bytes);
  }

  static constexpr int kCounted = 1;
  const int64_t cache_;
  const std::vector<Access> accesses_;
  std::vector<LaunchTraffic>& launches_;
  TimeSums touched_;
  size_t now_ = 0;
  std::unordered_map<int64_t, Held> held_;
};

// What the launches of a step read and write, in their order.
class Accesses {
 public:
  Accesses(const KernelList& list, const BufferPlan& plan, std::span<const FusedProduct> instead)
      : list_(list), plan_(plan), done_by_(list.kernels.size(), nullptr) {
    for (const FusedProduct& fused : instead)
      for (const uint32_t part : fused.parts) done_by_[part] = &fused;
  }

  std::vector<Access> run(std::vector<LaunchTraffic>& launches) {
    for (uint32_t i = 0; i < list_.kernels.size(); ++i) {
      LaunchTraffic& launch = launches.emplace_back();
      if (const FusedProduct* fused = done_by_[i]) {
        if (fused->at == i) add(*fused, launch);
        continue;
      }
      const GraphKernel& k = list_.kernels[i];
      const KernelCount& count = count_of(*k.kernel);
      launch.work = count.work;
      if (k.when == LaunchWhen::unbounded) continue;
      // Parts of sums have no node: few bytes, read at once.
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.buffers[b].valid()) add(i, k.buffers[b], count.traffic[b]);
    }
    return std::move(accesses_);
  }

 private:
  const KernelCount& count_of(const Kernel& kernel) {
    const auto [count, fresh] = known_.try_emplace(&kernel);
    if (fresh) count->second = count_kernel(kernel);
    return count->second;
  }

  void add(uint32_t launch, NodeId value, const BufferTraffic& bytes) {
    if (bytes.read + bytes.written > 0) accesses_.push_back({launch, plan_.buffers[plan_.holder(value).index].offset, bytes});
  }

  // What several parts read it reads once; the product in between does not go through memory, unless others read it.
  void add(const FusedProduct& fused, LaunchTraffic& launch) {
    std::vector<std::pair<NodeId, BufferTraffic>> values;
    for (const uint32_t part : fused.parts) {
      const GraphKernel& k = list_.kernels[part];
      const KernelCount& count = count_of(*k.kernel);
      launch.work += count.work;
      for (size_t b = 0; b < k.buffers.size(); ++b) {
        if (!k.buffers[b].valid()) continue;
        const auto known = std::ranges::find(values, k.buffers[b], &std::pair<NodeId, BufferTraffic>::first);
        BufferTraffic& bytes = (known == values.end() ? values.emplace_back(k.buffers[b], BufferTraffic{}) : *known).second;
        bytes.read = std::max(bytes.read, count.traffic[b].read), bytes.written = std::max(bytes.written, count.traffic[b].written);
      }
    }
    launch.work.bytes_read = launch.work.bytes_written = 0;
    const NodeId product{list_.library.products[fused.plain]->result.buffer};
    const bool stored = fused.product.result.buffer == product.index || fused.product.epilogue.input == product.index;
    for (auto& [value, bytes] : values) {
      if (value == product) bytes.read = 0, bytes.written = stored ? bytes.written : 0;
      launch.work.bytes_read += bytes.read, launch.work.bytes_written += bytes.written;
      add(fused.at, value, bytes);
    }
  }

  const KernelList& list_;
  const BufferPlan& plan_;
  std::vector<const FusedProduct*> done_by_;  // by kernel: an alternative that it is part of
  std::unordered_map<const Kernel*, KernelCount> known_;
  std::vector<Access> accesses_;
};

}  // namespace

std::vector<LaunchTraffic> launch_traffic(const KernelList& list, const BufferPlan& plan, int64_t cache_bytes,
                                          std::span<const FusedProduct> instead) {
  std::vector<LaunchTraffic> launches;
  std::vector<Access> accesses = Accesses(list, plan, instead).run(launches);
  if (cache_bytes > 0) {
    CacheModel(cache_bytes, std::move(accesses), launches).run();
  } else {
    for (LaunchTraffic& t : launches) t.from_memory = t.work.bytes_read, t.to_memory = t.work.bytes_written;
  }
  return launches;
}

}  // namespace einc
