#include "runtime/executor/session.h"

#include <cstring>

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

std::vector<uint32_t> gradient_norms(const ProgramInfo& info) {
  std::vector<uint32_t> norms;
  for (const TensorInfo& state : info.states)
    if (state.name == kLossScale) return norms;
  for (uint32_t i = 0; i < info.outputs.size(); ++i)
    if (info.outputs[i].name.starts_with(kGradientNorm)) norms.push_back(i);
  return norms;
}

SessionRep::SessionRep(const ProgramRep& program, int threads)
    : program_(program), pool_(std::make_shared<ThreadPool>(threads)), mapping_(source_bytes(program.info)), runner_(program.start(pool_)) {
  std::byte* at = mapping_.base();
  for (const SourceKind kind : kKinds)
    for (uint32_t i = 0; i < sources_of(program.info, kind).size(); ++i) {
      places_.push_back({at, at});
      runner_->bind({kind, i}, at);
      at += aligned(sources_of(program.info, kind)[i].bytes());
    }
}

SessionRep::~SessionRep() {
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
    }
  };
  fill(SourceKind::param, program_.info.param_inits);
  fill(SourceKind::state, program_.info.state_inits);
  seed_ = seed;
  runs_ = draws_ = 0;
  stepped_ = false;
}

void SessionRep::set(Source source, const void* values) {
  std::byte* own = places_[slot(source)].own;
  std::memmove(own, values, static_cast<size_t>(info(source).bytes()));
  bind(source, own, nullptr);
}

void SessionRep::bind(Source source, void* memory, DLManagedTensor* owner) {
  Place& place = places_[slot(source)];
  if (place.owner != owner) release(place.owner);
  place.memory = memory;
  place.owner = owner;
  runner_->bind(source, memory);
}

void SessionRep::run() {
  runner_->run(Part::forward, seed_, runs_);
  ++runs_;
}

double SessionRep::evaluate(uint64_t draw) {
  runner_->run(Part::evaluation, seed_, draw);
  return runner_->loss(Part::evaluation).to_doubles().front();
}

void SessionRep::step() {
  runner_->run(Part::training, seed_, draws_);
  ++draws_;
  stepped_ = true;
}

NonFinite SessionRep::train(Part part) {
  const NonFinite fault = runner_->run_while_finite(part, seed_, draws_);
  if (fault != NonFinite::nothing) return fault;
  ++draws_;
  stepped_ = stepped_ || part == Part::training;
  return fault;
}

}  // namespace einc
