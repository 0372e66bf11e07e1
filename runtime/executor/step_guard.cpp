// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/step_guard.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace einc {
namespace {

constexpr size_t kNoSlot = SIZE_MAX;

}  // namespace

StepGuard::StepGuard(const Executable& program, std::shared_ptr<SourceBounds> known)
    : program_(program), checks_(checked_numbers(program)), known_(std::move(known)) {
  for (const ExecutableBuffer& b : program.buffers) {
    const bool is_kept = b.role == BufferRole::param || b.role == BufferRole::state;
    slots_.push_back(is_kept ? known_->slot(b.role, b.name) : kNoSlot);
  }
}

void StepGuard::begin() {
  looked_.assign(checks_.size(), false);
  bounds_.clear();
}

NonFinite StepGuard::look(size_t launch, const Read& read) {
  NonFinite fault = NonFinite::nothing;
  for (size_t i = 0; i < checks_.size(); ++i) {
    const CheckedNumber& check = checks_[i];
    if (looked_[i] || check.launch >= static_cast<int64_t>(launch)) continue;
    looked_[i] = true;
    if (check.launch >= 0 && program_.launches[static_cast<size_t>(check.launch)].when == LaunchWhen::unbounded && bounded_) continue;
    if (!is_as_it_must_be(check.means, read(check.buffer)) && fault == NonFinite::nothing) fault = check.means;
  }
  return fault;
}

void StepGuard::find_bounds(const Read& read) {
  std::vector<Interval> leaves(program_.bounds.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const BoundOp& op = program_.bounds[i];
    if (op.fn == BoundFn::source) {
      leaves[i] = (*known_)[slots_[op.buffer]];
    } else if (op.fn == BoundFn::number || op.fn == BoundFn::magnitude) {
      const double number = read(op.buffer);
      if (std::isfinite(number)) leaves[i] = op.fn == BoundFn::number ? Interval::point(number) : Interval::within(std::fabs(number));
    }
  }
  bounds_ = evaluate_bounds(program_.bounds, leaves);
}

bool StepGuard::is_bounded(const Read& read) {
  if (!bounds_.empty()) return bounded_;
  find_bounds(read);
  bounded_ = std::ranges::all_of(program_.bounded, [&](const BoundedUpdate& u) { return bounds_[u.bound].is_bounded(); });
  return bounded_;
}

void StepGuard::end(const Read& read) {
  // What a run updates without a bound is not told apart from what it leaves alone: both are unknown from here on.
  for (const size_t slot : slots_)
    if (slot != kNoSlot) (*known_)[slot] = {};
  if (bounds_.empty()) return;
  for (const BoundedUpdate& u : program_.bounded)
    (*known_)[slots_[u.target]] = bounded_ ? bounds_[u.bound] : Interval{read(u.least), read(u.most)};
}

}  // namespace einc
