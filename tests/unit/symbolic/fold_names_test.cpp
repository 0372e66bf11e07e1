// SPDX-License-Identifier: Apache-2.0
// Derived dims written where their definitions occur, for people.
#include <doctest/doctest.h>

#include "compiler/symbolic/poly.h"
#include "tests/unit/symbolic/parsed.h"

using namespace einc;

TEST_CASE("names of derived dims") {
  const std::vector<Definition> definitions{
      {"embed", p("heads*head")}, {"hidden", p("4*heads*head")}, {"tokens", p("batch*seq")},
      {"half", p("1/2*width")},   {"ffn", p("4*width")},         {"per", p("model/groups")},
      {"ctx", p("seq")},          {"both", p("a + b")},          {"eight", p("8")},
  };
  struct Row {
    std::string written, folded;
  };
  const Row rows[] = {
      {"heads*head", "embed"},
      {"heads^2*head^2", "embed^2"},
      {"12*heads^2*head^2 + 2*heads*head*vocab", "12*embed^2 + 2*embed*vocab"},
      {"heads^3*head^2", "embed^2*heads"},
      {"1/(heads*head)", "embed^-1"},
      {"heads/head", "head^-1*heads"},
      {"4*heads*head", "4*embed"},
      {"batch*seq*heads*head", "embed*tokens"},
      {"4*width", "ffn"},
      {"8*batch*width", "2*batch*ffn"},
      {"4*width^2", "4*width^2"},
      {"6*width", "6*width"},
      {"3/2*width*batch", "3*batch*half"},
      {"model/groups", "per"},
      {"model*groups", "groups*model"},
      {"seq", "seq"},
      {"a + b + 8", "a + b + 8"},
      {"floor((heads*head + 1)/2)", "floor((embed + 1)/2)"},
      {"max(heads*head, batch*seq)*2", "2*max(embed, tokens)"},
      {"1/(heads*head + 1)", "(embed + 1)^-1"},
      {"7", "7"},
  };
  Substitution back;
  for (const Definition& d : definitions) back.emplace(d.name, d.value);
  for (const Row& row : rows) {
    CAPTURE(row.written);
    const Poly folded = fold_names(p(row.written), definitions);
    CHECK(folded.str() == row.folded);
    CHECK(folded.substitute(back) == p(row.written));
  }
  CHECK(fold_names(p("heads*head"), {}) == p("heads*head"));
}

TEST_CASE("floors of what declared dims say is whole") {
  const std::vector<Definition> definitions{{"half", p("1/2*h")}, {"quarter", p("1/4*h")}, {"head", p("e/heads")}};
  struct Row {
    std::string written, whole;
  };
  const Row rows[] = {
      {"floor(h/2)", "1/2*h"},
      {"floor((h - 2)/2) + 1", "1/2*h"},
      {"floor((h - 1)/2) + 1", "1/2*h"},
      {"floor((h + 3)/4)", "1/4*h"},
      {"b*floor(e/heads)", "b*e*heads^-1"},
      // Known to be whole, and written in no whole names: it stays as it is, and so does what nothing says.
      {"floor(h/3)", "floor(h/3)"},
      {"floor(h/8)", "floor(h/8)"},
      {"floor(e/2)", "floor(e/2)"},
      {"h/2 + 1", "1/2*h + 1"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.written);
    CHECK(without_floors(p(row.written), definitions).str() == row.whole);
  }
  CHECK(without_floors(p("floor(h/2)"), {}) == p("floor(h/2)"));
}
