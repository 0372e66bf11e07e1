// SPDX-License-Identifier: Apache-2.0
// The library as an embedding program sees it: values in and out, runs and steps, bound memory, errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

std::vector<float> copy(const TensorView& tensor) {
  const auto values = tensor.as<float>();
  return {values.begin(), values.end()};
}

template <class Function>
Error error_of(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {ErrorKind::internal, ""};
}

}  // namespace

TEST_CASE("a program lists its tensors") {
  const Model model = compile_text(kLinear, options(kTargets[0]), "linear.ein");
  CHECK(model.name() == "linear.ein");
  CHECK(model.dims() == std::vector<std::pair<std::string, int64_t>>{{"batch", 4}, {"features", 3}});
  CHECK(model.inputs() == std::vector<TensorInfo>{{"x", DType::f32, {"batch", "features"}, {4, 3}}, {"y", DType::f32, {"batch"}, {4}}});
  CHECK(model.params() == std::vector<TensorInfo>{{"w", DType::f32, {"features"}, {3}}, {"b", DType::f32, {}, {}}});
  CHECK(model.outputs() == std::vector<TensorInfo>{{"p", DType::f32, {"batch"}, {4}}});
  REQUIRE(model.states().size() == 1);
  CHECK(model.states()[0].name == "seen");
  CHECK(model.trains());
  CompileOptions inference = options(kTargets[0]);
  inference.purpose = Purpose::inference;
  CHECK(!compile_text(kLinear, inference).trains());
}

TEST_CASE("runs and steps compute what the formulas say, on every target") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    Session session(compile_text(kLinear, options(target)), {.threads = 1});
    const std::vector<float> x = numbers(12, 0), y = numbers(4, 5), w = {0.5F, -1, 2}, b = {0.25F};
    session.set("x", x);
    session.set("y", y);
    session.set("w", w);
    session.set("b", TensorView(DType::f32, {}, b.data()));
    std::vector<double> p(4), gradient(3);
    double loss = 0;
    for (size_t i = 0; i < 4; ++i) {
      p[i] = 0.25;
      for (size_t k = 0; k < 3; ++k) p[i] += double{x[3 * i + k]} * double{w[k]};
      loss += (p[i] - double{y[i]}) * (p[i] - double{y[i]}) / 4;
      for (size_t k = 0; k < 3; ++k) gradient[k] += (p[i] - double{y[i]}) / 2 * double{x[3 * i + k]};
    }
    session.run();
    for (size_t i = 0; i < 4; ++i) CHECK(session.output("p").as<float>()[i] == doctest::Approx(p[i]).epsilon(1e-5));
    CHECK(copy(session.param("w")) == w);  // a run changes no param
    CHECK(copy(session.state("seen")) == std::vector<float>{1});
    CHECK(session.evaluate() == doctest::Approx(loss).epsilon(1e-5));
    CHECK(copy(session.param("w")) == w);                         // nor does an evaluation,
    CHECK(copy(session.state("seen")) == std::vector<float>{1});  // which updates no state either
    session.step();
    CHECK(session.loss() == doctest::Approx(loss).epsilon(1e-5));
    for (size_t k = 0; k < 3; ++k) {
      CHECK(session.gradient("w").as<float>()[k] == doctest::Approx(gradient[k]).epsilon(1e-5));
      CHECK(session.param("w").as<float>()[k] == doctest::Approx(double{w[k]} - 0.1 * gradient[k]).epsilon(1e-5));
    }
    CHECK(copy(session.state("seen")) == std::vector<float>{2});
    for (int i = 0; i < 200; ++i) session.step();
    CHECK(session.loss() < 0.5 * loss);
    session.run();  // the forward sees the trained params
    const double w0 = double{session.param("w").as<float>()[0]}, p0 = double{session.output("p").as<float>()[0]};
    double expected = session.param("b").to_doubles()[0] + double{x[0]} * w0;
    for (size_t k = 1; k < 3; ++k) expected += double{x[k]} * session.param("w").to_doubles()[k];
    CHECK(p0 == doctest::Approx(expected).epsilon(1e-5));
  }
}

TEST_CASE("init follows from the seed alone") {
  const Model model = compile_text(kLinear, options(kTargets[0]));
  Session a(model), b(model), c(model);
  a.init(7);
  b.init(7);
  c.init(8);
  CHECK(copy(a.param("w")) == copy(b.param("w")));
  CHECK(copy(a.param("w")) != copy(c.param("w")));
  CHECK(copy(a.param("b")) == std::vector<float>{0});
}

TEST_CASE("bound memory is read and written in place") {
  for (const Target target : kTargets) {
    Session session(compile_text(kLinear, options(target)));
    session.init(1);
    std::vector<float> x = numbers(12, 1), w = {1, 2, 3};
    const std::vector<float> y = numbers(4, 2);
    session.bind("x", std::span(x));
    session.bind_input("y", std::span(y));
    session.bind("w", std::span(w));
    session.run();
    const std::vector<float> before = copy(session.output("p"));
    x[0] += 1;
    session.run();
    CHECK(session.output("p").as<float>()[0] == doctest::Approx(before[0] + 1));
    session.step();
    CHECK(w != std::vector<float>{1, 2, 3});
    CHECK(static_cast<const void*>(session.param("w").data()) == w.data());
    const std::vector<float> trained = w;
    session.set("w", std::vector<float>{0, 0, 0});  // lies in the session again
    session.run();
    CHECK(w == trained);
    CHECK(copy(session.output("p")) == std::vector<float>(4, session.param("b").as<float>()[0]));
  }
}

TEST_CASE("a bound output is in the caller's memory after a run or a step, made there where that is a line of the cache") {
  for (const Target target : kTargets)
    for (const size_t offset : {size_t{0}, size_t{1}}) {
      Session session(compile_text(kLinear, options(target)));
      session.init(1);
      session.set("x", numbers(12, 1));
      session.set("y", numbers(4, 2));
      session.run();
      const std::vector<float> expected = copy(session.output("p"));
      alignas(64) float memory[32] = {};
      session.bind_output("p", DType::f32, {4}, memory + offset);
      session.run();
      CHECK(std::equal(expected.begin(), expected.end(), memory + offset));
      const bool there = static_cast<const void*>(session.output("p").data()) == memory + offset;
      CHECK(there == (target == Target::cpu && offset == 0));
      CHECK(std::count(std::begin(memory), std::end(memory), 0.0F) == 28);
      std::fill(std::begin(memory), std::end(memory), 0.0F);
      session.step();
      CHECK(copy(session.output("p")) == std::vector<float>(memory + offset, memory + offset + 4));
      session.bind_output("p", DType::f32, {4}, nullptr);
      std::fill(std::begin(memory), std::end(memory), 0.0F);
      session.run();
      CHECK(memory[offset] == 0);
      CHECK(copy(session.output("p")) != expected);  // the step has changed w
      CHECK(error_of([&] { session.bind_output("p", DType::f32, {5}, memory); }).kind() == ErrorKind::usage);
      CHECK(error_of([&] { session.bind_output("x", DType::f32, {4}, memory); }).kind() == ErrorKind::usage);
    }
}

// Made in the caller's memory, these would be what another name means as well.
TEST_CASE("a bound output that is an input, a param, a state or another output is a copy") {
  for (const Target target : kTargets) {
    CompileOptions asked = options(target);
    asked.dims.clear();
    Session session(
        compile_text("input x: f32[n=16]\nparam w: [n] ~ normal(0, 1)\nstate s: f32[n] ~ zeros\ny = x * w\ns <- s + 1\n"
                     "output a = x\noutput b = w\noutput c = s\noutput d = y\noutput e = y\n",
                     asked));
    session.init(1);
    session.set("x", numbers(16, 1));
    session.run();
    const std::vector<float> x = copy(session.input("x")), w = copy(session.param("w")), y = copy(session.output("d"));
    alignas(64) float memory[4][16] = {};
    const char* const names[] = {"a", "b", "c", "e"};
    for (size_t i = 0; i < 4; ++i) session.bind_output(names[i], DType::f32, {16}, memory[i]);
    session.run();
    const std::vector<float> expected[] = {x, w, std::vector<float>(16, 1), y};
    for (size_t i = 0; i < 4; ++i) {
      CAPTURE(names[i]);
      CHECK(std::equal(expected[i].begin(), expected[i].end(), memory[i]));
      std::fill(std::begin(memory[i]), std::end(memory[i]), -5.0F);
    }
    CHECK(copy(session.input("x")) == x);
    CHECK(copy(session.param("w")) == w);
    CHECK(copy(session.state("s")) == std::vector<float>(16, 2));
    CHECK(copy(session.output("d")) == y);
  }
}

TEST_CASE("sessions on two threads share a program and do not disturb each other") {
  const Model model = compile_text(kLinear, options(kTargets[0], 64));
  const auto train = [&model](uint64_t seed, int threads, std::vector<float>& w) {
    Session session(model, {.threads = threads});
    session.init(seed);
    session.set("x", numbers(192, 0));
    session.set("y", numbers(64, 0));
    for (int i = 0; i < 50; ++i) session.step();
    w = copy(session.param("w"));
  };
  std::vector<float> a, b, c, d;
  std::thread first([&] { train(1, 1, a); }), second([&] { train(1, 2, b); }), third([&] { train(2, 1, c); });
  first.join();
  second.join();
  third.join();
  train(2, 1, d);
  CHECK(a == b);
  CHECK(c == d);
  CHECK(a != c);
}

TEST_CASE("what is wrong with a text comes as diagnostics") {
  const Error error = error_of([] { compile_text("dim n = 4\ninput x: f32[n]\noutput y = xx + 1\noutput z = x[\n", {}, "bad.ein"); });
  CHECK(error.kind() == ErrorKind::program);
  REQUIRE(!error.diagnostics().empty());
  const Error::Diagnostic& first = error.diagnostics()[0];
  CHECK(!first.is_warning);
  CHECK(!first.code.empty());
  CHECK(first.place.file == "bad.ein");
  CHECK(first.place.line >= 3);
  CHECK(std::string(error.what()).find(first.message) != std::string::npos);
  CHECK(std::string(error.what()).find("bad.ein:") != std::string::npos);
}

TEST_CASE("wrong calls say what is wrong") {
  CHECK(error_of([] { compile_text(kLinear, {}); }).kind() == ErrorKind::usage);  // batch has no value
  CHECK(std::string(error_of([] { compile_text(kLinear, {}); }).what()).find("batch") != std::string::npos);
  CompileOptions unknown = options(kTargets[0]);
  unknown.dims["bach"] = 3;
  CHECK(error_of([&] { compile_text(kLinear, unknown); }).kind() == ErrorKind::program);
  CHECK(error_of([] { compile_file("no/such/file.ein"); }).kind() == ErrorKind::resource);

  Session session(compile_text(kLinear, options(kTargets[0])));
  const std::vector<float> three(3);
  const std::vector<double> doubles(12);
  const auto message = [&](auto&& call) {
    const Error error = error_of(call);
    CHECK(error.kind() == ErrorKind::usage);
    return std::string(error.what());
  };
  CHECK(message([&] { session.set("x", three); }) == "'x' is f32[4 3], 12 elements, but given as 3 elements of f32");
  CHECK(message([&] { session.set("x", doubles); }) == "'x' is f32[4 3], 12 elements, but given as 12 elements of f64");
  CHECK(message([&] { session.set("x", TensorView(DType::f32, {3, 4}, nullptr)); }) == "'x' is f32[4 3], but given as f32[3 4]");
  CHECK(message([&] { session.set("q", three); }) == "the program has no input, param or state 'q'; inputs: x, y; params: w, b");
  CHECK(message([&] { session.output("p"); }) == "output 'p' has no value before a run or step");
  CHECK(message([&] { session.loss(); }) == "the loss has no value before a step");
  CHECK(message([&] { session.bind_input("w", std::span<const float>(three)); }) == "the program has no input 'w'; it has x, y");
  session.run();
  CHECK(message([&] { session.output("p").as<int32_t>(); }) == "the tensor holds f32, not i32");
  std::vector<float> room(13);
  CHECK(message([&] {
          session.bind("x", DType::f32, {4, 3}, reinterpret_cast<char*>(room.data()) + 1);
        }) == "the memory for 'x' is not aligned to its elements of 4 bytes");
  // An evaluation runs in the memory of steps: what it overwrites is not to be had, what stands is.
  session.step();
  const double loss = session.loss();
  session.evaluate();
  CHECK(session.loss() == loss);
  CHECK(message([&] { session.output("p"); }) == "evaluate() has overwritten output 'p' of the last step: read it before");
  CHECK(message([&] { session.gradient("w"); }) == "evaluate() has overwritten the gradient of 'w': read it before");
  session.run();
  session.evaluate();
  CHECK(session.output("p").shape() == std::vector<int64_t>{4});
  session.step();
  CHECK(session.gradient("w").shape() == std::vector<int64_t>{3});
  CompileOptions inference = options(kTargets[0]);
  inference.purpose = Purpose::inference;
  Session no_step(compile_text(kLinear, inference));
  message([&] { no_step.step(); });
  message([&] { no_step.evaluate(); });
}

TEST_CASE("an index outside its table is an error with its place") {
  for (const Target target : kTargets) {
    CompileOptions no_dims = options(target);
    no_dims.dims.clear();
    Session session(
        compile_text("dim n = 4, rows = 5\ninput ids: i32[n]\ninput table: f32[rows]\noutput y = table[rows = ids]\n", no_dims));
    session.set("ids", std::vector<int32_t>{0, 4, 5, 1});
    const Error error = error_of([&] { session.run(); });
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).find("[2] is 5") != std::string::npos);
  }
}

#ifdef EINC_WITH_LLVM
TEST_CASE("a limit of memory: the same step, or an error with the least") {
  std::string text = "dim n = 1024, d = 64\ninput x: f32[n d]\n", last = "x";
  for (const std::string l : {"a", "b", "c", "e", "f"}) {
    text += "param w" + l + ": [d o" + l + "=d] ~ normal(std = 0.1)\nh" + l + ": [n d] = tanh(einsum(" + last + ", w" + l + ", \"n d, d o" +
            l + " -> n o" + l + "\"))\n";
    last = "h" + l;
  }
  text += "loss = mean(" + last + "^2)\nminimize loss using sgd(lr = 0.1)\n";
  const auto compiled = [&](std::optional<int64_t> limit) {
    CompileOptions options;
    options.code_cache = "";
    options.memory_limit = limit;
    return compile_text(text, options);
  };
  const auto loss_after_steps = [](const Model& model) {
    Session session(model);
    session.init(1);
    const std::vector<float> x = numbers(1024 * 64, 0.5);
    session.set("x", std::span<const float>(x));
    for (int i = 0; i < 3; ++i) session.step();
    return session.loss();
  };
  const int64_t value = 1024 * 64 * sizeof(float), peak = *compiled({}).report().memory.peak_training.value;
  CHECK(loss_after_steps(compiled(peak + 8 * value)) == loss_after_steps(compiled({})));
  CHECK(loss_after_steps(compiled(peak + value)) == loss_after_steps(compiled({})));  // less than the step and, beside it, the forward
  const Error little = error_of([&] { compiled(value); });
  CHECK(little.kind() == ErrorKind::resource);
  CHECK(std::string(little.what()).find("more than the limit of 262144 bytes") != std::string::npos);
  CHECK(error_of([&] { compiled(0); }).kind() == ErrorKind::usage);
}
#endif
