// SPDX-License-Identifier: Apache-2.0
// The syntax tree as text, one statement a line, expressions fully parenthesised: what --emit=ast shows, and the form in
// which tests compare trees (places in the source are left out, so reformatted text gives the same).
#pragma once
#include <string>

#include "dsl/ast.h"

namespace einc {

std::string print_ast(const ast::Program& program);
std::string print_ast(const ast::Expr& expression);
std::string print_pattern(const Pattern& pattern);

}  // namespace einc
