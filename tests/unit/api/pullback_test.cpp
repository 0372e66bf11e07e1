// SPDX-License-Identifier: Apache-2.0
// Purpose::pullback: what it gives is what vjp, written into the program, gives.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

// Two outputs that share work, one of integers; a param inside a fn, a frozen one, a fn with a gradient of its own.
constexpr const char* kProgram = R"(
dim batch, features = 3
input x: f32[batch features]
input y: f32[batch]
fn layer(x: [... c]) {
  param w: [c] ~ normal(0, 1)
  return x * w
}
fn doubled(x: [... c]) { return x * 2 } gradient(dy) { return dy * 5 }
frozen param scale: f32[] ~ constant(3)
h = doubled(tanh(layer(x) as first))
output p = einsum(h, h, "batch features, batch features -> batch") * scale
output q = sum(sin(x) * y)
output place = argmax(x, features)
)";

constexpr const char* kByHand = R"(
input up: f32[batch]
input uq: f32[]
total = sum(p * up) + q * uq
output dx = grad(total, x)
output dy = grad(total, y)
)";

CompileOptions pullback_options(Target target) {
  CompileOptions result = options(target);
  result.purpose = Purpose::pullback;
  return result;
}

std::vector<std::string> names(const std::vector<TensorInfo>& tensors) {
  std::vector<std::string> result;
  for (const TensorInfo& tensor : tensors) result.push_back(tensor.name);
  return result;
}

}  // namespace

TEST_CASE("a pullback takes a cotangent for each floating output, and gives a gradient of each floating input and trained param") {
  const Model model = compile_text(kProgram, pullback_options(kTargets[0]));
  CHECK(names(model.inputs()) == std::vector<std::string>{"x", "y", "cotangent.p", "cotangent.q"});
  CHECK(names(model.outputs()) == std::vector<std::string>{"p", "q", "place", "gradient.x", "gradient.y", "gradient.first.w"});
  CHECK(!model.trains());
  CHECK(model.outputs()[3] == TensorInfo{"gradient.x", DType::f32, {"batch", "features"}, {4, 3}});
}

TEST_CASE("a pullback gives what vjp gives, on every target") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    Session ours(compile_text(kProgram, pullback_options(target))), theirs(compile_text(std::string(kProgram) + kByHand, options(target)));
    const std::vector<float> x = numbers(12, 1), y = numbers(4, 2), up = numbers(4, 3), uq = {0.7F};
    for (Session* session : {&ours, &theirs}) {
      session->init(5);
      session->set("x", x);
      session->set("y", y);
    }
    ours.set("cotangent.p", up);
    ours.set("cotangent.q", uq);
    theirs.set("up", up);
    theirs.set("uq", uq);
    ours.run();
    theirs.run();
    for (const auto& [mine, written] : {std::pair("p", "p"), std::pair("gradient.x", "dx"), std::pair("gradient.y", "dy")}) {
      const auto a = ours.output(mine).to_doubles(), b = theirs.output(written).to_doubles();
      REQUIRE(a.size() == b.size());
      for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
    }
    // The param of a fn, which no statement outside it can name: p = 12 scale tanh(x w)^2 summed, by the block's slope of 5 for 2.
    const auto w = theirs.param("first.w").to_doubles(), gradient = ours.output("gradient.first.w").to_doubles();
    for (size_t k = 0; k < 3; ++k) {
      double sum = 0;
      for (size_t i = 0; i < 4; ++i) {
        const double t = std::tanh(double{x[3 * i + k]} * w[k]);
        sum += double{up[i]} * 3 * 2 * (2 * t) * 5 * (1 - t * t) * double{x[3 * i + k]};
      }
      CHECK(gradient[k] == doctest::Approx(sum).epsilon(1e-4));
    }
  }
}

TEST_CASE("the halves of a pullback give the bits of the whole, and the first one reads no cotangents") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    const Model model = compile_text(kProgram, pullback_options(target));
    Session whole(model), halves(model);
    const std::vector<float> nan(4, NAN), up = numbers(4, 3), uq = {0.7F};
    for (Session* session : {&whole, &halves}) {
      session->init(5);
      session->set("x", numbers(12, 1));
      session->set("y", numbers(4, 2));
    }
    whole.set("cotangent.p", up);
    whole.set("cotangent.q", uq);
    whole.run();
    for (int times = 0; times < 2; ++times) {
      halves.set("cotangent.p", nan);
      halves.set("cotangent.q", std::vector<float>{NAN});
      halves.forward();
      CHECK(halves.output("p").to_doubles() == whole.output("p").to_doubles());
      CHECK_THROWS_WITH_AS(halves.output("gradient.x"), "output 'gradient.x' has no value before backward()", Error);
      halves.set("cotangent.p", up);
      halves.set("cotangent.q", uq);
      halves.backward();
      for (const TensorInfo& output : model.outputs())
        CHECK(halves.output(output.name).to_doubles() == whole.output(output.name).to_doubles());
      CHECK_THROWS_WITH_AS(halves.backward(), doctest::Contains("follows a forward() of its own"), Error);
    }
  }
}

TEST_CASE("a bound output that the second half reads is a copy: the caller may change it in between") {
  for (const Target target : kTargets) {
    CompileOptions asked = pullback_options(target);
    asked.dims.clear();
    Session session(compile_text("input x: f32[n=16]\noutput y = exp(x)\n", asked));
    session.set("x", numbers(16, 1));
    session.set("cotangent.y", std::vector<float>(16, 1));
    alignas(64) float memory[16] = {};
    session.bind_output("y", DType::f32, {16}, memory);
    session.forward();
    const std::vector<double> y(std::begin(memory), std::end(memory));
    CHECK(y == session.output("y").to_doubles());
    std::fill(std::begin(memory), std::end(memory), 0.0F);
    session.backward();
    CHECK(session.output("gradient.x").to_doubles() == y);
  }
}

TEST_CASE("other programs have no halves") {
  Session plain(compile_text(kLinear, options(kTargets[0])));
  CHECK_THROWS_WITH_AS(plain.forward(), "the program was not compiled for Purpose::pullback", Error);
}

TEST_CASE("states are read by both halves as they were, and their new values are outputs") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    CompileOptions asked = pullback_options(target);
    asked.dims.clear();
    Session session(compile_text("input x: f32[n=2]\nstate s: f32[n=2] ~ zeros\ns <- s + x\noutput y = x * x * s\n", asked));
    session.set("x", std::vector<float>{2, 3});
    session.set("s", std::vector<float>{5, 7});
    session.set("cotangent.y", std::vector<float>{1, 10});
    session.forward();
    CHECK(session.output("next.s").to_doubles() == std::vector<double>{7, 10});
    session.backward();
    CHECK(session.output("gradient.x").to_doubles() == std::vector<double>{2 * 2 * 5, 10 * 2 * 3 * 7});
    CHECK(session.state("s").to_doubles() == std::vector<double>{5, 7});
  }
}

TEST_CASE("in training mode dropout acts, with one mask in both halves, which follows from the seed") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    CompileOptions asked = pullback_options(target);
    asked.dims = {};
    asked.training_mode = true;
    const std::string program = "input x: f32[n=64]\noutput y = dropout(x, 0.5)\noutput mode = where(training, x, 2 * x)\n";
    const Model model = compile_text(program, asked);
    CHECK(model.has_modes());
    CHECK(model.draws());
    Session session(model);
    session.set("x", std::vector<float>(64, 1));
    session.set("cotangent.y", std::vector<float>(64, 1));
    std::vector<std::vector<double>> masks;
    for (const uint64_t seed : {3, 4, 3}) {
      session.seed(seed);
      session.forward();
      masks.push_back(session.output("y").to_doubles());
      CHECK(session.output("mode").to_doubles() == std::vector<double>(64, 1));
      session.seed(99);  // of later runs
      session.backward();
      CHECK(session.output("gradient.x").to_doubles() == masks.back());
      CHECK(std::set(masks.back().begin(), masks.back().end()) == std::set<double>{0, 2});
    }
    CHECK(masks[0] == masks[2]);
    CHECK(masks[0] != masks[1]);
    session.seed(3);
    session.forward();
    session.forward();  // the second run with this seed
    CHECK(session.output("y").to_doubles() != masks[0]);
    asked.training_mode = false;
    Session plain(compile_text(program, asked));
    plain.set("x", std::vector<float>(64, 1));
    plain.forward();
    CHECK(plain.output("y").to_doubles() == std::vector<double>(64, 1));
    CHECK(plain.output("mode").to_doubles() == std::vector<double>(64, 2));
  }
  CompileOptions asked = options(kTargets[0]);
  asked.training_mode = true;
  CHECK_THROWS_WITH_AS(compile_text(kLinear, asked), doctest::Contains("minimize nothing"), Error);
  asked = options(kTargets[0]);
  asked.dims.clear();
  const Model plain = compile_text("input x: f32[n=2]\noutput y = x\n", asked);
  CHECK(!plain.has_modes());
  CHECK(!plain.draws());
}

TEST_CASE("a gradient that nothing reaches is zero") {
  CompileOptions asked = pullback_options(kTargets[0]);
  asked.dims.clear();
  Session session(compile_text("input x: f32[n=3]\ninput z: f32[n=3]\noutput y = 2 * x\n", asked));
  session.set("cotangent.y", std::vector<float>{1, 2, 3});
  session.set("z", std::vector<float>{1, 2, 3});
  session.run();
  CHECK(session.output("gradient.x").to_doubles() == std::vector<double>{2, 4, 6});
  CHECK(session.output("gradient.z").to_doubles() == std::vector<double>{0, 0, 0});
}

TEST_CASE("a gradient bound between the halves is written, though the first half has made it") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    CompileOptions asked = pullback_options(target);
    asked.dims.clear();
    Session session(compile_text("input x: f32[n=16]\ninput z: f32[n=16]\noutput y = 2 * x\noutput one = ones(n=16)\n", asked));
    session.init(0);
    alignas(64) float x[16] = {1}, z[16] = {}, dy[16] = {3}, gradient[2][16], one[16] = {7};
    std::fill_n(gradient[0], 32, 7.0f);
    session.bind("x", DType::f32, {16}, x);
    session.bind("z", DType::f32, {16}, z);
    session.bind("cotangent.y", DType::f32, {16}, dy);
    session.bind_output("one", DType::f32, {16}, one);
    session.forward();
    session.bind_output("gradient.x", DType::f32, {16}, gradient[0]);
    session.bind_output("gradient.z", DType::f32, {16}, gradient[1]);
    session.backward();
    CHECK(gradient[0][0] == 6);
    CHECK(gradient[1][0] == 0);
    CHECK(std::count(gradient[1], gradient[1] + 16, 0.0f) == 16);
    CHECK(std::count(one, one + 16, 1.0f) == 16);
  }
}

TEST_CASE("reports come in three forms, and speak of the device asked for") {
  CompileOptions asked = options(kTargets[0]);
  asked.report_device = "h200";
  const Model model = compile_text(kLinear, asked, "linear.ein");
  const std::string json = model.render_report(ReportForm::json), page = model.render_report(ReportForm::html);
  CHECK(json.find("\"model\": \"linear.ein\"") != std::string::npos);
  CHECK(json.find("h200") != std::string::npos);
  CHECK(page.find("<html") != std::string::npos);
  CHECK(page.find("minimize loss using sgd") != std::string::npos);  // the program stands in it
  CHECK(model.render_report(ReportForm::text).find("FLOPs") != std::string::npos);
  CHECK(render_report_of_text(kLinear, ReportForm::json, asked, "linear.ein") == json);
  asked.report_device = "abacus";
  CHECK_THROWS_WITH_AS(compile_text(kLinear, asked), doctest::Contains("no device `abacus`"), Error);
}
