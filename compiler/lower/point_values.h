// SPDX-License-Identifier: Apache-2.0
// Integers that follow from a kernel's points and from the coordinate of a mesh's device alone, at all points of all devices: what bounds
// of keys are counted and checked with, since one code serves every device.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

// By device, by point of `axes` (row-major, ascending), by value.
struct PointValues {
  std::vector<ValueId> values;
  uint64_t axes = 0;  // that they depend on
  int64_t devices = 1, points = 1;
  std::vector<int64_t> numbers;

  std::span<const int64_t> at(int64_t device, int64_t point) const {
    return std::span(numbers).subspan(static_cast<size_t>(device * points + point) * values.size(), values.size());
  }
};

// `values`: kNoValue stands for 0. nullopt: a value follows from more than constants, indices and one checked number, or there are too many
// points to try all.
std::optional<PointValues> point_values(const Kernel& kernel, std::vector<ValueId> values);

}  // namespace einc
