// SPDX-License-Identifier: Apache-2.0
// The parser's insides, shared by its files: expressions, declarations, statements. The grammar in one view:
//   statement  := dim | import | tensor | output | fn | for | scan | collect | if | precision | minimize | mesh | shard | return
//                 | assignment | update | call
//   expression := operators over postfix; or < and < not < comparison < + - < * / < unary - < ^ (right) < postfix
//   postfix    := primary { "(" arguments ")" | "[" axis "=" index, ... "]" | "as" name } | "(" expression ")" ":" type
// The first mistake of a statement is reported and sets panic_; everything then returns at once, up to the statement's
// end. Recursion (brackets and blocks) is counted by Nest; operators are parsed by a stack on the heap.
#pragma once
#include <string>
#include <string_view>

#include "dsl/ast.h"
#include "dsl/habits.h"
#include "dsl/parser.h"
#include "dsl/token.h"

namespace einc {

// Python's `a if c else b`.
inline constexpr std::string_view kChoiceByValue =
    "a choice by value is where(c, a, b); by what is known while compiling, if c { y = a } else { y = b }";

class Parser {
 public:
  Parser(const SourceMap& sources, FileId file, Diagnostics& diagnostics)
      : file_(file), text_(sources.file(file).text()), diagnostics_(diagnostics), tokens_(lex(sources, file, diagnostics)) {}

  ast::Program program();

 private:
  static constexpr size_t kMaxParameters = 256;  // of one fn

  // What a name being declared is for; the words of the message when it is reserved.
  enum class NameUse : uint8_t { dim, tensor, fn, parameter, axis, loop_variable, module, instance, value };

  // One level of brackets or blocks; not ok beyond the limit, which is reported.
  class Nest {
   public:
    explicit Nest(Parser& parser);
    ~Nest() { --parser_.depth_; }
    Nest(const Nest&) = delete;
    Nest& operator=(const Nest&) = delete;
    bool ok() const { return parser_.depth_ <= ast::kMaxNesting; }

   private:
    Parser& parser_;
  };

  // ---- tokens (parser.cpp)
  const Token& token() const { return tokens_[at_]; }
  TokenKind kind() const { return tokens_[at_].kind; }
  TokenKind next_kind() const { return at_ + 1 < tokens_.size() ? tokens_[at_ + 1].kind : TokenKind::end_of_file; }
  bool at(TokenKind k) const { return kind() == k; }
  bool accept(TokenKind k);
  Span span_of(const Token& t) const { return {file_, t.begin, t.end}; }
  Span here() const { return span_of(token()); }
  Span from(uint32_t begin) const { return {file_, begin, at_ == 0 ? begin : std::max(begin, tokens_[at_ - 1].end)}; }
  std::string_view text(const Token& t) const { return text_.substr(t.begin, t.end - t.begin); }
  std::string describe(const Token& t) const;
  bool at_statement_end() const;
  bool at_line_end() const { return at(TokenKind::newline) || at(TokenKind::end_of_file); }

  // ---- mistakes (parser.cpp); each sets panic_
  void fail_expected(std::string_view what, std::string_view hint = {});
  bool expect(TokenKind k, std::string_view what, std::string_view hint = {});
  bool expect_close(TokenKind k, Token open);  // by value: tokens are few bytes
  template <class... Args>
  Diagnostics::Builder fail(detail::CheckedCode<std::type_identity_t<Args>...> code, Span span, const Args&... args) {
    panic_ = true;
    return diagnostics_.report(code, span, args...);
  }
  void fail_reserved(NameUse use);
  void synchronize();

  // ---- declarations and what they are made of (parse_declaration.cpp)
  ast::Identifier identifier(NameUse use);  // a new name: no keyword, no dtype
  ast::Identifier any_word(NameUse use);    // where only a name can stand, keywords will do
  std::optional<ast::Type> type();
  bool type_axis(ast::Type& type);
  void refuse_bare_expression(size_t first);
  std::optional<ast::Initializer> initializer();
  bool check_dim_expression(const ast::Expr& e, bool& names_dim);
  ast::ExprPtr dim_expression(bool& names_dim);

  // ---- expressions (parse_expression.cpp)
  struct Pending;
  ast::ExprPtr expression();
  ast::ExprPtr bare_tuple();
  ast::ExprPtr postfix();
  bool type_follows() const;
  ast::ExprPtr annotated(ast::ExprPtr value, uint32_t begin);
  ast::ExprPtr dotted(ast::ExprPtr base, uint32_t begin);
  ast::ExprPtr primary();
  ast::ExprPtr parenthesized();
  ast::ExprPtr number();
  ast::String string_literal();
  // calls and indices (parse_call.cpp)
  ast::ExprPtr call(uint32_t begin);
  // Of segment_sum(values, ids, nodes = 8, axis, ...) and its like a new axis stands before others.
  enum class KeywordPlace : uint8_t { last, anywhere };
  bool arguments(std::vector<ast::Argument>& out, int& height, KeywordPlace keywords = KeywordPlace::last);
  bool is_bare_pattern() const;
  bool argument(std::vector<ast::Argument>& out, int& height, KeywordPlace keywords);
  bool index_items(std::vector<ast::IndexItem>& out, int& height);
  bool index_item(std::vector<ast::IndexItem>& out, int& height);
  bool attach_pattern(ast::Call& call, Span span);
  bool prefix_operators(std::vector<Pending>& pending);
  ast::ExprPtr reduce(std::vector<Pending>& pending, ast::ExprPtr operand, int level, bool& was_comparison);
  ast::ExprPtr make(Span span, ast::Expr::Node node, int height_below, Span blame);
  ast::ExprPtr invalid(Span span) { return make(span, ast::Invalid{}, 0, span); }

  // ---- statements (parse_statement.cpp)
  void statements(std::vector<ast::Stmt>& out, TokenKind stop);
  void statement(std::vector<ast::Stmt>& out);
  std::optional<ast::Stmt::Node> keyword_statement();
  std::optional<ast::Stmt::Node> dim_statement();
  std::optional<ast::Stmt::Node> import_statement();
  std::optional<ast::Stmt::Node> tensor_statement();
  std::optional<ast::Stmt::Node> output_statement();
  std::optional<ast::Stmt::Node> fn_statement();
  std::optional<ast::Stmt::Node> for_statement();
  std::optional<ast::Stmt::Node> scan_statement();
  bool scan_header(ast::Scan& out);
  std::optional<ast::Stmt::Node> collect_statement();
  std::optional<ast::Stmt::Node> precision_statement();
  std::optional<ast::Stmt::Node> minimize_statement();
  std::optional<ast::Stmt::Node> return_statement();
  std::optional<ast::Stmt::Node> simple_statement();
  std::optional<ast::Stmt::Node> assignment(ast::ExprPtr first);
  std::optional<ast::Stmt::Node> state_update(ast::ExprPtr target);
  // parse_habits.cpp: other languages' statements and blocks
  bool at_foreign_statement(const WordHabit& habit) const;
  std::optional<ast::Stmt::Node> foreign_statement(const WordHabit& habit);
  void fail_at_colon();
  void skip_indented(uint32_t header);
  bool continues_below(uint32_t header) const;
  size_t indentation(uint32_t offset) const;
  void count_of_range(ast::ExprPtr& count);
  bool fail_at_range();
  void fail_at_list();
  void fail_at_foreign_dtype();
  // parse_words.cpp: statements whose words are names elsewhere
  bool at_word(std::string_view word) const { return at(TokenKind::name) && text(token()) == word; }
  bool begins_with_word(std::string_view word) const;
  bool opens_block_on_this_line() const;
  std::optional<ast::Stmt::Node> word_statement();
  std::optional<ast::Stmt::Node> if_statement();
  std::optional<ast::Stmt::Node> mesh_statement();
  std::optional<ast::Stmt::Node> shard_statement();
  bool microbatches(ast::Shard& out);
  bool shard_target(ast::Shard& out);
  bool dim_item(std::vector<ast::DimItem>& out);
  bool gradient_block(ast::Fn& fn);
  std::optional<ast::Stmt::Node> gradient_return();
  bool to_target(const ast::Expr& e, ast::Target& out);
  bool fn_params(std::vector<ast::FnParam>& out);
  bool param_group(ast::Minimize& out);
  ast::Block block();
  bool recover_at_brace();
  bool placed_well(TokenKind first, Span place);
  bool may_stand_in_scan(Span place, std::string_view what);
  void fail_after_statement(Token first);
  void check_after_return(const std::vector<ast::Stmt>& list);
  void declare(const ast::Identifier& name) { declared_.push_back(name.name); }

  FileId file_;
  std::string_view text_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  bool panic_ = false;
  bool unclosed_block_ = false;
  int depth_ = 0;
  int fn_depth_ = 0, loop_depth_ = 0, if_depth_ = 0, gradient_depth_ = 0,
      block_depth_ = 0;                   // the blocks around this place; block: any kind
  int scan_depth_ = 0, scan_block_ = -1;  // scans around this place; block_depth_ right inside the innermost
  std::vector<Name> declared_;            // by the statements being parsed, innermost last
  std::vector<Name> broken_;
};

}  // namespace einc
