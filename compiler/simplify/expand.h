// SPDX-License-Identifier: Apache-2.0
// Replaces composites, which differentiation treats as one op, by primitives:
//   softmax(x)   = e / sum(e), e = exp(x - max(x))
//   logsumexp(x) = log(sum(exp(x - m))) + m, m = max(x)
//   dropout(x)   = where(keep, x / (1 - p), 0), keep drawn from the op's stream; x itself in inference
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/simplify/roots.h"

namespace einc {

Graph expand(Graph graph, Roots roots);

}  // namespace einc
