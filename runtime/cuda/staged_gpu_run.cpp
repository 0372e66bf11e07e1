// SPDX-License-Identifier: Apache-2.0
// A step: in place one captured part up to where all stages agree, and one that stores.
#include <einc/tensor.h>

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/cuda/staged_gpu.h"

namespace einc {

void StagedGpu::cut_out() {
  for (const Stage& s : stages_)
    for (size_t i = 0; i < s.plan.inputs.size(); ++i) {
      const MicrobatchInput& input = s.plan.inputs[i];
      const DType dtype = tensor({s.number, kRoundOfMicrobatches, input.value}).dtype;
      for (int64_t m = 0; m < pipeline_.microbatches; ++m)
        for (int64_t d = 0; d < s.engine.held(); ++d)
          einc::cut_out(s.engine.mesh(), input, s.engine.first() + d, m, dtype, lent_[input.whole], input_at(s, i, m, d));
    }
}

NonFinite StagedGpu::run(uint64_t seed, uint64_t step) {
  const cuda::GpuScope scope(*machine_->gpu);
  for (Stage& s : stages_) {
    for (size_t slot = 0; slot < s.slots.size(); ++slot) {
      std::vector<uint64_t> steps;
      for (int64_t m = static_cast<int64_t>(slot); m < pipeline_.microbatches; m += ways_)
        steps.push_back(step * static_cast<uint64_t>(pipeline_.microbatches) + static_cast<uint64_t>(m));
      s.slots[slot].begin(seed, steps);
    }
    for (auto& [round, once] : s.once) once.begin(seed, std::array{step});
  }
  if (!step_.ran()) machine_->agree_on_algorithms();
  cut_out();
  step_.play(compute(), [this] { enqueue(); });
  check_runs();
  add_losses();
  share_loss();
  if (!whole_.in_place) return NonFinite::nothing;
  if (const NonFinite fault = agree(); fault != NonFinite::nothing) return fault;
  stores_.play(compute(), [this] { enqueue_stores(); });
  check_runs();
  return NonFinite::nothing;
}

void StagedGpu::check_runs() {
  machine_->wait(marks_);
  each_run([&](Stage& s, CudaRun& run) {
    for (int64_t d = 0; d < run.held(); ++d) {
      failing_ = s.number * blocks_.devices + s.engine.first() + d;
      run.check(d);
    }
  });
}

void StagedGpu::enqueue() {
  sent_.clear();
  on_way_ = false;
  if (marks_) marks_->begin(compute());
  carry_out_rounds();
  checks_.enqueue(code_.part.helpers, code_.helper_kernels, compute());
  marked_ = marks_ ? marks_->marked() : 0;
  sent_before_ = sent_.size();
}

void StagedGpu::enqueue_steps(CudaRun& run, size_t first, size_t last) {
  run.enqueue_steps(first, last);
  for (size_t i = first; i < last; ++i)
    if (const DeviceStep& step = run.plan().steps[i]; step.act == DeviceAct::start)
      if (const MeshCollective& c = run.plan().collectives[step.index]; c.mesh_axis != pipeline_.axis)
        sent_.push_back({c.kind, c.mesh_axis, run.sent_bytes(step.index)});
}

void StagedGpu::run_round(int round) {
  for (Stage& s : stages_) {
    const auto once = s.once.find(round);
    if (once == s.once.end()) continue;
    CudaRun& run = once->second;
    const size_t agreement = agreement_of(run.plan());
    run.enqueue_begin();
    run.enqueue_snapshots();
    enqueue_steps(run, 0, agreement);
    if (agreement < run.plan().steps.size()) run.enqueue_agreement(launches_before(run.plan(), agreement));
    run.enqueue_end();
  }
}

NonFinite StagedGpu::fault_here() {
  NonFinite fault = NonFinite::nothing;
  for (Stage& s : stages_)
    if (const auto last = s.once.find(last_round()); last != s.once.end())
      fault = earlier(fault, last->second.fault(launches_before(last->second.plan(), agreement_of(last->second.plan()))));
  return fault;
}

// Captured apart: a first step that ends in a fault comes here only with the next one.
void StagedGpu::enqueue_stores() {
  sent_.resize(sent_before_);
  if (marks_) marks_->go_on(marked_);
  for (Stage& s : stages_) {
    const auto last = s.once.find(last_round());
    if (last == s.once.end()) continue;
    CudaRun& run = last->second;
    enqueue_steps(run, std::min(agreement_of(run.plan()) + 1, run.plan().steps.size()), run.plan().steps.size());
    run.enqueue_copies();
    run.enqueue_end();
  }
}

void StagedGpu::begin_microbatches() {
  for (Stage& s : stages_) {
    for (CudaRun& slot : s.slots) slot.enqueue_snapshots();
    for (const uint32_t sum : s.plan.sums)
      for (int64_t d = 0; d < s.engine.held(); ++d)
        EINC_CUDA(cuMemsetD8Async, s.slots.front().at(d, sum), 0, static_cast<size_t>(tensor({s.number, kRoundOfMicrobatches, sum}).bytes),
                  compute());
  }
}

void StagedGpu::end_microbatches() {
  for (Stage& s : stages_)
    for (const uint32_t sum : s.plan.means)
      for (int64_t d = 0; d < s.engine.held(); ++d) {
        const DeviceTensor& of = tensor({s.number, kRoundOfMicrobatches, sum});
        const cuda::Kernel kernel = helper(code_.part.helpers, code_.helper_kernels, scale_function(of.dtype));
        uint64_t memory = s.slots.front().at(d, sum);
        int64_t count = of.bytes / bytes_of(of.dtype);
        double factor = 1.0 / static_cast<double>(pipeline_.microbatches);
        void* arguments[] = {&memory, &count, &factor};
        EINC_CUDA(cuLaunchKernel, kernel, helper_blocks(count), 1, 1, kHelperThreads, 1, 1, 0, compute(), arguments, nullptr);
      }
}

void StagedGpu::run_segment(int number, const StageUnit& unit) {
  Stage& s = *std::ranges::find(stages_, number, &Stage::number);
  if (s.slots.empty()) return;
  CudaRun& run = s.slots[slot_of(unit.microbatch)];
  const auto turn = static_cast<size_t>(unit.microbatch / ways_);  // of the slot
  if (unit.is_forward()) {
    run.enqueue_begin(turn);
    for (size_t i = 0; i < s.plan.inputs.size(); ++i)
      for (int64_t d = 0; d < s.engine.held(); ++d)
        EINC_CUDA(cuMemcpyHtoDAsync_v2, run.at(d, s.plan.inputs[i].value), input_at(s, i, unit.microbatch, d),
                  input_bytes(s, s.plan.inputs[i]), compute());
  }
  const size_t first = unit.is_forward() ? 0 : s.plan.backward, last = unit.is_forward() ? s.plan.backward : run.plan().steps.size();
  enqueue_steps(run, first, last);
  if (unit.is_forward() && pipeline_.loss.stage == s.number && whole_.loss >= 0 && s.engine.first() == 0)
    EINC_CUDA(cuMemcpyDtoHAsync_v2, static_cast<std::byte*>(losses_here_.get()) + unit.microbatch * static_cast<int64_t>(sizeof(uint64_t)),
              run.at(0, pipeline_.loss.value), static_cast<size_t>(tensor(pipeline_.loss).bytes), compute());
  if (!unit.is_forward()) run.enqueue_end(turn);
}

// ---- between stages

bool StagedGpu::move_here(const StageMovement& m, int64_t device) {
  const cuda::DevicePointer from = at(m.transfer->from, device, m.microbatch), to = at(m.transfer->to, device, m.microbatch);
  if (from == 0 || to == 0) return false;
  EINC_CUDA(cuMemcpyDtoDAsync_v2, to, from, static_cast<size_t>(tensor(m.transfer->to).bytes), compute());
  return true;
}

void StagedGpu::wait_for_exchange() {
  if (std::exchange(on_way_, false)) EINC_CUDA(cuStreamWaitEvent, compute(), exchanged_.get(), 0);
}

// What is sent is packed by the launches' stream, which goes on to write where it lay; what is received comes to where it is read, for
// which nothing else is there by then.
void StagedGpu::exchange(const std::vector<StagePiece>& sent, const std::vector<StagePiece>& received) {
  std::vector<cuda::NcclTeam::Message> sends, receives;
  cuda::DevicePointer to = outgoing_.get();
  for (const StagePiece& p : sent) {
    EINC_CUDA(cuMemcpyDtoDAsync_v2, to, at(p.value, p.device, p.microbatch), static_cast<size_t>(p.bytes), compute());
    sends.push_back({to, p.bytes, static_cast<int>(p.process)});
    to += static_cast<uint64_t>(p.bytes);
  }
  for (const StagePiece& p : received) receives.push_back({at(p.value, p.device, p.microbatch), p.bytes, static_cast<int>(p.process)});
  const cuda::Stream stream = machine_->collectives.get();
  EINC_CUDA(cuEventRecord, made_.get(), compute());
  EINC_CUDA(cuStreamWaitEvent, stream, made_.get(), 0);
  machine_->team->move(sends, receives, stream);
  if (marks_) marks_->mark(stream, "the exchange between stages");
  EINC_CUDA(cuEventRecord, exchanged_.get(), stream);
  on_way_ = true;
}

void StagedGpu::add_losses() {
  loss_ = 0;
  const Stage* s = stage(pipeline_.loss.stage);
  if (whole_.loss < 0 || s == nullptr || s->engine.first() != 0) return;
  const DeviceTensor& loss = tensor(pipeline_.loss);
  const auto* at = static_cast<const std::byte*>(losses_here_.get());
  for (int64_t m = 0; m < pipeline_.microbatches; ++m, at += sizeof(uint64_t))
    loss_ += TensorView(loss.dtype, loss.shape, at).to_doubles().front();
}

}  // namespace einc
