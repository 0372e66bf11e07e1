// SPDX-License-Identifier: Apache-2.0
// What one node costs, as formulas: FLOPs in one class, bytes read and written. The rules are the counting rules of the
// report's contract: a contraction is 2 x the product of its distinct axes, an elementwise op 1 per result element, a
// reduction 1 per element reduced, a scatter-add 1 per element added; moving data, casts, gathers and random bits are 0.
// What depends on no input, param, state or random number costs nothing (it is computed once, not per run).
#pragma once
#include <vector>

#include "compiler/cost/sizes.h"
#include "compiler/ir/graph.h"

namespace einc {

enum class FlopClass : uint8_t { contraction, elementwise, reduction, other };
inline constexpr int kFlopClasses = 4;

struct FlopCost {
  FlopClass kind = FlopClass::other;
  bool transcendental = false;
  Poly flops;
  std::vector<Poly> by_class{};  // of a scan: in each class, then transcendental ones; `flops` is the sum
};

// By the node alone, whether or not it is constant.
FlopCost flop_cost(const Graph& graph, const Sizes& sizes, NodeId id);
// Of every node.
std::vector<FlopCost> flop_costs(const Graph& graph, const Sizes& sizes);

struct ByteCost {
  Poly read, written;
};

// Bytes that a node moves as a kernel of its own. A view moves nothing unless `copies` says that it must be stored
// (layout.h); scalars written in the program are part of the code. An operand read twice is read once, a broadcast or
// window reads its source once, a slice or gather reads only what it takes.
class ByteCounter {
 public:
  ByteCounter(const Graph& graph, const Sizes& sizes, const std::vector<bool>& copies) : graph_(graph), sizes_(sizes), copies_(copies) {}
  ByteCost operator()(NodeId id) const;

 private:
  NodeId elements_read(NodeId id) const;
  Poly bytes_read(NodeId id) const;
  Poly operands_read(const Node& node) const;
  const Graph& graph_;
  const Sizes& sizes_;
  const std::vector<bool>& copies_;
};

}  // namespace einc
