// SPDX-License-Identifier: Apache-2.0
// The functions that this process has loaded, by their text: what runs forwards alone, what trains, and the stages of a pipeline are
// programs of their own that have many functions in common, each of which is compiled once.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/codegen/llvm/engine.h"
#include "runtime/base/sha256.h"
#include "runtime/program/kernel_function.h"

namespace einc {

struct LoadedFunction {
  std::shared_ptr<const LoadedCode> code;  // that it lies in
  KernelFunction* function;
};

// May be used from several threads at once.
class LoadedFunctions {
 public:
  // Objects of at most `kept_bytes` together stay although nobody has their code any more, the last ones that were added.
  explicit LoadedFunctions(size_t kept_bytes) : kept_bytes_(kept_bytes) {}

  std::optional<LoadedFunction> find(std::string_view text) const;

  struct Named {
    std::string_view symbol, text;
  };
  // What an object of so many bytes defines.
  void add(const std::shared_ptr<const LoadedCode>& code, size_t bytes, std::span<const Named> functions);

 private:
  struct Hash {
    size_t operator()(const Sha256& digest) const;
  };
  struct Known {
    std::weak_ptr<const LoadedCode> code;
    KernelFunction* function;
  };
  struct Kept {
    std::shared_ptr<const LoadedCode> code;
    size_t bytes;
  };

  const size_t kept_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<Sha256, Known, Hash> known_;  // by digest of the text, which nobody keeps
  std::deque<Kept> kept_;                          // the oldest first
  size_t held_bytes_ = 0;
};

}  // namespace einc
