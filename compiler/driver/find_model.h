// SPDX-License-Identifier: Apache-2.0
// Which tensors of a program make it a language model that text can be drawn from.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/sample/language_model.h"

namespace einc {

struct FoundModel {
  ModelTensors tensors;
  Name sequence;              // the dim that counts the tokens read at once
  std::vector<Name> texts;    // dims that count texts: the other axes of the tokens
  std::optional<Poly> cache;  // positions that its states hold; nullopt: it keeps none
};

// `wanted`: names that a person gave; empty ones are found. nullopt after a message on standard error.
std::optional<FoundModel> find_model(const Graph& graph, const ModelTensors& wanted);

}  // namespace einc
