// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

namespace einc {

// Times by their ratio. doctest's Approx allows `epsilon` seconds besides, within which all kernels are alike.
inline doctest::Approx near_seconds(double seconds, double epsilon = 1e-5) {
  return doctest::Approx(seconds).epsilon(epsilon).scale(1e-12);
}

}  // namespace einc
