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

}  // namespace

std::vector<LaunchTraffic> launch_traffic(const KernelList& list, const BufferPlan& plan, int64_t cache_bytes) {
  std::vector<LaunchTraffic> launches;
  std::vector<Access> accesses;
  std::unordered_map<const Kernel*, KernelCount> known;
  for (uint32_t i = 0; i < list.kernels.size(); ++i) {
    const GraphKernel& k = list.kernels[i];
    const auto [count, fresh] = known.try_emplace(k.kernel.get());
    if (fresh) count->second = count_kernel(*k.kernel);
    launches.push_back({count->second.work, 0, 0});
    if (k.when == LaunchWhen::unbounded) continue;
    for (size_t b = 0; b < k.buffers.size(); ++b) {
      const BufferTraffic& bytes = count->second.traffic[b];
      // Parts of sums have no node: few bytes, read at once.
      if (k.buffers[b].valid() && bytes.read + bytes.written > 0)
        accesses.push_back({i, plan.buffers[plan.holder(k.buffers[b]).index].offset, bytes});
    }
  }
  if (cache_bytes > 0) {
    CacheModel(cache_bytes, std::move(accesses), launches).run();
  } else {
    for (LaunchTraffic& t : launches) t.from_memory = t.work.bytes_read, t.to_memory = t.work.bytes_written;
  }
  return launches;
}

}  // namespace einc
