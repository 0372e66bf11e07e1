// SPDX-License-Identifier: Apache-2.0
#define PCRE2_CODE_UNIT_WIDTH 8
#include "runtime/text/regex.h"

#include <pcre2.h>

#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr uint32_t kMatchSteps = 10'000'000;  // of one match: what the tokenizers library's engine allows
constexpr uint32_t kMatchMemory = 64 * 1024;  // KiB

}  // namespace

struct Regex::Compiled {
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };
  struct FreeData {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, FreeCode> code;
  std::unique_ptr<pcre2_match_context, FreeContext> context;
  std::unique_ptr<pcre2_match_data, FreeData> data;
};

std::optional<Regex> Regex::compile(std::string_view pattern) {
  int error = 0;
  PCRE2_SIZE at = 0;
  auto compiled = std::make_shared<Compiled>();
  constexpr uint32_t kOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  compiled->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), kOptions, &error, &at, nullptr));
  if (!compiled->code) return std::nullopt;
  compiled->context.reset(pcre2_match_context_create(nullptr));
  compiled->data.reset(pcre2_match_data_create_from_pattern(compiled->code.get(), nullptr));
  if (!compiled->context || !compiled->data) throw std::bad_alloc();
  pcre2_set_match_limit(compiled->context.get(), kMatchSteps);
  pcre2_set_heap_limit(compiled->context.get(), kMatchMemory);
  return Regex(std::move(compiled));
}

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t from) const {
  constexpr uint32_t kOptions = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY;
  const int found = pcre2_match(compiled_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, kOptions,
                                compiled_->data.get(), compiled_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) throw RuntimeFailure(FailureKind::data, "a pattern of the tokenizer takes too many steps on this text");
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(compiled_->data.get());
  if (ends[1] <= ends[0]) return std::nullopt;  // \K in a lookbehind
  return std::pair(ends[0], ends[1]);
}

}  // namespace einc
