// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/prune_kernel.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace einc {
namespace {

class Pruner {
 public:
  explicit Pruner(Kernel& kernel) : kernel_(kernel) {}

  std::vector<uint16_t> run() {
    find_used();
    renumber(kernel_.values, values_, value_number_);
    renumber(kernel_.reductions, reductions_, reduction_number_);
    renumber(kernel_.axes, axes_, axis_number_);
    renumber(kernel_.buffers, buffers_, buffer_number_);
    rewrite();
    std::vector<uint16_t> left;
    for (size_t b = 0; b < buffers_.size(); ++b)
      if (buffers_[b]) left.push_back(static_cast<uint16_t>(b));
    return left;
  }

 private:
  void find_used() {
    values_.assign(kernel_.values.size(), false);
    reductions_.assign(kernel_.reductions.size(), false);
    axes_.assign(kernel_.axes.size(), false);
    buffers_.assign(kernel_.buffers.size(), false);
    for (AxisId a : kernel_.outer) axes_[a] = true;
    if (kernel_.part) axes_[*kernel_.part] = true;
    for (const Stage& stage : kernel_.stages) {
      for (AxisId a : stage.axes) axes_[a] = true;
      for (const Store& s : stage.stores) values_[s.value] = true, buffers_[s.buffer] = true, use(s.index);
      for (uint16_t r : stage.reductions) reductions_[r] = true, use(kernel_.reductions[r]);
    }
    if (kernel_.attention) find_used(*kernel_.attention);
    for (size_t i = kernel_.values.size(); i-- > 0;) {
      if (!values_[i]) continue;
      const Scalar& v = kernel_.values[i];
      for (ValueId x : v.operands) values_[x] = true;
      use(v.index);
      for (const Range& g : v.guards) use(g.index);
      if (v.kind == ScalarKind::load) buffers_[v.slot] = true;
    }
  }

  void find_used(const Attention& a) {
    for (AxisId axis : a.batch) axes_[axis] = true;
    for (AxisId axis : a.turns) axes_[axis] = true;
    axes_[a.row] = axes_[a.key] = true;
    for (const KeyBound& b : a.bounds)
      if (b.base != kNoValue) values_[b.base] = true;
    for (const AttentionStep& step : a.steps) {
      reductions_[step.reduction] = true, use(kernel_.reductions[step.reduction]);
      for (ValueId id : {step.left, step.right})
        if (id != kNoValue) values_[id] = true;
      for (AxisId axis : step.over) axes_[axis] = true;
      for (AxisId axis : step.free) axes_[axis] = true;
      for (const Store& s : step.stores) values_[s.value] = true, buffers_[s.buffer] = true, use(s.index);
    }
  }

  void use(const Subscript& index) {
    for (const Subscript::Dynamic& d : index.dynamic) values_[d.value] = true;
    for (const Affine::Term& t : index.affine.terms) axes_[t.axis] = true;
  }
  void use(const Accumulation& r) {
    values_[r.value] = true;
    if (r.position != kNoValue) values_[r.position] = true;
  }

  template <class T>
  static void renumber(std::vector<T>& list, const std::vector<bool>& used, std::vector<uint32_t>& number) {
    std::vector<T> kept;
    for (size_t i = 0; i < list.size(); ++i) {
      number.push_back(static_cast<uint32_t>(kept.size()));
      if (used[i]) kept.push_back(std::move(list[i]));
    }
    list = std::move(kept);
  }

  void rewrite() {
    for (Scalar& v : kernel_.values) {
      for (ValueId& x : v.operands) x = value_number_[x];
      rewrite(v.index);
      for (Range& g : v.guards) rewrite(g.index);
      if (v.kind == ScalarKind::load) v.slot = static_cast<uint16_t>(buffer_number_[v.slot]);
      if (v.kind == ScalarKind::reduction || v.kind == ScalarKind::running) v.slot = static_cast<uint16_t>(reduction_number_[v.slot]);
    }
    for (Accumulation& r : kernel_.reductions) {
      r.value = value_number_[r.value];
      if (r.position != kNoValue) r.position = value_number_[r.position];
    }
    rewrite(kernel_.outer);
    for (Stage& stage : kernel_.stages) {
      rewrite(stage.axes);
      for (uint16_t& r : stage.reductions) r = static_cast<uint16_t>(reduction_number_[r]);
      for (Store& s : stage.stores) rewrite(s);
    }
    if (kernel_.attention) rewrite(*kernel_.attention);
    if (kernel_.sequence) kernel_.sequence = static_cast<AxisId>(axis_number_[*kernel_.sequence]);
    if (kernel_.part) kernel_.part = static_cast<AxisId>(axis_number_[*kernel_.part]);
  }
  void rewrite(Attention& a) const {
    rewrite(a.batch), rewrite(a.turns);
    a.row = static_cast<AxisId>(axis_number_[a.row]), a.key = static_cast<AxisId>(axis_number_[a.key]);
    if (a.softmax)
      for (std::optional<uint16_t>* buffer : {&a.softmax->log_sums, &a.softmax->deltas})
        if (*buffer) *buffer = buffers_[**buffer] ? std::optional(static_cast<uint16_t>(buffer_number_[**buffer])) : std::nullopt;
    for (KeyBound& b : a.bounds)
      if (b.base != kNoValue) b.base = value_number_[b.base];
    for (AttentionStep& step : a.steps) {
      step.reduction = static_cast<uint16_t>(reduction_number_[step.reduction]);
      for (ValueId* id : {&step.left, &step.right})
        if (*id != kNoValue) *id = value_number_[*id];
      rewrite(step.over), rewrite(step.free);
      for (Store& s : step.stores) rewrite(s);
    }
  }
  void rewrite(Store& s) const {
    s.buffer = static_cast<uint16_t>(buffer_number_[s.buffer]);
    s.value = value_number_[s.value];
    rewrite(s.index);
  }
  void rewrite(Subscript& index) const {
    for (Subscript::Dynamic& d : index.dynamic) d.value = value_number_[d.value];
    for (Affine::Term& t : index.affine.terms) t.axis = static_cast<AxisId>(axis_number_[t.axis]);
  }
  void rewrite(std::vector<AxisId>& axes) const {
    for (AxisId& a : axes) a = static_cast<AxisId>(axis_number_[a]);
  }

  Kernel& kernel_;
  std::vector<bool> values_, reductions_, axes_, buffers_;
  std::vector<uint32_t> value_number_, reduction_number_, axis_number_, buffer_number_;
};

// Whether a step of attention needs the reduction, besides the one that makes it.
bool is_needed(const Kernel& kernel, uint16_t reduction) {
  const std::vector<uint64_t> needs = reductions_of_values(kernel);
  return std::ranges::any_of(kernel.attention->steps, [&](const AttentionStep& s) {
    if (s.part == AttentionPart::scores) return false;
    const uint64_t read = s.part == AttentionPart::fold ? needs[kernel.reductions[s.reduction].value] : needs[s.left] | needs[s.right];
    return (read >> reduction & 1) != 0;
  });
}

}  // namespace

std::vector<uint16_t> prune_kernel(Kernel& kernel) { return Pruner(kernel).run(); }

void replace_kernel(GraphKernel& k, Kernel kernel) {
  if (kernel.attention) {
    const auto is_idle = [&](const AttentionStep& s) { return s.part == AttentionPart::scores && !is_needed(kernel, s.reduction); };
    std::erase_if(kernel.attention->steps, is_idle);
  }
  const std::vector<uint16_t> left = prune_kernel(kernel);
  std::vector<NodeId> buffers;
  std::vector<Parts> parts;
  for (size_t b = 0; b < left.size(); ++b) {
    buffers.push_back(k.buffers[left[b]]);
    for (const Parts& p : k.parts)
      if (p.buffer == left[b]) parts.push_back({static_cast<uint16_t>(b), p.offset});
  }
  k.buffers = std::move(buffers), k.parts = std::move(parts);
  const std::string problem = verify(kernel);
  EINC_CHECK(problem.empty(), "{}\n{}", problem, to_string(kernel));
  k.kernel = std::make_shared<Kernel>(std::move(kernel));
}

void rename_values(Kernel& kernel, const std::vector<ValueId>& now) {
  const auto move = [&](ValueId& id) {
    if (id != kNoValue) id = now[id];
  };
  const auto rename = [&](Subscript& index) {
    for (Subscript::Dynamic& d : index.dynamic) move(d.value);
  };
  const auto rename_stores = [&](std::vector<Store>& stores) {
    for (Store& s : stores) move(s.value), rename(s.index);
  };
  for (Scalar& v : kernel.values) {
    for (ValueId& x : v.operands) move(x);
    rename(v.index);
    for (Range& g : v.guards) rename(g.index);
  }
  for (Accumulation& r : kernel.reductions) move(r.value), move(r.position);
  for (Stage& stage : kernel.stages) rename_stores(stage.stores);
  if (!kernel.attention) return;
  for (KeyBound& b : kernel.attention->bounds) move(b.base);
  for (AttentionStep& step : kernel.attention->steps) move(step.left), move(step.right), rename_stores(step.stores);
}

}  // namespace einc
