// SPDX-License-Identifier: Apache-2.0
// Adding up what reached a value. The gradients of slices (q, k and v of one packed projection) come back as pieces padded
// with zeros; pieces that lie side by side are joined by one concat, so that no zero is added. The rest is added, values
// with few axes first.
#include <algorithm>
#include <unordered_map>

#include "compiler/autodiff/masked.h"

namespace einc {
namespace {

// A contribution that is zero outside [before, size - after) of one axis of its value.
struct Piece {
  NodeId inner;
  int axis = -1;
  Poly before, after;
};

std::optional<Piece> as_piece(const Graph& graph, NodeId value) {
  const Node& node = graph[value];
  if (node.op != Op::pad || node.as<PadAttr>().value != ScalarValue(Poly(0))) return std::nullopt;
  const PadAttr& attr = node.as<PadAttr>();
  Piece piece;
  for (int i = 0; i < node.type.rank(); ++i) {
    const Poly &before = attr.before[static_cast<size_t>(i)], &after = attr.after[static_cast<size_t>(i)];
    if (before.is_zero() && after.is_zero()) continue;
    if (piece.axis >= 0) return std::nullopt;
    piece = {node.operands[0], i, before, after};
  }
  if (piece.axis < 0) return std::nullopt;
  return piece;
}

NodeId join(Builder& build, const std::vector<Piece>& run) {
  std::vector<NodeId> parts;
  for (const Piece& piece : run) parts.push_back(piece.inner);
  const int axis = run[0].axis;
  const NodeId whole = build.concat(parts, axis);
  if (run.front().before.is_zero() && run.back().after.is_zero()) return whole;
  const size_t rank = build.type(whole).axes.size();
  std::vector<Poly> before(rank), after(rank);
  before[static_cast<size_t>(axis)] = run.front().before;
  after[static_cast<size_t>(axis)] = run.back().after;
  return build.pad(whole, std::move(before), std::move(after), Poly(0));
}

// Joins runs of pieces along the axis of the first piece found, where each starts at the place the one before it ends.
void join_pieces(Builder& build, std::vector<Partial>& contributions) {
  std::vector<std::optional<Piece>> pieces;
  std::unordered_map<Poly, size_t> starts;
  std::optional<size_t> first;
  for (size_t i = 0; i < contributions.size(); ++i) {
    pieces.push_back(as_piece(build.graph(), contributions[i].value));
    if (!pieces[i]) continue;
    if (!first) first = i;
    const bool alike = pieces[i]->axis == pieces[*first]->axis && contributions[i].axes == contributions[*first].axes;
    if (!alike || !starts.emplace(pieces[i]->before, i).second) pieces[i].reset();
  }
  if (starts.size() < 2) return;
  const auto next = [&](size_t i) -> std::optional<size_t> {
    const auto it = starts.find(pieces[i]->before + build.type(pieces[i]->inner).axis(pieces[i]->axis).size);
    return it == starts.end() ? std::nullopt : std::optional(it->second);
  };
  std::vector<bool> follows(contributions.size(), false), joined(contributions.size(), false);
  for (size_t i = 0; i < contributions.size(); ++i)
    if (pieces[i])
      if (const auto n = next(i)) follows[*n] = true;
  std::vector<Partial> runs;
  for (size_t i = 0; i < contributions.size(); ++i) {
    if (!pieces[i] || follows[i] || !next(i)) continue;
    std::vector<Piece> run;
    for (std::optional<size_t> at = i; at; at = next(*at)) {
      run.push_back(*pieces[*at]);
      joined[*at] = true;
    }
    runs.push_back({join(build, run), contributions[i].axes});
  }
  std::vector<Partial> rest;
  for (size_t i = 0; i < contributions.size(); ++i)
    if (!joined[i]) rest.push_back(contributions[i]);
  rest.insert(rest.end(), runs.begin(), runs.end());
  contributions = std::move(rest);
}

// What is masked alike is added first and masked once: takes the masks off then.
std::vector<GradientMask> common_masks(const Graph& graph, std::vector<Partial>& contributions) {
  if (contributions.size() < 2) return {};
  std::vector<Masked> parts;
  for (const Partial& contribution : contributions) {
    parts.push_back(take_off_masks(graph, contribution));
    if (parts.back().masks.empty() || !same_masks(parts.back().masks, parts[0].masks)) return {};
  }
  for (size_t i = 0; i < parts.size(); ++i) contributions[i] = parts[i].value;
  return parts[0].masks;
}

// The iteration that a value was made in, of a loop that stands right inside `outside`; 0 where it is in none.
uint32_t iteration_within(const Graph& graph, NodeId value, uint32_t outside) {
  uint32_t context = graph[value].origin.loop_context;
  while (context != 0 && graph.loop_contexts[context].parent != outside) context = graph.loop_contexts[context].parent;
  return context;
}

// True where several iterations of a loop read a value from outside of it: each but one adds what it contributes, so the additions are the
// iterations' (costs are told by loop).
bool is_read_by_iterations(const Graph& graph, const std::vector<Partial>& contributions, uint32_t outside) {
  const uint32_t first = iteration_within(graph, contributions[0].value, outside);
  return first != 0 && std::ranges::any_of(contributions, [&](const Partial& p) {
           const uint32_t other = iteration_within(graph, p.value, outside);
           return other != 0 && other != first && graph.loop_contexts[other].loop == graph.loop_contexts[first].loop;
         });
}

}  // namespace

Partial accumulate(Builder& build, std::vector<Partial> contributions, const std::vector<Axis>& frame) {
  if (contributions.size() > 1) join_pieces(build, contributions);
  std::stable_sort(contributions.begin(), contributions.end(),
                   [](const Partial& a, const Partial& b) { return a.axes.size() < b.axes.size(); });
  const std::vector<GradientMask> masks = common_masks(build.graph(), contributions);
  Partial total = contributions[0];
  const uint32_t outside = build.origin.loop_context;
  const bool by_iterations = is_read_by_iterations(build.graph(), contributions, outside);
  for (size_t i = 1; i < contributions.size(); ++i) {
    const Partial operands[] = {total, contributions[i]};
    if (by_iterations) build.origin.loop_context = build.graph()[contributions[i].value].origin.loop_context;
    total = apply_elementwise(build, MapFn::add, operands, frame);
  }
  build.origin.loop_context = outside;
  return put_on_masks(build, total, masks, frame);
}

}  // namespace einc
