// einops' rules on which names may stand where in a pattern that is already well formed.
#pragma once
#include "dsl/diagnostic.h"
#include "dsl/pattern.h"

namespace einc {

// Reports every broken rule; true if there was none.
bool check_pattern(PatternOp op, const Pattern& pattern, Diagnostics& diagnostics);

}  // namespace einc
