// SPDX-License-Identifier: Apache-2.0
// Memory from the system: zero before first use, on huge pages where the kernel has them. Pages cost nothing until touched.
#pragma once
#include <cstddef>
#include <cstdint>

namespace einc {

class Mapping {
 public:
  // Throws RuntimeFailure (resource), also when the machine has less memory than that: nothing is asked for then.
  explicit Mapping(int64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* base() const { return base_; }

 private:
  std::byte* base_ = nullptr;
  size_t size_ = 0;
};

// Gives the pages that lie wholly in a part of a mapping back to the system: they are zero when touched again.
void empty_pages(std::byte* begin, int64_t bytes);

}  // namespace einc
