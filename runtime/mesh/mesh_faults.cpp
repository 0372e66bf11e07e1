// SPDX-License-Identifier: Apache-2.0
// What keeps a run over a mesh from storing its results, and how it is told: of the whole program, as without a mesh.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/failure.h"
#include "runtime/base/training_names.h"
#include "runtime/mesh/mesh_runner.h"

namespace einc {

// What is not finite first, as the interpreter decides it for the whole program.
NonFinite MeshRunner::fault_of(const RunningPart& part) const {
  const MeshPlan& plan = part.plan;
  const auto& states = program_.info.states;
  const bool skips = std::ranges::any_of(states, [](const TensorInfo& state) { return state.name == kLossScale; });
  const auto finite = [&](uint32_t value) { return part.devices->holds_numbers(value); };
  if (plan.loss >= 0 && !plan.gradients.empty() && !finite(static_cast<uint32_t>(plan.loss))) return NonFinite::loss;
  for (const auto& [path, gradient] : plan.gradients)
    if (!skips && !finite(gradient.value)) return NonFinite::gradient;
  for (const MeshUpdate& update : plan.updates) {
    const MeshSource& target = plan.sources[update.source];
    if (info(target.source).name.ends_with(kGradientSum)) {
      if (!skips && !finite(update.value)) return NonFinite::gradient;
      continue;
    }
    if (!part.devices->may_store(update.value, target.value)) return NonFinite::state;
  }
  return NonFinite::nothing;
}

// `ask(runner, program)`, the runner being one of the whole program over copies of what the session's memory holds.
template <class Ask>
auto MeshRunner::ask_whole(Part part, Ask ask) {
  const std::shared_ptr<const ProgramRep> program = program_.whole();
  using Answer = std::optional<decltype(ask(std::declval<Runner&>()))>;
  if (!program || !program->has(part)) return Answer();
  const auto runner = program->start(pool_, kDefaultDevice);
  std::vector<std::vector<std::byte>> copies;
  for (const SourceKind kind : {SourceKind::input, SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) {
      if (program_.transport() == nullptr) fetch({kind, i});  // of several processes this one may ask alone
      const std::byte* from = whole({kind, i}).memory;
      copies.emplace_back(from, from + info({kind, i}).bytes());
      runner->bind({kind, i}, copies.back().data());
    }
  return Answer(ask(*runner));
}

// All processes know of the fault.
std::string MeshRunner::find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) {
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) fetch({kind, i});
  return ask_whole(part, [&](Runner& runner) { return runner.find_fault(part, what, seed, step); }).value_or("");
}

// This process alone knows of the fault, and where its device has it: the whole program tells which element of the data it is.
void MeshRunner::refuse_element(const RuntimeFailure& found, int64_t device, Part part, uint64_t seed, uint64_t step) {
  ask_whole(part, [&](Runner& runner) { return runner.run_while_finite(part, seed, step); });  // throws what is to be told
  std::string place;
  for (size_t m = 0; m < engine_.mesh().names.size(); ++m)
    place += fmt::format("{}{} = {}", m == 0 ? "" : ", ", engine_.mesh().names[m], engine_.mesh().coordinate(device, static_cast<int>(m)));
  throw RuntimeFailure(FailureKind::data, fmt::format("in the part of the device at {}: {}", place, found.what()));
}

}  // namespace einc
