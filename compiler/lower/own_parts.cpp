// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/own_parts.h"

#include <algorithm>

#include "compiler/lower/divide_reductions.h"
#include "compiler/lower/kernel_target.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

// Kernels from one that makes parts up to those that read them.
struct PartsGroup {
  std::vector<size_t> kernels;
  int64_t bytes = 0;
  bool moves = true;
};

// It replaces what the kernels before it have handed over. One that makes parts behind these may read them, as a variance's reads those of
// the mean.
bool makes_first_parts(const GraphKernel& k) {
  return std::ranges::any_of(k.parts,
                             [&](const Parts& p) { return p.offset == 0 && k.kernel->buffers[p.buffer].access != BufferAccess::read; });
}

std::vector<PartsGroup> find_groups(const KernelList& list) {
  std::vector<PartsGroup> groups;
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const GraphKernel& k = list.kernels[i];
    if (k.parts.empty()) continue;
    if (groups.empty() || makes_first_parts(k)) groups.emplace_back();
    PartsGroup& group = groups.back();
    group.kernels.push_back(i);
    group.bytes = std::max(group.bytes, bytes_of_parts(k));
    group.moves = group.moves && k.when != LaunchWhen::unbounded && !k.kernel->attention;
  }
  return groups;
}

}  // namespace

void give_parts_places(KernelList& list, int64_t most) {
  const std::vector<PartsGroup> groups = find_groups(list);
  const auto has_own = [&](const PartsGroup& group) { return group.moves && group.bytes <= most; };
  int64_t place = 0;
  for (const PartsGroup& group : groups)
    if (!has_own(group)) place = std::max(place, group.bytes);
  for (const PartsGroup& group : groups) {
    if (!has_own(group)) continue;
    for (const size_t k : group.kernels)
      for (Parts& parts : list.kernels[k].parts) parts.offset += place;
    place += round_up(group.bytes, kCacheLine);
  }
}

}  // namespace einc
