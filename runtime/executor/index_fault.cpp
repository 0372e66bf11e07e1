// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/index_fault.h"

#include <fmt/format.h>

#include "runtime/base/failure.h"

namespace einc {
namespace {

std::string place_text(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> at(shape.size());
  for (size_t i = shape.size(); i-- > 0;) at[i] = index % shape[i], index /= shape[i];
  return fmt::format("[{}]", fmt::join(at, ", "));
}

}  // namespace

void throw_index_fault(const Launch& launch, const IndexFault& fault, std::span<const int64_t> iterations) {
  const SiteInfo& site = launch.sites[static_cast<size_t>(fault.site)];
  if (site.bound == 0)
    throw FaultyElement(
        fmt::format("division by zero: '{}' at {} is 0{}", site.positions, place_text(site.shape, fault.place), site.location),
        site.positions, fault.place, iterations);
  throw FaultyElement(fmt::format("index out of range: '{}' at {} is {}, but {} has size {}{}", site.positions,
                                  place_text(site.shape, fault.place), fault.value, site.table, site.bound, site.location),
                      site.positions, fault.place, iterations);
}

}  // namespace einc
