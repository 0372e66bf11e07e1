#include "runtime/executor/step_guard.h"

#include <algorithm>
#include <cmath>

namespace einc {

StepGuard::StepGuard(const Executable& program, std::shared_ptr<SourceBounds> known)
    : program_(program), checks_(checked_numbers(program)), known_(std::move(known)) {
  for (uint32_t b = 0; b < program.buffers.size(); ++b)
    if (program.buffers[b].role == BufferRole::param || program.buffers[b].role == BufferRole::state) updated_.push_back(b);
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
    const double number = read(check.buffer);
    const bool good = check.means == NonFinite::state ? !std::isnan(number) : std::isfinite(number);
    if (!good && fault == NonFinite::nothing) fault = check.means;
  }
  return fault;
}

void StepGuard::find_bounds(const Read& read) {
  std::vector<Interval> leaves(program_.bounds.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    const BoundOp& op = program_.bounds[i];
    if (op.fn == BoundFn::source) {
      if (const auto known = known_->find(key(op.buffer)); known != known_->end()) leaves[i] = known->second;
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
  std::map<uint32_t, Interval> fresh;
  if (!bounds_.empty())
    for (const BoundedUpdate& u : program_.bounded) fresh[u.target] = bounded_ ? bounds_[u.bound] : Interval{read(u.least), read(u.most)};
  // What else a run updates is not told apart from what it leaves alone.
  for (const uint32_t b : updated_)
    if (const auto found = fresh.find(b); found != fresh.end())
      (*known_)[key(b)] = found->second;
    else
      known_->erase(key(b));
}

}  // namespace einc
