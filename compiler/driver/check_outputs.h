// SPDX-License-Identifier: Apache-2.0
// What a command reads and what it writes, compared before it does any work: an output neither replaces an input, nor another output, nor
// anything that is no regular file.
#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/pipeline/pipeline.h"

namespace einc {

// An option and the file that it names: {"--save", "w.safetensors"}. Empty paths are passed over.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// The program and what it imports.
NamedFiles sources_of(const Compilation& compilation);

// False after a message on standard error. Throws RuntimeFailure (resource) as output_target.
bool check_outputs(const NamedFiles& outputs, const NamedFiles& inputs);

}  // namespace einc
