// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/session.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/failure.h"
#include "runtime/base/pullback_names.h"
#include "runtime/base/training_names.h"
#include "runtime/executor/dlpack.h"
#include "runtime/executor/initialize.h"

namespace einc {
namespace {

constexpr SourceKind kKinds[] = {SourceKind::input, SourceKind::param, SourceKind::state};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

int64_t source_bytes(const ProgramInfo& info) {
  int64_t bytes = 0;
  for (const SourceKind kind : kKinds)
    for (const TensorInfo& tensor : sources_of(info, kind))
      if (__builtin_add_overflow(bytes, aligned(tensor.bytes()), &bytes)) return INT64_MAX;
  return bytes;
}

std::string describe(NonFinite fault, const std::string& loss_name, double loss) {
  const std::string finite = loss_name.empty() ? "" : fmt::format("{} is {:.6g}, but ", loss_name, loss);
  switch (fault) {
    case NonFinite::nothing:
      return "";
    case NonFinite::loss:
      return fmt::format("{} is {}", loss_name, std::isnan(loss) ? "nan" : loss > 0 ? "inf" : "-inf");
    case NonFinite::gradient:
      return finite + "a gradient is not finite";
    case NonFinite::state:
      return finite + "a param or state would take a value that is not finite";
  }
  return "";
}

SessionRep::SessionRep(const ProgramRep& program, int threads, int device, const ThreadTeam& team)
    : program_(program),
      pool_(std::make_shared<ThreadPool>(threads, team)),
      mapping_(source_bytes(program.info)),
      runner_(program.start(pool_, device)) {
  std::byte* at = mapping_.base();
  for (const SourceKind kind : kKinds)
    for (uint32_t i = 0; i < sources_of(program.info, kind).size(); ++i) {
      places_.push_back({at, at});
      runner_->bind({kind, i}, at);
      at += aligned(sources_of(program.info, kind)[i].bytes());
    }
  shared_.assign(places_.size(), false);
  output_places_.assign(program.info.outputs.size(), nullptr);
}

SessionRep::~SessionRep() {
  for (const SourceKind kind : kKinds)
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i)
      if (const Place& place = places_[slot({kind, i})]; place.memory == place.own) runner_->abandon({kind, i});
  runner_.reset();  // while all memory that is bound is there
  for (const Place& place : places_) release(place.owner);
}

size_t SessionRep::slot(Source source) const {
  size_t before = 0;
  for (const SourceKind kind : kKinds)
    if (kind < source.kind) before += sources_of(program_.info, kind).size();
  return before + source.index;
}

void SessionRep::initialize(uint64_t seed) {
  const auto fill = [&](SourceKind kind, const std::vector<Initializer>& inits) {
    for (uint32_t i = 0; i < inits.size(); ++i) {
      const TensorInfo& tensor = info({kind, i});
      einc::initialize(*pool_, inits[i].kind, inits[i].arguments, seed, tensor.name, tensor.dtype, tensor.count(),
                       static_cast<std::byte*>(places_[slot({kind, i})].memory));
      runner_->written({kind, i});
      release_own({kind, i});
    }
  };
  fill(SourceKind::param, program_.info.param_inits);
  fill(SourceKind::state, program_.info.state_inits);
  seed_ = seed;
  runs_ = draws_ = 0;
  ran_ = false;
  waits_for_second_half_ = false;
  stepped_ = false;
}

void SessionRep::set(Source source, const void* values) {
  std::byte* own = places_[slot(source)].own;
  std::memmove(own, values, static_cast<size_t>(info(source).bytes()));
  place_at(source, {own, own});
  runner_->written(source);
  release_own(source);
}

// Inputs come anew for each run.
void SessionRep::release_own(Source source) const {
  const Place& place = places_[slot(source)];
  if (source.kind != SourceKind::input && place.memory == place.own && !shared_[slot(source)]) runner_->release(source);
}

void SessionRep::bind(Source source, void* memory, DLManagedTensor* owner) {
  place_at(source, {places_[slot(source)].own, memory, Holder::caller, owner});
}

void SessionRep::bind_output(uint32_t index, void* memory) {
  output_places_[index] = memory;
  runner_->bind_output(index, memory);
}

void SessionRep::hand_over_outputs() {
  for (uint32_t i = 0; i < output_places_.size(); ++i) {
    const bool later = waits_for_second_half_ && program_.info.outputs[i].name.starts_with(kPulledBack);
    if (output_places_[i] == nullptr || later) continue;
    const TensorView made = runner_->output(i);
    if (made.data() != output_places_[i]) std::memcpy(output_places_[i], made.data(), static_cast<size_t>(made.bytes()));
  }
}

void SessionRep::share(Source source, SessionRep& other, Source theirs) {
  const Place& there = other.places_[other.slot(theirs)];
  other.runner_->fetch(theirs);
  shared_[slot(source)] = other.shared_[other.slot(theirs)] = true;
  place_at(source, {places_[slot(source)].own, there.memory, there.holder});
}

void SessionRep::lend(Runner& runner) const {
  for (const SourceKind kind : kKinds)
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) {
      runner_->fetch({kind, i});
      runner.bind({kind, i}, places_[slot({kind, i})].memory);
    }
}

void SessionRep::place_at(Source source, Place place) {
  Place& held = places_[slot(source)];
  DLManagedTensor* before = std::exchange(held, place).owner;
  runner_->bind(source, place.memory);
  if (before != place.owner) release(before);
}

const void* SessionRep::memory(Source source) const {
  runner_->fetch(source);
  return places_[slot(source)].memory;
}

void SessionRep::fetch_all() const {
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) runner_->fetch({kind, i});
}

void SessionRep::pass_all() const {
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) {
      runner_->fetch({kind, i});
      release_own({kind, i});
    }
}

void SessionRep::release_all() const {
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) release_own({kind, i});
}

template <class Visit>
void SessionRep::each_of_caller(Visit visit) {
  for (const SourceKind kind : kKinds)
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i)
      if (places_[slot({kind, i})].holder == Holder::caller) visit(Source{kind, i});
}

void SessionRep::before_run() {
  each_of_caller([&](Source source) { runner_->written(source); });
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i)
      if (shared_[slot({kind, i})]) runner_->forget({kind, i});
}

void SessionRep::after_run() {
  each_of_caller([&](Source source) { runner_->fetch(source); });
}

void SessionRep::run() {
  waits_for_second_half_ = false;
  before_run();
  const NonFinite fault = runner_->run_while_finite(Part::forward, seed_, runs_);
  after_run();
  if (fault != NonFinite::nothing) refuse(Part::forward, fault);
  ++runs_;
  ran_ = true;
  last_was_step_ = false;
  hand_over_outputs();
}

void SessionRep::run_half(Half half) {
  waits_for_second_half_ = false;
  if (half == Half::outputs) half_seed_ = seed_, half_run_ = runs_++;
  before_run();
  runner_->run_half(half, half_seed_, half_run_);
  after_run();
  waits_for_second_half_ = half == Half::outputs;
  ran_ = true;
  last_was_step_ = false;
  hand_over_outputs();
}

double SessionRep::evaluate(uint64_t draw) {
  before_run();
  step_stands_ = false;
  runner_->run_while_finite(Part::evaluation, seed_, draw);
  after_run();
  return runner_->loss(Part::evaluation).to_doubles().front();
}

void SessionRep::step() {
  if (const NonFinite fault = train(Part::training); fault != NonFinite::nothing) refuse(Part::training, fault);
}

void SessionRep::refuse(Part part, NonFinite fault) {
  const std::string where = find_fault(part, fault);
  const std::string what =
      part == Part::forward ? describe(fault, "", 0) : describe(fault, "the loss", runner_->loss(part).to_doubles().front());
  throw RuntimeFailure(FailureKind::numeric, what + (where.empty() ? "" : ": " + where));
}

void SessionRep::clear_sums() {
  for (uint32_t i = 0; i < program_.info.states.size(); ++i) {
    if (!program_.info.states[i].name.ends_with(kGradientSum)) continue;
    const Source source{SourceKind::state, i};
    runner_->fetch(source);
    std::memset(places_[slot(source)].memory, 0, static_cast<size_t>(program_.info.states[i].bytes()));
    runner_->written(source);
  }
}

void SessionRep::end_step() {
  stepped_ = step_stands_ = last_was_step_ = true;
  hand_over_outputs();
  step_loss_ = runner_->loss(Part::training).to_doubles().front();
}

NonFinite SessionRep::train(Part part) {
  before_run();
  step_stands_ = false;
  const NonFinite fault = runner_->run_while_finite(part, seed_, draws_);
  if (fault != NonFinite::nothing) clear_sums();
  after_run();
  if (fault != NonFinite::nothing) return fault;
  ++draws_;
  if (part == Part::training) end_step();
  return fault;
}

std::string SessionRep::find_fault(Part part, NonFinite what) {
  before_run();
  return runner_->find_fault(part, what, seed_, draws_);
}

}  // namespace einc
