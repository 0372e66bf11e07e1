// SPDX-License-Identifier: Apache-2.0
// Patterns on symbolic sizes: result types, what is required when dims are bound, which graph nodes a pattern becomes, and
// the exact place and kind of every message.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/elaborate.h"
#include "compiler/simplify/simplify.h"

namespace einc {
namespace {

const std::string kPrelude = R"(dim batch, seq, free
dim heads = 12, head = 64
dim embed = heads * head
dim key = 5
input x: f32[batch seq embed]
input w: f32[embed, three=3, heads, head]
input square: f32[seq seq]
input v: f32[embed]
input image: f32[batch y=32 z=30 c=3]
input kernel: f32[ky=5 kz=3 c=3 o=8]
input odd: f32[n=10]
input line: f32[free]
input flags: bool[batch seq]
input ids: i32[batch seq]
)";

struct Compiled {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<Graph> graph;
  std::string text;
};

void compile(const std::string& statements, Compiled& out) {
  out.text = kPrelude + statements + "\n";
  const auto file = out.sources.add("pattern.ein", out.text, out.diagnostics);
  REQUIRE(file);
  out.graph = elaborate(out.sources, *file, {}, out.diagnostics);
}

std::string messages(const Compiled& compiled) {
  std::string text;
  for (const Diagnostic& d : compiled.diagnostics.list()) text += fmt::format("{}: {} ({})\n", info(d.code).code, d.message, d.hint);
  return text;
}

std::string result_type(const Graph& graph) { return to_string(graph.type(graph.outputs.at(0).node)); }

size_t count_ops(const Graph& graph, Op op) {
  return static_cast<size_t>(std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.op == op; }));
}

TEST_CASE("result types") {
  struct Row {
    std::string expression, type;
  };
  const Row rows[] = {
      {"einsum(x, w, \"batch seq embed, embed three heads head -> three batch heads seq head\")", "f32[three=3 batch heads seq head]"},
      {"einsum(x, v, \"... embed, embed -> ...\")", "f32[batch seq]"},
      {"einsum(x, w, \"b s (h d), e t h d -> b s e t h\")", "f32[b=batch s=seq e=head*heads t=3 h=heads]"},
      {"rearrange(x, \"batch seq (heads head) -> batch heads seq head\")", "f32[batch heads seq head]"},
      {"rearrange(x, \"b s (h d) -> b h s d\", h=heads)", "f32[b=batch h=heads s=seq d=head]"},
      {"rearrange(x, \"batch seq embed -> (batch seq) embed\")", "f32[(batch seq)=batch*seq embed=head*heads]"},
      {"rearrange(x, \"... e -> e (...)\")", "f32[e=head*heads (batch seq)=batch*seq]"},
      {"rearrange(x, \"b s ((t u) v) -> (s b) (t u v)\", t=heads, u=8)", "f32[(s b)=batch*seq (t u v)=head*heads]"},
      {"reduce(x, \"batch seq embed -> batch\", \"mean\")", "f32[batch]"},
      {"reduce(x, \"... -> \", \"max\")", "f32[]"},
      {"reduce(x, \"b s e -> b 1 e\", \"sum\")", "f32[b=batch 1 e=head*heads]"},
      {"reduce(line, \"(a 2) -> a\", \"max\")", "f32[a=1/2*free]"},
      {"reduce(flags, \"b s -> b\", \"any\")", "bool[b=batch]"},
      {"repeat(v, \"embed -> embed key\")", "f32[embed=head*heads key]"},
      {"repeat(v, \"e -> (e n) m\", n=2, m=seq)", "f32[(e n)=2*head*heads m=seq]"},
      {"einsum(square, \"s s -> s\")", "f32[s=seq]"},
      {"einsum(square, \"s s ->\")", "f32[]"},
      {"einsum(image, kernel, \"b (y + ky) (z + kz) c, ky kz c o -> b y z o\")", "f32[b=batch y=28 z=28 o=8]"},
      {"einsum(image, kernel, \"b (2*y + ky) (3*z + 2*kz) c, ky kz c o -> b y z o\")", "f32[b=batch y=14 z=9 o=8]"},
      {"reduce(image, \"b (2*y + ky) (2*z + kz) c -> b y z c\", \"max\", ky=2, kz=2)", "f32[b=batch y=16 z=15 c=3]"},
      {"reduce(line, \"(stride*y + ky) -> y\", \"sum\", stride=2, ky=3)", "f32[y=(floor((free + 1)/2) - 1)]"},
      {"rearrange(line, \"(2*y) -> y\")", "f32[y=(floor((free + 1)/2))]"},
      {"pack(x, v, \"* embed\")", "f32[(batch*seq + 1) embed=head*heads]"},
      {"pack(x, line, \"*\")", "f32[(batch*head*heads*seq + free)]"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expression);
    Compiled compiled;
    compile(fmt::format("output r = {}", row.expression), compiled);
    INFO(messages(compiled));
    REQUIRE(compiled.graph);
    std::string type = result_type(*compiled.graph);
    CHECK(type == row.type);
  }
}

TEST_CASE("messages: kind and place") {
  struct Row {
    std::string expression;
    Code code;
    std::string at;  // text under the caret
  };
  const Row rows[] = {
      {"einsum(x, v, \"batch seq embed, seq -> batch\")", Code::pattern_size, "seq"},
      {"einsum(x, v, \"a b c, b -> a\")", Code::pattern_size, "b"},
      {"einsum(x, \"a b, b -> a\")", Code::pattern_operand_count, "a b, b -> a"},
      {"einsum(x, v, \"a b, c -> a\")", Code::pattern_rank, "a b"},
      {"rearrange(x, \"a b c d ... -> ... d c b a\")", Code::pattern_rank, "a b c d ..."},
      {"rearrange(x, \"seq b c -> b c seq\")", Code::pattern_size, "seq"},
      {"rearrange(odd, \"(h d) -> h d\", h=3)", Code::pattern_division, "(h d)"},
      {"rearrange(odd, \"(h d) -> h d\", h=5, d=3)", Code::pattern_group, "(h d)"},
      {"rearrange(odd, \"(h d) -> h d\")", Code::pattern_undetermined, "(h d)"},
      {"rearrange(odd, \"n -> n\", m=3)", Code::pattern_unused_size, "m=3"},
      {"rearrange(odd, \"n -> n\", n=3)", Code::pattern_size, "n"},
      {"rearrange(line, \"(heads d) -> heads d\", heads=3)", Code::pattern_given_size, "heads=3"},
      {"rearrange(line, \"(h d) -> h d\", h=0)", Code::pattern_given_size, "h=0"},
      {"rearrange(odd, \"1 -> 1\")", Code::pattern_literal_size, "1"},
      {"reduce(odd, \"9 -> \", \"sum\")", Code::pattern_literal_size, "9"},
      {"reduce(odd, \"n -> \", \"median\")", Code::unknown_reduction, "median"},
      {"repeat(odd, \"n -> n copies\")", Code::pattern_new_axis, "copies"},
      {"einsum(square, x, \"s s, t u v -> s\", u=7)", Code::pattern_size, "u"},
      {"einsum(image, kernel, \"b (y + ky) (z + 20*kz) c, ky kz c o -> b y z o\")", Code::pattern_window_room, "(z + 20*kz)"},
      {"reduce(odd, \"(y + ky) -> y\", \"max\", ky=11)", Code::pattern_window_room, "(y + ky)"},
      {"reduce(odd, \"(y + key) -> y\", \"max\", y=9)", Code::pattern_window_size, "(y + key)"},
      {"reduce(odd, \"(y + k) -> y\", \"max\")", Code::pattern_undetermined, "(y + k)"},
      {"reduce(odd, \"(step*y + k) -> y\", \"max\", k=2)", Code::pattern_stride, "step"},
      {"einsum(\"a b c -> a\", x)", Code::pattern_call, "einsum(\"a b c -> a\", x"},
      {"reduce(x, \"a b c -> a\")", Code::pattern_call, "reduce(x, \"a b c -> a\""},
      {"pack(x, v, \"seq *\")", Code::pattern_size, "seq"},
      {"pack(x, odd, \"a b *\")", Code::pattern_rank, "a b *"},
      {"like(x)", Code::pattern_pieces, "like"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expression);
    Compiled compiled;
    compile(fmt::format("output r = {}", row.expression), compiled);
    INFO(messages(compiled));
    CHECK_FALSE(compiled.graph);
    REQUIRE(compiled.diagnostics.error_count() == 1);
    const Diagnostic& d = compiled.diagnostics.list()[0];
    CHECK(info(d.code).identifier == info(row.code).identifier);
    CHECK(std::string(compiled.sources.text(d.span)) == row.at);
  }
}

TEST_CASE("a division that only values decide is required when dims are bound") {
  Compiled compiled;
  compile("output r = rearrange(line, \"(a b) -> a b\", b=4)", compiled);
  REQUIRE(compiled.graph);
  bool found = false;
  for (const Condition& c : compiled.graph->dims.conditions())
    found = found || (c.kind == ConditionKind::divides && c.left == Poly::dim("free") && c.right == Poly(4));
  CHECK(found);
  CHECK_FALSE(compiled.graph->dims.bind({{"batch", 1}, {"seq", 1}, {"free", 10}}).ok());
  CHECK(compiled.graph->dims.bind({{"batch", 1}, {"seq", 1}, {"free", 12}}).ok());
}

TEST_CASE("nodes: contractions only where something is summed, no transposes around them") {
  struct Row {
    std::string expression;
    size_t contracts, maps, reduces, permutes;
  };
  const Row rows[] = {
      {"einsum(x, w, \"... embed, embed three heads head -> three ... heads head\")", 1, 0, 0, 0},
      {"einsum(x, v, \"b s e, e -> e b s\")", 0, 1, 0, 0},
      {"einsum(x, v, \"b s e, e -> e b\")", 0, 1, 1, 0},
      {"einsum(x, x, \"b s e, b t e -> b s t\")", 1, 0, 0, 0},
      {"einsum(x, \"b s e -> e\")", 0, 0, 1, 0},
      {"einsum(x, \"b s e -> e s b\")", 0, 0, 0, 1},
      {"einsum(x, x, v, \"b s e, b t e, e -> b s t\")", 1, 1, 0, 0},
      {"einsum(square, square, square, square, \"a b, b c, c d, d e -> a e\")", 3, 0, 0, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.expression);
    Compiled compiled;
    compile(fmt::format("output r = {}", row.expression), compiled);
    INFO(messages(compiled));
    REQUIRE(compiled.graph);
    CHECK(count_ops(*compiled.graph, Op::contract) == row.contracts);
    CHECK(count_ops(*compiled.graph, Op::map) == row.maps);
    CHECK(count_ops(*compiled.graph, Op::reduce) == row.reduces);
    CHECK(count_ops(*compiled.graph, Op::permute) == row.permutes);
  }
}

TEST_CASE("an einsum of three operands leaves its plan") {
  Compiled compiled;
  compile("output r = einsum(x, w, v, \"b s e, e t h d, e -> b s t\")", compiled);
  REQUIRE(compiled.graph);
  REQUIRE(compiled.graph->plans.size() == 1);
  const ContractionPlan& plan = compiled.graph->plans[0];
  CHECK(plan.pattern == "b s e, e t h d, e");
  CHECK(plan.method == "exact");
  CHECK(plan.order.find("b s e") != std::string::npos);
}

TEST_CASE("the gradient of a chain of N operands takes O(N) contractions") {
  for (const size_t n : {3u, 6u, 12u}) {
    std::string program = "dim side = 4\n", names, terms;
    for (size_t i = 0; i < n; ++i) {
      program += fmt::format("param m{}: [i{}=4, i{}=4] ~ normal(std = 1.0)\n", i, i, i + 1);
      names += fmt::format("m{}, ", i);
      terms += fmt::format("{}i{} i{}", i == 0 ? "" : ", ", i, i + 1);
    }
    program += fmt::format("product = einsum({}\"{} -> i0 i{}\")\nloss = sum(product^2)\n", names, terms, n);
    for (size_t i = 0; i < n; ++i) program += fmt::format("output g{} = grad(loss, m{})\n", i, i);
    Compiled compiled;
    compile(program, compiled);
    INFO(messages(compiled));
    REQUIRE(compiled.graph);
    const Graph shared = simplify(*compiled.graph, Roots::training);
    CHECK(count_ops(shared, Op::contract) == 3 * (n - 1));
  }
}

TEST_CASE("limits: 32 axes, 256 operands") {
  const auto pattern_of = [](int axes) {
    std::string left = "embed ->";
    for (int i = 0; i < axes - 1; ++i) left += fmt::format(" a{}", i);
    return left + " embed";
  };
  const auto sizes_of = [](int axes) {
    std::string text;
    for (int i = 0; i < axes - 1; ++i) text += fmt::format(", a{}=2", i);
    return text;
  };
  Compiled at, above;
  compile(fmt::format("output r = repeat(v, \"{}\"{})", pattern_of(32), sizes_of(32)), at);
  CHECK(at.graph);
  compile(fmt::format("output r = repeat(v, \"{}\"{})", pattern_of(33), sizes_of(33)), above);
  REQUIRE(above.diagnostics.error_count() == 1);
  CHECK(above.diagnostics.list()[0].code == Code::pattern_axes);

  const auto product_of = [](int count) {
    std::string tensors, terms;
    for (int i = 0; i < count; ++i) {
      tensors += "v, ";
      terms += i == 0 ? "e" : ", e";
    }
    return fmt::format("output r = einsum({}\"{} -> e\")", tensors, terms);
  };
  Compiled many, too_many;
  compile(product_of(256), many);
  CHECK(many.graph);
  compile(product_of(257), too_many);
  REQUIRE(too_many.diagnostics.error_count() == 1);
  CHECK(too_many.diagnostics.list()[0].code == Code::einsum_too_many_operands);
}

TEST_CASE("pack and unpack are inverse in types") {
  Compiled compiled;
  compile("p = pack(x, v, \"* embed\")\na, b = unpack(p, like(x), like(v), \"* embed\")\noutput a\noutput b", compiled);
  INFO(messages(compiled));
  REQUIRE(compiled.graph);
  CHECK(to_string(compiled.graph->type(compiled.graph->outputs[0].node)) == "f32[batch seq embed=head*heads]");
  CHECK(to_string(compiled.graph->type(compiled.graph->outputs[1].node)) == "f32[embed=head*heads]");
}

}  // namespace
}  // namespace einc
