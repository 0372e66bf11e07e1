// SPDX-License-Identifier: Apache-2.0
// `mesh` and `shard`: the mesh's axes are dims, and a shard line becomes requests on declarations. A name binds where a tensor is
// declared, by what the program's own file calls the axis: inside a fn that is the caller's name. --mesh and --shard stand for the file's
// lines. Nothing is split here; compiler/partition does that.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/suggest.h"
#include "compiler/elaborate/training.h"
#include "compiler/ir/print.h"
#include "dsl/parser.h"

namespace einc {
namespace {

// "batch=data; heads,hidden=model" as shard lines; nullopt where a part has no `=`.
std::optional<std::string> shard_lines(std::string_view text) {
  std::string lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.find_first_not_of(' ') == std::string_view::npos) continue;
    const size_t quote = part.rfind('"');
    const size_t sign = part.find('=', quote == std::string_view::npos ? 0 : quote);
    if (sign == std::string_view::npos) return std::nullopt;
    lines += "shard " + std::string(part.substr(0, sign)) + " over " + std::string(part.substr(sign + 1)) + "\n";
  }
  return lines;
}

AxisList* spread_of(Mesh& mesh, std::string_view word) {
  const auto* spread = std::ranges::find(kMeshSpreads, word, &MeshSpread::word);
  return spread == std::end(kMeshSpreads) ? nullptr : &(mesh.*spread->over);
}

std::string declaration_key(Op op, Name path) { return std::string(to_string(op)) + " " + path.str(); }

Name declared_path(const Node& node) {
  if (node.op == Op::input) return node.as<InputAttr>().name;
  if (node.op == Op::random) return node.as<RandomAttr>().stream;
  return node.op == Op::param ? node.as<ParamAttr>().path : node.as<StateAttr>().path;
}

bool may_be_split(const Node& node) {
  return node.op == Op::input || node.op == Op::param || (node.op == Op::state && node.as<StateAttr>().role == StateRole::user);
}

}  // namespace

// The lines in use: the file's, or those that an option stands for.
void Elaborator::find_mesh_lines(const SourceUnit& main) {
  if (options_.without_mesh) return;
  const auto take = [&](const ast::Program& program, bool meshes, bool shards) {
    for (const ast::Stmt& statement : program.statements) {
      if (const auto* mesh = statement.as<ast::Mesh>(); mesh && meshes) mesh_lines_.push_back({mesh, statement.span});
      if (const auto* shard = statement.as<ast::Shard>(); shard && shards) shard_lines_.push_back(shard);
    }
  };
  take(main.program, options_.mesh.empty(), options_.shard.empty());
  if (!options_.mesh.empty())
    if (const ast::Program* program = mesh_option("--mesh", "mesh " + options_.mesh + "\n", "no mesh such as data=4,model=2"))
      take(*program, true, false);
  if (options_.shard.empty()) return;
  const std::optional<std::string> lines = shard_lines(options_.shard);
  if (const ast::Program* program = mesh_option("--shard", lines.value_or(""), "nothing such as batch=data; heads,hidden=model"))
    take(*program, false, true);
}

// `text` is empty where the option's has no such form.
const ast::Program* Elaborator::mesh_option(std::string_view option, const std::string& text, std::string_view instead) {
  const size_t errors = diagnostics_.error_count();
  const auto file = sources_.add(std::string(option), text.empty() ? options_.shard : text, diagnostics_);
  if (!file) return nullptr;
  if (text.empty()) {
    diagnostics_.report(Code::mesh_option, Span{*file, 0, static_cast<uint32_t>(options_.shard.size())}, option, instead);
    return nullptr;
  }
  mesh_options_.push_back(std::make_unique<ast::Program>(parse(sources_, *file, diagnostics_)));
  if (diagnostics_.error_count() != errors) return nullptr;
  const ast::Program& program = *mesh_options_.back();
  const auto fits = [](const ast::Stmt& s) { return s.as<ast::Mesh>() || s.as<ast::Shard>(); };
  if (std::ranges::all_of(program.statements, fits)) return &program;
  diagnostics_.report(Code::mesh_option, Span{*file, 0, static_cast<uint32_t>(text.size() - 1)}, option, instead);
  return nullptr;
}

void Elaborator::declare_mesh(SourceUnit& main) {
  find_mesh_lines(main);
  for (size_t k = 1; k < mesh_lines_.size(); ++k)
    diagnostics_.report(Code::redefined, mesh_lines_[k].second, "mesh", "the program's mesh").label(mesh_lines_[0].second, "first here");
  if (mesh_lines_.empty()) return;
  if (mesh_lines_[0].first->items.size() > kMaxMeshAxes) {
    diagnostics_.report(Code::mesh_option, mesh_lines_[0].second, "the mesh", fmt::format("more than {} axes", kMaxMeshAxes));
    return;
  }
  for (const ast::DimItem& item : mesh_lines_[0].first->items) {
    const size_t errors = diagnostics_.error_count();
    declare_dim(main, item);
    if (diagnostics_.error_count() == errors) graph_.mesh.axes.push_back({item.name.name, graph_.dims.size(item.name.name)});
  }
}

// What the program's own file calls an axis of a declaration: a fn's generic name stands for its caller's.
Name Elaborator::outermost_name(Name axis) const {
  for (const Frame* at = frame_; at && at->fn; at = at->caller)
    if (const SignatureAxis* bound = at->find_axis(axis)) axis = bound->caller.name;
  return without_marks(axis);
}

// `kv=kv_heads`, an axis whose size is a name alone, answers to that name too.
void Elaborator::note_declared_axes(NodeId id, const ast::Type& written) {
  const Node& node = graph_[id];
  std::vector<DeclaredAxis> names;
  const size_t behind_ellipsis = node.type.axes.size() + 1 - written.axes.size();  // how many axes `...` stands for
  for (const ast::Axis& axis : written.axes) {
    const auto* size = axis.kind == ast::AxisKind::sized ? axis.size->as<ast::NameRef>() : nullptr;
    for (size_t k = axis.kind == ast::AxisKind::ellipsis ? behind_ellipsis : 1; k > 0; --k)
      names.push_back({outermost_name(node.type.axes[names.size()].name), size ? outermost_name(size->name) : Name()});
  }
  if (options_.declared) options_.declared(node.op, declared_path(node), names);
  declared_axes_[declaration_key(node.op, declared_path(node))] = std::move(names);
}

void Elaborator::finish_mesh() {
  if (graph_.mesh.empty()) {
    if (!shard_lines_.empty() && mesh_lines_.empty())
      diagnostics_.report(Code::shard_without_mesh, shard_lines_[0]->targets[0].span).hint("add a line such as: mesh data = 2");
    return;
  }
  // Lines for single tensors come last, so that they take the place of what general ones ask.
  for (const bool single : {false, true})
    for (const ast::Shard* line : shard_lines_) {
      const std::optional<AxisList> over = mesh_axes_of(*line);
      if (!over) continue;
      for (const ast::ShardTarget& target : line->targets)
        if (target.glob.has_value() == single) request_shards(*line, target, *over);
    }
  check_stages();
}

std::optional<AxisList> Elaborator::mesh_axes_of(const ast::Shard& line) {
  AxisList over;
  for (const ast::Identifier& name : line.over) {
    const auto& axes = graph_.mesh.axes;
    const auto found = std::ranges::find(axes, name.name, &MeshAxis::name);
    if (found == axes.end()) {
      auto report = diagnostics_.report(Code::unknown_mesh_axis, name.span, name.name);
      std::vector<std::string> names;
      for (const MeshAxis& axis : axes) names.push_back(axis.name.str());
      if (const auto near = near_name(name.name.str(), names))
        report.did_you_mean(name.span, *near);
      else
        report.hint("it has {}", fmt::to_string(fmt::join(names, ", ")));
      return std::nullopt;
    }
    const int index = static_cast<int>(found - axes.begin());
    if (over.contains(index)) {
      diagnostics_.report(Code::duplicate_in_statement, name.span, name.name);
      return std::nullopt;
    }
    over.push_back(index);
  }
  return over;
}

void Elaborator::request_shards(const ast::Shard& line, const ast::ShardTarget& target, const AxisList& over) {
  const Name axis = target.axis.name;
  // The program's own name for an axis comes before the language's word.
  const bool is_taken = graph_.dims.find(axis) || std::ranges::any_of(declared_axes_, [&](const auto& entry) {
                          return std::ranges::find(entry.second, axis, &DeclaredAxis::name) != entry.second.end();
                        });
  if (AxisList* spread = spread_of(graph_.mesh, axis.str()); spread && !target.glob && !is_taken) {
    *spread = over;
    return;
  }
  const bool of_tensors = std::ranges::any_of(declared_axes_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second, [&](const DeclaredAxis& known) { return known.name == axis || known.size == axis; });
  });
  if (!target.glob && !of_tensors && counts_loop(axis)) return request_stages(line, over);
  if (line.microbatches) {
    diagnostics_.report(Code::pipeline_stages, target.span, axis, "it counts no loop")
        .hint("microbatches are of the stages of a loop: for layer in layers, shard layers over stage (microbatches = 8)");
    return;
  }
  bool found = false;
  for (const Node& node : graph_.nodes) {
    if (!may_be_split(node)) continue;
    const Name path = declared_path(node);
    if (target.glob && !matches_glob(target.glob->value, path.str())) continue;
    const auto names = declared_axes_.find(declaration_key(node.op, path));
    if (names == declared_axes_.end()) continue;
    const bool by_name = std::ranges::any_of(names->second, [&](const DeclaredAxis& known) { return known.name == axis; });
    for (int i = 0; i < node.type.rank(); ++i) {
      const DeclaredAxis& known = names->second[static_cast<size_t>(i)];
      if ((by_name ? known.name : known.size) != axis) continue;
      found = true;
      if (!request_shard(target, node, i, over)) return;
    }
  }
  if (found || (!target.glob && request_draws(target, over))) return;
  auto report = target.glob
                    ? diagnostics_.report(Code::nothing_to_shard, target.span, "no tensor that \"" + target.glob->value + "\" names", axis)
                    : diagnostics_.report(Code::nothing_to_shard, target.span, "no input, param, state or draw", axis);
  std::vector<std::string> names;
  for (const MeshSpread& spread : kMeshSpreads) names.emplace_back(spread.word);
  for (const auto& entry : declared_axes_)
    for (const DeclaredAxis& known : entry.second)
      for (const Name name : {known.name, known.size})
        if (!name.empty()) names.push_back(name.str());
  std::ranges::sort(names);
  if (const auto near = near_name(axis.str(), names); near && *near != axis.str()) report.did_you_mean(target.axis.span, *near);
}

// A program that draws its data has axes that no tensor has, but its draws by that name (as --plan looks for them: split_names). The
// result: whether there are any.
bool Elaborator::request_draws(const ast::ShardTarget& target, const AxisList& over) {
  const Name axis = target.axis.name;
  bool found = false;
  for (const Node& node : graph_.nodes) {
    if (node.op != Op::random) continue;
    std::vector<DeclaredAxis>& names = declared_axes_[declaration_key(node.op, declared_path(node))];
    names.clear();
    for (const Axis& drawn : node.type.axes) names.push_back({drawn.name, Name()});
    for (int i = 0; i < node.type.rank(); ++i) {
      if (node.type.axis(i).name != axis) continue;
      found = true;
      if (!request_shard(target, node, i, over)) return true;
    }
  }
  return found;
}

bool Elaborator::request_shard(const ast::ShardTarget& target, const Node& node, int axis, const AxisList& over) {
  auto& requests = graph_.mesh.requests;
  const Name path = declared_path(node);
  const std::string what = describe_node(graph_, NodeId{static_cast<uint32_t>(&node - graph_.nodes.data())});
  const std::vector<DeclaredAxis>& names = declared_axes_.at(declaration_key(node.op, path));
  const auto meets = [&](const ShardRequest& r) {
    if (r.declared != node.op || r.path != path) return false;
    return r.axis == axis || std::any_of(over.begin(), over.end(), [&](int m) { return r.over.contains(m); });
  };
  const bool overrides = target.glob.has_value();
  for (const ShardRequest& r : requests) {
    if (overrides || !meets(r)) continue;
    const std::string mine = names[static_cast<size_t>(axis)].name.str(), other = names[static_cast<size_t>(r.axis)].name.str();
    if (r.axis == axis) {
      diagnostics_.report(Code::sharded_twice, target.span, "axis `" + mine + "`", "`" + what + "`", "by two lines")
          .hint("one line may name several axes of the mesh: shard {} over a, b", mine);
      return false;
    }
    const int shared = *std::find_if(over.begin(), over.end(), [&](int m) { return r.over.contains(m); });
    auto report = diagnostics_.report(Code::sharded_twice, target.span, "axes `" + other + "` and `" + mine + "`", "`" + what + "`",
                                      "over mesh axis `" + graph_.mesh.axes[static_cast<size_t>(shared)].name.str() + "`");
    if (node.op == Op::random)
      report.hint("split one of them");
    else
      report.hint("split one of them, or give this tensor a line of its own: shard \"{}\"[{}] over ...", path, mine);
    return false;
  }
  if (overrides) std::erase_if(requests, meets);
  if (!check_divided(target, node, axis, over, what)) return false;
  requests.push_back({node.op, path, axis, over});
  return true;
}

// All parts have one size.
bool Elaborator::check_divided(const ast::ShardTarget& target, const Node& node, int axis, const AxisList& over, const std::string& what) {
  const Poly& size = node.type.axis(axis).size;
  Poly parts(1);
  for (const int m : over) parts *= graph_.mesh.axes[static_cast<size_t>(m)].size;
  const auto value = size.evaluate_integer(values_), count = parts.evaluate_integer(values_);
  if (value && count && *count >= 1 && *value % *count != 0) {
    const int64_t next = *value - *value % *count;
    auto report = diagnostics_.report(Code::not_divided, target.span, target.axis.name, "`" + what + "`", *value, *count);
    if (const Span declared = span_of(node); declared.known()) report.label(declared, "declared here");
    if (next <= INT64_MAX - *count) report.hint("the next size that fits is {} = {}", target.axis.name, next + *count);
    return false;
  }
  Condition condition{ConditionKind::divides, size, parts, -1, "axis " + target.axis.name.str() + " of " + what + " on the mesh"};
  if (decide(condition) == Verdict::depends) condition.source = tag(target.span), graph_.dims.require(std::move(condition));
  return true;
}

}  // namespace einc
