// SPDX-License-Identifier: Apache-2.0
// Attention of a sequence that a mesh axis splits, in the ways in which programs write it.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

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
std::string with_length(std::string text, int64_t seq);  // a text of text_of()
Compilation compiled_text(const std::string& text, Roots roots = Roots::training);
Partitioned parts_of(const Graph& graph);

// "data = 2, context = 2": batches are split besides, on "context = 2, model = 2" heads. `keys`: these stay in parts, for a ring.
std::string shard_lines(const std::string& mesh, bool keys);
// Every program on each mesh, as training and as inference: its devices' results are those of the whole at 1e-12. `look` sees the parts.
void check_on_meshes(const std::vector<std::string>& meshes, bool keys,
                     const std::function<void(const ContextProgram&, const std::string& mesh, Roots, const Partitioned&)>& look);

}  // namespace einc
