// SPDX-License-Identifier: Apache-2.0
// One way to train a program on a mesh: its axes, what they split, what is spread besides, and how many micro-batches a step takes; and
// the lines that ask for it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/name.h"

namespace einc {

// What is spread along the axes that split the data: nothing, or as ZeRO's stages 1 to 3 do.
enum class Spread : uint8_t { nothing, states, gradients, params };
inline constexpr Spread kSpreads[] = {Spread::nothing, Spread::states, Spread::gradients, Spread::params};
std::string_view to_string(Spread spread);

inline constexpr size_t kMaxWayAxes = 3;  // those of stages aside

struct WayAxis {
  std::string name;  // of the mesh's axis
  int64_t size = 1;
  std::vector<Name> split;  // axes of the program
  bool spreads = false;     // `spread` lies along it
  bool keys = false;        // keys of attention stay in parts along it, and go round (context/ring_attention.h)
  friend bool operator==(const WayAxis&, const WayAxis&) = default;
};

// Stages of a pipeline along an axis outside of all others: what they send each other is little.
struct WayStages {
  std::string name;  // of the mesh's axis
  int64_t count = 2;
  Name loop;  // the dim of the loop whose iterations they share
  friend bool operator==(const WayStages&, const WayStages&) = default;
};

struct MeshWay {
  std::vector<WayAxis> axes;  // outer to inner, those of stages aside
  Spread spread = Spread::nothing;
  int64_t micro_batches = 1;  // each of the batch over this; of a pipeline, those on their way through its stages
  std::optional<WayStages> stages{};
  bool recomputes = false;  // under a limit of the device's memory

  bool accumulates() const { return micro_batches > 1 && !stages; }  // gradients of micro-batches, one after the other
  std::string mesh() const;                                          // "data=4,model=2", for --mesh
  std::string shard() const;                                         // "batch=data; heads,hidden=model; states=data", for --shard
  std::vector<std::string> lines() const;                            // the same as the program's own lines
  friend bool operator==(const MeshWay&, const MeshWay&) = default;
};

}  // namespace einc
