// SPDX-License-Identifier: Apache-2.0
// What the interpreter's op files share: the node being evaluated with its operands and result, and the strided loop nest
// that all of them are written with.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "compiler/ir/interpret.h"

namespace einc {

struct Evaluation {
  const Graph& graph;
  const Node& node;
  const Bindings& dims;
  const InterpretOptions& options;
  std::vector<const Tensor*> in;
  Tensor out;  // shape and dtype set, elements zero
  Counts counts;

  int64_t value_of(const Poly& poly) const;  // an integer
  double value_of(const ScalarValue& scalar) const;
  int64_t integer_of(const ScalarValue& scalar) const;  // in the result's dtype, exactly
};

void evaluate_map(Evaluation& e);
void evaluate_reduce(Evaluation& e);
void evaluate_cumulate(Evaluation& e);
void evaluate_shift(Evaluation& e);
void evaluate_arg_reduce(Evaluation& e);
void evaluate_top_k(Evaluation& e);
void evaluate_softmax(Evaluation& e);
void evaluate_logsumexp(Evaluation& e);
void evaluate_contract(Evaluation& e);
void evaluate_view(Evaluation& e);  // permute broadcast split merge slice diagonal window stop_gradient
void evaluate_fold(Evaluation& e);
void evaluate_pad(Evaluation& e);
void evaluate_concat(Evaluation& e);
void evaluate_gather(Evaluation& e);
void evaluate_scatter_add(Evaluation& e);
void evaluate_scatter_extreme(Evaluation& e);
void evaluate_scatter_set(Evaluation& e);
// The results of a scan, in order; counts what all iterations do.
std::vector<Tensor> interpret_scan(Evaluation& e);
void evaluate_random(Evaluation& e);
void evaluate_dropout(Evaluation& e);

// As interpret, of a graph without params whose dims have values: all of them, derived ones too.
InterpretResult interpret_bound(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& states,
                                const InterpretOptions& options);

// Dims with their values, sizes in them, and rounding to the tensor's dtype (interpret_values.cpp).
Bindings bind_dims(const Graph& graph, const Bindings& given);
std::vector<int64_t> shape_of(const Graph& graph, NodeId id, const Bindings& dims);
void round_reals(Tensor& tensor, Arithmetic arithmetic);
// What a value of this shape takes here, and a resource failure when more is needed than `limit` (0: the machine's memory).
uint64_t value_bytes(std::span<const int64_t> shape);
void refuse_above(uint64_t needed, uint64_t limit);

std::string describe_location(const SourceLocation& location);

// The elements as doubles; `storage` holds them when they are integers.
const double* as_reals(const Tensor& tensor, std::vector<double>& storage);

// Calls visit(offsets) for every index of `shape` in row-major order; offsets[k] starts at start[k] and moves by strides[k].
template <size_t N, class Visit>
void walk(std::span<const int64_t> shape, const std::array<std::vector<int64_t>, N>& strides, std::array<int64_t, N> at, Visit visit) {
  for (const int64_t size : shape)
    if (size <= 0) return;
  if (shape.empty()) {
    visit(at);
    return;
  }
  const size_t last = shape.size() - 1;
  std::array<int64_t, 2 * kMaxRank> index{};
  while (true) {
    std::array<int64_t, N> inner = at;
    for (int64_t i = 0; i < shape[last]; ++i) {
      visit(inner);
      for (size_t k = 0; k < N; ++k) inner[k] += strides[k][last];
    }
    size_t axis = last;
    while (true) {
      if (axis == 0) return;
      --axis;
      for (size_t k = 0; k < N; ++k) at[k] += strides[k][axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t k = 0; k < N; ++k) at[k] -= strides[k][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace einc
