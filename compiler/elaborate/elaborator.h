// SPDX-License-Identifier: Apache-2.0
// The elaborator: one object per compilation. Its parts stand in a file each: expressions.cpp, sizes.cpp (dims and sizes),
// types.cpp, transpositions.cpp, meshes.cpp,
// outer_product.cpp, declarations.cpp, statements.cpp, functions.cpp (calls), training.cpp, finish.cpp.
// Invariant: after an error every function returns nullopt (or poisons the binding) and goes on; nothing throws for a mistake
// of the user's. Work is bounded by the limits in elaborate.h: once one is passed, evaluate() answers nullopt at once.
#pragma once
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "compiler/autodiff/custom_gradients.h"
#include "compiler/elaborate/elaborate.h"
#include "compiler/elaborate/elementwise_tree.h"
#include "compiler/elaborate/known_gradients.h"
#include "compiler/elaborate/scope.h"
#include "compiler/scan/outline.h"

namespace einc {

// How to write an instance of a fn: where its params live and which module its nodes count for.
struct Instance {
  std::string path;    // prefix of params, states and random streams
  std::string module;  // Origin::module
};

struct BoundArgument {
  std::optional<Value> value;
  Span span;
  enum class State : uint8_t { missing, given, unknown } state = State::missing;  // unknown: a trial's, without a value
  Name axis = {};                                                                 // the dim or axis whose bare name the argument is
};

// A name that a list of axes binds to a place of the value.
struct NamedPlace {
  Name name;
  int place;
  Span span;
  bool generic = false;  // bound anew by every call: the caller's axis of that name may be another
};

class Elaborator final : public Context {
 public:
  Elaborator(SourceMap& sources, const ElaborateOptions& options, Diagnostics& diagnostics);
  std::optional<Graph> run(FileId file);

  // Context
  Builder& build() override { return build_; }
  Diagnostics& diagnostics() override { return diagnostics_; }
  std::optional<Value> evaluate(const ast::Expr& expr) override { return evaluate_whole(expr, nullptr); }
  std::optional<Value> evaluate_operand(const ast::Expr& expr) override;
  ElementwiseTree& tree() override { return tree_; }
  bool refuse_outer_product(NodeId result) override { return refuse_outer_product(result, nullptr); }
  std::optional<NodeId> evaluate_tensor(const ast::Expr& expr) override;
  std::optional<Poly> evaluate_size(const ast::Expr& expr) override;
  std::optional<Poly> declared_size(Name name) const override;
  std::optional<Poly> visible_size(Name name) const override;
  bool report_two_sizes(Name name, Span where) override;
  void introduce_local(Name name, const Poly& size, Span where) override;
  std::vector<std::string> visible_axis_names() const override;
  bool is_value(Name name) const override { return frame().scope->find(name) != nullptr; }
  std::string describe_size(const Poly& size) const override;
  std::string quote(Span span) const override;
  Name known_name(Name axis) const override;
  std::string show(const Type& type) const override;
  void require(Condition condition, Span where) override;
  const Bindings& order_values() const override { return order_values_; }
  SourceLocation locate(Span span) const override;
  Name random_stream(Span span) override;

  // grad(y, x)
  std::optional<Value> gradient(const ast::Call& call, Span whole);

 private:
  // transpositions.cpp
  // `what` is the list; the error points into it, or at the value.
  bool check_places(const Type& found, std::span<const NamedPlace> places, std::string_view what, Span value, bool at_value);

  // outer_product.cpp
  std::optional<Value> evaluate_whole(const ast::Expr& expr, const ast::Type* annotation);
  std::optional<Value> annotate_whole(const Value& value, const ast::Type& written, Span span, uint32_t first_new_node);
  bool refuse_outer_product(NodeId result, const ast::Type* annotation);
  std::optional<AxisList> annotated_order(const Type& found, const ast::Type& written) const;
  std::optional<std::string> writable_axes(const std::vector<Axis>& axes) const;

  // expressions.cpp
  std::optional<Value> evaluate_within_limits(const ast::Expr& expr);
  std::optional<Value> evaluate_kind(const ast::Expr& expr);
  std::optional<Value> evaluate_tuple(const ast::Tuple& written, Span span);
  std::optional<Value> evaluate_number(const ast::Number& number, Span span);
  std::optional<Value> evaluate_name(Name name, Span span);
  std::optional<Value> evaluate_operator(const ast::Expr& expr);
  std::optional<Value> evaluate_call(const ast::Expr& expr);
  bool report_no_return(const FnRef& ref, const ast::Call& call);
  std::optional<Value> evaluate_index(const ast::Expr& expr);
  void report_unknown_name(Name name, Span span);
  void report_several(Span span, size_t count);
  bool may_be_defined(Name name) const;
  Span bound_later(Name name) const;
  bool within_limits(Span span);
  std::vector<std::string> callable_names() const;

  // sizes.cpp
  void declare_dims(SourceUnit& unit);
  void declare_dim(SourceUnit& unit, const ast::DimItem& item);
  void bind_dims();
  std::optional<Poly> dim_value(const SourceUnit& unit, const ast::DimItem& item);
  std::optional<Poly> size_of_name(Name name, Span span);
  std::optional<Poly> combine_sizes(const ast::Expr& expr, const ast::Binary& binary);
  std::optional<Poly> quotient(const ast::Expr& expr, const ast::Binary& binary, const Poly& left, const Poly& right);
  std::optional<Poly> floored(const ast::Binary& binary, const Poly& left, const Poly& right);
  std::optional<Poly> axis_size(const ast::Expr& expr);  // evaluate_size, and at least 1
  bool check_at_least_one(const Poly& size, Span span);
  std::string show_size(const Poly& size) const;  // in the dims' own names
  std::vector<std::string> visible_value_names() const;
  int tag(Span span);
  void report_bind_problems(const BindResult& bound);
  void report_condition(const BindProblem& problem);

  // types.cpp
  std::optional<Type> declared_type(const ast::Type& type);
  std::optional<NodeId> annotate(NodeId value, const ast::Type& type, Span span, uint32_t first_new_node);
  std::optional<NodeId> conform_dtype(NodeId value, DType dtype, Span span, uint32_t first_new_node);
  std::optional<Axis> declared_axis(const ast::Axis& axis);
  Diagnostics::Builder report_two_sizes_in_list(const ast::Axis& axis, const Poly& first, const Poly& second);
  std::string show(const Axis& axis) const;
  std::string show_name(const Axis& axis) const;

  // declarations.cpp
  void declare_tensor(const ast::TensorDecl& declaration, Span span);
  void declare_output(const ast::Output& output);
  void update_state(const ast::StateUpdate& update, Span span);
  std::optional<Value> updated_state(const ast::Call& call, Span whole);
  std::optional<NodeId> fit_update(NodeId state, const ast::StateUpdate& update);
  bool check_path_length(const std::string& path, Span span);
  bool claim_path(const std::string& path, Span span, std::string_view what);
  bool name_is_free(Name name, Span span, std::string_view what);

  // statements.cpp
  void execute(const ast::Block& block);
  void execute(const ast::Stmt& statement);
  void assign(const ast::Assign& statement);
  void bind(const ast::Target& target, std::optional<Value> value, uint32_t first_new_node);
  void unroll(const ast::For& loop, Span span);
  std::optional<int64_t> trip_count(const ast::For& loop, Poly& symbolic);
  void with_precision(const ast::Precision& precision);
  void return_value(const ast::Return& statement);
  void poison_targets(const ast::Block& body);

  // scans.cpp
  struct Iteration;
  void scan(const ast::Scan& loop, Span span);
  std::optional<Axis> scanned_axis(const ast::Scan& loop);
  std::optional<std::vector<Name>> carried_names(const ast::Scan& loop);
  void find_number_types(const ast::Scan& loop, const Axis& axis, Iteration& iteration);
  std::optional<Value> typical_operand(const ast::Call& call);
  bool run_iteration(const ast::Scan& loop, const Axis& axis, Iteration& iteration);
  bool close_carries(Iteration& iteration);
  void move_into_body(const std::vector<CustomGradient>& customs, const OutlinedScan& scan);
  void poison_scan(const ast::Scan& loop);
  std::optional<NodeId> next_of_carry(Name name, const Value& next, Span span, const Type& carried);
  void collect(const ast::Collect& collected, Span span);
  void read_file_policy(const SourceUnit& unit);
  void label_value(const Value& value, Name name, uint32_t first_new_node);

  // conditions.cpp: `if`
  struct Truth {
    bool training, otherwise;  // the condition's value in a training step, and elsewhere
  };
  struct Branch {
    std::unordered_map<Name, Binding> bindings;
    std::vector<Update> updates;
  };
  void branch(const ast::If& statement);
  std::optional<Truth> truth_of(const ast::Expr& condition);
  std::optional<Truth> truth_of(NodeId value) const;
  std::optional<Truth> compared(const ast::Expr& condition, const ast::Binary& comparison);
  void note_choice(const Poly& difference);
  Branch run_branch(const ast::Block* block);
  std::unordered_map<Name, std::string> check_branch(const ast::Block* block);
  std::string type_text(const Value& value) const;
  void take_branch(const ast::Block* taken, const ast::Block* left);
  void merge_branches(const ast::Block* then, const ast::Block* otherwise, Span span);
  std::optional<Value> select(Name name, Span span, const Value& training, const Value& otherwise);
  void hide(Name name, Span span, std::string reason);

  // derivatives.cpp: vjp(y, x, dy), jvp(y, x, v)
  std::optional<Value> product_with_derivative(const ast::Call& call, Span whole);
  NodeId zeros_like(NodeId value);

  // rename.cpp
  std::optional<Value> renamed(const ast::Call& call, Span whole);

  // gradient_block.cpp
  struct NamedGradient {
    ast::Identifier param;
    std::optional<Value> value;
    Span span;
  };
  std::optional<Value> with_gradient_block(Frame& callee, const std::vector<BoundArgument>& arguments, uint32_t first_body_node);
  bool collect_inputs(const Frame& callee, const std::vector<BoundArgument>& arguments, uint32_t first_body_node,
                      std::span<const NodeId> results, std::vector<NodeId>& inputs);
  std::optional<NodeId> fit_gradient(const Value& value, NodeId input, std::string_view what, Span span);

  // functions.cpp
  std::optional<FnRef> find_fn(Name name, Span span);
  std::optional<Value> call_fn(FnRef ref, const ast::Call& call, Span span);
  std::optional<std::vector<BoundArgument>> bind_arguments(FnRef ref, const ast::Identifier& callee,
                                                           std::span<const ast::Argument* const> given,
                                                           std::vector<BoundArgument> arguments);
  std::vector<std::string> parameter_names(FnRef ref) const;
  void suggest_parameter(Diagnostics::Builder& report, FnRef ref, const ast::Argument& argument) const;
  size_t parameter_of(FnRef ref, const ast::Argument& argument, const std::vector<BoundArgument>& arguments, size_t& next);
  std::optional<Value> instantiate(FnRef ref, std::vector<BoundArgument> arguments, const Instance& instance, Span span);
  bool is_setting(Name setting, const Value& value) const;
  std::optional<bool> as_flag(const Value& value) const;
  std::string describe_value(const Value& value) const;
  // `standard` is the default, which says what form the setting has; null: a number.
  bool check_setting(Name setting, const ast::Expr* standard, const Value& value, Span span);
  std::optional<double> setting_value(const Number& number) const;
  bool check_warm_up(const ast::Fn& fn, const std::vector<BoundArgument>& arguments);
  bool check_settings(const ast::Fn& fn, const std::vector<BoundArgument>& arguments);
  Name axis_named(const ast::Expr& argument) const;
  bool is_size_for_real(FnRef ref, const ast::FnParam& param, const ast::Argument& argument) const;
  void bind_axis_parameter(Frame& callee, const ast::FnParam& param, const BoundArgument& argument);
  bool check_recursion(const ast::Fn& fn, Span span);
  void explain_errors(size_t first, const Frame& callee, const std::vector<BoundArgument>& arguments);
  Span blamed(const Diagnostic& diagnostic, const Frame& callee, const std::vector<BoundArgument>& arguments) const;
  bool bind_parameters(Frame& callee, std::vector<BoundArgument>& arguments);
  Value take_in(const Frame& callee, const Value& value);
  std::optional<Value> bind_typed(Frame& callee, const ast::FnParam& param, const Value& value, Span span);
  bool bind_axis(Frame& callee, const ast::FnParam& param, const ast::Axis& axis, Axis& given, Span span);
  Value give_back(const Frame& callee, const Value& value);
  std::string instance_name(const ast::Call& call) const;

  // check_fns.cpp
  void check_uncalled_fns();
  std::vector<Diagnostic> errors_of(FnRef ref, Diagnostics& said);
  void try_fn(FnRef ref, const std::function<Axis(Name)>& open_axis, const std::function<void(std::vector<Axis>&)>& ellipsis);

  // training.cpp, settings.cpp
  void minimize(const ast::Minimize& statement, Span span);
  bool check_scalar(NodeId y, Span span, std::string_view what);
  void finish_training();
  // An option's text as a statement, under the option's name; nullopt for an empty text or after an error.
  std::optional<ast::Program> parse_option(std::string_view option, const std::string& text);

  // meshes.cpp
  void find_mesh_lines(const SourceUnit& main);
  const ast::Program* mesh_option(std::string_view option, const std::string& text, std::string_view instead);
  void declare_mesh(SourceUnit& main);
  Name outermost_name(Name axis) const;
  void note_declared_axes(NodeId id, const ast::Type& written);
  void finish_mesh();
  std::optional<AxisList> mesh_axes_of(const ast::Shard& line);
  void request_shards(const ast::Shard& line, const ast::ShardTarget& target, const AxisList& over);
  bool request_draws(const ast::ShardTarget& target, const AxisList& over);
  bool request_shard(const ast::ShardTarget& target, const Node& node, int axis, const AxisList& over);
  bool check_divided(const ast::ShardTarget& target, const Node& node, int axis, const AxisList& over, const std::string& what);

  // pipeline_stages.cpp
  bool counts_loop(Name dim) const;
  void request_stages(const ast::Shard& line, const AxisList& over);
  void check_stages();

  // finish.cpp
  void finish_outputs(const SourceUnit& unit);
  void add_pullback();
  void check_sizes();
  void check_conditions();
  Span span_of(const Node& node) const;
  Span param_span(Name path) const { return paths_.at(path.str()); }
  void remove_marks();

  // What a scan's body collects while it is elaborated.
  struct Collecting {
    Name axis;
    std::vector<std::pair<ast::Identifier, NodeId>> values;
  };

  Frame& frame() { return *frame_; }
  const Frame& frame() const { return *frame_; }
  SourceMap& sources_;
  const ElaborateOptions& options_;
  Diagnostics& diagnostics_;
  Units units_;
  Graph graph_;
  Builder build_;
  Frame* frame_ = nullptr;
  mutable std::unordered_map<const SourceUnit*, std::unordered_set<std::string_view>> defined_looking_;  // for may_be_defined
  mutable std::unordered_map<const SourceUnit*, std::unordered_map<Name, Span>> top_level_names_;        // for bound_later

  Bindings values_;                                       // dims with a value
  Bindings order_values_;                                 // and 1024 for each free one
  std::vector<Span> tags_;                                // what Condition::source and Dim::source refer to
  std::unordered_map<int, std::vector<Span>> tag_calls_;  // of a tag inside fns: the calls around it, innermost first

  ElementwiseTree tree_;  // of the expression being evaluated, around its innermost operands
  CustomGradients custom_gradients_;
  KnownGradients known_gradients_;
  std::vector<NamedGradient> named_gradients_;  // of the gradient block's return
  const ast::Expr* bare_call_ = nullptr;        // the call that is a statement: its value goes nowhere
  int depth_ = 0;
  int call_depth_ = 0;
  size_t calls_ = 0;
  int64_t iterations_ = 0;
  bool exhausted_ = false;  // a limit was passed and reported
  bool checking_ = false;   // a trial of fns: loops whose count is open run once
  std::unordered_set<const ast::Fn*> called_;
  std::unordered_set<const ast::Block*> checked_;  // branches of `if` that were run or tried

  struct StateEntry {
    Name path;
    Span span, update;
  };
  std::unordered_map<uint32_t, StateEntry> states_;  // by node index
  std::map<std::string, Span> paths_;                // of params and states
  std::unordered_map<std::string, int> streams_;     // random calls per instance path
  std::unordered_map<Name, Span> inputs_, outputs_;
  std::map<std::tuple<const ast::For*, uint32_t, std::string>, uint32_t> loop_ids_;  // by statement, enclosing loop and count
  struct Place {
    Span span;
    SourceLocation location;
  };
  mutable std::unordered_map<uint64_t, Place> locations_;  // by place in the files

  Collecting* collecting_ = nullptr;  // of the innermost scan
  bool finding_types_ = false;        // a trial of a scan's body: what a carry makes without a type says nothing

  std::vector<std::unique_ptr<ast::Program>> mesh_options_;  // what --mesh and --shard hold
  std::vector<std::pair<const ast::Mesh*, Span>> mesh_lines_;
  std::vector<const ast::Shard*> shard_lines_;
  const ast::Shard* stages_line_ = nullptr;
  std::map<std::string, std::vector<DeclaredAxis>> declared_axes_;  // by op and path

  struct Minimized {
    const ast::Minimize* statement = nullptr;
    NodeId loss;
    Span span;
  };
  Minimized minimized_;
  const SourceUnit* schedules_ = nullptr;  // set while optimizer arguments are evaluated: its fns come first and are given the step
  std::optional<NodeId> step_;
  std::optional<DType> optimizer_dtype_;  // set inside an optimizer: what its states' dtype is unless written
  friend class Training;
};

}  // namespace einc
