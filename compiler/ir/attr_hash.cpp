// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/attr_hash.h"

#include <functional>

namespace einc {
namespace {

size_t hash_of(const AxisList& list) {
  size_t hash = static_cast<size_t>(list.size());
  for (int v : list) hash = mix(hash, static_cast<size_t>(v));
  return hash;
}
size_t hash_of(const std::vector<Poly>& list) {
  size_t hash = list.size();
  for (const Poly& p : list) hash = mix(hash, p.hash());
  return hash;
}
size_t hash_of(const ScalarValue& value) {
  if (const Poly* p = std::get_if<Poly>(&value)) return p->hash();
  return std::hash<double>()(std::get<double>(value));
}

struct HashAttr {
  size_t operator()(const std::monostate&) const { return 0; }
  size_t operator()(const InputAttr& a) const { return a.name.id(); }
  size_t operator()(const ParamAttr& a) const { return a.path.id(); }
  size_t operator()(const StateAttr& a) const { return a.path.id(); }
  size_t operator()(const ConstantAttr& a) const { return hash_of(a.value); }
  size_t operator()(const RandomAttr& a) const { return a.stream.id(); }
  size_t operator()(const MapAttr& a) const {
    size_t hash = static_cast<size_t>(a.fn);
    for (const AxisList& map : a.maps) hash = mix(hash, hash_of(map));
    return hash;
  }
  size_t operator()(const ReduceAttr& a) const { return mix(static_cast<size_t>(a.fn), hash_of(a.axes)); }
  size_t operator()(const CumulateAttr& a) const { return mix(static_cast<size_t>(a.fn), static_cast<size_t>(a.axis)); }
  size_t operator()(const ArgReduceAttr& a) const { return static_cast<size_t>(a.axis); }
  size_t operator()(const TopKAttr& a) const { return static_cast<size_t>(a.axis); }
  size_t operator()(const ContractAttr& a) const { return mix(hash_of(a.left), hash_of(a.right)); }
  size_t operator()(const PermuteAttr& a) const { return hash_of(a.order); }
  size_t operator()(const BroadcastAttr& a) const { return hash_of(a.map); }
  size_t operator()(const SplitAttr& a) const { return hash_of(a.counts); }
  size_t operator()(const MergeAttr& a) const { return hash_of(a.counts); }
  size_t operator()(const SliceAttr& a) const { return mix(a.start.hash(), static_cast<size_t>(a.step)); }
  size_t operator()(const DiagonalAttr& a) const { return hash_of(a.map); }
  size_t operator()(const WindowAttr& a) const { return mix(hash_of(a.strides), static_cast<size_t>(a.axis)); }
  size_t operator()(const PadAttr& a) const { return mix(hash_of(a.before), hash_of(a.after)); }
  size_t operator()(const ConcatAttr& a) const { return static_cast<size_t>(a.axis); }
  size_t operator()(const GatherAttr& a) const { return mix(hash_of(a.table_map), hash_of(a.ids_map)); }
  size_t operator()(const ScanAttr& a) const { return std::hash<const void*>()(a.body.get()); }
  size_t operator()(const ScanResultAttr& a) const { return static_cast<size_t>(a.index); }
  size_t operator()(const CollectiveAttr& a) const { return mix(static_cast<size_t>(a.mesh), static_cast<size_t>(a.fn)); }
  size_t operator()(const ShiftAttr& a) const { return mix(static_cast<size_t>(a.axis), static_cast<size_t>(a.by)); }
  size_t operator()(const DropoutAttr& a) const { return a.stream.id(); }
};

}  // namespace

size_t hash_of(const Attr& attr) { return std::visit(HashAttr(), attr); }

}  // namespace einc
