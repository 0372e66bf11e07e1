// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/array_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/real_format.h"

namespace einc {
namespace {

// As NumPy's print options: when an array is shortened, and to what.
constexpr int64_t kMostElements = 1000, kEnds = 3;

class ArrayText {
 public:
  explicit ArrayText(const Tensor& tensor)
      : tensor_(tensor), shortened_(tensor.count() > kMostElements), reals_(shown_reals(), tensor.dtype) {
    if (!tensor.is_real()) walk(0, 0, [&](int64_t element) { width_ = std::max(width_, value(element).size()); });
  }

  std::string text() {
    write(0, 0);
    return std::move(text_);
  }

 private:
  size_t rank() const { return tensor_.shape.size(); }
  bool cut(int64_t size) const { return shortened_ && size > 2 * kEnds; }

  std::vector<double> shown_reals() const {
    std::vector<double> shown;
    if (tensor_.is_real()) walk(0, 0, [&](int64_t element) { shown.push_back(tensor_.reals[static_cast<size_t>(element)]); });
    return shown;
  }

  // A row without brackets has no columns to line up.
  std::string value(int64_t element) const {
    const size_t i = static_cast<size_t>(element);
    if (!tensor_.is_real()) return fmt::format("{:>{}}", tensor_.ints[i], rank() > 1 ? width_ : 0);
    if (rank() == 0) return fmt::format("{:.8g}", tensor_.reals[i]);
    return rank() > 1 ? reals_.padded(tensor_.reals[i]) : reals_.text(tensor_.reals[i]);
  }

  // Every element shown below `first` elements of axis `axis`.
  template <class Visit>
  void walk(size_t axis, int64_t first, const Visit& visit) const {
    if (axis == rank()) return visit(first);
    const int64_t size = tensor_.shape[axis];
    for (int64_t i = 0; i < size; ++i) {
      if (cut(size) && i == kEnds) i = size - kEnds;
      walk(axis + 1, first * size + i, visit);
    }
  }

  void write(size_t axis, int64_t first) {
    if (axis == rank()) {
      text_ += value(first);
      return;
    }
    const int64_t size = tensor_.shape[axis];
    const bool row = axis + 1 == rank(), bracketed = rank() > 1;
    const std::string between = row ? " " : "\n" + std::string(rank() - axis - 2, '\n') + std::string(axis + 1, ' ');
    if (bracketed) text_ += '[';
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0) text_ += between;
      if (cut(size) && i == kEnds) {
        text_ += "..." + between;
        i = size - kEnds;
      }
      write(axis + 1, first * size + i);
    }
    if (bracketed) text_ += ']';
  }

  const Tensor& tensor_;
  bool shortened_;
  RealFormat reals_;
  size_t width_ = 0;  // of integers
  std::string text_;
};

}  // namespace

std::string array_text(const Tensor& tensor) { return ArrayText(tensor).text(); }

}  // namespace einc
