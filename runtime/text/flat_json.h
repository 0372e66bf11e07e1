// JSON of the simplest shape, an object of strings and whole numbers, read as hostile: nothing nests, so nothing can be deep.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace einc {

using JsonMember = std::pair<std::string, std::variant<std::string, uint64_t>>;

// The members in the file's order, no name twice. Throws RuntimeFailure (data), which names the path.
std::vector<JsonMember> parse_flat_json(const std::string& path, std::string_view text);

}  // namespace einc
