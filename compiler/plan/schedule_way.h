// SPDX-License-Identifier: Apache-2.0
// A way to split a program with its step as scheduled: partitioned at its own sizes, its program planned for the device and its collectives
// timed one by one, as the report of the same program with these lines has it (report/communication.h, mesh_step.h). Done for few
// iterations of the loops, and told for all.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/fuse/planned_step.h"
#include "compiler/partition/collectives.h"
#include "compiler/plan/search_ways.h"
#include "compiler/report/communication.h"

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
  double again = 0;                // of the work, by formula: made again under the limit of the device's memory; of the stage with the most
  std::vector<SentKind> sent;      // the longest first
  Rational bytes, flops;           // of a step, each device
  int64_t shown = 0, fullest = 0;  // stages: the one whose times these are, and the one whose memory
  bool fits = true;                // false: as planned it takes more than the device has, whatever is made again, and no more is known
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
  WayScheduler(SamplePrograms& programs, const PlacedWays& placed, const PlanStep& plan, const Device& device)
      : programs_(programs), placed_(placed), plan_(plan), device_(device) {}

  // Nothing where a device cannot carry its part out, or has no rate for a number format.
  std::optional<ScheduledWay> schedule(const MeshWay& way);
  // The least that it takes, as partitioned at its own sizes.
  HeldBytes held_by(const MeshWay& way);

 private:
  struct Part {
    // Bytes of memory, and the most of them in use in each phase (MeshStep).
    struct Held {
      double all = 0;
      std::array<double, kPhases> in_use{};
      double most_in_use() const { return std::ranges::max(in_use); }
    };
    double work = 0, exposed = 0;
    Held values, working;
    Rational bytes, flops;
    std::vector<SentKind> sent;
    double held() const { return values.all + working.all; }
  };
  // Of all iterations, by what samples take: phases grow evenly, and holes are those of the largest sample.
  Part::Held whole_of(const std::vector<Part>& samples, const Part& largest, Part::Held Part::*held) const;
  std::optional<Part> measure(Micro micro, size_t sample, const MeshWay& way);
  std::optional<Part> measure_whole(Micro micro, const MeshWay& way);
  PartitionedProgram folding(const MeshWay& way);
  StepFormulas formulas_of(const PartitionedProgram& folding);

  SamplePrograms& programs_;
  const PlacedWays& placed_;
  const PlanStep& plan_;
  const Device& device_;
};

}  // namespace einc
