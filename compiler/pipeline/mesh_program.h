// SPDX-License-Identifier: Apache-2.0
// A compiled program over its mesh.
#pragma once
#include <optional>

#include "compiler/partition/partition.h"
#include "compiler/pipeline/pipeline.h"

namespace einc {

// nullopt: the program has no mesh, or an op of it no rule for parts, which is then reported among the compilation's diagnostics.
std::optional<Partitioned> partition_program(Compilation& compilation, const Bindings& dims);

}  // namespace einc
