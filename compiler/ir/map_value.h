// The value of an elementwise function that gives a floating number, by its formula: what the interpreter computes and what
// elaboration folds. Operands that the function does not have are not read.
#pragma once
#include "compiler/ir/op.h"

namespace einc {

double map_value(MapFn fn, double a, double b = 0, double c = 0);

}  // namespace einc
