// SPDX-License-Identifier: Apache-2.0
// What must hold of a node of each op: the rules behind node_check.h, and what they have in common. The first that is broken is told.
#pragma once
#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "compiler/ir/graph.h"

namespace einc {

class NodeRules {
 public:
  NodeRules(const Graph& graph, NodeId id) : graph_(graph), id_(id), node_(graph[id]), out_(graph[id].type) {}

  std::string run();

 private:
  int operand_count() const;
  void check();

  // What computes (node_rules_of_values.cpp).
  void random();
  void map();
  void reduce();
  void softmax();
  void scan();
  void scan_result();
  void shift();
  void collective();
  void arg_reduce();
  void top_k();
  void contract();
  // What moves elements (node_rules_of_moves.cpp).
  void permute();
  void broadcast();
  void split();
  void merge();
  void slice();
  void diagonal();
  void pad();
  void concat();
  // Each axis of `coarse` is the product of counts[i] axes of `fine`, in order.
  void groups(const AxisList& counts, const Type& coarse, const Type& fine);
  // `flat` has one axis where `places` has strides.size() of them.
  void windows(const WindowAttr& a, const Type& flat, const Type& places);
  // values[..] = table[.., ids[..], ..]; see GatherAttr.
  void indexed(const GatherAttr& a, const Type& table, const Type& ids, const Type& values);

  template <class... T>
  void fail(fmt::format_string<T...> format, T&&... values) {
    if (problem_.empty()) problem_ = fmt::format(format, std::forward<T>(values)...);
  }

  template <class T>
  const T* attr() {
    const T* a = std::get_if<T>(&node_.attr);
    if (a == nullptr) fail("attributes of another op");
    return a;
  }

  const Type& in(size_t k) const { return graph_.type(node_.operands[k]); }

  static bool has_axis(const Type& t, int axis) { return axis >= 0 && axis < t.rank(); }

  void size_is(int axis, const Poly& size) {
    if (!has_axis(out_, axis))
      fail("axis {} is missing", axis);
    else if (!(out_.axis(axis).size == size))
      fail("axis {} has size {} instead of {}", axis, out_.axis(axis).size.str(), size.str());
  }
  void rank_is(int rank) {
    if (out_.rank() != rank) fail("rank {} instead of {}", out_.rank(), rank);
  }
  void same_sizes() {
    if (!out_.same_sizes(in(0))) fail("sizes differ from the operand's");
  }
  void same_dtype() {
    if (out_.dtype != in(0).dtype) fail("dtype {} from {}", to_string(out_.dtype), to_string(in(0).dtype));
  }
  void same_axis_kept(int axis) {
    if (!has_axis(in(0), axis)) fail("no axis {}", axis);
    same_sizes();
    if (is_floating(out_.dtype) != is_floating(in(0).dtype)) fail("changes between integers and floating numbers");
  }
  void index_result() {
    if (out_.dtype != DType::i32 && out_.dtype != DType::i64) fail("positions are i32 or i64, not {}", to_string(out_.dtype));
  }

  void others_kept(int axis) {
    rank_is(in(0).rank());
    for (int i = 0; i < in(0).rank(); ++i)
      if (i != axis) size_is(i, in(0).axis(i).size);
  }

  const Graph& graph_;
  NodeId id_;
  const Node& node_;
  const Type& out_;
  std::string problem_;
};

}  // namespace einc
