// SPDX-License-Identifier: Apache-2.0
// Kernels that are one object are mapped once; what the product reads and writes is then each launch's own.
#include "compiler/library/find_products.h"

#include <map>

#include "compiler/library/map_gemm.h"

namespace einc {

ProductSums f32_products(const BoundGraph& graph, const GraphKernel& kernel) {
  bool any = false, all = true;  // a sum of products that is written as one is no contraction: it is f32
  for (const NodeId id : kernel.group.members)
    if (graph[id].op == Op::contract) any = true, all = all && is_in_tf32(graph.graph, id);
  return any && all ? ProductSums::tf32 : ProductSums::f32;
}

void find_library_products(const BoundGraph& graph, const LibraryLimits& limits, KernelList& list) {
  list.library.products.resize(list.kernels.size());
  std::map<const Kernel*, std::optional<LibraryProduct>> known;  // by kernels that are one object
  for (size_t i = 0; i < list.kernels.size(); ++i) {
    const GraphKernel& k = list.kernels[i];
    if (!k.kernel->contraction) continue;
    const auto [mapped, fresh] = known.try_emplace(k.kernel.get());
    if (fresh) mapped->second = map_gemm(*k.kernel).gemm;
    std::optional<LibraryProduct> product = mapped->second;
    if (!product || !is_worth_library(product->batch, product->rows, product->columns, product->depth, limits)) continue;
    for (LibraryMatrix* m : {&product->left, &product->right, &product->result}) m->buffer = k.buffers[m->buffer].index;
    if (product->scale) product->scale = k.buffers[*product->scale].index;
    if (product->left.dtype == DType::f32) product->sums = f32_products(graph, k);
    list.library.products[i] = std::move(product);
  }
}

}  // namespace einc
