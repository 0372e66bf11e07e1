// SPDX-License-Identifier: Apache-2.0
// --emit=obj: the program as an object file and a header beside it.
#pragma once
#include <string>

#include "compiler/driver/exit_status.h"
#include "compiler/pipeline/pipeline.h"

namespace einc {

struct ObjectRequest {
  std::string path;  // model.o; the header becomes model.h
  std::string cpu;   // LLVM's name of a processor, or "host"
  std::string mode;  // training or inference
};

// What is wrong with the request, on standard error: checked before anything is compiled.
bool check_object_request(const ObjectRequest& request);

std::string header_path(const ObjectRequest& request);  // of the header that is written beside the object file

ExitStatus emit_object(Compilation compilation, const PipelineOptions& options, const ObjectRequest& request);

}  // namespace einc
