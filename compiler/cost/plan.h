// A memory plan for given dims: every stored value gets an interval of one arena, in schedule order (the graph's), best fit
// with coalescing; a value ends at its last reader. What the forward keeps for later lies below, temporaries above, so that
// neither leaves holes in the other; once all is kept, temporaries also use what the backward has freed below. Views share their base's
// buffer; a map overwrites an operand that ends there; the new value of a param or state is computed in its place when nothing reads the
// old one afterwards; a parameter's gradient has a fixed buffer. What depends on no input is computed once and kept. Peaks are sums of what
// the plan allocates.
#pragma once
#include <optional>
#include <vector>

#include "compiler/cost/layout.h"
#include "compiler/cost/sizes.h"
#include "compiler/symbolic/rational.h"

namespace einc {

enum class PlanMode : uint8_t { training, inference };

// Where a node's buffer lies. `shared`: in that of another arena buffer; `in_place`: in the target of an update.
enum class Region : uint8_t { none, source, constant, gradient, in_place, arena, shared };

struct Placement {
  Region region = Region::none;
  int64_t offset = 0, bytes = 0;  // of arena buffers; bytes are rounded up to kArenaAlignment
  uint32_t first = 0, last = 0;   // schedule positions (node indices); last of a shared buffer is its own
  NodeId shares;                  // when shared or in place
};

inline constexpr int64_t kArenaAlignment = 64;

struct MemoryPlan {
  std::vector<Placement> placements;  // per node; Region::none for views, dead nodes and scalars written in the program
  std::vector<bool> live;
  Rational arena, constants, saved;  // bytes; saved: arena buffers of the forward that a backward node reads, but casts of params
  Rational parameters, gradients, optimizer_state, state, inputs;  // of what is live
  Rational peak() const { return arena + constants + parameters + gradients + optimizer_state + state + inputs; }
};

// Nothing when a dim that some size needs has no value, or a buffer passes 2^62 bytes.
std::optional<MemoryPlan> plan_memory(const Graph& graph, const Sizes& sizes, const Layouts& layouts, const std::vector<bool>& constant,
                                      const Bindings& dims, PlanMode mode);

// Nodes that the roots need: outputs (the loss without any), state updates; in training the loss and parameter updates too.
std::vector<bool> live_nodes(const Graph& graph, PlanMode mode);

}  // namespace einc
