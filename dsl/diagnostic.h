// SPDX-License-Identifier: Apache-2.0
// What the compiler says about a user's program. Every message stands once, in diagnostic_codes.def; code reports
//   diagnostics.report(Code::unknown_name, span, name).label(other, "declared here").hint("did you mean `{}`?", near);
// and the number of arguments is checked against the message's `{}` while einc itself is compiled.
// A Diagnostics sink takes many per run, drops exact repeats and keeps the first kMaxErrors errors; the rest are counted.
// Arguments are made printable (control characters escaped, overlong words cut), so a hostile name cannot reach a terminal.
#pragma once
#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "dsl/source.h"
#include "runtime/base/printable.h"

namespace einc {

enum class Severity : uint8_t { error, warning };

enum class Code : uint16_t {
#define EINC_DIAGNOSTIC(identifier, code, severity, message) identifier,
#include "dsl/diagnostic_codes.def"
#undef EINC_DIAGNOSTIC
};

struct CodeInfo {
  std::string_view identifier;  // unknown_name
  std::string_view code;        // E0301
  Severity severity;
  std::string_view message;  // with {} fields
};

inline constexpr CodeInfo kCodes[] = {
#define EINC_DIAGNOSTIC(identifier, code, severity, message) {#identifier, code, Severity::severity, message},
#include "dsl/diagnostic_codes.def"
#undef EINC_DIAGNOSTIC
};
inline constexpr size_t kCodeCount = sizeof(kCodes) / sizeof(kCodes[0]);
constexpr const CodeInfo& info(Code code) { return kCodes[static_cast<size_t>(code)]; }

constexpr size_t kMaxErrors = 20;

// Text about a second place.
struct Label {
  Span span;
  std::string text;
};

// What an editor may put in place of a span so that the error goes away. Several of one diagnostic are applied together; they do not
// overlap. The text is exact, unlike messages, and may hold line ends.
struct Replacement {
  Span span;
  std::string text;
};

struct Diagnostic {
  Code code;
  Severity severity;
  Span span;
  std::string message;
  std::vector<Label> labels;
  std::string hint;  // empty: none
  std::vector<Replacement> replacements{};
};

namespace detail {

template <class T>
auto diagnostic_argument(const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    return printable(std::string_view(value));
  } else if constexpr (requires {
                         { value.str() } -> std::convertible_to<std::string_view>;
                       }) {
    return printable(value.str());  // names, polynomials
  } else {
    static_assert(std::is_arithmetic_v<T>, "a diagnostic's argument is text, a number, or something with str()");
    return value;
  }
}

template <class... Args>
std::string format_message(std::string_view message, const Args&... args) {
  if constexpr (sizeof...(Args) == 0) {
    return std::string(message);
  } else {
    return [&](const auto&... ready) { return fmt::vformat(message, fmt::make_format_args(ready...)); }(diagnostic_argument(args)...);
  }
}

constexpr size_t count_fields(std::string_view message) {
  size_t fields = 0;
  for (size_t i = 0; i + 1 < message.size(); ++i)
    if (message[i] == '{' && message[i + 1] == '}') ++fields;
  return fields;
}

void the_message_has_another_number_of_fields();  // never defined: named in the compile error

template <class... Args>
struct CheckedCode {
  Code code;
  consteval CheckedCode(Code c) : code(c) {  // NOLINT: a code is a checked code
    if (count_fields(info(c).message) != sizeof...(Args)) the_message_has_another_number_of_fields();
  }
};

}  // namespace detail

class Diagnostics {
 public:
  // Adds to the diagnostic just reported; does nothing if that one was dropped as a repeat or above the limit.
  class Builder {
   public:
    Builder& label(Span span, std::string_view text);
    Builder& hint(std::string_view text);
    Builder& replace(Span span, std::string_view text);
    // "did you mean `near`?", with the name to put there.
    Builder& did_you_mean(Span span, std::string_view near);
    template <class First, class... Args>
    Builder& label(Span span, std::string_view text, const First& first, const Args&... args) {
      return label(span, detail::format_message(text, first, args...));
    }
    template <class First, class... Args>
    Builder& hint(std::string_view text, const First& first, const Args&... args) {
      return hint(detail::format_message(text, first, args...));
    }

   private:
    friend class Diagnostics;
    Builder(Diagnostics* owner, size_t index) : owner_(owner), index_(index) {}
    Diagnostics* owner_;  // null: dropped
    size_t index_;
  };

  template <class... Args>
  Builder report(detail::CheckedCode<std::type_identity_t<Args>...> code, Span span, const Args&... args) {
    if (count_only(code.code)) return {nullptr, 0};
    return add(code.code, span, detail::format_message(info(code.code).message, args...));
  }
  // For a code that is chosen at run time: the message is already written.
  Builder add(Code code, Span span, std::string message);

  // Lets `keep(diagnostic)` change each that was reported since list() had `first` entries, or drop it by answering false.
  void revise(size_t first, const std::function<bool(Diagnostic&)>& keep);

  bool has_errors() const { return error_count_ != 0; }
  size_t error_count() const { return error_count_; }  // those beyond the limit included
  size_t warning_count() const { return warning_count_; }
  // True once further errors are only counted: a good moment to stop looking for them.
  bool full() const { return error_count_ >= kMaxErrors; }
  // Kept diagnostics in the order they were reported: at most kMaxErrors of each severity.
  const std::vector<Diagnostic>& list() const { return list_; }

 private:
  bool count_only(Code code);  // above the limit: counts it and says so

  std::vector<Diagnostic> list_;
  size_t error_count_ = 0;
  size_t warning_count_ = 0;
};

}  // namespace einc
