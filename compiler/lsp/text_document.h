// SPDX-License-Identifier: Apache-2.0
// The text of an open file as the editor sees it. The protocol counts lines from 0 and columns in UTF-16 units; everything else in bytes.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lsp/json_rpc.h"

namespace einc {

class TextDocument {
 public:
  explicit TextDocument(std::string text) { replace_all(std::move(text)); }

  const std::string& text() const { return text_; }
  void replace_all(std::string text);
  // One entry of `contentChanges`: a range and what stands there now, or the whole text.
  void apply(const LspJson& change);

  size_t offset(const LspJson& position) const;  // beyond the line or the text: its end
  LspJson position(size_t offset) const;
  LspJson range(size_t begin, size_t end) const { return {{"start", position(begin)}, {"end", position(end)}}; }

 private:
  std::string text_;
  std::vector<size_t> lines_;  // where each begins
};

}  // namespace einc
