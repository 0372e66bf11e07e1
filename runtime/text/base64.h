// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace einc {

// nullopt: not base64 with its padding, or empty.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace einc
