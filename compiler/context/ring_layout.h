// SPDX-License-Identifier: Apache-2.0
// How the values of a ring lie. Where an axis of the whole value was one of rows [s] or of keys [t], its parts have up to three: the
// devices of the ring [n], the halves of a device's rows [2] where the sequence is in zigzag order (partition/zigzag.h), and what is left
// of the axis. Rows are [n, s/n] or [n, 2, s/2n], keys [n, t/n], and [t/n] beside rows. What follows from indices may lack some of these.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

using ScoreAxes = std::vector<int>;  // of each axis of a value: the scores' axis that it is, or -1

struct Placed {
  NodeId node{};
  int ring = -1;  // the axis of the whole value that has parts, and where these begin; -1: none
  bool devices = false, halves = false, own = true;

  // Of how many axes the parts are.
  int width() const { return (devices ? 1 : 0) + (halves ? 1 : 0) + (own ? 1 : 0); }
  // Where an axis of the whole value stands.
  int at(int axis) const { return ring < 0 || axis < ring ? axis : axis > ring ? axis + width() - 1 : axis + width() - (own ? 1 : 0); }
  Placed with(NodeId value) const { return {value, ring, devices, halves, own}; }
  // To have the parts of an operand. `alike`: it has the axis whose parts stand here.
  void join(const Placed& operand, bool alike) {
    devices = devices || operand.devices;
    halves = halves || (alike && operand.halves), own = own || (alike && operand.own);
  }
};

// Where the axes of a value in parts lie in `other`, in which the whole value's lie at `to`.
inline AxisList axes_in(const AxisList& to, const Placed& value, const Placed& other) {
  AxisList out;
  for (int i = 0; i < to.size(); ++i) {
    if (i == value.ring && value.devices) out.push_back(other.ring);
    if (i == value.ring && value.halves) out.push_back(other.ring + (other.devices ? 1 : 0));
    if (i != value.ring || value.own) out.push_back(other.at(to[i]));
  }
  return out;
}

inline Axis ring_halves() { return {Name(), Poly(2)}; }

// How often each axis of the whole value is cut to make the parts.
inline AxisList counts_of(const Placed& value, int rank) {
  AxisList counts;
  for (int i = 0; i < rank; ++i) counts.push_back(i == value.ring ? value.width() : 1);
  return counts;
}

}  // namespace einc
