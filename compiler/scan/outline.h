// SPDX-License-Identifier: Apache-2.0
// From the nodes of one iteration, built into the graph around them, to a scan: what depends on a carry, on the index or on a draw becomes
// the body, a graph of its own; what does not stays outside and is computed once. Contractions of slices alone are computed outside as
// well, all iterations at once: the input projections of an LSTM are one product.
#pragma once
#include <memory>
#include <unordered_map>
#include <vector>

#include "compiler/ir/build.h"

namespace einc {

// `mark`: an input that stands for the value at the start of an iteration, of the carry's type. `next` has that type, too.
struct ScanCarry {
  NodeId mark, initial, next;
};

// A call whose gradient the program writes itself (autodiff/custom_gradients.h). If a result moves into the body, all do, and the gradients
// with what they are made of; placeholders stand there for values of an iteration.
struct ScanBlock {
  std::vector<NodeId> results, placeholders, inputs, gradients;
};

struct ScanDraft {
  uint32_t first = 0;  // the iteration's nodes are among those from here on
  NodeId index;        // a mark as well: i32, without axes
  std::vector<ScanCarry> carries;
  std::vector<NodeId> collected;
  Axis axis;  // of the length that is run; names what is collected
  Direction direction = Direction::forward;
  int64_t save_every = 0;           // see ScanAttr
  std::vector<ScanBlock> blocks{};  // by their results, increasing
};

struct OutlinedScan {
  std::vector<NodeId> results;  // last values of the carries, then what was collected
  std::shared_ptr<const Graph> body;
  std::unordered_map<uint32_t, NodeId> in_body;  // where nodes are that moved, and those that its blocks name
};
// Nodes that move into the body leave constants that nothing reads.
OutlinedScan outline_scan(Builder& build, const ScanDraft& draft);

}  // namespace einc
