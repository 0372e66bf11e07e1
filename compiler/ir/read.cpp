// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/read.h"

#include <memory>

#include "compiler/ir/cursor.h"
#include "compiler/ir/text.h"

namespace einc {
namespace {

class Reader {
 public:
  std::variant<Graph, GraphReadError> read(std::string_view text) {
    if (auto error = read_lines(text, [&](Cursor& c) { line(c); }).error) return std::move(*error);
    if (inner_) return GraphReadError{1, "the body of a scan does not end"};
    if (!named_) return GraphReadError{1, "expected a line 'graph \"name\"'"};
    return std::move(graph_);
  }

 private:
  void line(Cursor& c) {
    if (inner_) return inner_line(c);
    if (!named_) return header(c);
    if (c.accept("%")) return node(c);
    const std::string kind = c.word();
    if (kind == "body") {
      c.expect("{");
      if (depth_ == kMaxScanDepth) return c.fail("bodies of scans stand too deep in each other");
      inner_ = std::make_unique<Reader>();
      inner_->depth_ = depth_ + 1;
      return;
    }
    if (kind == "dim") return dim(c);
    if (kind == "condition") return condition(c);
    if (kind == "loop") return loop(c);
    if (kind == "context") return context(c);
    if (kind == "chosen") return graph_.chosen_by.push_back(c.string());
    if (kind == "plan") return plan(c);
    if (kind == "mesh") {
      const Name name = c.string();
      graph_.mesh.axes.push_back({name, c.poly()});
      return;
    }
    if (kind == "shard") return shard(c);
    if (kind == "stages") {
      PipelineStages& stages = graph_.mesh.stages;
      c.expect("over=");
      stages.over = static_cast<int>(c.integer(0, static_cast<int64_t>(graph_.mesh.axes.size()) - 1));
      stages.loop = c.string();
      stages.microbatches = c.poly();
      return;
    }
    if (kind == "spread") {
      for (const MeshSpread& spread : kMeshSpreads) graph_.mesh.*spread.over = mesh_axes(c, std::string(spread.word) + "=");
      return;
    }
    if (kind == "device") {
      graph_.mesh.of_device = true;
      return;
    }
    if (kind == "output") return output(c);
    if (kind == "update") return update(c, graph_.updates);
    if (kind == "gradient") return update(c, graph_.gradients);
    if (kind == "loss") {
      graph_.loss = NodeId{c.node(graph_.size())};
      return;
    }
    c.fail("'" + kind.substr(0, 40) + "' starts no line of a graph");
  }

  AxisList mesh_axes(Cursor& c, std::string_view key) {
    const AxisList axes = list(c, key);
    for (const int axis : axes)
      if (static_cast<size_t>(axis) >= graph_.mesh.axes.size()) c.fail("the mesh has no axis " + std::to_string(axis));
    return axes;
  }

  void shard(Cursor& c) {
    ShardRequest request;
    request.declared = c.word_of(parse_op, "op");
    if (request.declared != Op::input && request.declared != Op::param && request.declared != Op::state && request.declared != Op::random)
      c.fail("an input, param, state or draw is split");
    request.path = c.string();
    c.expect("axis=");
    request.axis = static_cast<int>(c.integer(0, kMaxRank - 1));
    request.over = mesh_axes(c, "over=");
    if (!c.failed()) graph_.mesh.requests.push_back(std::move(request));
  }

  // A line of the body that the next scan runs.
  void inner_line(Cursor& c) {
    if (inner_->inner_ || !c.accept("}")) return inner_->line(c);
    if (!inner_->named_) c.fail("the body of a scan is a graph");
    body_ = std::make_shared<const Graph>(std::move(inner_->graph_));
    inner_.reset();
  }

  void header(Cursor& c) {
    c.expect("graph");
    graph_.name = c.string();
    if (c.accept("policy=")) graph_.policy = c.word_of(parse_policy, "precision policy");
    named_ = true;
  }

  static int source(Cursor& c) { return c.accept("source=") ? static_cast<int>(c.integer(-1, INT32_MAX)) : -1; }

  void dim(Cursor& c) {
    const std::string text = c.word();
    if (!is_identifier(text)) c.fail("expected the name of a dim");
    const Name name = c.failed() ? Name() : Name(text);
    if (graph_.dims.find(name) != nullptr) c.fail("dim " + text + " is declared twice");
    if (c.accept(":=")) {
      const Poly definition = c.poly();
      const int tag = source(c);
      for (const Name used : definition.free_names())
        if (const Dim* base = graph_.dims.find(used); base == nullptr || base->kind == DimKind::derived)
          c.fail("dim " + text + " is defined by " + used.str() + ", which is no base dim declared before it");
      if (!c.failed()) graph_.dims.declare_derived(name, definition, tag);
    } else if (c.accept("=")) {
      const int64_t value = c.integer();
      const int tag = source(c);
      if (!c.failed()) graph_.dims.declare_default(name, value, tag);
    } else {
      const int tag = source(c);
      if (!c.failed()) graph_.dims.declare_free(name, tag);
    }
  }

  void condition(Cursor& c) {
    Condition condition;
    condition.kind = c.word_of(parse_condition_kind, "condition");
    condition.left = c.poly();
    condition.right = c.poly();
    condition.text = c.string();
    condition.source = source(c);
    if (condition.kind == ConditionKind::divides && condition.right.is_zero()) c.fail("a condition divides by zero");
    if (!c.failed()) graph_.dims.require(condition);
  }

  void loop(Cursor& c) {
    Loop loop;
    c.expect("trips=");
    loop.trip_count = c.poly();
    c.expect("count=");
    loop.count = c.integer();
    graph_.loops.push_back(std::move(loop));
  }

  void context(Cursor& c) {
    LoopContext context;
    c.expect("parent=");
    context.parent = index(c, graph_.loop_contexts.size());
    c.expect("loop=");
    context.loop = index(c, graph_.loops.size());
    c.expect("iteration=");
    context.iteration = c.integer();
    graph_.loop_contexts.push_back(context);
  }

  static uint32_t index(Cursor& c, size_t count) {
    if (count == 0) c.fail("nothing to refer to has been declared");
    return static_cast<uint32_t>(c.integer(0, static_cast<int64_t>(count) - 1));
  }

  void plan(Cursor& c) {
    ContractionPlan plan;
    plan.pattern = c.string();
    plan.order = c.string();
    plan.flops = c.poly();
    plan.method = c.string();
    if (c.accept("at=")) plan.location = c.location();
    graph_.plans.push_back(std::move(plan));
  }

  void output(Cursor& c) {
    const Name name = c.string();
    graph_.outputs.push_back({name, NodeId{c.node(graph_.size())}});
  }

  void update(Cursor& c, std::vector<Update>& list) {
    Update update;
    update.target = NodeId{c.node(graph_.size())};
    if (&list == &graph_.updates)
      c.expect("<-");
    else if (c.at_end() || !c.accept("<-"))
      return list.push_back(update);
    update.value = NodeId{c.node(graph_.size())};
    list.push_back(update);
  }

  void node(Cursor& c) {
    if (c.integer() != graph_.size()) c.fail(fmt::format("expected node %{} next", graph_.size()));
    c.expect("=");
    Node n;
    n.op = c.word_of(parse_op, "op");
    if (c.failed()) return;
    function(c, n);
    n.type = c.type();
    while (!c.failed() && c.accept("%")) n.operands.push_back(NodeId{index(c, graph_.size())});
    attributes(c, n);
    c.expect("|");
    origin(c, n);
    if (!c.failed()) graph_.nodes.push_back(std::move(n));
  }

  static void function(Cursor& c, Node& n) {
    switch (n.op) {
      case Op::map:
        n.attr = MapAttr{c.word_of(parse_map_fn, "elementwise function"), {}};
        return;
      case Op::reduce:
      case Op::softmax:
      case Op::logsumexp:
        n.attr = ReduceAttr{c.word_of(parse_reduce_fn, "reduction"), {}};
        return;
      case Op::cumulate:
        n.attr = CumulateAttr{c.word_of(parse_reduce_fn, "reduction"), 0, Direction::forward};
        return;
      case Op::arg_reduce:
        n.attr = ArgReduceAttr{c.word_of(parse_reduce_fn, "reduction"), 0};
        return;
      case Op::top_k_index:
        n.attr = TopKAttr{0, c.word_of(parse_reduce_fn, "max or min")};
        return;
      case Op::random:
        n.attr = RandomAttr{c.word_of(parse_random_kind, "kind of random numbers"), Name(), 1};
        return;
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::constant:
      case Op::iota:
      case Op::contract:
      case Op::permute:
      case Op::broadcast:
      case Op::split:
      case Op::merge:
      case Op::slice:
      case Op::diagonal:
      case Op::window:
      case Op::fold:
      case Op::pad:
      case Op::concat:
      case Op::gather:
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
      case Op::scatter_set:
      case Op::cast:
      case Op::stop_gradient:
      case Op::scan:
      case Op::scan_result:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
      case Op::shift:
      case Op::dropout:
      case Op::training:
        return;
    }
  }

  static AxisList list(Cursor& c, std::string_view key) {
    c.expect(key);
    return c.axis_list();
  }

  static int axis(Cursor& c) {
    c.expect("axis=");
    return static_cast<int>(c.integer(0, kMaxRank - 1));
  }

  static Name quoted_name(Cursor& c, std::string_view key) {
    c.expect(key);
    return c.string();
  }

  static Init init(Cursor& c) {
    Init init;
    c.expect("init=");
    init.kind = c.word_of(parse_init_kind, "initialiser");
    c.expect("(");
    while (!c.failed() && !c.accept(")")) init.args.push_back(c.scalar());
    if (c.accept("form=root")) init.form = InitForm::root;
    return init;
  }

  void maps(Cursor& c, Node& n) {
    MapAttr& attr = std::get<MapAttr>(n.attr);
    const bool written = c.accept("maps=");
    for (size_t k = 0; k < n.operands.size() && !c.failed(); ++k) {
      if (k == attr.maps.size()) return c.fail("more than three operands");
      if (written && k > 0) c.expect(",");
      attr.maps[k] = written ? c.axis_list() : AxisList::range(graph_.type(n.operands[k]).rank());
    }
  }

  void attributes(Cursor& c, Node& n) {
    switch (n.op) {
      case Op::input:
        n.attr = InputAttr{quoted_name(c, "name=")};
        return;
      case Op::param: {
        const Name path = quoted_name(c, "path=");
        const bool frozen = c.accept_word("frozen");
        n.attr = ParamAttr{path, init(c), frozen};
        return;
      }
      case Op::state: {
        const Name path = quoted_name(c, "path=");
        c.expect("role=");
        const StateRole role = c.word_of(parse_state_role, "role of a state");
        n.attr = StateAttr{path, init(c), role};
        return;
      }
      case Op::constant:
        c.expect("value=");
        n.attr = ConstantAttr{c.scalar()};
        return;
      case Op::random: {
        RandomAttr& attr = std::get<RandomAttr>(n.attr);
        attr.stream = quoted_name(c, "stream=");
        c.expect("keep=");
        attr.keep = c.number();
        return;
      }
      case Op::map:
        return maps(c, n);
      case Op::reduce:
      case Op::softmax:
      case Op::logsumexp:
        std::get<ReduceAttr>(n.attr).axes = list(c, "axes=");
        return;
      case Op::cumulate:
        std::get<CumulateAttr>(n.attr).axis = axis(c);
        if (c.accept_word("reverse")) std::get<CumulateAttr>(n.attr).direction = Direction::reverse;
        return;
      case Op::arg_reduce:
        std::get<ArgReduceAttr>(n.attr).axis = axis(c);
        return;
      case Op::top_k_index:
        std::get<TopKAttr>(n.attr).axis = axis(c);
        return;
      case Op::contract: {
        const AxisList left = list(c, "left=");
        n.attr = ContractAttr{left, list(c, "right=")};
        return;
      }
      case Op::permute:
        n.attr = PermuteAttr{list(c, "order=")};
        return;
      case Op::broadcast:
        n.attr = BroadcastAttr{list(c, "map=")};
        return;
      case Op::split:
        n.attr = SplitAttr{list(c, "counts=")};
        return;
      case Op::merge:
        n.attr = MergeAttr{list(c, "counts=")};
        return;
      case Op::slice: {
        const int sliced = axis(c);
        c.expect("start=");
        const Poly start = c.poly();
        c.expect("step=");
        n.attr = SliceAttr{sliced, start, c.integer()};
        return;
      }
      case Op::diagonal:
        n.attr = DiagonalAttr{list(c, "map=")};
        return;
      case Op::window:
      case Op::fold: {
        const int split = axis(c);
        c.expect("strides=");
        n.attr = WindowAttr{split, c.polys()};
        return;
      }
      case Op::pad: {
        PadAttr attr;
        c.expect("before=");
        attr.before = c.polys();
        c.expect("after=");
        attr.after = c.polys();
        c.expect("value=");
        attr.value = c.scalar();
        n.attr = std::move(attr);
        return;
      }
      case Op::concat:
        n.attr = ConcatAttr{axis(c)};
        return;
      case Op::gather:
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
      case Op::scatter_set: {
        const int indexed = axis(c);
        const AxisList table_map = list(c, "table_map=");
        n.attr = GatherAttr{indexed, table_map, list(c, "ids_map=")};
        return;
      }
      case Op::scan: {
        ScanAttr attr;
        if (body_ == nullptr) return c.fail("a scan stands behind its body");
        attr.body = std::move(body_);
        c.expect("slices=");
        attr.slices = static_cast<int>(c.integer(0, INT32_MAX));
        c.expect("carries=");
        attr.carries = static_cast<int>(c.integer(0, INT32_MAX));
        c.expect("length=");
        attr.length = c.poly();
        if (c.accept_word("reverse")) attr.direction = Direction::reverse;
        if (c.accept("save_every=")) attr.save_every = c.integer(1, INT64_MAX);
        if (c.accept("all_pieces=")) attr.all_pieces = c.integer(1, INT64_MAX);
        n.attr = std::move(attr);
        return;
      }
      case Op::scan_result:
        c.expect("result=");
        n.attr = ScanResultAttr{static_cast<int>(c.integer(0, INT32_MAX))};
        return;
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
        n.attr = collective(c);
        return;
      case Op::shift: {
        ShiftAttr attr;
        c.expect("axis=");
        attr.axis = static_cast<int>(c.integer(0, kMaxRank - 1));
        c.expect("by=");
        attr.by = c.integer(0, INT32_MAX);
        if (c.accept("mesh=")) attr.mesh = static_cast<int>(c.integer(0, INT32_MAX));
        n.attr = attr;
        return;
      }
      case Op::dropout: {
        c.expect("p=");
        const double p = c.number();
        n.attr = DropoutAttr{p, quoted_name(c, "stream=")};
        return;
      }
      case Op::iota:
      case Op::cast:
      case Op::stop_gradient:
      case Op::training:
        return;
    }
  }

  CollectiveAttr collective(Cursor& c) const {
    CollectiveAttr attr;
    c.expect("mesh=");
    attr.mesh = static_cast<int>(c.integer(0, INT32_MAX));
    c.expect("fn=");
    attr.fn = c.word_of(parse_reduce_fn, "reduction");
    c.expect("gathered=");
    attr.gathered = static_cast<int>(c.integer(0, kMaxRank - 1));
    c.expect("divided=");
    attr.divided = static_cast<int>(c.integer(0, kMaxRank - 1));
    return attr;
  }

  void origin(Cursor& c, Node& n) {
    Origin& o = n.origin;
    o.phase = c.word_of(parse_phase, "phase");
    if (c.accept("module=")) o.module = c.string();
    if (c.accept("label=")) o.label = c.string();
    if (c.accept("at=")) o.location = c.location();
    if (c.accept("context=")) o.loop_context = index(c, graph_.loop_contexts.size());
    if (c.accept("policy=")) o.policy = c.word_of(parse_policy, "precision policy");
    o.pinned = c.accept_word("pinned");
    if (c.accept("reason=")) n.reason = c.string();
  }

  static constexpr int kMaxScanDepth = 16;
  Graph graph_;
  bool named_ = false;
  int depth_ = 0;
  std::unique_ptr<Reader> inner_;      // while a body is read
  std::shared_ptr<const Graph> body_;  // of the next scan
};

}  // namespace

std::variant<Graph, GraphReadError> read_graph(std::string_view text) { return Reader().read(text); }

}  // namespace einc
