// SPDX-License-Identifier: Apache-2.0
// How NumPy writes the real numbers of one array: all with the same form, so that their decimal points stand below each other.
#pragma once
#include <span>
#include <string>

#include "runtime/base/dtype.h"

namespace einc {

// NumPy's default print options: 8 digits behind the point at most, and no more than tell a number from its neighbours. Powers of ten for
// all where the largest or the smallest asks for them, or they are more than a thousandfold apart.
class RealFormat {
 public:
  RealFormat(std::span<const double> shown, DType dtype);
  std::string text(double value) const;  // without blanks: "2.5", "1.", "1.50e-05", "nan"
  // As many characters for each, the points at the same place.
  std::string padded(double value) const;

 private:
  std::string digits(double value) const;

  bool single_;  // digits of a 32-bit number
  bool powers_ = false;
  size_t before_ = 0, behind_ = 0, exponent_ = 0;  // characters before the point with the sign, behind it, and of the power's number
};

}  // namespace einc
