// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the values of a kernel: declarations in the scope where they are first wanted, each value in a register as the CPU
// holds it (small floats as f32, small integers as i32).
#pragma once
#include <fmt/format.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lower/kernel.h"
#include "compiler/lower/scaled_value.h"

namespace einc {

// What a value of a dtype is computed in.
DType register_dtype(DType dtype);
std::string_view register_type(DType dtype);
std::string_view storage_type(DType dtype);

inline bool keeps_position(const Accumulation& r) { return r.fold == Fold::arg_max || r.fold == Fold::arg_min; }

class ValueText {
 protected:
  explicit ValueText(const Kernel& kernel);
  ~ValueText() = default;

  template <class... T>
  void line(fmt::format_string<T...> format, T&&... arguments) {
    text_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(arguments)...);
    text_ += '\n';
  }
  // A block `head {` with a scope of its own, until close.
  void open(const std::string& head);
  void close();

  // The register of a value, declared here when no scope around has it; a literal of a constant.
  std::string value(ValueId id);
  std::string as(ValueId id, DType dtype);
  // Makes the needed values that the axes entered so far determine.
  void hoist(const std::vector<bool>& needed, uint64_t entered);
  std::string index(const Subscript& index);
  std::string flat(const Affine& index);
  // Which tile of a product the block makes: `row0`, `column0` and the batch's axes, of blocks that go through the columns first.
  struct TileCut {
    int64_t tiles = 1;
    int size = 1;  // elements of a tile
  };
  void find_tile(const std::vector<AxisId>& batch, TileCut rows, TileCut columns);
  // Whether all guards hold; "" without guards.
  std::string guard(const Scalar& v);
  void store(const Store& store);
  std::string stored(std::string x, DType from, DType buffer) const;
  std::string loaded(const std::string& element, DType buffer) const;

  DType folded_dtype(const Accumulation& r) const;
  std::string identity(Fold fold, DType dtype) const;
  std::string combine(Fold fold, DType dtype, const std::string& a, const std::string& x) const;
  // Statements that take one more element into the accumulator `sum` (and its position).
  void accumulate(uint16_t reduction, const std::string& sum, const std::string& position);

  // Without its factor.
  std::string unscaled(const ScaledValue& scaled);
  // log2(e) times a power of two.
  static std::string log2_e(double factor);

  std::string_view index_type() const { return wide_ ? "i64" : "i32"; }

  const Kernel& kernel_;
  const std::vector<uint64_t> axes_of_;
  std::string text_;
  size_t depth_ = 0;
  bool wide_ = false;              // indices have 64 bits
  bool short_exp_ = false;         // exponentials in f32 are the processor's own, of a few ulp: what they make is rounded to 16 bits
  std::vector<std::string> axis_;  // per axis: its variable; empty outside its loop
  std::vector<std::string> results_, places_;  // of reductions: the accumulator, its position
  std::vector<std::unordered_map<ValueId, std::string>> scopes_;

 private:
  void find_width();
  std::string expression(ValueId id);
  std::string map(const Scalar& v);
  std::string short_exp(const Scalar& v);
  std::string divided(const Scalar& v);
  std::string checked(ValueId id);
  std::string random(const Scalar& v);
  bool is_index(ValueId id) const;
  double most_of(ValueId id) const;
};

// Numbers as C++ text.
std::string literal_of(double value, DType dtype);
std::string literal(int64_t value);  // with ll where it needs 64 bits, in brackets where negative
std::string convert_text(std::string x, DType from, DType to);
std::string round_text(std::string x, DType dtype);

}  // namespace einc
