// SPDX-License-Identifier: Apache-2.0
// A way to split a program with its step as scheduled: partitioned at its own sizes, its program planned for the device and its collectives
// timed one by one, as the report of the same program with these lines has it (report/communication.h, mesh_step.h). Done for few
// iterations of the loops, and told for all.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/fuse/planned_step.h"
#include "compiler/partition/collectives.h"
#include "compiler/plan/search_ways.h"
#include "compiler/report/communication.h"
#include "compiler/report/mesh_step.h"

namespace einc {

// Collectives of one kind over one axis of the mesh, of a whole step.
struct SentKind {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string axis, link;
  Rational bytes;  // that each device sends
  double seconds = 0;
};

// Of a way with stages, times, FLOPs and what is sent are a device's of the stage with the most FLOPs, as in a report.
struct ScheduledWay {
  MeshWay way;
  HeldBytes held;  // of the stage that takes the most
  StepSeconds seconds;
  double again = 0;                // of the work: made again under the limit of the device's memory; of the stage with the most
  std::vector<SentKind> sent;      // the longest first
  Rational bytes, flops;           // of a step, each device
  int64_t shown = 0, fullest = 0;  // stages: the one whose times these are, and the one whose memory
  // Of a way whose keys go round: the same with them gathered, where that fits.
  struct Gathered {
    double seconds = 0, bytes = 0;
  };
  std::optional<Gathered> gathered{};
  // False: as planned it takes more than the device has, whatever is made again. `held` is the least, and no more is known.
  bool fits = true;
};

// How a device's step is planned: as it is, and with a backward that makes iterations again; and what its process takes besides, by the
// graph and its dims (none: nothing).
struct WayPlans {
  PlanStep as_is, least;
  std::function<ProcessBytes(const Graph& graph, const Bindings& given)> process{};
};

// The entry for a kind over an axis, added where it is new.
SentKind& of_kind(std::vector<SentKind>& list, const SentKind& like);
// Of a report's rows, whose times are known.
std::vector<SentKind> sent_kinds(const MeshReport& report);

// The program that formulas are read off, on a way's mesh.
struct PartitionedProgram {
  const Graph& graph;
  Bindings given;
  Partitioned partitioned;
};

class WayScheduler {
 public:
  WayScheduler(SamplePrograms& programs, const PlacedWays& placed, const WayPlans& plans, const Device& device)
      : programs_(programs), placed_(placed), plans_(plans), device_(device) {}

  // Nothing where a device cannot carry its part out, or has no rate for a number format.
  std::optional<ScheduledWay> schedule(const MeshWay& way);

 private:
  struct Part {
    // Bytes of memory, and the most of them in use in each phase (MeshStep).
    struct Held {
      double all = 0;
      std::array<double, kPhases> in_use{};
      double most_in_use() const { return std::ranges::max(in_use); }
    };
    double work = 0, exposed = 0, process = 0;
    Held values, working;
    Rational bytes, flops;
    std::vector<SentKind> sent;
    double held() const { return values.all + working.all; }
  };
  // Two programs of more iterations, or the last sample alone.
  struct Longer {
    std::vector<Part> parts;
    std::vector<int64_t> iterations;
  };
  // Of all iterations, by what samples take: phases grow evenly, and holes are those of the largest.
  Part::Held whole_of(const std::vector<Part>& samples, const Longer& longer, Part::Held Part::*held) const;
  std::optional<Part> measure(Micro micro, size_t sample, const MeshWay& way, const PlanStep& plan);
  std::optional<Part> measure_whole(Micro micro, const MeshWay& way, const PlanStep& plan);
  // Of one loop left short, programs of three iterations and four, or if it is asked for and there are more, of eight and twelve.
  std::optional<Longer> measure_longer(Micro micro, const MeshWay& way, const PlanStep& plan, bool far,
                                       const std::optional<Part>& of_three);
  std::optional<Part> measure_least(Micro micro, const MeshWay& way);
  // What a step of all its micro-batches does; `held` and `process` are of the fullest.
  struct Step {
    double held = 0, process = 0, work = 0, exposed = 0;
    std::vector<SentKind> sent;
    Rational bytes, flops;
  };
  enum class Backward : uint8_t { as_is, makes_again };
  std::optional<Step> measure_step(const MeshWay& way, Backward backward);
  std::optional<ScheduledWay> schedule_whole(const MeshWay& way);
  // By stages of so many iterations.
  std::optional<ScheduledWay> schedule_pipeline(const MeshWay& way, int64_t each);
  double margin() const;
  PartitionedProgram partitioned(const MeshWay& way, size_t sample);
  StepFormulas formulas_of(MeshWay way);

  SamplePrograms& programs_;
  const PlacedWays& placed_;
  const WayPlans& plans_;
  const Device& device_;
};

}  // namespace einc
