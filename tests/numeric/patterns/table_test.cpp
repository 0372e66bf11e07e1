// SPDX-License-Identifier: Apache-2.0
// Every row of cases.md that fits the language is compiled and run by the interpreter: shapes, values (chk) and gradients
// (gchk) are those of einops, numpy and torch, and rows that must fail do so with the right kind of message at the right
// place. Rows that cannot be written in the language are listed with the sentence of the language's contract that says so.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "tests/support/pattern_rows.h"

namespace einc {
namespace {

const char* const kAtLeastOne = "\"A dim is at least 1\": no axis is empty";
const char* const kEinops = "\"einops' rules on which names may appear where\": this is einx' notation, which einops has not";
const char* const kTypes = "\"`y: [a b] = expr` checks the sizes in order\": shapes are asserted by types, not by a pattern function";
const char* const kMix = "\"params are declared\" with their axes (`param w: [d k] ~ init`), no layer makes them from a pattern";

const char* const kArgmax = "\"`op(x, axis, ...)`\" takes argmax and gather indices over one axis each: no axis holds coordinates";

std::string excluded_because(const test::CaseRow& row) {
  static const std::map<std::string, std::string> kRows = {
      {"R33", kAtLeastOne}, {"R80", kAtLeastOne}, {"D17", kAtLeastOne}, {"D53", kAtLeastOne}, {"U03", kAtLeastOne}, {"Q45", kAtLeastOne},
      {"S01", kTypes},      {"S03", kTypes},      {"S05", kTypes},      {"S50", kTypes},      {"S52", kTypes},      {"S54", kTypes},
      {"L51", kMix},        {"L53", kMix},        {"L55", kMix},        {"X25", kArgmax},     {"X27", kArgmax},     {"X52", kEinops},
      {"X54", kEinops},     {"X56", kEinops},     {"X58", kArgmax},
  };
  const auto it = kRows.find(row.fields[0]);
  return it == kRows.end() ? "" : it->second;
}

// Rows whose refusal by einops or acceptance by numpy the language decides otherwise: "shape chk", or "ERROR code".
const std::map<std::string, std::string> kDecided = {
    {"N52", "(5)"},               // "What einops refuses though its meaning is evident ... is accepted"
    {"N54", "ERROR E_UNDERDET"},  // the same, and no size is given
    {"Q43", "ERROR E_SIZE"},      // "A size-1 axis never broadcasts against a larger one of the same name"
};

const std::map<std::string, std::set<Code>> kKinds = {
    {"E_PAREN", {Code::pattern_bracket}},
    {"E_ELLIPSIS", {Code::pattern_ellipsis, Code::pattern_dots}},
    {"E_IDENT", {Code::pattern_name, Code::pattern_integer}},
    {"E_CHAR", {Code::pattern_character}},
    {"E_DUP", {Code::pattern_duplicate}},
    {"E_ONESIDED", {Code::pattern_one_sided}},
    {"E_RANK", {Code::pattern_rank}},
    {"E_SIZE", {Code::pattern_size, Code::pattern_literal_size, Code::pattern_group, Code::pattern_given_size, Code::pattern_pieces}},
    {"E_DIV", {Code::pattern_division}},
    {"E_UNDERDET", {Code::pattern_undetermined, Code::pattern_pieces}},
    {"E_UNUSED", {Code::pattern_unused_size}},
    {"E_NEEDSIZE", {Code::pattern_new_axis}},
    {"E_UNSUPPORTED", {Code::pattern_integer, Code::pattern_one_sided}},
    {"E_ARROW", {Code::pattern_arrow, Code::pattern_terms}},
    {"E_ARITY", {Code::pattern_operand_count}},
    {"E_REDUCTION", {Code::unknown_reduction}},
    {"E_UNKNOWN_OUT", {Code::pattern_one_sided}},
    {"E_NOSTAR", {Code::pattern_star}},
};

// Operand t of a row holds ((7k + 3t + 1) mod 11) - 5 at position k.
Tensor operand(const std::vector<int64_t>& shape, int64_t t) {
  Tensor x = Tensor::zeros(DType::f64, shape);
  for (size_t k = 0; k < x.reals.size(); ++k) x.reals[k] = static_cast<double>((7 * static_cast<int64_t>(k) + 3 * t + 1) % 11 - 5);
  return x;
}

double weight(size_t k) { return static_cast<double>(k % 97 + 1); }

Tensor weights(int64_t count) {
  Tensor x = Tensor::zeros(DType::f64, {count});
  for (size_t k = 0; k < x.reals.size(); ++k) x.reals[k] = weight(k);
  return x;
}

double check_sum(const Tensor& y) {
  double sum = 0;
  for (int64_t k = 0; k < y.count(); ++k) sum += weight(static_cast<size_t>(k)) * y.real_at(k);
  return sum;
}

// The table holds integers exactly and other numbers to six decimals.
bool agrees(double found, double expected) { return std::abs(found - expected) <= 6e-7 + 1e-12 * std::abs(expected); }

// "chk=58 gchk=-10310 ; 275. remark" -> the numbers after the key
std::vector<double> numbers_after(const std::string& note, const std::string& key) {
  size_t at = note.starts_with(key) ? 0 : note.find(" " + key);
  std::vector<double> numbers;
  if (at == std::string::npos) return numbers;
  at = note.find('=', at) + 1;
  for (;;) {
    size_t used = 0;
    numbers.push_back(std::stod(note.substr(at), &used));
    at += used;
    if (note.compare(at, 3, " ; ") != 0) return numbers;
    at += 3;
  }
}

struct Compiled {
  SourceMap sources;
  Diagnostics diagnostics;
  std::optional<Graph> graph;
};

void compile(const std::string& text, Compiled& out) {
  const auto file = out.sources.add("row.ein", text, out.diagnostics);
  REQUIRE(file);
  out.graph = elaborate(out.sources, *file, {}, out.diagnostics);
}

std::string messages(const Compiled& compiled) {
  std::string text;
  for (const Diagnostic& d : compiled.diagnostics.list()) text += fmt::format("{}: {}\n", info(d.code).code, d.message);
  return text;
}

void run_row(const test::CaseRow& row, const test::RowProgram& program, const std::string& expected) {
  Compiled compiled;
  compile(program.text, compiled);
  INFO(messages(compiled));
  REQUIRE(compiled.graph);
  TensorMap inputs;
  for (size_t t = 0; t < program.shapes.size(); ++t)
    inputs[Name(fmt::format("x{}", t))] = operand(program.shapes[t], static_cast<int64_t>(t));
  for (size_t t = 0; t < program.likes.size(); ++t) inputs[Name(fmt::format("like{}", t))] = operand(program.likes[t], 0);
  const auto shapes = test::parse_shapes(expected);
  for (size_t i = 0; i < shapes.size(); ++i) {
    int64_t count = 1;
    for (const int64_t size : shapes[i]) count *= size;
    inputs[Name(fmt::format("weight{}", i))] = weights(count);
  }
  const InterpretResult result = interpret(*compiled.graph, {}, inputs, {}, {});
  std::map<std::string, Tensor> outputs;
  for (const auto& [name, tensor] : result.outputs) outputs[name.str()] = tensor;
  const std::string& note = row.fields.size() > 6 ? row.fields[6] : row.fields[0];
  for (size_t i = 0; i < program.results; ++i) CHECK(outputs.at(fmt::format("y{}", i)).shape == shapes[i]);
  const std::vector<double> values = numbers_after(note, "chk="), gradients = numbers_after(note, "gchk=");
  for (size_t i = 0; i < values.size(); ++i) CHECK(agrees(check_sum(outputs.at(fmt::format("y{}", i))), values[i]));
  for (size_t t = 0; t < gradients.size(); ++t) CHECK(agrees(check_sum(outputs.at(fmt::format("g{}", t))), gradients[t]));
}

// The message is of the right kind, and stands inside the pattern, at the reduction, or at a size beside it.
void expect_error(const test::RowProgram& program, const std::string& kind) {
  Compiled compiled;
  compile(program.text, compiled);
  CHECK_FALSE(compiled.graph);
  INFO(messages(compiled));
  REQUIRE(compiled.diagnostics.error_count() > 0);
  const Diagnostic& first = compiled.diagnostics.list().front();
  CHECK(kKinds.at(kind).contains(first.code));
  const size_t statement = program.text.find("y0");
  CHECK(first.span.begin >= statement);
  CHECK(first.span.end > first.span.begin);
}

// "cost 15000": the plan's FLOPs are no more, and are what the interpreter counts in its inner loops.
void run_contraction(const test::RowProgram& program, double expected) {
  Compiled compiled;
  compile(program.text, compiled);
  INFO(messages(compiled));
  REQUIRE(compiled.graph);
  REQUIRE(compiled.graph->plans.size() == 1);
  const double planned = *compiled.graph->plans[0].flops.to_double({});
  CHECK(planned <= expected);
  if (planned > 3e6) return;
  TensorMap inputs;
  for (size_t t = 0; t < program.shapes.size(); ++t)
    inputs[Name(fmt::format("x{}", t))] = operand(program.shapes[t], static_cast<int64_t>(t));
  const InterpretResult result = interpret(*compiled.graph, {}, inputs, {}, {});
  CHECK(static_cast<double>(count_phase(*compiled.graph, result, Phase::forward).total()) == planned);
}

struct Tally {
  int executed = 0, excluded = 0;
};

Tally run_table(const std::string& file) {
  Tally tally;
  for (const test::CaseRow& row : test::read_case_table(fmt::format("{}/tests/numeric/patterns/{}", EINC_SOURCE_DIR, file))) {
    if (!excluded_because(row).empty()) {
      ++tally.excluded;
      continue;
    }
    test::CaseRow decided = row;
    if (const auto it = kDecided.find(row.fields[0]); it != kDecided.end()) decided.fields[5] = it->second;
    const std::string& expected = decided.fields[5];
    const test::RowProgram program = test::program_of(decided);
    CAPTURE(row.fields[0]);
    CAPTURE(row.fields[2]);
    CAPTURE(program.text);
    REQUIRE_FALSE(program.text.empty());
    ++tally.executed;
    if (expected.starts_with("ERROR"))
      expect_error(program, expected.substr(6));
    else if (expected.starts_with("cost"))
      run_contraction(program, std::stod(expected.substr(5)));
    else
      run_row(row, program, expected);
  }
  return tally;
}

TEST_CASE("every row of the table of patterns that fits the language") {
  const Tally tally = run_table("cases.md");
  MESSAGE("pattern cases: ", tally.executed, " executed + ", tally.excluded, " excluded = ", tally.executed + tally.excluded,
          " in the table");
  CHECK(tally.executed == 142);
}

TEST_CASE("generated patterns agree with einops and torch") {
  const Tally tally = run_table("generated.md");
  CHECK(tally.executed == 283);
  CHECK(tally.excluded == 0);
}

}  // namespace
}  // namespace einc
