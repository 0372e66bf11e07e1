// SPDX-License-Identifier: Apache-2.0
// The gradient rules, one per op: the gradient of operand k over that operand's axes, or nothing when none is passed. Each
// is called only for an operand whose gradient is wanted. Formulas stand at the definitions.
#pragma once
#include "compiler/autodiff/backward.h"

namespace einc {

// rules_map.cpp
std::optional<Partial> gradient_of_map(const Backward& b, int k);
// rules_reduce.cpp
std::optional<Partial> gradient_of_reduce(const Backward& b, int k);
std::optional<Partial> gradient_of_cumulate(const Backward& b, int k);
std::optional<Partial> gradient_of_softmax(const Backward& b, int k);
std::optional<Partial> gradient_of_logsumexp(const Backward& b, int k);
// rules_contract.cpp
std::optional<Partial> gradient_of_contract(const Backward& b, int k);
// rules_view.cpp
std::optional<Partial> gradient_of_permute(const Backward& b, int k);
std::optional<Partial> gradient_of_broadcast(const Backward& b, int k);
std::optional<Partial> gradient_of_split(const Backward& b, int k);
std::optional<Partial> gradient_of_merge(const Backward& b, int k);
std::optional<Partial> gradient_of_slice(const Backward& b, int k);
std::optional<Partial> gradient_of_diagonal(const Backward& b, int k);
std::optional<Partial> gradient_of_window(const Backward& b, int k);
std::optional<Partial> gradient_of_fold(const Backward& b, int k);
std::optional<Partial> gradient_of_pad(const Backward& b, int k);
std::optional<Partial> gradient_of_concat(const Backward& b, int k);
// rules_index.cpp
std::optional<Partial> gradient_of_gather(const Backward& b, int k);
std::optional<Partial> gradient_of_scatter_add(const Backward& b, int k);
std::optional<Partial> gradient_of_scatter_extreme(const Backward& b, int k);
std::optional<Partial> gradient_of_scatter_set(const Backward& b, int k);
std::optional<Partial> gradient_of_cast(const Backward& b, int k);
std::optional<Partial> gradient_of_dropout(const Backward& b, int k);

}  // namespace einc
