// SPDX-License-Identifier: Apache-2.0
// The training loop: batches in, steps, the validation loss every so many. What a run shows, logs and saves is its watcher's.
#pragma once
#include <cstdint>

#include "runtime/base/failure.h"
#include "runtime/executor/session.h"
#include "runtime/train/position.h"
#include "runtime/train/prefetch.h"

namespace einc {

struct TrainingSettings {
  uint64_t steps = 0;          // that are done at the end
  uint64_t micro_batches = 1;  // of a step; above 1 the program has the part for them
  uint64_t dropout_seed = 0;
  uint64_t evaluate_every = 0;  // steps; 0: at the end alone
  uint64_t evaluation_batches = 20;
};

struct StepRecord {
  uint64_t step = 0;   // the first is 1
  double loss = 0;     // mean over its micro-batches
  double seconds = 0;  // batch and step
};

struct EvaluationRecord {
  uint64_t step = 0;  // steps done before it
  double loss = 0;    // mean over the evaluation's batches, which are the same each time
  double seconds = 0;
  bool best = false;
};

// The session's params are as they were before the step.
class NonFiniteStep : public RuntimeFailure {
 public:
  NonFiniteStep(const std::string& message, Part which, NonFinite made)
      : RuntimeFailure(FailureKind::numeric, message), part(which), fault(made) {}
  const Part part;  // the run that made it, of the session's present inputs and draws
  const NonFinite fault;
};

enum class Next : uint8_t { go_on, stop };

class TrainingWatcher {
 public:
  virtual ~TrainingWatcher() = default;
  virtual void stepped(const StepRecord& record) = 0;
  virtual void evaluated(const EvaluationRecord& record) = 0;
  // Called after each step and its evaluation, when params, states and position agree: the time to save.
  virtual Next between_steps(const TrainingPosition& position) = 0;
};

class Trainer {
 public:
  // `validation` may be null. What is passed by reference outlives the trainer. The session's program trains.
  Trainer(SessionRep& session, const TrainingSettings& settings, std::shared_ptr<const Batches> training,
          std::shared_ptr<const Batches> validation, TrainingWatcher& watcher);

  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Goes on from `position` to the last step or until the watcher stops it; tells where it stands then. Throws NonFiniteStep,
  // with the batch still bound, and RuntimeFailure (data) for batches that do not fit the program.
  TrainingPosition run(TrainingPosition position);

 private:
  void step(TrainingPosition& position);
  void evaluate(TrainingPosition& position);
  void take(Prefetch& batches);
  // Adds to an index out of range which element of the data it is.
  template <class Run>
  auto with_origin(const Batches& data, uint64_t batch, Run run);
  bool is_evaluated(uint64_t step) const;

  SessionRep& session_;
  const TrainingSettings settings_;
  std::shared_ptr<const Batches> training_, validation_;
  TrainingWatcher& watcher_;
  std::unique_ptr<Prefetch> batches_;
};

}  // namespace einc
