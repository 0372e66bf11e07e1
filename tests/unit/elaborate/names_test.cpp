// SPDX-License-Identifier: Apache-2.0
// Names, dims, types and declarations.
#include "tests/unit/elaborate/support.h"

using namespace einc;

TEST_CASE("dims: derived sizes are one with their formula") {
  const Compiled c("dim heads = 12, head = 64\ndim embed = heads * head\ninput x: f32[embed]\noutput y: [heads * head] = x\n");
  CHECK(c.said != "");  // an axis needs a name
  const Compiled d(
      "dim heads = 12, head = 64\ndim embed = heads * head\ninput x: f32[embed]\ninput z: f32[k=heads*head]\noutput y: [embed] = z\n");
  CHECK(d.said == "");
  CHECK(d.output().type.axis(0).name == Name("embed"));
}

TEST_CASE("dims: what cannot be a dim") {
  CHECK(Compiled("dim n = 0\ninput x: [n]\noutput x").only(Code::dim_value, "0"));
  CHECK(Compiled("dim n = -5\ninput x: [n]\noutput x").only(Code::dim_value, "-5"));
  CHECK(Compiled("dim n = 0.5\ninput x: [n]\noutput x").diagnostics.error_count() == 1);
  CHECK(Compiled("dim n = 4, n = 5\ninput x: [n]\noutput x").only(Code::redefined, "n"));
  CHECK(Compiled("dim n = 7\ndim m = n / 2\ninput x: [m]\noutput x").has(Code::dim_out_of_range));
  CHECK(Compiled("dim n = 8\ndim m = n / 2\ninput x: [m]\noutput x").said == "");
  CHECK(Compiled("dim n = 8\ndim m = n / (n - n)\ninput x: [m]\noutput x").only(Code::division_by_zero, "n - n"));
  CHECK(Compiled("dim n = 9223372036854775808\ninput x: [n]\noutput x").diagnostics.error_count() == 1);
}

TEST_CASE("dims set from outside") {
  ElaborateOptions options;
  options.dims = {{Name("m"), 4}};
  CHECK(Compiled("dim n = 7\ndim m = 2 * n\ninput x: [m]\noutput x", options).only(Code::derived_dim_set, "m"));
  CHECK(Compiled("dim n = 7\ninput x: [n]\noutput x", options).has(Code::unknown_dim_setting));
  options.dims = {{Name("n"), 0}};
  CHECK(Compiled("dim n = 7\ninput x: [n]\noutput x", options).diagnostics.error_count() == 1);
}

TEST_CASE("sizes that do not fit 63 bits") {
  CHECK(Compiled("dim n = 4611686018427387904\ninput x: f64[n]\noutput x").only(Code::tensor_too_large, "input x: f64[n]"));
  CHECK(Compiled("dim n = 4294967296, m = 4294967296\ninput x: u8[n m]\noutput x").has(Code::tensor_too_large));
  CHECK(Compiled("dim n = 4294967296, m = 2147483647\ninput x: u8[n m]\noutput x").said == "");
  const Compiled c("dim n, m\ninput x: f32[n m]\noutput x");
  CHECK(c.said == "");
  CHECK(c.graph->dims.conditions().size() == 1);
}

TEST_CASE("names") {
  CHECK(Compiled("dim n = 4\ninput x: [n]\noutput y = xx + 1").only(Code::unknown_name, "xx"));
  CHECK(Compiled("dim n = 4\ninput x: [m]\noutput x").only(Code::unknown_axis, "m"));
  CHECK(Compiled("dim n = 4\ninput x: [n]\ninput x: [n]\noutput x").only(Code::redefined, "x"));
  CHECK(Compiled("dim n = 4\ninput x: [n]\nn = x\noutput x").only(Code::redefined, "n"));
  CHECK(Compiled("dim n = 4\ninput n: [n]\noutput n").only(Code::redefined, "n"));
  CHECK(Compiled("dim n = 4\ninput x: [n]\noutput x\noutput x").diagnostics.error_count() == 1);
  CHECK(Compiled("dim n = 4\ninput x: [n]\ny = rleu(x)\noutput y").only(Code::unknown_function, "rleu"));
  CHECK(Compiled("dim n = 4\ninput x: [n]\ny = x").only(Code::no_result, ""));
  // one mistake, one message; and independent ones together
  CHECK(Compiled("dim n = 4\ninput x: [n]\ny = xx + 1\nz = y * 2\nw = sum(z, n)\noutput w").diagnostics.error_count() == 1);
  CHECK(Compiled("dim n = 4\ninput x: [n]\ny = xx + 1\nz = zz\nw = ww\noutput w").diagnostics.error_count() == 3);
}

TEST_CASE("names of built-in functions are free to be used") {
  const std::string own =
      "dim norm = 4\ninput clamp: f32[norm]\nsort = clamp + 1\nfn flip(x: [... c]) { return x * 2 }\n"
      "fn floor(x) { return x + 0.5 }\noutput y = flip(floor(sort))\n";
  const Compiled hidden(own);
  CHECK(hidden.said == "");
  REQUIRE(hidden.graph.has_value());
  for (const Node& node : hidden.graph->nodes) {
    CHECK(node.op != Op::slice);
    CHECK((node.op != Op::map || node.as<MapAttr>().fn != MapFn::floor));
  }
  // A value of the name is no function: the built-in can still be called beside it.
  const Compiled beside("dim n = 4\ninput x: f32[n]\nsort = 2 * x\noutput y = sort(sort, n)\n");
  CHECK(beside.said == "");
  CHECK(beside.output().op == Op::gather);
}

TEST_CASE("floors of dims are sizes, and a step's places are counted for all of them") {
  const Compiled c("dim n, s = 3\ninput x: f32[n]\noutput y = x[n = ::2]\noutput z = x[n = :n // s]\noutput w = iota(k = n % s + 1)\n");
  CHECK(c.said == "");
  CHECK(c.output(0).type.axis(0).size == parse_poly("floor((n + 1)/2)"));
  CHECK(c.output(1).type.axis(0).size == parse_poly("floor(n/s)"));
  CHECK(c.output(2).type.axis(0).size == parse_poly("n - s*floor(n/s) + 1"));
  const Compiled zero("dim n = 4\ndim k = n // 0\ninput x: f32[n]\noutput x\n");
  CHECK(zero.only(Code::division_by_zero, "0"));
}

TEST_CASE("annotations check, rename and pin") {
  const std::string head = "dim n = 4, m = 4, k = 8\ninput x: f32[n k]\n";
  CHECK(Compiled(head + "y: [m k] = x\noutput y").only(Code::annotation_size, "m"));
  CHECK(Compiled(head + "y: [n] = x\noutput y").has(Code::annotation_rank));
  const Compiled c(head + "y: [a b] = x\nz = sum(y, b)\noutput z");
  CHECK(c.said == "");
  CHECK(c.output().type.axis(0).name == Name("a"));
  CHECK(Compiled(head + "y: [... b] = x\noutput z = sum(y, n) + iota(b)").said == "");
  const Compiled pinned(head + "param w: [k] ~ ones\ny: f32[n k] = x * w\noutput y");
  CHECK(pinned.output().op == Op::map);
  CHECK(pinned.output().origin.pinned);
  CHECK(pinned.output().type.dtype == DType::f32);
  CHECK(Compiled(head + "y: i32[n k] = x\noutput y").only(Code::dtype_mismatch, "i32"));
}

TEST_CASE("local axes are sizes once introduced, while they have one size") {
  const std::string head = "dim n = 4, k = 8\ninput x: f32[n k]\n";
  CHECK(Compiled(head + "y = rearrange(x, \"n (a b) -> n a b\", a=2)\noutput z = y * iota(b)").said == "");
  CHECK(Compiled(head + "y = rearrange(x, \"n (a b) -> n a b\", a=2)\nz = rearrange(x, \"n (a b) -> n a b\", a=4)\noutput w = sum(y) + b")
            .has(Code::ambiguous_axis_size));
  CHECK(Compiled(head + "input s: [n=5]\noutput x").only(Code::axis_is_declared, "n=5"));
}

TEST_CASE("states") {
  const std::string head = "dim n = 4\ninput x: f32[n]\nstate s: f32[n] ~ zeros\n";
  const Compiled c(head + "s <- 0.9 * s + 0.1 * x\noutput y = x - s");
  CHECK(c.said == "");
  CHECK(c.graph->updates.size() == 1);
  CHECK(Compiled(head + "s <- x\ns <- s\noutput x").only(Code::updated_twice, "s <- s"));
  CHECK(Compiled(head + "x <- s\noutput x").only(Code::not_a_state, "x"));
  CHECK(Compiled(head + "s = x\noutput x").only(Code::state_rebound, "s"));
  CHECK(Compiled(head + "input p: i32[]\ns[n = p] <- sum(x)\noutput x").said == "");
  CHECK(Compiled(head + "s <- 0\noutput x").said == "");
  const Compiled made(head + "s <- 0.9 * s + 0.1 * x\noutput y = updated(s)");
  CHECK(made.said == "");
  CHECK(made.graph->outputs[0].node == made.graph->updates[0].value);
  CHECK(Compiled(head + "output y = updated(s)\ns <- x").only(Code::not_updated, "s"));
  CHECK(Compiled(head + "s <- x\noutput y = updated(x)").only(Code::not_a_state, "x"));
  CHECK(Compiled(head + "s <- x\noutput y = updated(s, x)").only(Code::updated_arguments, "updated(s, x)"));
  CHECK(Compiled(head + "t <- 0\noutput x").only(Code::unknown_name, "t"));
}

TEST_CASE("a mistake of syntax hides only what it may have defined") {
  const std::string head = "dim n = 4\ninput x: f32[n]\n";
  CHECK(Compiled(head + "y = )\noutput z = y + xx").diagnostics.error_count() == 2);
  CHECK(Compiled(head + "y = )\noutput z = y + x").diagnostics.error_count() == 1);
  CHECK(Compiled(head + "output z = y + x\ny = x").only(Code::unknown_name, "y"));
  CHECK(Compiled("import nothing\ndim n = 4\ninput x: f32[n]\noutput z = layer(x) + xx").diagnostics.error_count() == 2);
}
