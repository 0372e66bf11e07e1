// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/name.h"

#include <array>
#include <bit>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace einc {
namespace {

// Texts by number, in blocks that never move, each as large as all before it. A text is read without the lock: who has a number got it
// behind the writing of its text.
class Texts {
 public:
  const std::string& operator[](uint32_t id) const {
    const auto block = static_cast<uint32_t>(std::bit_width(id));
    return blocks_[block][id - first_of(block)];
  }
  uint32_t add(std::string_view text) {
    const auto block = static_cast<uint32_t>(std::bit_width(size_));
    if (size_ == first_of(block)) blocks_[block] = std::make_unique<std::string[]>(block == 0 ? 1 : size_);
    blocks_[block][size_ - first_of(block)] = text;
    return size_++;
  }

 private:
  static uint32_t first_of(uint32_t block) { return block == 0 ? 0 : uint32_t{1} << (block - 1); }
  uint32_t size_ = 0;
  std::array<std::unique_ptr<std::string[]>, 33> blocks_;
};

struct Table {
  std::shared_mutex mutex;
  Texts texts;
  std::unordered_map<std::string_view, uint32_t> ids;

  Table() { ids.emplace(std::string_view(), texts.add({})); }
};

Table& table() {
  static Table* const t = new Table;  // never destroyed: names may be used by other statics' destructors
  return *t;
}

}  // namespace

Name::Name(std::string_view text) {
  Table& t = table();
  {
    std::shared_lock lock(t.mutex);
    if (auto it = t.ids.find(text); it != t.ids.end()) {
      id_ = it->second;
      return;
    }
  }
  std::unique_lock lock(t.mutex);
  if (auto it = t.ids.find(text); it != t.ids.end()) {
    id_ = it->second;
    return;
  }
  id_ = t.texts.add(text);
  t.ids.emplace(t.texts[id_], id_);
}

const std::string& Name::str() const { return table().texts[id_]; }

}  // namespace einc
