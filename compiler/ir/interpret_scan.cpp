// SPDX-License-Identifier: Apache-2.0
// A scan as its definition reads: the body's graph interpreted once for each iteration, states handed on. Equal to the loop unrolled.
#include <algorithm>

#include "compiler/ir/interpret_ops.h"
#include "compiler/ir/scan.h"

namespace einc {
namespace {

// Copies element t of `whole`, along its first axis, from or to `part`.
template <class Elements>
void copy_slice(Elements& to, int64_t at, const Elements& from, int64_t begin, int64_t count) {
  std::copy_n(from.begin() + begin, count, to.begin() + at);
}

// Elements that part t and the whole share: of blocks the last part reaches beyond it.
int64_t shared(const Tensor& whole, int64_t t, const Tensor& part) { return std::min(part.count(), whole.count() - t * part.count()); }

Tensor slice_of(const Tensor& whole, int64_t t, const std::vector<int64_t>& shape) {
  Tensor part = Tensor::zeros(whole.dtype, shape);
  const int64_t begin = t * part.count(), count = shared(whole, t, part);
  copy_slice(part.reals, 0, whole.reals, part.is_real() ? begin : 0, part.is_real() ? count : 0);
  copy_slice(part.ints, 0, whole.ints, part.is_real() ? 0 : begin, part.is_real() ? 0 : count);
  return part;
}

void put_slice(Tensor& whole, int64_t t, const Tensor& part) {
  const int64_t begin = t * part.count(), count = shared(whole, t, part);
  copy_slice(whole.reals, part.is_real() ? begin : 0, part.reals, 0, part.is_real() ? count : 0);
  copy_slice(whole.ints, part.is_real() ? 0 : begin, part.ints, 0, part.is_real() ? 0 : count);
}

// Of what iterations collect, by result: its shape. Blocks stand one behind the other along an axis that slices have already.
std::vector<std::vector<int64_t>> shapes_of_results(const Evaluation& e, const ScanSources& sources) {
  const ScanAttr& attr = e.node.as<ScanAttr>();
  std::vector<std::vector<int64_t>> shapes;
  for (const NodeId state : sources.states) {
    shapes.push_back(shape_of(*attr.body, state, e.dims));
    shapes.back().insert(shapes.back().begin(), e.value_of(attr.length));
  }
  for (uint32_t i = 0; i < e.graph.size(); ++i) {
    const Node& node = e.graph.nodes[i];
    if (node.op != Op::scan_result || &e.graph[node.operands[0]] != &e.node) continue;
    const auto r = static_cast<size_t>(node.as<ScanResultAttr>().index);
    if (r >= static_cast<size_t>(attr.carries)) shapes[r] = shape_of(e.graph, NodeId{i}, e.dims);
  }
  return shapes;
}

}  // namespace

std::vector<Tensor> interpret_scan(Evaluation& e) {
  const ScanAttr& attr = e.node.as<ScanAttr>();
  const Graph& body = *attr.body;
  const ScanSources sources = scan_sources(body);
  const int64_t length = e.value_of(attr.length);
  const size_t wholes = static_cast<size_t>(whole_operands(e.node)), slices = static_cast<size_t>(attr.slices),
               carries = static_cast<size_t>(attr.carries);
  TensorMap inputs, states;
  std::vector<Tensor> results(sources.states.size());
  for (size_t k = 0; k < wholes; ++k) inputs[scan_name(k)] = *e.in[k];
  const std::vector<std::vector<int64_t>> shapes = shapes_of_results(e, sources);
  for (size_t c = 0; c < sources.states.size(); ++c) {
    const DType dtype = body.type(sources.states[c]).dtype;
    states[scan_name(c)] = c < carries ? *e.in[wholes + slices + c] : Tensor::zeros(dtype, shape_of(body, sources.states[c], e.dims));
    if (c >= carries) results[c] = Tensor::zeros(dtype, shapes[c]);
  }
  const std::vector<bool> constant = constant_nodes(body);
  InterpretOptions options = e.options;
  options.watch.clear();
  const int64_t count = iterations_of(e.options.iterations, length, attr.all_pieces);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = attr.direction == Direction::forward ? i : count - 1 - i;
    for (size_t k = wholes; k < wholes + slices; ++k)
      if (k < sources.inputs.size() && sources.inputs[k].valid())
        inputs[scan_name(k)] = slice_of(*e.in[k], t, shape_of(body, sources.inputs[k], e.dims));
    options.iterations = iteration_inside(e.options.iterations, t, length, attr.all_pieces);
    InterpretResult made = interpret_bound(body, e.dims, inputs, states, options);
    for (uint32_t n = 0; n < body.size(); ++n)
      if (!constant[n]) e.counts += made.counts[n];
    for (size_t c = 0; c < results.size(); ++c) {
      Tensor& next = made.states.at(scan_name(c));
      if (c < carries)
        states[scan_name(c)] = std::move(next);
      else
        put_slice(results[c], t, next);
    }
  }
  for (size_t c = 0; c < carries; ++c) results[c] = std::move(states[scan_name(c)]);
  return results;
}

}  // namespace einc
