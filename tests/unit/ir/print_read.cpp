// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/print.h"
#include "compiler/ir/read.h"

#include <doctest/doctest.h>

#include <set>

#include "compiler/ir/verify.h"
#include "sample_graph.h"

using namespace einc;

namespace {

std::string reread(const std::string& text) {
  auto result = read_graph(text);
  if (const auto* error = std::get_if<GraphReadError>(&result)) return "line " + std::to_string(error->line) + ": " + error->message;
  return print_graph(std::get<Graph>(result));
}

std::string error_of(const std::string& text) {
  auto result = read_graph(text);
  const auto* error = std::get_if<GraphReadError>(&result);
  return error == nullptr ? "" : error->message;
}

}  // namespace

TEST_CASE("print: the sample holds every op") {
  std::set<Op> seen;
  for (const Node& node : sample_graph().nodes) seen.insert(node.op);
  for (int op = 0; op <= static_cast<int>(Op::training); ++op)
    CHECK_MESSAGE(seen.count(static_cast<Op>(op)) == 1, to_string(static_cast<Op>(op)));
}

TEST_CASE("print: what is printed reads back to the same graph") {
  const Graph graph = sample_graph();
  const std::string text = print_graph(graph);
  REQUIRE(reread(text) == text);
  const Graph again = std::get<Graph>(read_graph(text));
  REQUIRE(again.size() == graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node &a = graph.nodes[i], &b = again.nodes[i];
    CHECK(a.type == b.type);
    CHECK(a.operands == b.operands);
    CHECK(a.origin == b.origin);
    CHECK(a.reason == b.reason);
    // NaN is not equal to itself, and a body that was read is another one of the same text.
    if (a.op != Op::constant && a.op != Op::scan) CHECK(a.attr == b.attr);
  }
  CHECK(again.dims == graph.dims);
  CHECK(verify(again) == std::vector<std::string>{});
}

TEST_CASE("print: a mesh and what it splits") {
  Graph graph = sample_graph();
  graph.mesh.axes = {{Name("data"), Poly(4)}, {Name("model"), Poly(2) * Poly::dim(Name("width"))}};
  graph.mesh.requests = {{Op::input, Name("x"), 0, {0}}, {Op::param, Name("h.0.w \"q\""), 1, {1, 0}}};
  graph.mesh.params = {0};
  graph.mesh.stages = {1, Name("layers"), Poly(4) * Poly::dim(Name("width"))};
  const std::string text = print_graph(graph);
  CHECK(text.find("mesh \"model\" (2*width)\nshard input \"x\" axis=0 over=[0]\n") != std::string::npos);
  REQUIRE(reread(text) == text);
  CHECK(std::get<Graph>(read_graph(text)).mesh == graph.mesh);
  CHECK(error_of("graph \"g\"\nmesh \"data\" (4)\nshard input \"x\" axis=0 over=[1]\n") == "the mesh has no axis 1");
  CHECK(error_of("graph \"g\"\nmesh \"data\" (4)\nshard map \"x\" axis=0 over=[0]\n") == "an input, param, state or draw is split");
}

TEST_CASE("print: a line looks as documented") {
  const std::string text = print_graph(sample_graph());
  CHECK(text.find("graph \"models/sample \\\"q\\\".ein\" policy=bf16\n") == 0);
  CHECK(text.find("dim batch = 2 source=4\n") != std::string::npos);
  CHECK(text.find("dim hidden := (4*width) source=2\n") != std::string::npos);
  CHECK(text.find("%0 = input real[batch seq width] name=\"x\" | forward at=\"models/sample.ein\":12:3-17\n") != std::string::npos);
  CHECK(text.find("= constant real[] value=(width^-1) | forward module=\"h.0.attn\"") != std::string::npos);
  CHECK(text.find("= contract real[batch seq hidden=4*width] %") != std::string::npos);
  CHECK(text.find(" left=[0 1 3] right=[3 2] | backward\n") != std::string::npos);
}

TEST_CASE("print: notes are comments that the reader skips") {
  const Graph graph = sample_graph();
  const std::string noted = print_graph(graph, [](NodeId id) { return id.index % 2 == 0 ? "flops=12 \"\n%9" : ""; });
  CHECK(noted.find("  # flops=12") != std::string::npos);
  CHECK(reread(noted) == print_graph(graph));
}

TEST_CASE("read: hostile text is refused with a reason, never taken") {
  const std::string head = "graph \"g\"\n", x = "%0 = input real[a=2 b=3] name=\"x\" | forward\n";
  std::string axes, labels;
  for (int i = 0; i < 33; ++i) {
    axes += " a=1";
    labels += " 0";
  }
  const std::pair<std::string, std::string> cases[] = {
      {"", "expected a line"},
      {"dim a", "expected 'graph'"},
      {head + "what 1", "starts no line"},
      {head + "dim 3", "name of a dim"},
      {head + "dim a\ndim a", "declared twice"},
      {head + "dim a := (b)", "no base dim"},
      {head + "condition divides (1) (0) \"\"", "divides by zero"},
      {head + "condition huge (1) (2) \"\"", "is no condition"},
      {head + "dim a = 99999999999999999999", "64 bits"},
      {head + "%1 = input real[] name=\"x\" | forward", "expected node %0"},
      {head + "%0 = frob real[] | forward", "is no op"},
      {head + "%0 = input what[] name=\"x\" | forward", "is no dtype"},
      {head + "%0 = input real[" + axes + "] name=\"x\" | forward", "more than 32 axes"},
      {head + "%0 = input real[a=(1] name=\"x\" | forward", "expected ')'"},
      {head + "%0 = input real[a=(1+*)] name=\"x\" | forward", "is no size"},
      {head + "%0 = input real[] name=\"x | forward", "not closed"},
      {head + "%0 = input real[] name=\"\\xZZ\" | forward", "bad \\x"},
      {head + "%0 = input real[] name=\"x\" | sideways", "is no phase"},
      {head + "%0 = input real[] name=\"x\" | forward trailing", "something is left"},
      {head + "%0 = input real[] name=\"x\" | forward context=1", "0 to 0"},
      {head + x + "%1 = cast f32[a=2 b=3] %1 | forward", "0 to 0"},
      {head + x + "%1 = cast f32[a=2 b=3] %99999999999 | forward", "0 to 0"},
      {head + x + "%1 = permute real[a=2] %0 order=[" + labels + "] | forward", "more than 32 axes"},
      {head + x + "%1 = permute real[a=2] %0 order=[300] | forward", "0 to 254"},
      {head + x + "%1 = map add real[a=2] %0 %0 %0 %0 | forward", "more than three"},
      {head + x + "%1 = cumulate sum real[a=2] %0 axis=99 | forward", "0 to 31"},
      {head + "output \"y\" %0", "does not exist"},
      {head + "loss %0", "does not exist"},
      {head + "context parent=0 loop=0 iteration=0", "nothing to refer to"},
      {head + "plan \"a\" \"b\" (1)", "expected '\"'"},
      {head + std::string(100000, '('), "expected a word"},
      {head + "loop trips=" + std::string(100000, '(') + " count=1", "expected ')'"},
  };
  for (const auto& [text, reason] : cases)
    CHECK_MESSAGE(error_of(text).find(reason) != std::string::npos, text.substr(0, 200), " gave: ", error_of(text));
}

TEST_CASE("read: every prefix and every changed byte of a graph gives a graph or an error") {
  const std::string text = print_graph(sample_graph());
  for (size_t i = 0; i < text.size(); i += 7) {
    read_graph(std::string_view(text).substr(0, i));
    for (const char c : {'9', '(', '"', '\0', ' ', '\n', '%'}) {
      std::string changed = text;
      changed[i] = c;
      const auto result = read_graph(changed);
      if (const auto* graph = std::get_if<Graph>(&result)) {
        verify(*graph);
        print_graph(*graph);
      }
    }
  }
}
