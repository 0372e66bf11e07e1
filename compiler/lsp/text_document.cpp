// SPDX-License-Identifier: Apache-2.0
#include "compiler/lsp/text_document.h"

#include <algorithm>
#include <cstdint>

namespace einc {
namespace {

// Bytes of the code point whose first byte this is; a stray byte counts as one.
size_t length_of(unsigned char first) { return first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4; }
size_t units_of(size_t bytes) { return bytes == 4 ? 2 : 1; }

size_t number_at(const LspJson& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number_integer()) return 0;
  return static_cast<size_t>(std::max<int64_t>(found->get<int64_t>(), 0));
}

}  // namespace

void TextDocument::replace_all(std::string text) {
  text_ = std::move(text);
  lines_ = {0};
  for (size_t i = 0; i < text_.size(); ++i)
    if (text_[i] == '\n') lines_.push_back(i + 1);
}

size_t TextDocument::offset(const LspJson& position) const {
  const size_t line = number_at(position, "line");
  if (line >= lines_.size()) return text_.size();
  size_t at = lines_[line];
  const size_t end = line + 1 < lines_.size() ? lines_[line + 1] - 1 : text_.size();
  for (size_t units = number_at(position, "character"); units > 0 && at < end;) {
    const size_t bytes = length_of(static_cast<unsigned char>(text_[at]));
    at = std::min(at + bytes, end);
    units -= std::min(units, units_of(bytes));
  }
  return at;
}

LspJson TextDocument::position(size_t offset) const {
  offset = std::min(offset, text_.size());
  const size_t line = static_cast<size_t>(std::upper_bound(lines_.begin(), lines_.end(), offset) - lines_.begin()) - 1;
  size_t units = 0;
  for (size_t at = lines_[line]; at < offset;) {
    const size_t bytes = length_of(static_cast<unsigned char>(text_[at]));
    units += units_of(bytes);
    at += bytes;
  }
  return {{"line", line}, {"character", units}};
}

void TextDocument::apply(const LspJson& change) {
  if (!change.is_object() || !change.contains("text") || !change["text"].is_string()) return;
  const std::string& text = change["text"].get_ref<const std::string&>();
  if (!change.contains("range") || !change["range"].is_object()) return replace_all(text);
  const LspJson& range = change["range"];
  const size_t begin = offset(range.value("start", LspJson::object()));
  const size_t end = std::max(begin, offset(range.value("end", LspJson::object())));
  std::string whole = std::move(text_);
  whole.replace(begin, end - begin, text);
  replace_all(std::move(whole));
}

}  // namespace einc
