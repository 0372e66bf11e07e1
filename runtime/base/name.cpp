// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/name.h"

#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace einc {
namespace {

struct Table {
  std::shared_mutex mutex;
  std::deque<std::string> texts{std::string()};  // deque: references stay valid as it grows
  std::unordered_map<std::string_view, uint32_t> ids{{std::string_view(), 0u}};
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
  t.texts.emplace_back(text);
  id_ = static_cast<uint32_t>(t.texts.size() - 1);
  t.ids.emplace(t.texts.back(), id_);
}

const std::string& Name::str() const {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  return t.texts[id_];
}

}  // namespace einc
