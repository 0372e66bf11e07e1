// SPDX-License-Identifier: Apache-2.0
// Decides during a run whether it may store what it makes: looks at the executable's checks, and at bounds of its updates, which follow
// from the gradients' magnitude and from what the bounds were after the step before.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor/checked_numbers.h"
#include "runtime/program/executable.h"

namespace einc {

// What is known of the elements of params and states. Each has a slot, so that a step looks up no names. Whoever writes there forgets.
class SourceBounds {
 public:
  // The slot of a param or state, made where there is none.
  size_t slot(BufferRole role, const std::string& name) {
    const auto [at, is_new] = slots_.try_emplace({role, name}, known_.size());
    if (is_new) known_.emplace_back();
    return at->second;
  }
  Interval& operator[](size_t slot) { return known_[slot]; }  // unbounded: nothing is known
  void forget(BufferRole role, const std::string& name) {
    if (const auto at = slots_.find({role, name}); at != slots_.end()) known_[at->second] = {};
  }

 private:
  std::map<std::pair<BufferRole, std::string>, size_t> slots_;
  std::vector<Interval> known_;
};

class StepGuard {
 public:
  // The number that a buffer of one element holds.
  using Read = std::function<double(uint32_t buffer)>;

  // `known` is shared by the parts of a program. The program outlives the guard.
  StepGuard(const Executable& program, std::shared_ptr<SourceBounds> known);

  void begin();
  // What is wrong with numbers that launches before `launch` have made and that were not looked at yet.
  NonFinite look(size_t launch, const Read& read);
  // Whether bounds show that all that has one stays finite, asked once all that they are made of is there. Where they do not, the launches
  // for that case run.
  bool is_bounded(const Read& read);
  // The run has stored what it made.
  void end(const Read& read);

 private:
  void find_bounds(const Read& read);

  const Executable& program_;
  const std::vector<CheckedNumber> checks_;
  std::shared_ptr<SourceBounds> known_;
  std::vector<size_t> slots_;     // by buffer: in known_, kNoSlot for what no run keeps
  std::vector<bool> looked_;      // by check
  std::vector<Interval> bounds_;  // by op; empty: not asked for in this run
  bool bounded_ = false;
};

}  // namespace einc
