// SPDX-License-Identifier: Apache-2.0
// Rows of the table of pattern cases as programs: the tensors of a row are inputs, its operation one statement, and the
// check sums of the table (chk, gchk) are outputs of the program itself.
#pragma once
#include <string>
#include <vector>

#include "tests/support/case_table.h"

namespace einc::test {

struct RowProgram {
  std::string text;
  std::vector<std::vector<int64_t>> shapes;  // of inputs x0, x1, ...
  std::vector<std::vector<int64_t>> likes;   // of inputs like0, ...: only their shapes matter
  size_t results = 1;                        // outputs y0, y1, ...
};

// Empty text: the row is no call of a pattern function.
RowProgram program_of(const CaseRow& row);

}  // namespace einc::test
