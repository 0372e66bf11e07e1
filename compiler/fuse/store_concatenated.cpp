// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/store_concatenated.h"

#include <algorithm>
#include <map>
#include <optional>

#include "runtime/base/check.h"

namespace einc {
namespace {

// One of the values, as the kernel that puts them side by side reads and stores it.
struct Piece {
  struct Along {
    AxisId axis = 0;          // of that kernel
    int64_t from = 0, n = 0;  // of the axis
  };
  NodeId node;
  std::vector<Along> along;
  Affine read;
};

// A kernel that does nothing but store pieces one after another, along an axis, or those along another.
struct Concatenation {
  NodeId whole;
  const Kernel* kernel = nullptr;
  Affine stored;
  std::vector<Piece> pieces;
};

std::optional<Piece> piece_of(const GraphKernel& k, const Scalar& load) {
  if (load.guards.empty() || !load.index.dynamic.empty()) return std::nullopt;
  Piece piece{k.buffers[load.slot], {}, load.index.affine};
  int64_t before = 0;
  for (const Range& range : load.guards) {
    const Affine& place = range.index.affine;
    if (!range.index.dynamic.empty() || place.terms.size() != 1 || place.terms[0].coefficient != 1 || range.lower != 0) return std::nullopt;
    piece.along.push_back({place.terms[0].axis, -place.constant, range.upper});
    before += piece.along.back().from * piece.read.coefficient(place.terms[0].axis);
  }
  return piece.read.constant == -before ? std::optional(std::move(piece)) : std::nullopt;
}

std::optional<Concatenation> concatenation(const BoundGraph& graph, const GraphKernel& k) {
  const Kernel& kernel = *k.kernel;
  // What else moves elements may leave out some, or put others beside them.
  const auto is = [&](NodeId id, Op op) { return graph[id].op == op; };
  const auto keeps_all = [&](NodeId id) { return is(id, Op::concat) || is(id, Op::split) || is(id, Op::merge); };
  if (!std::ranges::all_of(k.group.members, keeps_all)) return std::nullopt;
  if (std::ranges::none_of(k.group.members, [&](NodeId id) { return is(id, Op::concat); })) return std::nullopt;
  if (kernel.stages.size() != 1 || !kernel.stages[0].axes.empty() || kernel.stages[0].stores.size() != 1) return std::nullopt;
  const Store& store = kernel.stages[0].stores[0];
  if (store.mode != StoreMode::set || !store.index.dynamic.empty() || store.index.affine.constant != 0) return std::nullopt;
  Concatenation found{k.buffers[store.buffer], &kernel, store.index.affine, {}};
  for (const Scalar& v : kernel.values) {
    if (v.kind != ScalarKind::load) continue;
    const auto piece = piece_of(k, v);
    if (!piece || kernel.buffers[v.slot].dtype != kernel.buffers[store.buffer].dtype) return std::nullopt;
    found.pieces.push_back(*piece);
  }
  if (found.pieces.size() + 1 != kernel.buffers.size()) return std::nullopt;
  return found;
}

// Where an element lies in the whole that lies at `stored` in the piece.
std::optional<Affine> place_in_whole(const Concatenation& c, const Piece& piece, const Kernel& writer, const Affine& stored) {
  struct Axis {
    AxisId id;
    int64_t step, extent, used;
  };
  std::vector<Axis> axes;
  for (AxisId a : c.kernel->outer) {
    const auto along = std::ranges::find(piece.along, a, &Piece::Along::axis);
    const int64_t extent = along == piece.along.end() ? c.kernel->extent(a) : along->n;
    if (extent > 1) axes.push_back({a, piece.read.coefficient(a), extent, 0});
  }
  std::ranges::sort(axes, std::ranges::greater{}, &Axis::step);
  Affine place;
  for (const Piece::Along& along : piece.along) place.constant += along.from * c.stored.coefficient(along.axis);
  if (stored.constant != 0) return std::nullopt;
  for (const Affine::Term& term : stored.terms) {
    if (writer.extent(term.axis) == 1) continue;
    const auto axis = std::ranges::find_if(
        axes, [&](const Axis& a) { return a.step > 0 && a.step <= term.coefficient && term.coefficient % a.step == 0; });
    if (axis == axes.end()) return std::nullopt;
    const int64_t times = term.coefficient / axis->step;
    axis->used += times * (writer.extent(term.axis) - 1);
    if (axis->used >= axis->extent) return std::nullopt;
    place = place + Affine::of_axis(term.axis, times * c.stored.coefficient(axis->id));
  }
  return place;
}

class ConcatStorer {
 public:
  ConcatStorer(const BoundGraph& graph, const std::vector<NodeId>& kept, ConcatenatedBy by, KernelList& list)
      : graph_(graph), kept_(kept), by_(by), list_(list) {}

  void run() {
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      for (NodeId id : list_.kernels[k].buffers)
        if (id.valid()) users_[id].push_back(k);
    std::vector<bool> gone(list_.kernels.size(), false);
    for (size_t k = 0; k < list_.kernels.size(); ++k)
      if (const auto found = concatenation(graph_, list_.kernels[k])) gone[k] = take(*found, k);
    size_t k = 0;
    std::erase_if(list_.kernels, [&](const GraphKernel&) { return gone[k++]; });
  }

 private:
  // All pieces or none.
  bool take(const Concatenation& c, size_t reader) {
    std::map<size_t, Kernel> changed;
    for (const Piece& piece : c.pieces) {
      const std::vector<size_t>& users = users_[piece.node];
      if (users.size() != 2 || users[1] != reader || std::ranges::find(kept_, piece.node) != kept_.end()) return false;
      const GraphKernel& writer = list_.kernels[users[0]];
      if (by_ == ConcatenatedBy::attention ? !writer.kernel->attention : !writer.kernel->contraction) return false;
      const auto slot = static_cast<uint16_t>(std::ranges::find(writer.buffers, piece.node) - writer.buffers.begin());
      Kernel& kernel = changed.try_emplace(users[0], *writer.kernel).first->second;
      if (kernel.buffers[slot].access != BufferAccess::write) return false;
      kernel.buffers[slot].count = graph_.count_in_memory(c.whole);
      for (std::vector<Store>* stores : stores_of(kernel))
        for (Store& store : *stores) {
          if (store.buffer != slot) continue;
          if (store.mode != StoreMode::set || !store.index.dynamic.empty()) return false;
          const auto place = place_in_whole(c, piece, kernel, store.index.affine);
          if (!place) return false;
          store.index = *place;
        }
    }
    for (const Piece& piece : c.pieces) {
      GraphKernel& writer = list_.kernels[users_[piece.node][0]];
      std::ranges::replace(writer.buffers, piece.node, c.whole);
      list_.in_memory[piece.node.index] = false;
    }
    for (auto& [k, kernel] : changed) {
      const std::string problem = verify(kernel);
      EINC_CHECK(problem.empty(), "{}\n{}", problem, to_string(kernel));
      list_.kernels[k].kernel = std::make_shared<Kernel>(std::move(kernel));
    }
    return true;
  }

  static std::vector<std::vector<Store>*> stores_of(Kernel& kernel) {
    std::vector<std::vector<Store>*> lists;
    for (Stage& stage : kernel.stages) lists.push_back(&stage.stores);
    if (kernel.attention)
      for (AttentionStep& step : kernel.attention->steps) lists.push_back(&step.stores);
    return lists;
  }

  const BoundGraph& graph_;
  const std::vector<NodeId>& kept_;
  const ConcatenatedBy by_;
  KernelList& list_;
  std::map<NodeId, std::vector<size_t>> users_;  // kernels, in order
};

}  // namespace

void store_concatenated(const BoundGraph& graph, const std::vector<NodeId>& kept, ConcatenatedBy by, KernelList& list) {
  ConcatStorer(graph, kept, by, list).run();
}

}  // namespace einc
