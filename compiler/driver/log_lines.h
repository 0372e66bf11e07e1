// SPDX-License-Identifier: Apache-2.0
// The lines of a log that `einc train --log` wrote, as a person may have changed it.
#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace einc {

struct LogLine {
  nlohmann::json fields;  // an object with a "kind"
  uint64_t end = 0;       // bytes of the file up to it, its line feed included
};

// Calls `take` for each until it returns false. A last line without its line feed is none: it is being written, or its run was killed.
// Throws RuntimeFailure: resource, or data with the line that is no such line.
void read_log(const std::string& path, const std::function<bool(const LogLine& line)>& take);

// Cuts a log off where a run is gone on with that had done `step` steps when it was saved: what it did afterwards is done again.
// Throws as read_log.
void cut_log(const std::string& path, uint64_t step);

}  // namespace einc
