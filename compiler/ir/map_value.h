// SPDX-License-Identifier: Apache-2.0
// What an elementwise function is worth: the one table of values behind the interpreter, the folding of constants and whatever else
// evaluates functions while compiling. Operands that the function does not have are not read.
#pragma once
#include <cstdint>

#include "compiler/ir/op.h"

namespace einc {

// Of functions that give a floating number, by their formulas in f64.
double map_value(MapFn fn, double a, double b = 0, double c = 0);
// Of integers and bools that give integers or bools. Sums and products wrap at 64 bits; an exponent is at least 0.
int64_t map_integer(MapFn fn, int64_t a, int64_t b = 0, int64_t c = 0);
// A comparison of numbers of any two dtypes: long double holds them all.
bool map_comparison(MapFn fn, long double a, long double b);

}  // namespace einc
