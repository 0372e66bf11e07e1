// SPDX-License-Identifier: Apache-2.0
// Params and states in files.
#pragma once
#include <einc/runtime.h>

#include "runtime/data/name_map.h"
#include "runtime/executor/session.h"

namespace einc {

// Sets what the file holds, by path or as `names` says, once all of it is known to fit. Throws RuntimeFailure: data or resource.
LoadedWeights load_weights(const std::string& path, const NameMap& names, const ProgramInfo& info, SessionRep& session);
// All params, and the states of these paths.
void save_weights(const std::string& path, const ProgramInfo& info, const SessionRep& session, const std::vector<std::string>& states);

}  // namespace einc
