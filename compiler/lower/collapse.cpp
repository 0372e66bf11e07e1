// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/collapse.h"

#include <algorithm>

namespace einc {
namespace {

class Collapser {
 public:
  explicit Collapser(Kernel& kernel) : kernel_(kernel) {}

  void run() {
    collect();
    for (size_t b = kernel_.axes.size(); b-- > 1;)
      while (join_with_one_outside(static_cast<AxisId>(b))) {
      }
    drop_unused();
  }

 private:
  // Every affine index of the kernel, and every list of loops.
  void collect() {
    for (Scalar& v : kernel_.values) {
      affines_.push_back(&v.index.affine);
      for (Range& g : v.guards) affines_.push_back(&g.index.affine);
    }
    for (Stage& stage : kernel_.stages)
      for (Store& s : stage.stores) affines_.push_back(&s.index.affine);
    lists_.push_back(&kernel_.outer);
    for (Stage& stage : kernel_.stages) lists_.push_back(&stage.axes);
  }

  bool join_with_one_outside(AxisId b) {
    for (AxisId a = b; a-- > 0;)
      if (kernel_.extent(a) > 1 && joinable(a, b)) return join(a, b), true;  // 1: joined before
    return false;
  }

  bool is_part(AxisId a) const { return kernel_.part && *kernel_.part == a; }

  // a directly outside b wherever one of them is, and all indices step over a in whole b's.
  bool joinable(AxisId a, AxisId b) const {
    if (kernel_.sequence && (*kernel_.sequence == a || *kernel_.sequence == b)) return false;
    if (is_part(a) || is_part(b)) return false;
    for (const auto* list : lists_) {
      const auto i = std::find(list->begin(), list->end(), a), j = std::find(list->begin(), list->end(), b);
      if ((i == list->end()) != (j == list->end())) return false;
      if (i != list->end() && i + 1 != j) return false;
    }
    const int64_t extent = kernel_.extent(b);
    return std::all_of(affines_.begin(), affines_.end(), [&](const Affine* x) { return x->coefficient(a) == x->coefficient(b) * extent; });
  }

  void join(AxisId a, AxisId b) {
    kernel_.axes[b].extent *= kernel_.axes[a].extent;
    kernel_.axes[a].extent = 1;
    for (Affine* x : affines_) {
      const auto term = std::find_if(x->terms.begin(), x->terms.end(), [&](const Affine::Term& t) { return t.axis == a; });
      if (term != x->terms.end()) x->terms.erase(term);
    }
    for (auto* list : lists_) list->erase(std::remove(list->begin(), list->end(), a), list->end());
  }

  // Axes renumbered without those that became part of others.
  void drop_unused() {
    std::vector<AxisId> number(kernel_.axes.size());
    std::vector<LoopAxis> kept;
    for (size_t a = 0; a < kernel_.axes.size(); ++a) {
      number[a] = static_cast<AxisId>(kept.size());
      if (kernel_.axes[a].extent != 1) kept.push_back(kernel_.axes[a]);
    }
    kernel_.axes = std::move(kept);
    for (Affine* x : affines_)
      for (Affine::Term& t : x->terms) t.axis = number[t.axis];
    for (auto* list : lists_)
      for (AxisId& a : *list) a = number[a];
    if (kernel_.sequence) kernel_.sequence = number[*kernel_.sequence];
    if (kernel_.part) kernel_.part = number[*kernel_.part];
  }

  Kernel& kernel_;
  std::vector<Affine*> affines_;
  std::vector<std::vector<AxisId>*> lists_;
};

}  // namespace

void collapse_axes(Kernel& kernel) { Collapser(kernel).run(); }

}  // namespace einc
