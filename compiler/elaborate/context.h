// SPDX-License-Identifier: Apache-2.0
// What elaborating an expression may ask of its surroundings, and the table of built-in functions. The implementation
// of the context (scopes, calls, statements) is the elaborator's core; patterns and built-in ops only see this interface.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "compiler/elaborate/elementwise_tree.h"
#include "compiler/ir/build.h"
#include "dsl/ast.h"
#include "dsl/diagnostic.h"

namespace einc {

// A weakly typed number: a literal, a dim, a loop index, or arithmetic of these. It takes the dtype of its neighbour.
struct Number {
  ScalarValue value;
  bool integer = false;  // written without a decimal point, or a dim: an integer beside integers, real beside reals
};
// A value during elaboration: a tensor (its type is the node's), a number, or several (from unpack, or a tuple).
struct Value;
struct Tuple {
  std::vector<Value> items;
};
struct Value {
  std::variant<NodeId, Number, Tuple> data;
};

class Context {
 public:
  virtual ~Context() = default;

  virtual Builder& build() = 0;
  virtual Diagnostics& diagnostics() = 0;

  // Evaluates an expression; nullopt after an error that was reported.
  virtual std::optional<Value> evaluate(const ast::Expr& expr) = 0;
  // Likewise, for an operand of an elementwise op: a part of tree(), where evaluate() begins one of its own.
  virtual std::optional<Value> evaluate_operand(const ast::Expr& expr) = 0;
  virtual ElementwiseTree& tree() = 0;
  // Reports that tree() makes an outer product by accident; false then.
  virtual bool refuse_outer_product(NodeId result) = 0;
  // Evaluates to a tensor: a number becomes a scalar constant (integers i32 when `integer`, else real).
  virtual std::optional<NodeId> evaluate_tensor(const ast::Expr& expr) = 0;
  // An expression where a size is wanted: ints, dims, visible axis names and + - * / of them.
  virtual std::optional<Poly> evaluate_size(const ast::Expr& expr) = 0;

  // Size of a declared dim of this file or an axis of the enclosing fn's signature: a pattern that uses the name must agree with it.
  virtual std::optional<Poly> declared_size(Name name) const = 0;
  // Declared size, or that of a local axis that a pattern or type in this scope has introduced with one size only.
  virtual std::optional<Poly> visible_size(Name name) const = 0;
  // Says that a local axis of that name has two sizes, if it has.
  virtual bool report_two_sizes(Name name, Span where) = 0;
  // A pattern or type introduces a local axis name.
  virtual void introduce_local(Name name, const Poly& size, Span where) = 0;
  // Names a user may have meant, for near-name hints.
  virtual std::vector<std::string> visible_axis_names() const = 0;
  // Whether a value of that name is bound here.
  virtual bool is_value(Name name) const = 0;
  // "seq (declared at gpt2.ein:2)", "3 (written here)": where a size came from, for messages.
  virtual std::string describe_size(const Poly& size) const = 0;
  // The source text of a value when it is short, else "..."; in a bundled fn, of the argument that the caller gave.
  virtual std::string quote(Span span) const = 0;
  // The name by which the user knows an axis: in a bundled fn, the caller's.
  virtual Name known_name(Name axis) const = 0;
  // A type as the file would write it, sizes in the dims' own names.
  virtual std::string show(const Type& type) const = 0;

  // Records a run-time condition (exact division, slice bound): checked when dims are bound. Reports at once when it can never hold.
  virtual void require(Condition condition, Span where) = 0;
  // Values to choose contraction orders by: bound dims, and 1024 for each free one.
  virtual const Bindings& order_values() const = 0;
  virtual SourceLocation locate(Span span) const = 0;
  // Instance path of the current scope plus a running number for the call at `span`: the name of a random stream.
  virtual Name random_stream(Span span) = 0;
};

// A built-in function: gets the call unevaluated, since axis arguments are names.
using BuiltinHandler = std::optional<Value> (*)(Context&, const ast::Call&);
struct Builtin {
  std::string_view name;
  BuiltinHandler handler;
  std::string_view signature, gives;  // for the reference, dsl/README.md
};
// Tables of the files patterns.cpp, elementwise.cpp, axis_ops.cpp, ...
std::span<const Builtin> pattern_builtins();      // einsum rearrange reduce repeat pack unpack like
std::span<const Builtin> elementwise_builtins();  // where min max pow exp ... cast stop_gradient
std::span<const Builtin> axis_builtins();         // sum mean ... softmax iota concat stack pad dropout normal uniform ...
std::optional<BuiltinHandler> find_builtin(std::string_view name);

// Operators and indexing, from the same files.
std::optional<Value> elementwise_operator(Context& context, MapFn fn, std::span<const Value> operands, std::span<const Span> spans,
                                          Span whole);
std::optional<Value> index_tensor(Context& context, NodeId tensor, const ast::Index& index);

// A tensor from a value: numbers become rank-0 constants of `beside` (an integer literal becomes real beside a real).
// Reports a number that the dtype cannot hold.
std::optional<NodeId> to_tensor(Context& context, const Value& value, DType beside, Span span);
// A number with no tensor beside it is real, or i32 (i64 where i32 cannot hold it).
std::optional<NodeId> to_tensor_alone(Context& context, const Value& value, Span span);

}  // namespace einc
