// SPDX-License-Identifier: Apache-2.0
// How a value lies on the mesh: which mesh axes split each of its axes, and along which it is still in parts that are to be combined.
// A value is the same on all devices along every other mesh axis. In a partitioned graph a value's axes are its mesh axes, in the mesh's
// order, and then its own with what is left of their sizes.
#pragma once
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// The devices along mesh axis `mesh` hold terms of a sum, or values whose extreme is meant.
struct Unreduced {
  int mesh = 0;
  ReduceFn fn = ReduceFn::sum;
  friend bool operator==(const Unreduced&, const Unreduced&) = default;
};

struct Layout {
  std::vector<AxisList> axes;  // of each axis: mesh axes, outer to inner
  std::vector<Unreduced> partial;

  Layout() = default;
  explicit Layout(int rank) : axes(static_cast<size_t>(rank)) {}

  const AxisList& over(int axis) const { return axes[static_cast<size_t>(axis)]; }
  AxisList& over(int axis) { return axes[static_cast<size_t>(axis)]; }
  // The axis that mesh axis m splits, or -1.
  int axis_on(int m) const {
    for (size_t i = 0; i < axes.size(); ++i)
      if (axes[i].contains(m)) return static_cast<int>(i);
    return -1;
  }
  const Unreduced* partial_on(int m) const {
    for (const Unreduced& p : partial)
      if (p.mesh == m) return &p;
    return nullptr;
  }
  bool has(int m) const { return axis_on(m) >= 0 || partial_on(m) != nullptr; }
  // Ascending: the leading axes in a partitioned graph.
  AxisList mesh_axes(const Mesh& mesh) const {
    AxisList all;
    for (int m = 0; m < static_cast<int>(mesh.axes.size()); ++m)
      if (has(m)) all.push_back(m);
    return all;
  }
  bool whole() const {
    return partial.empty() && std::all_of(axes.begin(), axes.end(), [](const AxisList& list) { return list.empty(); });
  }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Axes of a value that lie in zigzag order (zigzag.h), for the devices of mesh axis `over`.
struct ZigzagAxes {
  AxisList axes;
  int over = -1;
  friend bool operator==(const ZigzagAxes&, const ZigzagAxes&) = default;
};

// Sizes to decide by: dims that have a value say what divides; with 1024 for each other one, what costs least. A program has few distinct
// sizes, and asks for them at every node: each is evaluated once.
class LayoutValues {
 public:
  LayoutValues(Bindings known, Bindings typical) : known_(std::move(known)), typical_(std::move(typical)) {}
  std::optional<int64_t> known(const Poly& size) const {
    const auto [at, fresh] = sizes_.try_emplace(size);
    if (fresh) at->second = size.evaluate_integer(known_);
    return at->second;
  }
  double typical(const Poly& amount, double otherwise) const { return amount.to_double(typical_).value_or(otherwise); }

 private:
  Bindings known_, typical_;
  mutable std::unordered_map<Poly, std::optional<int64_t>> sizes_;
};

// What is left of an axis' size on one device.
inline Poly part_of(const Poly& size, const AxisList& over, const Mesh& mesh) {
  Poly parts(1);
  for (const int m : over) parts *= mesh.axes[static_cast<size_t>(m)].size;
  return parts.is_one() ? size : divide(size, parts);
}

// Elements on one device times bytes of the dtype.
inline Poly local_bytes(const Type& type, const Layout& layout, const Mesh& mesh) {
  Poly bytes(bytes_of(type.dtype));
  for (int i = 0; i < type.rank(); ++i) bytes *= part_of(type.axis(i).size, layout.over(i), mesh);
  return bytes;
}

// `f32[batch/data seq embed], sum over model`; an axis in zigzag order is `seq:zigzag/context`.
std::string describe_layout(const Type& type, const Layout& layout, const ZigzagAxes& zigzag, const Mesh& mesh);

}  // namespace einc
