// SPDX-License-Identifier: Apache-2.0
// The training loop over the interpreter: what it calls when, and that a run which stops and goes on is the undisturbed one.
#include "runtime/train/loop.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <span>

#include "compiler/api/compile_program.h"

namespace einc::test {
namespace {

constexpr const char* kProgram = R"(dim n = 6
input x: f32[n]
input y: f32[n]
param w: [n] ~ normal(std = 1)
loss = mean((w * dropout(x, 0.5) - y)^2)
minimize loss using adam(lr = 0.1)
)";

// Values of the input's name and the batch's number; from batch `poisoned` on they are not finite.
class Waves : public Batches {
 public:
  explicit Waves(uint64_t poisoned = UINT64_MAX) : poisoned_(poisoned) {}
  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override {
    for (const InputSlot& slot : inputs)
      for (int64_t i = 0; i < slot.info->count(); ++i) {
        const auto wave =
            static_cast<float>(std::sin(static_cast<double>(batch) * 3 + static_cast<double>(i) + (slot.info->name == "y" ? 1 : 0)));
        const float value = batch < poisoned_ ? wave : INFINITY;
        std::memcpy(slot.memory + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
      }
  }
  std::string origin(uint64_t, std::string_view, uint64_t) const override { return ""; }
  uint64_t batches_per_epoch() const override { return 0; }
  std::string description() const override { return "waves"; }

 private:
  uint64_t poisoned_;
};

class Recorder : public TrainingWatcher {
 public:
  explicit Recorder(uint64_t stop_after = UINT64_MAX) : stop_after_(stop_after) {}
  void stepped(const StepRecord& record) override { losses.push_back(record.loss); }
  void evaluated(const EvaluationRecord& record) override { evaluations.push_back(record); }
  Next between_steps(const TrainingPosition& position) override {
    positions.push_back(position);
    return position.step == stop_after_ ? Next::stop : Next::go_on;
  }
  std::vector<double> losses;
  std::vector<EvaluationRecord> evaluations;
  std::vector<TrainingPosition> positions;

 private:
  uint64_t stop_after_;
};

class Trainee {
 public:
  Trainee() : program_(make()), session_(*program_, 1) { session_.initialize(5); }
  TrainingPosition run(TrainingSettings settings, TrainingWatcher& watcher, TrainingPosition from = {}, uint64_t poisoned = UINT64_MAX) {
    settings.dropout_seed = 11;
    Trainer trainer(session_, settings, std::make_shared<Waves>(poisoned), std::make_shared<Waves>(), watcher);
    return trainer.run(from);
  }
  std::vector<std::byte> values() const {
    std::vector<std::byte> bytes;
    for (const SourceKind kind : {SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < sources_of(program_->info, kind).size(); ++i) {
        const auto* at = static_cast<const std::byte*>(session_.memory({kind, i}));
        bytes.insert(bytes.end(), at, at + sources_of(program_->info, kind)[i].bytes());
      }
    return bytes;
  }
  void take(const Trainee& other) {
    for (const SourceKind kind : {SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < sources_of(program_->info, kind).size(); ++i) session_.set({kind, i}, other.session_.memory({kind, i}));
  }

 private:
  static std::shared_ptr<const ProgramRep> make() {
    PipelineOptions options;
    options.training.micro_batches = 2;
    static constexpr Part kTrained[] = {Part::training, Part::evaluation};
    auto graphs = make_graphs(compile_text("m.ein", kProgram, options), options, kTrained);
    options.training.gradients = GradientUse::gather;
    add_micro_batches(graphs, compile_text("m.ein", kProgram, options));
    return reference_program(graphs);
  }

  std::shared_ptr<const ProgramRep> program_;
  SessionRep session_;
};

TrainingSettings settings(uint64_t steps) {
  TrainingSettings result;
  result.steps = steps;
  result.micro_batches = 2;
  result.evaluate_every = 4;
  result.evaluation_batches = 3;
  return result;
}

}  // namespace

TEST_CASE("evaluations come before the first step, every so many and at the end, the best is remembered") {
  Trainee trainee;
  Recorder recorder;
  const TrainingPosition end = trainee.run(settings(10), recorder);
  CHECK(end.step == 10);
  REQUIRE(recorder.evaluations.size() == 4);
  const uint64_t steps[] = {0, 4, 8, 10};
  for (size_t i = 0; i < 4; ++i) CHECK(recorder.evaluations[i].step == steps[i]);
  CHECK(recorder.evaluations[0].best);
  double best = INFINITY;
  for (const EvaluationRecord& e : recorder.evaluations) best = std::min(best, e.loss);
  CHECK(end.best_loss == best);
  CHECK(recorder.losses.size() == 10);
  CHECK(recorder.positions[3].step == 4);  // the evaluation after step 4 is in it
  CHECK(recorder.positions[3].best_loss <= recorder.evaluations[1].loss);
}

TEST_CASE("a run that stopped goes on as if it had not, whatever was evaluated meanwhile") {
  Trainee whole, first, second;
  Recorder all, before(5), after;
  TrainingSettings plain = settings(9);
  plain.evaluate_every = 0;
  whole.run(plain, all);
  const TrainingPosition stopped = first.run(settings(9), before);
  CHECK(stopped.step == 5);
  second.take(first);
  second.run(settings(9), after, stopped);
  CHECK(second.values() == whole.values());
  before.losses.insert(before.losses.end(), after.losses.begin(), after.losses.end());
  CHECK(before.losses == all.losses);
  CHECK(after.evaluations.front().step == 8);  // none again where it goes on
}

TEST_CASE("a loss that is not finite ends the run with the params of the step before") {
  for (const uint64_t poisoned : {6, 7}) {  // the first and the last micro-batch of step 4
    Trainee trainee, undisturbed;
    Recorder recorder, other;
    TrainingSettings plain = settings(3);
    plain.evaluate_every = 0;
    undisturbed.run(plain, other);
    plain.steps = 9;
    CHECK_THROWS_AS(trainee.run(plain, recorder, {}, poisoned), NonFiniteStep);
    CHECK(recorder.losses == other.losses);
    if (poisoned == 6) CHECK(trainee.values() == undisturbed.values());
  }
}

}  // namespace einc::test
