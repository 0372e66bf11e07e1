// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/init.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

constexpr uint64_t kTruncationAttempts = 64;

double normal_below(double z) { return 0.5 * std::erfc(-z * 0.70710678118654752); }

// The number in [lo, hi] with a share u of the cut normal's mass below it; plain interpolation where no mass is left.
double cut_normal(double mean, double std, double lo, double hi, double u) {
  const double below = normal_below((lo - mean) / std), mass = normal_below((hi - mean) / std) - below;
  if (!(mass > 0)) return lo + u * (hi - lo);
  for (int i = 0; i < 60; ++i) {
    const double middle = lo + (hi - lo) / 2;
    (normal_below((middle - mean) / std) - below < u * mass ? lo : hi) = middle;
  }
  return lo;
}

double trunc_normal(PhiloxKey key, uint64_t index, double mean, double std, double lo, double hi) {
  for (uint64_t attempt = 0; attempt < kTruncationAttempts; ++attempt) {
    const double x = mean + std * random_normal(key, attempt, index);
    if (x >= lo && x <= hi) return x;
  }
  return cut_normal(mean, std, lo, hi, random_uniform(key, kTruncationAttempts, index));
}

// Calls draw(words, position within the block) for consecutive elements, computing each block of four words once.
template <class Draw>
void fill_from_words(PhiloxKey key, uint64_t first, std::span<double> out, Draw draw) {
  PhiloxCounter words{};
  for (uint64_t i = 0; i < out.size(); ++i) {
    const uint64_t index = first + i;
    if (i == 0 || index % 4 == 0) words = random_words(key, 0, index / 4);
    out[i] = draw(words, index % 4);
  }
}

}  // namespace

std::string_view to_string(InitKind kind) {
  switch (kind) {
    case InitKind::zeros:
      return "zeros";
    case InitKind::ones:
      return "ones";
    case InitKind::constant:
      return "constant";
    case InitKind::normal:
      return "normal";
    case InitKind::uniform:
      return "uniform";
    case InitKind::trunc_normal:
      return "trunc_normal";
  }
  return "";
}

std::optional<InitKind> parse_init_kind(std::string_view name) {
  for (const InitKind kind :
       {InitKind::zeros, InitKind::ones, InitKind::constant, InitKind::normal, InitKind::uniform, InitKind::trunc_normal})
    if (to_string(kind) == name) return kind;
  return std::nullopt;
}

int argument_count(InitKind kind) {
  switch (kind) {
    case InitKind::zeros:
    case InitKind::ones:
      return 0;
    case InitKind::constant:
      return 1;
    case InitKind::normal:
    case InitKind::uniform:
      return 2;
    case InitKind::trunc_normal:
      return 4;
  }
  return 0;
}

void fill_init(InitKind kind, std::span<const double> arguments, uint64_t seed, std::string_view path, uint64_t first,
               std::span<double> out) {
  EINC_CHECK(static_cast<int>(arguments.size()) == argument_count(kind), "{} takes {} arguments, not {}", to_string(kind),
             argument_count(kind), arguments.size());
  const PhiloxKey key = random_key(seed, path);
  switch (kind) {
    case InitKind::zeros:
      std::fill(out.begin(), out.end(), 0.0);
      return;
    case InitKind::ones:
      std::fill(out.begin(), out.end(), 1.0);
      return;
    case InitKind::constant:
      std::fill(out.begin(), out.end(), arguments[0]);
      return;
    case InitKind::normal:
      fill_from_words(key, first, out, [&](const PhiloxCounter& words, uint64_t at) {
        const NormalPair pair = box_muller(words[at / 2 * 2], words[at / 2 * 2 + 1]);
        return arguments[0] + arguments[1] * (at % 2 == 0 ? pair.even : pair.odd);
      });
      return;
    case InitKind::uniform:
      fill_from_words(key, first, out, [&](const PhiloxCounter& words, uint64_t at) {
        return arguments[0] + (arguments[1] - arguments[0]) * ((words[at] >> 8) * 0x1p-24);
      });
      return;
    case InitKind::trunc_normal:
      for (uint64_t i = 0; i < out.size(); ++i)
        out[i] = trunc_normal(key, first + i, arguments[0], arguments[1], arguments[2], arguments[3]);
      return;
  }
}

}  // namespace einc
