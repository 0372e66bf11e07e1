// SPDX-License-Identifier: Apache-2.0
// A random program from its tables of statements: declarations, statements, then losses, an optimizer and outputs that read them.
#include "tests/fuzz/random_program.h"

#include <algorithm>

#include "tests/fuzz/random_writer.h"

namespace einc {
namespace {

// Most programs are in f32; the others cover what is stored in other formats, and the policies.
NumberFormats number_formats(RandomWriter& w) {
  const size_t kind = w.below(100);
  if (kind < 58) return {"", {"f32"}};
  if (kind < 68) return {"", {"f64"}};
  if (kind < 76) return {"", {"f32", "f64"}};
  if (kind < 80) return {"", {"f32", "bf16"}};
  if (kind < 84) return {"", {"f32", "f16", "bf16"}};
  if (kind < 92) return {"bf16", {"", "", "f32"}};
  if (kind < 97) return {"f16", {""}};
  return {"fp8", {""}};
}

void statement(RandomWriter& w) {
  constexpr std::span<const StatementKind> (*kTables[])() = {elementwise_statements, axis_statements,  index_statements,
                                                             state_statements,       model_statements, scan_statements};
  std::vector<StatementKind> kinds;
  for (const auto& table : kTables) kinds.insert(kinds.end(), table().begin(), table().end());
  int total = 0;
  for (const StatementKind& kind : kinds) total += kind.weight;
  int chosen = static_cast<int>(w.below(static_cast<size_t>(total)));
  for (const StatementKind& kind : kinds)
    if ((chosen -= kind.weight) < 0) {
      kind.write(w);
      return;
    }
}

// A small eps would divide gradients that are 0 but for rounding by their own size.
std::string optimizer(RandomWriter& w) {
  constexpr const char* optimizers[] = {"sgd(lr = 0.1)",
                                        "sgd(lr = 0.5, clip_norm = 0.3)",
                                        "momentum(lr = 0.1)",
                                        "momentum(lr = 0.1, nesterov = true)",
                                        "adagrad(lr = 0.1, eps = 0.1)",
                                        "rmsprop(lr = 0.1, eps = 0.1)",
                                        "rmsprop(lr = 0.1, eps = 0.1, momentum = 0.9, centered = true)",
                                        "adam(lr = 0.1, eps = 0.1)",
                                        "adam(lr = 0.1, eps = 0.1, amsgrad = true)",
                                        "adamw(lr = 0.1, eps = 0.1, clip_norm = 0.5)",
                                        "adamw(lr = cosine(0.1, warmup = 3, total = 9, floor = 0.01), eps = 0.1, weight_decay = 0.1)"};
  return w.one_of(optimizers);
}

std::string loss_of(RandomWriter& w, const RandomValue& x) {
  constexpr const char* losses[] = {"mean({0}^2)", "mean(sin({0}))", "mean(tanh({0}))", "0.3 * sum(tanh({0}))", "mean(softplus({0}))"};
  return fmt::format(fmt::runtime(w.one_of(losses)), x.name);
}

void finish(RandomWriter& w) {
  // What nothing has read is in a loss or returned; and a few others are.
  std::vector<RandomValue> ends, params, real;
  for (const RandomValue& x : w.values()) {
    if (x.readers == 0 && !x.is_source) ends.push_back(x);
    if (x.name[0] == 'w') params.push_back(x);
    if (is_real(x.dtype) && x.name[0] != 's') real.push_back(x);  // states pass no gradient
  }
  std::string loss, aside;
  std::vector<std::string> outputs;
  for (const RandomValue& x : ends) {
    if (!is_real(x.dtype) || (w.chance(4) && !loss.empty())) {
      outputs.push_back(x.name);
      continue;
    }
    std::string& sum = !loss.empty() && w.chance(5) ? aside : loss;
    sum += (sum.empty() ? "" : " + ") + loss_of(w, x);
    if (w.chance(3)) outputs.push_back(x.name);
  }
  if (loss.empty() || w.chance(3)) loss += (loss.empty() ? "" : " + ") + loss_of(w, w.one_of(real));
  w.line(fmt::format("loss = {}", loss));
  const bool minimizes = std::any_of(w.program.lines.begin(), w.program.lines.end(), [](const auto& line) {
    return line.text.starts_with("param ") || line.text.find("  param ") < line.text.size();
  });
  if (minimizes && (w.differentiable || !w.chance(4))) {
    if (params.size() > 1 && w.chance(4))
      w.line(fmt::format("minimize loss over \"{}\" using {} over \"*\" using {}", w.one_of(params).name, optimizer(w), optimizer(w)));
    else
      w.line(fmt::format("minimize loss using {}", optimizer(w)));
  }
  for (size_t i = w.below(3); i > 0; --i) outputs.push_back(w.one_of(real).name);
  if (outputs.empty()) outputs.push_back(real.back().name);
  std::sort(outputs.begin(), outputs.end());
  outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
  for (const auto& name : outputs) w.line(fmt::format("output {}", name));
  const auto gradients = [&](const std::string& of, size_t count) {
    for (size_t i = 0; i < count; ++i) w.line(fmt::format("output {} = grad({}, {})", w.fresh("d"), of, w.one_of(real).name));
  };
  gradients("loss", w.below(3));
  if (!aside.empty()) {
    w.line(fmt::format("aside = {}", aside));
    gradients("aside", 1 + w.below(2));
  }
  if (w.chance(10)) {
    const RandomValue x = w.source();
    w.line(fmt::format("output second = grad(sum(grad(loss, {0})^2), {0})", x.name));
  }
}

}  // namespace

bool is_differentiable(uint64_t seed) { return seed % 10 == 0; }

RandomProgram random_program(uint64_t seed) {
  RandomWriter w(seed);
  w.differentiable = is_differentiable(seed);
  w.formats = w.differentiable ? NumberFormats{"", {"f32", "f64"}} : number_formats(w);
  if (!w.formats.policy.empty()) w.line("precision " + w.formats.policy);
  for (size_t i = 1 + w.below(2); i > 0; --i) w.input(w.random_axes(3));
  w.param(w.random_axes(2));
  const size_t enough = w.program.lines.size() + 5 + w.below(9);
  for (int tries = 0; tries < 12 && w.program.lines.size() < enough; ++tries) statement(w);
  if (seed % 8 == 5) image(w);  // in programs of their own, so that the others stay what they are
  finish(w);
  return std::move(w.program);
}

}  // namespace einc
