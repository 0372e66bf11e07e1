// SPDX-License-Identifier: Apache-2.0
// Runs one node of a hand-built graph.
#pragma once
#include <doctest/doctest.h>

#include "compiler/ir/build.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"

namespace einc {

inline Poly dim(const char* name) { return Poly::dim(name); }
inline Axis named(const char* name, int64_t size) { return {name, Poly(size)}; }

struct Bench {
  Graph graph;
  Builder build{graph};
  TensorMap inputs;
  InterpretOptions options;
  InterpretResult result;

  NodeId reals(const char* name, std::vector<Axis> axes, std::vector<int64_t> shape, std::vector<double> values) {
    inputs[name] = Tensor::of_reals(std::move(shape), std::move(values));
    return build.input(name, {DType::real, std::move(axes)});
  }
  NodeId reals(const char* name, std::vector<double> values) {
    const auto n = static_cast<int64_t>(values.size());
    return reals(name, {named("n", n)}, {n}, std::move(values));
  }
  NodeId matrix(const char* name, int64_t rows, int64_t columns, std::vector<double> values) {
    return reals(name, {named("r", rows), named("c", columns)}, {rows, columns}, std::move(values));
  }
  NodeId ints(const char* name, std::vector<int64_t> values, DType dtype = DType::i32) {
    const auto n = static_cast<int64_t>(values.size());
    inputs[name] = Tensor::of_ints({n}, std::move(values), dtype);
    return build.input(name, {dtype, {named("m", n)}});
  }
  Tensor run(NodeId id, const Bindings& dims = {}) {
    const std::vector<std::string> problems = verify(graph);
    CHECK_MESSAGE(problems.empty(), (problems.empty() ? "" : problems[0]));
    options.watch = {id};
    result = interpret(graph, dims, inputs, {}, {}, options);
    return result.watched[0];
  }
  Counts counts(NodeId id) const { return result.counts[id.index]; }
};

using Reals = std::vector<double>;
using Ints = std::vector<int64_t>;

}  // namespace einc
