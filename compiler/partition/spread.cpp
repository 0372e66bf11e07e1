// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/spread.h"

#include <map>

#include "compiler/partition/decide.h"
#include "runtime/base/training_names.h"

namespace einc {
namespace {

AxisList united(const AxisList& a, const AxisList& b) {
  AxisList all = a;
  for (const int m : b)
    if (!all.contains(m)) all.push_back(m);
  return all;
}

class Spreading {
 public:
  Spreading(const Graph& graph, const Narrowing& narrowing, const LayoutValues& values)
      : graph_(graph), values_(values), narrowing_(narrowing), out_(graph.size()) {}

  std::vector<DeclaredLayout> run() {
    for (const ShardRequest& r : graph_.mesh.requests) requests_[{r.declared, r.path.str()}].push_back(&r);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.op == Op::input) set(i, asked(Op::input, node.as<InputAttr>().name, node.type.rank()));
      if (node.op == Op::random) set(i, asked(Op::random, node.as<RandomAttr>().stream, node.type.rank()));
      if (node.op == Op::param) param(i, node);
      if (node.op == Op::state && node.as<StateAttr>().role == StateRole::user)
        set(i, asked(Op::state, node.as<StateAttr>().path, node.type.rank()));
    }
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (const Node& node = graph_.nodes[i]; node.op == Op::state && node.as<StateAttr>().role != StateRole::user) moment(i, node);
    return std::move(out_);
  }

 private:
  void set(uint32_t i, const Layout& layout) { out_[i] = {layout, layout, Assembly::never}; }

  Layout asked(Op op, Name path, int rank) const {
    Layout layout(rank);
    if (const auto found = requests_.find({op, path.str()}); found != requests_.end())
      for (const ShardRequest* r : found->second)
        if (r->axis < rank) layout.over(r->axis) = r->over;
    return layout;
  }

  // Along mesh axes that do not split it yet, where they divide an axis of it: first one that nothing splits, for an axis that is split
  // already is put together in as many steps as mesh axes split it. What no axis divides stays whole, as a norm's few weights may.
  Layout spread(Layout layout, const Type& type, const AxisList& along) const {
    for (const int m : along) {
      if (layout.has(m)) continue;
      for (const bool split : {false, true}) {
        for (int i = 0; i < type.rank() && !layout.has(m); ++i) {
          AxisList over = layout.over(i);
          if (over.empty() == split) continue;
          over.push_back(m);
          if (divides_evenly(type.axis(i).size, over, graph_.mesh, values_)) layout.over(i) = over;
        }
      }
    }
    return layout;
  }

  // Masters of which the forward reads a copy in a smaller dtype are spread with the states: the copy is put together, once a step.
  void param(uint32_t i, const Node& node) {
    const ParamAttr& attr = node.as<ParamAttr>();
    const Layout read = asked(Op::param, attr.path, node.type.rank());
    by_path_[attr.path.str()] = i;
    const Mesh& mesh = graph_.mesh;
    AxisList along = mesh.params;
    if (narrowing_.only[i] && !attr.frozen) along = united(along, united(mesh.states, mesh.gradients));
    const Layout stored = spread(read, node.type, along);
    out_[i] = {stored, read, stored == read ? Assembly::never : mesh.params.empty() ? Assembly::once : Assembly::each_phase};
  }

  // optimizer.PATH.NAME of a param's shape lies as the param does; other states of the optimizer are whole.
  void moment(uint32_t i, const Node& node) {
    set(i, Layout(node.type.rank()));
    std::string_view path = node.as<StateAttr>().path.str();
    if (!path.starts_with(kAddedByTraining)) return;
    path.remove_prefix(kAddedByTraining.size());
    const size_t end = path.rfind('.');
    const auto found = end == std::string_view::npos ? by_path_.end() : by_path_.find(std::string(path.substr(0, end)));
    if (found == by_path_.end() || !node.type.same_sizes(graph_.nodes[found->second].type)) return;
    const Mesh& mesh = graph_.mesh;
    const bool gradient = path.substr(end) == kGradientSum;
    const AxisList along = gradient ? united(mesh.gradients, mesh.params) : united(mesh.states, united(mesh.gradients, mesh.params));
    set(i, spread(out_[found->second].stored, node.type, along));
  }

  const Graph& graph_;
  const LayoutValues& values_;
  const Narrowing& narrowing_;
  std::vector<DeclaredLayout> out_;
  std::map<std::pair<Op, std::string>, std::vector<const ShardRequest*>> requests_;
  std::map<std::string, uint32_t> by_path_;
};

}  // namespace

std::vector<DeclaredLayout> declared_layouts(const Graph& graph, const Narrowing& narrowing, const LayoutValues& values) {
  return Spreading(graph, narrowing, values).run();
}

}  // namespace einc
