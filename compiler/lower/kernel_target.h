// What forming kernels knows of the machine that runs them.
#pragma once
#include <cstdint>
#include <optional>

namespace einc {

inline constexpr int64_t kCacheLine = 64;  // bytes that a processor's caches move at once

// When reductions are divided into parts (divide_reductions).
struct DivideLimits {
  int64_t points = 16;         // outer points that keep the machine busy
  int64_t elements = 1 << 16;  // worth a launch of their own
  int64_t most_parts = 4096, enough_parts = 256, smallest_part = 2048;
  int64_t most_points = INT64_MAX;  // of the kernel of parts
  bool operator==(const DivideLimits&) const = default;
};

struct KernelTarget {
  bool keeps_rows = true;                        // what two stages need along a row is kept in a thread's scratch
  DivideLimits divide_rows{}, divide_columns{};  // of what lies side by side along the reduced loops, or along others
  // Of products of matrices with more points than those, which are few tiles of sums.
  DivideLimits divide_products{.points = 1024, .elements = 1 << 22, .most_parts = 64, .enough_parts = 16};
  // A kernel that goes over a value also reduces it whole, where both read it: what is stored on the way is divided among the parts.
  bool divides_stores = false;
  bool divides_attention = false;    // what it sums over keys and what it sums over rows are two kernels
  bool stores_concatenated = false;  // by the attention kernels that make what is put side by side
  // Contractions of at least so many products are kernels of their own, for a library that multiplies matrices as they lie in memory:
  // values in between are laid out so that it can.
  std::optional<int64_t> library_products;
  bool pads_rows = false;  // of values that a library multiplies, to whole lines of memory
  // Updates of at most one element a row are made where the row is, by comparing positions.
  bool compares_positions = false;
  // A kernel that goes over rows also adds up what it makes of all of them, as many elements of sums as its threads hold: each part of its
  // rows leaves sums of its own, which a second kernel adds.
  int64_t column_sums = 0;
  // A row's single values are stored before its elements, which may then lie where what both are made of lay.
  bool overwrites_rows = false;
  bool operator==(const KernelTarget&) const = default;
};

}  // namespace einc
