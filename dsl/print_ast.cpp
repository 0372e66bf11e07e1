// SPDX-License-Identifier: Apache-2.0
// Prints by one switch over expressions and one overload per statement; the tree's height bounds the recursion.
#include "dsl/print_ast.h"

#include <fmt/format.h>

namespace einc {
namespace {

constexpr std::string_view kBinary[] = {"+", "-", "*", "/", "//", "%", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or"};

class Printer {
 public:
  std::string take() { return std::move(out_); }

  // ---- patterns

  void atoms(const std::vector<Atom>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ' ';
      atom(list[i]);
    }
  }

  void pattern(const Pattern& p) {
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      if (i) out_ += ", ";
      atoms(p.inputs[i].atoms);
    }
    if (!p.arrow.known()) return;
    out_ += " -> ";
    atoms(p.output.atoms);
  }

  // ---- expressions

  void expr(const ast::Expr& e) {
    switch (e.kind()) {
      case ast::ExprKind::invalid:
        out_ += "<invalid>";
        break;
      case ast::ExprKind::number:
        out_ += e.as<ast::Number>()->text;
        break;
      case ast::ExprKind::boolean:
        out_ += e.as<ast::Boolean>()->value ? "true" : "false";
        break;
      case ast::ExprKind::name:
        out_ += e.as<ast::NameRef>()->name.str();
        break;
      case ast::ExprKind::string:
        string(*e.as<ast::String>());
        break;
      case ast::ExprKind::tuple:
        tuple(*e.as<ast::Tuple>());
        break;
      case ast::ExprKind::unary:
        unary(*e.as<ast::Unary>());
        break;
      case ast::ExprKind::binary:
        binary(*e.as<ast::Binary>());
        break;
      case ast::ExprKind::call:
        call(*e.as<ast::Call>());
        break;
      case ast::ExprKind::index:
        index(*e.as<ast::Index>());
        break;
      case ast::ExprKind::annotated:
        annotated(*e.as<ast::Annotated>());
        break;
    }
  }

  // ---- statements

  void statements(const std::vector<ast::Stmt>& list) {
    for (const ast::Stmt& s : list) {
      out_.append(static_cast<size_t>(indent_) * 2, ' ');
      std::visit([this](const auto& node) { put(node); }, s.node);
      out_ += '\n';
    }
  }

 private:
  void atom(const Atom& a) {
    switch (a.kind) {
      case AtomKind::name:
        out_ += a.name.str();
        break;
      case AtomKind::unit:
        out_ += '1';
        break;
      case AtomKind::integer:
        out_ += fmt::format("{}", a.value);
        break;
      case AtomKind::ellipsis:
        out_ += "..." + a.name.str();
        break;
      case AtomKind::star:
        out_ += '*';
        break;
      case AtomKind::group:
        out_ += '(';
        atoms(a.children);
        out_ += ')';
        break;
      case AtomKind::window:
        window(a);
        break;
    }
  }

  void window(const Atom& a) {
    for (size_t i = 0; i < a.terms.size(); ++i) {
      const WindowTerm& t = a.terms[i];
      out_ += i ? " + " : "(";
      if (!t.coefficient_name.empty())
        out_ += t.coefficient_name.str() + "*";
      else if (t.coefficient_span.known())
        out_ += fmt::format("{}*", t.coefficient);
      out_ += t.axis.str();
    }
    out_ += ')';
  }

  void string(const ast::String& s) {
    out_ += '"';
    if (s.pattern)
      pattern(*s.pattern);
    else
      out_ += s.value;
    out_ += '"';
  }

  void tuple(const ast::Tuple& t) {
    out_ += '(';
    for (const ast::ExprPtr& item : t.items) {
      expr(*item);
      out_ += ", ";
    }
    out_ += ')';
  }

  void unary(const ast::Unary& u) {
    out_ += u.op == ast::UnaryOp::negate ? "(-" : "(not ";
    expr(*u.operand);
    out_ += ')';
  }

  void binary(const ast::Binary& b) {
    out_ += '(';
    expr(*b.left);
    out_ += fmt::format(" {} ", kBinary[static_cast<size_t>(b.op)]);
    expr(*b.right);
    out_ += ')';
  }

  void arguments(const std::vector<ast::Argument>& list) {
    out_ += '(';
    for (size_t i = 0; i < list.size(); ++i) {
      if (i) out_ += ", ";
      if (list[i].name) out_ += list[i].name.name.str() + " = ";
      expr(*list[i].value);
    }
    out_ += ')';
  }

  void call(const ast::Call& c) {
    out_ += c.callee.name.str();
    arguments(c.arguments);
    if (c.instance) out_ += " as " + c.instance.name.str();
  }

  void index_items(const std::vector<ast::IndexItem>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
      out_ += (i ? ", " : "[") + items[i].axis.name.str() + " = ";
      if (items[i].at) expr(*items[i].at);
      if (items[i].low) expr(*items[i].low);
      if (items[i].kind == ast::IndexKind::slice) out_ += ':';
      if (items[i].high) expr(*items[i].high);
      if (items[i].step) out_ += ':', expr(*items[i].step);
    }
    if (!items.empty()) out_ += ']';
  }

  void index(const ast::Index& x) {
    expr(*x.base);
    index_items(x.items);
  }

  void annotated(const ast::Annotated& a) {
    out_ += '(';
    expr(*a.value);
    out_ += "): ";
    type(a.type);
  }

  void type(const ast::Type& t) {
    if (t.dtype) out_ += to_string(*t.dtype);
    out_ += '[';
    for (size_t i = 0; i < t.axes.size(); ++i) {
      const ast::Axis& a = t.axes[i];
      if (i) out_ += ", ";
      if (a.kind == ast::AxisKind::ellipsis) out_ += "...";
      out_ += a.name.name.str();
      if (a.kind == ast::AxisKind::sized) out_ += "=";
      if (a.size) expr(*a.size);
    }
    out_ += ']';
  }

  void block(const ast::Block& b) {
    out_ += " {\n";
    ++indent_;
    statements(b.statements);
    --indent_;
    out_.append(static_cast<size_t>(indent_) * 2, ' ');
    out_ += '}';
  }

  void put(const ast::DimDecl& d) { items("dim", d.items); }
  void put(const ast::Mesh& m) { items("mesh", m.items); }

  void items(std::string_view word, const std::vector<ast::DimItem>& list) {
    out_ += word;
    for (size_t i = 0; i < list.size(); ++i) {
      out_ += (i ? ", " : " ") + list[i].name.name.str();
      if (!list[i].value) continue;
      out_ += " = ";
      expr(*list[i].value);
    }
  }

  void put(const ast::Shard& s) {
    out_ += "shard ";
    for (size_t i = 0; i < s.targets.size(); ++i) {
      const ast::ShardTarget& target = s.targets[i];
      if (i) out_ += ", ";
      out_ += target.glob ? fmt::format("\"{}\"[{}]", target.glob->value, target.axis.name.str()) : target.axis.name.str();
    }
    for (size_t i = 0; i < s.over.size(); ++i) out_ += (i ? ", " : " over ") + s.over[i].name.str();
    if (!s.microbatches) return;
    out_ += " (microbatches = ";
    expr(*s.microbatches);
    out_ += ")";
  }

  void put(const ast::Import& i) { out_ += i.kind == ast::ImportKind::file ? fmt::format("import \"{}\"", i.path) : "import " + i.path; }

  void put(const ast::TensorDecl& d) {
    static constexpr std::string_view kRoles[] = {"input", "param", "frozen param", "state"};
    out_ += fmt::format("{} {}: ", kRoles[static_cast<size_t>(d.role)], d.name.name.str());
    type(d.type);
    if (!d.initializer) return;
    out_ += " ~ " + d.initializer->name.name.str();
    arguments(d.initializer->arguments);
  }

  void put(const ast::Output& o) {
    out_ += "output " + o.name.name.str();
    if (o.type) {
      out_ += ": ";
      type(*o.type);
    }
    if (!o.value) return;
    out_ += " = ";
    expr(*o.value);
  }

  void put(const ast::Fn& f) {
    out_ += "fn " + f.name.name.str() + "(";
    for (size_t i = 0; i < f.params.size(); ++i) {
      out_ += (i ? ", " : "") + f.params[i].name.name.str();
      if (f.params[i].type) {
        out_ += ": ";
        type(*f.params[i].type);
      }
      if (!f.params[i].default_value) continue;
      out_ += " = ";
      expr(*f.params[i].default_value);
    }
    out_ += ')';
    block(f.body);
    if (!f.gradient) return;
    out_ += " gradient(";
    for (size_t i = 0; i < f.gradient->cotangents.size(); ++i) out_ += (i ? ", " : "") + f.gradient->cotangents[i].name.str();
    out_ += ')';
    block(f.gradient->body);
  }

  void put(const ast::Assign& a) {
    for (size_t i = 0; i < a.targets.size(); ++i) {
      out_ += (i ? ", " : "") + a.targets[i].name.name.str();
      if (!a.targets[i].type) continue;
      out_ += ": ";
      type(*a.targets[i].type);
    }
    out_ += " = ";
    expr(*a.value);
  }

  void put(const ast::StateUpdate& u) {
    out_ += u.name.name.str();
    index_items(u.indices);
    out_ += " <- ";
    expr(*u.value);
  }

  void put(const ast::For& f) {
    out_ += "for " + f.variable.name.str() + " in ";
    expr(*f.count);
    block(f.body);
  }

  void put(const ast::Scan& s) {
    const bool reversed = s.order == ast::ScanOrder::reversed;
    out_ += fmt::format("scan {} in {}{}", s.variable.name.str(), reversed ? "reversed(" : "", s.axis.name.str());
    if (s.size) {
      out_ += "=";
      expr(*s.size);
    }
    if (reversed) out_ += ')';
    if (s.save_every) out_ += fmt::format(", save every {}", *s.save_every);
    block(s.body);
  }

  void put(const ast::Collect& c) {
    out_ += "collect " + c.name.name.str() + " = ";
    expr(*c.value);
  }

  void put(const ast::Precision& p) {
    static constexpr std::string_view kPolicies[] = {"f64", "f32", "tf32", "bf16", "f16", "fp8"};
    out_ += fmt::format("precision {}", kPolicies[static_cast<size_t>(p.policy)]);
    if (p.body) block(*p.body);
  }

  void put(const ast::Minimize& m) {
    out_ += "minimize ";
    expr(*m.loss);
    for (const ast::ParamGroup& g : m.groups) {
      if (g.glob) out_ += fmt::format(" over \"{}\"", g.glob->value);
      out_ += " using " + g.optimizer.name.str();
      arguments(g.arguments);
    }
  }

  void put(const ast::Return& r) {
    out_ += "return ";
    expr(*r.value);
    for (const ast::Argument& a : r.named) {
      out_ += ", " + a.name.name.str() + " = ";
      expr(*a.value);
    }
  }

  void put(const ast::ExprStmt& s) { expr(*s.value); }

  void put(const ast::If& f) {
    out_ += "if ";
    expr(*f.condition);
    block(f.then);
    if (!f.otherwise) return;
    out_ += " else";
    const auto& list = f.otherwise->statements;
    if (list.size() != 1 || !list[0].as<ast::If>()) return block(*f.otherwise);
    out_ += ' ';
    put(*list[0].as<ast::If>());
  }

  std::string out_;
  int indent_ = 0;
};

}  // namespace

std::string print_ast(const ast::Program& program) {
  Printer printer;
  printer.statements(program.statements);
  return printer.take();
}

std::string print_ast(const ast::Expr& expression) {
  Printer printer;
  printer.expr(expression);
  return printer.take();
}

std::string print_pattern(const Pattern& pattern) {
  Printer printer;
  printer.pattern(pattern);
  return printer.take();
}

}  // namespace einc
