// SPDX-License-Identifier: Apache-2.0
// What --device means: a machine of the table, `here` for this one as it was measured, or the first one that a JSON file describes. Reports
// carry the warnings about it.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "compiler/cost/device.h"

namespace einc {

// nullopt after a message on standard error, which `command` ("einc estimate") starts. `threads`: of `here`; all where none is given.
std::optional<Device> choose_device(const std::string& name, std::string_view command, std::optional<int> threads = std::nullopt);

}  // namespace einc
