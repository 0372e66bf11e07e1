// SPDX-License-Identifier: Apache-2.0
// Programs run by the interpreter: the target that others are held to. It takes the graph before any pass, so that none of them is its
// own judge.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/api/compile_program.h"
#include "compiler/api/reference_fault.h"
#include "compiler/ir/interpret.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

TensorView view(const HostArray& array) { return {array.dtype, array.shape, array.bytes.data()}; }

// What a program is to the interpreter.
struct Written {
  Bindings dims;
  PerPart<Graph> parts;
  // By part: those that the program does not keep, since passes find that no result needs them. Each run reads the initial values.
  PerPart<TensorMap> dead_states;
  bool training_mode;  // the forward's
};

Written write(const ProgramGraphs& graphs, const ProgramInfo& info) {
  Written written{graphs.dims, {}, {}, graphs.training_mode};
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!graphs.parts[part]) continue;
    written.parts[part] = written_part(graphs, part);
    written.dead_states[part] = initial_states(*written.parts[part], graphs.dims, 0);
    for (const TensorInfo& state : info.states) written.dead_states[part]->erase(Name(state.name));
  }
  return written;
}

class ReferenceRunner : public Runner {
 public:
  ReferenceRunner(const ProgramInfo& info, const Written& written) : info_(info), written_(written) {
    for (const SourceKind kind : kKinds) memory_[static_cast<size_t>(kind)].resize(sources_of(info, kind).size());
  }

  void bind(Source source, void* memory) override { memory_[static_cast<size_t>(source.kind)][source.index] = memory; }

  NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) override {
    const InterpretResult result = compute(part, seed, step, {});
    if (part != Part::forward) loss_[part] = to_host(*result.loss);
    const NonFinite fault = fault_of(part, result).means;
    if (fault == NonFinite::nothing) keep(part, result);
    return fault;
  }

  std::string find_fault(Part part, NonFinite, uint64_t seed, uint64_t step) override {
    const ReferenceFault fault = fault_of(part, compute(part, seed, step, {}));
    if (fault.means == NonFinite::nothing) return "";
    return trace_fault(*written_.parts[part], fault.node,
                       [&](std::vector<NodeId> watch) { return compute(part, seed, step, std::move(watch)); });
  }

  TensorView output(uint32_t index) const override { return view(outputs_[index]); }
  TensorView gradient(uint32_t param) const override {
    if (!gradients_[param])
      throw RuntimeFailure(FailureKind::data, fmt::format("'{}' has no gradient: it is not trained", info_.params[param].name));
    return view(*gradients_[param]);
  }
  TensorView loss(Part part) const override { return view(*loss_[part]); }

 private:
  static constexpr SourceKind kKinds[] = {SourceKind::input, SourceKind::param, SourceKind::state};

  ReferenceFault fault_of(Part part, const InterpretResult& result) const {
    return reference_fault(*written_.parts[part], result, values(SourceKind::param), states(part));
  }

  InterpretResult compute(Part part, uint64_t seed, uint64_t step, std::vector<NodeId> watch) const {
    InterpretOptions options;
    options.mode = part == Part::forward && written_.training_mode ? RunMode::training : run_mode(part);
    options.seed = seed;
    options.step = step;
    options.watch = std::move(watch);
    return interpret(*written_.parts[part], written_.dims, values(SourceKind::input), values(SourceKind::param), states(part), options);
  }

  void keep(Part part, const InterpretResult& result) {
    store(SourceKind::param, result.params);
    store(SourceKind::state, result.states);
    if (part == Part::evaluation || part == Part::accumulation) return;
    outputs_.clear();
    for (size_t i = 0; i < result.outputs.size(); ++i)
      outputs_.push_back(to_host(convert(result.outputs[i].second, info_.outputs[i].dtype)));
    if (part == Part::forward) return;
    gradients_.clear();
    for (const TensorInfo& param : info_.params) {
      const auto found = result.gradients.find(Name(param.name));
      gradients_.push_back(found == result.gradients.end() ? std::nullopt : std::optional(to_host(found->second)));
    }
  }

  TensorMap values(SourceKind kind) const {
    TensorMap map;
    for (uint32_t i = 0; i < sources_of(info_, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(info_, kind)[i];
      const auto* at = static_cast<const std::byte*>(memory_[static_cast<size_t>(kind)][i]);
      map[Name(tensor.name)] = from_host({tensor.dtype, tensor.shape, std::vector<std::byte>(at, at + tensor.bytes())});
    }
    return map;
  }

  TensorMap states(Part part) const {
    TensorMap held = values(SourceKind::state);
    held.insert(written_.dead_states[part]->begin(), written_.dead_states[part]->end());
    return held;
  }

  void store(SourceKind kind, const TensorMap& values) {
    for (uint32_t i = 0; i < sources_of(info_, kind).size(); ++i) {
      const TensorInfo& tensor = sources_of(info_, kind)[i];
      const auto found = values.find(Name(tensor.name));
      if (found == values.end()) continue;
      const HostArray array = to_host(convert(found->second, tensor.dtype));
      std::copy(array.bytes.begin(), array.bytes.end(), static_cast<std::byte*>(memory_[static_cast<size_t>(kind)][i]));
    }
  }

  const ProgramInfo& info_;
  const Written& written_;
  std::vector<void*> memory_[3];  // by kind
  std::vector<HostArray> outputs_;
  std::vector<std::optional<HostArray>> gradients_;  // by param
  PerPart<HostArray> loss_;
};

class ReferenceProgram : public ProgramRep {
 public:
  explicit ReferenceProgram(const ProgramGraphs& graphs) : ProgramRep(program_info(graphs)), written_(write(graphs, info)) {}

  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool>, int) const override {
    return std::make_unique<ReferenceRunner>(info, written_);
  }
  int64_t planned_bytes(int) const override { return source_bytes(info); }  // and what the interpreter holds of one node after another
  bool has(Part part) const override { return written_.parts[part].has_value(); }

 private:
  const Written written_;
};

}  // namespace

std::shared_ptr<const ProgramRep> reference_program(const ProgramGraphs& graphs) { return std::make_shared<ReferenceProgram>(graphs); }

}  // namespace einc
