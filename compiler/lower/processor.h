// SPDX-License-Identifier: Apache-2.0
// What plans of loops and tiles know of the processor: its vectors and caches.
#pragma once
#include <cstdint>

namespace einc {

struct Processor {
  int vector_bits = 128;
  int vector_registers = 16;
  int unit_bits = 0;  // of a vector that its units do in a cycle; 0: all of it. Times and what one thread does alone are told by it
  int64_t level1_bytes = 32 << 10, level2_bytes = 512 << 10;  // data caches of one core
  int64_t streamed_bytes = 8 << 20;                           // results that fill at least as much are not kept in the caches
  bool matrix_tiles = false;                                  // multiplies tiles of 16 x 32 bf16
  bool bf16_pairs = false;                                    // multiplies pairs of bf16 faster than f32
  int64_t lanes(int64_t element_bytes) const { return vector_bits / 8 / element_bytes; }
  int vector_cycles() const { return unit_bits > 0 ? vector_bits / unit_bits : 1; }
};

}  // namespace einc
