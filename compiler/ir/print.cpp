// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/print.h"

#include <cmath>

#include "compiler/ir/scan.h"
#include "compiler/ir/text.h"

namespace einc {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

class Printer {
 public:
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string take() { return std::move(out_); }

  void header() {
    add("graph {}", quoted(graph_.name.str()));
    if (graph_.policy != Policy::inherit) add(" policy={}", to_string(graph_.policy));
    out_ += '\n';
    for (const Dim& dim : graph_.dims.dims()) this->dim(dim);
    for (const Condition& condition : graph_.dims.conditions()) {
      add("condition {} {} {} {}", to_string(condition.kind), wrapped(condition.left), wrapped(condition.right), quoted(condition.text));
      source(condition.source);
      out_ += '\n';
    }
    for (const Loop& loop : graph_.loops) add("loop trips={} count={}\n", wrapped(loop.trip_count), loop.count);
    for (size_t i = 1; i < graph_.loop_contexts.size(); ++i) {
      const LoopContext& context = graph_.loop_contexts[i];
      add("context parent={} loop={} iteration={}\n", context.parent, context.loop, context.iteration);
    }
    for (const Name dim : graph_.chosen_by) add("chosen {}\n", quoted(dim.str()));
    mesh();
    for (const ContractionPlan& plan : graph_.plans) {
      add("plan {} {} {} {}", quoted(plan.pattern), quoted(plan.order), wrapped(plan.flops), quoted(plan.method));
      location(plan.location);
      out_ += '\n';
    }
  }

  void mesh() {
    for (const MeshAxis& axis : graph_.mesh.axes) add("mesh {} {}\n", quoted(axis.name.str()), wrapped(axis.size));
    for (const ShardRequest& request : graph_.mesh.requests) {
      add("shard {} {} axis={}", to_string(request.declared), quoted(request.path.str()), request.axis);
      axis_list("over", request.over);
      out_ += '\n';
    }
    if (const PipelineStages& stages = graph_.mesh.stages; stages.any())
      add("stages over={} {} {}\n", stages.over, quoted(stages.loop.str()), wrapped(stages.microbatches));
    if (graph_.mesh.of_device) out_ += "device\n";
    if (graph_.mesh.empty()) return;
    out_ += "spread";
    for (const MeshSpread& spread : kMeshSpreads) axis_list(spread.word, graph_.mesh.*spread.over);
    out_ += '\n';
  }

  void node(NodeId id) {
    const Node& n = graph_[id];
    if (const auto* scan = std::get_if<ScanAttr>(&n.attr)) add("body {{\n{}}}\n", print_graph(*scan->body));
    add("%{} = {}", id.index, to_string(n.op));
    function(n.attr);
    out_ += ' ';
    type(n.type);
    for (NodeId operand : n.operands) add(" %{}", operand.index);
    attributes(n);
    origin(n);
  }

  void roots() {
    for (const Output& output : graph_.outputs) add("output {} %{}\n", quoted(output.name.str()), output.node.index);
    for (const Update& update : graph_.updates) add("update %{} <- %{}\n", update.target.index, update.value.index);
    if (graph_.loss.valid()) add("loss %{}\n", graph_.loss.index);
    for (const Update& gradient : graph_.gradients) {
      add("gradient %{}", gradient.target.index);
      if (gradient.value.valid()) add(" <- %{}", gradient.value.index);
      out_ += '\n';
    }
  }

  void comment(const std::string& text) {
    if (text.empty()) return;
    out_ += "  # ";
    for (const char c : text) out_ += c == '\n' || c == '\r' ? ' ' : c;
  }
  void end_line() { out_ += '\n'; }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<T>(values)...);
  }

  void source(int tag) {
    if (tag != -1) add(" source={}", tag);
  }

  void dim(const Dim& dim) {
    add("dim {}", dim.name.str());
    switch (dim.kind) {
      case DimKind::free:
        break;
      case DimKind::defaulted:
        add(" = {}", dim.default_value);
        break;
      case DimKind::derived:
        add(" := {}", wrapped(dim.definition));
        break;
    }
    source(dim.source);
    out_ += '\n';
  }

  static std::string wrapped(const Poly& poly) { return "(" + poly.str() + ")"; }

  static std::string scalar(const ScalarValue& value) {
    if (const auto* poly = std::get_if<Poly>(&value)) return wrapped(*poly);
    const double x = std::get<double>(value);
    return std::isnan(x) ? "nan" : fmt::format("{}", x);
  }

  void type(const Type& t) {
    add("{}[", to_string(t.dtype));
    for (const Axis& axis : t.axes) {
      if (out_.back() != '[') out_ += ' ';
      const std::string size = axis.size.str();
      const bool bare = is_bare_size(size);
      if (axis.name.empty()) {
        if (const auto n = axis.size.as_integer(); n && *n >= 0)
          out_ += size;
        else
          add("=({})", size);
        continue;
      }
      const std::string& name = axis.name.str();
      out_ += is_identifier(name) ? name : quoted(name);
      if (name != size || !is_identifier(name)) out_ += bare ? "=" + size : "=(" + size + ")";
    }
    out_ += ']';
  }

  void axis_list(const AxisList& list) {
    out_ += '[';
    for (int i = 0; i < list.size(); ++i) {
      if (i > 0) out_ += ' ';
      if (list[i] == kNoAxis)
        out_ += '_';
      else
        add("{}", list[i]);
    }
    out_ += ']';
  }
  void axis_list(std::string_view key, const AxisList& list) {
    add(" {}=", key);
    axis_list(list);
  }

  void polys(std::string_view key, const std::vector<Poly>& values) {
    add(" {}=[", key);
    for (size_t i = 0; i < values.size(); ++i) add("{}{}", i > 0 ? " " : "", wrapped(values[i]));
    out_ += ']';
  }

  // The function or kind that follows the op's name.
  void function(const Attr& attr) {
    if (const auto* a = std::get_if<MapAttr>(&attr)) add(" {}", to_string(a->fn));
    if (const auto* a = std::get_if<ReduceAttr>(&attr)) add(" {}", to_string(a->fn));
    if (const auto* a = std::get_if<CumulateAttr>(&attr)) add(" {}", to_string(a->fn));
    if (const auto* a = std::get_if<ArgReduceAttr>(&attr)) add(" {}", to_string(a->fn));
    if (const auto* a = std::get_if<TopKAttr>(&attr)) add(" {}", to_string(a->fn));
    if (const auto* a = std::get_if<RandomAttr>(&attr)) add(" {}", to_string(a->kind));
  }

  void init(const Init& init) {
    add(" init={}(", to_string(init.kind));
    for (size_t i = 0; i < init.args.size(); ++i) add("{}{}", i > 0 ? " " : "", scalar(init.args[i]));
    out_ += ')';
    if (init.form == InitForm::root) out_ += " form=root";
  }

  void maps(const Node& n, const MapAttr& attr) {
    bool plain = true;
    for (size_t k = 0; k < n.operands.size() && k < attr.maps.size(); ++k)
      plain = plain && attr.maps[k] == AxisList::range(graph_.type(n.operands[k]).rank());
    if (plain) return;
    out_ += " maps=";
    for (size_t k = 0; k < n.operands.size() && k < attr.maps.size(); ++k) {
      if (k > 0) out_ += ',';
      axis_list(attr.maps[k]);
    }
  }

  void attributes(const Node& n) {
    std::visit(
        Overloaded{
            [](std::monostate) {},
            [&](const InputAttr& a) { add(" name={}", quoted(a.name.str())); },
            [&](const ParamAttr& a) {
              add(" path={}{}", quoted(a.path.str()), a.frozen ? " frozen" : "");
              init(a.init);
            },
            [&](const StateAttr& a) {
              add(" path={} role={}", quoted(a.path.str()), to_string(a.role));
              init(a.init);
            },
            [&](const ConstantAttr& a) { add(" value={}", scalar(a.value)); },
            [&](const RandomAttr& a) { add(" stream={} keep={}", quoted(a.stream.str()), scalar(a.keep)); },
            [&](const MapAttr& a) { maps(n, a); },
            [&](const ReduceAttr& a) { axis_list("axes", a.axes); },
            [&](const CumulateAttr& a) { add(" axis={}{}", a.axis, a.direction == Direction::reverse ? " reverse" : ""); },
            [&](const ArgReduceAttr& a) { add(" axis={}", a.axis); },
            [&](const TopKAttr& a) { add(" axis={}", a.axis); },
            [&](const ContractAttr& a) {
              axis_list("left", a.left);
              axis_list("right", a.right);
            },
            [&](const PermuteAttr& a) { axis_list("order", a.order); },
            [&](const BroadcastAttr& a) { axis_list("map", a.map); },
            [&](const SplitAttr& a) { axis_list("counts", a.counts); },
            [&](const MergeAttr& a) { axis_list("counts", a.counts); },
            [&](const SliceAttr& a) { add(" axis={} start={} step={}", a.axis, wrapped(a.start), a.step); },
            [&](const DiagonalAttr& a) { axis_list("map", a.map); },
            [&](const WindowAttr& a) {
              add(" axis={}", a.axis);
              polys("strides", a.strides);
            },
            [&](const PadAttr& a) {
              polys("before", a.before);
              polys("after", a.after);
              add(" value={}", scalar(a.value));
            },
            [&](const ConcatAttr& a) { add(" axis={}", a.axis); },
            [&](const GatherAttr& a) {
              add(" axis={}", a.axis);
              axis_list("table_map", a.table_map);
              axis_list("ids_map", a.ids_map);
            },
            [&](const ScanAttr& a) {
              add(" slices={} carries={} length={}{}", a.slices, a.carries, wrapped(a.length),
                  a.direction == Direction::reverse ? " reverse" : "");
              if (a.save_every != 0) add(" save_every={}", a.save_every);
              if (a.all_pieces != 0) add(" all_pieces={}", a.all_pieces);
            },
            [&](const ScanResultAttr& a) { add(" result={}", a.index); },
            [&](const CollectiveAttr& a) { add(" mesh={} fn={} gathered={} divided={}", a.mesh, to_string(a.fn), a.gathered, a.divided); },
            [&](const ShiftAttr& a) {
              add(" axis={} by={}", a.axis, a.by);
              if (a.mesh >= 0) add(" mesh={}", a.mesh);
            },
            [&](const DropoutAttr& a) { add(" p={} stream={}", scalar(a.p), quoted(a.stream.str())); },
        },
        n.attr);
  }

  void location(const SourceLocation& at) {
    if (at != SourceLocation{}) add(" at={}:{}:{}-{}", quoted(at.file.str()), at.line, at.column, at.end_column);
  }

  void origin(const Node& n) {
    const Origin& o = n.origin;
    add(" | {}", to_string(o.phase));
    if (!o.module.empty()) add(" module={}", quoted(o.module.str()));
    if (!o.label.empty()) add(" label={}", quoted(o.label.str()));
    location(o.location);
    if (o.loop_context != 0) add(" context={}", o.loop_context);
    if (o.policy != Policy::inherit) add(" policy={}", to_string(o.policy));
    if (o.pinned) out_ += " pinned";
    if (!n.reason.empty()) add(" reason={}", quoted(n.reason.str()));
  }

  const Graph& graph_;
  std::string out_;
};

}  // namespace

std::string print_graph(const Graph& graph, const NodeNote& note) {
  Printer printer(graph);
  printer.header();
  for (uint32_t i = 0; i < graph.size(); ++i) {
    printer.node(NodeId{i});
    if (note) printer.comment(note(NodeId{i}));
    printer.end_line();
  }
  printer.roots();
  return printer.take();
}

std::string print_node(const Graph& graph, NodeId id) {
  Printer printer(graph);
  printer.node(id);
  return printer.take();
}

std::string describe_node(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  if (is_scan_source(node)) return node.origin.label.str();
  if (const auto* input = std::get_if<InputAttr>(&node.attr)) return input->name.str();
  if (const auto* param = std::get_if<ParamAttr>(&node.attr)) return param->path.str();
  if (const auto* state = std::get_if<StateAttr>(&node.attr)) return state->path.str();
  if (!node.origin.label.empty()) return node.origin.label.str();
  return std::string(to_string(node.op));
}

}  // namespace einc
