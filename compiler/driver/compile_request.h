// SPDX-License-Identifier: Apache-2.0
// What `einc FILE` is asked for.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/emit_object.h"
#include "compiler/driver/pass_names.h"
#include "compiler/symbolic/dim_table.h"

namespace einc {

struct CompileRequest {
  std::string file;
  std::vector<std::string> dims, import_folders, disable;
  std::string report, emit, explain, precision, device, fit, mesh, shard, plan;
  std::string diagnostics = "text";
  ObjectRequest object{"", "host", "training"};
  std::string arch;       // none: that of `device`, or sm_90
  bool compares = false;  // --diff
  std::string other;      // its program; none: the same one with other dims
  Bindings other_dims;
  std::optional<double> devices, tokens, mfu;
  std::optional<int64_t> memory_limit;
  std::optional<int> threads;
  Scheduling scheduling() const;
  PassView passes;
  bool list_devices = false, quiet = false, version = false, show_passes = false, discard_outputs = false;
};

}  // namespace einc
