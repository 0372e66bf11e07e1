// SPDX-License-Identifier: Apache-2.0
// Programs over meshes, small: examples with requests that split much of them, and one whose sums are exact in any order.
#pragma once
#include <span>
#include <string_view>

#include "compiler/pipeline/pipeline.h"
#include "tests/support/partition_check.h"

namespace einc {

struct MeshExample {
  const char* file;
  const char* dims;
  const char* mesh;
  const char* shard;
  double tolerance = 2e-4;  // of a run in the program's own formats
  Policy precision = Policy::inherit;
};

std::span<const MeshExample> mesh_examples();

Bindings dims_of(std::string_view text);  // "batch=4 seq=6"
Compilation compiled(const MeshExample& example, Roots roots = Roots::training);
ProgramData data_for(const Graph& graph, const Bindings& dims);

extern const char* const kWholeNumbers;
void set_whole_numbers(TensorMap& values, uint64_t seed);

// Without its mesh lines: iterations that draw, look at where a row stands, and sum over features.
extern const char* const kDrawingScan;
extern const char* const kScanMeshes[4];

}  // namespace einc
