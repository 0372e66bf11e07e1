// SPDX-License-Identifier: Apache-2.0
// What a tensor is at compile time: a dtype and a list of axes, each with a name and a symbolic size. Axis names carry
// meaning in the language and for readers; the graph itself refers to axes by position.
#pragma once
#include <string>
#include <vector>

#include "compiler/symbolic/poly.h"
#include "runtime/base/dtype.h"
#include "runtime/base/name.h"

namespace einc {

struct Axis {
  Name name;  // empty for a unit axis; "(h d)" for a composed one: neither answers to a single name
  Poly size;
  bool is_named() const { return !name.empty() && name.str()[0] != '('; }
  friend bool operator==(const Axis&, const Axis&) = default;
};

struct Type {
  DType dtype = DType::real;
  std::vector<Axis> axes;

  int rank() const { return static_cast<int>(axes.size()); }
  const Axis& axis(int i) const { return axes[static_cast<size_t>(i)]; }
  // Number of elements.
  Poly count() const {
    Poly n(1);
    for (const Axis& a : axes) n = n * a.size;
    return n;
  }
  // Elements times storage bytes of the dtype.
  Poly bytes() const { return count() * Poly(bytes_of(dtype)); }
  bool same_sizes(const Type& other) const;
  friend bool operator==(const Type&, const Type&) = default;
};

// `f32[batch seq]`; a local axis prints as `name=size`, a nameless one as its size.
std::string to_string(const Type& type);

}  // namespace einc
