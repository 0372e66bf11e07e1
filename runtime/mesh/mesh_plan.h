// SPDX-License-Identifier: Apache-2.0
// A program over a mesh as plain data: what one device computes, what it does with others meanwhile, and how values lie. All devices take
// the same steps; what differs is where they are.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/collective.h"
#include "runtime/executor/native_program.h"
#include "runtime/mesh/mesh_shape.h"
#include "runtime/mesh/tree_sum.h"

namespace einc {

inline constexpr int64_t kElsewhere = -1;
// Of bytes that a GPU packs and receives of a collective at once: what has more goes in pieces. At the 50 GB/s of a network's link a piece
// takes 5 ms, beside which starting its messages (20 to 50 us) is 1 %: reckoned, not measured.
inline constexpr int64_t kMostPacked = int64_t{256} << 20;

// A value as each device holds it: index into MeshPlan::values.
struct DeviceTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t offset = 0;  // in the memory of a device, which values share that are not needed at the same time; kElsewhere: in another
};

// As the op of the graph (CollectiveAttr, ShiftAttr). Axes are those of the values.
struct MeshCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int mesh_axis = 0;
  ReduceKind reduce = ReduceKind::sum;
  int gathered = 0, divided = 0;
  uint32_t from = 0, to = 0;
  int64_t by = 0;  // of a shift: from the device so many places further, in a ring
};

// A buffer of the executable that lies where a value does. So many launches make it; 0: it is given, or a collective's result.
struct BoundValue {
  uint32_t buffer = 0, value = 0, launches = 0;
};

// What a device computes in a run. Collectives are launches among the others, in whose place nothing runs: the steps say when.
struct DeviceCode {
  NativePart compute;  // of a GPU the program alone
  std::vector<BoundValue> bound{};
  std::vector<LaunchPlaces> places{};  // by launch; empty: each in its own
};
inline bool may_run(const DeviceCode& code, const DeviceStep& step, uint32_t launch) {
  if (is_collective(code.compute.program.launches[launch])) return false;
  const LaunchPlaces at = code.places.empty() ? LaunchPlaces{launch, launch} : code.places[launch];
  return at.first < step.last && at.last >= step.first;
}

struct Coordinate {
  int mesh_axis = 0;
  uint32_t value = 0;
};

// A value that has a place outside: a source of the program, or a result.
struct MeshResult {
  uint32_t value = 0;
  PartLayout layout;
};
struct MeshSource {
  Source source;
  uint32_t value = 0;
  PartLayout layout;
};
struct MeshUpdate {
  uint32_t source = 0;  // of MeshPlan::sources
  uint32_t value = 0;
};

struct ValueCopy {
  uint32_t from = 0, to = 0;
};

struct PipelinePlan;

struct MeshPlan {
  std::vector<DeviceTensor> values;
  int64_t bytes = 0;  // that they take on a device
  // Of them the first ones are of values that outlast a run, those behind them of what a backward has of its forward.
  int64_t lasting = 0, kept = 0;
  std::vector<MeshSource> sources;
  std::vector<uint32_t> taken;  // values that another plan makes (pipeline_plan.h)
  std::vector<Coordinate> coordinates;
  std::vector<ValueCopy> snapshots;  // of sources that are results, too: taken before the first step, since updates change them
  DeviceCode code;
  std::vector<MeshCollective> collectives;  // in the order of their starts
  std::vector<DeviceStep> steps;
  std::vector<MeshResult> outputs;
  std::vector<std::pair<std::string, MeshResult>> gradients;  // by path of the param
  std::vector<MeshUpdate> updates;
  bool in_place = false;  // launches store what updates take, once devices agree; what has a value of its own is copied behind the last
  int64_t loss = -1;      // value
  int64_t most_packed = kMostPacked;  // bytes, about: the same in all processes, which cut alike by it
  // Of stages: then there are neither code nor steps here, and values are those of their plans that have a place outside.
  std::shared_ptr<const PipelinePlan> pipeline{};
};

// Where a device of this process, the d-th, has a value of the plan: in the memory that all microbatches of a stage share, device after
// device, or in that of each microbatch. Not of values that lie elsewhere.
struct ValuePlace {
  bool of_microbatch = false;
  int64_t offset = 0;
};
inline ValuePlace place_of(const MeshPlan& plan, int64_t d, uint32_t value) {
  const int64_t offset = plan.values[value].offset;
  if (offset >= plan.lasting && offset < plan.lasting + plan.kept) return {true, d * plan.kept + offset - plan.lasting};
  return {false, d * (plan.bytes - plan.kept) + offset - (offset < plan.lasting ? 0 : plan.kept)};
}

// Of a plan: so many launches have run when that step comes.
inline uint32_t launches_before(const MeshPlan& plan, size_t step) {
  uint32_t launches = 0;
  for (size_t s = 0; s < step; ++s)
    if (plan.steps[s].act == DeviceAct::compute) launches = plan.steps[s].last;
  return launches;
}

}  // namespace einc
