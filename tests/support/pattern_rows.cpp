// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pattern_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace einc::test {

namespace {

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

std::string type_of(const std::vector<int64_t>& shape, const std::string& prefix) {
  std::string axes;
  for (size_t i = 0; i < shape.size(); ++i) axes += fmt::format("{}{}{}={}", i == 0 ? "" : ", ", prefix, i, shape[i]);
  return "f64[" + axes + "]";
}

std::string spaced_term(const std::string& term) {
  std::string out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == ' ') continue;
    if (!out.empty() && !(term[i] == '.' && out.back() == '.')) out += ' ';
    out += term[i];
  }
  return out;
}

// numpy's implicit output: the ellipsis, then the letters that stand once, in alphabetical order.
std::string implicit_output(const std::string& inputs) {
  std::string out = inputs.find("...") != std::string::npos ? "..." : "";
  for (char c = 'A'; c <= 'z'; ++c)
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 && std::count(inputs.begin(), inputs.end(), c) == 1) out += c;
  return out;
}

// "ij,jk->ik" -> "i j, j k -> i k"
std::string spaced(const std::string& compact) {
  const size_t arrow = compact.find("->");
  if (arrow != compact.rfind("->")) return compact;
  const std::string inputs = compact.substr(0, arrow);
  std::string out;
  for (const std::string& term : split_fields(inputs, ",")) out += spaced_term(term) + ", ";
  out.resize(out.size() - 2);
  return out + " -> " + spaced_term(arrow == std::string::npos ? implicit_output(inputs) : compact.substr(arrow + 2));
}

std::string arguments_of(size_t count, const std::string& prefix) {
  std::string text;
  for (size_t t = 0; t < count; ++t) text += fmt::format("{}{}, ", prefix, t);
  return text;
}

std::string keywords_of(const std::string& sizes) {
  std::string text;
  for (const auto& [name, value] : parse_sizes(sizes)) text += fmt::format(", {}={}", name, value);
  return text;
}

// "ps=[(2 -1) (1 2)]"
std::vector<std::vector<int64_t>> packed_shapes(std::string text) {
  std::replace(text.begin(), text.end(), ' ', ',');
  return parse_shapes(text);
}

// The pieces of unpack: shapes with -1 as they are, others by like() of an input of the piece's shape.
std::string pieces_of(const CaseRow& row, RowProgram& program) {
  const auto pieces = packed_shapes(row.fields[4]);
  const bool open = row.fields[4].find("-1") != std::string::npos;
  std::string text;
  for (const auto& piece : pieces) {
    if (open) {
      text += piece.size() == 1 ? fmt::format("{}, ", piece[0]) : fmt::format("({}), ", fmt::join(piece, ", "));
      continue;
    }
    std::vector<int64_t> shape;
    size_t axis = 0;
    for (const std::string& atom : split_fields(row.fields[2], " "))
      if (atom == "*") {
        shape.insert(shape.end(), piece.begin(), piece.end());
        ++axis;
      } else {
        shape.push_back(program.shapes[0][axis++]);
      }
    text += fmt::format("like(like{}), ", program.likes.size());
    program.likes.push_back(shape);
  }
  program.results = pieces.size();
  return text;
}

// einx' and EinMix' rows that einops' notation says as well.
std::string translated(const std::string& id) {
  static const std::map<std::string, std::string> kStatements = {
      {"L01", "y0 = einsum(x0, x1, \"b c_in h w, c_in c_out -> w c_out h b\")"},
      {"L03", "y0 = einsum(x0, x1, \"b c_in h w, -> w c_in h b\")"},
      {"L05", "y0 = einsum(x0, x1, \"b t head c_in, head c_in c_out -> b t head c_out\")"},
      {"L07",
       "z: f64[t=3 b=2 o=12] = einsum(x0, x1, \"t b (head cin), head cin cout -> t b (head cout)\")\n"
       "shift: f64[o=12] = rearrange(x2, \"1 1 head cout -> (head cout)\")\ny0 = z + shift"},
      {"X01", "y0 = pack(x0, x1, \"*\")"},
      {"X03", "row = repeat(x1, \"-> b\", b=2)\ny0 = pack(x0, row, \"b *\")"},
      {"X05",
       "y0 = x0[x0_0 = 0:7, x0_1 = 0:6]\ny1 = x0[x0_0 = 0:7, x0_1 = 6:10]\ny2 = x0[x0_0 = 7:10, x0_1 = 0:6]\n"
       "y3 = x0[x0_0 = 7:10, x0_1 = 6:10]"},
      {"X07", "y0 = einsum(rearrange(x0, \"(a b) -> a b\", a=10), \"i i -> i\")"},
      {"X09", "y0 = rearrange(x0, \"(s0 t0) (s1 t1) c -> s0 s1 t0 t1 c\", t0=2, t1=2)"},
      {"X11", "y0 = rearrange(x0, \"a (b0 b1 c) d0 d1 e -> a (b0 b1) (c d0 d1) e\", b0=2, b1=5)"},
      {"X13", "y0 = repeat(x0, \"1 -> (x y)\", x=10, y=20)"},
      {"X15", "y0 = reduce(x0, \"b s0 s1 c -> b c\", \"mean\")"},
      {"X17", "y0 = reduce(x0, \"a b -> a 1\", \"sum\")"},
      {"X19", "y0 = einsum(x0, x1, x2, \"a b, a c, d c -> b d\")"},
      {"X21", "y0: [x0_0 x1_0] = x0 + x1"},
      {"X23", "y0 = einsum(x0, x1, \"a0 a1, b0 b1 -> (a0 b0) (a1 b1)\")"},
      {"X29",
       "pairs = rearrange(x0, \"a (g c) -> a g c\", c=2)\ny0 = rearrange(concat(pairs[c = 1:2], pairs[c = 0:1], c), \"a g c -> a (g c)\")"},
      {"X50", "y0 = rearrange(x0, \"(a b) c -> a b c\")"},
  };
  const auto it = kStatements.find(id);
  return it == kStatements.end() ? "" : it->second;
}

std::string statement_of(const CaseRow& row, RowProgram& program) {
  const std::string& op = row.fields[1];
  if (const std::string text = translated(row.fields[0]); !text.empty()) {
    if (!row.fields[5].starts_with("ERROR")) program.results = parse_shapes(row.fields[5]).size();
    return text;
  }
  const std::string tensors = arguments_of(program.shapes.size(), "x");
  const std::string keywords = keywords_of(row.fields[4]);
  if (op == "einsum:compact" || op == "contract")
    return fmt::format("y0 = einsum({}\"{}\"{})", tensors, spaced(row.fields[2]), op == "contract" ? "" : keywords);
  if (op.starts_with("reduce:")) return fmt::format("y0 = reduce({}\"{}\", \"{}\"{})", tensors, row.fields[2], op.substr(7), keywords);
  if (op == "unpack") {
    const std::string pieces = pieces_of(row, program);
    std::string targets;
    for (size_t i = 0; i < program.results; ++i) targets += fmt::format("{}y{}", i == 0 ? "" : ", ", i);
    return fmt::format("{} = unpack({}{}\"{}\")", targets, tensors, pieces, row.fields[2]);
  }
  if (op == "einsum" || op == "rearrange" || op == "repeat" || op == "pack")
    return fmt::format("y0 = {}({}\"{}\"{})", op, tensors, row.fields[2], keywords);
  return {};
}

}  // namespace

RowProgram program_of(const CaseRow& row) {
  RowProgram program;
  program.shapes = parse_shapes(row.fields[3]);
  const std::string statement = statement_of(row, program);
  if (statement.empty()) return program;
  std::string& text = program.text;
  for (size_t t = 0; t < program.shapes.size(); ++t)
    text += fmt::format("input x{}: {}\n", t, type_of(program.shapes[t], fmt::format("x{}_", t)));
  for (size_t t = 0; t < program.likes.size(); ++t)
    text += fmt::format("input like{}: {}\n", t, type_of(program.likes[t], fmt::format("like{}_", t)));
  text += statement + "\n";
  if (row.fields[5].starts_with("ERROR")) return program;
  if (row.fields[5].starts_with("cost")) {
    text += "output y0\n";
    return program;
  }
  const auto results = parse_shapes(row.fields[5]);
  text += "check = 0.0\n";
  for (size_t i = 0; i < program.results; ++i) {
    text += fmt::format("output y{}\n", i);
    text += fmt::format("input weight{}: f64[n{}={}]\n", i, i, count_of(results[i]));
    text += fmt::format("flat{}: f64[n{}={}] = rearrange(cast(y{}, f64), \"... -> (...)\")\n", i, i, count_of(results[i]), i);
    text += fmt::format("check = check + sum(flat{} * weight{})\n", i, i);
  }
  text += "output check\n";
  if (row.fields.size() > 6 && row.fields[6].find("gchk=") != std::string::npos)
    for (size_t t = 0; t < program.shapes.size(); ++t) text += fmt::format("output g{} = grad(check, x{})\n", t, t);
  return program;
}

}  // namespace einc::test
