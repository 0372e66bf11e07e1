// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/gather_folds.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

// Products with padding may take so much more than those of the plain form: 5 x 5 patches of 16 x 16 images without padding, (20/16)^2,
// would not be gathered, 3 x 3 ones of 28 x 28, (30/28)^2, are.
constexpr double kMostWork = 1.25;
// Fewer fill no vectors of a contraction's tiles; patches are at least long.
constexpr int64_t kFewestChannels = 8;

// An axis of the result: of the product as it is, or places p and k of it that were folded, from `start` on.
struct ResultAxis {
  int label, window = -1;  // labels of the product; window: k, where the axis is folded
  Poly start;
  Axis axis;
};

struct GatheredFold {
  NodeId product;
  size_t image = 0;  // the operand that has all p; the other has all k
  std::vector<ResultAxis> axes;
};

class FoldGatherer {
 public:
  FoldGatherer(const BoundGraph& given, const std::vector<NodeId>& roots, const std::function<bool(NodeId)>& wanted)
      : given_(given),
        wanted_(wanted),
        reads_(given.graph.size(), 0),
        graph_(std::make_unique<Graph>(given.graph)),
        build_(*graph_),
        at_(given.graph.size()) {
    for (uint32_t i = 0; i < given.graph.size(); ++i)
      if (given.live[i])
        for (NodeId x : given[NodeId{i}].operands) ++reads_[x.index];
    for (NodeId root : roots) ++reads_[root.index];
  }

  GatheredFolds run() {
    // The last of a chain first: what stands on a fold and is gathered with it is not gathered again.
    std::vector<std::optional<GatheredFold>> found(given_.graph.size());
    std::vector<bool> inside(given_.graph.size(), false);
    bool any = false;
    for (uint32_t i = given_.graph.size(); i-- > 0;) {
      if (!given_.live[i] || inside[i]) continue;
      found[i] = find(NodeId{i});
      if (!found[i]) continue;
      any = true;
      for (NodeId x{i}; x != found[i]->product; x = given_[x].operands[0]) inside[x.index] = true;
    }
    if (!any) return {};
    graph_->nodes.clear();
    for (uint32_t i = 0; i < given_.graph.size(); ++i) at_[i] = found[i] ? make(NodeId{i}, *found[i]) : copy(NodeId{i});
    for_each_root(*graph_, [&](NodeId& id) { id = at_[id.index]; });
    return {std::move(graph_), std::move(at_)};
  }

 private:
  static bool is_part(const Node& node) {
    if (node.op == Op::slice) return node.as<SliceAttr>().step == 1;
    if (node.op != Op::fold) return false;
    const std::vector<Poly>& strides = node.as<WindowAttr>().strides;
    return strides.size() == 2 && std::ranges::all_of(strides, [](const Poly& s) { return s == Poly(1); });
  }

  std::optional<GatheredFold> find(NodeId last) const {
    std::vector<NodeId> chain;  // from the product on
    NodeId x = last;
    for (; is_part(given_[x]); x = given_[x].operands[0]) {
      if (x != last && reads_[x.index] != 1) return std::nullopt;
      chain.insert(chain.begin(), x);
    }
    const Node& product = given_[x];
    if (product.op != Op::contract || reads_[x.index] != 1 || !wanted_(x)) return std::nullopt;
    if (std::ranges::none_of(chain, [&](NodeId id) { return given_[id].op == Op::fold; })) return std::nullopt;
    GatheredFold found{x, 0, {}};
    for (int label = 0; label < product.type.rank(); ++label) found.axes.push_back({label, -1, Poly(0), product.type.axis(label)});
    for (NodeId id : chain)
      if (!follow(id, found.axes)) return std::nullopt;
    return fits(found) ? std::optional(std::move(found)) : std::nullopt;
  }

  bool follow(NodeId id, std::vector<ResultAxis>& axes) const {
    const Node& node = given_[id];
    if (node.op == Op::slice) {
      const auto& attr = node.as<SliceAttr>();
      ResultAxis& axis = axes[static_cast<size_t>(attr.axis)];
      if (axis.window < 0) return false;
      axis.start = axis.start + attr.start;
      axis.axis = node.type.axis(attr.axis);
      return true;
    }
    const auto first = static_cast<size_t>(node.as<WindowAttr>().axis);
    ResultAxis &place = axes[first], &window = axes[first + 1];
    if (place.window >= 0 || window.window >= 0) return false;
    place.window = window.label;
    place.axis = node.type.axis(static_cast<int>(first));
    axes.erase(axes.begin() + static_cast<long>(first) + 1);
    return true;
  }

  const AxisList& labels(NodeId product, size_t operand) const {
    const auto& attr = given_[product].as<ContractAttr>();
    return operand == 0 ? attr.left : attr.right;
  }
  int64_t size(NodeId product, int label) const { return given_.shape(product)[static_cast<size_t>(label)]; }

  // One operand has the places, the other the windows; what is padded is no less than nothing, and the work about the same.
  bool fits(GatheredFold& found) const {
    double work = 1;
    for (const size_t image : {size_t{0}, size_t{1}}) {
      const AxisList &places = labels(found.product, image), &windows = labels(found.product, 1 - image);
      const bool all = std::ranges::all_of(found.axes, [&](const ResultAxis& a) {
        return a.window < 0 ||
               (places.contains(a.label) && !places.contains(a.window) && windows.contains(a.window) && !windows.contains(a.label));
      });
      if (!all) continue;
      found.image = image;
      if (channels(found) < kFewestChannels) return false;
      for (const ResultAxis& a : found.axes) {
        if (a.window < 0) continue;
        const int64_t count = given_.value(a.axis.size), places_there = size(found.product, a.label), start = given_.value(a.start);
        if (start > size(found.product, a.window) - 1 || start + count < places_there) return false;
        work *= static_cast<double>(count) / static_cast<double>(places_there);
      }
      return work <= kMostWork;
    }
    return false;
  }

  // Of the result, by the kernel alone.
  int64_t channels(const GatheredFold& found) const {
    int64_t count = 1;
    for (const ResultAxis& a : found.axes)
      if (a.window < 0 && !labels(found.product, found.image).contains(a.label)) count *= size(found.product, a.label);
    return count;
  }

  NodeId copy(NodeId id) {
    Node node = given_[id];
    for (NodeId& x : node.operands) x = at_[x.index];
    return build_.append(std::move(node));
  }

  // The image with room at both ends of each place, as windows; the kernel turned round.
  NodeId make(NodeId id, const GatheredFold& found) {
    build_.origin = given_[id].origin;
    const Node& product = given_[found.product];
    AxisList of_image = labels(found.product, found.image), of_kernel = labels(found.product, 1 - found.image);
    NodeId image = at_[product.operands[found.image].index], kernel = at_[product.operands[1 - found.image].index];
    image = build_.pad(image, room(of_image, found, true), room(of_image, found, false), ScalarValue(0.0));
    const int rank = static_cast<int>(found.axes.size());
    std::vector<int> to(static_cast<size_t>(label_count(of_image, of_kernel)), -1);  // new labels
    int next = rank;
    for (int out = 0; out < rank; ++out) {
      const ResultAxis& axis = found.axes[static_cast<size_t>(out)];
      to[static_cast<size_t>(axis.label)] = out;
      if (axis.window < 0) continue;
      to[static_cast<size_t>(axis.window)] = next++;
      const Axis window = product.type.axis(axis.window);
      image = build_.window(image, of_image.find(axis.label), {Poly(1), Poly(1)}, {axis.axis, window});
      of_image = with_window(of_image, axis);
      kernel = build_.slice(kernel, of_kernel.find(axis.window), window.size - Poly(1), window.size, -1);
    }
    for (int& label : to)
      if (label < 0) label = next++;
    for (AxisList* list : {&of_image, &of_kernel})
      for (int i = 0; i < list->size(); ++i) list->set(i, to[static_cast<size_t>((*list)[i])]);
    const NodeId result = found.image == 0 ? build_.contract(image, kernel, of_image, of_kernel, rank)
                                           : build_.contract(kernel, image, of_kernel, of_image, rank);
    graph_->nodes[result.index].type = given_[id].type;
    return result;
  }

  static int label_count(const AxisList& a, const AxisList& b) {
    int most = 0;
    for (const AxisList* list : {&a, &b})
      for (int i = 0; i < list->size(); ++i) most = std::max(most, (*list)[i] + 1);
    return most;
  }

  static AxisList with_window(const AxisList& labels, const ResultAxis& axis) {
    AxisList more;
    for (int i = 0; i < labels.size(); ++i) {
      more.push_back(labels[i]);
      if (labels[i] == axis.label) more.push_back(axis.window);
    }
    return more;
  }

  // Of the result's places from `start` on: y - k goes from start - (K - 1) to start + count - 1.
  std::vector<Poly> room(const AxisList& labels, const GatheredFold& found, bool before) const {
    const Type& type = given_[found.product].type;
    std::vector<Poly> room(static_cast<size_t>(labels.size()), Poly(0));
    for (const ResultAxis& a : found.axes)
      if (a.window >= 0)
        room[static_cast<size_t>(labels.find(a.label))] =
            before ? type.axis(a.window).size - Poly(1) - a.start : a.start + a.axis.size - type.axis(a.label).size;
    return room;
  }

  const BoundGraph& given_;
  const std::function<bool(NodeId)>& wanted_;
  std::vector<int> reads_;  // of each value, roots included
  std::unique_ptr<Graph> graph_;
  Builder build_;
  std::vector<NodeId> at_;
};

}  // namespace

GatheredFolds gather_folds(const BoundGraph& graph, const std::vector<NodeId>& roots, const std::function<bool(NodeId)>& wanted) {
  return FoldGatherer(graph, roots, wanted).run();
}

}  // namespace einc
