// SPDX-License-Identifier: Apache-2.0
// What a library may do of a kernel list: products of matrices, products whose epilogue does what kernels around them do, and attention.
// Operands are values of the graph: a LibraryProduct's buffers are numbers of nodes here. A fused product and a call of attention are
// alternatives: the kernels stay in the list, both ways give the values that others read, and what either way needs is held in memory.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/program/attention_plugin.h"
#include "runtime/program/library_product.h"

namespace einc {

// A value that lies in memory from kernel `from`, or since it is made, until kernel `until`, which writes nothing in its place.
struct HeldValue {
  NodeId value;
  uint32_t until = 0;
  uint32_t from = UINT32_MAX;
};

// One product in the place of kernel `at` instead of all `parts` (ascending), of which `plain` is the same product without an epilogue.
struct FusedProduct {
  LibraryProduct product;
  std::vector<uint32_t> parts;
  uint32_t plain = 0, at = 0;
};

// One call of a plug-in's (runtime/program/attention_plugin.h) in the place of the last of `parts`, instead of all of them (ascending).
struct AttentionCall {
  struct Operand {
    NodeId value;
    int64_t offset = 0;  // elements
  };
  einc_attention_problem problem{};
  std::vector<uint32_t> parts;
  Operand q, k, v, o, log_sum, d_o, d_q, d_k, d_v;  // of a forward those that it has
  int64_t workspace_bytes = 0;
  uint32_t at() const { return parts.back(); }
  bool is_backward() const { return problem.direction == EINC_ATTENTION_BACKWARD; }
};

struct LibraryCalls {
  std::vector<std::optional<LibraryProduct>> products;  // by kernel: instead of code of its own; empty where there is no library
  std::vector<FusedProduct> fused;                      // no kernel is part of two alternatives
  std::vector<AttentionCall> attention;
  std::map<uint32_t, std::string> attention_refusals;  // by kernel: why the plug-in does not take it
  std::vector<HeldValue> held;                         // for the alternatives

  const LibraryProduct* product(size_t kernel) const { return kernel < products.size() && products[kernel] ? &*products[kernel] : nullptr; }
};

}  // namespace einc
