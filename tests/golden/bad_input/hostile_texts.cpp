// SPDX-License-Identifier: Apache-2.0
#include "tests/golden/bad_input/hostile_texts.h"

#include <fmt/format.h>

#include "compiler/elaborate/elaborate.h"
#include "dsl/source.h"
#include "dsl/token.h"

namespace einc::test {
namespace {

using namespace std::string_literals;

const std::string kHead = "dim n = 4\ninput x: [n]\n";
constexpr int kDeep = 100'000;
constexpr int kLong = 1 << 20;

// format(piece, i) for i below `times`, with i in place of each @.
std::string numbered(std::string_view piece, int times, int first = 0) {
  std::string text;
  for (int i = first; i < first + times; ++i)
    for (const char c : piece) text += c == '@' ? std::to_string(i) : std::string(1, c);
  return text;
}

std::string output(const std::string& expression) { return kHead + "output y = " + expression + "\n"; }

// Exactly n tokens: of 17, 5 and 4.
std::string program_of_tokens(int n) {
  const int rest = (n - 17) % 4;
  return output("x") + repeated("a = 1\n", (n - 17 - 5 * rest) / 4) + repeated("b = -1\n", rest);
}

std::string utf16(std::string_view text, size_t high) {
  std::string wide;
  for (const char c : text) wide += high == 0 ? std::string{'\0', c} : std::string{c, '\0'};
  return wide;
}

// A hundred lines, each of which names the one before twice.
std::string chain(std::string_view line) {
  std::string text;
  for (int i = 1; i < 100; ++i) text += fmt::format(fmt::runtime(line), i, i - 1, i - 1);
  return text;
}

// fn q1 calls q0 twice, q2 calls q1 twice, ...
std::string doubling(const std::string& first, const std::string& twice) {
  std::string text = kHead + "fn q0(x) { return " + first + " }\n";
  for (int i = 1; i <= 40; ++i) {
    std::string body = twice;
    for (size_t at = body.find('@'); at != std::string::npos; at = body.find('@')) body.replace(at, 1, fmt::format("q{}", i - 1));
    text += fmt::format("fn q{}(x) {{ return {} }}\n", i, body);
  }
  return text + "output y = q40(x)\n";
}

void add_encodings(std::vector<HostileText>& rows) {
  rows.push_back({"S01_empty", "E0003 1:1", [] { return ""s; }});
  rows.push_back({"S01_only_newlines", "E0003 1:1", [] { return repeated("\n", kLong); }});
  rows.push_back({"S03_utf16_le", "E0004 1:1", [] { return "\xff\xfe" + utf16(kHead, 1); }});
  rows.push_back({"S03_utf16_be", "E0004 1:1", [] { return "\xfe\xff" + utf16(kHead, 0); }});
  rows.push_back({"S03_utf16_unmarked", "E0004 1:1", [] { return utf16(kHead, 1); }});
  rows.push_back({"S05_nul_inside", "E0006 3:4", [] { return kHead + "out\0put y = x\n"s; }});
  rows.push_back({"S05_nul_behind", "E0006 4:1", [] { return output("x") + "\0"s; }});
  rows.push_back({"invalid_utf8", "E0005 1:9", [] { return "dim n = \xff\n"s; }});
  rows.push_back({"overlong_utf8", "E0005 1:13", [] { return "dim n = 4 # \xc0\x80\n"s; }});
  rows.push_back({"surrogate", "E0005 1:13", [] { return "dim n = 4 # \xed\xa0\x80\n"s; }});
  rows.push_back({"S29_escape_in_code", "E0101 3:12", [] { return kHead + "output y = \x1b[31mx\n"; }});
  rows.push_back({"S29_escape_in_pattern", "E0301 3:26", [] { return output("rearrange(x, \"\x1b[2J -> n\")"); }});
  rows.push_back({"S29_escape_in_import", "E0610 1:9", [] { return "import \"\x1b[31m.ein\"\n" + output("x"); }});
}

void add_nesting(std::vector<HostileText>& rows) {
  const auto deep = [&](const std::string& name, const std::string& error, std::function<std::string()> make) {
    rows.push_back({"S11_" + name, error, std::move(make)});
  };
  deep("parentheses", "E0204 3:268", [] { return nested("(", ")", kDeep); });
  deep("open_parentheses", "E0204 1:257", [] { return repeated("(", kDeep); });
  deep("calls", "E0204 3:1039", [] { return nested("exp(", ")", kDeep); });
  deep("minus", "E0204 3:99756", [] { return nested("-", "", kDeep); });
  deep("not", "E0204 3:398988", [] { return nested("not ", "", kDeep); });
  deep("powers", "E0204 3:199501", [] { return nested("x^", "", kDeep); });
  deep("sums", "E0204 3:523", [] { return output("x" + repeated("+x", kDeep)); });
  deep("indices", "E0204 3:1288", [] { return output("x" + repeated("[n=0]", kDeep)); });
  deep("comparisons", "E0209 3:15", [] { return output("x" + repeated("<x", kDeep)); });
  deep("index_in_index", "E0204 3:1037", [] { return output(repeated("x[n=", kDeep) + "0" + repeated("]", kDeep)); });
  deep("type", "E0201 1:11", [] { return "input x: " + repeated("[", kDeep); });
  deep("loops", "E0204 259:12", [] { return kHead + repeated("for i in 1 {\n", kDeep) + repeated("}\n", kDeep); });
  deep("precision_blocks", "E0204 3:3855", [] { return kHead + repeated("precision f32 {", kDeep) + repeated("}", kDeep); });
  deep("fns", "E0205 1:2134", [] { return repeated("fn f(x) {", kDeep); });
  deep("pattern_groups", "E0204 3:282",
       [] { return output("rearrange(x, \"" + repeated("(", kDeep) + "n" + repeated(")", kDeep) + " -> n\")"); });
  deep("dims", "E0204 1:265", [] { return "dim n = " + repeated("(", kDeep) + "1" + repeated(")", kDeep) + "\n"; });
  deep("default", "E0204 1:266", [] { return "fn f(x = " + repeated("(", kDeep); });
  deep("as", "E0218 3:24", [] { return output("exp(x)" + repeated(" as a", kDeep)); });
}

void add_long(std::vector<HostileText>& rows) {
  rows.push_back({"S21_identifier", "E0401 3:12", [] { return output(repeated("a", kLong)); }});
  rows.push_back({"S21_dim_twice", "E0402 1:1048587",
                  [] { return "dim " + repeated("a", kLong) + " = 1, " + repeated("a", kLong) + " = 2\ninput x: [3]\noutput x\n"; }});
  rows.push_back({"S21_string", "E0302 3:26", [] { return output("rearrange(x, \"" + repeated("a", kLong) + "\")"); }});
  rows.push_back({"S21_integer", "E0104 1:9", [] { return "dim n = " + repeated("9", kLong) + "\n"; }});
  rows.push_back({"S21_import", "E0610 1:9", [] { return "import \"" + repeated("a", kLong) + "\"\n" + output("x"); }});
  rows.push_back(
      {"S21_instance", "E0911 4:12", [] { return kHead + "fn f(x) { return x }\noutput y = f(x) as " + repeated("a", kLong) + "\n"; }});
  rows.push_back({"paths_in_loops", "E0911 6:21", [] {
                    const std::string name = repeated("a", 100'000);
                    return kHead + "fn f(x) { param w: [n] ~ zeros; return x * w }\nfn g(x) { return f(x) as " + name +
                           " }\ny = x\nfor i in 1000 { y = g(y) as " + name + " }\noutput y\n";
                  }});
  rows.push_back({"dots", "E0106 1:1", [] { return repeated(".", kLong); }});
  rows.push_back({"commas", "E0201 1:3", [] { return "f(" + repeated(",", kLong - 10); }});
  rows.push_back({"semicolons", "E0003 1:1", [] { return repeated(";", kLong - 10); }});
  rows.push_back({"quotes", "E0101 1:1", [] { return repeated("\"", kLong / 2); }});
  rows.push_back({"tuple", "E0910 3:5", [] { return kHead + "t = (" + repeated("x, ", kDeep) + "x)\noutput y = x\n"; }});
  rows.push_back(
      {"parameters", "E0224 3:1432", [] { return kHead + "fn f(" + numbered("a@, ", kDeep) + "b) { return b }\noutput y = f(x)\n"; }});
  rows.push_back({"unknown_names", "E0401 3:6", [] { return kHead + numbered("y@ = q@\n", kDeep); }});
  rows.push_back({"dims_from_below", "E0401 1:10", [] { return numbered("dim d@ = e@ + 1, e@ = d@\n", 20'000); }});
  rows.push_back({"dims_doubled", "E0803 63:5",
                  [] { return "dim d = 1, z0 = 2*d\n" + chain("dim z{} = z{} + z{}\n") + "input x: [z99]\noutput x\n"; }});
  rows.push_back({"dims_squared", "E0909 7:10", [] { return "dim d0\n" + chain("dim d{} = d{} * d{}\n") + "input x: [d99]\noutput x\n"; }});
  rows.push_back({"product_of_sums", "E0909 2:10", [] {
                    return "dim " + numbered("d@, ", 30) + "e\ndim t = " + numbered("(d@ + 1) * ", 30) + "e\ninput x: [t]\noutput x\n";
                  }});
}

void add_axes(std::vector<HostileText>& rows) {
  rows.push_back({"million_axes", "E0908 1:75", [] { return "input x: [" + repeated("a ", 1'000'000) + "]\n"; }});
  rows.push_back({"million_sized_axes", "E0107 1:3384141", [] { return "input x: [" + numbered("a@=1 ", 1'000'000) + "]\n"; }});
  rows.push_back(
      {"T12_pattern_of_many_axes", "E0314 3:144", [] { return output("rearrange(x, \"" + numbered("a@ ", kDeep) + "-> n\")"); }});
  rows.push_back({"T12_result_of_many_axes", "E0314 3:144",
                  [] { return output("repeat(x, \"n -> n " + numbered("a@ ", 200) + "\"" + numbered(", a@=2", 200) + ")"); }});
  rows.push_back(
      {"S20_pattern_of_a_million_axes", "E0314 3:144", [] { return output("rearrange(x, \"" + numbered("a@ ", 1'000'000) + "-> n\")"); }});
  rows.push_back(
      {"S20_pattern_of_a_million_commas", "E0337 3:278", [] { return output("einsum(x, \"" + repeated(",", 1'000'000) + " -> n\")"); }});
  rows.push_back(
      {"S20_pattern_of_a_million_groups", "E0314 3:90", [] { return output("rearrange(x, \"" + repeated("()", 1'000'000) + "-> n\")"); }});
  rows.push_back({"T12_operands", "E0337 3:300786",
                  [] { return output("einsum(" + repeated("x, ", kDeep) + "\"" + repeated("n, ", kDeep - 1) + "n -> n\")"); }});
}

void add_work(std::vector<HostileText>& rows) {
  rows.push_back({"S33_doubling_calls", "E0904 6:22", [] { return doubling("x + 1", "@(@(x))"); }, 512});
  rows.push_back({"S33_doubling_tuples", "E0910 14:20", [] { return doubling("x, x", "@(x), @(x)"); }, 512});
  rows.push_back({"S33_loops_in_loops", "E0902 4:39",
                  [] { return kHead + "y = x\nfor i in 65536 { for j in 65536 { y = y + 1 } }\noutput y\n"; }, 512});
  rows.push_back(
      {"S33_empty_loops", "E0906 19:10", [] { return kHead + "y = x\n" + repeated("for i in 65536 { }\n", 100) + "output y\n"; }, 512});
  rows.push_back({"S33_gradients_of_gradients", "E0902 15:25",
                  [] {
                    std::string text = kHead + "g0 = mean(x^9)\n";
                    for (int i = 1; i < 40; ++i) text += fmt::format("g{} = mean(grad(g{}, x)^3)\n", i, i - 1);
                    return text + "output y = g39\n";
                  },
                  512});
}

std::string result_of(const std::string& statements) { return kHead + "y = x\n" + statements + "output y\n"; }

std::string masked_attention(const std::string& head, const std::string& position) {
  return "dim seq = 16, head = 4\n" + head + "input q: [seq head]\ninput k: [key=seq head]\ninput v: [key=seq head]\nr = " + position +
         "\n" + repeated("r = r + r\n", 60) +
         "scores = einsum(q, k, \"seq head, key head -> seq key\")\nscores = where(iota(key) <= r + iota(seq), scores, -inf)\n"
         "output y = einsum(softmax(scores, key), v, \"seq key, key head -> seq head\")\n";
}

}  // namespace

std::vector<LongProgram> long_programs() {
  constexpr int kStatements = 100'000, kFewer = 20'000;
  return {
      {"elementwise", [] { return result_of(repeated("y = tanh(y)\ny = y + x\n", kStatements / 2)); }},
      {"doubled", [] { return result_of(repeated("y = y * 2\n", 40'000)); }},
      {"scaled by dims", [] { return "dim m\n" + result_of(repeated("y = y * (m + 1)\n", kFewer)); }},
      {"many outputs", [] { return kHead + numbered("output y@ = x + @\n", kFewer); }},
      {"many sums",
       [] {
         return kHead + numbered("s@ = sum(x * @.5)\n", kFewer / 2) + "y = s0\n" + numbered("y = y + s@\n", kFewer / 2 - 1, 1) +
                "output y\n";
       }},
      {"params and a loss",
       [] {
         return result_of(numbered("param w@: [n] ~ normal(std = 0.1)\ny = tanh(y * w@)\n", kFewer / 2)) +
                "loss = mean(y^2)\nminimize loss using sgd(lr = 0.1)\n";
       }},
      // Each value is read twice by the next: as a formula it has 2^60 terms. A position that is an input makes them values of a kernel.
      {"a mask of doubled positions", [] { return masked_attention("", "iota(seq)"); }},
      {"a mask of doubled positions on a mesh", [] { return masked_attention("mesh context = 2\nshard seq over context\n", "iota(seq)"); }},
      {"a mask of doubled positions behind an input", [] { return masked_attention("input at: i32[]\n", "iota(seq) + at"); }},
      {"contractions",
       [] {
         return kHead + "input z: [b=8 d=n]\nv = z\n" +
                numbered("param w@: [d=n e=n] ~ normal(std = 0.1)\nv: [b=8 d=n] = einsum(v, w@, \"b d, d e -> b e\")\n", 2'000) +
                "loss = mean(v^2)\nminimize loss using adam(lr = 0.1)\n";
       }},
  };
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  text.reserve(piece.size() * static_cast<size_t>(times));
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

std::string nested(std::string_view open, std::string_view close, int depth) {
  return output(repeated(open, depth) + "x" + repeated(close, depth));
}

std::vector<HostileText> hostile_texts() {
  std::vector<HostileText> rows;
  add_encodings(rows);
  add_nesting(rows);
  add_long(rows);
  add_axes(rows);
  add_work(rows);
  return rows;
}

std::vector<Limit> limits() {
  return {
      {"nesting", 256, "E0204 3:268", [](int n) { return nested("(", ")", n); }},
      {"bytes of a file", static_cast<int>(kMaxSourceBytes), "E0002 1:1",
       [](int n) {
         const std::string text = output("x") + "#";
         return text + std::string(static_cast<size_t>(n) - text.size(), 'a');
       }},
      {"tokens of a file", static_cast<int>(kMaxTokens), "E0107 262143:6", program_of_tokens},
      {"rank", 32, "E0908 1:193", [](int n) { return "input x: [" + numbered("a@=1 ", n) + "]\noutput x\n"; }},
      {"trip count", static_cast<int>(kMaxTripCount), "E0905 4:10",
       [](int n) { return kHead + fmt::format("y = x\nfor i in {} {{ z = 1 }}\noutput y\n", n); }},
      {"iterations", static_cast<int>(kMaxIterations), "E0906 5:10",
       [](int n) {
         return kHead + fmt::format("y = x\nfor i in 31 {{ for j in 31250 {{ z = 1 }} }}\nfor i in {} {{ z = 1 }}\noutput y\n",
                                    n - 31 * 31250 - 31);
       }},
      {"operands of an einsum", 256, "E0337 3:1557",
       [](int n) { return output("einsum(" + repeated("x, ", n) + "\"" + repeated("n, ", n - 1) + "n -> n\")"); }},
      {"bytes of a path", static_cast<int>(kMaxPathBytes), "E0911 4:12",
       [](int n) { return kHead + "fn f(x) { return x }\noutput y = f(x) as " + repeated("a", n) + "\n"; }},
      {"depth of calls", kMaxCallDepth, "E0903 4:19",
       [](int n) {
         std::string text = kHead + "fn q0(x) { return x }\n";
         for (int i = 1; i < n; ++i) text += fmt::format("fn q{}(x) {{ return q{}(x) }}\n", i, i - 1);
         return text + fmt::format("output y = q{}(x)\n", n - 1);
       }},
      {"items of a tuple", static_cast<int>(kMaxTupleItems), "E0910 3:5",
       [](int n) { return kHead + "t = (" + repeated("x, ", n - 1) + "x)\noutput y = x\n"; }},
  };
}

}  // namespace einc::test
