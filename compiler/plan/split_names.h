// SPDX-License-Identifier: Apache-2.0
// What of a program may be split over a mesh: the names that shard lines know axes of its inputs, params and states by, and which of them
// one axis of a mesh may split together. Read off the program alone: no name means anything here but by where it stands.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/graph.h"
#include "compiler/plan/mesh_way.h"

namespace einc {

// By op and path, as elaboration tells them (ElaborateOptions::declared).
using DeclaredAxes = std::map<std::pair<Op, std::string>, std::vector<DeclaredAxis>>;

struct SplitPlace {
  Op declared = Op::input;
  Name path;
  int axis = 0;
  Poly size;
};

struct SplitName {
  Name name;
  bool of_data = false;  // inputs have it and params do not, or it counts places of integers: examples, places of a text
  std::vector<SplitPlace> places;
};

// In the order of their first places in the graph. A name that stands for two axes of one tensor is left out.
std::vector<SplitName> split_names(const Graph& graph, const DeclaredAxes& declared);

// Whether the program calls a dim or an axis so.
bool is_word_of(const Graph& graph, const DeclaredAxes& declared, Name word);

// What shard lines can ask to be spread: a program's own name for a dim or an axis comes before the language's word.
std::vector<Spread> spreads_of(const Graph& graph, const DeclaredAxes& declared);

// Sets of names as large as can be that are not of data and no tensor has two of: `heads, hidden, vocab` of a transformer, its `embed`.
// Those of the most names first, then those that split the most tensors.
std::vector<std::vector<size_t>> sets_of_params(const std::vector<SplitName>& names);

}  // namespace einc
