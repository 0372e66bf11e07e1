// SPDX-License-Identifier: Apache-2.0
// The data of `einc run`: which file gives an input, a param or a state its value, and which file takes an output.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/ir/tensor.h"
#include "runtime/data/array_file.h"
#include "runtime/data/name_map.h"

namespace einc {

using Assignments = std::vector<std::pair<std::string, std::string>>;  // name = path

struct DataFiles {
  Assignments inputs, params, outputs;
  std::vector<std::string> weights;  // paths
  std::string names;                 // of a file that says what the weights are called in them; empty: as in the program
};

// Values by name of inputs, by path of params and states. What one file says of a param, a --param file overrules.
class RunData {
 public:
  // nullopt after a message on standard error: a name that the program has not. Throws RuntimeFailure for bad files, and when a file of
  // weights has nothing of the program's. Warns of weights that are left over or missing, and of values that are not finite.
  static std::optional<RunData> open(const Graph& graph, const DataFiles& files);

  // The shapes of inputs, to bind free dims by.
  const std::unordered_map<Name, HostArray>& inputs() const { return inputs_; }
  // What was given for an input, param or state, converted to the node's dtype. nullopt: nothing, and it has an initialiser.
  // Throws RuntimeFailure (data): missing, of another shape, not representable.
  std::optional<HostArray> value_of(const Graph& graph, NodeId id, const std::vector<int64_t>& shape) const;

 private:
  std::optional<HostArray> given(const Graph& graph, NodeId id, const std::vector<int64_t>& shape) const;
  void check_weights(const Graph& graph) const;

  std::unordered_map<Name, HostArray> inputs_, params_;
  std::vector<std::unique_ptr<ArrayFile>> weights_;
  NameMap names_;  // of the weights
};

// Where outputs go. Several may share one .npz or .safetensors file.
class OutputFiles {
 public:
  // nullopt after a message: an unknown output or ending, or two outputs for one .npy file. The loss answers to `loss`.
  static std::optional<OutputFiles> open(const Graph& graph, const Assignments& outputs);

  bool wants(Name output) const;
  void take(Name output, HostArray array);
  // Formats without the dtype (.npy has no bf16) get the same values as f32, and standard error says so.
  void write() const;

 private:
  struct File {
    ArrayFormat format = ArrayFormat::npy;
    NamedArrays arrays;  // empty until taken
  };
  std::map<std::string, File> files_;
  std::unordered_map<Name, std::string> path_of_;
};

}  // namespace einc
