// SPDX-License-Identifier: Apache-2.0
// Text with a cache and without is the same text.
#include <doctest/doctest.h>
#include <einc/einc.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/sample/generate.h"

using namespace einc;

namespace {

#ifdef EINC_WITH_LLVM
constexpr Target kTarget = Target::cpu;
#else
constexpr Target kTarget = Target::reference;
#endif

CompileOptions small(std::map<std::string, int64_t> more) {
  CompileOptions options;
  options.dims = {{"batch", 1}, {"vocab", 31}, {"layers", 2}, {"heads", 2}, {"head", 8}};
  for (const auto& [name, value] : more) options.dims[name] = value;
  options.purpose = Purpose::inference;
  options.target = kTarget;
  options.code_cache.emplace();
  return options;
}

constexpr int64_t kContext = 24;

std::vector<int32_t> text(LanguageModel& model, const std::vector<int32_t>& prompt, const GenerationSettings& settings) {
  std::vector<int32_t> made;
  generate(model, prompt, settings, [&](int32_t token) {
    made.push_back(token);
    return true;
  });
  return made;
}

// Says that the token after t is likely t + 1, and remembers what it was asked.
class Counting : public LanguageModel {
 public:
  int64_t context() const override { return 8; }
  std::vector<double> logits_after(std::span<const int32_t> text) override {
    asked.emplace_back(text.begin(), text.end());
    std::vector<double> logits(100, 0);
    logits[static_cast<size_t>(text.back() + 1) % 100] = 9;
    return logits;
  }
  std::vector<std::vector<int32_t>> asked;
};

}  // namespace

TEST_CASE("a text longer than the context goes on from its later half") {
  Counting model;
  GenerationSettings settings{.rule = {.temperature = 0}, .count = 9};
  CHECK(text(model, {1, 2, 3, 4, 5, 6}, settings) == std::vector<int32_t>{7, 8, 9, 10, 11, 12, 13, 14, 15});
  CHECK(model.asked[0] == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(model.asked[2] == std::vector<int32_t>{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(model.asked[3] == std::vector<int32_t>{6, 7, 8, 9});
  CHECK(model.asked[8] == std::vector<int32_t>{11, 12, 13, 14});
  model.asked.clear();
  settings.count = 1;
  CHECK(text(model, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, settings) == std::vector<int32_t>{10});
  CHECK(model.asked[0] == std::vector<int32_t>{2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("a text ends where its reader says, and holds tokens of the vocabulary only") {
  Counting model;
  int count = 0;
  generate(model, std::vector<int32_t>{5}, {.rule = {.temperature = 0}, .count = 50}, [&](int32_t) { return ++count < 3; });
  CHECK(count == 3);
  const auto made = text(model, {50}, {.rule = {.temperature = 0}, .count = 2, .vocabulary = 52});
  CHECK(made == std::vector<int32_t>{51, 0});
}

TEST_CASE("with a cache and without, greedily and by draws, past the end of the context too") {
  const std::string weights = (std::filesystem::temp_directory_path() / fmt::format("einc_sample_{}.safetensors", getpid())).string();
  Session whole(compile_file("examples/nanogpt.ein", small({{"seq", kContext}})), {.threads = 1});
  whole.init(3);
  // At 0.02 all tokens are about as likely.
  for (const TensorInfo& param : whole.program().params()) {
    std::vector<double> values = whole.param(param.name).to_doubles();
    std::vector<float> larger(values.begin(), values.end());
    if (param.axes.size() > 1)
      for (float& x : larger) x *= 12;
    whole.set(param.name, TensorView(DType::f32, param.shape, larger.data()));
  }
  whole.save(weights);
  Session one(compile_file("examples/nanogpt_sample.ein", small({{"seq", 1}, {"context", kContext}})), {.threads = 1});
  Session several(compile_file("examples/nanogpt_sample.ein", small({{"seq", 7}, {"context", kContext}})), {.threads = 1});
  CHECK(one.load(weights).missing.empty());
  std::filesystem::remove(weights);
  const auto plain = model_without_cache(whole, {"tokens", "logits", ""});
  const auto cached = model_with_cache(several, one, {"tokens", "logits", "position"}, kContext);
  CHECK(plain->context() == cached->context());
  CHECK(several.param("wte").data() == one.param("wte").data());
  CHECK(several.state("h.0.attn.keys").data() == one.state("h.0.attn.keys").data());
  for (size_t length : {1, 2, 6, 7, 8, 15, 23, 24, 40}) {
    CAPTURE(length);
    std::vector<int32_t> prompt;
    for (size_t i = 0; i < length; ++i) prompt.push_back(static_cast<int32_t>(i * i % 31));
    const GenerationSettings greedy{.rule = {.temperature = 0}, .count = 45};
    CHECK(text(*plain, prompt, greedy) == text(*cached, prompt, greedy));
    const GenerationSettings drawn{.rule = {.top_k = 12}, .seed = length, .count = 45};
    const auto made = text(*plain, prompt, drawn);
    CHECK(made == text(*cached, prompt, drawn));
    GenerationSettings other = drawn;
    other.seed += 100;
    CHECK(made != text(*cached, prompt, other));
  }
}
