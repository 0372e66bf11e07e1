// SPDX-License-Identifier: Apache-2.0
// What stands behind einc::Program and einc::Session: a program is a description and a way to start runners of it; a session
// holds the memory of inputs, params and states, and a runner that works on it.
#pragma once
#include <einc/runtime.h>

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/cpu/thread_pool.h"
#include "runtime/executor/mapping.h"
#include "runtime/program/executable.h"
#include "runtime/program/program_info.h"

namespace einc {

// Of a pullback: what makes the outputs, and what pulls their gradients back.
enum class Half : uint8_t { outputs, gradients };

// Runs a program over the memory of a session. Functions throw RuntimeFailure.
class Runner {
 public:
  virtual ~Runner() = default;
  // Before anything runs, every source is bound; later calls move it.
  virtual void bind(Source source, void* memory) = 0;
  // For runners that keep values elsewhere while they run. Whoever reads the memory of a source calls `fetch` before, whoever wrote there
  // `written` after. At first it is written.
  virtual void fetch(Source) {}
  virtual void written(Source) {}
  // Nobody reads the source's memory before he calls `fetch`: a runner that has the value elsewhere may empty it.
  virtual void release(Source) {}
  // The source's memory is not read any more: what a run left elsewhere need not come back.
  virtual void abandon(Source) {}
  // Another session may have written there, too.
  virtual void forget(Source) {}
  // The program has the part. A run ends before it stores what is not finite; sums of gradients are the exception.
  virtual NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) = 0;
  // A half of a pullback's run, the first before the second. Where a target has no halves, both are the whole.
  virtual void run_half(Half, uint64_t seed, uint64_t step) { run_while_finite(Part::forward, seed, step); }
  // Runs the part as far as that and tells what in it is the first that is not finite; empty when nothing is.
  virtual std::string find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) = 0;
  // What the bits of a part's results depend on besides the program, where that is not this machine's processor; empty: nothing.
  virtual std::string numerics(Part) { return ""; }
  // Output i of a forward lies there from the next run on; null: in its own place again. False: it lies in its own place, and is copied by
  // whoever wants it elsewhere.
  virtual bool bind_output(uint32_t, void*) { return false; }
  // Of the last forward or training run; output i of the program. What training made lasts until an evaluation or the next step.
  virtual TensorView output(uint32_t index) const = 0;
  virtual TensorView gradient(uint32_t param) const = 0;  // of the last training run
  virtual TensorView loss(Part part) const = 0;           // of the part's last run
};

inline constexpr int kDefaultDevice = -1;

class ProgramRep {
 public:
  explicit ProgramRep(ProgramInfo program) : info(std::move(program)) {}
  virtual ~ProgramRep() = default;
  // The runner does not outlive the program. `device`: the number of the GPU that a program for GPUs runs on; kDefaultDevice: the process'.
  virtual std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool> pool, int device) const = 0;
  virtual bool has(Part part) const = 0;
  // What a session with so many threads takes at most: inputs, params, states, and the memory that the parts run in.
  virtual int64_t planned_bytes(int threads) const = 0;

  const ProgramInfo info;
};

// "the loss is nan", "the loss is 2.5, but a gradient is not finite"; of a run without a loss, whose name is empty then, what a state would
// take.
std::string describe(NonFinite fault, const std::string& loss_name, double loss);

// Of inputs, params and states together; the largest number when it does not fit.
int64_t source_bytes(const ProgramInfo& info);

class SessionRep {
 public:
  SessionRep(const ProgramRep& program, int threads, int device = kDefaultDevice, const ThreadTeam& team = {});
  ~SessionRep();

  void initialize(uint64_t seed);
  // Copies into the session's own memory, where the source lies from then on.
  void set(Source source, const void* values);
  // `owner`: released when the source lies elsewhere; null for none.
  void bind(Source source, void* memory, DLManagedTensor* owner);
  // The source lies in the session's own memory again, with what that held.
  void unbind(Source source) { place_at(source, {places_[slot(source)].own, places_[slot(source)].own}); }
  // Output i is there after each run or step, until another place or null is bound. Copied only where the runner cannot make it there.
  void bind_output(uint32_t index, void* memory);
  // The source lies where the other session's does, which outlives this one.
  void share(Source source, SessionRep& other, Source theirs);
  // Binds a runner of a program with the same tensors to where this session's lie.
  void lend(Runner& runner) const;
  void run();
  // The halves of a run of a pullback, which draw the same numbers.
  void run_half(Half half);
  // The loss without dropout; nothing is updated. `draw` keys what random numbers are left.
  double evaluate(uint64_t draw);
  void step();
  // A step, or a micro-batch of one before the last. Nothing is trained when something is not finite, and sums of gradients are zero then.
  NonFinite train(Part part);
  // Of the run that did not train.
  std::string find_fault(Part part, NonFinite what);
  std::string numerics(Part part) const { return runner_->numerics(part); }
  // The next run is the first one with this seed.
  void set_seed(uint64_t seed) { seed_ = seed, runs_ = 0; }
  // The next step or micro-batch draws what number `draw` of a run with this seed draws.
  void set_draws(uint64_t seed, uint64_t draw) { seed_ = seed, draws_ = draw; }
  uint64_t draws() const { return draws_; }
  uint64_t seed() const { return seed_; }
  const ProgramInfo& program() const { return program_.info; }
  ThreadPool& pool() { return *pool_; }
  // Values as they are now.
  const void* memory(Source source) const;
  // Params and states that a runner keeps elsewhere come here, in the program's order.
  void fetch_all() const;
  // Takes part in that, for another process which reads them and then releases them all: runners of all processes know the same.
  void pass_all() const;
  void release_all() const;
  const Runner& runner() const { return *runner_; }
  bool has_run() const { return ran_ || stepped_; }
  bool has_stepped() const { return stepped_; }
  // Of the last step.
  double step_loss() const { return step_loss_; }
  // Whether its gradients, and its outputs when nothing ran after it, have been overwritten by an evaluation, which runs in the same
  // memory.
  bool gradients_are_gone() const { return !step_stands_; }
  bool outputs_are_gone() const { return last_was_step_ && !step_stands_; }
  // The last run was the first half of one.
  bool waits_for_second_half() const { return waits_for_second_half_; }

 private:
  enum class Holder : uint8_t { session, caller };  // of a source's memory: the caller reads and writes there between runs
  struct Place {
    std::byte* own;  // in the mapping
    void* memory;
    Holder holder = Holder::session;
    DLManagedTensor* owner = nullptr;  // that the memory belongs to
  };
  const TensorInfo& info(Source source) const { return sources_of(program_.info, source.kind)[source.index]; }
  size_t slot(Source source) const;
  void release_own(Source source) const;
  void place_at(Source source, Place place);
  template <class Visit>
  void each_of_caller(Visit visit);
  void hand_over_outputs();
  void end_step();
  void clear_sums();
  // Throws RuntimeFailure (numeric), which tells where the fault of a run that stored nothing comes from.
  [[noreturn]] void refuse(Part part, NonFinite fault);
  // Around every run: what the caller wrote, and what it will read.
  void before_run();
  void after_run();

  const ProgramRep& program_;
  std::shared_ptr<ThreadPool> pool_;
  Mapping mapping_;                   // of the sources that are not bound elsewhere
  std::vector<Place> places_;         // inputs, params, states
  std::vector<void*> output_places_;  // of the caller; null: none
  std::vector<bool> shared_;          // of places_: other sessions' sources lie there, or this one's in theirs
  std::unique_ptr<Runner> runner_;
  uint64_t seed_ = 0, runs_ = 0, draws_ = 0;
  uint64_t half_seed_ = 0, half_run_ = 0;  // of the run whose first half was the last
  bool ran_ = false, waits_for_second_half_ = false;
  bool stepped_ = false, step_stands_ = false, last_was_step_ = false;
  double step_loss_ = 0;
};

}  // namespace einc
