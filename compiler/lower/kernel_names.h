// SPDX-License-Identifier: Apache-2.0
// The words of a kernel's text, for its printer and its reader.
#pragma once
#include <optional>
#include <string_view>

#include "compiler/lower/kernel.h"

namespace einc {

std::string_view name_of(Fold fold);
std::string_view name_of(BufferAccess access);
std::string_view name_of(AttentionPart part);
std::string_view name_of(PairValue pair);

// The value of an enumeration that a word names; `last` is its last value.
template <class E>
std::optional<E> named(std::string_view word, E last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name_of(static_cast<E>(i)) == word) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace einc
