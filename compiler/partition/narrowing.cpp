// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/narrowing.h"

#include <utility>

namespace einc {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), readers_(graph.size()) {
    found_.only.assign(graph.size(), false);
    found_.on_way.assign(graph.size(), false);
    for (uint32_t i = 0; i < graph.size(); ++i)
      if (graph.nodes[i].origin.phase != Phase::optimizer)
        for (const NodeId x : graph.nodes[i].operands)
          if (readers_[x.index].empty() || readers_[x.index].back() != i) readers_[x.index].push_back(i);  // once, also of x * x
  }

  Narrowing run() {
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (graph_.nodes[i].op == Op::param) param(i);
    return std::move(found_);
  }

 private:
  enum class Step : uint8_t { ends, goes_on, largest, other };

  // Of a node that reads `x`, which is made of a param, or one. Each element of a part follows from that element and from numbers that all
  // devices have: then the part of the result is the result of the part. An extreme of all elements is that of the parts' extremes.
  Step step(const Node& reader, uint32_t x) const {
    const Type &type = reader.type, &given = graph_.nodes[x].type;
    if (reader.op == Op::reduce) {
      const ReduceFn fn = reader.as<ReduceAttr>().fn;
      return type.rank() == 0 && (fn == ReduceFn::max || fn == ReduceFn::min) ? Step::largest : Step::other;
    }
    if ((reader.op != Op::map && reader.op != Op::cast) || type.rank() != given.rank() || !is_floating(type.dtype)) return Step::other;
    for (size_t k = 0; reader.op == Op::map && k < reader.operands.size(); ++k) {
      const NodeId operand = reader.operands[k];
      const bool of_param = operand.index == x && reader.as<MapAttr>().maps[k].is_identity();
      if (!of_param && graph_.type(operand).rank() > 0) return Step::other;
    }
    return bytes_of(type.dtype) < bytes_of(given.dtype) ? Step::ends : reader.op == Op::map ? Step::goes_on : Step::other;
  }

  // Walks from the param to where its values become narrow. No node is met twice: one of two values made of the param ends the walk.
  void param(uint32_t p) {
    std::vector<uint32_t> open{p}, passed, narrow;
    bool only = true;
    while (!open.empty()) {
      const uint32_t x = open.back();
      open.pop_back();
      for (const uint32_t reader : readers_[x]) {
        const Step to = step(graph_.nodes[reader], x);
        if (to == Step::ends) narrow.push_back(reader);
        if (to == Step::goes_on) open.push_back(reader);
        if (to == Step::other)
          only = false;
        else
          passed.push_back(reader);
      }
    }
    found_.only[p] = only;
    // Where others read the whole, a cast is all that parts are good for.
    const auto may_take_parts = [&](const Node& node) { return only || (node.op == Op::cast && node.operands[0].index == p); };
    for (const uint32_t i : passed)
      if (may_take_parts(graph_.nodes[i])) found_.on_way[i] = true;
    for (const uint32_t i : narrow)
      if (found_.on_way[i]) found_.made_of[i] = p;
  }

  const Graph& graph_;
  std::vector<std::vector<uint32_t>> readers_;  // by node, but for the optimizer's
  Narrowing found_;
};

}  // namespace

Narrowing find_narrowing(const Graph& graph) { return Finder(graph).run(); }

}  // namespace einc
