// SPDX-License-Identifier: Apache-2.0
// Pattern strings: einops' notation, read into atoms that each know their bytes in the file, so an error can point
// inside the string. What holds by the words alone is checked here (parse_pattern): arrows, brackets, dots, names that
// stand twice or on one side only, stars. What needs sizes or declared dims (ranks, new axes without a size, divisions)
// is the elaborator's. Forms accepted: names, `...` and `...name`, nested groups `(a (b c))`, `1` and `()`, integers, windows
// `(2*h + 3*kh)` (on the right in an einsum alone), operands separated by `,`, and `*` for pack and unpack.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "dsl/diagnostic.h"
#include "dsl/source.h"
#include "runtime/base/name.h"

namespace einc {

enum class PatternOp : uint8_t { einsum, rearrange, reduce, repeat, pack, unpack };

std::optional<PatternOp> pattern_op(std::string_view function_name);
std::string_view to_string(PatternOp op);

enum class AtomKind : uint8_t {
  name,      // `name`
  unit,      // `1` or `()`
  integer,   // an anonymous axis of `value` > 1 elements
  ellipsis,  // `...`, or `...name`
  group,     // `(a b)`: `children`, two or more or one; units inside stay as atoms
  window,    // `(2*h + 3*kh)`: `terms`
  star,      // `*`, in pack and unpack
};

// coefficient * axis. In `stride*h` (two names) `coefficient_name` is the left one: a dim, 1 * its value.
struct WindowTerm {
  int64_t coefficient = 1;
  Name coefficient_name;  // empty unless the factor is written as a name
  Span coefficient_span;  // unknown when no factor is written
  Name axis;
  Span axis_span;
  Span span;
};

struct Atom {
  AtomKind kind = AtomKind::name;
  Span span;
  Name name;                      // name; ellipsis: empty for a plain one
  int64_t value = 1;              // integer
  std::vector<Atom> children;     // group
  std::vector<WindowTerm> terms;  // window: one or more, every axis once
};

// One side of the arrow, or one of the operands between commas.
struct PatternTerm {
  std::vector<Atom> atoms;
  Span span;
  bool has_ellipsis() const;  // at any depth
};

struct Pattern {
  std::vector<PatternTerm> inputs;  // einsum: one or more; the others: exactly one (pack and unpack: the term with the star)
  PatternTerm output;               // empty for pack and unpack
  Span arrow;                       // unknown for pack and unpack
  Span span;                        // the string's contents
};

constexpr int kMaxPatternNesting = 256;
// A tensor's axes. Counted while types and patterns are parsed, so that a million of them are one message and take no memory; in a
// pattern every leaf of a term counts, whether it names an axis or stands for a unit.
constexpr size_t kMaxAxes = 32;
constexpr size_t kMaxEinsumOperands = 256;

// Parses the contents of a string literal, which stand at `contents` in the file. After any error: reports it, gives nothing.
std::optional<Pattern> parse_pattern(PatternOp op, std::string_view text, Span contents, Diagnostics& diagnostics);

}  // namespace einc
