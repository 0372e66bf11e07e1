// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/tile_attention.h"

#include <algorithm>

#include "compiler/lower/flatten.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

class AttentionTiler {
 public:
  AttentionTiler(const Kernel& kernel, const Processor& processor)
      : processor_(processor), t_(TiledAttention::around(kernel, lanes_of(*kernel.attention, processor))) {}

  TiledAttention run() {
    for (size_t i = 0; i < t_.products.size(); ++i)
      if (step(i).part != AttentionPart::fold) place(step(i), t_.products[i]);
    return std::move(t_);
  }

 private:
  const AttentionStep& step(size_t i) const { return t_.attention().steps[i]; }

  static int lanes_of(const Attention& a, const Processor& processor) {
    return static_cast<int>(std::min<int64_t>(processor.lanes(4), a.block_rows == 1 ? a.block_keys : a.block_rows));
  }

  // An operand that the products can read where it lies. One row reads each element once, and may as well convert it.
  bool is_plain(ValueId id) const {
    const Scalar& v = t_.kernel.values[id];
    const bool converts = v.dtype == DType::bf16 && t_.has_one_row();
    return v.kind == ScalarKind::load && (v.dtype == DType::f32 || converts) && v.guards.empty() && v.index.dynamic.empty() &&
           t_.kernel.buffers[v.slot].dtype == v.dtype;
  }

  int64_t take(int64_t elements) {
    const int64_t at = t_.elements;
    t_.elements += round_up(elements, t_.lanes);
    return at;
  }

  // Elements of bf16 that lie next to each other along the product's inner axis.
  bool is_plain_bf16(ValueId id, AxisId inner) const {
    const Scalar& v = t_.kernel.values[id];
    return v.kind == ScalarKind::load && v.dtype == DType::bf16 && t_.kernel.buffers[v.slot].dtype == v.dtype && v.guards.empty() &&
           v.index.dynamic.empty() && v.index.affine.coefficient(inner) == 1;
  }

  // Whole tiles of rows, keys and what is summed over, of operands in bf16.
  bool suits_matrix_tiles(const AttentionStep& step, const TiledAttention::Product& p) const {
    constexpr int64_t kTileWidth = 16, kTileDepth = 32;
    const bool scores = step.part == AttentionPart::scores;
    return processor_.matrix_tiles && t_.lanes == kTileWidth && t_.block_rows() % kTileDepth == 0 && t_.rows() % t_.block_rows() == 0 &&
           t_.keys() % kTileDepth == 0 && t_.kernel.extent(p.inner) % (scores ? kTileDepth : kTileWidth) == 0 &&
           is_plain_bf16(step.right, p.inner) &&
           (scores ? is_plain_bf16(step.left, p.inner) : t_.kernel.values[step.left].dtype == DType::bf16);
  }

  void place_on_matrix_tiles(const AttentionStep& step, TiledAttention::Product& p) {
    const int64_t inner = t_.kernel.extent(p.inner);
    p.on_matrix_tiles = true;
    p.pitch = inner;
    p.in_place = step.part == AttentionPart::scores;
    p.left_panel = take((p.in_place ? inner : t_.keys()) * t_.block_rows() / 2);
    if (p.in_place) return;
    const bool gathers = step.part == AttentionPart::gather;
    p.right_panel = take((gathers ? t_.block_rows() : t_.keys()) * inner / 2);
    p.sums = take((gathers ? t_.keys() : t_.block_rows()) * inner);
  }

  void place(const AttentionStep& step, TiledAttention::Product& p) {
    if (suits_matrix_tiles(step, p)) return place_on_matrix_tiles(step, p);
    const int64_t inner = t_.kernel.extent(p.inner);
    const bool wide = processor_.vector_registers >= 32;
    p.pitch = round_up(inner, t_.lanes);
    p.in_place = is_plain(step.right);
    if (step.part == AttentionPart::scores && t_.has_one_row()) {
      p.in_place = p.in_place && t_.kernel.values[step.right].index.affine.coefficient(p.inner) == 1;
      p.left_panel = take(p.pitch);
    } else if (step.part == AttentionPart::scores) {
      p.tile_vectors = std::min(2, t_.row_vectors());
      p.tile_rows = wide || p.tile_vectors == 1 ? 12 : 6;
      p.left_panel = take(inner * t_.block_rows());
    } else {
      p.in_place = p.in_place && t_.kernel.values[step.right].index.affine.coefficient(p.inner) == 1;
      p.tile_vectors = static_cast<int>(std::min<int64_t>(wide ? 4 : 2, p.pitch / t_.lanes));
    }
    const bool many = p.tile_vectors > (wide ? 2 : 1);
    if (step.part == AttentionPart::mix) p.tile_rows = many ? 4 : 8;
    if (step.part == AttentionPart::gather) p.tile_rows = many ? 6 : 12, p.sums = take(t_.keys() * p.pitch);
    if (!p.in_place) p.right_panel = take((step.part == AttentionPart::gather ? t_.block_rows() : t_.keys()) * p.pitch);
  }

  const Processor& processor_;
  TiledAttention t_;
};

}  // namespace

TiledAttention TiledAttention::around(const Kernel& kernel, int lanes) {
  TiledAttention t;
  t.kernel = kernel, t.lanes = lanes;
  std::vector<AttentionStep>& steps = t.kernel.attention->steps;
  t.products.resize(steps.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].part == AttentionPart::fold) continue;
    std::vector<AxisId>& axes = steps[i].part == AttentionPart::scores ? steps[i].over : steps[i].free;
    if (axes.size() != 1) axes = {flatten(t.kernel, std::vector<AxisId>(axes))};
    t.products[i].inner = axes[0];
  }
  t.schedule = schedule_attention(t.kernel);
  for (AxisId a : t.attention().batch) t.batches *= t.kernel.extent(a);
  t.blocks = (t.rows() + t.block_rows() - 1) / t.block_rows();
  t.tile_elements = round_up(t.keys() * t.block_rows(), t.lanes);
  t.elements = t.tile_elements * t.schedule.tiles;
  return t;
}

bool TiledAttention::gathers() const {
  return std::any_of(attention().steps.begin(), attention().steps.end(),
                     [](const AttentionStep& step) { return step.part == AttentionPart::gather; });
}

bool TiledAttention::has_matrix_tiles() const {
  return std::any_of(products.begin(), products.end(), [](const Product& p) { return p.on_matrix_tiles; });
}

TiledAttention tile_attention(const Kernel& kernel, const Processor& processor) { return AttentionTiler(kernel, processor).run(); }

}  // namespace einc
