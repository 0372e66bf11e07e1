// SPDX-License-Identifier: Apache-2.0
// Human units, tables and wrapped formulas.
#include <doctest/doctest.h>

#include "compiler/report/factor.h"
#include "compiler/report/format.h"

using namespace einc;

TEST_CASE("units") {
  CHECK(grouped_digits("0") == "0");
  CHECK(grouped_digits("1234567") == "1,234,567");
  CHECK(grouped_digits("-123456") == "-123,456");
  CHECK(human_count(0) == "0");
  CHECK(human_count(999) == "999");
  CHECK(human_count(124439808) == "124.4 M");
  CHECK(human_count(999960) == "1.000 M");
  CHECK(human_count(8796093022208) == "8.796 T");
  CHECK(human_bytes(512) == "512 B");
  CHECK(human_bytes(2415919104) == "2.250 GiB");
  CHECK(human_seconds(0.0032) == "3.200 ms");
  CHECK(human_seconds(143.9266 * 86400) == "143.9 days");
  CHECK(percent(0.3714) == "37.1%");
}

TEST_CASE("formulas break between terms") {
  CHECK(wrap_formula("2*a*b + 3*c", 80) == std::vector<std::string>{"2*a*b + 3*c"});
  CHECK(wrap_formula("2*a*b + 3*c", 8) == std::vector<std::string>{"2*a*b", "  + 3*c"});
  CHECK(wrap_formula("floor((a + b)/2) - 1", 5) == std::vector<std::string>{"floor((a", "  + b)/2)", "  - 1"});
  CHECK(wrap_formula("", 5).empty());
}

TEST_CASE("tables line up") {
  Table table({Align::left, Align::right, Align::left});
  table.add({"a", "1", "x"});
  table.add({"long", "1,000", ""});
  CHECK(table.lines(80) == std::vector<std::string>{"  a         1  x", "  long  1,000"});
}

TEST_CASE("formulas as people write them") {
  const Name loops[] = {"layers"};
  struct Row {
    const char *formula, *text;
  };
  for (const Row& row :
       {Row{"2*B*D^2 + 4*B*D*K + B*K", "B*(2*D^2 + 4*D*K + K)"},
        Row{"24*b*e^2*layers*s + 4*b*e*layers*s^2 + 2*b*e*s*v + 8*b*s + 1", "layers*b*s*(24*e^2 + 4*e*s) + b*s*(2*e*v + 8) + 1"},
        Row{"2*a*layers + layers + 7", "layers*(2*a + 1) + 7"}, Row{"2*a*layers - 2*a + 5", "2*a*layers - 2*a + 5"},
        Row{"layers^2 + a*layers - 3*layers", "layers*(layers + a - 3)"}, Row{"7/2*a*layers + 1/2*b*layers", "layers*(7/2*a + 1/2*b)"},
        Row{"a*layers - b^-1", "a*layers - b^-1"}, Row{"floor((a + 1)/2)*layers + layers", "layers*(floor((a + 1)/2) + 1)"},
        Row{"-a*layers - b*layers", "layers*(-a - b)"}, Row{"0", "0"}}) {
    const Poly formula = *parse_poly(row.formula);
    const std::string text = factored(formula, loops);
    CHECK(parse_poly(text) == formula);
    CHECK(parse_poly(row.text) == formula);
    CHECK(text.size() <= std::string(row.text).size() + 12);
    INFO(row.formula << " -> " << text);
    CHECK(text.find("()") == std::string::npos);
  }
  CHECK(factored(*parse_poly("2*a*layers + layers + 7"), loops) == "layers*(2*a + 1) + 7");
  CHECK(factored(*parse_poly("24*b*e^2*layers*s + 4*b*e*layers*s^2 + 2*b*e*s*v + 8*b*s + 1"), loops) ==
        "4*layers*b*e*s*(6*e + s) + 2*b*s*(e*v + 4) + 1");
}
