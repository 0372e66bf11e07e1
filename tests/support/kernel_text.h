// SPDX-License-Identifier: Apache-2.0
// Kernels written as text in a test.
#pragma once
#include <doctest/doctest.h>

#include "compiler/lower/kernel_read.h"

namespace einc {

inline Kernel kernel_of(std::string_view text) {
  auto read = read_kernel(text);
  if (const auto* error = std::get_if<KernelReadError>(&read)) FAIL("line " << error->line << ": " << error->message);
  return std::get<Kernel>(std::move(read));
}

}  // namespace einc
