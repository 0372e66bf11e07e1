// SPDX-License-Identifier: Apache-2.0
// rename(x, old = new), and the bundled layers' axes, which keep the caller's names at other sizes.
#include "tests/unit/elaborate/support.h"

using namespace einc;

namespace {

const std::string kImage = "import nn\ndim b = 2, y = 8, x = 6, c = 3, o = 4\ninput i: [b y x c]\n";

std::string output_axes(const std::string& program) {
  const Compiled c(kImage + program);
  CAPTURE(program);
  CAPTURE(c.said);
  REQUIRE(c.graph);
  std::string text;
  for (const Axis& axis : c.output().type.axes)
    text += (text.empty() ? "" : " ") + axis.name.str() + "=" +
            std::to_string(axis.size.evaluate_integer(c.graph->dims.bind({}).values).value());
  return text;
}

}  // namespace

TEST_CASE("rename: one axis under another name") {
  CHECK(output_axes("output r = rename(i, y = rows, c = channels)") == "b=2 rows=8 x=6 channels=3");
  CHECK(output_axes("r = rename(i, y = rows)\noutput s = rename(r + iota(rows), rows = y)") == "b=2 y=8 x=6 c=3");
  CHECK(output_axes("rename = 3\noutput r = i * rename") == "b=2 y=8 x=6 c=3");
  CHECK(output_axes("fn rename(x) { return 2 * x }\noutput r = rename(i)") == "b=2 y=8 x=6 c=3");
  const auto fails = [](const std::string& program, Code code, std::string_view at) {
    const Compiled c(kImage + "output r = " + program);
    CAPTURE(c.said);
    CHECK(c.only(code, at));
  };
  fails("rename(i, y = x, x = y)", Code::axis_is_declared, "x");
  fails("rename(i, y = c)", Code::axis_is_declared, "c");
  fails("rename(i, k = rows)", Code::no_such_axis, "k");
  fails("rename(i, y = 3)", Code::axis_name_expected, "3");
  fails("rename(i)", Code::builtin_arguments, "rename(i)");
  fails("rename(i, y = rows, x = rows)", Code::axis_exists, "rename(i, y = rows, x = rows)");
}

TEST_CASE("layers keep the caller's axis names") {
  const std::pair<const char*, const char*> rows[] = {
      {"conv(i, o)", "b=2 y=6 x=4 o=4"},
      {"conv(i, o, padding = 1)", "b=2 y=8 x=6 o=4"},
      {"conv(i, 7, kernel = 2, stride = 2)", "b=2 y=4 x=3 features=7"},
      {"conv(i, c, padding = 1) + i", "b=2 y=8 x=6 c=3"},
      {"conv_transpose(i, o, kernel = 2, stride = 2)", "b=2 y=16 x=12 o=4"},
      {"conv_transpose(i, o, padding = 1)", "b=2 y=8 x=6 o=4"},
      {"max_pool(i)", "b=2 y=4 x=3 c=3"},
      {"avg_pool(i, 3, stride = 1)", "b=2 y=6 x=4 c=3"},
      {"max_pool(conv(i, o, padding = 1))", "b=2 y=4 x=3 o=4"},
      {"batch_norm(i)", "b=2 y=8 x=6 c=3"},
      {"group_norm(i, 3)", "b=2 y=8 x=6 c=3"},
      {"attention(i, 2, 3)", "b=2 y=8 x=6 c=3"},
      {"attention(i, 2, 3, causal = true)", "b=2 y=8 x=6 c=3"},
      {"cross_attention(i, i, 2, 3)", "b=2 y=8 x=6 c=3"},
      {"dropout_path(i, 0.1)", "b=2 y=8 x=6 c=3"},
  };
  for (const auto& [call, axes] : rows) CHECK(output_axes(std::string("output r = ") + call) == axes);
}
