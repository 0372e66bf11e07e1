// Which iterations of scans something runs in, outermost first.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace einc {

using Iterations = std::vector<int64_t>;

// Iteration t of a scan of `length` inside others. `continues`: it counts on from iteration to iteration of the scan around it, as the
// pieces do that `save every` cuts a scan into.
inline Iterations iteration_inside(Iterations around, int64_t t, int64_t length, bool continues) {
  if (continues)
    around.back() = around.back() * length + t;
  else
    around.push_back(t);
  return around;
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
