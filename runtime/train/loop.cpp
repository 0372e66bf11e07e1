// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/loop.h"

#include <fmt/format.h>

#include <chrono>

namespace einc {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Trainer::Trainer(SessionRep& session, const TrainingSettings& settings, std::shared_ptr<const Batches> training,
                 std::shared_ptr<const Batches> validation, TrainingWatcher& watcher)
    : session_(session), settings_(settings), training_(std::move(training)), validation_(std::move(validation)), watcher_(watcher) {}

Trainer::~Trainer() {
  for (uint32_t i = 0; i < session_.program().inputs.size(); ++i) session_.unbind({SourceKind::input, i});
}

TrainingPosition Trainer::run(TrainingPosition position) {
  const uint64_t first = position.step * settings_.micro_batches;
  session_.set_draws(settings_.dropout_seed, first);
  if (position.step == 0 && settings_.evaluate_every > 0) evaluate(position);
  if (position.step < settings_.steps) batches_ = std::make_unique<Prefetch>(training_, session_.program().inputs, first);
  while (position.step < settings_.steps) {
    try {
      step(position);
    } catch (const LateProcess& late) {
      throw late.in(fmt::format("step {}", position.step + 1));
    }
    if (is_evaluated(position.step)) evaluate(position);
    if (watcher_.between_steps(position) == Next::stop) break;
  }
  return position;
}

// The next batch lies where it was made.
void Trainer::take(Prefetch& batches) {
  const std::span<const InputSlot> inputs = batches.next();
  for (uint32_t i = 0; i < inputs.size(); ++i) session_.bind({SourceKind::input, i}, inputs[i].memory, nullptr);
}

template <class Run>
auto Trainer::with_origin(const Batches& data, uint64_t batch, Run run) {
  try {
    return run();
  } catch (const FaultyElement& failure) {
    // The executor knows tensors, the data files: only here do both meet.
    const std::string origin = data.origin(batch, failure.positions, static_cast<uint64_t>(failure.at));
    throw RuntimeFailure(FailureKind::data, origin.empty() ? failure.what() : fmt::format("{}; it is {}", failure.what(), origin));
  }
}

void Trainer::step(TrainingPosition& position) {
  const double start = now();
  double sum = 0;
  const uint64_t first = position.step * settings_.micro_batches;
  for (uint64_t micro = 1; micro <= settings_.micro_batches; ++micro) {
    const Part part = micro == settings_.micro_batches ? Part::training : Part::accumulation;
    take(*batches_);
    const NonFinite fault = with_origin(*training_, first + micro - 1, [&] { return session_.train(part); });
    const double loss = session_.runner().loss(part).to_doubles().front();
    if (fault != NonFinite::nothing)
      throw NonFiniteStep(describe(fault, fmt::format("the loss of step {}", position.step + 1), loss), part, fault);
    sum += loss;
  }
  ++position.step;
  watcher_.stepped({position.step, sum / static_cast<double>(settings_.micro_batches), now() - start});
}

bool Trainer::is_evaluated(uint64_t step) const {
  return step == settings_.steps || (settings_.evaluate_every > 0 && step % settings_.evaluate_every == 0);
}

void Trainer::evaluate(TrainingPosition& position) {
  if (!validation_) return;
  const double start = now();
  double sum = 0;
  Prefetch batches(validation_, session_.program().inputs, 0);
  for (uint64_t batch = 0; batch < settings_.evaluation_batches; ++batch) {
    take(batches);
    sum += with_origin(*validation_, batch, [&] { return session_.evaluate(batch); });
  }
  const double loss = sum / static_cast<double>(settings_.evaluation_batches);
  const bool best = loss < position.best_loss;
  if (best) position.best_loss = loss, position.best_step = position.step;
  watcher_.evaluated({position.step, loss, now() - start, best});
}

}  // namespace einc
