// SPDX-License-Identifier: Apache-2.0
// One overload for each attribute: a new one does not compile until it says which axes it names.
#include "compiler/partition/strip_mesh.h"

namespace einc {
namespace {

AxisList positions(const AxisList& list, const std::vector<int>& keep, const std::vector<int>& to) {
  AxisList out;
  for (int i = 0; i < list.size(); ++i) {
    if (keep[static_cast<size_t>(i)] < 0) continue;
    const int value = list[i] == kNoAxis ? kNoAxis : to[static_cast<size_t>(list[i])];
    EINC_CHECK(value >= 0, "an own axis lies on one of the mesh");
    out.push_back(value);
  }
  return out;
}

AxisList kept(const AxisList& list, const std::vector<int>& keep) {
  AxisList out;
  for (int i = 0; i < list.size(); ++i)
    if (keep[static_cast<size_t>(i)] >= 0) out.push_back(list[i]);
  return out;
}

class Stripper {
 public:
  Stripper(Node& node, const Node& source, const std::vector<std::vector<int>>& from, const std::vector<int>& to)
      : node_(node), source_(source), from_(from), to_(to) {}

  // No axes of an operand are named.
  void operator()(std::monostate&) const {}
  void operator()(InputAttr&) const {}
  void operator()(ParamAttr&) const {}
  void operator()(StateAttr&) const {}
  void operator()(ConstantAttr&) const {}
  void operator()(RandomAttr&) const {}
  void operator()(DropoutAttr&) const {}
  // Neither is over a mesh: a scan is taken as it is, collectives come out of the partition.
  void operator()(ScanAttr&) const {}
  void operator()(ScanResultAttr&) const {}
  void operator()(CollectiveAttr&) const {}
  void operator()(ShiftAttr& a) const { a.axis = own(a.axis); }

  void operator()(MapAttr& a) const {
    for (size_t k = 0; k < from_.size(); ++k) a.maps[k] = positions(a.maps[k], from_[k], to_);
  }
  void operator()(ReduceAttr& a) const {
    AxisList axes;
    for (const int axis : a.axes) axes.push_back(own(axis));
    a.axes = axes;
  }
  void operator()(CumulateAttr& a) const { a.axis = own(a.axis); }
  void operator()(ArgReduceAttr& a) const { a.axis = own(a.axis); }
  void operator()(TopKAttr& a) const { a.axis = own(a.axis); }
  void operator()(SliceAttr& a) const { a.axis = own(a.axis); }
  void operator()(ConcatAttr& a) const { a.axis = own(a.axis); }
  void operator()(WindowAttr& a) const { a.axis = own(a.axis); }
  void operator()(ContractAttr& a) const {
    const int gone = source_.type.rank() - node_.type.rank();
    const auto labels = [&](const AxisList& list, const std::vector<int>& keep) {
      AxisList out;
      for (int i = 0; i < list.size(); ++i)
        if (keep[static_cast<size_t>(i)] >= 0)
          out.push_back(list[i] < source_.type.rank() ? to_[static_cast<size_t>(list[i])] : list[i] - gone);
      return out;
    };
    a.left = labels(a.left, from_[0]);
    a.right = labels(a.right, from_[1]);
  }
  void operator()(PermuteAttr& a) const { a.order = positions(a.order, to_, from_[0]); }
  void operator()(BroadcastAttr& a) const { a.map = positions(a.map, from_[0], to_); }
  void operator()(DiagonalAttr& a) const { a.map = positions(a.map, from_[0], to_); }
  void operator()(SplitAttr& a) const { a.counts = kept(a.counts, from_[0]); }
  void operator()(MergeAttr& a) const { a.counts = kept(a.counts, to_); }
  void operator()(PadAttr& a) const {
    std::vector<Poly> before, after;
    for (size_t i = 0; i < to_.size(); ++i)
      if (to_[i] >= 0) before.push_back(a.before[i]), after.push_back(a.after[i]);
    a.before = std::move(before), a.after = std::move(after);
  }
  // A gather's maps lead to its result; a scatter's to its updates, and the table is its result.
  void operator()(GatherAttr& a) const {
    const bool gather = source_.op == Op::gather;
    const size_t updates = makes_table(source_.op) ? 0 : 1;
    const std::vector<int>& table = gather ? from_[0] : to_;
    const std::vector<int>& ids = gather ? from_[1] : from_[updates + 1];
    const std::vector<int>& target = gather ? to_ : from_[updates];
    a.axis = table[static_cast<size_t>(a.axis)];
    a.table_map = positions(a.table_map, table, target);
    a.ids_map = positions(a.ids_map, ids, target);
  }

 private:
  int own(int axis) const { return from_[0][static_cast<size_t>(axis)]; }

  Node& node_;
  const Node& source_;
  const std::vector<std::vector<int>>& from_;
  const std::vector<int>& to_;
};

}  // namespace

void strip_mesh(Node& node, const Node& source, const std::vector<std::vector<int>>& from, const std::vector<int>& to) {
  std::visit(Stripper(node, source, from, to), node.attr);
}

}  // namespace einc
