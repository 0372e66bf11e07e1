// SPDX-License-Identifier: Apache-2.0
// Rules of the literature for a decoder-only transformer of given sizes: FLOPs, activation memory, key-value cache. Each is a
// formula in the sizes' names, evaluated exactly; one that needs a size which was not given is left out.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/symbolic/poly.h"

namespace einc {

// What a rule counts: parameters; FLOPs of one token in a forward pass, in a training step, in a training step with what is
// computed again; bytes; a share of 1.
enum class RuleKind : uint8_t { parameters, forward_flops, step_flops, hardware_flops, bytes, share };
std::string_view to_string(RuleKind kind);
inline bool counts_flops(RuleKind kind) {
  return kind == RuleKind::forward_flops || kind == RuleKind::step_flops || kind == RuleKind::hardware_flops;
}

struct Rule {
  RuleKind kind;
  std::string_view name, source, formula;
};

// Sizes that rules speak of. `batch` counts sequences; heads split `embed` evenly unless `head` says otherwise.
struct TransformerSizes {
  std::optional<int64_t> params, layers, embed, heads, kv_heads, head, ffn, vocab, seq, batch;
  std::optional<int64_t> experts, used_experts;
  std::optional<int64_t> tensor_parallel, pipeline_parallel, interleave;
  std::optional<Rational> tokens_per_step() const;
};

struct RuleValue {
  const Rule* rule;
  Poly formula;                  // in the names of the sizes
  Rational value;                // of one token for FLOPs
  std::optional<Rational> step;  // FLOPs of a step of batch x seq tokens
};

// The rules that these sizes decide, in the table's order.
std::vector<RuleValue> known_rules(const TransformerSizes& sizes);

}  // namespace einc
