// SPDX-License-Identifier: Apache-2.0
// Text to syntax tree by recursive descent. A wrong statement is reported and skipped to its end, so that one run finds
// the independent mistakes of a whole file; the tree always comes back, with Invalid expressions where the text was wrong.
#pragma once
#include "dsl/ast.h"
#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

ast::Program parse(const SourceMap& sources, FileId file, Diagnostics& diagnostics);

}  // namespace einc
