// SPDX-License-Identifier: Apache-2.0
// Nothing is stored before all processes agree that all is finite: here, or as a plan in place has devices do.
#include "runtime/mesh/mesh_runner.h"

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr SourceKind kSourceKinds[] = {SourceKind::input, SourceKind::param, SourceKind::state};

}  // namespace

MeshRunner::MeshRunner(const MeshProgram& program, std::shared_ptr<ThreadPool> pool)
    : program_(program), pool_(std::move(pool)), lent_(pool_), engine_(program.mesh(), lent_, program.transport()) {
  for (const SourceKind kind : kSourceKinds) whole_[static_cast<size_t>(kind)].resize(sources_of(program.info, kind).size());
  auto devices = program.devices(engine_, lent_, pool_);
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& plan = program.parts()[static_cast<Part>(p)])
      parts_[static_cast<Part>(p)].emplace(
          RunningPart{*plan, std::move(*devices[static_cast<Part>(p)]), std::vector<bool>(plan->sources.size(), false)});
}

// ---- runs

void MeshRunner::store(RunningPart& part) {
  const MeshPlan& plan = part.plan;
  for (const MeshUpdate& update : plan.updates) written(plan.sources[update.source].source);
  for (const MeshUpdate& update : plan.updates) {
    const MeshSource& target = plan.sources[update.source];
    if (update.value != target.value) part.devices->copy(update.value, target.value);
    whole(target.source).fresh = false;
    part.fresh[update.source] = true;
  }
  for (const MeshUpdate& update : plan.updates) {
    const MeshSource& target = plan.sources[update.source];
    if (whole(target.source).shared) fetch(target.source);
    empty(target.source);
  }
}

NonFinite MeshRunner::run_while_finite(Part which, uint64_t seed, uint64_t step) {
  RunningPart& part = *parts_[which];
  cut_out(part);
  NonFinite fault = NonFinite::nothing;
  try {
    fault = part.devices->run(seed, step);
  } catch (const FaultyElement& found) {
    refuse_element(found, part.devices->failing_device(), which, seed, step);
  }
  results_.clear();
  if (!part.plan.in_place) fault = engine_.agree(fault_of(part));
  if (fault != NonFinite::nothing) return fault;
  store(part);
  if (which != Part::evaluation) last_ = which;
  return NonFinite::nothing;
}

std::string MeshRunner::numerics(Part part) {
  cut_out(*parts_[part]);
  return parts_[part]->devices->numerics();
}

// ---- results

void MeshRunner::gather(const RunningPart& part, uint32_t value, const PartLayout& layout, const TensorInfo& tensor,
                        std::byte* whole) const {
  std::vector<std::vector<std::byte>> rooms(static_cast<size_t>(held()));
  std::vector<const std::byte*> read(rooms.size(), nullptr);
  const auto held_by = [&](int64_t device) {
    const auto d = static_cast<size_t>(device - engine_.first());
    if (read[d] == nullptr) read[d] = part.devices->read(static_cast<int64_t>(d), value, rooms[d]);
    return read[d];
  };
  engine_.gather(layout, tensor.shape, bytes_of(tensor.dtype), held_by, whole);
}

TensorView MeshRunner::put_together(Part part, const MeshResult& result, const TensorInfo& tensor) const {
  results_.emplace_back(static_cast<size_t>(tensor.bytes()));
  gather(*parts_[part], result.value, result.layout, tensor, results_.back().data());
  return {tensor.dtype, tensor.shape, results_.back().data()};
}

TensorView MeshRunner::output(uint32_t index) const {
  return put_together(last_, parts_[last_]->plan.outputs[index], program_.info.outputs[index]);
}

TensorView MeshRunner::gradient(uint32_t param) const {
  const TensorInfo& tensor = program_.info.params[param];
  for (const auto& [path, gradient] : parts_[Part::training]->plan.gradients)
    if (path == tensor.name) {
      TensorInfo as_made = tensor;
      as_made.dtype = parts_[Part::training]->plan.values[gradient.value].dtype;
      return put_together(Part::training, gradient, as_made);
    }
  throw RuntimeFailure(
      FailureKind::data,
      fmt::format("'{}' has no gradient in memory: it is not trained, or only parts of its sum over microbatches are made", tensor.name));
}

TensorView MeshRunner::loss(Part part) const {
  const MeshPlan& plan = parts_[part]->plan;
  const auto value = static_cast<uint32_t>(plan.loss);
  return {plan.values[value].dtype, plan.values[value].shape, parts_[part]->devices->read(0, value, loss_)};
}

}  // namespace einc
