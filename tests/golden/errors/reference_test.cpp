// The programs in the language reference compile without a message, and are formatted.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "compiler/elaborate/elaborate.h"
#include "dsl/format.h"
#include "dsl/render.h"

using namespace einc;

TEST_CASE("the reference's programs compile") {
  std::ifstream in(std::string(EINC_SOURCE_DIR) + "/dsl/reference.md");
  std::ostringstream content;
  content << in.rdbuf();
  const std::string text = content.str();
  int programs = 0;
  for (size_t at = text.find("```ein\n"); at != std::string::npos; at = text.find("```ein\n", at)) {
    at += 7;
    const std::string program = text.substr(at, text.find("```", at) - at);
    CAPTURE(program);
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.add("reference.ein", program, diagnostics);
    REQUIRE(file);
    CHECK(elaborate(sources, *file, {}, diagnostics).has_value());
    CHECK(format(sources, *file, diagnostics).value_or("") == program);
    CHECK(render_text(sources, diagnostics) == "");
    ++programs;
  }
  CHECK(programs >= 6);
}
