// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/bounded_products.h"

#include <algorithm>

namespace einc {
namespace {

// New values wait for all checks, and a product that makes one waits with them: its operands stay in memory until then. They may add half
// of what the gradient takes there.
constexpr int64_t kLargestPart = 2;
// Of rounding: K additions in f32 are off by less than K * 2^-24 of the sum of magnitudes, and no K reaches 2^24.
constexpr double kRounding = 2, kMostTerms = 1 << 24;

}  // namespace

BoundedProducts::BoundedProducts(const BoundGraph& graph, const UpdateExpressions& expressions)
    : graph_(graph), expressions_(expressions), exponential_(graph.graph.size(), false), output_(graph.graph.size(), false) {
  for (const Output& output : graph.graph.outputs) output_[output.node.index] = true;
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const Node& node = graph.graph.nodes[i];
    if (node.op != Op::map && node.op != Op::cast && kind_of(node.op) != OpKind::view) continue;
    exponential_[i] = is_map(node, MapFn::exp) || std::ranges::any_of(node.operands, [&](NodeId x) { return exponential_[x.index]; });
  }
}

bool BoundedProducts::is_read_by_updates(NodeId gradient) const {
  const std::vector<NodeId>& readers = expressions_.readers(gradient);
  const auto is_update = [&](NodeId reader) {
    return graph_.shape(reader) == graph_.shape(gradient) && expressions_.is_only_updated(reader) && expressions_.is_expression(reader);
  };
  return !output_[gradient.index] && !readers.empty() && std::ranges::all_of(readers, is_update);
}

double BoundedProducts::terms(const Node& product) const {
  const AxisList& labels = product.as<ContractAttr>().left;
  const Shape& shape = graph_.shape(product.operands[0]);
  double count = 1;
  for (int i = 0; i < labels.size(); ++i)
    if (labels[i] >= product.type.rank()) count *= static_cast<double>(shape[static_cast<size_t>(i)]);
  return count;
}

double BoundedProducts::factor(NodeId gradient) const {
  const Node& node = graph_[gradient];
  // In f64 the bound itself could overflow.
  if (node.op != Op::contract || node.type.dtype == DType::f64 || !is_read_by_updates(gradient)) return 0;
  int64_t elements = 0;
  for (const NodeId x : node.operands) {
    if (exponential_[x.index]) return 0;
    elements += graph_.count(x);
  }
  const double count = terms(node);
  if (count < 1 || count >= kMostTerms || elements * kLargestPart > graph_.count(gradient)) return 0;
  return kRounding * count;
}

}  // namespace einc
