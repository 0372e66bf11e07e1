// SPDX-License-Identifier: Apache-2.0
// Cases of a long table by turns. The default run takes every n-th, from one on that follows from the date, so that the runs of n days take
// all; with EINC_ALL=1 (scripts/test --slow) each run does. It is printed, and EINC_SAMPLE=N repeats it.
#pragma once
#include <cstddef>
#include <iterator>
#include <type_traits>
#include <vector>

namespace einc {

class Sample {
 public:
  explicit Sample(size_t every);
  bool takes(size_t number) const { return number % every_ == first_; }

 private:
  size_t every_, first_;
};

template <class List>
auto sampled(const List& cases, size_t every) {
  const Sample sample(every);
  std::vector<std::decay_t<decltype(*std::begin(cases))>> taken;
  size_t number = 0;
  for (const auto& each : cases)
    if (sample.takes(number++)) taken.push_back(each);
  return taken;
}

}  // namespace einc
