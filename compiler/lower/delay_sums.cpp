// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/delay_sums.h"

#include <algorithm>

#include "runtime/base/dtype.h"

namespace einc {
namespace {

struct PartsPlace {
  int64_t from, to;
};

std::vector<PartsPlace> places_of_parts(const GraphKernel& k) {
  std::vector<PartsPlace> ranges;
  for (const Parts& parts : k.parts) {
    const BufferUse& use = k.kernel->buffers[parts.buffer];
    ranges.push_back({parts.offset, parts.offset + use.count * bytes_of(use.dtype)});
  }
  return ranges;
}

// Of values that an index leads to or random numbers none are made late: who reads them may be told by their place in the list.
bool waits_for_readers(const GraphKernel& k) {
  if (k.parts.empty() || k.when != LaunchWhen::always || !k.streams.empty() || !k.sites.empty()) return false;
  for (const Parts& parts : k.parts)
    if (k.kernel->buffers[parts.buffer].access != BufferAccess::read) return false;
  for (size_t b = 0; b < k.buffers.size(); ++b)
    if (k.buffers[b].valid() && k.kernel->buffers[b].count > 1) return false;
  return true;
}

bool touches_same(const GraphKernel& waiting, const std::vector<PartsPlace>& parts, const GraphKernel& later) {
  if (later.when != LaunchWhen::always) return true;
  for (const NodeId id : waiting.buffers)
    if (id.valid() && std::ranges::find(later.buffers, id) != later.buffers.end()) return true;
  for (const PartsPlace& other : places_of_parts(later))
    for (const PartsPlace& own : parts)
      if (own.from < other.to && other.from < own.to) return true;
  return false;
}

}  // namespace

void delay_sums(KernelList& list) {
  std::vector<GraphKernel>& kernels = list.kernels;
  std::vector<std::vector<size_t>> at(kernels.size() + 1);  // by place: who runs there, last first
  std::vector<size_t> place(kernels.size());
  for (size_t i = kernels.size(); i-- > 0;) {
    place[i] = i;
    if (waits_for_readers(kernels[i])) {
      const std::vector<PartsPlace> parts = places_of_parts(kernels[i]);
      place[i] = kernels.size();
      for (size_t later = i + 1; later < place[i]; ++later)
        if (touches_same(kernels[i], parts, kernels[later])) place[i] = std::min(place[i], place[later]);  // who reads it may wait, too
    }
    at[place[i]].push_back(i);
  }
  std::vector<GraphKernel> ordered;
  for (const std::vector<size_t>& here : at)
    for (size_t n = here.size(); n-- > 0;) ordered.push_back(std::move(kernels[here[n]]));
  kernels = std::move(ordered);
}

}  // namespace einc
