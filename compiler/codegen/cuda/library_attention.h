// SPDX-License-Identifier: Apache-2.0
// Which attention kernels of a list a plug-in may compute instead (runtime/cuda/attention_plugin.h). Both ways stand in the executable.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/codegen/cuda/match_attention.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

// Why a plug-in has no way to do it, and the memory that it needs besides if it has.
struct AttentionAnswer {
  std::string refusal;
  int64_t workspace_bytes = 0;
};
using AskLibrary = std::function<AttentionAnswer(const einc_attention_problem&)>;

struct LibraryAttention {
  struct Forward {
    uint32_t kernel = 0;  // number in the list
    AttentionForward match;
    AttentionAnswer answer;
  };
  // Of a forward among `forwards`, whose result it reads, as a kernel of ours does not.
  struct Backward {
    uint32_t delta = 0, rows = 0, keys = 0;
    size_t forward = 0;
    AttentionBackward match;
    AttentionAnswer answer;
  };
  std::vector<Forward> forwards;
  std::vector<Backward> backwards;
};

LibraryAttention find_library_attention(const KernelList& list, const AskLibrary& ask);

// What must stay in memory for a plug-in longer than for our own kernels.
std::vector<HeldValue> held_by(const LibraryAttention& found, const KernelList& list);

// The same of an executable's launches: what they touch besides their own buffers.
struct TouchedBuffer {
  uint32_t launch = 0, buffer = 0;
};
std::vector<TouchedBuffer> touched_by(const LibraryAttention& found, const Executable& program);

// Puts the calls, and the refusals, into the executable.
void add_library_attention(const LibraryAttention& found, CudaExecutable& executable);

}  // namespace einc
