// SPDX-License-Identifier: Apache-2.0
// The numbers that rows and keys of a ring's parts have in the sequence. At step c device r meets the keys of device o = (r + c) mod n.
// In zigzag order of chunks of m elements a device has chunks r and 2n-1-r. Under a causal mask a row in half h of its device's sees, of
// the places k = 0 .. 2m-1 of the keys that the device meets:
//   c = 0:  those up to its own place;    c > 0:  k < m, where o < r;  k < 2mh, where o > r: the later half sees all, the earlier none
// So every device makes half of the pairs at each step, and a kernel skips the others (lower/key_bounds).
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/context/ring_layout.h"
#include "compiler/ir/build.h"

namespace einc {

enum class RingOrder : uint8_t { program, zigzag };

class RingPositions {
 public:
  RingPositions(Builder& build, const Axis& devices, RingOrder order) : build_(build), devices_(devices), order_(order) {}

  // [n]: of each device that whose keys it meets.
  NodeId owners(int c);
  // Of the numbers [s] of all rows: [n, s/n] or [n, 2, m]. Of those [t] of all keys: [n, t/n].
  Placed rows(const Type& whole);
  Placed keys(const Type& whole, int c);

  // What may be compared instead of a row's number and a key's, in zigzag order: places of keys, and the last of a row's run (`last`) or
  // the one behind it.
  Placed row_place(const Type& whole, int c, bool last);
  Placed key_place(const Type& whole);

 private:
  Axis part(const Axis& whole, int64_t parts) const { return {whole.name, divide(whole.size, devices_.size * Poly(parts))}; }
  NodeId first_of_block(const Poly& size, DType dtype, int c);
  NodeId in_zigzag(const Axis& place, DType dtype, int c);
  NodeId sum(NodeId first, AxisList first_axes, NodeId second, AxisList second_axes, std::vector<Axis> axes);

  Builder& build_;
  const Axis devices_;
  const RingOrder order_;
  // Rows and keys of one device have the same node for the number of their first, so that a bound needs no number of the device.
  struct FirstOfBlock {
    Poly size;
    DType dtype;
    int step;
    NodeId node;
  };
  std::vector<FirstOfBlock> firsts_;
};

}  // namespace einc
