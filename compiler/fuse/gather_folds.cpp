// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/gather_folds.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

// Products with padding may take so much more than those of the plain form: 5 x 5 patches of 16 x 16 images without padding, (20/16)^2,
// would not be gathered, 3 x 3 ones of 28 x 28, (30/28)^2, are.
constexpr double kMostWork = 1.25;
// Fewer fill no vectors of a contraction's tiles; patches are at least long.
constexpr int64_t kFewestChannels = 8;
// Remainders of all axes together: each is a contraction of its own. Windows of images go by two places.
constexpr int64_t kMostRemainders = 4;

// An axis of the result: of the product as it is, or places stride * p + k of it that were folded, from `start` on.
struct ResultAxis {
  int label, window = -1;  // labels of the product; window: k, where the axis is folded
  Poly start;
  Axis axis;
  int64_t stride = 1;
  // Every stride-th place of the result, from a number on: `count` sums of `taps` products each, of k = remainder + stride * j with
  // p = first - (taps - 1) and up.
  struct Share {
    int64_t remainder, taps, count, first;
    int64_t low() const { return first - (taps - 1); }
    int64_t high() const { return first + count - 1; }
  };
  Share share(int64_t number, int64_t from, int64_t windows, int64_t places) const {
    const int64_t remainder = (from + number) % stride;
    return {remainder, (windows - remainder + stride - 1) / stride, places / stride, (from + number - remainder) / stride};
  }
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
        graph_(std::make_unique<Graph>(without_nodes(given.graph))),
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
    for (uint32_t i = 0; i < given_.graph.size(); ++i) at_[i] = found[i] ? make(NodeId{i}, *found[i]) : copy(NodeId{i});
    for_each_root(*graph_, [&](NodeId& id) { id = at_[id.index]; });
    return {std::move(graph_), std::move(at_)};
  }

 private:
  static bool is_part(const Node& node) {
    if (node.op == Op::slice) return node.as<SliceAttr>().step == 1;
    if (node.op != Op::fold) return false;
    const std::vector<Poly>& strides = node.as<WindowAttr>().strides;
    return strides.size() == 2 && strides[1] == Poly(1);
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
    const auto& attr = node.as<WindowAttr>();
    const auto first = static_cast<size_t>(attr.axis);
    ResultAxis &place = axes[first], &window = axes[first + 1];
    if (place.window >= 0 || window.window >= 0) return false;
    place.window = window.label;
    place.axis = node.type.axis(static_cast<int>(first));
    place.stride = given_.value(attr.strides[0]);
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
      int64_t remainders = 1;
      for (const ResultAxis& a : found.axes) {
        if (a.window < 0) continue;
        const int64_t count = given_.value(a.axis.size), places_there = size(found.product, a.label), start = given_.value(a.start);
        const int64_t taps = size(found.product, a.window);
        if (a.stride == 1 && (start > taps - 1 || start + count < places_there)) return false;
        // Patches that do not overlap are moved, not added.
        if (a.stride > 1 && (count % a.stride != 0 || taps <= a.stride)) return false;
        remainders *= a.stride;
        work *= static_cast<double>(count) / static_cast<double>(a.stride * places_there);
      }
      if (remainders > kMostRemainders) return false;
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

  // The image has room at both ends of each place.
  NodeId make(NodeId id, const GatheredFold& found) {
    build_.origin = given_[id].origin;
    const NodeId image = given_[found.product].operands[found.image];
    const AxisList& labels_there = labels(found.product, found.image);
    std::vector<Poly> before(static_cast<size_t>(labels_there.size()), Poly(0)), after = before;
    for (const ResultAxis& a : found.axes) {
      if (a.window < 0) continue;
      const auto at = static_cast<size_t>(labels_there.find(a.label));
      std::tie(before[at], after[at]) = room(found.product, a);
    }
    const NodeId padded = build_.pad(at_[image.index], std::move(before), std::move(after), ScalarValue(0.0));
    std::vector<int64_t> numbers(found.axes.size(), 0);
    const NodeId result = interleaved(found, padded, numbers, 0);
    graph_->nodes[result.index].type = given_[id].type;
    return result;
  }

  // Of the result's places: those of each remainder, one beside the other, along `axis` and the axes behind it.
  NodeId interleaved(const GatheredFold& found, NodeId padded, std::vector<int64_t>& numbers, size_t axis) {
    if (axis == found.axes.size()) return share_of(found, padded, numbers);
    const int64_t stride = found.axes[axis].stride;
    if (stride == 1) return interleaved(found, padded, numbers, axis + 1);
    AxisList counts;
    for (size_t a = 0; a < found.axes.size(); ++a) counts.push_back(a == axis ? 2 : 1);
    std::vector<NodeId> parts;
    for (numbers[axis] = 0; numbers[axis] < stride; ++numbers[axis]) {
      const NodeId part = interleaved(found, padded, numbers, axis + 1);
      std::vector<Axis> axes = graph_->type(part).axes;
      axes.insert(axes.begin() + static_cast<long>(axis) + 1, Axis{{}, Poly(1)});
      parts.push_back(build_.split(part, counts, std::move(axes)));
    }
    const NodeId beside = build_.concat(parts, static_cast<int>(axis) + 1);
    std::vector<Axis> axes = graph_->type(parts[0]).axes;
    axes.erase(axes.begin() + static_cast<long>(axis) + 1);
    axes[axis] = found.axes[axis].axis;
    return build_.merge(beside, counts, std::move(axes));
  }

  // Places of one remainder for each axis: the image as windows, every stride-th of the kernel, turned round.
  NodeId share_of(const GatheredFold& found, NodeId image, const std::vector<int64_t>& numbers) {
    const Node& product = given_[found.product];
    AxisList of_image = labels(found.product, found.image), of_kernel = labels(found.product, 1 - found.image);
    NodeId kernel = at_[product.operands[1 - found.image].index];
    const int rank = static_cast<int>(found.axes.size());
    std::vector<int> to(static_cast<size_t>(label_count(of_image, of_kernel)), -1);  // new labels
    int next = rank;
    for (int out = 0; out < rank; ++out) {
      const ResultAxis& axis = found.axes[static_cast<size_t>(out)];
      to[static_cast<size_t>(axis.label)] = out;
      if (axis.window < 0) continue;
      to[static_cast<size_t>(axis.window)] = next++;
      const ResultAxis::Share share = share_along(found.product, axis, numbers[static_cast<size_t>(out)]);
      Axis places = axis.axis, taps = product.type.axis(axis.window);
      if (axis.stride > 1) {
        places.size = places.size * Poly(Rational(1, axis.stride)), taps.size = Poly(share.taps);
        const Poly start = room(found.product, axis).first + Poly(share.low());
        image = build_.slice(image, of_image.find(axis.label), start, places.size + taps.size - Poly(1));
      }
      image = build_.window(image, of_image.find(axis.label), {Poly(1), Poly(1)}, {places, taps});
      of_image = with_window(of_image, axis);
      const Poly last = Poly(share.remainder) + Poly(axis.stride) * (taps.size - Poly(1));
      kernel = build_.slice(kernel, of_kernel.find(axis.window), last, taps.size, -axis.stride);
    }
    for (int& label : to)
      if (label < 0) label = next++;
    for (AxisList* list : {&of_image, &of_kernel})
      for (int i = 0; i < list->size(); ++i) list->set(i, to[static_cast<size_t>((*list)[i])]);
    return found.image == 0 ? build_.contract(image, kernel, of_image, of_kernel, rank)
                            : build_.contract(kernel, image, of_kernel, of_image, rank);
  }

  ResultAxis::Share share_along(NodeId product, const ResultAxis& a, int64_t number) const {
    return a.share(number, given_.value(a.start), size(product, a.window), given_.value(a.axis.size));
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

  // Before and behind the image's places. Of a result's places from `start` on, y - k goes from start - (K - 1) to start + count - 1.
  std::pair<Poly, Poly> room(NodeId product, const ResultAxis& a) const {
    const Type& type = given_[product].type;
    if (a.stride == 1) return {type.axis(a.window).size - Poly(1) - a.start, a.start + a.axis.size - type.axis(a.label).size};
    int64_t low = 0, high = size(product, a.label) - 1;
    const int64_t last = high;
    for (int64_t number = 0; number < a.stride; ++number) {
      const ResultAxis::Share share = share_along(product, a, number);
      low = std::min(low, share.low()), high = std::max(high, share.high());
    }
    return {Poly(-low), Poly(high - last)};
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
