// SPDX-License-Identifier: Apache-2.0
// Fns, instances, loops, imports.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/unit/elaborate/support.h"

using namespace einc;

TEST_CASE("axes of the caller are distinct from the fn's own names") {
  const std::string head = "dim n = 4, d = 8\ninput x: f32[n d]\ninput z: f32[c=8 n]\n";
  // the fn's c is bound to the caller's n; the ellipsis axis is the caller's c
  const Compiled c(head + "fn f(x: [... c]) { return sum(x, c) }\noutput y = f(z)");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  REQUIRE(c.output().type.rank() == 1);
  CHECK(c.output().type.axis(0).name == Name("c"));
  CHECK(c.output().type.axis(0).size == Poly(8));
  // a bound axis takes back the caller's name, a local one keeps its own
  const Compiled d(head + "fn g(x: [a b]) { param w: [b out=3] ~ ones\n return einsum(x, w, \"a b, b out -> out a\") }\noutput y = g(x)");
  CHECK(d.said == "");
  REQUIRE(d.graph);
  CHECK(d.output().type.axis(0).name == Name("out"));
  CHECK(d.output().type.axis(1).name == Name("n"));
  // two ellipses with the same axes line up
  const Compiled e(head + "fn add(a: [...], b: [...]) { return a + b }\noutput y = add(x, rearrange(x, \"n d -> d n\"))");
  CHECK(e.said == "");
  CHECK(e.output().type.axis(0).name == Name("n"));
}

TEST_CASE("an argument without a type lines up with what the signature binds") {
  const Compiled c("dim n = 4, d = 8\ninput x: f32[n d]\nparam w: [d] ~ ones\nfn f(x: [... c], w) { return x * w }\noutput y = f(x, w)");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  CHECK(c.output().type.rank() == 2);
}

TEST_CASE("signatures check sizes") {
  const std::string head = "dim n = 4, c = 8\ninput x: f32[n c]\n";
  CHECK(Compiled(head + "fn f(x: [c]) { return x }\noutput y = f(x)").only(Code::argument_rank, "x"));
  CHECK(Compiled(head + "fn f(x: [c n]) { return x }\noutput y = f(x)").only(Code::axes_transposed, "x"));
  CHECK(Compiled(head + "fn f(x: [k=5 l=6]) { return x }\noutput y = f(x)").diagnostics.error_count() == 2);
  CHECK(Compiled(head + "fn f(x: [a a]) { return x }\noutput y = f(x)").only(Code::argument_size, "x"));
  CHECK(Compiled(head + "fn f(x: [a b], k) { return x * k }\noutput y = f(x)").only(Code::missing_argument, "f"));
  CHECK(Compiled(head + "fn f(x: [a b], k = 2) { return x * k }\noutput y = f(x, k = 3)").said == "");
  CHECK(Compiled(head + "fn f(x: [a b], k = 2) { return x * k }\noutput y = f(x, 3, 4)").only(Code::too_many_arguments, "4"));
  CHECK(Compiled(head + "fn f(x: [a b], k = 2) { return x * k }\noutput y = f(x, kk = 4)").only(Code::unknown_argument, "kk"));
  CHECK(Compiled(head + "param w: [c] ~ ones\nfn f(x: [a b]) { return x * w }\noutput y = f(x)").only(Code::unknown_name, "w"));
}

TEST_CASE("an argument is a size inside") {
  const Compiled c(
      "dim n = 4\ninput x: f32[n]\nfn f(x: [a], k) { param w: [a, out=2*k] ~ ones\n return einsum(x, w, \"a, a out -> out\") }\noutput y = "
      "f(x, n)");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  CHECK(c.output().type.axis(0).size == Poly(2) * Poly::dim(Name("n")));
}

TEST_CASE("instance paths") {
  const std::string head =
      "dim n = 4, layers = 2\ninput x: f32[n]\nfn lin(x: [n]) { param w: [n] ~ ones\n return x * w }\n"
      "fn two(x: [n]) { y = lin(x) as a\n return lin(y) as b }\n";
  const Compiled c(head +
                   "h = x\nfor i in layers { h = two(h) as block\n for j in 2 { param p: [n] ~ zeros\n h = lin(h) + p } }\noutput h");
  CHECK(c.said == "");
  REQUIRE(c.graph);
  for (const char* path : {"block.0.a.w", "block.1.b.w", "lin.0.1.w", "p.1.0"}) CHECK_MESSAGE(c.param(path), path);
  CHECK(c.graph->loops.size() == 2);
  CHECK(c.graph->loops[0].trip_count == Poly::dim(Name("layers")));
  CHECK(Compiled(head + "output y = lin(x) + lin(x)").has(Code::duplicate_path));
  CHECK(Compiled(head + "output y = (lin(x) as p) + lin(x) as q").said == "");
}

TEST_CASE("loops") {
  const std::string head = "dim n = 4, free\ninput x: f32[n]\nh = x\n";
  CHECK(Compiled(head + "for i in free { h = h + i }\noutput h").only(Code::free_trip_count, "free"));
  CHECK(Compiled(head + "for i in n - 3 { h = h + i }\noutput h").said == "");
  CHECK(Compiled(head + "for i in 70000 { h = h + 1 }\noutput h").only(Code::too_many_iterations, "70000"));
  CHECK(Compiled(head + "for i in 3 { y = h }\noutput z = y").only(Code::unknown_name, "y"));
  CHECK(Compiled(head + "for i in 3 { h = concat(h, x, n) }\noutput h").said == "");
}

TEST_CASE("recursion and budgets") {
  const Compiled r(
      "input x: f32[]\nfn f(x: []) { return g(x) }\nfn g(x: []) { return h(x) }\nfn h(x: []) { return f(x) }\noutput y = f(x)");
  CHECK(r.only(Code::recursion, "f(x)"));
  std::string doubling = "input x: f32[]\nfn call0(x: []) { return x + 1 }\n";
  for (int i = 1; i <= 40; ++i)
    doubling +=
        "fn call" + std::to_string(i) + "(x: []) { return call" + std::to_string(i - 1) + "(call" + std::to_string(i - 1) + "(x)) }\n";
  CHECK(Compiled(doubling + "output y = call40(x)").diagnostics.error_count() == 1);
  std::string chain = "input x: f32[]\nfn call0(x: []) { return x + 1 }\n";
  for (int i = 1; i <= 300; ++i) chain += "fn call" + std::to_string(i) + "(x: []) { return call" + std::to_string(i - 1) + "(x) }\n";
  CHECK(Compiled(chain + "output y = call300(x)").has(Code::calls_too_deep));
  CHECK(Compiled(chain + "output y = call126(x)").said == "");
}

TEST_CASE("imports") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "einc_import_test";
  std::filesystem::create_directories(folder);
  const auto write = [&](const char* name, const std::string& text) { std::ofstream(folder / name) << text; };
  write("a.ein", "import \"b.ein\"\ndim width\nfn twice(x: [width]) { return inner(x) * 2 }\nfn shared(x) { return x }\n");
  write("b.ein", "import \"a.ein\"\nfn inner(x: [...]) { return x + 1 }\nfn shared(x) { return x }\n");
  const auto compile = [&](const std::string& text) {
    write("main.ein", text);
    return Compiled((folder / "main.ein").string(), {}, true);
  };
  CHECK(compile("import \"a.ein\"\ndim width = 4\ninput x: f32[width]\noutput y = twice(x)").said == "");
  CHECK(compile("import \"a.ein\"\ndim width = 4\ninput x: f32[width]\noutput y = inner(x)").has(Code::unknown_function));
  CHECK(compile("import \"a.ein\"\nimport \"b.ein\"\ndim width = 4\ninput x: f32[width]\noutput y = shared(x)").has(Code::ambiguous_fn));
  write("c.ein", "dim width = 5, twin = 2 * width\nfn same(x: [width twin]) { return x }\n");
  const Compiled told = compile("import \"c.ein\"\ndim width, twin = 2 * width\ninput x: f32[width twin]\noutput y = same(x)");
  CHECK(told.said == "");
  CHECK(told.graph->dims.bind({}).values.at(Name("twin")) == 10);
  CHECK(compile("import \"aa.ein\"\ninput x: f32[]\noutput x").only(Code::import_not_found, "aa.ein"));
  CHECK(compile("import nothing\ninput x: f32[]\noutput x").only(Code::import_not_found, "nothing"));
  CHECK(compile("import nn\ndim b = 2, d = 8\ninput x: f32[b d]\noutput y = linear(layer_norm(x), 3)").said == "");
}
