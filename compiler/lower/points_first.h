// SPDX-License-Identifier: Apache-2.0
// A row's single values (a maximum, a sum) are stored before its elements where these do not need them: the elements may then lie where
// what both are made of lay.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

void store_points_first(Kernel& kernel);

}  // namespace einc
