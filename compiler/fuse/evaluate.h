// SPDX-License-Identifier: Apache-2.0
// Scalar values of graph nodes at an index: how a kernel's expressions are made. Views only change the index; what lies in
// memory is loaded; everything else is computed in place. Sums over axes become reductions of the kernel.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "compiler/fuse/kernel_builder.h"

namespace einc {

Fold fold_of(ReduceFn fn);

using Indices = SmallVector<Subscript, 6>;

// Thrown while building: the group cannot be one kernel.
struct Refused {
  std::string reason;
};
// Thrown while building: start again with this axis divided into outer and inner loops.
struct SplitNeeded {
  AxisId axis;
  int64_t inner;
};

// The loop axes, made of units: one per axis of the space node or of a reduction, each one loop or a few nested ones.
class LoopSpace {
 public:
  struct Unit {
    int64_t extent;
    std::vector<int64_t> factors;  // of its loops, outermost first; their product is the extent
    Affine index;
    uint64_t axes;  // as bits
  };
  // In order of creation; a unit asked for again after a restart gets the loops that splits gave it.
  int add(Kernel& kernel, int64_t extent, Name name);
  const Unit& unit(int i) const { return units_[static_cast<size_t>(i)]; }
  int size() const { return static_cast<int>(units_.size()); }
  // The loops that `split` asks for, for the next attempt.
  void divide(const SplitNeeded& split);
  void restart() { units_.clear(); }

 private:
  std::vector<Unit> units_;
  std::vector<std::vector<int64_t>> factors_;  // of units that were divided
};

// What attempt(space) builds, tried again with the loops divided that an attempt asks for; else why it cannot be built.
template <class Attempt>
auto build_in(const Attempt& attempt) -> std::pair<std::optional<std::invoke_result_t<Attempt, LoopSpace&>>, std::string> {
  LoopSpace space;
  for (int restarts = 0; restarts < 32; ++restarts) {
    space.restart();
    try {
      return {std::optional(attempt(space)), std::string()};  // `{}` would copy what was built
    } catch (const SplitNeeded& split) {
      space.divide(split);
    } catch (const Refused& refused) {
      return {std::nullopt, refused.reason};
    }
  }
  return {std::nullopt, "too many loops"};
}

// How many contractions a kernel may hold.
enum class Contractions : uint8_t { one, any };

class KernelEvaluator {
 public:
  KernelEvaluator(const BoundGraph& graph, const std::vector<bool>& member, const std::vector<bool>& in_memory, LoopSpace& space,
                  BuiltKernel& out, Contractions allowed = Contractions::one)
      : graph_(graph), member_(member), in_memory_(in_memory), space_(space), out_(out), allowed_(allowed) {}

  // The value of node `id` at index `at`, one entry per axis.
  ValueId value_of(NodeId id, const Indices& at);
  // Where operand k is read when the node is wanted at `at`, for ops that read each operand at one place.
  Indices operand_index(NodeId id, size_t k, const Indices& at);
  // Loops over the axes that a reduce sums over, as an index each.
  const Indices& reduced_index(NodeId reduce, const Indices& at);
  // From now on values are those that the backward has made again, where there are such.
  void read_again() { reads_again_ = true; }
  void set_reduced_index(NodeId reduce, Indices index) { reduced_.emplace(reduce.index, std::move(index)); }
  // The same for a label that a contraction sums over.
  void set_summed_index(NodeId contract, int label, Subscript index) { summed_[{contract.index, label}] = std::move(index); }

  // Whether the kernel computes the node's values, rather than loading them.
  bool computes(NodeId id) const { return !is_source(graph_[id].op) && (member_[id.index] || !in_memory_[id.index]); }

  // Where an element lies in memory; which it is, counted row-major.
  Subscript address(NodeId id, const Indices& at) const;
  Subscript number(NodeId id, const Indices& at) const;
  uint16_t buffer(NodeId id, BufferAccess access);
  ValueId checked_position(NodeId node, NodeId ids, const Indices& at);
  ValueId add(Scalar value);
  uint16_t add_reduction(Accumulation reduction, std::vector<AxisId> axes);
  ValueId reduction_result(uint16_t reduction, DType dtype);
  ValueId constant(DType dtype, const ScalarValue& value);
  ValueId zero(DType dtype) { return constant(dtype, Poly(0)); }

  std::vector<std::vector<AxisId>> reduction_axes;  // per reduction of the kernel
  // The sums that contractions have become, operands first.
  struct Product {
    NodeId node;
    uint16_t reduction;
    ValueId left, right;
  };
  std::vector<Product> products;

 private:
  Subscript dot(NodeId id, const Indices& at, const Shape& strides) const;
  ValueId compute(NodeId id, const Indices& at);
  ValueId load(NodeId id, const Indices& at);
  ValueId map(NodeId id, const Indices& at);
  ValueId reduce(NodeId id, const Indices& at);
  ValueId arg_reduce(NodeId id, const Indices& at);
  ValueId contract(NodeId id, const Indices& at);
  ValueId pad(NodeId id, const Indices& at);
  ValueId concat(NodeId id, const Indices& at);
  ValueId gather(NodeId id, const Indices& at);
  ValueId one_hot(NodeId id, const Indices& at);
  bool is_nonzero_constant(NodeId id) const;
  ValueId checked_divisor(NodeId division, const Indices& at, ValueId divisor);
  ValueId fold(NodeId id, const Indices& at);
  ValueId guarded(const std::vector<Range>& ranges, ValueId otherwise, NodeId id, const Indices& at);
  Indices split_index(NodeId id, const Indices& at);
  Indices merge_index(NodeId id, const Indices& at);
  std::pair<Subscript, Subscript> divide(const Subscript& index, int64_t divisor);
  ValueId value_of_index(const Subscript& index);
  std::vector<AxisId> loops(const Indices& index) const;

  const BoundGraph& graph_;
  const std::vector<bool>& member_;
  const std::vector<bool>& in_memory_;
  LoopSpace& space_;
  BuiltKernel& out_;
  Contractions allowed_;
  bool contracts_ = false, reads_again_ = false;
  std::vector<Range> guards_;  // that hold where the value is wanted
  struct Known {
    Indices at;
    std::vector<Range> guards;
    ValueId value;
    size_t before;  // the one of the same node that was made before it
  };
  static constexpr size_t kNone = SIZE_MAX;
  std::deque<Known> known_;
  std::unordered_map<uint32_t, size_t> last_known_;  // by node
  std::unordered_map<uint32_t, Indices> reduced_;
  std::map<std::pair<uint32_t, int>, Subscript> summed_;
};

}  // namespace einc
