// SPDX-License-Identifier: Apache-2.0
#include "runtime/sample/generate.h"

#include <algorithm>

#include "runtime/base/random.h"

namespace einc {

void generate(LanguageModel& model, std::span<const int32_t> prompt, const GenerationSettings& settings,
              const std::function<bool(int32_t)>& made) {
  const int64_t context = model.context();
  const PhiloxKey key = random_key(settings.seed, "sample");
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  for (int64_t n = 0; n < settings.count; ++n) {
    const auto size = static_cast<int64_t>(text.size());
    if (size > context) text.erase(text.begin(), text.end() - std::max<int64_t>(1, n == 0 ? context : context / 2));
    const std::vector<double> logits = model.logits_after(text);
    std::span<const double> allowed = logits;
    if (settings.vocabulary >= 0) allowed = allowed.first(std::min(allowed.size(), static_cast<size_t>(settings.vocabulary)));
    text.push_back(choose_token(allowed, settings.rule, random_uniform(key, static_cast<uint64_t>(n), 0)));
    if (!made(text.back())) return;
  }
}

}  // namespace einc
