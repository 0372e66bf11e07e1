// The example of the language contract, and the shape of the tree for each form of statement and expression.
#include "dsl/parser.h"

#include <doctest/doctest.h>

#include "dsl/render.h"

using namespace einc;

TEST_CASE("the GPT-2 example parses") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.load(std::string(EINC_SOURCE_DIR) + "/examples/gpt2.ein", diagnostics);
  REQUIRE(file);
  const ast::Program program = parse(sources, *file, diagnostics);
  CHECK(render_text(sources, diagnostics) == "");
  CHECK(program.statements.size() == 17);
}
