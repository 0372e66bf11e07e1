// SPDX-License-Identifier: Apache-2.0
// A collective as plain data: which bytes go from which device to which, and what is summed where they arrive. The lists of processes have
// in the same order what they have in common, independent of how many there are; an engine only carries them out.
#pragma once
#include <vector>

#include "runtime/mesh/mesh_plan.h"

namespace einc {

// A block of a value as it lies in memory: `rows` pieces of `width` bytes, of which each begins `pitch` bytes behind the one before.
struct Strip {
  int64_t offset = 0, width = 0, rows = 1, pitch = 0;
  int64_t bytes() const { return width * rows; }
};
void copy_strip(const Strip& strip, const std::byte* value, std::byte* packed);
void copy_strip(const std::byte* packed, const Strip& strip, std::byte* value);

// Between two devices, or within one.
struct Transfer {
  int64_t from = 0, to = 0;
  Strip source, target;  // of the same bytes
};

enum class MoveFrom : uint8_t { operand, result };
struct CollectiveSteps {
  // Blocks of the operand that device `to` combines to `target`, which is without gaps. Those of one sum stand together, by coordinate;
  // of a sum that another process makes there are those that are sent from here.
  std::vector<Transfer> terms;
  size_t terms_of_sum = 0;
  // Behind that: blocks of the operand, or of the result so far, that go to their place in the result.
  std::vector<Transfer> moves;
  MoveFrom moved = MoveFrom::operand;
  int64_t group = 1;  // devices that move blocks among each other
};
// What devices `first` to `last` - 1 send or receive.
CollectiveSteps collective_steps(const MeshShape& mesh, const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to,
                                 int64_t first, int64_t last);
// By all devices together, to others.
int64_t sent_bytes(const MeshShape& mesh, const MeshCollective& c, const DeviceTensor& from, const DeviceTensor& to);

// The same in pieces, of which each ends before the next begins, so that a device needs room for about so many bytes at once: blocks that
// it receives to combine, or that do not lie without gaps. Rows of a strip stay whole. The first piece has the most bytes.
std::vector<CollectiveSteps> in_pieces(CollectiveSteps steps, int64_t most);

}  // namespace einc
