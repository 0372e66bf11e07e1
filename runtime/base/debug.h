// SPDX-License-Identifier: Apache-2.0
// How much einc checks of itself while it works, by the variable EINC_DEBUG. 0: nothing; 1 and above: plans of buffers and launch lists are
// verified when they are made; 2 and above: each kernel that a group shares with others is built for it again, and compared. Builds without
// NDEBUG and the tests begin at 1, others at 0.
#pragma once

namespace einc {

int debug_level();

}  // namespace einc
