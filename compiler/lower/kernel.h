// SPDX-License-Identifier: Apache-2.0
// The loop IR that every code generator reads. A kernel visits the points of its outer axes in any order (that is what
// threads divide); at each point it runs its stages one after another; a stage loops over axes of its own, where it
// reduces values and stores elements. So an elementwise chain is one stage without axes, a softmax is a maximum, a sum
// and a store over the same row, and a contraction is a reduction of a product over the summed axes followed by its epilogue.
// Values form one DAG; a value belongs to the loops whose axes it depends on, and is computed where a stage needs it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "runtime/base/small_vector.h"

namespace einc {

// A loop variable: 0 .. extent-1. Stages may loop over the same axis again.
struct LoopAxis {
  int64_t extent = 1;
  Name name;  // for readers
};

using AxisId = uint16_t;
using ValueId = uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

// constant + sum of coefficient * axis; terms by ascending axis, no zero coefficients.
struct Affine {
  struct Term {
    AxisId axis;
    int64_t coefficient;
    friend auto operator<=>(const Term&, const Term&) = default;
  };
  int64_t constant = 0;
  SmallVector<Term, 6> terms;

  static Affine of_axis(AxisId axis, int64_t coefficient = 1);
  int64_t coefficient(AxisId axis) const;
  bool is_constant() const { return terms.empty(); }
  friend bool operator==(const Affine&, const Affine&) = default;
};
Affine operator+(const Affine& a, const Affine& b);
Affine operator*(const Affine& a, int64_t factor);

// An index known partly at compile time: the affine part plus values read or computed at run time (each times a factor).
struct Subscript {
  struct Dynamic {
    ValueId value;
    int64_t coefficient;
    friend auto operator<=>(const Dynamic&, const Dynamic&) = default;
  };
  using DynamicTerms = SmallVector<Dynamic, 1>;
  Affine affine;
  DynamicTerms dynamic;

  Subscript() = default;
  Subscript(Affine a) : affine(std::move(a)) {}  // NOLINT: an affine index is an index
  static Subscript of_value(ValueId value) {
    Subscript index;
    index.dynamic.push_back({value, 1});
    return index;
  }
  friend bool operator==(const Subscript&, const Subscript&) = default;
};
Subscript operator+(const Subscript& a, const Subscript& b);
Subscript operator*(const Subscript& a, int64_t factor);

// Holds where lower <= index < upper.
struct Range {
  Subscript index;
  int64_t lower = 0, upper = 0;
  friend bool operator==(const Range&, const Range&) = default;
};

enum class ScalarKind : uint8_t {
  constant,   // real or integer
  index,      // the value of an index
  quotient,   // floor(operand 0 / divisor), operands at least 0
  remainder,  // operand 0 - divisor * quotient
  load,       // element `index` of buffer `slot`; not read (and 0) where some guard does not hold
  checked,    // operand 0, which must lie in 0 .. upper-1; else the run fails naming site `slot` and place `index` (and 0 is used).
              // With upper 0 it is a divisor, which must not be 0 (and 1 is used)
  map,        // fn of the operands
  cast,       // operand 0 as dtype
  random,     // draw number `index` of stream `slot`
  in_range,   // whether all guards hold
  reduction,  // the result of reduction `slot`
  running,    // reduction `slot` so far, this element included
};

struct Scalar {
  ScalarKind kind = ScalarKind::constant;
  DType dtype = DType::f32;  // rounded to it, held in a register of at least f32 or i32
  MapFn fn = MapFn::add;
  RandomKind random = RandomKind::uniform;
  uint16_t slot = 0;
  SmallVector<ValueId, 3> operands;
  Subscript index;
  SmallVector<Range, 1> guards;
  double real = 0;      // constant of a floating dtype; keep probability
  int64_t integer = 0;  // constant of another dtype; divisor; upper
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

enum class Fold : uint8_t { sum, max, min, prod, any, all, logsumexp, arg_max, arg_min };

// Over the axes of its stage. arg_max and arg_min keep the `position` (an i64 value) of the extreme, the lowest of equals.
struct Accumulation {
  Fold fold = Fold::sum;
  ValueId value = kNoValue, position = kNoValue;
  DType dtype = DType::f32;
  friend bool operator==(const Accumulation&, const Accumulation&) = default;
};

// `sum`: what all outer points of a part add up to, stored when the last of them is done; its index depends on the part, not on the points.
// `add`, `max`, `min`: folded into the element that is there.
enum class StoreMode : uint8_t { set, add, sum, max, min };
inline bool folds_in_place(StoreMode mode) { return mode == StoreMode::add || mode == StoreMode::max || mode == StoreMode::min; }
inline Fold fold_of(StoreMode mode) { return mode == StoreMode::max ? Fold::max : mode == StoreMode::min ? Fold::min : Fold::sum; }

struct Store {
  uint16_t buffer = 0;
  Subscript index;
  ValueId value = kNoValue;
  StoreMode mode = StoreMode::set;
  friend bool operator==(const Store&, const Store&) = default;
};

// Loops over `axes`, outermost first; `reductions` index into the kernel's. `ordered`: elements must be visited one by one in
// row-major order (running sums, scatters that may meet an element twice). At each element all loads come before all stores, in every
// code generator: the buffer plan lets a result alias an operand on the strength of it, and `verify_overlap` proves that it may.
struct Stage {
  std::vector<AxisId> axes;
  std::vector<uint16_t> reductions;
  std::vector<Store> stores;
  bool ordered = false;
  friend bool operator==(const Stage&, const Stage&) = default;
};

enum class BufferAccess : uint8_t { read, write, read_write, scratch };

// A buffer a kernel touches. Scratch holds one outer point's row and belongs to a thread; it comes after all others.
struct BufferUse {
  DType dtype = DType::f32;
  BufferAccess access = BufferAccess::read;
  int64_t count = 0;  // elements
  friend bool operator==(const BufferUse&, const BufferUse&) = default;
};

// An axis of an image with zeros around it that is summed in windows: place p of the windows and element k of one read coordinate
// step * p + dilation * k + first of the image, which is beyond it, in the zeros, where that is not in 0 .. size-1. Rows and depths are
// numbers within the contraction's lists of axes: p = row / row_apart % places, k = depth / depth_apart % elements.
struct PaddedAxis {
  int64_t row_apart = 1, places = 1;
  int64_t depth_apart = 1, elements = 1;
  int64_t step = 1, dilation = 1, first = 0, size = 1;
  friend auto operator<=>(const PaddedAxis&, const PaddedAxis&) = default;
};

// A product summed over `depth`: `left` depends on batch, row and depth axes, `right` on batch, column and depth axes.
struct Contraction {
  uint16_t reduction = 0;
  ValueId left = kNoValue, right = kNoValue;
  std::vector<AxisId> batch, rows, columns, depth;  // outermost first
  std::vector<PaddedAxis> padded{};                 // of `left`: products with the zeros beyond are left out
};

// What an attention kernel makes, in this order: products of rows with keys (kept for a block of rows in the thread's own memory),
// folds of what is made of them over the keys, products of a value per row and key with a value per key (mix), and with a value
// per row, which sum over all rows (gather).
enum class AttentionPart : uint8_t { scores, fold, mix, gather };

// What softmax's attention has of each row and key: the scores S = Q K^T, its weights P, and the gradients of both. A product makes it
// (scores) or reads it (mix, gather).
enum class PairValue : uint8_t { other, scores, weights, weight_gradient, score_gradient };

// One reduction of an attention kernel. Of a product, `left` depends on the row (scores) or on row and key (mix, gather).
struct AttentionStep {
  AttentionPart part = AttentionPart::scores;
  PairValue pair = PairValue::other;
  uint16_t reduction = 0;
  ValueId left = kNoValue, right = kNoValue;
  std::vector<AxisId> over;   // its loops
  std::vector<AxisId> free;   // axes of its result beside batch, turns, row and key
  std::vector<Store> stores;  // of values per row (fold), row and free (mix), key and free (gather)
  friend bool operator==(const AttentionStep&, const AttentionStep&) = default;
};

// Pairs of row r and a key that count: key >= factor*r + limit + base, or key <= factor*r + limit + base. What lies beyond adds nothing to
// any fold, mix or gather. `base`, if any, is an integer that the points and the device's coordinate decide (point_values.h).
enum class BoundSide : uint8_t { least, most };
struct KeyBound {
  BoundSide side = BoundSide::most;
  int64_t factor = 0, limit = 0;
  ValueId base = kNoValue;
  friend bool operator==(const KeyBound&, const KeyBound&) = default;
};

// What the kernel computes where that is softmax's attention and nothing else: P = softmax(scale S), of keys up to the row's own number
// where `causal`. Buffers, if any: of L = max + log(sum), written by a forward, and of D = sum of dO O, which a backward reads.
struct SoftmaxAttention {
  double scale = 1;
  bool causal = false;
  std::optional<uint16_t> log_sums, deltas;
  friend bool operator==(const SoftmaxAttention&, const SoftmaxAttention&) = default;
};

// Rows against keys without a tensor of all pairs: a block of rows at a time, at each point of the batch axes.
struct Attention {
  std::vector<AxisId> batch;  // points that threads divide
  std::vector<AxisId> turns;  // what a gather sums over beside rows: one after the other at a batch point
  AxisId row = 0, key = 0;
  int64_t block_rows = 1, block_keys = 1;  // keys are skipped in whole blocks
  std::vector<AttentionStep> steps;
  std::vector<KeyBound> bounds;
  std::optional<SoftmaxAttention> softmax;
};

struct ScanSchedule;

struct Kernel {
  std::vector<LoopAxis> axes;
  std::vector<AxisId> outer;       // outermost first
  std::optional<AxisId> sequence;  // at each outer point the stages run for each of its values, in order
  std::optional<AxisId> part;      // the outer points are divided among so many parts
  std::vector<Scalar> values;      // operands first
  std::vector<Accumulation> reductions;
  std::vector<Stage> stages;
  std::vector<BufferUse> buffers;
  std::optional<Contraction> contraction;
  std::optional<Attention> attention;        // instead of stages; `outer` is empty
  std::shared_ptr<const ScanSchedule> scan;  // likewise (lower/scan_schedule.h)
  bool collective = false;                   // likewise: devices of a mesh make b1 of their b0 together
  int streams = 0, sites = 0;                // random streams, index checks

  int64_t extent(AxisId axis) const { return axes[axis].extent; }
};

// The axes that each value depends on, as bit sets by axis (a kernel has at most 64); a reduction's own axes are not among them.
std::vector<uint64_t> axes_of_values(const Kernel& kernel);
// The reductions whose results each value needs, as bit sets (a kernel has at most 64).
std::vector<uint64_t> reductions_of_values(const Kernel& kernel);
// The values that a stage's stores and reductions depend on.
std::vector<bool> needed_by(const Kernel& kernel, const Stage& stage);
inline uint64_t bit(AxisId axis) { return uint64_t{1} << axis; }
uint64_t bits(const std::vector<AxisId>& axes);
// How many points the loops over a set of axes have.
int64_t trips(const Kernel& kernel, uint64_t axes);
// Of `where`: whether it must be rounded, since what it chooses from is held wider (inside a chain of small floats) than its own dtype.
bool chooses_wider(const Kernel& kernel, const Scalar& v);
// Puts values before all that the kernel has; what refers to those is moved along.
void insert_first(Kernel& kernel, std::vector<Scalar> values);

// A listing; kernels with equal text compute the same with the same code (names are left out of it).
std::string to_string(const Kernel& kernel);

// What is wrong with a kernel, or nothing: order of operands, axes in scope, slots, reductions ready before use.
std::string verify(const Kernel& kernel);

}  // namespace einc
