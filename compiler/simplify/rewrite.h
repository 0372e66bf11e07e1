// SPDX-License-Identifier: Apache-2.0
// One sweep of rewrite rules over the graph in order. A node whose operands are already simplified is offered to the rules
// of its op; the first that fits gives the replacement, whose own nodes are offered to the rules in turn. Rules never depend
// on how often a value is used and never add work, so a replaced node that others still read costs nothing extra.
// Nodes whose dtype the source fixed (pinned) are left as they are.
#pragma once
#include <span>
#include <string_view>

#include "compiler/ir/build.h"

namespace einc {

class Rewriter {
 public:
  explicit Rewriter(Graph& graph) : build(graph) {}

  Builder build;
  const Node& at(NodeId id) const { return build_graph()[id]; }
  const Type& type(NodeId id) const { return build_graph().type(id); }

  // Simplifies and appends; the result may be a node that was there.
  NodeId emit(Node&& node);
  // The last node that `build` appended, simplified in its turn.
  NodeId settle(NodeId built);
  NodeId map(MapFn fn, std::initializer_list<NodeId> operands) { return settle(build.map(fn, operands)); }

  // The value of a rank-0 constant, else null.
  const ScalarValue* constant(NodeId id) const;
  bool is_constant(NodeId id, int64_t value) const;
  // A scalar that is known when the dims are: constants and arithmetic of them.
  bool is_number(NodeId id) const { return number_[id.index]; }
  // `id` as a result of type `type`, where map[i] is the place of its axis i: permuted, broadcast or cast as needed.
  NodeId place(NodeId id, const AxisList& map, const Type& type);
  NodeId zeros(const Type& type);

  size_t applied = 0;

 private:
  const Graph& build_graph() const { return const_cast<Builder&>(build).graph(); }
  std::optional<NodeId> apply_rules(const Node& node);
  NodeId append(Node&& node);

  std::vector<bool> number_;
  int depth_ = 0;
};

struct RewriteRule {
  std::string_view name;
  std::string_view before, after;  // for people
  Op op;
  std::optional<NodeId> (*apply)(Rewriter&, const Node&);
  std::optional<MapFn> fn = std::nullopt;  // of one elementwise function only
};
// The tables of rules_map.cpp (elementwise), rules_view.cpp (views and casts) and rules_sum.cpp (reductions, contractions).
std::span<const RewriteRule> map_rules();
std::span<const RewriteRule> view_rules();
std::span<const RewriteRule> sum_rules();

struct Rewritten {
  Graph graph;
  size_t count = 0;  // rules applied
};
Rewritten rewrite(Graph graph);

}  // namespace einc
