// SPDX-License-Identifier: Apache-2.0
// Which iterations of scans something runs in, outermost first.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace einc {

using Iterations = std::vector<int64_t>;

// Iteration t of a scan of `length` inside others. `all_pieces`: it is a piece of a longer one that `save every` has cut, and counts on
// from iteration to iteration of the scan around it; 0: it begins anew.
inline Iterations iteration_inside(Iterations around, int64_t t, int64_t length, int64_t all_pieces) {
  if (all_pieces != 0)
    around.back() = around.back() * length + t;
  else
    around.push_back(t);
  return around;
}

// How many iterations such a scan runs: the last piece is the rest.
inline int64_t iterations_of(std::span<const int64_t> around, int64_t length, int64_t all_pieces) {
  return all_pieces == 0 ? length : std::min(length, all_pieces - around.back() * length);
}

// Behind the name of a random stream: every iteration draws from one of its own.
inline std::string stream_suffix(std::span<const int64_t> iterations) {
  std::string text;
  for (const int64_t t : iterations) text += "[" + std::to_string(t) + "]";
  return text;
}

// Behind a message, innermost first.
inline std::string describe_iterations(std::span<const int64_t> iterations) {
  std::string text;
  for (size_t i = iterations.size(); i-- > 0;) text += ", iteration " + std::to_string(iterations[i]);
  return text;
}

}  // namespace einc
