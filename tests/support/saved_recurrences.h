// SPDX-License-Identifier: Apache-2.0
// Recurrences with `save every`, of lengths that it divides and others: all must give the bits of the same without it.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/agree.h"
#include "tests/support/recurrences.h"

namespace einc {

// A layer whose products leave the loop, with biases, in the forward and the backward.
inline constexpr const char* kSavedLayer = R"(input x: [batch=3 time=11 feat=5]
param w: [feat gate=4 hidden=24] ~ normal(std = 0.5)
param u: [h=24 gate=4 hidden=24] ~ normal(std = 0.3)
param b: [gate=4 hidden=24] ~ normal
c = zeros(batch, hidden=24)
h = c
LOOP {
  z = einsum(x[time = t], w, "batch f, f gate hidden -> batch gate hidden") + b + einsum(h, u, "batch h, h gate hidden -> batch gate hidden")
  c = sigmoid(z[gate = 1]) * c + sigmoid(z[gate = 0]) * tanh(z[gate = 2])
  h = dropout(sigmoid(z[gate = 3]) * tanh(c), 0.2)
  collect hs = h
}
slope = grad(mean(hs^2), w)
minimize mean(hs^3) + mean(slope^2) using sgd(lr = 0.1)
output hs
)";

struct SavedProgram {
  std::string name, text;  // LOOP as in a Recurrence
  int64_t length;
};

inline std::vector<SavedProgram> saved_programs() {
  std::vector<SavedProgram> programs{{"a layer", kSavedLayer, 11}};
  for (const Recurrence& r : kRecurrences) {
    const std::string text = written(r, "LOOP", false);
    const size_t time = text.find("time=");
    if (std::string(r.scan).starts_with("scan t in time") && time != std::string::npos)
      programs.push_back({r.name, text, std::stoi(text.substr(time + 5))});
  }
  return programs;
}

// "" or what `save every` changes in the runs.
inline std::string changed_by_save_every(const SavedProgram& program, const std::function<CpuRun(const Wanted&)>& run) {
  std::optional<CpuRun> all;
  std::string changed;
  for (const int64_t every : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, program.length}) {
    std::string text = program.text, problem;
    text.replace(text.find("LOOP"), 4, every == 0 ? "scan t in time" : fmt::format("scan t in time, save every {}", every));
    const auto wanted = interpret_text(text, 1, problem);
    if (!wanted) return problem;
    const CpuRun made = run(*wanted);
    if (!all)
      all = made;
    else if (!same_bits(*all, made))
      changed += fmt::format(" save every {}", every);
  }
  return changed;
}

}  // namespace einc
