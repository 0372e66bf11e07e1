// SPDX-License-Identifier: Apache-2.0
// Gives every node a concrete dtype under a precision policy (language.md, Precision). Contractions take the low dtype and
// accumulate in f32; reductions and what follows from them (softmax, normalisation), losses, masters, parameter gradients
// and optimizer state stay f32; other elementwise nodes follow their operands, a chain of them at its end alone. A map computes in f32 (f64
// with an f64 operand) and rounds to its own dtype, so it reads operands of any dtype; contractions get cast nodes, one per value and
// dtype. Under fp8, operands of a param's products are divided by a scale first and the product is multiplied back; these are nodes too.
// Afterwards no type is `real` and each node's `reason` says why it has the dtype it has.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// The scale of an fp8 operand is max |x| / largest: of this run's x, or of the last run's, kept in a state "fp8.N.amax" for each operand.
// Delayed, a value may be beyond the range and becomes the largest; a run whose maximum is 0 or not finite leaves the state as it was.
// The first run's scale is 1 (Micikevicius et al. 2022, "FP8 Formats for Deep Learning"; NVIDIA's Transformer Engine).
enum class Fp8Scaling : uint8_t { current, delayed };

// Whether params and states of no written dtype are f32 masters, or what all their readers take (storage.h): programs that only infer.
enum class ParamStorage : uint8_t { masters, as_read };

// `policy` overrides the file's unless it is `inherit`; blocks inside the file keep theirs. With neither, f32.
Graph assign_precision(const Graph& graph, Policy policy = Policy::inherit, Fp8Scaling scaling = Fp8Scaling::current,
                       ParamStorage storage = ParamStorage::masters);

// The policy that holds for the program as a whole: also the result's `policy`.
Policy effective_policy(const Graph& graph, Policy policy = Policy::inherit);

}  // namespace einc
