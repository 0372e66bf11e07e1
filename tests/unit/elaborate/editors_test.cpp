// SPDX-License-Identifier: Apache-2.0
// The grammars for editors know the words of the language: those and no others.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/elaborate/builtins.h"
#include "dsl/token.h"
#include "runtime/base/dtype.h"

using namespace einc;

namespace {

using Words = std::set<std::string>;

std::string file_text(const std::string& path) {
  std::ifstream in(std::string(EINC_SOURCE_DIR) + "/dsl/editors/" + path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The alternatives of `\b(a|b)\b`.
Words alternatives(const std::string& pattern) {
  const size_t begin = pattern.find('(') + 1;
  std::istringstream in(pattern.substr(begin, pattern.find(')') - begin));
  Words words;
  for (std::string word; std::getline(in, word, '|');) words.insert(word);
  return words;
}

Words vim_group(const std::string& group) {
  std::istringstream in(file_text("vim/syntax/ein.vim"));
  Words words;
  const std::string head = "syntax keyword " + group + " ";
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(head)) continue;
    std::istringstream rest(line.substr(head.size()));
    words.insert(std::istream_iterator<std::string>(rest), {});
  }
  return words;
}

void check_both(const std::string& rule, const std::string& group, const Words& wanted) {
  const auto grammar = nlohmann::json::parse(file_text("vscode/syntaxes/ein.tmLanguage.json"));
  const Words code = alternatives(grammar["repository"][rule]["match"].get<std::string>()), vim = vim_group(group);
  for (const Words& known : {code, vim}) {
    Words missing, added;
    std::set_difference(wanted.begin(), wanted.end(), known.begin(), known.end(), std::inserter(missing, missing.end()));
    std::set_difference(known.begin(), known.end(), wanted.begin(), wanted.end(), std::inserter(added, added.end()));
    INFO(rule, ": missing ", fmt::format("{}", missing), ", not of the language ", fmt::format("{}", added));
    CHECK(missing.empty());
    CHECK(added.empty());
  }
}

}  // namespace

TEST_CASE("grammars for editors have the language's words") {
  Words words, constants{"training"};
  for (const std::string_view word : keywords()) {
    const TokenKind kind = keyword_kind(word);
    (kind >= TokenKind::kw_true ? constants : words).insert(std::string(word));
  }
  for (const std::string_view word : statement_words()) words.insert(std::string(word));
  check_both("word", "einStatement", words);
  check_both("constant", "einConstant", constants);
  Words dtypes;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::f8e4m3, DType::f8e5m2, DType::i64, DType::i32,
                            DType::u16, DType::u8, DType::boolean})
    dtypes.insert(std::string(info(dtype).name));
  check_both("dtype", "einType", dtypes);
  const std::vector<std::string> names = builtin_names();
  Words builtins(names.begin(), names.end());
  builtins.insert({"grad", "jvp", "rename", "updated", "vjp"});
  check_both("builtin", "einFunction", builtins);
}
