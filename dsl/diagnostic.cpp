// SPDX-License-Identifier: Apache-2.0
// The sink: repeats are dropped, and what exceeds the limit is only counted.
#include "dsl/diagnostic.h"

#include <algorithm>

namespace einc {

Diagnostics::Builder& Diagnostics::Builder::label(Span span, std::string_view text) {
  if (owner_ && span.known()) owner_->list_[index_].labels.push_back({span, printable(text)});
  return *this;
}

Diagnostics::Builder& Diagnostics::Builder::hint(std::string_view text) {
  if (owner_) owner_->list_[index_].hint = printable(text);
  return *this;
}

Diagnostics::Builder& Diagnostics::Builder::replace(Span span, std::string_view text) {
  if (owner_ && span.known()) owner_->list_[index_].replacements.push_back({span, std::string(text)});
  return *this;
}

Diagnostics::Builder& Diagnostics::Builder::did_you_mean(Span span, std::string_view near) {
  return hint("did you mean `{}`?", near).replace(span, near);
}

bool Diagnostics::count_only(Code code) {
  size_t& count = info(code).severity == Severity::error ? error_count_ : warning_count_;
  if (count < kMaxErrors) return false;
  ++count;
  return true;
}

Diagnostics::Builder Diagnostics::add(Code code, Span span, std::string message) {
  if (count_only(code)) return {nullptr, 0};
  message = printable(message);
  const bool repeated = std::any_of(list_.begin(), list_.end(),
                                    [&](const Diagnostic& d) { return d.code == code && d.span == span && d.message == message; });
  if (repeated) return {nullptr, 0};
  const Severity severity = info(code).severity;
  ++(severity == Severity::error ? error_count_ : warning_count_);
  list_.push_back({code, severity, span, std::move(message), {}, {}, {}});
  return {this, list_.size() - 1};
}

void Diagnostics::revise(size_t first, const std::function<bool(Diagnostic&)>& keep) {
  size_t kept = first;
  for (size_t i = first; i < list_.size(); ++i) {
    if (!keep(list_[i])) {
      --(list_[i].severity == Severity::error ? error_count_ : warning_count_);
    } else {
      if (i != kept) list_[kept] = std::move(list_[i]);
      ++kept;
    }
  }
  if (first < list_.size()) list_.erase(list_.begin() + static_cast<std::ptrdiff_t>(kept), list_.end());
}

}  // namespace einc
