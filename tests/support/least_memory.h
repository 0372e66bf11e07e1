// SPDX-License-Identifier: Apache-2.0
// The least memory that the planner reaches, by its own word.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "runtime/base/failure.h"

namespace einc {

// `plan_within_one_byte` asks for a step in one byte, which is refused with the least that is possible.
template <class Plan>
int64_t least_memory(Plan plan_within_one_byte) {
  try {
    plan_within_one_byte();
  } catch (const RuntimeFailure& failure) {
    CHECK(failure.kind() == FailureKind::resource);
    const std::string text = failure.what(), words = " bytes, and ";
    return std::stoll(text.substr(text.find(words) + words.size()));
  }
  FAIL("a step fits one byte");
  return 0;
}

}  // namespace einc
