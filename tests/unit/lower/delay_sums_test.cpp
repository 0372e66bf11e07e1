// SPDX-License-Identifier: Apache-2.0
// Kernels that make numbers of parts run right before who reads those, and no later than anything that touches what they touch.
#include "compiler/lower/delay_sums.h"

#include <doctest/doctest.h>

using namespace einc;

namespace {

struct OneKernel {
  std::vector<uint32_t> touched;    // values: even ones are numbers, odd ones are not
  std::vector<int64_t> parts = {};  // places, which it reads
  BufferAccess access = BufferAccess::read;
  LaunchWhen when = LaunchWhen::always;
};

// The order in which they run then.
std::vector<uint32_t> delayed(const std::vector<OneKernel>& launches) {
  KernelList list;
  for (const OneKernel& launch : launches) {
    const auto kernel = std::make_shared<Kernel>();
    GraphKernel& k = list.kernels.emplace_back();
    for (const uint32_t value : launch.touched) {
      kernel->buffers.push_back({DType::f32, BufferAccess::write, value % 2 == 0 ? 1 : 100});
      k.buffers.push_back(NodeId{value});
    }
    for (const int64_t place : launch.parts) {
      k.parts.push_back({static_cast<uint16_t>(kernel->buffers.size()), place});
      kernel->buffers.push_back({DType::f32, launch.access, 16});
      k.buffers.push_back({});
    }
    k.when = launch.when;
    k.group.members = {NodeId{static_cast<uint32_t>(list.kernels.size() - 1)}};
    k.kernel = kernel;
  }
  delay_sums(list);
  std::vector<uint32_t> order;
  for (const GraphKernel& k : list.kernels) order.push_back(k.group.members[0].index);
  return order;
}

using Order = std::vector<uint32_t>;

}  // namespace

TEST_CASE("what is made of parts waits for who reads it") {
  const OneKernel parts{{1}, {0}, BufferAccess::write}, others{{3}, {64}, BufferAccess::write};
  const OneKernel sum{{2}, {0}}, other_sum{{4}, {64}}, between{{5}}, reader{{2, 4}};
  CHECK(delayed({parts, sum, between, others, other_sum, between, reader}) == Order{0, 2, 3, 5, 1, 4, 6});
  CHECK(delayed({parts, sum, between}) == Order{0, 2, 1});                                          // nobody reads it
  CHECK(delayed({parts, sum, between, {{2, 6}, {0}}, between, {{6}}}) == Order{0, 2, 4, 1, 3, 5});  // who reads it waits, too
}

TEST_CASE("what is made of parts waits for nothing that it meets") {
  // The first two share a place for their parts; the second waits, the first only until a third kernel writes there.
  CHECK(delayed({{{2}, {0}}, {{4}, {0}}, {{5}}, {{7}, {0}, BufferAccess::write}, {{4}}}) == Order{2, 0, 1, 3, 4});
  CHECK(delayed({{{2}, {0}}, {{2, 4}, {64}}, {{5}}, {{7}, {0}, BufferAccess::write}, {{4}}}) == Order{2, 0, 3, 1, 4});
  const OneKernel parts{{1}, {0}, BufferAccess::write}, sum{{2}, {0}}, between{{5}};
  CHECK(delayed({parts, sum, between, parts, between}) == Order{0, 2, 1, 3, 4});  // the parts' place is written again
  CHECK(delayed({parts, sum, between, {{5}, {}, BufferAccess::read, LaunchWhen::checked}}) == Order{0, 2, 1, 3});  // a step may end there
  CHECK(delayed({parts, {{2, 3}, {0}}, between, {{2}}}) == Order{0, 1, 2, 3});  // a value would live longer
  CHECK(delayed({parts, between, {{2}}}) == Order{0, 1, 2});
  CHECK(delayed({{{1}, {}, BufferAccess::read, LaunchWhen::unbounded}, {{2}, {0}, BufferAccess::read, LaunchWhen::unbounded}, between}) ==
        Order{0, 1, 2});
}
