// SPDX-License-Identifier: Apache-2.0
// y = contract(l, r): dl = contract(g, r) summed over the axes that l lacks, dr = contract(l, g): as many FLOPs each as the
// forward contraction. Where nothing is summed (r's axes are all l's) the contraction is an elementwise product.
#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

struct Term {
  NodeId value;
  AxisList labels;
};

// Sum over the labels that `wanted` lacks of a * b, with the axes `axes` that `wanted` labels.
Partial product_over(const Backward& b, const Term& first, const Term& second, const AxisList& wanted, const std::vector<Axis>& axes) {
  AxisList summed;
  const auto relabel = [&](const AxisList& labels) {
    AxisList out;
    for (int label : labels) {
      const int place = wanted.find(label);
      if (place < 0 && !summed.contains(label)) summed.push_back(label);
      out.push_back(place >= 0 ? place : wanted.size() + summed.find(label));
    }
    return out;
  };
  const AxisList left = relabel(first.labels), right = relabel(second.labels);
  if (summed.empty()) return b.apply(MapFn::mul, {{first.value, left}, {second.value, right}}, axes);
  const NodeId product = b.build.contract(first.value, second.value, left, right, wanted.size());
  b.build.graph()[product].type.axes = axes;
  return b.whole(product);
}

}  // namespace

std::optional<Partial> gradient_of_contract(const Backward& b, int k) {
  const ContractAttr& attr = b.attr<ContractAttr>();
  const std::vector<Axis> axes = b.operand_type(k).axes;
  const Term g{b.full_gradient(), AxisList::range(b.node.type.rank())};
  if (k == 0) return product_over(b, g, {b.operand(1), attr.right}, attr.left, axes);
  return product_over(b, {b.operand(0), attr.left}, g, attr.right, axes);
}

}  // namespace einc
