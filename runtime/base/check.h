// SPDX-License-Identifier: Apache-2.0
// Internal invariants. A failed check is a defect of einc, never of the user's file: it throws InternalError, which the
// driver turns into exit status 70 and a request to report it.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace einc {

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void internal_error(const char* file, int line, const std::string& what) {
  throw InternalError(fmt::format("{}:{}: {}", file, line, what));
}

}  // namespace einc

#define EINC_CHECK(condition, ...)                                                          \
  do {                                                                                      \
    if (!(condition)) ::einc::internal_error(__FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)
