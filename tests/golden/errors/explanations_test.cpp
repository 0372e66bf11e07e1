// SPDX-License-Identifier: Apache-2.0
// `einc explain`: an entry for every code, whose wrong program has that code and whose right one has not and compiles.
#include <doctest/doctest.h>

#include "dsl/explain.h"
#include "dsl/render.h"
#include "tests/golden/errors/checked_program.h"

using namespace einc;
using einc::test::check_program;
using einc::test::CheckedProgram;

TEST_CASE("every code is explained, in the table's order") {
  const std::vector<Explanation>& all = explanations();
  REQUIRE(all.size() == kCodeCount);
  for (size_t i = 0; i < kCodeCount; ++i) {
    CHECK(all[i].code == kCodes[i].code);
    CHECK(all[i].identifier == kCodes[i].identifier);
    CAPTURE(all[i].code);
    CHECK(!all[i].what.empty());
    CHECK(!all[i].why.empty());
    CHECK((all[i].no_example.empty() != all[i].wrong.empty() || !all[i].right.empty()));
  }
}

TEST_CASE("examples of explanations have their code, and their cures compile") {
  for (const Explanation& e : explanations()) {
    if (!e.no_example.empty()) continue;
    CAPTURE(e.code);
    CheckedProgram wrong, right;
    check_program(wrong, "wrong.ein", e.wrong);
    INFO("wrong:\n", render_text(wrong.sources, wrong.diagnostics));
    CHECK(wrong.has(e.code));
    check_program(right, "right.ein", e.right);
    INFO("right:\n", render_text(right.sources, right.diagnostics));
    CHECK(!right.has(e.code));
    CHECK(!right.diagnostics.has_errors());
  }
}

TEST_CASE("only what cannot be shown has no example") {
  size_t without = 0;
  for (const Explanation& e : explanations()) without += !e.no_example.empty();
  CHECK(without < 30);
  CHECK(explain("e0322") == explain("pattern_size"));
  CHECK(explain("E9999") == nullptr);
}
