// How many terms a size has when it is written out: what a product of sizes costs is known before it is computed.
#pragma once
#include <cstddef>

#include "compiler/symbolic/poly.h"

namespace einc {

size_t term_count(const Poly& poly);  // 0 for 0

}  // namespace einc
