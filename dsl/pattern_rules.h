// SPDX-License-Identifier: Apache-2.0
// einops' rules on which names may stand where in a pattern that is already well formed.
#pragma once
#include <optional>
#include <string>

#include "dsl/diagnostic.h"
#include "dsl/pattern.h"

namespace einc {

// Reports every broken rule; true if there was none.
bool check_pattern(PatternOp op, const Pattern& pattern, Diagnostics& diagnostics);

// "b f, f h -> b h" for "bf,fh->bh", where other libraries need no blanks: every operand is one word of letters and all of the output's
// letters occur there. nullopt for any other pattern.
std::optional<std::string> spell_apart(const Pattern& pattern);

}  // namespace einc
