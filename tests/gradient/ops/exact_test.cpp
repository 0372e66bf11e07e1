// SPDX-License-Identifier: Apache-2.0
// Derivatives where finite differences and a careless chain rule both fail: at the edge of a domain that `where` guards, and
// of products with zeros. Expected values are worked out by hand.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/ir/interpret.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"

using namespace einc;

namespace {

using Reals = std::vector<double>;

// The output of a program over `x`, before and after the passes.
std::vector<Reals> values(const std::string& text, const Reals& x) {
  std::vector<Reals> found;
  const std::string head = "input x: f64[n=" + std::to_string(x.size()) + "]\n";
  for (const bool simplified : {false, true}) {
    PipelineOptions options;
    if (!simplified)
      for (const Pass& pass : passes())
        if (pass.optional) options.disabled.emplace_back(pass.name);
    const Compilation c = compile_text("exact.ein", head + text, options);
    REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
    const InterpretResult result = interpret(*c.graph, {}, {{"x", Tensor::of_reals({static_cast<int64_t>(x.size())}, x)}}, {}, {});
    found.push_back(result.outputs[0].second.reals);
  }
  return found;
}

void check(const std::string& text, const Reals& x, const Reals& expected) {
  CAPTURE(text);
  for (const Reals& found : values(text, x)) {
    REQUIRE(found.size() == expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      CAPTURE(i);
      CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("the angle of the origin has no slope") {
  check("output d = grad(sum(atan2(x, x^2)), x)", {0, 1}, {0, -0.5});
  check("output d = grad(sum(atan2(x^2, x)), x)", {0, -1}, {0, 0.5});
}

TEST_CASE("the branch not taken gets an exact 0 all the way down") {
  const Reals x{0, 4, -1};
  check("output d = grad(sum(where(x > 0, sqrt(x), 0)), x)", x, {0, 0.25, 0});
  check("output d = grad(sum(where(x <= 0, 0, sqrt(x))), x)", x, {0, 0.25, 0});
  check("output d = grad(sum(where(x > 0, log(x), x)), x)", x, {1, 0.25, 1});
  check("output d = grad(sum(where(x > 0, 3 - 2 * sqrt(x), 0)), x)", x, {0, -0.5, 0});
  check("output d = grad(sum(where(x > 0, x * log(x), 0)), x)", x, {0, std::log(4) + 1, 0});
  check("output d = grad(sum(where(x == 0, 1, sin(x) / x)), x)", {0, 1}, {0, std::cos(1) - std::sin(1)});
  check("output d = grad(sum(where(x > 0, sqrt(x) / (1 + sqrt(x)), 0)), x)", x, {0, 1.0 / 36, 0});
  check("s: [m] = sqrt(x)\nc: [m] = x > 0\noutput d = grad(sum(where(c, s, 0)), x)", x, {0, 0.25, 0});
  check("output d = grad(sum(where(x > 0, where(x < 1, 1 / x, sqrt(x)), 0)), x)", {0, 0.5, 4}, {0, -4, 0.25});
  check("g = grad(sum(where(x > 0, sqrt(x), 0)), x)\noutput d = grad(sum(g), x)", x, {0, -1.0 / 32, 0});
  // s stands for every m, and no m takes it where x is not above 0
  check("s = sqrt(x)\noutput d = grad(sum(where(x > 0, s * (iota(m = 3) + 1), 0)), x)", x, {0, 1.5, 0});
}

TEST_CASE("products with zeros") {
  const std::string first = "output d = grad(prod(x), x)", second = "g = grad(prod(x), x)\noutput d = grad(sum(g * (iota(n) + 1)), x)";
  check(first, {2, 3, 4}, {12, 8, 6});
  check(first, {0, 3, 4}, {12, 0, 0});
  check(first, {0, 3, 0}, {0, 0, 0});
  // row i of the Hessian times 1, 2, 3: H_ij is the product of the elements other than i and j
  check(second, {2, 3, 4}, {2 * 4 + 3 * 3, 1 * 4 + 3 * 2, 1 * 3 + 2 * 2});
  check(second, {0, 3, 4}, {2 * 4 + 3 * 3, 1 * 4, 1 * 3});
  check(second, {0, 3, 0}, {3 * 3, 0, 1 * 3});
  check(second, {0, 0, 0}, {0, 0, 0});
}
