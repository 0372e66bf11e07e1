// SPDX-License-Identifier: Apache-2.0
// Arrays as NumPy prints them: a row a line, decimal points lined up, long axes shown by their ends.
#pragma once
#include <string>

#include "compiler/ir/interpret_ops.h"

namespace einc {

// "[[1.  2.5]\n [3.  4. ]]"; of a scalar its value; of one axis a line without brackets. Above 1,000 elements an axis shows its first and
// last three.
std::string array_text(const Tensor& tensor);

}  // namespace einc
