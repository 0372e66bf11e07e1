// SPDX-License-Identifier: Apache-2.0
// What a compiled program looks like from outside: its tensors in the order in which the program declares them.
#pragma once
#include <array>
#include <optional>
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

// The ways to run a program, each compiled by itself: outputs; the loss without dropout, where nothing is updated; a step; of a
// step in micro-batches those before the last, whose gradients are summed in states.
enum class Part : uint8_t { forward, evaluation, training, accumulation };
inline constexpr size_t kParts = 4;
template <class T>
struct PerPart : std::array<std::optional<T>, kParts> {
  using Base = std::array<std::optional<T>, kParts>;
  std::optional<T>& operator[](Part part) { return Base::operator[](static_cast<size_t>(part)); }
  const std::optional<T>& operator[](Part part) const { return Base::operator[](static_cast<size_t>(part)); }
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
