// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/tile_contraction.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "compiler/lower/flatten.h"
#include "compiler/lower/kernel_target.h"
#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

constexpr int64_t kDeepest = 768;  // of a depth block
constexpr int64_t kSmallestDepth = 4, kSmallestWork = 512;
constexpr int64_t kPartialBytes = 1 << 20;
constexpr int64_t kPage = 4096, kPagesAtOnce = 32;
constexpr int kCrowdedRows = 8;
constexpr int64_t kFewSums = 4, kDepthToTurnFor = 64;
constexpr int kFewTiles = 4;  // of rows: to read the other operand so often costs less than to pack it
// Windows in place, on Zen 5: groups of 14 depths, unrolled, gain as longer ones do (cnn.ein's second kernel gradient: 0.19 to 0.12 ms);
// 128 columns (3 x 3 of 28 x 28) gain 14 %, while 256 (of 14 x 14) fall from 92 % of peak to 83.
constexpr int64_t kShortestGroup = 7;
constexpr int64_t kColumnsToPackFor = 192;
// Elements of windows that are left out along a line take code for its first and last tiles: a bound on code, not measured. Lines of 28
// places and 3 x 3 windows leave 2.4 % out, of 56 places 1.2 %.
constexpr double kLeftOutOfLines = 0.02;
constexpr size_t kKindsOfTiles = 3;       // first of a line, last, and those in between
constexpr int64_t kFilledMeanwhile = 32;  // depth from which on a panel of columns is filled while another is read
constexpr int64_t kRowsToConvertFor = 4;
constexpr int64_t kPanelColumns = 128;  // of panels in tiles: so many are read at a time

// Blocks of about equal size, multiples of `unit`, at most `most` long.
int64_t even_blocks(int64_t extent, int64_t most, int64_t unit) {
  const int64_t count = divide_up(extent, std::max(unit, most / unit * unit));
  return std::min(round_up(divide_up(extent, count), unit), round_up(extent, unit));
}

class ContractionTiler {
 public:
  ContractionTiler(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared)
      : processor_(processor), unshared_(unshared) {
    t_.kernel = kernel;
  }

  std::optional<TiledContraction> run() {
    if (!suits()) return std::nullopt;
    find_left_groups();
    t_.flatten_axes();
    find_left_out();
    if (lie_better_turned()) t_.left_groups.reset(), left_out_.reset(), t_.turn();
    const int64_t m = t_.rows(), n = t_.columns(), k = t_.depths();
    if (k < kSmallestDepth || m * n < t_.lanes || m * n * k < kSmallestWork || n * 2 < t_.lanes) return std::nullopt;
    if (m < kFewSums && unit_axis(right()) == t_.depth && unit_axis(left()) == t_.depth) return std::nullopt;
    if (suits_matrix_tiles()) {
      leave_out(std::nullopt);
      choose_matrix_tiles();
      choose_streamed();
    } else if (suits_bf16_pairs()) {
      leave_out(std::nullopt);
      choose_bf16_pairs();
    } else {
      if (t_.left_groups && !suits_groups()) t_.left_groups.reset();
      // Of an image that is read in place the elements of a line lie side by side.
      if (t_.left_groups && left_out_ && t_.left_groups->depths != left_out_->line_depths()) left_out_.reset();
      choose_tile();
      leave_out(left_out_of(t_.tile_rows));
      choose_sources();
      choose_blocks();
    }
    choose_split();
    return std::move(t_);
  }

 private:
  bool suits() {
    const Kernel& kernel = t_.kernel;
    if (!kernel.contraction) return false;
    t_.dtype = kernel.reductions[0].dtype;
    if (t_.dtype != DType::f32 && t_.dtype != DType::f64) return false;
    t_.lanes = static_cast<int>(processor_.lanes(bytes_of(t_.dtype)));
    return kernel.axes.size() + 3 <= 64 && t_.lanes >= 4;
  }

  ValueId left() const { return t_.kernel.contraction->left; }
  ValueId right() const { return t_.kernel.contraction->right; }

  // Whether the result's transpose fills vectors that the result's rows are too short for. Its elements lie apart then, which short sums
  // are not worth; where both operands lie along the depth, few sums are made along it.
  bool lie_better_turned() const {
    if (t_.columns() >= t_.lanes || t_.rows() < t_.lanes) return false;
    if (2 * t_.columns() >= t_.lanes) return unit_axis(left()) == t_.row && t_.depths() >= kDepthToTurnFor;
    return t_.columns() > kFewSums || unit_axis(left()) != t_.depth || unit_axis(right()) != t_.depth;
  }

  // The operand as a plain load of elements of the sums' dtype, or nothing.
  const Scalar* plain_load(ValueId id) const {
    const Scalar& v = t_.kernel.values[id];
    const bool plain = v.kind == ScalarKind::load && v.dtype == t_.dtype && v.guards.empty() && v.index.dynamic.empty() &&
                       t_.kernel.buffers[v.slot].dtype == t_.dtype;
    return plain ? &v : nullptr;
  }

  // Before loops are flattened: of an operand that lies evenly there is nothing to say.
  void find_left_groups() {
    if (!plain_load(left())) return;
    const std::optional<OperandGroups> groups = find_groups(t_.kernel, left());
    const Contraction& c = *t_.kernel.contraction;
    const auto even = [&](const std::vector<AxisId>& axes, int64_t extent) { return trips(t_.kernel, bits(axes)) == extent; };
    if (groups && !(even(c.rows, groups->rows) && even(c.depth, groups->depths))) t_.left_groups = groups;
  }

  // Padded axes that tiles can leave out: lines of places, whose innermost rows are places of one and whose innermost depths are what an
  // element of a window has.
  void find_left_out() {
    left_out_ = t_.left_out();
    if (!left_out_) return;
    const auto& [lines, places] = *left_out_;
    const bool joined =
        !lines || !places || (lines->row_apart == places->places && lines->depth_apart == places->depth_apart * places->elements);
    const bool whole = !lines || lines->depth_apart * lines->elements == t_.depths();
    const bool few = static_cast<size_t>(left_out_->lines.has_value()) + static_cast<size_t>(left_out_->places.has_value()) ==
                     t_.kernel.contraction->padded.size();
    if (!joined || !whole || !few || left_out_->element_depths() % kSmallestDepth != 0 || left_out_->line_depths() % kSmallestDepth != 0)
      left_out_.reset();
  }

  // What tiles of so many rows leave out.
  std::optional<LeftOutPadding> left_out_of(int64_t tile_rows) const {
    if (!left_out_ || left_out_->line_rows() % tile_rows != 0) return std::nullopt;
    LeftOutPadding left_out = *left_out_;
    if (left_out.places) {
      const double share = LeftOutPadding{std::nullopt, left_out.places}.share();
      if (1 - share < kLeftOutOfLines || left_out.tiles_of_line(tile_rows).size() > kKindsOfTiles) left_out.places.reset();
    }
    return left_out.lines || left_out.places ? std::optional(left_out) : std::nullopt;
  }

  void leave_out(const std::optional<LeftOutPadding>& left_out) {
    std::vector<PaddedAxis>& padded = t_.kernel.contraction->padded;
    padded.clear();
    if (!left_out) return;
    for (const auto* axis : {&left_out->lines, &left_out->places})
      if (*axis) padded.push_back(**axis);
  }

  // Windows are read in place where few columns share the cost of a panel, in which every element of the image lies once for each place
  // of the window that it has.
  bool suits_groups() const {
    const OperandGroups& g = *t_.left_groups;
    const bool unrolls = g.depths <= OperandGroups::kUnrolled || g.depths % kSmallestDepth == 0;
    // What lies once in its panel is packed once: without overlap there is little to save.
    const bool overlap = 2 * t_.rows() * t_.depths() >= 3 * t_.kernel.buffers[t_.kernel.values[left()].slot].count;
    return overlap && unrolls && g.depths >= kShortestGroup && g.depths <= kDeepest && t_.columns() <= kColumnsToPackFor;
  }

  // The axis along which the largest of the operand's loads has neighbouring elements.
  std::optional<AxisId> unit_axis(ValueId id) const {
    std::vector<bool> used(t_.kernel.values.size(), false);
    used[id] = true;
    std::optional<AxisId> best;
    int64_t count = 0;
    for (size_t i = id + 1; i-- > 0;) {
      if (!used[i]) continue;
      const Scalar& v = t_.kernel.values[i];
      for (ValueId x : v.operands) used[x] = true;
      for (const Subscript::Dynamic& d : v.index.dynamic) used[d.value] = true;
      if (v.kind != ScalarKind::load || t_.kernel.buffers[v.slot].count <= count) continue;
      for (AxisId a : {t_.row, t_.column, t_.depth})
        if (steps_by_one(v.index, a)) best = a, count = t_.kernel.buffers[v.slot].count;
    }
    return best;
  }

  // Of a flattened axis too, where its innermost part has unit stride.
  bool steps_by_one(const Subscript& index, AxisId axis) const {
    if (index.affine.coefficient(axis) == 1) return true;
    return std::any_of(index.dynamic.begin(), index.dynamic.end(), [&](const Subscript::Dynamic& d) {
      const Scalar& part = t_.kernel.values[d.value];
      if (d.coefficient != 1 || part.kind != ScalarKind::remainder) return false;
      const Scalar& whole = t_.kernel.values[part.operands[0]];
      return whole.kind == ScalarKind::index && whole.index.affine.coefficient(axis) == 1;
    });
  }

  bool multiplies_bf16() const {
    const std::vector<Scalar>& values = t_.kernel.values;
    return t_.lanes == TiledContraction::kTileRows && t_.dtype == DType::f32 && values[left()].dtype == DType::bf16 &&
           values[right()].dtype == DType::bf16 && t_.rows() >= kRowsToConvertFor && t_.columns() >= TiledContraction::kTileRows &&
           t_.depths() >= TiledContraction::kTileDepth;
  }
  bool suits_matrix_tiles() const { return processor_.matrix_tiles && multiplies_bf16(); }
  bool suits_bf16_pairs() const { return processor_.bf16_pairs && multiplies_bf16(); }

  void choose_bf16_sources() {
    t_.left = unit_axis(left()) == t_.depth ? PanelSource::by_depth : PanelSource::by_width;
    t_.right = unit_axis(right()) == t_.depth ? PanelSource::by_depth : PanelSource::by_width;
  }

  // Sums of a tile fill the registers; the operands' panels are those of matrix tiles.
  void choose_bf16_pairs() {
    t_.microkernel = Microkernel::bf16_pairs;
    choose_tile();
    choose_bf16_sources();
    t_.panel_tiles = static_cast<int>(divide_up(std::min(kPanelColumns, t_.columns()), t_.tile_columns()));
    choose_matrix_blocks();
  }

  // Two by two matrix tiles of sums. The right panel and a row of left tiles stay in the second cache.
  void choose_matrix_tiles() {
    const int64_t m = t_.rows(), k = t_.depths();
    t_.microkernel = Microkernel::matrix_tiles;
    t_.tile_rows = 2 * TiledContraction::kTileRows;
    t_.tile_vectors = 2;
    choose_bf16_sources();
    const Scalar& load = t_.kernel.values[left()];
    const bool whole_tiles = m % t_.tile_rows == 0 && k % TiledContraction::kTileDepth == 0;
    const bool read_once = t_.columns() <= t_.tile_columns();
    if (read_once && whole_tiles && load.kind == ScalarKind::load && load.guards.empty() && load.index.dynamic.empty() &&
        t_.kernel.buffers[load.slot].dtype == DType::bf16 && load.index.affine.coefficient(t_.depth) == 1)
      t_.left = PanelSource::in_place;
    t_.panel_tiles = static_cast<int>(divide_up(std::min(kPanelColumns, t_.columns()), t_.tile_columns()));
    choose_matrix_blocks();
    choose_cached_depth();
  }

  // Left tiles pass by a right one that the first cache keeps: where it does not hold all of the block's depth, a part of it that leaves
  // room for those.
  void choose_cached_depth() {
    const int64_t bytes_of_depth = t_.tile_columns() * bytes_of(DType::bf16);
    t_.cached_depth = t_.block_depth;
    if (t_.block_depth * bytes_of_depth > processor_.level1_bytes)
      t_.cached_depth = even_blocks(t_.block_depth, processor_.level1_bytes * 5 / 6 / bytes_of_depth, TiledContraction::kTileDepth);
  }

  // Results that leave the caches: memory need not be read where whole lines are written.
  void choose_streamed() {
    t_.streamed.assign(t_.kernel.buffers.size(), false);
    if (unshared_.empty()) return;
    for (const Store& store : t_.kernel.stages[1].stores) {
      const BufferUse& buffer = t_.kernel.buffers[store.buffer];
      t_.streamed[store.buffer] =
          unshared_[store.buffer] && buffer.count * bytes_of(buffer.dtype) >= processor_.streamed_bytes && fills_lines(store);
    }
    for (const Scalar& v : t_.kernel.values)
      if (v.kind == ScalarKind::load) t_.streamed[v.slot] = false;
  }

  // Every row of a tile covers whole lines.
  bool fills_lines(const Store& store) const {
    const int64_t size = bytes_of(t_.kernel.buffers[store.buffer].dtype);
    const Affine& index = store.index.affine;
    if (store.mode != StoreMode::set || !store.index.dynamic.empty() || index.coefficient(t_.column) != 1) return false;
    if (t_.columns() % t_.tile_columns() != 0 || index.constant * size % kCacheLine != 0) return false;
    return std::all_of(index.terms.begin(), index.terms.end(),
                       [&](const Affine::Term& t) { return t.axis == t_.column || t.coefficient * size % kCacheLine == 0; });
  }

  // Long sums in blocks of depth, so that many rows share each panel of the right operand that is packed and that panel stays in the
  // second cache: cycles of what is packed again for each block of rows or columns, against what sums in parts take to be kept.
  void choose_matrix_blocks() {
    constexpr double kPartCycles = 8;
    constexpr int64_t kBf16 = 2, kDepths[] = {1024, 512};
    const double m = static_cast<double>(t_.rows()), n = static_cast<double>(t_.columns()), k = static_cast<double>(t_.depths());
    double best = 0;
    for (const int64_t deepest : kDepths) {
      const int64_t depth = even_blocks(t_.depths(), deepest, TiledContraction::kTileDepth);
      const int64_t rows =
          even_blocks(t_.rows(), processor_.level2_bytes / 2 / (depth * kBf16), std::max(t_.tile_rows, TiledContraction::kTileRows));
      int64_t columns = round_up(t_.columns(), t_.tile_columns());
      if (depth < t_.depths()) columns = even_blocks(t_.columns(), 4 * kPartialBytes / (rows * bytes()), t_.tile_columns());
      const auto blocks = [](int64_t extent, int64_t size) { return static_cast<double>(divide_up(extent, size)); };
      const double right_cycles = k * n * blocks(t_.rows(), rows) * packing_cycles(t_.right, right()),
                   left_cycles = k * m * blocks(t_.columns(), columns) * packing_cycles(t_.left, left()),
                   parts = m * n * (blocks(t_.depths(), depth) - 1) * kPartCycles;
      if (best == 0 || right_cycles + left_cycles + parts < best)
        best = right_cycles + left_cycles + parts, t_.block_depth = std::min(depth, t_.depths()), t_.block_rows = rows,
        t_.block_columns = columns;
    }
  }

  // The tile that fills the registers and divides the result with the fewest cycles: two products and two loads a cycle,
  // four cycles until a sum can be added to again, and a share of what operands cost to come from the second cache.
  void choose_tile() {
    const int64_t vectors = divide_up(t_.columns(), t_.lanes);
    const bool rows_are_lanes = unit_axis(left()) == t_.row && t_.rows() >= 8;  // panels filled by whole vectors
    // Rows whose elements share their places in the first cache: as many as it holds beside the other operand.
    const Scalar* load = plain_load(left());
    const bool crowded =
        load && load->index.affine.coefficient(t_.depth) == 1 && load->index.affine.coefficient(t_.row) * bytes() % kPage == 0;
    double best = 0;
    for (int v = 1; v <= std::min<int64_t>(vectors, processor_.vector_registers - 2); ++v)
      for (int r = 1; r <= t_.rows() && r * v + v + registers_of_rows(v) <= processor_.vector_registers; ++r) {
        if (crowded && r > kCrowdedRows) continue;
        if (t_.left_groups && t_.left_groups->rows % r != 0) continue;
        if (rows_are_lanes && std::popcount(static_cast<unsigned>(r)) != 1) continue;
        if (t_.panels_in_tiles() && TiledContraction::kTileRows % r != 0) continue;
        const auto tiles = [&](int64_t extent, int64_t size, const auto& cost) {
          return static_cast<double>(extent / size) * cost(size) + (extent % size > 0 ? cost(extent % size) : 0.0);
        };
        double cycles =
            tiles(t_.rows(), r, [&](int64_t rows) { return tiles(vectors, v, [&](int64_t wide) { return tile_cycles(rows, wide); }); });
        if (const auto left_out = left_out_of(r)) cycles *= left_out->share();
        if (best == 0 || cycles < best) best = cycles, t_.tile_rows = r, t_.tile_vectors = v;
      }
  }

  // Of 32 registers LLVM 19 needs three for elements of rows that are each multiplied with two vectors only: with one, of 14 x 2 sums,
  // it keeps half of the sums in memory (189 of 250 GFLOP/s on a Zen 5 core; 13 x 2: 209).
  int registers_of_rows(int vectors) const { return processor_.vector_registers >= 32 && vectors < 3 ? 3 : 1; }

  double tile_cycles(int64_t rows, int64_t vectors) const {
    const auto sums = static_cast<double>(rows * vectors), loads = static_cast<double>(rows + vectors);
    const double step = std::max({sums / 2, loads / 2, 4.0}) + static_cast<double>(vectors) * 0.3 + static_cast<double>(rows) * 0.15;
    return static_cast<double>(t_.depths()) * step + 10 + sums;
  }

  int64_t bytes() const { return bytes_of(t_.dtype); }

  void choose_sources() {
    const int64_t m = t_.rows(), n = t_.columns(), k = t_.depths();
    t_.left = unit_axis(left()) == t_.depth ? PanelSource::by_depth : PanelSource::by_width;
    t_.right = unit_axis(right()) == t_.depth ? PanelSource::by_depth : PanelSource::by_width;
    if (t_.left_groups) {
      t_.left = PanelSource::in_place;
    } else if (const Scalar* load = plain_load(left())) {
      const int64_t row = load->index.affine.coefficient(t_.row), depth = load->index.affine.coefficient(t_.depth);
      const bool rows_apart = t_.tile_rows <= kCrowdedRows || row * bytes() % kPage != 0;
      const bool few_columns = n <= t_.tile_columns();
      if ((depth == 1 && rows_apart) || few_columns || (row == 1 && m * k * bytes() <= processor_.level2_bytes / 4))
        t_.left = PanelSource::in_place;
    }
    if (const Scalar* load = plain_load(right()); load && load->index.affine.coefficient(t_.column) == 1) {
      const int64_t step = load->index.affine.coefficient(t_.depth) * bytes();
      const int64_t at_once = t_.left_groups ? groups_at_once() : k;
      const bool cached =
          at_once * n * bytes() <= processor_.level2_bytes / 2 && (step % kPage != 0 || k <= 64) && !loses_right_tile(step, at_once);
      if (cached || m <= kFewTiles * t_.tile_rows) t_.right = PanelSource::in_place;
    }
    if (m < kRowsToConvertFor && reads_bf16_along_columns()) t_.right = PanelSource::in_place;
  }

  // Few rows use a converted element too seldom to keep it.
  bool reads_bf16_along_columns() const {
    const Scalar& v = t_.kernel.values[right()];
    return t_.dtype == DType::f32 && v.kind == ScalarKind::load && v.dtype == DType::bf16 && v.guards.empty() && v.index.dynamic.empty() &&
           t_.kernel.buffers[v.slot].dtype == DType::bf16 && v.index.affine.coefficient(t_.column) == 1;
  }

  void choose_blocks() {
    const int64_t m = t_.rows(), n = t_.columns(), k = t_.depths();

    t_.block_depth = k <= kDeepest ? k : even_blocks(k, kDeepest, t_.lanes);
    if (t_.left_groups) t_.block_depth = groups_at_once();
    if (reads_long_rows()) t_.block_depth = even_blocks(k, kPagesAtOnce, t_.lanes);
    // Of windows a row adds what the next place of the image has.
    const int64_t row_bytes = (t_.left_groups ? std::max<int64_t>(t_.left_groups->row_step, 1) : t_.block_depth) * bytes();
    t_.block_rows = even_blocks(m, rows_bytes() / row_bytes, t_.left == PanelSource::by_width ? packed_rows() : t_.tile_rows);
    t_.block_columns = round_up(n, t_.tile_columns());
    if (t_.depth_in_blocks()) t_.block_columns = even_blocks(n, kPartialBytes / (t_.block_rows * bytes()), t_.tile_columns());
    const Scalar* load = plain_load(right());
    if (t_.right == PanelSource::by_width && load && load->index.affine.coefficient(t_.column) == 1 && m >= t_.tile_rows &&
        n >= 2 * t_.tile_columns() && k >= kFilledMeanwhile && !t_.left_groups && !t_.left_out())
      t_.right_panels = 2;
  }

  // As many groups that lie evenly as make a block about as deep as others. Half as deep again saves sums in parts: 1152 is 3 x 3 x 128.
  int64_t groups_at_once() const {
    const OperandGroups& g = *t_.left_groups;
    int64_t most = 1;
    for (int64_t count = 1; count <= g.groups && count * g.depths <= deepest_groups(); ++count)
      if (g.groups % count == 0) most = count;
    return most * g.depths;
  }

  // Whether a tile of sums is done sooner than the second cache brings lines for the next: 6 x 16 sums take 6 cycles for each depth. With
  // vectors of 512 bits a tile takes twice to four times as long, and what lies in place on Zen 5 stays as it was measured. Vectors of 128
  // bits go with those of 256, unmeasured.
  bool waits_for_lines() const { return processor_.vector_bits <= 256; }
  int64_t right_tile_lines() const { return divide_up(t_.tile_columns() * bytes(), kCacheLine); }  // of each depth

  // Lines so far apart that the first cache keeps: a line's address within a page says in which set it lies.
  int64_t lines_kept(int64_t apart) const {
    const int64_t ways = std::max<int64_t>(processor_.level1_bytes / kPage, 1);
    return ways * kPage / std::max(std::gcd(apart, kPage), kCacheLine);
  }

  // Where a right tile lies, its lines do not stay for the next tile of rows, as those of a panel would. Packed, on Zen 3: 256^3 82 to 87
  // % of the peak, with the left one transposed 70 to 80; 3 x 3 of 64 channels 82 to 94.
  bool loses_right_tile(int64_t step, int64_t depth) const {
    return waits_for_lines() && (depth > lines_kept(step) || depth * right_tile_lines() * kCacheLine > processor_.level1_bytes);
  }

  // Depths of a window that lie lines apart, of each of which a tile of rows uses a part: half of the first cache is theirs. Deep blocks
  // lose them before the next tile of rows comes: on Zen 3 gradients of 3 x 3 kernels reach 45 to 61 % of the peak in blocks of 784 or 896,
  // and 74 to 89 in these.
  int64_t deepest_groups() const {
    const int64_t apart = t_.left_groups->depth_step * bytes();
    return apart >= kCacheLine && waits_for_lines() ? std::min(kDeepest, lines_kept(apart) / 2) : kDeepest * 3 / 2;
  }

  // What the rows of a block may take of the second cache: beside them lie one panel of columns, or all columns of an operand that is
  // read in place.
  int64_t rows_bytes() const {
    const int64_t half = processor_.level2_bytes / 2;
    if (t_.right != PanelSource::in_place || t_.left == PanelSource::in_place) return half;
    return std::max(processor_.level2_bytes / 8, half - t_.block_depth * t_.columns() * bytes());
  }

  // Rows that a panel filled by its rows takes at a time: whole tiles that are whole vectors.
  int64_t packed_rows() const {
    return std::has_single_bit(static_cast<unsigned>(t_.tile_rows)) ? std::max(t_.tile_rows, 2 * t_.lanes) : t_.tile_rows;
  }

  // Each depth of the right operand lies in pages of its own, and few tiles of rows read it where it lies: a few depths are read from end
  // to end before the next ones, as many as have their pages in the TLB.
  bool reads_long_rows() const {
    const bool streamed = t_.depths() * t_.columns() * bytes() > processor_.level2_bytes && t_.columns() * bytes() >= kPage;
    return !t_.left_groups && t_.right == PanelSource::in_place && unit_axis(right()) == t_.column &&
           t_.rows() <= kFewTiles * t_.tile_rows && streamed;
  }

  // Threads divide the axis that costs less: what the other operand's panels take is done by each of them.
  void choose_split() {
    const int64_t row_parts = divide_up(t_.rows(), t_.part_rows()), column_tiles = divide_up(t_.columns(), t_.tile_columns());
    const double right_cycles = packing_cycles(t_.right, right()) * static_cast<double>(divide_up(t_.rows(), 2 * t_.block_rows));
    const double left_cycles = packing_cycles(t_.left, left()) * static_cast<double>(divide_up(t_.columns(), 2 * t_.block_columns));
    const double by_rows = split_cost(row_parts, right_cycles * static_cast<double>(t_.columns()));
    const double by_columns = split_cost(column_tiles, left_cycles * static_cast<double>(t_.rows()));
    t_.shared = by_columns <= by_rows ? SharedAxis::columns : SharedAxis::rows;
    t_.parts = t_.shared == SharedAxis::columns ? column_tiles : row_parts;
  }

  // Cycles of the slower of two threads, over the depth: its tiles and the packing that both do.
  double split_cost(int64_t tiles, double packing) const {
    const double vectors = static_cast<double>(t_.rows()) * static_cast<double>(t_.columns()) / t_.lanes;
    const double work = vectors / (t_.microkernel == Microkernel::matrix_tiles ? 16 : 2);
    const double share = static_cast<double>(divide_up(tiles * t_.batches, 2)) / static_cast<double>(tiles * t_.batches);
    return work * share + (t_.batches > 1 ? 0 : packing / t_.lanes);
  }

  // For a vector of an operand's panel: to move it and to compute what it is made of.
  double packing_cycles(PanelSource source, ValueId operand) const {
    constexpr double kDear = 30;
    if (source == PanelSource::in_place) return 0;
    double cycles = source == PanelSource::by_width ? 3 : 6;
    std::vector<bool> used(t_.kernel.values.size(), false);
    used[operand] = true;
    for (size_t i = operand + 1; i-- > 0;) {
      if (!used[i]) continue;
      const Scalar& v = t_.kernel.values[i];
      for (ValueId x : v.operands) used[x] = true;
      if (v.kind == ScalarKind::random || (v.kind == ScalarKind::map && is_transcendental(v.fn))) cycles += kDear;
    }
    return cycles;
  }

  const Processor& processor_;
  const std::vector<bool>& unshared_;
  std::optional<LeftOutPadding> left_out_;  // that a tile's rows may allow
  TiledContraction t_;
};

}  // namespace

std::optional<TiledContraction> tile_contraction(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared) {
  return ContractionTiler(kernel, processor, unshared).run();
}

}  // namespace einc
