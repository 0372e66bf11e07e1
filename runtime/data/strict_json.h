// SPDX-License-Identifier: Apache-2.0
// JSON of files that nobody vouches for: bounded in size and depth, every key once.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace einc {

struct JsonLimits {
  size_t bytes = size_t{16} << 20;
  int depth = 16;  // of objects and lists within each other
};

// `path` is for messages. Throws RuntimeFailure (data) with the byte where the text stops being JSON, or what is beyond a limit.
nlohmann::json parse_strict_json(std::string_view text, const std::string& path, JsonLimits limits = {});

}  // namespace einc
