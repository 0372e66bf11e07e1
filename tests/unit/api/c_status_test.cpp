// SPDX-License-Identifier: Apache-2.0
// What a C program is told of exceptions that it cannot bring about: defects, and memory that is not to be had.
#include <doctest/doctest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "compiler/c_abi/status.h"

using namespace einc::c_abi;

TEST_CASE("c: whatever is thrown becomes a status and a message") {
  CHECK(guard([] { throw std::logic_error("a list is upside down"); }) == EINC_INTERNAL);
  CHECK(std::string(einc_last_error()) == "a list is upside down");
  CHECK(guard([] { throw 7; }) == EINC_INTERNAL);
  CHECK(guard([] { throw std::bad_alloc(); }) == EINC_RESOURCE);
  CHECK(std::string(einc_last_error()) == "out of memory");
  CHECK(guard([] { throw einc::Error(einc::ErrorKind::numeric, "nan"); }) == EINC_NUMERIC);
  CHECK(std::string(einc_last_error()) == "nan");
  CHECK(guard([] {}) == EINC_OK);
  CHECK(std::string(einc_last_error()) == "nan");  // a call that succeeds leaves it
}
