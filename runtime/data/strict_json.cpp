// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {

nlohmann::json parse_strict_json(std::string_view text, const std::string& path, JsonLimits limits) {
  using Json = nlohmann::json;
  const auto fail = [&](const std::string& what) { throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(path), what)); };
  if (text.size() > limits.bytes) fail(fmt::format("{} bytes of JSON are above the limit of {}", text.size(), limits.bytes));
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys.emplace_back();
        [[fallthrough]];
      case Json::parse_event_t::array_start:
        if (depth >= limits.depth) fail(fmt::format("JSON nests deeper than {}", limits.depth));
        break;
      case Json::parse_event_t::key:
        if (!keys.back().insert(value.get<std::string>()).second)
          fail(fmt::format("the key '{}' is there twice", printable(value.get<std::string>())));
        break;
      case Json::parse_event_t::object_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::array_end:
      case Json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    fail(fmt::format("byte {}: not JSON", error.byte > 0 ? error.byte - 1 : 0));
  } catch (const Json::exception&) {
    fail("a number is beyond all formats");
  }
  return {};
}

}  // namespace einc
