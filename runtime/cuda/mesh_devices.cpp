// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/mesh_devices.h"

#include <array>

namespace einc {

CudaDevices::CudaDevices(const CudaMeshCode& code, std::shared_ptr<CudaMachine> machine)
    : code_(code),
      machine_(std::move(machine)),
      marks_(marks_of(*machine_, code.plan.collectives.size())),
      run_(code, *machine_, machine_->engine, machine_->working, CudaValues(code.plan, machine_->engine.held()),
           marks_ ? &*marks_ : nullptr) {
  uint32_t launches = 0;
  for (size_t s = 0; s < code.plan.steps.size(); ++s) {
    const DeviceStep& step = code.plan.steps[s];
    if (step.act == DeviceAct::compute) launches = step.last;
    if (step.act == DeviceAct::agree) segments_.push_back({s, launches});
  }
  segments_.push_back({code.plan.steps.size(), launches});
  if (!code.plan.in_place) add_checks();
  for (uint32_t c = 0; c < code.plan.collectives.size(); ++c) {
    const MeshCollective& collective = code.plan.collectives[c];
    sent_.push_back({collective.kind, collective.mesh_axis, run_.sent_bytes(c)});
  }
}

CudaDevices::~CudaDevices() { machine_->end(); }

// The loss, gradients and updates; each value once.
void CudaDevices::add_checks() {
  const auto add = [&](uint32_t value, uint32_t old) {
    const DeviceTensor& tensor = code_.plan.values[value];
    if (check_function(tensor.dtype).empty() || check_of_.contains(value)) return;
    std::vector<CudaChecks::Check> each;
    for (int64_t d = 0; d < run_.held(); ++d)
      each.push_back({run_.at(d, value), run_.at(d, old), tensor.dtype, tensor.bytes / bytes_of(tensor.dtype)});
    check_of_[value] = checks_.add(std::move(each));
  };
  for (const MeshUpdate& update : code_.plan.updates) add(update.value, code_.plan.sources[update.source].value);
  for (const auto& [path, gradient] : code_.plan.gradients) add(gradient.value, gradient.value);
  if (code_.plan.loss >= 0) add(static_cast<uint32_t>(code_.plan.loss), static_cast<uint32_t>(code_.plan.loss));
  checks_.allocate();
}

bool CudaDevices::holds_numbers(uint32_t value) const {
  const auto check = check_of_.find(value);
  return check == check_of_.end() || checks_.is_number(check->second);
}

bool CudaDevices::may_store(uint32_t value, uint32_t) const {
  const auto check = check_of_.find(value);
  return check == check_of_.end() || checks_.may_store(check->second);
}

// ---- values

std::byte* CudaDevices::place(int64_t, uint32_t value) {
  placed_.resize(static_cast<size_t>(code_.plan.values[value].bytes));
  return placed_.data();
}

void CudaDevices::written(int64_t d, uint32_t value) { machine_->write(run_.at(d, value), placed_); }

const std::byte* CudaDevices::read(int64_t d, uint32_t value, std::vector<std::byte>& room) const {
  room.resize(static_cast<size_t>(code_.plan.values[value].bytes));
  machine_->read(run_.at(d, value), room);
  return room.data();
}

void CudaDevices::copy(uint32_t value, uint32_t target) {
  const cuda::GpuScope scope(*machine_->gpu);
  run_.enqueue_copy(value, target);
}

// ---- runs

NonFinite CudaDevices::run(uint64_t seed, uint64_t step) {
  const cuda::GpuScope scope(*machine_->gpu);
  run_.begin(seed, std::array{step});
  if (!segments_.front().work.ran()) machine_->agree_on_algorithms();
  size_t first = 0;
  for (Segment& segment : segments_) {
    segment.work.play(machine_->compute->get(), [&] { enqueue(first, segment); });
    machine_->wait(marks_);
    for (int64_t d = 0; d < run_.held(); ++d) {
      failing_ = machine_->engine.first() + d;
      run_.check(d);
    }
    if (&segment == &segments_.back()) break;
    const NonFinite fault = machine_->engine.agree(run_.fault(segment.launches));
    if (fault != NonFinite::nothing) return fault;
    first = segment.end + 1;
  }
  return NonFinite::nothing;
}

void CudaDevices::enqueue(size_t first, Segment& segment) {
  if (first == 0) {
    if (marks_) marks_->begin(machine_->compute->get());
    run_.enqueue_begin();
    run_.enqueue_snapshots();
  } else if (marks_) {  // what stands before may only be played again
    marks_->go_on(segment.marked);
  }
  run_.enqueue_steps(first, segment.end);
  if (marks_ && &segment != &segments_.back()) (&segment + 1)->marked = marks_->marked();
  if (segment.end < code_.plan.steps.size())
    run_.enqueue_agreement(segment.launches);
  else if (code_.plan.in_place)
    run_.enqueue_copies();
  else
    checks_.enqueue(code_.helpers, code_.helper_kernels, machine_->compute->get());
  run_.enqueue_end();
}

std::string CudaDevices::numerics() {
  const cuda::GpuScope scope(*machine_->gpu);
  return machine_->numerics(std::array{&run_});
}

}  // namespace einc
