// SPDX-License-Identifier: Apache-2.0
// A step stores nothing that is not finite where its gradient is bounded by what its product reads: bounds hold, fail or say too little.
#include <doctest/doctest.h>

#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

constexpr int64_t kRows = 8, kSize = 64;

// The gradient of w is the product of x and y summed over the rows; the loss is always 0.
constexpr const char* kProduct = R"(
dim batch, d = 64
input x: f32[batch d]
input y: f32[batch e=d]
param w: [d e=d] ~ zeros
loss = sum(einsum(x, w - stop_gradient(w), "batch d, d e -> batch e") * y)
minimize loss using )";

class Trained {
 public:
  Trained(Target target, const std::string& optimizer)
      : session_(compile_text(kProduct + optimizer + "\n", options(target, kRows)), {.threads = 2}),
        x(kRows * kSize, 0.0F),
        y(kRows * kSize, 0.0F) {
    session_.init(1);
  }
  bool step() {
    session_.set("x", x);
    session_.set("y", y);
    try {
      session_.step();
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::numeric);
      return false;
    }
    return true;
  }
  float w(size_t element) const { return session_.param("w").as<float>()[element]; }

 private:
  Session session_;

 public:
  std::vector<float> x, y;
};

}  // namespace

TEST_CASE("a bound counts the terms that a product sums") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    Trained run(target, "sgd(lr = 1)");
    const float term = std::ldexp(1.0F, 125);
    for (float& x : run.x) x = term;
    for (size_t i = kSize; i < run.y.size(); ++i) run.y[i] = 1;
    CHECK(run.step());
    CHECK(run.w(5) == -7 * term);
    CHECK(!run.step());  // -14 * 2^125 is beyond f32; of a single term it would not be
    CHECK(run.w(5) == -7 * term);
  }
}

TEST_CASE("where a bound says too little, what would be stored is looked at") {
  for (const Target target : kTargets) {
    CAPTURE(static_cast<int>(target));
    Trained run(target, "sgd(lr = 0.5)");
    // Large in different rows: no term is large.
    run.x[0] = 1e25F;
    run.y[kSize] = 1e25F;
    run.x[2 * kSize + 3] = 2;
    run.y[2 * kSize + 1] = 5;
    CHECK(run.step());
    CHECK(run.w(3 * kSize + 1) == -5);
    CHECK(run.w(0) == 0);
    CHECK(run.step());
    CHECK(run.w(3 * kSize + 1) == -10);
    run.x[kSize] = 1e25F;  // now one is
    CHECK(!run.step());
    CHECK(run.w(3 * kSize + 1) == -10);
  }
}

TEST_CASE("operands that are not finite, and gradients that overflow, store nothing") {
  struct Case {
    const char* name;
    float x, y;
  };
  for (const Case& c : {Case{"nan", NAN, 1}, Case{"infinity", INFINITY, 1}, Case{"infinity beside zeros", 0, INFINITY},
                        Case{"a product that overflows", 1e20F, 1e20F}})
    for (const char* optimizer : {"sgd(lr = 0.1)", "adamw(lr = 0.1)"})
      for (const Target target : kTargets) {
        CAPTURE(c.name);
        CAPTURE(optimizer);
        CAPTURE(static_cast<int>(target));
        Trained run(target, optimizer);
        run.x[7] = run.y[9] = 3;
        CHECK(run.step());
        const float before = run.w(7 * kSize + 9);
        CHECK(before < 0);
        run.x[kRows * kSize - 1] = c.x;
        run.y[kRows * kSize - 2] = c.y;
        CHECK(!run.step());
        CHECK(run.w(7 * kSize + 9) == before);
      }
}
