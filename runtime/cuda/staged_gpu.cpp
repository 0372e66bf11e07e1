// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/staged_gpu.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace einc {

int64_t staged_gpu_bytes(const MeshShape& mesh, const PipelinePlan& pipeline, int64_t processes, int64_t rank) {
  const StagedBytes bytes = staged_bytes(mesh, pipeline, processes, rank);
  return bytes.values + bytes.sent;  // what is received comes to where it is read
}

StagedGpu::StagedGpu(const StagedCode& code, std::shared_ptr<CudaMachine> machine)
    : StagedParts(code.whole, machine->engine), code_(code), machine_(std::move(machine)), marks_(marks_of(*machine_, most_exchanges())) {
  for (cuda::OwnedEvent* event : {&made_, &exchanged_}) EINC_CUDA(cuEventCreate, event->out(), cuda::kEventWithoutTiming);
  size_t inputs = 0;
  for (int64_t s = blocks_.first(); s < blocks_.last(); ++s) add_stage(static_cast<int>(s));
  for (Stage& s : stages_)
    for (const MicrobatchInput& input : s.plan.inputs) {
      s.input_at.push_back(inputs);
      inputs += input_bytes(s, input) * static_cast<size_t>(pipeline_.microbatches * s.engine.held());
    }
  if (inputs > 0) inputs_ = cuda::allocate_host(static_cast<int64_t>(inputs));
  losses_here_ = cuda::allocate_host(pipeline_.microbatches * static_cast<int64_t>(sizeof(uint64_t)));
  if (const int64_t sent = own_bytes().sent; sent > 0) outgoing_ = cuda::allocate(sent, "what stages send");
  if (!whole_.in_place) add_checks();
}

StagedGpu::~StagedGpu() { machine_->end(); }

// ---- memory

void StagedGpu::add_stage(int number) {
  const PipelineStage& of = pipeline_.stages[static_cast<size_t>(number)];
  const int64_t begin = number * blocks_.devices;
  Stage& s = stages_.emplace_back(of, number, MeshEngine(engine_, mesh_of_stage(engine_.mesh(), pipeline_), begin));
  const int64_t held = s.engine.held();
  const auto shared = std::span<const GpuMemory>(machine_->working)
                          .subspan(static_cast<size_t>(begin + s.engine.first() - engine_.first()), static_cast<size_t>(held));
  const auto values = [&](const StageRound& round, const CudaValues* sibling) {
    CudaValues made(round.plan, held, sibling);
    for (const EarlierPlace& earlier : round.earlier)
      for (int64_t d = 0; d < held; ++d) made.put(d, earlier.here, s.of(earlier.round, 0).at(d, earlier.there));
    return made;
  };
  DoneMarks* marks = marks_ ? &*marks_ : nullptr;
  for (int r = 0; r < static_cast<int>(of.rounds.size()); ++r) {
    const StageRound& round = of.rounds[static_cast<size_t>(r)];
    const auto& kernels = code_.kernels[static_cast<size_t>(number)][static_cast<size_t>(r)];
    if (!kernels) continue;
    const CudaMeshCode code{round.plan, code_.part.stages[static_cast<size_t>(number)][static_cast<size_t>(r)], *kernels,
                            code_.part.helpers, code_.helper_kernels};
    if (r != kRoundOfMicrobatches) {
      s.once.try_emplace(r, code, *machine_, s.engine, shared, values(round, nullptr), marks, pipeline_.axis);
      continue;
    }
    for (int64_t slot = 0; slot < ways_; ++slot) {
      CudaRun& run = s.slots.emplace_back(code, *machine_, s.engine, shared, values(round, slot == 0 ? nullptr : &s.slots.front().values()),
                                          marks, pipeline_.axis);
      for (int64_t d = 0; slot > 0 && of.kept > 0 && d < held; ++d)
        run.place_kept(d, of.kept, s.kept.emplace_back(cuda::allocate(of.kept, "what a stage keeps for a backward")).get());
    }
  }
}

const StagedGpu::Stage* StagedGpu::stage(int number) const {
  const auto at = std::ranges::find(stages_, number, &Stage::number);
  return at == stages_.end() ? nullptr : &*at;
}

cuda::DevicePointer StagedGpu::at(const StageValue& value, int64_t device, int64_t microbatch) const {
  const Stage* s = stage(value.stage);
  return s && s->engine.holds(device) ? s->of(value.round, slot_of(microbatch)).at(device - s->engine.first(), value.value) : 0;
}

size_t StagedGpu::input_bytes(const Stage& s, const MicrobatchInput& input) const {
  return static_cast<size_t>(tensor({s.number, kRoundOfMicrobatches, input.value}).bytes);
}

std::byte* StagedGpu::input_at(const Stage& s, size_t input, int64_t microbatch, int64_t d) const {
  return static_cast<std::byte*>(inputs_.get()) + s.input_at[input] +
         static_cast<size_t>(microbatch * s.engine.held() + d) * input_bytes(s, s.plan.inputs[input]);
}

// Of a step: between processes, and what collectives devices of a stage meet in.
size_t StagedGpu::most_exchanges() const {
  const auto microbatches = static_cast<size_t>(pipeline_.microbatches);
  size_t most = 2 * microbatches + 1;
  for (int64_t s = blocks_.first(); s < blocks_.last(); ++s)
    for (const StageRound& round : pipeline_.stages[static_cast<size_t>(s)].rounds)
      most += 1 + round.plan.collectives.size() * microbatches;
  return most;
}

// Updates that are not in place, gradients and, for its own sake, no loss: the host adds up those of all microbatches.
void StagedGpu::add_checks() {
  const auto add = [&](uint32_t value, uint32_t old) {
    const StageValue &v = pipeline_.values[value], &o = pipeline_.values[old];
    const DeviceTensor& looked_at = tensor(v);
    if (stage(v.stage) == nullptr || check_function(looked_at.dtype).empty() || check_of_.contains(value)) return;
    std::vector<CudaChecks::Check> each;
    for (int64_t device = 0; device < blocks_.devices; ++device)
      if (const cuda::DevicePointer next = at(v, device, last_microbatch()))
        each.push_back({next, at(o, device, last_microbatch()), looked_at.dtype, looked_at.bytes / bytes_of(looked_at.dtype)});
    check_of_[value] = checks_.add(std::move(each));
  };
  for (const MeshUpdate& update : whole_.updates) add(update.value, whole_.sources[update.source].value);
  for (const auto& [path, gradient] : whole_.gradients) add(gradient.value, gradient.value);
  checks_.allocate();
}

bool StagedGpu::holds_numbers(uint32_t value) const {
  if (whole_.loss == static_cast<int64_t>(value)) return std::isfinite(loss_);
  const auto check = check_of_.find(value);
  return check == check_of_.end() || checks_.is_number(check->second);
}

bool StagedGpu::may_store(uint32_t value, uint32_t) const {
  const auto check = check_of_.find(value);
  return check == check_of_.end() || checks_.may_store(check->second);
}

// ---- values

std::byte* StagedGpu::place(int64_t, uint32_t value) {
  placed_.resize(static_cast<size_t>(tensor(pipeline_.values[value]).bytes));
  return placed_.data();
}

void StagedGpu::written(int64_t d, uint32_t value) {
  machine_->write(at(pipeline_.values[value], of_stage(d), last_microbatch()), placed_);
}

const std::byte* StagedGpu::read(int64_t d, uint32_t value, std::vector<std::byte>& room) const {
  if (whole_.loss == static_cast<int64_t>(value)) return read_loss(room);
  const StageValue& v = pipeline_.values[value];
  room.resize(static_cast<size_t>(tensor(v).bytes));
  machine_->read(at(v, of_stage(d), last_microbatch()), room);
  return room.data();
}

void StagedGpu::copy(uint32_t value, uint32_t target) {
  const cuda::GpuScope scope(*machine_->gpu);
  const StageValue &from = pipeline_.values[value], &to = pipeline_.values[target];
  for (int64_t device = 0; device < blocks_.devices; ++device)
    if (const cuda::DevicePointer source = at(from, device, last_microbatch()); source != 0 && tensor(to).bytes > 0)
      EINC_CUDA(cuMemcpyDtoDAsync_v2, at(to, device, 0), source, static_cast<size_t>(tensor(to).bytes), compute());
}

std::string StagedGpu::numerics() {
  const cuda::GpuScope scope(*machine_->gpu);
  std::vector<CudaRun*> runs;
  each_run([&](Stage&, CudaRun& run) { runs.push_back(&run); });
  return machine_->numerics(runs);
}

}  // namespace einc
