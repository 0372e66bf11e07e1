// SPDX-License-Identifier: Apache-2.0
// The zigzag order of an axis over n devices, as causal attention is balanced (zhuzilin 2024, "ring-flash-attention"; Llama Team 2024, "The
// Llama 3 Herd of Models", section 3.3.2): of the axis' 2n chunks, chunks r and 2n-1-r stand where device r's part is, so that the rows of
// each part see as many keys as those of any other.
//   x [.. 2n*c ..] -> chunks 0, 2n-1, 1, 2n-2, .., n-1, n
#pragma once
#include "compiler/ir/build.h"

namespace einc {

enum class ZigzagMove : uint8_t { into, out_of };

// The value with the axis laid out anew: views and a concat. The chunks' sizes are those of the axis divided by 2n, which divides it.
NodeId zigzag(Builder& build, NodeId x, int axis, const Poly& devices, ZigzagMove move);
// [n 2 m]: the numbers of the elements that devices have, of places [m] in each of their two chunks; `device` [n] says whose.
NodeId zigzag_numbers(Builder& build, NodeId device, const Axis& place);
// What stands at each place of an axis in zigzag order: the positions of an axis that is not.
NodeId zigzag_positions(Builder& build, const Axis& axis, DType dtype, const MeshAxis& devices);

}  // namespace einc
