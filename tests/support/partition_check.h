// SPDX-License-Identifier: Apache-2.0
// A partitioned graph beside the whole one, both in the interpreter.
#pragma once
#include <optional>
#include <string>
#include <variant>

#include "compiler/ir/interpret.h"
#include "compiler/partition/collectives.h"
#include "compiler/partition/partition.h"

namespace einc {

struct ProgramData {
  Bindings dims;
  TensorMap inputs, params, states;
  InterpretOptions options;
};

// Results within `tolerance` of the largest element of their tensor; 0: the same bits. "" or what differs.
std::string result_difference(const InterpretResult& found, const InterpretResult& wanted, double tolerance);

// "" or what is wrong with a partition: its graph, its collectives, its values.
std::string partition_problem(const Graph& graph, const Partitioned& partitioned, const ProgramData& data, double tolerance);

// A mesh of up to three axes of sizes 2 to 8, at most 8 devices, and requests on axes that they divide; of the program's declarations some
// are not split.
Mesh random_mesh(const Graph& graph, const Bindings& dims, uint64_t seed);

// "all_reduce model 4, all_gather data 2": kinds and mesh axes with how often they stand in the graph, sorted; of one phase, or of all.
std::string collective_counts(const Partitioned& partitioned, std::optional<Phase> phase = std::nullopt);

}  // namespace einc
