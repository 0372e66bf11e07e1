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

Tensor slice_of(const Tensor& whole, int64_t t) {
  Tensor part = Tensor::zeros(whole.dtype, {whole.shape.begin() + 1, whole.shape.end()});
  copy_slice(part.reals, 0, whole.reals, part.is_real() ? t * part.count() : 0, static_cast<int64_t>(part.reals.size()));
  copy_slice(part.ints, 0, whole.ints, part.is_real() ? 0 : t * part.count(), static_cast<int64_t>(part.ints.size()));
  return part;
}

void put_slice(Tensor& whole, int64_t t, const Tensor& part) {
  copy_slice(whole.reals, part.is_real() ? t * part.count() : 0, part.reals, 0, static_cast<int64_t>(part.reals.size()));
  copy_slice(whole.ints, part.is_real() ? 0 : t * part.count(), part.ints, 0, static_cast<int64_t>(part.ints.size()));
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
  for (size_t c = 0; c < sources.states.size(); ++c) {
    std::vector<int64_t> shape = shape_of(body, sources.states[c], e.dims);
    const DType dtype = body.type(sources.states[c]).dtype;
    states[scan_name(c)] = c < carries ? *e.in[wholes + slices + c] : Tensor::zeros(dtype, shape);
    shape.insert(shape.begin(), length);
    if (c >= carries) results[c] = Tensor::zeros(dtype, shape);
  }
  const std::vector<bool> constant = constant_nodes(body);
  InterpretOptions options = e.options;
  options.watch.clear();
  for (int64_t i = 0; i < length; ++i) {
    const int64_t t = attr.direction == Direction::forward ? i : length - 1 - i;
    for (size_t k = wholes; k < wholes + slices; ++k) inputs[scan_name(k)] = slice_of(*e.in[k], t);
    options.iterations = iteration_inside(e.options.iterations, t, length, attr.continues);
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
