// SPDX-License-Identifier: Apache-2.0
// The file's form is in its own first lines.
#include "dsl/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/check.h"

namespace einc {
namespace {

std::vector<Explanation> read_explanations(std::string_view text) {
  std::vector<Explanation> all;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || (line[0] == '#' && all.empty())) continue;
    const std::string rest(line.substr(1));
    if (line[0] == '=' || line[0] == '-') all.back().wrong += rest + "\n";
    if (line[0] == '=' || line[0] == '+') all.back().right += rest + "\n";
    if (line[0] == '!') all.back().no_example = rest.substr(1);
    if (std::string_view("=-+!").find(line[0]) != std::string_view::npos) continue;
    const bool is_code = line.size() > 6 && (line[0] == 'E' || line[0] == 'W') && line[5] == ' ' && line[1] >= '0' && line[1] <= '9';
    if (is_code) {
      all.push_back({std::string(line.substr(0, 5)), std::string(line.substr(6)), "", "", "", "", ""});
    } else if (line.starts_with("Why: ")) {
      all.back().why = line.substr(5);
    } else {
      EINC_CHECK(!all.empty() && all.back().what.empty(), "explanations: a second text: {}", line);
      all.back().what = line;
    }
  }
  return all;
}

std::string small_letters(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

std::string indented(std::string_view program) {
  std::string out;
  for (const char c : program) out += (out.empty() || out.back() == '\n' ? "    " : "") + std::string(1, c);
  return out;
}

std::string wrapped(std::string_view text) {
  constexpr size_t kColumns = 78;
  std::string out;
  size_t column = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool breaks = column > 0 && column + 1 + word.size() > kColumns;
    if (column > 0) out += breaks ? '\n' : ' ';
    column = breaks ? word.size() : column + (column > 0) + word.size();
    out += word;
  }
  return out;
}

}  // namespace

const std::vector<Explanation>& explanations() {
  static const auto* const all = new std::vector<Explanation>(read_explanations(explanations_text()));
  return *all;
}

const Explanation* explain(std::string_view code) {
  const std::string wanted = small_letters(code);
  for (const Explanation& e : explanations())
    if (small_letters(e.code) == wanted || e.identifier == wanted) return &e;
  return nullptr;
}

std::string render(const Explanation& e) {
  std::string out = fmt::format("{} ({})\n\n{}\n\n{}\n", e.code, e.identifier, wrapped(e.what), wrapped("Why: " + e.why));
  if (e.wrong.empty() && e.right.empty()) return out + fmt::format("\nNo example: {}.\n", e.no_example);
  return out + fmt::format("\nWrong:\n\n{}\nRight:\n\n{}", indented(e.wrong), indented(e.right));
}

}  // namespace einc
