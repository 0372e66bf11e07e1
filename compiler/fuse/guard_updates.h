// SPDX-License-Identifier: Apache-2.0
// Adds to a graph what keeps its run from storing a NaN, or an infinity where the old element was finite:
//   gradients    the largest magnitude of all: of a gradient's elements, the root of the sum of its squares where clipping takes that, or
//                a bound by its operands where it is a product (fuse/bounded_products).
//   bounded      an update that is an elementwise expression of gradients, params and states, and nothing else reads: its bound follows by
//                interval arithmetic. Where that does not suffice, dry kernels make the least and the largest of what would be stored; they
//                do not see the old elements, so an infinity ends the run also where somebody had set one.
//   others       of what has been made, the elements that may not be stored are looked for; the state takes it if there is none.
//   replaced     where elements of a state are replaced, those that replace them are looked at before.
// Sums of gradients over micro-batches are looked at where they lie: whoever runs the step clears them. Under a loss scale gradients that
// are not finite are the program's own affair: it skips the step.
// A device of a mesh looks at its own parts before all devices agree: bounds that hold for others' parts are not known, so what would be
// stored is looked at with each step. Parts that are put together (all_gather) are looked at as they are sent. All that is stored waits.
#pragma once
#include <memory>
#include <optional>

#include "compiler/ir/interpret.h"
#include "compiler/lower/bound_graph.h"

namespace einc {

struct GuardedGraph {
  std::unique_ptr<Graph> graph;  // nodes are added behind those given
  UpdateGuard guard;
};

// Whether gradients may be bounded by what their products read: where updates join products, which those of a library never do.
enum class GradientLooks : uint8_t { elements, products };

// Nothing for a run that updates nothing.
std::optional<GuardedGraph> guard_updates(const BoundGraph& graph, RunMode mode, GradientLooks looks);

}  // namespace einc
