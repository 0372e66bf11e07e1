// What a compiled program looks like from outside: its tensors in the order in which the program declares them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <einc/tensor.h>
#include "runtime/base/init.h"

namespace einc {

struct Initializer {
  InitKind kind = InitKind::zeros;
  std::vector<double> arguments;
  bool operator==(const Initializer&) const = default;
};

struct ProgramInfo {
  std::string name;
  std::vector<std::pair<std::string, int64_t>> dims;
  std::vector<TensorInfo> inputs, params, states, outputs;
  std::vector<Initializer> param_inits, state_inits;  // one for each param and state
  bool trains = false;
  bool operator==(const ProgramInfo&) const = default;
};

// An input, param or state: what a run reads and does not make.
enum class SourceKind : uint8_t { input, param, state };
struct Source {
  SourceKind kind = SourceKind::input;
  uint32_t index = 0;
};

inline const std::vector<TensorInfo>& sources_of(const ProgramInfo& info, SourceKind kind) {
  return kind == SourceKind::input ? info.inputs : kind == SourceKind::param ? info.params : info.states;
}

}  // namespace einc
