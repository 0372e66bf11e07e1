// SPDX-License-Identifier: Apache-2.0
// A grid of devices, numbered in row-major order of their coordinates, and which part of a value a device holds.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace einc {

struct MeshShape {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;  // outer to inner

  int64_t devices() const;
  int64_t coordinate(int64_t device, int axis) const;
  // The devices that differ from this one in their coordinate along the axis alone, by that coordinate.
  std::vector<int64_t> along(int64_t device, int axis) const;
};

inline constexpr int kNoZigzag = -1, kNoMeshAxis = -1;

// Of each axis of a value: the mesh axes that split it, outer to inner. The same on all devices along other axes.
struct PartLayout {
  std::vector<std::vector<int>> over;
  // Of each axis: the mesh axis, of n devices, in whose zigzag order its 2n chunks lie: 0, 2n-1, 1, 2n-2, .. Parts are parts of that order.
  std::vector<int> zigzag;
  // The devices with this coordinate along that mesh axis have it alone; kNoMeshAxis: all do.
  int of_axis = kNoMeshAxis;
  int64_t at = 0;
  friend bool operator==(const PartLayout&, const PartLayout&) = default;
};

// A device's part of a value of `shape` as a box in it; `chunk`: of axes in zigzag order, how long a chunk is, and 0 of others.
struct PartBox {
  std::vector<int64_t> begin, size, chunk;
};
PartBox part_of(const MeshShape& mesh, const PartLayout& layout, std::span<const int64_t> shape, int64_t device);
bool holds(const MeshShape& mesh, const PartLayout& layout, int64_t device);
// Whether the device is the first of those that hold the same part.
bool is_first_holder(const MeshShape& mesh, const PartLayout& layout, int64_t device);

enum class BoxCopy : uint8_t { out, in };
// Between a value and a box of it that lies alone, without gaps.
void copy_box(BoxCopy direction, std::span<const int64_t> shape, const PartBox& box, int64_t element, std::byte* whole, std::byte* part);

}  // namespace einc
