// SPDX-License-Identifier: Apache-2.0
// What a device of a mesh does in a step, and holds, as formulas in the mesh's sizes and the batch: read off a partitioned program with few
// iterations of its loops, which formulas fold to any number (cost/sum.h). The formulas rank ways to split a program; those shown are
// scheduled besides.
//   work   each contraction at the longer of its FLOPs and its bytes at the device's rates; other values in memory are written and read
//          once; the optimizer reads and writes params and its states. What a plan for one device keeps within kernels moves nothing.
//   sent   as the report has it (report/ring.h): nothing is hidden
//   held   params, states, inputs, gradients; what the plan for one device keeps for the backward and has beside at its fullest, in parts
//          as the values lie; the largest value that is put together
//   again  contractions that the backward makes again, and other values in memory once more: as work
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/partition/partition.h"
#include "compiler/plan/placed_values.h"
#include "compiler/symbolic/fast_formula.h"

namespace einc {

inline constexpr size_t kMaxWayAxes = 3;

// Sizes that formulas are evaluated at: those of the mesh's axes, as the graph has them, and the batch of a micro-batch, 0 where none
// counts.
struct WaySizes {
  std::array<double, kMaxWayAxes + 1> values{};
  int64_t micro_batches = 1;
};

struct HeldBytes {
  double params = 0, gradients = 0, states = 0, inputs = 0, kept = 0, workspace = 0;
  double total() const { return params + gradients + states + inputs + kept + workspace; }
};

struct StepSeconds {
  double work = 0, sent = 0;
  double exposed = 0;  // of what is sent: while no work goes on
  double total() const { return work + exposed; }
};

using SecondsByAxis = std::array<double, kMaxWayAxes>;

// Where values are in a step as it is, and in one whose backward makes iterations of loops again.
struct PlacedWays {
  PlacedValues as_is, again;
};

// What a step takes as it is, and where the backward makes again all of the iterations: the same where that takes no less.
struct HeldRange {
  HeldBytes as_is, least;
};

// A step that fits so many bytes.
struct FittedStep {
  HeldBytes held;
  double again = 0;  // seconds of what the backward makes again, on top of the work
};

class StepFormulas {
 public:
  // `dims` has a value for every dim but the mesh's axes; `batch` is the dim that micro-batches divide, empty for none.
  StepFormulas(const Graph& graph, const Partitioned& partitioned, const PlacedWays& placed, const Device& device, const Bindings& dims,
               Name batch);

  HeldRange held(const WaySizes& sizes) const;
  // As much is made again as is needed, in even shares of all: a limit's choice begins with what is cheapest, and takes no longer. Nothing:
  // all of it is not enough.
  std::optional<FittedStep> fitted(const HeldRange& held, const WaySizes& sizes, double bytes) const;
  double work(const WaySizes& sizes) const;
  // What is sent over each axis of the graph's mesh, which `order` names from the outermost to the innermost. Infinite where no link of the
  // device is so wide.
  SecondsByAxis sent(const WaySizes& sizes, std::span<const int> order) const;

 private:
  friend class FormulaMaker;
  // Of one training step: what each micro-batch does, and what the optimizer does once.
  struct Twice {
    FastFormula each, once;
    double operator()(const WaySizes& sizes, size_t count) const;
  };
  struct Contractions {  // alike
    FastFormula count, again, flops, bytes;
    double peak = 0;
    double seconds(std::span<const double> at, double memory) const;
  };
  double again(const WaySizes& sizes) const;
  struct Axis {
    Twice bytes, rounds;
  };
  size_t variables_ = 0;
  const Device* device_;
  std::vector<Axis> axes_;
  std::vector<Contractions> contractions_;
  Twice moved_, launches_;
  FastFormula params_, gradients_, moments_, inputs_, kept_, beside_, copies_, kept_again_, beside_again_, moved_again_, launches_again_;
  std::vector<FastFormula> gathered_;
};

}  // namespace einc
