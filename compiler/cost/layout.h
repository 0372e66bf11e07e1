// SPDX-License-Identifier: Apache-2.0
// Which views are only another way to address a buffer, and which must be stored. Every computed node fills a contiguous
// row-major buffer; permute, broadcast, split, slice, diagonal and window are new strides over it. A merge of axes that are
// not adjacent in memory has no stride: it is copied, and the copy is the buffer of what follows.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

struct Layouts {
  std::vector<bool> copies;    // per node: a view that must be stored
  std::vector<NodeId> buffer;  // per node: the node whose buffer it lies in (itself when it has one)
};

Layouts analyse_layouts(const Graph& graph);

// The node a value is a view of by its op alone, whatever the strides: what saved activations are counted by.
NodeId view_base(const Graph& graph, NodeId id);

// Why a node moves data although it computes nothing: "merge (heads head): ..." for a copied view, likewise for pad, concat
// and gather; empty for others.
std::string copy_reason(const Graph& graph, const Layouts& layouts, NodeId id);

}  // namespace einc
