// SPDX-License-Identifier: Apache-2.0
#include "runtime/mesh/staged_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/mesh/processes.h"
#include "runtime/mesh/tree_sum.h"

namespace einc {
namespace {

void copy_snapshots(HostRun& run) {
  for (const ValueCopy& snapshot : run.plan().snapshots) run.copy(snapshot.from, snapshot.to);
}

}  // namespace

int64_t staged_working_bytes(const PipelineStage& stage, int threads) {
  int64_t bytes = 0;
  for (const StageRound& round : stage.rounds) bytes = std::max(bytes, working_bytes(round.plan, threads));
  return bytes;
}

StagedDevices::StagedDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine)
    : StagedParts(plan, machine->engine), machine_(std::move(machine)) {
  for (int64_t s = blocks_.first(); s < blocks_.last(); ++s) add_stage(static_cast<int>(s));
  const StagedBytes bytes = own_bytes();
  outgoing_.resize(static_cast<size_t>(bytes.sent)), incoming_.resize(static_cast<size_t>(bytes.received));
}

// ---- memory

void StagedDevices::add_stage(int number) {
  const PipelineStage& of = pipeline_.stages[static_cast<size_t>(number)];
  const int64_t begin = number * blocks_.devices;
  Stage& s = stages_.emplace_back(of, number, MeshEngine(engine_, mesh_of_stage(engine_.mesh(), pipeline_), begin));
  const int64_t held = s.engine.held();
  const std::span<const std::shared_ptr<Mapping>> shared =
      std::span(machine_->working).subspan(static_cast<size_t>(full_device(s, 0) - engine_.first()), static_cast<size_t>(held));
  const auto memory_of_round = [&](const StageRound& round, const DeviceMemory* sibling) {
    DeviceMemory memory(round.plan, held, sibling);
    for (const EarlierPlace& earlier : round.earlier)
      for (int64_t d = 0; d < held; ++d) memory.put(d, earlier.here, s.of(earlier.round, 0).at(d, earlier.there));
    return memory;
  };
  for (int r = 0; r < static_cast<int>(of.rounds.size()); ++r) {
    const StageRound& round = of.rounds[static_cast<size_t>(r)];
    if (r != kRoundOfMicrobatches) {
      s.once.try_emplace(r, round.plan, *machine_, s.engine, shared, memory_of_round(round, nullptr));
      continue;
    }
    for (int64_t slot = 0; slot < ways_; ++slot) {
      HostRun& run = s.slots.emplace_back(round.plan, *machine_, s.engine, shared,
                                          memory_of_round(round, slot == 0 ? nullptr : &s.slots.front().memory()), pipeline_.axis);
      for (int64_t d = 0; slot > 0 && d < held; ++d)
        run.place_kept(d, of.kept, s.kept.emplace_back(std::make_unique<Mapping>(of.kept))->base());
    }
  }
}

StagedDevices::Stage* StagedDevices::stage(int number) {
  for (Stage& s : stages_)
    if (s.number == number) return &s;
  return nullptr;
}
const StagedDevices::Stage* StagedDevices::stage(int number) const { return const_cast<StagedDevices*>(this)->stage(number); }

std::byte* StagedDevices::at(const StageValue& value, int64_t device, int64_t microbatch) {
  Stage* s = stage(value.stage);
  return s && s->engine.holds(device) ? s->of(value.round, slot_of(microbatch)).at(device - s->engine.first(), value.value) : nullptr;
}

std::byte* StagedDevices::place(int64_t d, uint32_t value) { return at(pipeline_.values[value], of_stage(d), last_microbatch()); }

const std::byte* StagedDevices::read(int64_t d, uint32_t value, std::vector<std::byte>& room) const {
  if (whole_.loss == static_cast<int64_t>(value)) return read_loss(room);
  return const_cast<StagedDevices*>(this)->place(d, value);
}

void StagedDevices::copy(uint32_t value, uint32_t target) {
  const StageValue& from = pipeline_.values[value];
  const StageValue& to = pipeline_.values[target];
  for (int64_t device = 0; device < blocks_.devices; ++device)
    if (const std::byte* source = at(from, device, last_microbatch()))
      copy_all(*machine_->pool, source, tensor(to).bytes, at(to, device, 0));
}

bool StagedDevices::holds_numbers(uint32_t value) const {
  if (whole_.loss == static_cast<int64_t>(value)) return std::isfinite(loss_);
  const StageValue& v = pipeline_.values[value];
  const Stage* s = stage(v.stage);
  return s == nullptr || s->of(v.round, slot_of(last_microbatch())).holds_numbers(v.value);
}

bool StagedDevices::may_store(uint32_t value, uint32_t old) const {
  const StageValue& v = pipeline_.values[value];
  const StageValue& o = pipeline_.values[old];
  const Stage* s = stage(v.stage);
  if (s == nullptr) return true;
  const size_t last = slot_of(last_microbatch());
  return s->of(v.round, last).may_store(v.value, s->of(o.round, last), o.value);
}

// ---- a run

NonFinite StagedDevices::run(uint64_t seed, uint64_t step) {
  for (Stage& s : stages_) {
    for (HostRun& slot : s.slots) slot.begin();
    for (auto& [round, once] : s.once) once.begin();
  }
  sent_.clear();
  on_way_.reset();
  loss_ = 0, seed_ = seed, step_ = step;
  NonFinite fault = NonFinite::nothing;
  const auto begin = std::chrono::steady_clock::now();
  computing_ = std::unique_lock(machine_->lent.computing());
  machine_->queue.begin();
  try {
    carry_out_rounds();
    fault = agree_on_step();
    if (whole_.in_place && fault == NonFinite::nothing) store();
  } catch (...) {
    computing_.unlock();
    engine_.give_up();
    machine_->queue.abandon();
    throw;
  }
  computing_.unlock();
  for (const Stage& s : stages_) {
    for (const HostRun& slot : s.slots) sent_.insert(sent_.end(), slot.sent.begin(), slot.sent.end());
    for (const auto& [round, once] : s.once) sent_.insert(sent_.end(), once.sent.begin(), once.sent.end());
  }
  times_.all_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return fault;
}

void StagedDevices::run_round(int round) {
  for (Stage& s : stages_) {
    HostRun& run = s.once.at(round);
    copy_snapshots(run);
    run.run_steps(0, agreement_of(run.plan()), seed_, step_, computing_);
  }
}

// Behind all collectives that were started, as devices without stages agree (host_devices.cpp). Not in place, the loss alone is shared.
NonFinite StagedDevices::agree_on_step() {
  NonFinite fault = NonFinite::nothing;
  const uint32_t number = machine_->queue.start([&] {
    share_loss();
    if (whole_.in_place) fault = agree();
  });
  machine_->queue.wait(number, computing_);
  return fault;
}

NonFinite StagedDevices::fault_here() {
  NonFinite fault = NonFinite::nothing;
  for (const Stage& s : stages_) fault = earlier(fault, s.once.at(last_round()).fault());
  return fault;
}

void StagedDevices::store() {
  for (Stage& s : stages_) {
    HostRun& run = s.once.at(last_round());
    run.run_steps(agreement_of(run.plan()) + 1, run.plan().steps.size(), seed_, step_, computing_);
    run.store_copies();
  }
}

void StagedDevices::run_segment(int number, const StageUnit& unit) {
  Stage& s = *stage(number);
  HostRun& run = s.slots[slot_of(unit.microbatch)];
  const bool forward = unit.is_forward();
  if (forward) cut_out(s, unit.microbatch);
  const size_t first = forward ? 0 : s.plan.backward, last = forward ? s.plan.backward : run.plan().steps.size();
  try {
    run.run_steps(first, last, seed_, step_ * static_cast<uint64_t>(pipeline_.microbatches) + static_cast<uint64_t>(unit.microbatch),
                  computing_);
  } catch (const FaultyElement&) {
    failing_ = s.number * blocks_.devices + run.working();
    throw;
  }
  if (forward && pipeline_.loss.stage == s.number && whole_.loss >= 0 && s.engine.first() == 0) {
    const DeviceTensor& loss = tensor(pipeline_.loss);
    loss_ += TensorView(loss.dtype, loss.shape, run.at(0, pipeline_.loss.value)).to_doubles().front();
  }
}

void StagedDevices::cut_out(Stage& s, int64_t microbatch) {
  HostRun& run = s.slots[slot_of(microbatch)];
  for (const MicrobatchInput& input : s.plan.inputs)
    for (int64_t d = 0; d < s.engine.held(); ++d)
      einc::cut_out(s.engine.mesh(), input, s.engine.first() + d, microbatch, run.plan().values[input.value].dtype, lent_[input.whole],
                    run.at(d, input.value));
}

// Sums lie where all slots have them.
void StagedDevices::begin_microbatches() {
  for (Stage& s : stages_) {
    for (HostRun& slot : s.slots) copy_snapshots(slot);
    for (const uint32_t sum : s.plan.sums)
      for (int64_t d = 0; d < s.engine.held(); ++d) {
        std::byte* memory = s.slots.front().at(d, sum);
        machine_->pool->run(tensor({s.number, kRoundOfMicrobatches, sum}).bytes,
                            [&](int, int64_t begin, int64_t end) { std::memset(memory + begin, 0, static_cast<size_t>(end - begin)); });
      }
  }
}

void StagedDevices::end_microbatches() {
  for (Stage& s : stages_)
    for (const uint32_t sum : s.plan.means)
      for (int64_t d = 0; d < s.engine.held(); ++d) {
        const DeviceTensor& of = tensor({s.number, kRoundOfMicrobatches, sum});
        scale_all(*machine_->pool, of.dtype, of.bytes / bytes_of(of.dtype), 1.0 / static_cast<double>(pipeline_.microbatches),
                  s.slots.front().at(d, sum));
      }
}

// ---- between stages

bool StagedDevices::move_here(const StageMovement& m, int64_t device) {
  const std::byte* from = at(m.transfer->from, device, m.microbatch);
  std::byte* to = at(m.transfer->to, device, m.microbatch);
  if (!from || !to) return false;
  std::memcpy(to, from, static_cast<size_t>(tensor(m.transfer->to).bytes));
  return true;
}

void StagedDevices::wait_for_exchange() {
  if (on_way_) machine_->queue.wait(*on_way_, computing_);
  on_way_.reset();
}

void StagedDevices::exchange(const std::vector<StagePiece>& sent, const std::vector<StagePiece>& received) {
  const EincTransport* transport = engine_.transport();
  std::vector<int64_t> out_bytes(static_cast<size_t>(transport->size), 0), in_bytes = out_bytes;
  std::byte* to = outgoing_.data();
  for (const StagePiece& p : sent) {
    std::memcpy(to, at(p.value, p.device, p.microbatch), static_cast<size_t>(p.bytes));
    to += p.bytes, out_bytes[static_cast<size_t>(p.process)] += p.bytes;
  }
  for (const StagePiece& p : received) in_bytes[static_cast<size_t>(p.process)] += p.bytes;
  on_way_ = machine_->queue.start([this, transport, received, out_bytes = std::move(out_bytes), in_bytes = std::move(in_bytes)] {
    try {
      einc::exchange(*transport, outgoing_.data(), out_bytes, incoming_.data(), in_bytes);
    } catch (const LateProcess& late) {
      throw late.at("the exchange between stages");
    }
    const std::byte* from = incoming_.data();
    for (const StagePiece& p : received) {
      std::memcpy(at(p.value, p.device, p.microbatch), from, static_cast<size_t>(p.bytes));
      from += p.bytes;
    }
  });
}

}  // namespace einc
