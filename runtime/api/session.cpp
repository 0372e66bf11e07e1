// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/api/guard.h"
#include "runtime/base/printable.h"
#include "runtime/base/pullback_names.h"
#include "runtime/executor/dlpack.h"
#include "runtime/executor/session.h"
#include "runtime/executor/weights.h"
#include "runtime/train/checkpoint_folder.h"

namespace einc {
namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorKind::usage, message); }

std::string names_of(const std::vector<TensorInfo>& tensors) {
  std::string names;
  for (const TensorInfo& tensor : tensors) {
    names += (names.empty() ? "" : ", ") + tensor.name;
    if (names.size() > 300) return names + ", ...";
  }
  return names.empty() ? "none" : names;
}

std::optional<uint32_t> find(const std::vector<TensorInfo>& tensors, std::string_view name) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& t) { return t.name == name; });
  if (found == tensors.end()) return std::nullopt;
  return static_cast<uint32_t>(found - tensors.begin());
}

uint32_t index_of(const std::vector<TensorInfo>& tensors, std::string_view name, const char* what) {
  const auto found = find(tensors, name);
  if (!found) fail(fmt::format("the program has no {} '{}'; it has {}", what, printable(name), names_of(tensors)));
  return *found;
}

std::optional<Source> find_source(const ProgramInfo& info, std::string_view name) {
  for (const SourceKind kind : {SourceKind::input, SourceKind::param, SourceKind::state})
    if (const auto index = find(sources_of(info, kind), name)) return Source{kind, *index};
  return std::nullopt;
}

Source source_of(const ProgramInfo& info, std::string_view name) {
  const auto source = find_source(info, name);
  if (!source)
    fail(fmt::format("the program has no input, param or state '{}'; inputs: {}; params: {}", printable(name), names_of(info.inputs),
                     names_of(info.params)));
  return *source;
}

void check(const TensorInfo& tensor, DType dtype, const std::vector<int64_t>& shape) {
  if (tensor.dtype != dtype || tensor.shape != shape)
    fail(fmt::format("'{}' is {}, but given as {}", tensor.name, type_text(tensor.dtype, tensor.shape), type_text(dtype, shape)));
}

void check(const TensorInfo& tensor, DType dtype, size_t count) {
  if (tensor.dtype != dtype || tensor.count() != static_cast<int64_t>(count))
    fail(fmt::format("'{}' is {}, {} elements, but given as {} elements of {}", tensor.name, type_text(tensor.dtype, tensor.shape),
                     tensor.count(), count, to_string(dtype)));
}

void check_memory(const TensorInfo& tensor, const void* memory) {
  if (memory == nullptr && tensor.count() > 0) fail(fmt::format("'{}' is given at the null address", tensor.name));
}

void check_alignment(const TensorInfo& tensor, const void* memory) {
  check_memory(tensor, memory);
  if (reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(bytes_of(tensor.dtype)) != 0)
    fail(fmt::format("the memory for '{}' is not aligned to its elements of {} bytes", tensor.name, bytes_of(tensor.dtype)));
}

const TensorInfo& tensor_of(const ProgramInfo& info, Source source) { return sources_of(info, source.kind)[source.index]; }

TensorView view(const ProgramInfo& info, const SessionRep& rep, Source source) {
  const TensorInfo& tensor = tensor_of(info, source);
  return {tensor.dtype, tensor.shape, guarded([&] { return rep.memory(source); })};
}

void check_pullback(const ProgramInfo& info) {
  const auto is_gradient = [](const TensorInfo& tensor) { return tensor.name.starts_with(kPulledBack); };
  if (std::none_of(info.outputs.begin(), info.outputs.end(), is_gradient)) fail("the program was not compiled for Purpose::pullback");
}

void check_team(const ThreadTeam& team) {
  const bool some = team.fork || team.index || team.size, all = team.fork && team.index && team.size;
  if (some && !all) fail("SessionOptions::team is given in part: it has three functions");
}

int thread_count(int asked) {
  if (asked < 0) fail(fmt::format("{} threads", asked));
  return asked > 0 ? asked : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Session::Session(const Program& program, const SessionOptions& options)
    : program_(program), rep_(guarded([&] {
        check_team(options.team);
        return std::make_unique<SessionRep>(program.rep(), thread_count(options.threads), options.device, options.team);
      })) {}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

// What stands behind a session refers to its program, and goes before it.
Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  rep_.reset();
  program_ = std::move(other.program_);
  rep_ = std::move(other.rep_);
  return *this;
}

SessionRep& Session::rep() const {
  if (!rep_) fail("the session was moved from");
  return *rep_;
}

void Session::init(uint64_t seed) {
  guarded([&] { rep().initialize(seed); });
}

void Session::seed(uint64_t seed) { rep().set_seed(seed); }

void Session::set(std::string_view name, const TensorView& values) {
  const Source source = source_of(program_.rep().info, name);
  check(tensor_of(program_.rep().info, source), values.dtype(), values.shape());
  check_memory(tensor_of(program_.rep().info, source), values.data());
  rep().set(source, values.data());
}

void Session::set_elements(std::string_view name, DType dtype, const void* data, size_t count) {
  const Source source = source_of(program_.rep().info, name);
  check(tensor_of(program_.rep().info, source), dtype, count);
  check_memory(tensor_of(program_.rep().info, source), data);
  rep().set(source, data);
}

LoadedWeights Session::load(const std::string& path, const std::string& names) {
  return guarded([&] { return load_weights(path, names.empty() ? NameMap() : NameMap::read(names), program_.rep().info, rep()); });
}

void Session::save(const std::string& path, Saved what) const {
  guarded([&] {
    const ProgramInfo& info = program_.rep().info;
    std::vector<std::string> states;
    if (what == Saved::params_and_states)
      for (const TensorInfo& state : info.states) states.push_back(state.name);
    save_weights(path, info, rep(), states);
  });
}

void Session::save_checkpoint(const std::string& folder, int keep) const {
  if (keep < 1) fail(fmt::format("a checkpoint folder that keeps {}", keep));
  TrainingPosition position;
  position.step = rep().draws();
  RunSettings run;
  run.seeds = {rep().seed(), rep().seed(), rep().seed()};
  guarded([&] { CheckpointFolder(folder).save(rep(), position, run, static_cast<uint64_t>(keep)); });
}

bool Session::resume(const std::string& folder) {
  return guarded([&] {
    const auto found = CheckpointFolder(folder).newest();
    if (!found) return false;
    const CheckpointRecord& record = found->checkpoint.record();
    restore(found->checkpoint, rep(), record.run, Fit::exact);
    rep().set_draws(record.run.seeds.dropout, record.position.step);
    return true;
  });
}

uint64_t Session::steps() const { return rep().draws(); }

void Session::bind(std::string_view name, DType dtype, const std::vector<int64_t>& shape, void* memory) {
  const Source source = source_of(program_.rep().info, name);
  const TensorInfo& tensor = tensor_of(program_.rep().info, source);
  check(tensor, dtype, shape);
  check_alignment(tensor, memory);
  rep().bind(source, memory, nullptr);
}

void Session::bind_elements(std::string_view name, DType dtype, void* data, size_t count) {
  const Source source = source_of(program_.rep().info, name);
  const TensorInfo& tensor = tensor_of(program_.rep().info, source);
  check(tensor, dtype, count);
  check_alignment(tensor, data);
  rep().bind(source, data, nullptr);
}

void Session::bind_input_elements(std::string_view name, DType dtype, const void* data, size_t count) {
  index_of(program_.inputs(), name, "input");
  bind_elements(name, dtype, const_cast<void*>(data), count);
}

void Session::bind(std::string_view name, DLManagedTensor* tensor) {
  guarded([&] {
    const Source source = source_of(program_.rep().info, name);
    const TensorInfo& info = tensor_of(program_.rep().info, source);
    void* memory = elements_of(tensor, info);
    check_alignment(info, memory);
    rep().bind(source, memory, tensor);
  });
}

void Session::bind_output(std::string_view name, DType dtype, const std::vector<int64_t>& shape, void* memory) {
  const uint32_t index = index_of(program_.outputs(), name, "output");
  const TensorInfo& tensor = program_.outputs()[index];
  check(tensor, dtype, shape);
  if (memory != nullptr) check_alignment(tensor, memory);
  guarded([&] { rep().bind_output(index, memory); });
}

void Session::share(Session& other) {
  const ProgramInfo &mine = program_.rep().info, &theirs = other.program_.rep().info;
  std::vector<std::pair<Source, Source>> places;
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(mine, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(mine, kind)[i];
      const auto index = find(sources_of(theirs, kind), tensor.name);
      if (!index) continue;
      const TensorInfo& there = sources_of(theirs, kind)[*index];
      check(tensor, there.dtype, there.shape);
      places.emplace_back(Source{kind, i}, Source{kind, *index});
    }
  for (const auto& [source, shared] : places) rep().share(source, other.rep(), shared);
}

void Session::run() {
  guarded([&] { rep().run(); });
}

void Session::forward() {
  check_pullback(program_.rep().info);
  guarded([&] { rep().run_half(Half::outputs); });
}

void Session::backward() {
  check_pullback(program_.rep().info);
  if (!rep().waits_for_second_half()) fail("backward() follows a forward() of its own: what that left is used up, or a run() came between");
  guarded([&] { rep().run_half(Half::gradients); });
}

double Session::evaluate() {
  if (!program_.rep().has(Part::evaluation))
    fail("the program has no loss to evaluate: it minimizes nothing, or was compiled for inference");
  return guarded([&] { return rep().evaluate(0); });
}

void Session::step() {
  if (!program_.trains()) fail("the program has no training step: it minimizes nothing, or was compiled for inference");
  guarded([&] { rep().step(); });
}

TensorView Session::input(std::string_view name) const {
  return view(program_.rep().info, rep(), {SourceKind::input, index_of(program_.inputs(), name, "input")});
}

TensorView Session::param(std::string_view name) const {
  return view(program_.rep().info, rep(), {SourceKind::param, index_of(program_.params(), name, "param")});
}

TensorView Session::state(std::string_view name) const {
  return view(program_.rep().info, rep(), {SourceKind::state, index_of(program_.states(), name, "state")});
}

TensorView Session::output(std::string_view name) const {
  const uint32_t index = index_of(program_.outputs(), name, "output");
  if (!rep().has_run()) fail(fmt::format("output '{}' has no value before a run or step", name));
  if (rep().waits_for_second_half() && name.starts_with(kPulledBack)) fail(fmt::format("output '{}' has no value before backward()", name));
  if (rep().outputs_are_gone()) fail(fmt::format("evaluate() has overwritten output '{}' of the last step: read it before", name));
  return guarded([&] { return rep().runner().output(index); });
}

TensorView Session::gradient(std::string_view name) const {
  const uint32_t index = index_of(program_.params(), name, "param");
  if (!rep().has_stepped()) fail(fmt::format("the gradient of '{}' has no value before a step", name));
  if (rep().gradients_are_gone()) fail(fmt::format("evaluate() has overwritten the gradient of '{}': read it before", name));
  return guarded([&] { return rep().runner().gradient(index); });
}

TensorView Session::read(std::string_view name) const {
  if (find(program_.outputs(), name) && rep().has_run()) return output(name);
  const auto source = find_source(program_.rep().info, name);
  if (!source) return output(name);
  return view(program_.rep().info, rep(), *source);
}

double Session::loss() const {
  if (!rep().has_stepped()) fail("the loss has no value before a step");
  return rep().step_loss();
}

}  // namespace einc
