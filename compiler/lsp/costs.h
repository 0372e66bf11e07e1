// SPDX-License-Identifier: Apache-2.0
// Costs of a program's ops for hover, made in a child process: a report takes hundreds of milliseconds for a large model, and an answer may
// not wait for it. One child at a time; that of an older text is ended.
#pragma once
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "compiler/lsp/analysis.h"

namespace einc {

// The costs of a text by a report; the second argument is the text, the first its name.
using CostMaker = std::function<std::vector<LineCost>(const std::string& path, const std::string& text)>;

class CostChild {
 public:
  explicit CostChild(CostMaker maker) : maker_(std::move(maker)) {}
  CostChild(const CostChild&) = delete;
  ~CostChild() { stop(); }

  void start(const std::string& path, const std::string& text);
  void stop();
  int descriptor() const { return descriptor_; }  // to wait for; below 0: no child
  // Reads what the child has written. True when it has ended; costs() is its result then.
  bool read();
  const std::vector<LineCost>& costs() const { return costs_; }

 private:
  CostMaker maker_;
  pid_t child_ = -1;
  int descriptor_ = -1;
  std::string buffer_;
  std::vector<LineCost> costs_;
};

}  // namespace einc
