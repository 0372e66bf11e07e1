// SPDX-License-Identifier: Apache-2.0
#include "runtime/mesh/staged_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
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

void run_all_steps(HostRun& run, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing) {
  copy_snapshots(run);
  run.run_steps(0, run.plan().steps.size(), seed, step, computing);
}

}  // namespace

int64_t staged_working_bytes(const PipelineStage& stage, int threads) {
  int64_t bytes = 0;
  for (const StageRound& round : stage.rounds) bytes = std::max(bytes, working_bytes(round.plan, threads));
  return bytes;
}

StagedDevices::StagedDevices(const MeshPlan& plan, std::shared_ptr<HostMachine> machine)
    : whole_(plan),
      pipeline_(*plan.pipeline),
      machine_(std::move(machine)),
      blocks_(blocks_of(machine_->engine.mesh(), pipeline_, machine_->engine.mesh().devices() / machine_->engine.held(),
                        machine_->engine.first() / machine_->engine.held())),
      ways_(blocks_.held(pipeline_.microbatches)),
      lent_(plan.values.size(), nullptr) {
  for (int64_t s = blocks_.first(); s < blocks_.last(); ++s) add_stage(static_cast<int>(s));
  const int64_t held = machine_->engine.held();
  const StagedBytes bytes =
      staged_bytes(machine_->engine.mesh(), pipeline_, machine_->engine.mesh().devices() / held, machine_->engine.first() / held);
  outgoing_.resize(static_cast<size_t>(bytes.sent)), incoming_.resize(static_cast<size_t>(bytes.received));
}

// ---- memory

void StagedDevices::add_stage(int number) {
  const PipelineStage& of = pipeline_.stages[static_cast<size_t>(number)];
  const int64_t begin = number * blocks_.devices;
  Stage& s = stages_.emplace_back(of, number, MeshEngine(machine_->engine, mesh_of_stage(machine_->engine.mesh(), pipeline_), begin));
  const int64_t held = s.engine.held();
  const std::span<const std::shared_ptr<Mapping>> shared =
      std::span(machine_->working).subspan(static_cast<size_t>(full_device(s, 0) - machine_->engine.first()), static_cast<size_t>(held));
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

std::byte* StagedDevices::place(int64_t d, uint32_t value) {
  return at(pipeline_.values[value], (machine_->engine.first() + d) % blocks_.devices, pipeline_.microbatches - 1);
}

bool StagedDevices::lend(uint32_t value, const std::byte* whole) {
  for (const PipelineStage& s : pipeline_.stages)
    for (const MicrobatchInput& input : s.inputs)
      if (input.whole == value) return lent_[value] = whole, true;
  return false;
}

const std::byte* StagedDevices::read(int64_t d, uint32_t value, std::vector<std::byte>& room) const {
  if (whole_.loss == static_cast<int64_t>(value)) {
    room.resize(sizeof loss_);
    std::memcpy(room.data(), &loss_, sizeof loss_);
    return room.data();
  }
  return const_cast<StagedDevices*>(this)->place(d, value);
}

void StagedDevices::copy(uint32_t value, uint32_t target) {
  const StageValue& from = pipeline_.values[value];
  const StageValue& to = pipeline_.values[target];
  for (int64_t device = 0; device < blocks_.devices; ++device)
    if (const std::byte* source = at(from, device, pipeline_.microbatches - 1))
      copy_all(*machine_->pool, source, tensor(to).bytes, at(to, device, 0));
}

bool StagedDevices::holds_numbers(uint32_t value) const {
  if (whole_.loss == static_cast<int64_t>(value)) return std::isfinite(loss_);
  const StageValue& v = pipeline_.values[value];
  const Stage* s = stage(v.stage);
  return s == nullptr || s->of(v.round, slot_of(pipeline_.microbatches - 1)).holds_numbers(v.value);
}

bool StagedDevices::may_store(uint32_t value, uint32_t old) const {
  const StageValue& v = pipeline_.values[value];
  const StageValue& o = pipeline_.values[old];
  const Stage* s = stage(v.stage);
  if (s == nullptr) return true;
  const size_t last = slot_of(pipeline_.microbatches - 1);
  return s->of(v.round, last).may_store(v.value, s->of(o.round, last), o.value);
}

// ---- a run

void StagedDevices::run(uint64_t seed, uint64_t step) {
  for (Stage& s : stages_) {
    for (HostRun& slot : s.slots) slot.begin();
    for (auto& [round, once] : s.once) once.begin();
  }
  sent_.clear();
  on_way_.reset();
  loss_ = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock computing(machine_->lent.computing());
  machine_->queue.begin();
  try {
    for (size_t round = 0; round < pipeline_.behind.size(); ++round) {
      if (round == kRoundOfMicrobatches)
        run_microbatches(seed, step, computing);
      else
        for (Stage& s : stages_) run_all_steps(s.once.at(static_cast<int>(round)), seed, step, computing);
      hand_over(round, computing);
    }
    share_loss();
  } catch (...) {
    computing.unlock();
    machine_->engine.give_up();
    machine_->queue.abandon();
    throw;
  }
  for (const Stage& s : stages_) {
    for (const HostRun& slot : s.slots) sent_.insert(sent_.end(), slot.sent.begin(), slot.sent.end());
    for (const auto& [round, once] : s.once) sent_.insert(sent_.end(), once.sent.begin(), once.sent.end());
  }
  times_.all_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void StagedDevices::run_microbatches(uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing) {
  for (Stage& s : stages_)
    for (HostRun& slot : s.slots) copy_snapshots(slot);
  for (Stage& s : stages_) clear_sums(s);
  const std::vector<StageUnit> units = stage_units(pipeline_.microbatches, ways_);
  exchange_with_others({}, movements_of(pipeline_, units.front()), computing);
  for (size_t u = 0; u < units.size(); ++u) {
    if (comes_from_others(movements_of(pipeline_, units[u]))) wait_for_exchange(computing);
    compute(units[u], seed, step, computing);
    exchange_with_others(movements_of(pipeline_, units[u]),
                         u + 1 < units.size() ? movements_of(pipeline_, units[u + 1]) : std::vector<StageMovement>{}, computing);
  }
  wait_for_exchange(computing);
  for (Stage& s : stages_) take_means(s);
}

void StagedDevices::compute(const StageUnit& unit, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing) {
  const auto each = [&](Stage& s) {
    if (unit.is_forward()) cut_out(s, unit.microbatch);
    run_segment(s, unit, seed, step, computing);
    for (const StageMovement& m : movements_of(pipeline_, unit))
      if (m.transfer->from.stage == s.number) move_here(m);
  };
  if (unit.is_forward())
    for (Stage& s : stages_) each(s);
  else
    for (size_t i = stages_.size(); i-- > 0;) each(stages_[i]);
}

void StagedDevices::run_segment(Stage& s, const StageUnit& unit, uint64_t seed, uint64_t step, std::unique_lock<std::mutex>& computing) {
  HostRun& run = s.slots[slot_of(unit.microbatch)];
  const bool forward = unit.is_forward();
  const size_t first = forward ? 0 : s.plan.backward, last = forward ? s.plan.backward : run.plan().steps.size();
  try {
    run.run_steps(first, last, seed, step * static_cast<uint64_t>(pipeline_.microbatches) + static_cast<uint64_t>(unit.microbatch),
                  computing);
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
void StagedDevices::clear_sums(Stage& s) {
  HostRun& run = s.slots.front();
  for (const uint32_t sum : s.plan.sums)
    for (int64_t d = 0; d < s.engine.held(); ++d) {
      std::byte* memory = run.at(d, sum);
      machine_->pool->run(tensor({s.number, kRoundOfMicrobatches, sum}).bytes,
                          [&](int, int64_t begin, int64_t end) { std::memset(memory + begin, 0, static_cast<size_t>(end - begin)); });
    }
}

// As --accumulate does.
void StagedDevices::take_means(Stage& s) {
  for (const uint32_t sum : s.plan.sums)
    for (int64_t d = 0; d < s.engine.held(); ++d) {
      const DeviceTensor& tensor = this->tensor({s.number, kRoundOfMicrobatches, sum});
      scale_all(*machine_->pool, tensor.dtype, tensor.bytes / bytes_of(tensor.dtype), 1.0 / static_cast<double>(pipeline_.microbatches),
                s.slots.front().at(d, sum));
    }
}

// ---- between stages

// Between stages of this process.
void StagedDevices::move_here(const StageMovement& m) {
  for (int64_t device = 0; device < blocks_.devices; ++device) {
    const std::byte* from = at(m.transfer->from, device, m.microbatch);
    std::byte* to = at(m.transfer->to, device, m.microbatch);
    if (!from || !to) continue;
    std::memcpy(to, from, static_cast<size_t>(tensor(m.transfer->to).bytes));
    sent_.push_back({CollectiveKind::shift, pipeline_.axis, tensor(m.transfer->to).bytes});
  }
}

bool StagedDevices::comes_from_others(const std::vector<StageMovement>& list) const {
  return std::ranges::any_of(
      list, [&](const StageMovement& m) { return stage(m.transfer->to.stage) != nullptr && stage(m.transfer->from.stage) == nullptr; });
}

void StagedDevices::wait_for_exchange(std::unique_lock<std::mutex>& computing) {
  if (on_way_) machine_->queue.wait(*on_way_, computing);
  on_way_.reset();
}

void StagedDevices::exchange_with_others(const std::vector<StageMovement>& out, const std::vector<StageMovement>& in,
                                         std::unique_lock<std::mutex>& computing) {
  const EincTransport* transport = machine_->engine.transport();
  if (transport == nullptr || transport->size == 1) return;
  const auto process_of = [&](int64_t device) { return machine_->engine.process_of(device); };
  const std::vector<StagePiece> sent = pieces_of(pipeline_, blocks_, out, true, transport->rank, process_of);
  std::vector<StagePiece> received = pieces_of(pipeline_, blocks_, in, false, transport->rank, process_of);
  if (sent.empty() && received.empty()) return;
  wait_for_exchange(computing);
  std::vector<int64_t> out_bytes(static_cast<size_t>(transport->size), 0), in_bytes = out_bytes;
  std::byte* to = outgoing_.data();
  for (const StagePiece& p : sent) {
    std::memcpy(to, at(p.value, p.device, p.microbatch), static_cast<size_t>(p.bytes));
    to += p.bytes, out_bytes[static_cast<size_t>(p.process)] += p.bytes;
    sent_.push_back({CollectiveKind::shift, pipeline_.axis, p.bytes});
  }
  for (const StagePiece& p : received) in_bytes[static_cast<size_t>(p.process)] += p.bytes;
  on_way_ = machine_->queue.start(
      [this, transport, received = std::move(received), out_bytes = std::move(out_bytes), in_bytes = std::move(in_bytes)] {
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

// What other stages read of a round that is over.
void StagedDevices::hand_over(size_t round, std::unique_lock<std::mutex>& computing) {
  const std::vector<StageMovement> list = movements_behind(pipeline_, round);
  for (const StageMovement& m : list) move_here(m);
  exchange_with_others(list, list, computing);
  wait_for_exchange(computing);
}

// All processes tell it, and the one that has it knows.
void StagedDevices::share_loss() {
  loss_ /= static_cast<double>(pipeline_.microbatches);
  const EincTransport* transport = machine_->engine.transport();
  if (whole_.loss < 0 || transport == nullptr || transport->size == 1) return;
  const std::vector<uint64_t> all = numbers_of_all(*transport, std::bit_cast<uint64_t>(loss_));
  loss_ = std::bit_cast<double>(all[static_cast<size_t>(machine_->engine.process_of(pipeline_.loss.stage * blocks_.devices))]);
}

}  // namespace einc
