// SPDX-License-Identifier: Apache-2.0
// Miscompilations of where values lie, and of when a kernel writes one that lies over another: wrong in planned memory, right where each
// buffer has memory of its own.
#pragma once
#include "tests/fuzz/mutations.h"

namespace einc {

bool place_given_away(FormedGraph& formed, Chooser& choose);
bool result_over_operand(FormedGraph& formed, Chooser& choose);
bool store_before_loads(FormedGraph& formed, Chooser& choose);
bool sum_begun_elsewhere(FormedGraph& formed, Chooser& choose);

}  // namespace einc
