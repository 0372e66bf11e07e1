// Programs run by the interpreter: the target that others are held to.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/api/compile_program.h"
#include "compiler/api/reference_fault.h"
#include "compiler/ir/interpret.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

TensorView view(const HostArray& array) { return {array.dtype, array.shape, array.bytes.data()}; }

class ReferenceRunner : public Runner {
 public:
  ReferenceRunner(const ProgramInfo& info, const ProgramGraphs& graphs) : info_(info), graphs_(graphs) {
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
    return trace_fault(*graphs_.parts[part], fault.node,
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
    return reference_fault(*graphs_.parts[part], result, values(SourceKind::param), values(SourceKind::state));
  }

  InterpretResult compute(Part part, uint64_t seed, uint64_t step, std::vector<NodeId> watch) const {
    InterpretOptions options;
    options.mode = run_mode(part);
    options.seed = seed;
    options.step = step;
    options.watch = std::move(watch);
    return interpret(*graphs_.parts[part], graphs_.dims, values(SourceKind::input), values(SourceKind::param), values(SourceKind::state),
                     options);
  }

  void keep(Part part, const InterpretResult& result) {
    store(SourceKind::param, result.params);
    store(SourceKind::state, result.states);
    if (part != Part::forward) loss_[part] = to_host(*result.loss);
    if (part == Part::evaluation || part == Part::accumulation) return;
    outputs_.clear();
    for (const auto& output : result.outputs) outputs_.push_back(to_host(output.second));
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
  const ProgramGraphs& graphs_;
  std::vector<void*> memory_[3];  // by kind
  std::vector<HostArray> outputs_;
  std::vector<std::optional<HostArray>> gradients_;  // by param
  PerPart<HostArray> loss_;
};

class ReferenceProgram : public ProgramRep {
 public:
  explicit ReferenceProgram(std::shared_ptr<const ProgramGraphs> graphs) : ProgramRep(program_info(*graphs)), graphs_(std::move(graphs)) {}

  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool>) const override { return std::make_unique<ReferenceRunner>(info, *graphs_); }
  int64_t planned_bytes(int) const override { return source_bytes(info); }  // and what the interpreter holds of one node after another
  bool has(Part part) const override { return graphs_->parts[part].has_value(); }

 private:
  std::shared_ptr<const ProgramGraphs> graphs_;
};

}  // namespace

std::shared_ptr<const ProgramRep> reference_program(std::shared_ptr<const ProgramGraphs> graphs) {
  return std::make_shared<ReferenceProgram>(std::move(graphs));
}

}  // namespace einc
