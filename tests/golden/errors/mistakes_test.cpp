// SPDX-License-Identifier: Apache-2.0
// Mistakes as people make them (mistakes*.txt): one error each, at the right token, with the right cure; and replacements, here and in all
// golden programs, take their error away.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dsl/render.h"
#include "tests/golden/errors/checked_program.h"

using namespace einc;
using einc::test::check_program;
using einc::test::CheckedProgram;
namespace fs = std::filesystem;

namespace {

const std::string kErrors = std::string(EINC_SOURCE_DIR) + "/tests/golden/errors/";

struct Mistake {
  std::string name, code, token, hint, program;
};

std::string whole_text(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<Mistake> mistakes() {
  std::istringstream in(whole_text(kErrors + "mistakes.txt") + whole_text(kErrors + "mistakes_of_strangers.txt") +
                        whole_text(kErrors + "mistakes_of_porters.txt"));
  std::vector<Mistake> all;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("### ")) {
      if (!all.empty()) all.back().program += line + "\n";
      continue;
    }
    std::vector<std::string> fields;
    std::string rest = line.substr(4) + " | ";
    for (size_t at = rest.find(" | "); at != std::string::npos; at = rest.find(" | ")) {
      fields.push_back(rest.substr(0, at));
      rest.erase(0, at + 3);
    }
    REQUIRE(fields.size() >= 4);
    all.push_back({fields[0], fields[1], fields[2], fields.back(), ""});
  }
  return all;
}

// The text with all replacements of one diagnostic in place.
std::string mended(std::string text, std::vector<Replacement> replacements) {
  std::sort(replacements.begin(), replacements.end(), [](const auto& a, const auto& b) { return a.span.begin > b.span.begin; });
  for (const Replacement& r : replacements) text.replace(r.span.begin, r.span.size(), r.text);
  return text;
}

// How many errors of that code and message there are.
size_t count_of(const CheckedProgram& program, const Diagnostic& wanted) {
  const auto& list = program.diagnostics.list();
  return static_cast<size_t>(
      std::count_if(list.begin(), list.end(), [&](const Diagnostic& d) { return d.code == wanted.code && d.message == wanted.message; }));
}

size_t check_replacements(const std::string& name, const std::string& text) {
  CheckedProgram before;
  check_program(before, name, text);
  size_t applied = 0;
  for (const Diagnostic& d : before.diagnostics.list()) {
    if (d.replacements.empty() || d.span.file != *before.file) continue;
    for (const Replacement& r : d.replacements) REQUIRE(r.span.file == *before.file);
    const std::string after_text = mended(text, d.replacements);
    CheckedProgram after;
    check_program(after, name, after_text);
    CAPTURE(name);
    CAPTURE(after_text);
    CAPTURE(d.message);
    CHECK(count_of(after, d) < count_of(before, d));
    ++applied;
  }
  return applied;
}

}  // namespace

TEST_CASE("mistakes of people: one error, at the token, with the cure") {
  for (const Mistake& m : mistakes()) {
    CheckedProgram program;
    check_program(program, m.name + ".ein", m.program);
    CAPTURE(m.name);
    INFO(render_text(program.sources, program.diagnostics));
    REQUIRE(program.diagnostics.error_count() == 1);
    const auto& list = program.diagnostics.list();
    const Diagnostic& d = *std::find_if(list.begin(), list.end(), [](const Diagnostic& e) { return e.severity == Severity::error; });
    CHECK(info(d.code).code == m.code);
    CHECK(program.sources.text(d.span) == m.token);
    const bool forbidden = m.hint.starts_with('!');
    const bool found = (d.hint + d.message).find(m.hint.substr(forbidden)) != std::string::npos;
    CHECK(found != forbidden);
  }
}

TEST_CASE("replacements take their error away") {
  size_t applied = 0;
  for (const Mistake& m : mistakes()) applied += check_replacements(m.name + ".ein", m.program);
  for (const char* folder : {"syntax", "program"})
    for (const auto& entry : fs::directory_iterator(kErrors + folder))
      if (entry.path().extension() == ".ein") applied += check_replacements(entry.path().string(), whole_text(entry.path()));
  CHECK(applied > 60);
}
