// SPDX-License-Identifier: Apache-2.0
// Line by line; what a line belongs to (a stage, a step of attention) is what the last heading was.
#include "compiler/lower/kernel_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "compiler/lower/kernel_names.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr int64_t kMostAxes = 64, kMostReductions = 64, kMostBuffers = UINT16_MAX, kMostValues = 1 << 20;

class KernelReader {
 public:
  std::variant<Kernel, KernelReadError> read(std::string_view text) {
    LinesRead read = read_lines(text, [&](Cursor& c) { line(c); });
    if (read.error) return std::move(*read.error);
    if (std::string problem = verify(kernel_); !problem.empty()) return KernelReadError{read.lines, std::move(problem)};
    return std::move(kernel_);
  }

 private:
  void line(Cursor& c) {
    if (c.accept_word("axes")) return axes(c);
    if (c.accept_word("outer")) return void(kernel_.outer = axis_list(c));
    if (c.accept_word("sequence")) return void(kernel_.sequence = axis(c));
    if (c.accept_word("part")) return void(kernel_.part = axis(c));
    if (c.accept_word("stage")) return stage(c, false);
    if (c.accept_word("ordered")) return c.expect("stage"), stage(c, true);
    if (c.accept_word("collective")) return void(kernel_.collective = true);
    if (c.accept_word("attention")) return attention(c);
    if (c.accept_word("contraction")) return contraction(c);
    if (c.accept_word("padded")) return padded(c);
    if (c.accept_word("keys")) return key_bound(c);
    if (c.accept_word("softmax")) return softmax(c);
    if (c.accept("v")) return value(c);
    if (c.accept("r")) return reduction(c);
    if (c.accept("b")) return buffer_or_store(c);
    step(c);
  }

  // ---- parts of lines

  AxisId axis(Cursor& c) {
    c.expect("a");
    return axis_number(c);
  }
  AxisId axis_number(Cursor& c) { return static_cast<AxisId>(c.integer(0, static_cast<int64_t>(kernel_.axes.size()) - 1)); }
  std::vector<AxisId> axes_after(Cursor& c, std::string_view word) {
    c.expect(word);
    return axis_list(c);
  }
  AxisId axis_after(Cursor& c, std::string_view word) {
    c.expect(word);
    return axis(c);
  }
  std::vector<AxisId> axis_list(Cursor& c) {
    std::vector<AxisId> axes;
    while (c.accept("a")) axes.push_back(axis_number(c));
    return axes;
  }
  ValueId value_number(Cursor& c) {
    c.expect("v");
    return static_cast<ValueId>(c.integer(0, static_cast<int64_t>(kernel_.values.size()) - 1));
  }
  uint16_t number(Cursor& c, int64_t end) { return static_cast<uint16_t>(c.integer(0, end - 1)); }
  DType dtype(Cursor& c) { return c.word_of(parse_dtype, "dtype"); }

  // 4*a0 + a1 + 2*v3 + 5
  Subscript subscript(Cursor& c) {
    Subscript index;
    do {
      const bool named = c.accept("a"), read = !named && c.accept("v");
      int64_t factor = 1;
      if (!named && !read) {
        factor = c.integer();
        if (!c.accept("*")) {
          index.affine.constant = factor;
          continue;
        }
      }
      if (named || (!read && c.accept("a"))) {
        index.affine = index.affine + Affine::of_axis(axis_number(c), factor);
      } else {
        if (!read) c.expect("v");
        index.dynamic.push_back({static_cast<ValueId>(c.integer(0, kMostValues)), factor});
      }
    } while (c.accept("+"));
    return index;
  }

  // ---- headings

  void axes(Cursor& c) {
    while (!c.at_end()) {
      c.expect(fmt::format("a{}=", kernel_.axes.size()));
      kernel_.axes.push_back({c.integer(1, INT64_MAX), Name()});
      if (static_cast<int64_t>(kernel_.axes.size()) > kMostAxes) c.fail("more than 64 axes");
    }
  }

  void stage(Cursor& c, bool ordered) {
    kernel_.stages.push_back({axis_list(c), {}, {}, ordered});
    stores_ = [this]() -> std::vector<Store>& { return kernel_.stages.back().stores; };
  }

  void contraction(Cursor& c) {
    Contraction made;
    c.expect("r");
    made.reduction = number(c, static_cast<int64_t>(kernel_.reductions.size()));
    c.expect("=");
    made.left = value_number(c);
    c.expect("*");
    made.right = value_number(c);
    made.batch = axes_after(c, "batch");
    made.rows = axes_after(c, "rows");
    made.columns = axes_after(c, "columns");
    made.depth = axes_after(c, "depth");
    kernel_.contraction = std::move(made);
  }

  void padded(Cursor& c) {
    if (!kernel_.contraction) return c.fail("padding outside a contraction");
    PaddedAxis made;
    const auto after = [&](std::string_view words, int64_t& number, int64_t least) {
      c.expect(words);
      number = c.integer(least, INT32_MAX);
    };
    after("beyond", made.size, 1);
    after(":", made.step, 1);
    after("*(row div", made.row_apart, 1);
    after("mod", made.places, 1);
    after(") +", made.dilation, 1);
    after("*(depth div", made.depth_apart, 1);
    after("mod", made.elements, 1);
    after(") +", made.first, INT32_MIN);
    kernel_.contraction->padded.push_back(made);
  }

  // ---- attention

  void attention(Cursor& c) {
    Attention made;
    made.batch = axes_after(c, "batch");
    made.turns = axes_after(c, "turns");
    made.row = axis_after(c, "row");
    made.key = axis_after(c, "key");
    c.expect("in blocks of");
    made.block_rows = c.integer(1, INT64_MAX);
    c.expect("rows and");
    made.block_keys = c.integer(1, INT64_MAX);
    c.expect("keys");
    kernel_.attention = std::move(made);
  }

  void key_bound(Cursor& c) {
    if (!kernel_.attention) return c.fail("a bound of keys outside attention");
    axis(c);
    KeyBound bound;
    bound.side = c.accept(">=") ? BoundSide::least : BoundSide::most;
    if (bound.side == BoundSide::most) c.expect("<=");
    const Subscript limit = subscript(c);
    bound.factor = limit.affine.coefficient(kernel_.attention->row);
    bound.limit = limit.affine.constant;
    if (!limit.dynamic.empty()) bound.base = limit.dynamic[0].value;
    kernel_.attention->bounds.push_back(bound);
  }

  void softmax(Cursor& c) {
    if (!kernel_.attention) return c.fail("softmax outside attention");
    SoftmaxAttention made;
    c.expect("scale");
    made.scale = c.hexadecimal();
    made.causal = c.accept_word("causal");
    const auto buffer_after = [&](std::string_view word) {
      return c.accept_word(word) ? (c.expect("b"), std::optional(number(c, kMostBuffers))) : std::nullopt;
    };
    made.log_sums = buffer_after("log_sums");
    made.deltas = buffer_after("deltas");
    kernel_.attention->softmax = made;
  }

  void step(Cursor& c) {
    const auto part = [](std::string_view word) { return named(word, AttentionPart::gather); };
    AttentionStep made;
    made.part = c.word_of(part, "line of a kernel");
    if (c.failed()) return;
    if (!kernel_.attention) return c.fail("a step of attention outside it");
    made.over = axes_after(c, "over");
    if (c.accept_word("for")) made.free = axis_list(c);
    if (c.accept_word("of"))
      made.pair = c.word_of([](std::string_view word) { return named(word, PairValue::score_gradient); }, "value per row and key");
    kernel_.attention->steps.push_back(std::move(made));
    stores_ = [this]() -> std::vector<Store>& { return kernel_.attention->steps.back().stores; };
  }

  // ---- what they hold

  void reduction(Cursor& c) {
    const uint16_t r = number(c, kMostReductions);
    if (r >= kernel_.reductions.size()) kernel_.reductions.resize(r + size_t{1});
    c.expect(":");
    Accumulation& made = kernel_.reductions[r];
    made.dtype = dtype(c);
    c.expect("=");
    made.fold = c.word_of([](std::string_view word) { return named(word, Fold::arg_min); }, "fold");
    made.value = value_number(c);
    if (c.accept_word("at")) made.position = value_number(c);
    if (kernel_.attention) {
      if (kernel_.attention->steps.empty()) return c.fail("a reduction before the first step");
      AttentionStep& step = kernel_.attention->steps.back();
      step.reduction = r;
      if (!c.accept("=")) return;
      step.left = value_number(c);
      c.expect("*");
      step.right = value_number(c);
    } else if (kernel_.stages.empty()) {
      c.fail("a reduction before the first stage");
    } else {
      kernel_.stages.back().reductions.push_back(r);
    }
  }

  void buffer_or_store(Cursor& c) {
    const uint16_t b = number(c, kMostBuffers);
    if (c.accept("[")) return store(c, b);
    c.expect(":");
    if (b != kernel_.buffers.size()) return c.fail(fmt::format("expected b{}", kernel_.buffers.size()));
    BufferUse made;
    made.access = c.word_of([](std::string_view word) { return named(word, BufferAccess::scratch); }, "access");
    made.dtype = dtype(c);
    c.expect("[");
    made.count = c.integer(0, INT64_MAX);
    c.expect("]");
    kernel_.buffers.push_back(made);
  }

  void store(Cursor& c, uint16_t buffer) {
    Store made;
    made.buffer = buffer;
    made.index = subscript(c);
    c.expect("]");
    made.mode = c.accept("+=") ? StoreMode::add : c.accept("max=") ? StoreMode::max : c.accept("min=") ? StoreMode::min : StoreMode::set;
    if (made.mode == StoreMode::set) c.expect("=");
    if (c.accept("sum of")) made.mode = StoreMode::sum;
    made.value = value_number(c);
    if (!stores_) return c.fail("a store outside stages");
    stores_().push_back(std::move(made));
  }

  void value(Cursor& c) {
    if (c.integer() != static_cast<int64_t>(kernel_.values.size())) return c.fail(fmt::format("expected v{}", kernel_.values.size()));
    if (static_cast<int64_t>(kernel_.values.size()) == kMostValues) return c.fail("too many values");
    c.expect(":");
    Scalar made;
    made.dtype = dtype(c);
    c.expect("=");
    expression(c, made);
    while (c.accept_word("if")) {
      Range& range = made.guards.emplace_back();
      range.lower = c.integer();
      c.expect("<=");
      range.index = subscript(c);
      c.expect("<");
      range.upper = c.integer();
    }
    kernel_.values.push_back(std::move(made));
  }

  void operand(Cursor& c, Scalar& made) { made.operands.push_back(value_number(c)); }

  void expression(Cursor& c, Scalar& made) {
    if (c.accept_word("index")) {
      made.kind = ScalarKind::index;
      made.index = subscript(c);
    } else if (c.accept_word("check")) {
      made.kind = ScalarKind::checked;
      operand(c, made);
      c.expect("<");
      made.integer = c.integer();
      c.expect("site");
      made.slot = number(c, UINT16_MAX);
      kernel_.sites = std::max(kernel_.sites, made.slot + 1);
      c.expect("[");
      made.index = subscript(c);
      c.expect("]");
    } else if (c.accept_word("random")) {
      random(c, made);
    } else if (c.accept_word("in_range")) {
      made.kind = ScalarKind::in_range;
    } else if (c.accept_word("running")) {
      made.kind = ScalarKind::running;
      c.expect("r");
      made.slot = number(c, kMostReductions);
    } else if (c.accept_word("cast")) {
      made.kind = ScalarKind::cast;
      c.expect("(");
      operand(c, made);
      c.expect(")");
    } else {
      number_or_name(c, made);
    }
  }

  void random(Cursor& c, Scalar& made) {
    made.kind = ScalarKind::random;
    made.random = c.word_of(parse_random_kind, "kind of draw");
    c.expect("stream");
    made.slot = number(c, UINT16_MAX);
    kernel_.streams = std::max(kernel_.streams, made.slot + 1);
    c.expect("keep");
    made.real = c.hexadecimal();
    c.expect("[");
    made.index = subscript(c);
    c.expect("]");
  }

  // A constant, b0[...], r0, v0 div 4, or a function: names of which none is a prefix of a number.
  void number_or_name(Cursor& c, Scalar& made) {
    const std::string word = c.peek_word();
    const auto numbered = [&](char letter) {
      return word.size() > 1 && word[0] == letter && std::ranges::all_of(word.substr(1), [](char x) { return x >= '0' && x <= '9'; });
    };
    if (numbered('b')) {
      made.kind = ScalarKind::load;
      c.expect("b");
      made.slot = number(c, kMostBuffers);
      c.expect("[");
      made.index = subscript(c);
      c.expect("]");
    } else if (numbered('r')) {
      made.kind = ScalarKind::reduction;
      c.expect("r");
      made.slot = number(c, kMostReductions);
    } else if (numbered('v')) {
      operand(c, made);
      made.kind = c.accept_word("div") ? ScalarKind::quotient : ScalarKind::remainder;
      if (made.kind == ScalarKind::remainder) c.expect("mod");
      made.integer = c.integer(1, INT64_MAX);
    } else if (parse_map_fn(word)) {
      made.kind = ScalarKind::map;
      made.fn = c.word_of(parse_map_fn, "function");
      c.expect("(");
      do {
        operand(c, made);
      } while (c.accept(","));
      c.expect(")");
    } else if (is_floating(made.dtype)) {
      made.real = c.hexadecimal();
    } else {
      made.integer = c.integer();
    }
  }

  Kernel kernel_;
  std::function<std::vector<Store>&()> stores_;  // of the stage or step begun last
};

}  // namespace

std::variant<Kernel, KernelReadError> read_kernel(std::string_view text) { return KernelReader().read(text); }

}  // namespace einc
