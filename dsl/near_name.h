// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the candidate within a small edit distance of what was written.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace einc {

// Edits (insert, delete, replace, swap of neighbours) that turn a into b, or limit + 1 if more than limit are needed.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit);

// The nearest candidate by its letters, capital or small, the first one of several; none if all are too far (more than a third of the
// letters) to be meant.
std::optional<std::string> near_name(std::string_view wanted, const std::vector<std::string_view>& candidates);

}  // namespace einc
