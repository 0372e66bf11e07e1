// SPDX-License-Identifier: Apache-2.0
// The shape of the tree for every form of statement and expression, where statements end, and how mistakes are contained.
#include "dsl/parser.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>

#include "dsl/print_ast.h"
#include "dsl/render.h"

using namespace einc;

namespace {

struct Parsed {
  std::string tree;
  std::string errors;
  size_t error_count = 0;
};

Parsed parse_text(const std::string& text) {
  SourceMap sources;
  Diagnostics diagnostics;
  Parsed out;
  if (const auto file = sources.add("test.ein", text, diagnostics)) out.tree = print_ast(parse(sources, *file, diagnostics));
  out.errors = render_text(sources, diagnostics);
  out.error_count = diagnostics.error_count();
  return out;
}

// What `x = <text>` binds, fully parenthesised.
std::string expression(const std::string& text) {
  const Parsed parsed = parse_text("x = " + text + "\n");
  if (parsed.error_count) return parsed.errors;
  return parsed.tree.substr(4, parsed.tree.size() - 5);
}

}  // namespace

TEST_CASE("the GPT-2 example parses, quickly") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.load(std::string(EINC_SOURCE_DIR) + "/examples/gpt2.ein", diagnostics);
  REQUIRE(file);
  auto best = std::chrono::nanoseconds::max();
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const ast::Program program = parse(sources, *file, diagnostics);
    best = std::min(best, std::chrono::nanoseconds(std::chrono::steady_clock::now() - start));
    CHECK(program.statements.size() == 17);
  }
  CHECK(render_text(sources, diagnostics) == "");
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)  // or qemu
  constexpr int kSlowdown = 20;
#else
  constexpr int kSlowdown = 1;
#endif
  CHECK(best < std::chrono::milliseconds(kSlowdown));
}

TEST_CASE("meshes, and names that are spelt like their words") {
  const auto tree = [](const std::string& text) {
    const Parsed parsed = parse_text(text + "\n");
    return parsed.error_count ? parsed.errors : parsed.tree.substr(0, parsed.tree.size() - 1);
  };
  CHECK(tree("mesh data = 4, model = 2 * k, pod") == "mesh data = 4, model = (2 * k), pod");
  CHECK(tree("shard batch over data") == "shard batch over data");
  CHECK(tree("shard \"h.*.w\"[hidden], heads over model, pod") == "shard \"h.*.w\"[hidden], heads over model, pod");
  CHECK(tree("shard layers over stage (microbatches = 2 * m)") == "shard layers over stage (microbatches = (2 * m))");
  CHECK(tree("mesh = 3") == "mesh = 3");
  CHECK(tree("shard = mesh * 2") == "shard = (mesh * 2)");
  CHECK(tree("mesh(x)") == "mesh(x)");
  CHECK(tree("shard <- mesh") == "shard <- mesh");
  for (const char* text :
       {"shard batch", "shard batch over", "shard over data", "shard \"w\" over data", "shard layers over stage (parts = 2)",
        "shard layers over stage (microbatches)", "shard layers over stage (microbatches = 2", "mesh data =", "fn f(x) { mesh data = 2 }",
        "for i in 2 { shard batch over data }"})
    CHECK_MESSAGE(parse_text(std::string(text) + "\n").error_count == 1, text);
}

TEST_CASE("precedence") {
  const std::pair<const char*, const char*> rows[] = {
      {"a + b * c - d", "((a + (b * c)) - d)"},
      {"a - b - c", "((a - b) - c)"},
      {"a / b * c", "((a / b) * c)"},
      {"a // b * c % d + e", "((((a // b) * c) % d) + e)"},
      {"-a // b^2", "((-a) // (b ^ 2))"},
      {"2^3^4", "(2 ^ (3 ^ 4))"},
      {"-x^2", "(-(x ^ 2))"},
      {"2^-x", "(2 ^ (-x))"},
      {"2^-x^2 * 3", "((2 ^ (-(x ^ 2))) * 3)"},
      {"-a * b", "((-a) * b)"},
      {"a * -b", "(a * (-b))"},
      {"--a", "(-(-a))"},
      {"a + b < c * d", "((a + b) < (c * d))"},
      {"not a == b", "(not (a == b))"},
      {"not a and b", "((not a) and b)"},
      {"a or b and c", "(a or (b and c))"},
      {"a and not b", "(a and (not b))"},
      {"not not a", "(not (not a))"},
      {"(a < b) == c", "((a < b) == c)"},
      {"(a + b) * c", "((a + b) * c)"},
      {"-x[a = 1]", "(-x[a = 1])"},
      {"f(x) as g + 1", "(f(x) as g + 1)"},
      {"f(g(x) as a) as b", "f(g(x) as a) as b"},
      {"a != b or a >= c", "((a != b) or (a >= c))"},
  };
  for (const auto& [text, tree] : rows) {
    CAPTURE(text);
    CHECK(expression(text) == tree);
  }
}

TEST_CASE("values") {
  CHECK(expression("1_000_000") == "1000000");
  CHECK(expression("9223372036854775807") == "9223372036854775807");
  CHECK(expression("6e-4 + .5 + 1. + 1e5") == "(((6e-4 + .5) + 1.) + 1e5)");
  CHECK(expression("(inf, nan, pi, true, false)") == "(inf, nan, pi, true, false, )");
  CHECK(expression("()") == "()");
  CHECK(expression("(1,)") == "(1, )");
  CHECK(expression("((1, 1), 2)") == "((1, 1, ), 2, )");
  CHECK(expression("x[a = 1, b = lo:hi, c = :, d = 2:, e = :-1]") == "x[a = 1, b = lo:hi, c = :, d = 2:, e = :(-1)]");
  CHECK(expression("f(x, y = (1, 1), in = 3,)") == "f(x, y = (1, 1, ), in = 3)");
  CHECK(expression("x[in = 3]") == "x[in = 3]");
}

TEST_CASE("annotations on subexpressions") {
  CHECK(expression("(a - b): [n d m]") == "((a - b)): [n, d, m]");
  CHECK(expression("(a): f32[n, k=2*m ...]") == "(a): f32[n, k=(2 * m), ...]");
  CHECK(expression("2 * (a - b): [n m]^2 + c") == "((2 * (((a - b)): [n, m] ^ 2)) + c)");
  CHECK(expression("-((a): [n])") == "(-(a): [n])");
  CHECK(expression("(a): [n][n = 0]") == "(a): [n][n = 0]");
  CHECK(expression("sum((a - b): [n m], m)") == "sum(((a - b)): [n, m], m)");
  CHECK(expression("x[n = (lo):(hi), m = (lo):2, k = (i): i32[n]]") == "x[n = lo:hi, m = lo:2, k = (i): i32[n]]");
  CHECK(parse_text("fn f(x) { return x + 1: [n] }\n").tree == "fn f(x) {\n  return ((x + 1)): [n]\n}\n");
  CHECK(parse_text("fn f(x) { return (x): [n], x }\n").tree == "fn f(x) {\n  return ((x): [n], x, )\n}\n");
  CHECK(parse_text("fn f(x) { return x, x: [n] }\n").error_count == 1);
  CHECK(parse_text("y = x: [n]\n").error_count == 1);
  CHECK(parse_text("y = f(x): [n]\n").error_count == 1);
  CHECK(parse_text("y = (x):\n").error_count == 1);
}

TEST_CASE("integers keep their value or are refused") {
  const ast::Number largest{ast::NumberKind::integer, "9223372036854775807", 0};
  CHECK(ast::as_int64(largest) == INT64_MAX);
  CHECK(!ast::as_int64({ast::NumberKind::integer, "9223372036854775808", 0}));
  CHECK(!ast::as_int64({ast::NumberKind::real, "1.0", 1.0}));
  for (const char* text : {"9223372036854775808", "10000000000000000000000000000000000000000", "0x10", "0o7", "1__0", "1_", "007", "1e999"})
    CHECK(parse_text(fmt::format("x = {}\n", text)).error_count == 1);
}

TEST_CASE("statements") {
  const char* const text = R"(import "lib/nn.ein"
import nn
dim batch = 8, seq, m = 2*batch/(seq + 1)
input tokens: i32[batch seq]
frozen param w: bf16[a, three=3, k=2*m 4 ...] ~ trunc_normal(mean = 0, std = 0.02, lo = -1, hi = 1)
param b: [] ~ zeros
state s: [seq] ~ zeros
fn f(x: [... c], y: f32[c] = 3, z) {
  return x, y
}
a, b = f(x)
y: [a b] = x
s <- y
s[key = pos] <- y * 2
for i in 2 * m {
  y = y
}
precision bf16
precision f32 {
  output q: [a] = y
}
output r
minimize loss over "h.*" using sgd(lr = 1) over "*" using adam
)";
  const char* const tree = R"(import "lib/nn.ein"
import nn
dim batch = 8, seq, m = ((2 * batch) / (seq + 1))
input tokens: i32[batch, seq]
frozen param w: bf16[a, three=3, k=(2 * m), 4, ...] ~ trunc_normal(mean = 0, std = 0.02, lo = (-1), hi = 1)
param b: [] ~ zeros()
state s: [seq] ~ zeros()
fn f(x: [..., c], y: f32[c] = 3, z) {
  return (x, y, )
}
a, b = f(x)
y: [a, b] = x
s <- y
s[key = pos] <- (y * 2)
for i in (2 * m) {
  y = y
}
precision bf16
precision f32 {
  output q: [a] = y
}
output r
minimize loss over "h.*" using sgd(lr = 1) over "*" using adam()
)";
  const Parsed parsed = parse_text(text);
  CHECK(parsed.errors == "");
  CHECK(parsed.tree == tree);
}

TEST_CASE("where a statement ends") {
  CHECK(parse_text("x = 1; y = 2;; z = 3").tree == "x = 1\ny = 2\nz = 3\n");
  CHECK(parse_text("x = 1 +\n\n  # why\n  2").tree == "x = (1 + 2)\n");
  CHECK(parse_text("x = f(1,\n2\n,3)\n").tree == "x = f(1, 2, 3)\n");
  CHECK(parse_text("x = y[a\n= 1\n]\n").tree == "x = y[a = 1]\n");
  CHECK(parse_text("x =\n3").tree == "x = 3\n");
  CHECK(parse_text("minimize loss using\n  sgd").tree == "minimize loss using sgd()\n");
  CHECK(parse_text("fn f(x) { y = x; return y }").tree == "fn f(x) {\n  y = x\n  return y\n}\n");
  CHECK(parse_text("x = 1\n  + 2\n").error_count == 1);
  CHECK(parse_text("x = 1 y = 2\n").error_count == 1);
  CHECK(parse_text("# comment at the end of the file").error_count == 1);  // nothing to compile
  CHECK(parse_text("x = 1 # comment").tree == "x = 1\n");
  CHECK(parse_text("x = 1\r\ny = 2\r\n").tree == "x = 1\ny = 2\n");
  CHECK(parse_text("\xEF\xBB\xBFx = 1").tree == "x = 1\n");
}

TEST_CASE("one mistake does not hide the rest of the file") {
  const Parsed parsed = parse_text("dim a = )\nx = 3\ny = (1\nfn f(x) {\n  z = ]\n  w = x\n  return w\n}\nq = f(3\ninput r: f32[a]\n");
  CHECK(parsed.error_count == 4);
  CHECK(parsed.tree == "x = 3\ny = <invalid>\nfn f(x) {\n  z = <invalid>\n  w = x\n  return w\n}\nq = <invalid>\ninput r: f32[a]\n");
}

TEST_CASE("dims know what they are") {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("test.ein", "dim a, b = 2*4, c = b", diagnostics);
  const ast::Program program = parse(sources, *file, diagnostics);
  const auto& items = program.statements[0].as<ast::DimDecl>()->items;
  CHECK(items[0].kind == ast::DimKind::free);
  CHECK(items[1].kind == ast::DimKind::defaulted);
  CHECK(items[2].kind == ast::DimKind::derived);
}

TEST_CASE("limits on nesting hold at L and fail at L + 1") {
  const auto repeat = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  const auto brackets = [&](int n) { return "x = " + repeat("(", n) + "1" + repeat(")", n); };
  CHECK(parse_text(brackets(256)).error_count == 0);
  CHECK(parse_text(brackets(257)).error_count == 1);
  const auto blocks = [&](int n) { return repeat("for i in 2 {", n) + "x = 1" + repeat("}", n); };
  CHECK(parse_text(blocks(256)).error_count == 0);
  CHECK(parse_text(blocks(257)).error_count == 1);
  for (const char* chain : {"-", "not ", "2^", "2+"}) {
    CHECK(parse_text("x = " + repeat(chain, 255) + "1").error_count == 0);
    CHECK(parse_text("x = " + repeat(chain, 256) + "1").error_count == 1);
  }
  const auto groups = [&](int n) { return "x = rearrange(y, \"" + repeat("(", n) + "a b" + repeat(")", n) + " -> a b\")"; };
  CHECK(parse_text(groups(256)).error_count == 0);
  CHECK(parse_text(groups(257)).error_count == 1);
}

TEST_CASE("hostile text ends quickly with few messages") {
  const auto repeat = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  for (const char* text :
       {"(",    "[", "{", "}", ")",         "f(",   "x[a=",      "-",     "not ", "2^",  "for i in 2 {", "fn f(",    "$ ",     "\"",
        "a b ", ";", ",", "=", "x = 3 +\n", "dim ", "minimize ", "over ", "<- ",  "...", "....",         "((((]]]]", "if x { "}) {
    CAPTURE(text);
    const Parsed parsed = parse_text(repeat(text, 20000));
    CHECK(parsed.error_count >= 1);
    CHECK(parsed.errors.size() <= kMaxRenderedBytes);
  }
}
