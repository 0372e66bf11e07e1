// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/leave_out_padding.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "compiler/lower/tile_contraction.h"

namespace einc {
namespace {

// A part of a loop that walks along one axis of the image: coordinate += factor * (number / apart % count).
struct Walk {
  size_t axis;
  int64_t factor, apart, count;
};

// What the loops of one kind (rows, depths or batches) walk along, by the number of all of them together.
struct Walks {
  std::vector<Walk> list;

  // The one along an axis of the image, if there is no other.
  const Walk* along(size_t axis) const {
    const Walk* found = nullptr;
    for (const Walk& w : list) {
      if (w.axis != axis) continue;
      if (found) return nullptr;
      found = &w;
    }
    return found;
  }
  bool leaves(size_t axis) const {
    return std::ranges::none_of(list, [&](const Walk& w) { return w.axis == axis; });
  }
};

// The coordinates of an image that a contraction's left operand reads, from the place in memory: loops that collapsing has joined walk
// along several axes.
class WindowFinder {
 public:
  WindowFinder(const BoundGraph& graph, NodeId pad, const Kernel& kernel)
      : graph_(graph), pad_(pad), kernel_(kernel), shape_(graph.shape(pad)), strides_(strides_of(shape_)), first_(shape_.size(), 0) {}

  std::vector<PaddedAxis> run() {
    const Contraction& c = *kernel_.contraction;
    index_ = kernel_.values[c.left].index.affine;
    if (!find_first() || !find(c.batch, batches_) || !find(c.rows, rows_) || !find(c.depth, depths_) || !stays_inside()) return {};
    std::vector<PaddedAxis> padded;
    const PadAttr& attr = graph_[pad_].as<PadAttr>();
    const Shape& image = graph_.shape(graph_[pad_].operands[0]);
    for (size_t d = 0; d < shape_.size(); ++d) {
      const Walk *place = rows_.along(d), *element = depths_.along(d);
      if (image[d] == shape_[d] || !place || !element || !batches_.leaves(d)) continue;
      const PaddedAxis axis{place->apart,
                            place->count,
                            element->apart,
                            element->count,
                            place->factor,
                            element->factor,
                            first_[d] - graph_.value(attr.before[d]),
                            image[d]};
      if (pairs_inside(axis) < axis.places * axis.elements) padded.push_back(axis);
    }
    return padded;
  }

 private:
  bool find_first() {
    int64_t rest = index_.constant;
    if (rest < 0) return false;
    for (size_t d = 0; d < shape_.size(); ++d) first_[d] = rest / strides_[d], rest %= strides_[d];
    return true;
  }

  // Innermost loop first, so that `apart` counts the loops inside.
  bool find(const std::vector<AxisId>& axes, Walks& walks) {
    int64_t inside = 1;
    for (size_t k = axes.size(); k-- > 0;) {
      const int64_t extent = kernel_.extent(axes[k]), coefficient = index_.coefficient(axes[k]);
      if (coefficient < 0 || (coefficient > 0 && !divide(coefficient, extent, inside, walks))) return false;
      inside *= extent;
    }
    return true;
  }

  // A loop that steps by one along an axis and is a multiple of it long goes on along the axis around.
  bool divide(int64_t coefficient, int64_t extent, int64_t apart, Walks& walks) {
    size_t d = 0;
    while (d + 1 < shape_.size() && (coefficient % strides_[d] != 0 || shape_[d] == 1)) ++d;
    if (coefficient % strides_[d] != 0) return false;
    const int64_t factor = coefficient / strides_[d];
    if (factor * (extent - 1) < shape_[d]) return walks.list.push_back({d, factor, apart, extent}), true;
    if (factor != 1 || d == 0 || extent % shape_[d] != 0) return false;
    walks.list.push_back({d, 1, apart, shape_[d]});
    return divide(strides_[d] * shape_[d], extent / shape_[d], apart * shape_[d], walks);
  }

  // Coordinates that never leave the axes are the only ones that a place in memory has.
  bool stays_inside() const {
    std::vector<int64_t> last(first_.begin(), first_.end());
    for (const Walks* walks : {&batches_, &rows_, &depths_})
      for (const Walk& w : walks->list) last[w.axis] += w.factor * (w.count - 1);
    for (size_t d = 0; d < shape_.size(); ++d)
      if (last[d] >= shape_[d]) return false;
    return true;
  }

  const BoundGraph& graph_;
  const NodeId pad_;
  const Kernel& kernel_;
  const Shape shape_, strides_;
  Affine index_;
  std::vector<int64_t> first_;  // coordinates of the first element read
  Walks batches_, rows_, depths_;
};

// The image that the kernel's left operand is read from, where it lies in memory with zeros around it.
std::optional<NodeId> padded_image(const BoundGraph& graph, const GraphKernel& k) {
  if (!k.kernel->contraction) return std::nullopt;
  const Scalar& left = k.kernel->values[k.kernel->contraction->left];
  if (left.kind != ScalarKind::load || !left.guards.empty() || !left.index.dynamic.empty()) return std::nullopt;
  const NodeId id = k.buffers[left.slot];
  if (!id.valid() || graph[id].op != Op::pad || !graph.order.empty() || graph.padding_of(id) > 0) return std::nullopt;
  const double around = graph.value(graph[id].as<PadAttr>().value);
  return around == 0 && !std::signbit(around) ? std::optional(id) : std::nullopt;
}

}  // namespace

void leave_out_padding(const BoundGraph& graph, const Processor& processor, KernelList& list) {
  // Kernels that are shared read images that may be padded otherwise, or not at all.
  std::map<std::pair<std::shared_ptr<const Kernel>, std::vector<PaddedAxis>>, std::shared_ptr<const Kernel>> known;
  for (GraphKernel& k : list.kernels) {
    const std::optional<NodeId> image = padded_image(graph, k);
    if (!image) continue;
    std::vector<PaddedAxis> padded = WindowFinder(graph, *image, *k.kernel).run();
    if (padded.empty()) continue;
    const auto [place, fresh] = known.try_emplace({k.kernel, padded}, k.kernel);
    if (fresh) {
      auto kernel = std::make_shared<Kernel>(*k.kernel);
      kernel->contraction->padded = std::move(padded);
      const std::optional<TiledContraction> tiles = tile_contraction(*kernel, processor, {});
      if (tiles && tiles->left_out()) {
        kernel->contraction->padded = tiles->kernel.contraction->padded;
        place->second = std::move(kernel);
      }
    }
    k.kernel = place->second;
  }
}

}  // namespace einc
