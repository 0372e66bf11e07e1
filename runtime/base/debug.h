// How much einc checks of itself while it works: EINC_DEBUG=0..3. 1: compiled programs are verified before they run (graphs, kernels, plans
// of memory, launches). Builds without NDEBUG and the tests begin at 1, others at 0.
#pragma once

namespace einc {

int debug_level();

}  // namespace einc
