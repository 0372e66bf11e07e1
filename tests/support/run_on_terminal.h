// SPDX-License-Identifier: Apache-2.0
// Runs the einc binary on a terminal and says what a person sees there.
#pragma once
#include <string>
#include <vector>

namespace einc::test {

struct Shown {
  int status = -1;
  std::vector<std::string> drawn;  // each text that stood in a line, without colours: \r and \n begin another
};

Shown run_on_terminal(const std::vector<std::string>& arguments, int columns);

// Columns that a text takes: characters of UTF-8, each one wide.
size_t columns_of(const std::string& text);

}  // namespace einc::test
