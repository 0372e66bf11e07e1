// SPDX-License-Identifier: Apache-2.0
// Devices are numbered row-major over the mesh: the last axis' devices are neighbours.
#include "runtime/mesh/mesh_shape.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace einc {
namespace {

// Of places along an axis from the box' begin on, how many are neighbours in the whole value, wherever the first is a multiple of that.
int64_t zigzag_run(const PartBox& box, size_t axis) {
  const int64_t chunk = box.chunk[axis];
  return chunk == 0 ? box.size[axis] : std::gcd(std::gcd(chunk, box.begin[axis]), box.size[axis]);
}

// Where the value has what stands at this place of the axis' order.
int64_t zigzag_place(const PartBox& box, size_t axis, int64_t at, int64_t extent) {
  const int64_t chunk = box.chunk[axis];
  if (chunk == 0) return at;
  const int64_t number = at / chunk, pair = number / 2;
  return (number % 2 == 0 ? pair : extent / chunk - 1 - pair) * chunk + at % chunk;
}

}  // namespace

int64_t MeshShape::devices() const {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

int64_t MeshShape::coordinate(int64_t device, int axis) const {
  for (size_t i = sizes.size(); --i > static_cast<size_t>(axis);) device /= sizes[i];
  return device % sizes[static_cast<size_t>(axis)];
}

std::vector<int64_t> MeshShape::along(int64_t device, int axis) const {
  int64_t step = 1;
  for (size_t i = static_cast<size_t>(axis) + 1; i < sizes.size(); ++i) step *= sizes[i];
  const int64_t first = device - coordinate(device, axis) * step;
  std::vector<int64_t> group;
  for (int64_t k = 0; k < sizes[static_cast<size_t>(axis)]; ++k) group.push_back(first + k * step);
  return group;
}

PartBox part_of(const MeshShape& mesh, const PartLayout& layout, std::span<const int64_t> shape, int64_t device) {
  PartBox box;
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t parts = 1, number = 0;
    for (const int m : layout.over[i]) {
      parts *= mesh.sizes[static_cast<size_t>(m)];
      number = number * mesh.sizes[static_cast<size_t>(m)] + mesh.coordinate(device, m);
    }
    box.size.push_back(shape[i] / parts);
    box.begin.push_back(number * box.size.back());
    const int m = i < layout.zigzag.size() ? layout.zigzag[i] : kNoZigzag;
    box.chunk.push_back(m == kNoZigzag ? 0 : shape[i] / (2 * mesh.sizes[static_cast<size_t>(m)]));
  }
  return box;
}

bool holds(const MeshShape& mesh, const PartLayout& layout, int64_t device) {
  return layout.of_axis == kNoMeshAxis || mesh.coordinate(device, layout.of_axis) == layout.at;
}

bool is_first_holder(const MeshShape& mesh, const PartLayout& layout, int64_t device) {
  if (!holds(mesh, layout, device)) return false;
  for (int m = 0; m < static_cast<int>(mesh.sizes.size()); ++m) {
    if (m == layout.of_axis) continue;
    const bool splits =
        std::ranges::any_of(layout.over, [&](const std::vector<int>& list) { return std::ranges::find(list, m) != list.end(); });
    if (!splits && mesh.coordinate(device, m) != 0) return false;
  }
  return true;
}

void copy_box(BoxCopy direction, std::span<const int64_t> shape, const PartBox& box, int64_t element, std::byte* whole, std::byte* part) {
  // Trailing axes that the box has whole are one run with the axis before them, which goes in steps of what are neighbours.
  size_t loops = shape.size();
  int64_t run = element, step = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    step = zigzag_run(box, axis);
    run *= step;
    loops = axis + 1;
    if (step != shape[axis]) break;
  }
  std::vector<int64_t> strides(shape.size(), element), at(loops, 0);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  if (std::ranges::find(box.size, 0) != box.size.end()) return;
  for (;;) {
    int64_t offset = 0;
    for (size_t i = 0; i < loops; ++i) offset += zigzag_place(box, i, box.begin[i] + at[i], shape[i]) * strides[i];
    if (direction == BoxCopy::out)
      std::memcpy(part, whole + offset, static_cast<size_t>(run));
    else
      std::memcpy(whole + offset, part, static_cast<size_t>(run));
    part += run;
    size_t axis = loops;
    while (axis > 0 && (at[axis - 1] += axis == loops ? step : 1) == box.size[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

}  // namespace einc
