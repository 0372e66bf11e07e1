// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/loaded_functions.h"

#include <cstring>

namespace einc {

size_t LoadedFunctions::Hash::operator()(const Sha256& digest) const {
  size_t hash;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

std::optional<LoadedFunction> LoadedFunctions::find(std::string_view text) const {
  const Sha256 digest = sha256({text});
  const std::lock_guard lock(mutex_);
  const auto it = known_.find(digest);
  if (it == known_.end()) return std::nullopt;
  LoadedFunction found{it->second.code.lock(), it->second.function};
  return found.code ? std::optional(std::move(found)) : std::nullopt;
}

void LoadedFunctions::add(const std::shared_ptr<const LoadedCode>& code, size_t bytes, std::span<const Named> functions) {
  std::deque<Kept> gone;  // unloaded outside the lock
  const std::lock_guard lock(mutex_);
  for (const Named& f : functions) known_[sha256({f.text})] = {code, code->function<KernelFunction>(f.symbol)};
  kept_.push_back({code, bytes});
  held_bytes_ += bytes;
  while (held_bytes_ > kept_bytes_) {
    held_bytes_ -= kept_.front().bytes;
    gone.push_back(std::move(kept_.front()));
    kept_.pop_front();
  }
  if (!gone.empty()) std::erase_if(known_, [](const auto& entry) { return entry.second.code.expired(); });
}

}  // namespace einc
