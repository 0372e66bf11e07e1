// SPDX-License-Identifier: Apache-2.0
// Attention of a sequence that a mesh axis splits, in the ways in which programs write it.
#pragma once
#include <span>
#include <string>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/pipeline/pipeline.h"

namespace einc {

struct ContextProgram {
  const char* name;
  const char* scores;  // lines from q and k to scores
  const char* mixed;   // from weights and v
  bool grouped = false;
};

std::span<const ContextProgram> context_programs();

// A training step of one block of attention and a loss; `mesh` has an axis `context`.
std::string text_of(const ContextProgram& program, const std::string& mesh, const std::string& shard);
Compilation compiled_text(const std::string& text, Roots roots = Roots::training);
Partitioned parts_of(const Graph& graph);

}  // namespace einc
