// SPDX-License-Identifier: Apache-2.0
// A program over a mesh as plain data: what one device computes, what it does with others meanwhile, and how values lie. All devices take
// the same steps; what differs is where they are.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/collective.h"
#include "runtime/executor/native_program.h"
#include "runtime/mesh/mesh_shape.h"
#include "runtime/mesh/tree_sum.h"

namespace einc {

// A value as each device holds it: index into MeshPlan::values.
struct DeviceTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  int64_t offset = 0;  // in the memory of a device, which values share that are not needed at the same time
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

// Of an executable's inputs, params and states.
struct StageRead {
  uint32_t buffer = 0, value = 0;
};
// Of its outputs: so many launches make it. It is copied to the value behind the step that has carried them out.
struct StageMake {
  uint32_t buffer = 0, value = 0, launches = 0;
};
// Whether a step of these launches makes it.
inline bool makes(const DeviceStep& step, const StageMake& made) {
  return made.launches <= step.last && (made.launches > step.first || step.first == 0);
}

// Where a launch may run that runs together with others: in the place of the first of them, of the last, or between.
struct LaunchPlaces {
  uint32_t first = 0, last = 0;
};

struct MeshStage {
  NativePart compute;  // of a GPU's stages the program alone
  std::vector<StageRead> reads;
  std::vector<StageMake> makes;
  std::vector<LaunchPlaces> places{};  // by launch; empty: each in its own
};
inline bool may_run(const MeshStage& stage, const DeviceStep& step, uint32_t launch) {
  const LaunchPlaces at = stage.places.empty() ? LaunchPlaces{launch, launch} : stage.places[launch];
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

struct MeshPlan {
  std::vector<DeviceTensor> values;
  int64_t bytes = 0;  // that they take on a device
  std::vector<MeshSource> sources;
  std::vector<Coordinate> coordinates;
  std::vector<ValueCopy> snapshots;  // of sources that are results, too: taken before the first stage, since updates change them
  std::vector<MeshStage> stages;
  std::vector<MeshCollective> collectives;  // in the order of their starts
  std::vector<DeviceStep> steps;
  std::vector<MeshResult> outputs;
  std::vector<std::pair<std::string, MeshResult>> gradients;  // by path of the param
  std::vector<MeshUpdate> updates;
  int64_t loss = -1;  // value
};

}  // namespace einc
