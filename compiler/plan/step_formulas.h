// SPDX-License-Identifier: Apache-2.0
// What a device of a mesh does in a step, and holds, as formulas in the mesh's sizes and the batch: read off a partitioned program with few
// iterations of its loops, which formulas fold to any number (cost/sum.h). The formulas rank ways to split a program; those shown are
// scheduled besides.
//   work   each contraction at the longer of its FLOPs and its bytes at the device's rates; other values in memory are written and read
//          once; the optimizer reads and writes params and its states. What a plan for one device keeps within kernels moves nothing.
//   sent   as the report has it (report/ring.h): nothing is hidden
//   held   params, states, inputs, gradients; what the plan for one device keeps for the backward and has beside at its fullest, in parts
//          as the values lie; what is put together in the forward and read by the backward; the largest value that is put together
//   again  contractions that the backward makes again, and other values in memory once more: as work
// A stage of a pipeline has some iterations of a loop and what stands before or behind it (partition/place_stages.h); one stage has all.
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/cost/device.h"
#include "compiler/partition/partition.h"
#include "compiler/partition/place_stages.h"
#include "compiler/plan/mesh_way.h"
#include "compiler/plan/placed_values.h"
#include "compiler/symbolic/fast_formula.h"

namespace einc {

// What a stage of a pipeline has of a program.
struct StageShare {
  double iterations = 0;           // of the loop that stages share
  bool first = true, last = true;  // what stands before the loop, and behind it
  int64_t held = 1;                // microbatches of which it keeps what the backward needs
  double alike = 1;                // stages as long as this one; a part, of those that are shorter
};

// Sizes that formulas are evaluated at: those of the mesh's axes, as the graph has them, and the batch of a micro-batch, 0 where none
// counts; and what the device has of the program.
struct WaySizes {
  std::array<double, kMaxWayAxes + 1> values{};
  int64_t micro_batches = 1;
  bool pipelined = false, sums_once = false;  // stages: gradients may be summed over devices once a step
  StageShare stage;
};

struct HeldBytes {
  double params = 0, gradients = 0, states = 0, inputs = 0, kept = 0, workspace = 0;
  double process = 0;  // what a process takes besides, which formulas leave out
  double total() const { return params + gradients + states + inputs + kept + workspace + process; }
  // With what a plan takes, but for the process: what is kept and worked in grows, or shrinks, alike.
  HeldBytes planned(double bytes) const;
};

struct StepSeconds {
  double work = 0, sent = 0;
  double exposed = 0;  // of what is sent: while no work goes on
  double idle = 0;     // of a stage, while others work
  double total() const { return work + exposed + idle; }
};

// Seconds, bytes or launches of each micro-batch, and once a step.
struct MicroAmount {
  double each = 0, once = 0;
  double step(int64_t micro_batches) const { return static_cast<double>(micro_batches) * each + once; }
};

using SecondsByAxis = std::array<MicroAmount, kMaxWayAxes>;

// What a device sends along an axis of the graph's mesh: bytes, and rounds of a ring.
struct SentAlong {
  MicroAmount bytes, rounds;
};
using SentByAxis = std::array<SentAlong, kMaxWayAxes>;

// Where values are in a step as it is, and in one whose backward makes iterations of loops again; and of which stages they are.
struct PlacedWays {
  PlacedValues as_is, again;
  std::vector<std::string> made_again;  // kinds of values (fuse/memory_limit.h)
  Name loop;                            // whose iterations stages share; empty: none
  std::vector<int64_t> firsts;          // iterations of three stages: a first, one between and a last
  StagePlaces stages;
};

// What a step takes as it is, and where the backward makes again all of the iterations: the same where that takes no less.
struct HeldRange {
  HeldBytes as_is, least;
};

// A step that fits so many bytes.
struct FittedStep {
  HeldBytes held;
  double share = 0;  // of all that can be made again
};
// As much is made again as is needed, in even shares of all: a limit's choice begins with what is cheapest, and takes no longer. Nothing:
// all of it is not enough. `margin`: what is held may be so many times as much.
std::optional<FittedStep> fitted(const HeldRange& held, double bytes, double margin = 1);

class StepFormulas {
 public:
  // `dims` has a value for every dim but the mesh's axes; `batch` is the dim that micro-batches divide, empty for none.
  StepFormulas(const Graph& graph, const Partitioned& partitioned, const PlacedWays& placed, const Device& device, const Bindings& dims,
               Name batch);

  HeldRange held(const WaySizes& sizes) const;
  // Seconds of all that the backward can make again, on top of the work.
  double again(const WaySizes& sizes) const;
  // Of contractions that are alike, each: the same on all stages.
  std::vector<double> product_seconds(const WaySizes& sizes) const;
  MicroAmount work(const WaySizes& sizes, std::span<const double> product_seconds) const;
  SentByAxis sent(const WaySizes& sizes) const;
  // Its time where `order` names the axes from the outermost to the innermost. Infinite where no link of the device is so wide.
  SecondsByAxis sent_seconds(const SentByAxis& sent, const WaySizes& sizes, std::span<const int> order) const;
  // What a stage gets from its two neighbours for a microbatch: bytes, and how many values.
  double received(const WaySizes& sizes) const { return received_(at(sizes)); }
  double values_received() const { return values_received_; }

 private:
  friend class FormulaMaker;
  // Of an iteration of the loop that stages share, and of what the first and the last stage have besides.
  struct InStages {
    FastFormula iteration, first, last;
    double operator()(std::span<const double> at, const StageShare& stage) const;
  };
  // Of one training step: what each micro-batch does, what is done once for all microbatches of a pipeline, and what the optimizer does.
  struct Often {
    InStages each, shared, once;
  };
  struct Contractions {  // alike
    InStages count, again;
    FastFormula flops, bytes;
    double peak = 0;
    double seconds(std::span<const double> at, double memory) const;
  };
  struct Axis {
    Often bytes, rounds;
  };
  std::span<const double> at(const WaySizes& sizes) const { return {sizes.values.data(), variables_}; }
  MicroAmount counts(const Often& often, const WaySizes& sizes, bool shared_once) const;

  size_t variables_ = 0;
  const Device* device_;
  std::vector<Axis> axes_;
  std::vector<Contractions> contractions_;
  Often moved_, launches_;
  InStages params_, gradients_, moments_, inputs_, kept_, beside_, copies_, kept_again_, beside_again_, moved_again_, launches_again_;
  InStages gathered_kept_;  // what collectives put together in the forward, and the backward reads: it is never made again
  InStages sums_;           // gradients whole, over their parts that devices share out
  FastFormula received_;
  double values_received_ = 0;
  std::vector<FastFormula> gathered_;
};

}  // namespace einc
