// SPDX-License-Identifier: Apache-2.0
// The plug-in that computes attention beside einc's own kernels (attention_plugin.h), opened when first asked for.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <string>

#include "runtime/cuda/driver_api.h"
#include "runtime/program/attention_plugin.h"

namespace einc::cuda {

// X(name, result, arguments) of each function that a plug-in has.
#define EINC_ATTENTION_FUNCTIONS(X)                                                                                       \
  X(abi, int, (void))                                                                                                     \
  X(version, const char*, (void))                                                                                         \
  X(create, einc_attention_plan*, (const einc_attention_problem* problem))                                                \
  X(destroy, void, (einc_attention_plan * plan))                                                                          \
  X(workspace, size_t, (const einc_attention_plan* plan))                                                                 \
  X(run, int, (const einc_attention_plan* plan, const einc_attention_buffers* buffers, uint64_t workspace, void* stream)) \
  X(error, const char*, (void))

class AttentionLibrary {
 public:
  // $EINC_ATTENTION_PLUGIN, else libeinc_cudnn.so in the folder of this executable or in the lib folder beside that. Null where there is
  // none, or where the variable is empty; one that is named and cannot be opened is told of once, on standard error.
  static const AttentionLibrary* get();
  // Throws RuntimeFailure (resource) where the file is no plug-in of this version.
  explicit AttentionLibrary(const std::string& file);
  AttentionLibrary(const AttentionLibrary&) = delete;
  AttentionLibrary& operator=(const AttentionLibrary&) = delete;
  ~AttentionLibrary();

  // Whose attention, and which version: "cuDNN 9.19.0".
  const std::string& name() const { return name_; }

  // What the library says of a problem: a plan for the process' GPU, or why it has none, which is told of on standard error too.
  struct Plan {
    einc_attention_plan* plan = nullptr;
    size_t workspace_bytes = 0;
    std::string refusal;
  };
  const Plan& plan(const einc_attention_problem& problem) const;
  // Throws RuntimeFailure (resource); `where` names the launch.
  void run(const Plan& plan, const einc_attention_buffers& buffers, DevicePointer workspace, Stream stream, const std::string& where) const;

 private:
#define EINC_ATTENTION_POINTER(name, result, arguments) result(*name##_) arguments = nullptr;
  EINC_ATTENTION_FUNCTIONS(EINC_ATTENTION_POINTER)
#undef EINC_ATTENTION_POINTER
  std::string name_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Plan> plans_;  // by the problem's bytes
};

// A problem in a line: "backward bf16 16 x 12:12 heads, 1024 queries, 1024 keys, 64:64 wide, causal".
std::string to_string(const einc_attention_problem& problem);

}  // namespace einc::cuda
