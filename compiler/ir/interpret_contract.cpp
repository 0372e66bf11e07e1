// SPDX-License-Identifier: Apache-2.0
// The binary contraction of the interpreter: out[o] = sum over s of left[o, s] * right[o, s], summed in the order of the
// labels, in f64 or 64-bit integers.
#include "compiler/ir/interpret_ops.h"

namespace einc {
namespace {

// Sizes and strides of both operands over a range of labels.
struct Labels {
  std::vector<int64_t> sizes, left, right;
};

Labels labels_between(const Evaluation& e, int first, int last) {
  const ContractAttr& attr = e.node.as<ContractAttr>();
  const std::vector<int64_t> left = row_major_strides(e.in[0]->shape), right = row_major_strides(e.in[1]->shape);
  Labels range;
  for (int label = first; label <= last; ++label) {
    const int i = attr.left.find(label), j = attr.right.find(label);
    if (i < 0 && j < 0) continue;
    range.sizes.push_back(i >= 0 ? e.in[0]->shape[static_cast<size_t>(i)] : e.in[1]->shape[static_cast<size_t>(j)]);
    range.left.push_back(i >= 0 ? left[static_cast<size_t>(i)] : 0);
    range.right.push_back(j >= 0 ? right[static_cast<size_t>(j)] : 0);
  }
  return range;
}

template <class T, class Product>
void contract(Evaluation& e, const T* left, const T* right, T* out, Product product) {
  const int rank = static_cast<int>(e.out.shape.size());
  const Labels kept = labels_between(e, 0, rank - 1), summed = labels_between(e, rank, kNoAxis);
  walk<3>(e.out.shape, {row_major_strides(e.out.shape), kept.left, kept.right}, {}, [&](const std::array<int64_t, 3>& at) {
    T total = 0;
    uint64_t count = 0;
    walk<2>(summed.sizes, {summed.left, summed.right}, {at[1], at[2]}, [&](const std::array<int64_t, 2>& inner) {
      total = product(total, left[inner[0]], right[inner[1]]);
      count += 2;
    });
    out[at[0]] = total;
    e.counts.contraction += count;
  });
}

}  // namespace

void evaluate_contract(Evaluation& e) {
  if (e.out.is_real()) {
    std::vector<double> left, right;
    return contract(e, as_reals(*e.in[0], left), as_reals(*e.in[1], right), e.out.reals.data(),
                    [](double total, double a, double b) { return total + a * b; });
  }
  EINC_CHECK(!e.in[0]->is_real() && !e.in[1]->is_real(), "contract: an integer result of floating operands");
  contract(e, e.in[0]->ints.data(), e.in[1]->ints.data(), e.out.ints.data(), [](int64_t total, int64_t a, int64_t b) {
    return static_cast<int64_t>(static_cast<uint64_t>(total) + static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  });
  for (int64_t& x : e.out.ints) x = wrap_integer(e.out.dtype, x);
}

}  // namespace einc
