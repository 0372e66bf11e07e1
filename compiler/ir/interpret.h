// SPDX-License-Identifier: Apache-2.0
// The oracle: runs a graph node by node with plain loops in f64. Every pass and every backend is compared with it, and its
// counters, incremented in the innermost loops, are what cost formulas are compared with. It knows all ops, composites
// included. Sums run in row-major order; max and min propagate NaN; arg_reduce and top_k_index take NaN as the extreme
// and the first of equals; softmax of a row of -inf is NaN; integers wrap; scatter_set with a position given twice keeps
// the last in row-major order; random numbers follow runtime/base/random.h with element indices in row-major order.
#pragma once
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/tensor.h"
#include "runtime/base/iterations.h"

namespace einc {

// exact: no result is rounded. casts: those of casts to a named dtype are. stored: each node's is, `real` to f32.
enum class Arithmetic : uint8_t { exact, casts, stored };
// training: everything is computed, dropout is on. inference: outputs and user states' updates; dropout is the identity.
enum class RunMode : uint8_t { training, inference };

struct InterpretOptions {
  Arithmetic arithmetic = Arithmetic::exact;
  RunMode mode = RunMode::training;
  uint64_t seed = 0;
  uint64_t step = 0;
  Iterations iterations{};    // of the scans around
  uint64_t memory_limit = 0;  // bytes of values alive at once, refused before any is made; 0: the machine's memory
  std::vector<NodeId> watch;  // nodes whose values are wanted besides the roots'
  std::function<void(const Node& node, Tensor& value)> computed{};  // sees each value, and may change it, before others do
};

// Work done, by the counting rules of interface.md. `transcendental` is part of `elementwise`.
struct Counts {
  uint64_t contraction = 0, elementwise = 0, transcendental = 0, reduction = 0, other = 0;
  uint64_t total() const { return contraction + elementwise + reduction + other; }
  Counts& operator+=(const Counts& b);
  friend bool operator==(const Counts&, const Counts&) = default;
};

struct InterpretResult {
  std::vector<std::pair<Name, Tensor>> outputs;
  std::optional<Tensor> loss;
  TensorMap params, states;  // new values, by path, of those that are updated
  TensorMap gradients;       // by path of the param; zeros where the loss does not depend on it
  std::vector<Tensor> watched;
  std::vector<Counts> counts;  // by node; zeros for nodes that were not computed
};

// `given` sets free and defaulted dims. inputs by name, params and states by path, all of them.
// Throws RuntimeFailure: a dim without a value or a broken condition, a tensor missing or of another shape, an index out
// of range, a tensor too large.
InterpretResult interpret(const Graph& graph, const Bindings& given, const TensorMap& inputs, const TensorMap& params,
                          const TensorMap& states, const InterpretOptions& options = {});

// The value that `given` holds for an input, param or state (of all of them, by name or path): of its shape, converted to its
// dtype. Throws RuntimeFailure (data) when it is missing, of another shape, or not representable.
Tensor given_value(const Graph& graph, NodeId id, const std::vector<int64_t>& shape, const TensorMap& given);

// Initial values by path of all params, and of all states.
TensorMap initial_params(const Graph& graph, const Bindings& given, uint64_t seed, Arithmetic arithmetic = Arithmetic::exact);
TensorMap initial_states(const Graph& graph, const Bindings& given, uint64_t seed, Arithmetic arithmetic = Arithmetic::exact);

// Sums over the nodes of a phase, those that constant_nodes marks left out: they cost nothing.
Counts count_phase(const Graph& graph, const InterpretResult& result, Phase phase);

}  // namespace einc
