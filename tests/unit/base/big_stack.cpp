// SPDX-License-Identifier: Apache-2.0
// Functions on threads of their own with a large stack: beside the caller, waited for, what they throw handed on.
#include "runtime/base/big_stack.h"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <string>

using namespace einc;

namespace {

// Takes 4 KiB of stack for each level.
size_t deep(size_t levels) {
  volatile char page[4096] = {};
  page[levels % sizeof page] = 1;
  return levels == 0 ? 0 : deep(levels - 1) + static_cast<size_t>(page[levels % sizeof page]);
}

}  // namespace

TEST_CASE("big stack: 40 MiB of it may be used") {
  size_t levels = 0;
  run_on_big_stack([&] { levels = deep(10000); });
  CHECK(levels == 10000);
}

TEST_CASE("big stack: a task runs beside the caller") {
  std::atomic<bool> asked = false;
  OnBigStack task([&] {
    while (!asked) {
    }
  });
  asked = true;  // never, if the constructor had waited
  task.wait();
}

TEST_CASE("big stack: what is thrown comes out where it is waited for") {
  OnBigStack task([] { throw std::runtime_error("no"); });
  std::string said;
  try {
    task.wait();
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  CHECK(said == "no");
}

TEST_CASE("big stack: a task that nobody waits for is done before it goes") {
  std::atomic<int> done = 0;
  {
    OnBigStack task([&] {
      deep(1000);
      ++done;
    });
    OnBigStack failing([&] {
      ++done;
      throw std::runtime_error("nobody hears it");
    });
  }
  CHECK(done == 2);
}
