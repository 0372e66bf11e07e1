// Human units, tables and wrapped formulas.
#include <doctest/doctest.h>

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

TEST_CASE("formulas break between terms only") {
  CHECK(wrap_formula("2*a*b + 3*c", 80) == std::vector<std::string>{"2*a*b + 3*c"});
  CHECK(wrap_formula("2*a*b + 3*c", 8) == std::vector<std::string>{"2*a*b", "  + 3*c"});
  CHECK(wrap_formula("floor((a + b)/2) - 1", 5) == std::vector<std::string>{"floor((a + b)/2)", "  - 1"});
  CHECK(wrap_formula("", 5).empty());
}

TEST_CASE("tables line up") {
  Table table({Align::left, Align::right, Align::left});
  table.add({"a", "1", "x"});
  table.add({"long", "1,000", ""});
  CHECK(table.lines(80) == std::vector<std::string>{"  a         1  x", "  long  1,000"});
}
