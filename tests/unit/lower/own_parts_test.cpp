// SPDX-License-Identifier: Apache-2.0
// Which kernels hand parts of sums to each other, and where these lie.
#include "compiler/lower/own_parts.h"

#include <doctest/doctest.h>

using namespace einc;

namespace {

constexpr BufferAccess kReads = BufferAccess::read, kMakes = BufferAccess::write;

struct WithParts {
  struct Use {
    BufferAccess access;
    int64_t offset;
    int64_t bytes = 64;
  };
  std::vector<Use> parts;
  LaunchWhen when = LaunchWhen::always;
};

// Where the parts of each lie then.
std::vector<std::vector<int64_t>> placed(const std::vector<WithParts>& launches, int64_t most) {
  KernelList list;
  for (const WithParts& launch : launches) {
    const auto kernel = std::make_shared<Kernel>();
    GraphKernel& k = list.kernels.emplace_back();
    for (const WithParts::Use& use : launch.parts) {
      k.parts.push_back({static_cast<uint16_t>(kernel->buffers.size()), use.offset});
      kernel->buffers.push_back({DType::f32, use.access, use.bytes / 4});
      k.buffers.push_back({});
    }
    k.when = launch.when;
    k.kernel = kernel;
  }
  give_parts_places(list, most);
  std::vector<std::vector<int64_t>> offsets;
  for (const GraphKernel& k : list.kernels) {
    offsets.emplace_back();
    for (const Parts& parts : k.parts) offsets.back().push_back(parts.offset);
  }
  return offsets;
}

using Places = std::vector<std::vector<int64_t>>;

}  // namespace

TEST_CASE("parts of small sums have places of their own") {
  const WithParts makes{{{kMakes, 0}}}, reads{{{kReads, 0}}};
  CHECK(placed({makes, reads, {}, makes, reads}, 1000) == Places{{0}, {0}, {}, {64}, {64}});
  CHECK(placed({makes, reads, reads, makes, reads}, 1000) == Places{{0}, {0}, {0}, {64}, {64}});
  // A second sum reads the parts of the first; both are read at the end.
  CHECK(placed({makes, {{{kReads, 0}, {kMakes, 64}}}, {{{kReads, 0}, {kReads, 64}}}, makes, reads}, 1000) ==
        Places{{0}, {0, 64}, {0, 64}, {128}, {128}});
}

TEST_CASE("parts of large sums, and of launches that seldom run, share one place before them") {
  const WithParts makes{{{kMakes, 0}}}, reads{{{kReads, 0}}};
  const WithParts makes_much{{{kMakes, 0, 4096}}}, reads_much{{{kReads, 0, 4096}}};
  CHECK(placed({makes, reads, makes_much, reads_much, makes_much, reads_much}, 1000) == Places{{4096}, {4096}, {0}, {0}, {0}, {0}});
  const WithParts dry_makes{{{kMakes, 0}}, LaunchWhen::unbounded}, dry_reads{{{kReads, 0}}, LaunchWhen::unbounded};
  CHECK(placed({makes, reads, dry_makes, dry_reads}, 1000) == Places{{64}, {64}, {0}, {0}});
  CHECK(placed({makes, reads}, 0) == Places{{0}, {0}});
}
