// SPDX-License-Identifier: Apache-2.0
// Hashes of attributes, for tables of nodes that are alike: enough of an attribute to tell most nodes apart; equality decides.
#pragma once
#include <cstddef>

#include "compiler/ir/graph.h"

namespace einc {

inline size_t mix(size_t hash, size_t value) { return (hash ^ value) * size_t{0x9E3779B97F4A7C15u} + (hash >> 29); }

size_t hash_of(const Attr& attr);

}  // namespace einc
