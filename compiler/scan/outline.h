// From the nodes of one iteration, built into the graph around them, to a scan: what depends on a carry, on the index or on a draw becomes
// the body, a graph of its own; what does not stays outside and is computed once. Contractions of slices alone are computed outside as
// well, all iterations at once: the input projections of an LSTM are one product.
#pragma once
#include <vector>

#include "compiler/ir/build.h"

namespace einc {

// `mark`: an input that stands for the value at the start of an iteration, of the carry's type. `next` has that type, too.
struct ScanCarry {
  NodeId mark, initial, next;
};

struct ScanDraft {
  uint32_t first = 0;  // the iteration's nodes are among those from here on
  NodeId index;        // a mark as well: i32, without axes
  std::vector<ScanCarry> carries;
  std::vector<NodeId> collected;
  Axis axis;  // of the length that is run; names what is collected
  Direction direction = Direction::forward;
  int64_t save_every = 0;  // see ScanAttr
};

// The results: last values of the carries, then what was collected. Nodes that move into the body leave constants that nothing reads.
std::vector<NodeId> outline_scan(Builder& build, const ScanDraft& draft);

}  // namespace einc
