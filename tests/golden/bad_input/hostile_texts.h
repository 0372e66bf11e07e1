// SPDX-License-Identifier: Apache-2.0
// Inputs too large, or too odd, to stand in a file of the repository.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace einc::test {

struct HostileText {
  std::string name;
  std::string error;  // of the first message: code, line:column
  std::function<std::string()> make;
  int mebibytes = 256;
};
std::vector<HostileText> hostile_texts();

// Of many statements, and accepted: the work for a statement does not grow with their number.
struct LongProgram {
  std::string name;
  std::function<std::string()> make;
};
std::vector<LongProgram> long_programs();

// A documented limit: a program of the size `value` is accepted, one of value + 1 is not.
struct Limit {
  std::string name;
  int value;
  std::string error;
  std::function<std::string(int)> make;
};
std::vector<Limit> limits();

std::string repeated(std::string_view piece, int times);
std::string nested(std::string_view open, std::string_view close, int depth);  // around x, as an output

}  // namespace einc::test
