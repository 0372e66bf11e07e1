// SPDX-License-Identifier: Apache-2.0
// Warnings about what a file declares and nothing reads: values, inputs, imports, and states that nothing updates.
#pragma once
#include "compiler/elaborate/unit.h"

namespace einc {

// Says nothing that another spelling of the program could make wrong: a name counts as read wherever it stands besides its bindings,
// as an axis or inside a pattern too. Names that begin with `_` are left alone.
void warn_of_unused(const SourceMap& sources, const SourceUnit& unit, Diagnostics& diagnostics);

}  // namespace einc
