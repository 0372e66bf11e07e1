// SPDX-License-Identifier: Apache-2.0
// Which values follow from numbers of their rows, and that a largest element found row by row is the same number.
#include "compiler/fuse/row_values.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/verify.h"
#include "compiler/simplify/expand.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

Graph primitives(const std::string& text) { return expand(compile_text(text), Roots::inference); }

BoundGraph bound(const Graph& graph) { return bind_graph(graph, {}, std::vector<bool>(graph.size(), true)); }

// Of each output.
std::map<std::string, int> row_axes(const std::string& text) {
  const Graph graph = primitives(text);
  const RowValues rows(bound(graph));
  std::map<std::string, int> axes;
  for (const Output& output : graph.outputs) axes[output.name.str()] = rows.row_axes(output.node);
  return axes;
}

std::string printed(const Tensor& value) {
  std::string text;
  for (const double x : value.reals) text += std::isnan(x) ? "nan " : std::to_string(x) + " ";
  return text;
}

}  // namespace

TEST_CASE("rows: values that follow from a number of their row, and others") {
  const std::map<std::string, int> axes = row_axes(R"(
dim b = 3, s = 4, c = 5
input x: f32[b s c]
input flat: f32[r=12 c]
input line: f32[one=1 c]
input other: f32[c e=12]
input wider: f32[b s w=7]
input number: f32[b s]
output softmax_of_last = softmax(x, c)
output shifted = 2.0 * (x - mean(x, c)) + x
output of_two_axes = x - mean(x, s, c)
output of_columns = x - mean(x, b)
output of_middle = softmax(x, s)
output of_all = x - mean(x)
output statistic = mean(x, c)
output given = x * number
output of_other_rows = flat - mean(other, e)
output of_wider_rows = x - mean(wider, w)
output alone = x * 2.0
output of_one_row = softmax(line, c)
)");
  const std::map<std::string, int> expected{{"softmax_of_last", 1}, {"shifted", 1},       {"of_two_axes", 2}, {"of_columns", 0},
                                            {"of_middle", 0},       {"of_all", 0},        {"statistic", 0},   {"given", 0},
                                            {"of_other_rows", 0},   {"of_wider_rows", 0}, {"alone", 0},       {"of_one_row", 0}};
  CHECK(axes == expected);
}

TEST_CASE("rows: the largest and the least of a value are those of its rows, NaN and infinities as well") {
  const std::string text = R"(
dim b = 3, s = 4, c = 5
input x: f32[b s c]
n = x - max(x, c)
output largest = max(n + x)
output least = min(n)
output of_plain = max(x)
output of_columns = max(x - mean(x, b))
)";
  const Graph graph = primitives(text);
  const RowMaxima divided = divide_maxima(bound(graph));
  REQUIRE(divided.graph);
  CHECK(verify(*divided.graph).empty());
  CHECK(divided.graph->size() == graph.size() + 2);
  CHECK(divided.graph->type(divided.at[graph.outputs[0].node.index]).rank() == 0);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double odd : {0.5, nan, infinity, -infinity}) {
    CAPTURE(odd);
    TensorMap inputs = some_inputs(graph, {});
    for (auto& [name, value] : inputs) value.reals[37] = odd;
    const InterpretResult wanted = interpret(graph, {}, inputs, {}, {}), found = interpret(*divided.graph, {}, inputs, {}, {});
    for (size_t i = 0; i < graph.outputs.size(); ++i) CHECK(printed(found.outputs[i].second) == printed(wanted.outputs[i].second));
  }
}

TEST_CASE("rows: a graph without such maxima stays as it is") {
  const Graph graph = primitives("input x: f32[b=3 c=5]\noutput y = max(x)\noutput z = mean(x - mean(x, c))\n");
  CHECK(!divide_maxima(bound(graph)).graph);
}
