// SPDX-License-Identifier: Apache-2.0
// The pass `library_attention`: which attention kernels of a list a plug-in may compute instead (runtime/program/attention_plugin.h).
#pragma once
#include <functional>
#include <string>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Why a plug-in has no way to do it, and the memory that it needs besides if it has.
struct AttentionAnswer {
  std::string refusal;
  int64_t workspace_bytes = 0;
};
using AskLibrary = std::function<AttentionAnswer(const einc_attention_problem&)>;

// Adds the calls to the list's alternatives, or the refusals. A plug-in's backward reads the forward's result, as a kernel of ours does
// not: that is held.
void find_library_attention(const BoundGraph& graph, const AskLibrary& ask, KernelList& list);

}  // namespace einc
