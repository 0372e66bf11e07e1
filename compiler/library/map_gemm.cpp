// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/map_gemm.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/lower/library_products.h"

namespace einc {
namespace {

constexpr int64_t kMostBatches = 65535;

struct NoGemm {
  std::string reason;
};

// A dimension of both tensors that have it, or of three: its extent and what a step is in each.
struct Dimension {
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

class Mapper {
 public:
  explicit Mapper(const Kernel& kernel) : kernel_(kernel) {}

  LibraryProduct run() {
    if (!kernel_.contraction) throw NoGemm{"it is no product summed over axes"};
    const Contraction& c = *kernel_.contraction;
    left_ = &plain_load(c.left, "left");
    right_ = &plain_load(c.right, "right");
    find_store();
    check_dtypes();
    Contraction axes = c;
    Dimension batch = dimension(axes.batch, {&left_->index, &right_->index, &store_->index}, "batch");
    if (axes.batch.empty() && !try_dimension(axes.rows, {&left_->index, &store_->index})) take_batch(axes.rows, batch, Side::left);
    if (axes.batch.empty() && batch.extent == 1 && !try_dimension(axes.columns, {&right_->index, &store_->index}))
      take_batch(axes.columns, batch, Side::right);
    const Dimension rows = dimension(axes.rows, {&left_->index, &store_->index}, "rows");
    const Dimension columns = dimension(axes.columns, {&right_->index, &store_->index}, "columns");
    const Dimension depth = dimension(axes.depth, {&left_->index, &right_->index}, "depth");
    if (batch.extent > kMostBatches) throw NoGemm{fmt::format("a batch of {}", batch.extent)};
    LibraryProduct g;
    g.batch = batch.extent, g.rows = rows.extent, g.columns = columns.extent, g.depth = depth.extent;
    g.sums = kernel_.reductions[c.reduction].dtype == DType::f64 ? ProductSums::f64 : ProductSums::f32;
    g.left = matrix(left_->slot, left_->index, rows.extent, rows.strides[0], depth.extent, depth.strides[0], batch.strides[0], "left");
    g.right =
        matrix(right_->slot, right_->index, depth.extent, depth.strides[1], columns.extent, columns.strides[0], batch.strides[1], "right");
    g.result =
        matrix(store_->buffer, store_->index, rows.extent, rows.strides[1], columns.extent, columns.strides[1], batch.strides[2], "result");
    if (g.result.transposed) turn(g);
    g.scale = scale_;
    check_fp8(g);
    return g;
  }

 private:
  enum class Side : uint8_t { left, right };

  const Scalar& plain_load(ValueId id, const char* which) const {
    const Scalar& v = kernel_.values[id];
    if (v.kind != ScalarKind::load) throw NoGemm{fmt::format("its {} operand is computed where it is read", which)};
    if (!v.guards.empty()) throw NoGemm{fmt::format("its {} operand is padded", which)};
    if (!v.index.dynamic.empty()) throw NoGemm{fmt::format("its {} operand is read at computed places", which)};
    return v;
  }

  void find_store() {
    const std::vector<Store>& stores = kernel_.stages.back().stores;
    if (kernel_.stages.size() != 2 || stores.size() != 1 || stores[0].mode != StoreMode::set) throw NoGemm{"more is made of its result"};
    const Scalar& v = kernel_.values[stores[0].value];
    const bool scaled = v.kind == ScalarKind::map && v.fn == MapFn::mul && find_scale(v);
    if ((v.kind != ScalarKind::reduction && !scaled) || v.dtype != kernel_.buffers[stores[0].buffer].dtype)
      throw NoGemm{"more is made of its result"};
    if (!stores[0].index.dynamic.empty()) throw NoGemm{"its result goes to computed places"};
    store_ = &stores[0];
  }

  // The sum times a number in memory.
  bool find_scale(const Scalar& product) {
    for (size_t k : {0, 1}) {
      const Scalar &sum = kernel_.values[product.operands[k]], &number = kernel_.values[product.operands[1 - k]];
      if (sum.kind != ScalarKind::reduction || sum.dtype != DType::f32 || number.kind != ScalarKind::load) continue;
      if (number.dtype == DType::f32 && kernel_.buffers[number.slot].count == 1) scale_ = number.slot;
    }
    return scale_.has_value();
  }

  void check_dtypes() const {
    const DType a = kernel_.buffers[left_->slot].dtype, b = kernel_.buffers[right_->slot].dtype, c = kernel_.buffers[store_->buffer].dtype;
    const bool wide = (a == DType::f32 || a == DType::f64) && c == a && a == b,
               half = (a == DType::bf16 || a == DType::f16) && (c == a || c == DType::f32) && a == b,
               fp8 = is_fp8_product(a, b) && (c == DType::bf16 || c == DType::f16 || c == DType::f32);
    if (left_->dtype != a || right_->dtype != b || !(wide || half || fp8))
      throw NoGemm{fmt::format("{} times {} to {} is none of the library's", to_string(a), to_string(b), to_string(c))};
    if (scale_ && !fp8) throw NoGemm{"more is made of its result"};
  }

  // Of fp8 the library reads both operands along their depth, in rows of whole 16 bytes.
  static void check_fp8(const LibraryProduct& g) {
    if (!is_fp8(g.left.dtype)) return;
    if (g.left.transposed || !g.right.transposed) throw NoGemm{"an fp8 operand does not lie along its depth"};
    for (int64_t n : {g.rows, g.columns, g.depth, g.left.leading, g.right.leading, g.result.leading})
      if (n % kFp8Step != 0) throw NoGemm{"fp8 in sizes that are no multiples of 16"};
    for (const LibraryMatrix* m : {&g.left, &g.right, &g.result})
      if (m->offset % kFp8Step != 0 || m->batch_stride % kFp8Step != 0) throw NoGemm{"fp8 at places that are no multiples of 16"};
  }

  // Axes as one dimension of all these tensors, outermost first; nothing when they are apart in one.
  std::optional<Dimension> try_dimension(std::vector<AxisId> axes, const std::vector<const Subscript*>& tensors) const {
    std::erase_if(axes, [&](AxisId a) { return kernel_.extent(a) == 1; });
    const auto stride = [&](const Subscript* t, AxisId a) { return t->affine.coefficient(a); };
    std::stable_sort(axes.begin(), axes.end(), [&](AxisId a, AxisId b) { return stride(tensors[0], a) > stride(tensors[0], b); });
    for (size_t i = 0; i + 1 < axes.size(); ++i)
      for (const Subscript* t : tensors)
        if (stride(t, axes[i]) != stride(t, axes[i + 1]) * kernel_.extent(axes[i + 1])) return std::nullopt;
    Dimension d;
    for (AxisId a : axes) d.extent *= kernel_.extent(a);
    for (const Subscript* t : tensors) d.strides.push_back(axes.empty() ? 0 : stride(t, axes.back()));
    if (std::any_of(d.strides.begin(), d.strides.end(), [](int64_t s) { return s < 0; })) return std::nullopt;
    return d;
  }

  Dimension dimension(const std::vector<AxisId>& axes, const std::vector<const Subscript*>& tensors, const char* name) const {
    if (const auto d = try_dimension(axes, tensors)) return *d;
    throw NoGemm{fmt::format("the axes of its {} are apart in memory", name)};
  }

  // One of the axes of an operand's own becomes the batch when the others are one dimension then.
  void take_batch(std::vector<AxisId>& axes, Dimension& batch, Side side) const {
    const Subscript& own = side == Side::left ? left_->index : right_->index;
    for (size_t i = 0; i < axes.size(); ++i) {
      std::vector<AxisId> others = axes;
      others.erase(others.begin() + static_cast<ptrdiff_t>(i));
      if (!try_dimension(others, {&own, &store_->index})) continue;
      const int64_t step = own.affine.coefficient(axes[i]);
      batch.extent = kernel_.extent(axes[i]);
      batch.strides = {side == Side::left ? step : 0, side == Side::left ? 0 : step, store_->index.affine.coefficient(axes[i])};
      axes = others;
      return;
    }
  }

  // One of the strides is 1; the other is what a row or column takes.
  LibraryMatrix matrix(uint16_t buffer, const Subscript& index, int64_t rows, int64_t row_step, int64_t columns, int64_t column_step,
                       int64_t batch, const char* which) const {
    LibraryMatrix m;
    m.buffer = buffer;
    m.dtype = kernel_.buffers[buffer].dtype;
    m.offset = index.affine.constant;
    m.batch_stride = batch;
    if (columns == 1) column_step = 1;
    if (column_step == 1 && (rows == 1 || row_step >= columns)) {
      m.leading = rows == 1 ? columns : row_step;
    } else if (rows == 1 || (row_step == 1 && column_step >= rows)) {
      m.leading = column_step;
      m.transposed = true;
    } else {
      throw NoGemm{fmt::format("no neighbours of its {} matrix are neighbours in memory", which)};
    }
    return m;
  }

  // The transposed product, whose result is not.
  static void turn(LibraryProduct& g) {
    std::swap(g.left, g.right);
    std::swap(g.rows, g.columns);
    for (LibraryMatrix* m : {&g.left, &g.right, &g.result}) m->transposed = !m->transposed;
  }

  const Kernel& kernel_;
  const Scalar *left_ = nullptr, *right_ = nullptr;
  const Store* store_ = nullptr;
  std::optional<uint32_t> scale_;
};

}  // namespace

GemmMapping map_gemm(const Kernel& kernel) {
  try {
    return {Mapper(kernel).run(), {}};
  } catch (const NoGemm& none) {
    return {std::nullopt, none.reason};
  }
}

std::string describe(const LibraryProduct& gemm) {
  std::string text;
  if (gemm.batch > 1) text += fmt::format("{} times ", gemm.batch);
  text += fmt::format("{} x {} x {} {}", gemm.rows, gemm.columns, gemm.depth, to_string(gemm.left.dtype));
  if (gemm.right.dtype != gemm.left.dtype) text += fmt::format(" by {}", to_string(gemm.right.dtype));
  if (gemm.result.dtype != gemm.left.dtype) text += fmt::format(" to {}", to_string(gemm.result.dtype));
  if (gemm.left.transposed) text += ", left transposed";
  if (gemm.right.transposed) text += ", right transposed";
  if (gemm.scale) text += ", scaled";
  return text;
}

std::string describe(const LibraryEpilogue& epilogue) {
  std::string text;
  const auto add = [&](const char* part) { text += (text.empty() ? "" : ", ") + std::string(part); };
  if (epilogue.bias) add("plus a bias");
  if (epilogue.addend) add("plus a matrix");
  if (epilogue.activation == LibraryActivation::gelu) add(epilogue.input ? "GELU, its input kept" : "GELU");
  if (epilogue.activation == LibraryActivation::gelu_slope) add("times the slope of GELU");
  if (epilogue.left_sums) add("with the sums of the left operand's rows");
  if (epilogue.right_sums) add("with the sums of the right operand's columns");
  return text;
}

}  // namespace einc
