// SPDX-License-Identifier: Apache-2.0
// From a partitioned graph to the graph of one device: mesh axes are gone, declarations have the sizes of their parts, and what crosses
// mesh axes is one of the ops all_reduce, reduce_scatter, all_gather, all_to_all and shift. All devices run the same graph: where one is,
// it reads from scalar inputs, its coordinates, so that what is compiled once serves all.
#pragma once
#include <vector>

#include "compiler/ir/interpret.h"
#include "compiler/partition/partition.h"

namespace einc {

// What params and states take: values beside the old ones, for whoever runs the program; or launches store it, behind the place where all
// devices agree that it is finite (a training step's, compiled as one).
enum class DeviceUpdates : uint8_t { apart, in_place };
inline RunMode mode_of(DeviceUpdates updates) { return updates == DeviceUpdates::in_place ? RunMode::training : RunMode::inference; }

// A value of a device's graph, and how the whole lies on the mesh.
struct DeviceValue {
  NodeId node;
  Layout layout;
  ZigzagAxes zigzag{};
};

struct Localized {
  Graph graph;                        // with outputs, updates and loss; gradients lie apart, since they may lie otherwise than their params
  std::vector<DeviceValue> declared;  // inputs, params and states
  std::vector<DeviceValue> outputs, updates, gradients;  // as in Partitioned; a param that is not trained has no node
  std::vector<NodeId> trained;  // by `gradients`: the params; invalid where a gradient that is not finite is no fault
  // Of a stage's program that stores: gradients that are inputs, with their params.
  std::vector<Update> given_gradients;
  DeviceUpdates stores = DeviceUpdates::apart;
  DeviceValue loss;
  std::vector<NodeId> coordinates;  // by mesh axis: inputs; invalid where none is read
  std::vector<NodeId> collectives;  // by collectives_of(partitioned)
  // Of a stage's program: results that outlast a microbatch, and declarations that take no room, since they lie elsewhere.
  std::vector<NodeId> lasting, elsewhere;
};

Localized localize(const Partitioned& partitioned);

}  // namespace einc
