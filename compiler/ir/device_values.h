// SPDX-License-Identifier: Apache-2.0
// Outputs of a mesh device's graph: values that lie in memory of the caller's, since collectives move them and results outlive a run.
// Kernels store them there; nothing of them lies in the memory of the program. They are told by their names.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

namespace einc {

inline constexpr std::string_view kValuePrefix = "value ";  // with a space: no output of a program has such a name
inline std::string value_name(NodeId id) { return std::string(kValuePrefix) + std::to_string(id.index); }
inline bool is_device_value(const Output& output) { return output.name.str().starts_with(kValuePrefix); }

}  // namespace einc
