// SPDX-License-Identifier: Apache-2.0
// The syntax tree of one file: plain data, owned top down, every node with the span of its source text.
// The parser has checked what the words alone decide (which statement may stand where, dim expressions are arithmetic on
// integers and names, patterns are well formed, nothing is nested deeper than kMaxNesting); names, shapes and types are the
// elaborator's. Where the source is wrong the tree holds an Invalid expression (already reported): read it as
// "no further message", so that one mistake gives one error. An ExprPtr is never null unless its comment says so.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dsl/pattern.h"
#include "dsl/source.h"
#include "runtime/base/dtype.h"
#include "runtime/base/name.h"

namespace einc::ast {

constexpr int kMaxNesting = 256;  // of brackets, blocks and operators, counted together

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;

struct Identifier {
  Name name;  // empty: not written
  Span span;
  explicit operator bool() const { return !name.empty(); }
};

// ---- types

enum class AxisKind : uint8_t { named, sized, number, ellipsis };

struct Axis {
  AxisKind kind = AxisKind::named;
  Identifier name;  // named, sized
  ExprPtr size;     // sized: a dim expression; number: a Number; else null
  Span span;
};

// `f32[batch seq]`
struct Type {
  std::optional<DType> dtype;  // empty: real
  Span dtype_span;
  std::vector<Axis> axes;
  Span span;
};

// ---- expressions

enum class NumberKind : uint8_t { integer, real };

// An integer is exact, as decimal digits of any length without `_`; a real keeps its text (`1e-5`, `inf`, `nan`, `pi`).
struct Number {
  NumberKind kind = NumberKind::integer;
  std::string text;
  double value = 0;  // nearest double
};

// The value of an integer literal, unless it exceeds 2^63 - 1 (or the number is a real).
std::optional<int64_t> as_int64(const Number& number);

struct Boolean {
  bool value = false;
};

struct NameRef {
  Name name;
};

// Strings have no escapes: contents and file bytes correspond one to one.
struct String {
  std::string value;
  Span contents;                     // without the quotes
  std::unique_ptr<Pattern> pattern;  // set for the pattern of einsum, rearrange, reduce, repeat, pack, unpack; else null
};

// `(a, b)`, and `a, b` where a tuple may stand bare (return, several targets). Plain parentheses leave no node.
struct Tuple {
  std::vector<ExprPtr> items;
};

enum class UnaryOp : uint8_t { negate, logical_not };

struct Unary {
  UnaryOp op;
  Span op_span;
  ExprPtr operand;
};

enum class BinaryOp : uint8_t { add, sub, mul, div, floor_div, remainder, pow, lt, le, gt, ge, eq, ne, logical_and, logical_or };

struct Binary {
  BinaryOp op;
  Span op_span;
  ExprPtr left;
  ExprPtr right;
};

struct Argument {
  Identifier name;  // empty for a positional one; positional ones come first
  ExprPtr value;
  Span span;
};

// `callee(arguments) as instance`
struct Call {
  Identifier callee;
  std::vector<Argument> arguments;
  Identifier instance;  // empty: no `as`
};

enum class IndexKind : uint8_t { at, slice };

// `axis = at`, or `axis = low:high:step` where bounds and step may be missing.
struct IndexItem {
  Identifier axis;
  IndexKind kind = IndexKind::at;
  ExprPtr at;    // null for a slice
  ExprPtr low;   // null: from the start, or not a slice
  ExprPtr high;  // null: to the end, or not a slice
  ExprPtr step;  // null: 1, or not a slice
  Span span;
};

struct Index {
  ExprPtr base;
  std::vector<IndexItem> items;  // one or more, every axis once
};

// `(value): [a b]`, and the value of `return e: [a b]`: checked and renamed as in `y: [a b] = value`.
struct Annotated {
  ExprPtr value;
  Type type;
};

struct Invalid {};

enum class ExprKind : uint8_t { invalid, number, boolean, name, string, tuple, unary, binary, call, index, annotated };

struct Expr {
  // alternatives in the order of ExprKind
  using Node = std::variant<Invalid, Number, Boolean, NameRef, String, Tuple, Unary, Binary, Call, Index, Annotated>;

  Span span;
  Node node;
  int height = 1;  // levels of nodes below and including this one, at most kMaxNesting

  ExprKind kind() const { return static_cast<ExprKind>(node.index()); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&node);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&node);
  }
};

// ---- statements

struct Block {
  std::vector<Stmt> statements;
  Span span;  // braces included
};

enum class DimKind : uint8_t { free, defaulted, derived };

struct DimItem {
  Identifier name;
  DimKind kind = DimKind::free;
  ExprPtr value;  // null for a free dim; a defaulted one names no dim
  Span span;
};

// `dim a = 8, b, c = 2*a`
struct DimDecl {
  std::vector<DimItem> items;
};

enum class ImportKind : uint8_t { file, bundled };  // "nn.ein" | nn

struct Import {
  ImportKind kind = ImportKind::file;
  std::string path;
  Span path_span;  // without the quotes
};

enum class Role : uint8_t { input, param, frozen_param, state };

struct Initializer {
  Identifier name;
  std::vector<Argument> arguments;
  Span span;
};

// `input x: T`, `param w: T ~ init`, `frozen param w: T ~ init`, `state s: T ~ init`
struct TensorDecl {
  Role role = Role::input;
  Identifier name;
  Type type;
  std::optional<Initializer> initializer;  // always there but for an input
};

// `output y` or `output y = e`, `output y: T = e`
struct Output {
  Identifier name;
  std::optional<Type> type;
  ExprPtr value;  // null: the value of that name
};

struct FnParam {
  Identifier name;
  std::optional<Type> type;  // empty: any value
  ExprPtr default_value;     // null: must be given
  Span span;
};

// `gradient(dy) { ...; return dx, w = dw }` behind a fn's body.
struct GradientBlock {
  std::vector<Identifier> cotangents;  // of each returned value
  Block body;
  Span span;
};

struct Fn {
  Identifier name;
  std::vector<FnParam> params;
  Block body;
  std::optional<GradientBlock> gradient;
};

struct Target {
  Identifier name;
  std::optional<Type> type;  // an annotation, only when the target stands alone
};

// `x = e`, `y: T = e`, `a, b = e`
struct Assign {
  std::vector<Target> targets;
  ExprPtr value;
};

// `s <- e`, `s[key = pos] <- e`
struct StateUpdate {
  Identifier name;
  std::vector<IndexItem> indices;  // empty: all of it
  ExprPtr value;
};

// `for i in count { ... }`
struct For {
  Identifier variable;
  ExprPtr count;
  Block body;
};

enum class Policy : uint8_t { f64, f32, tf32, bf16, f16, fp8 };

enum class ScanOrder : uint8_t { forward, reversed };

// `scan t in time { ... }`, `scan t in reversed(steps = 10), save every 5 { ... }`
struct Scan {
  Identifier variable;
  Identifier axis;
  ExprPtr size;  // of a new axis; null: one that is there
  ScanOrder order = ScanOrder::forward;
  std::optional<int64_t> save_every;
  Block body;
};

// `collect ys = e`, right inside a scan
struct Collect {
  Identifier name;
  ExprPtr value;
};

// `precision bf16`, or `precision f32 { ... }`
struct Precision {
  Policy policy = Policy::f32;
  Span policy_span;
  std::optional<Block> body;  // empty: the whole file
};

// `over "glob" using optimizer(arguments)`
struct ParamGroup {
  std::optional<String> glob;  // empty: all params
  Span glob_span;
  Identifier optimizer;
  std::vector<Argument> arguments;
  Span span;
};

struct Minimize {
  ExprPtr loss;
  std::vector<ParamGroup> groups;  // one or more; without `over` exactly one
};

// The last statement of a fn's body, or of a `precision` block that is the last statement; never in a loop or an `if`.
// In a gradient block the value is a tuple, of any length, and params' gradients follow it by name.
struct Return {
  ExprPtr value;
  std::vector<Argument> named;
};

// A call for its effects.
struct ExprStmt {
  ExprPtr value;
};

// `if condition { ... } else { ... }`; `else if` is an If alone in the block behind `else`.
struct If {
  ExprPtr condition;
  Block then;
  std::optional<Block> otherwise;
};

// `mesh data = 4, model = 2`: axes of a grid of devices, outer to inner, each a dim like those of a `dim` statement.
struct Mesh {
  std::vector<DimItem> items;
};

// What a shard line splits: an axis wherever it is declared (`batch`), that of the tensors that a glob names (`"h.*.w_up"[hidden]`), or
// one of the words `states`, `gradients`, `params`.
struct ShardTarget {
  std::optional<String> glob;
  Identifier axis;
  Span span;
};

// `shard heads, hidden over model`, `shard layers over stage (microbatches = 8)`
struct Shard {
  std::vector<ShardTarget> targets;  // one or more
  std::vector<Identifier> over;      // one or more
  ExprPtr microbatches;              // null where none are written
};

enum class StmtKind : uint8_t {
  dim,
  import,
  tensor,
  output,
  fn,
  assign,
  state_update,
  for_loop,
  scan,
  collect,
  precision,
  minimize,
  return_value,
  expression,
  condition,
  mesh,
  shard
};

struct Stmt {
  // alternatives in the order of StmtKind
  using Node = std::variant<DimDecl, Import, TensorDecl, Output, Fn, Assign, StateUpdate, For, Scan, Collect, Precision, Minimize, Return,
                            ExprStmt, If, Mesh, Shard>;

  Span span;
  Node node;

  StmtKind kind() const { return static_cast<StmtKind>(node.index()); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&node);
  }
  template <class T>
  T* as() {
    return std::get_if<T>(&node);
  }
};

struct Program {
  FileId file = FileId::none;
  size_t token_count = 0;
  std::vector<Stmt> statements;
  // Names whose declarations were too wrong to keep: that one of them is unknown has been said already.
  std::vector<Name> broken;
};

}  // namespace einc::ast
