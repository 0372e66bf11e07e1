// SPDX-License-Identifier: Apache-2.0
// The least that a step can take on a device, whatever order its launches run in and however much of it goes on at once.
#pragma once
#include <optional>

#include "compiler/cost/device.h"
#include "compiler/fuse/form_graph.h"

namespace einc {

// The larger of two times, in seconds:
//   products:  the sum over the launches' contractions, masked-off ones not counted, of FLOPs / peak of their operands' format
//   memory:    (bytes of inputs, params, states and outputs that a launch reads or writes whole, each once - the last cache) / bandwidth
// Peaks are a sheet's, or by clock and units where they were measured; the bandwidth is as it stands there. Nothing where it has no peak
// for a format.
std::optional<double> lower_bound_seconds(const FormedGraph& formed, const Device& device);

// FLOP/s of a launch's contractions on a device, by the format of their operands.
std::optional<double> contraction_rate(const Graph& graph, const GraphKernel& kernel, const Device& device);

}  // namespace einc
