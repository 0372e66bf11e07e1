// SPDX-License-Identifier: Apache-2.0
// First and second derivatives of every op that is not elementwise.
#include "tests/gradient/ops/check.h"

namespace einc::test {
namespace {

const Poly a = Poly::dim("a"), b = Poly::dim("b"), c = Poly::dim("c");

NodeId squared(const Params& p, NodeId x) { return p.build.map(MapFn::mul, {x, x}); }
NodeId tanh(const Params& p, NodeId x) { return p.build.map(MapFn::tanh, {x}); }

TEST_CASE("reductions and scans") {
  for (const ReduceFn fn : {ReduceFn::sum, ReduceFn::max, ReduceFn::min}) {
    check_case({std::string(to_string(fn)), [&](const Params& p) { return p.build.reduce(fn, squared(p, p.cube), {1}); }});
    check_case({std::string(to_string(fn)) + " of all", [&](const Params& p) {
                  return tanh(p, p.build.reduce(fn, tanh(p, p.cube), {0, 1, 2}));
                }});
  }
  check_case({"prod", [](const Params& p) { return p.build.reduce(ReduceFn::prod, p.cube, {0, 2}); }, 0.5, 1.5});
  check_case({"cumsum", [](const Params& p) { return squared(p, p.build.cumulate(ReduceFn::sum, p.cube, 1, Direction::forward)); }});
  check_case({"cumsum from the end",
              [](const Params& p) { return squared(p, p.build.cumulate(ReduceFn::sum, tanh(p, p.cube), 2, Direction::reverse)); }});
}

TEST_CASE("running products, extremes and logarithms of sums") {
  const auto running = [](const Params& p, ReduceFn fn) { return p.build.cumulate(fn, p.cube, 1, Direction::forward); };
  check_case({"cumprod", [&](const Params& p) { return running(p, ReduceFn::prod); }});
  check_case({"cumprod of squares", [&](const Params& p) { return squared(p, running(p, ReduceFn::prod)); }, 0.5, 1.5});
  check_case({"cumprod from the end", [](const Params& p) { return p.build.cumulate(ReduceFn::prod, p.cube, 2, Direction::reverse); }});
  check_case({"cummax", [&](const Params& p) { return squared(p, running(p, ReduceFn::max)); }});
  check_case({"cummin", [&](const Params& p) { return squared(p, running(p, ReduceFn::min)); }});
  check_case({"logcumsumexp", [&](const Params& p) { return tanh(p, running(p, ReduceFn::logsumexp)); }});
  check_case({"logcumsumexp from the end",
              [](const Params& p) { return tanh(p, p.build.cumulate(ReduceFn::logsumexp, p.cube, 2, Direction::reverse)); }});
  // Zeros: of two, of one, of none in a line; relu leaves them exact, and 0.2 keeps finite differences off its kink.
  check_case({"cumprod of zeros", [](const Params& p) {
                const NodeId positive = p.build.map(MapFn::greater, {p.cube, p.build.constant(0.3)});
                const NodeId zero = p.build.map(MapFn::where, {positive, p.cube, p.build.constant(Poly(0))});
                return p.build.cumulate(ReduceFn::prod, zero, 2, Direction::forward);
              }});
}

TEST_CASE("orders") {
  const auto taken = [](const Params& p, ReduceFn fn, Poly count) {
    const NodeId where = p.build.top_k_index(p.cube, 2, count, fn);
    return p.build.gather(p.cube, where, GatherAttr{2, {0, 1, kNoAxis}, {0, 1, 2}}, p.build.type(where).axes);
  };
  check_case({"sort", [&](const Params& p) { return squared(p, taken(p, ReduceFn::min, c)); }});
  check_case({"the two largest", [&](const Params& p) { return squared(p, taken(p, ReduceFn::max, Poly(2))); }});
}

TEST_CASE("softmax, logsumexp, dropout") {
  check_case({"softmax", [](const Params& p) { return p.build.softmax(p.cube, 1); }});
  check_case({"logsumexp", [](const Params& p) { return p.build.logsumexp(p.cube, {0, 2}); }});
  check_case(
      {"softmax of a mean", [](const Params& p) { return p.build.reduce(ReduceFn::max, p.build.softmax(squared(p, p.x), 1), {0}); }});
  check_case({"dropout", [](const Params& p) { return squared(p, p.build.dropout(tanh(p, p.cube), 0.4, "drop")); }});
}

TEST_CASE("contractions") {
  check_case({"matrices", [](const Params& p) { return tanh(p, p.build.contract(p.x, p.square, {0, 2}, {2, 1}, 2)); }});
  check_case({"transposed result", [](const Params& p) { return p.build.contract(p.cube, p.x, {1, 3, 0}, {2, 3}, 3); }});
  check_case({"batch", [](const Params& p) { return p.build.contract(p.cube, p.x, {0, 2, 1}, {0, 2}, 2); }});
  check_case({"vector", [](const Params& p) { return p.build.contract(p.square, p.v, {0, 1}, {1}, 1); }});
  check_case({"dot", [](const Params& p) { return tanh(p, p.build.contract(p.x, p.y, {0, 1}, {0, 1}, 0)); }});
  check_case({"of itself", [](const Params& p) { return p.build.contract(p.square, p.square, {0, 2}, {2, 1}, 2); }});
}

TEST_CASE("views") {
  check_case({"permute", [](const Params& p) { return squared(p, p.build.permute(p.cube, {2, 0, 1})); }});
  check_case({"broadcast", [](const Params& p) { return squared(p, p.build.broadcast(p.x, {0, 2}, {{"a", a}, {"c", c}, {"b", b}})); }});
  check_case({"merge and split", [](const Params& p) {
                const NodeId flat = squared(p, p.build.merge(p.cube, {1, 2}, {{"a", a}, {"(b c)", b * c}}));
                return squared(p, p.build.split(flat, {1, 2}, {{"a", a}, {"c", c}, {"b", b}}));
              }});
  check_case({"unit axes", [](const Params& p) {
                const NodeId unit = p.build.merge(p.x, {1, 0, 1}, {{"a", a}, {"", Poly(1)}, {"b", b}});
                return p.build.drop_unit(squared(p, unit), 1);
              }});
  check_case({"diagonal", [](const Params& p) { return squared(p, p.build.diagonal(p.square, {0, 0})); }});
  check_case({"diagonal then sum", [](const Params& p) {
                return p.build.reduce(ReduceFn::sum, p.build.diagonal(squared(p, p.square), {0, 0}), {0});
              }});
}

TEST_CASE("slices, steps and turns") {
  check_case({"slice", [](const Params& p) { return squared(p, p.build.slice(p.cube, 2, Poly(1), Poly(2))); }});
  check_case({"every second", [](const Params& p) { return squared(p, p.build.slice(p.cube, 2, Poly(1), Poly(2), 2)); }});
  check_case({"turned", [](const Params& p) { return squared(p, p.build.slice(p.cube, 2, c - 1, c, -1)); }});
  check_case({"every second, turned", [](const Params& p) { return squared(p, p.build.slice(p.cube, 2, c - 1, Poly(2), -2)); }});
  check_case({"three picks", [](const Params& p) {
                NodeId product;
                for (int i = 2; i >= 0; --i) {
                  const NodeId pick = p.build.drop_unit(p.build.slice(p.x, 1, Poly(i), Poly(1)), 1);
                  product = product.valid() ? p.build.map(MapFn::mul, {product, pick}) : pick;
                }
                return product;
              }});
  check_case({"overlapping slices", [](const Params& p) {
                const NodeId lo = p.build.slice(p.cube, 2, Poly(0), Poly(2)), mid = p.build.slice(p.cube, 2, Poly(1), Poly(2)),
                             hi = p.build.slice(p.cube, 2, Poly(2), Poly(2));
                return p.build.map(MapFn::mul, {p.build.map(MapFn::mul, {lo, mid}), hi});
              }});
}

TEST_CASE("pad, concat, window, fold") {
  check_case({"pad", [](const Params& p) { return squared(p, p.build.pad(p.x, {Poly(0), Poly(2)}, {Poly(1), Poly(1)}, Poly(3))); }});
  check_case({"concat", [](const Params& p) {
                const NodeId parts[] = {p.x, tanh(p, p.y), p.x};
                return squared(p, p.build.concat(parts, 1));
              }});
  check_case({"concat summed", [](const Params& p) {
                const NodeId parts[] = {p.x, p.y};
                return p.build.reduce(ReduceFn::sum, p.build.concat(parts, 1), {0, 1});
              }});
  check_case({"window", [](const Params& p) {
                return squared(p, p.build.window(p.cube, 2, {Poly(1), Poly(1)}, {{"h", c - 1}, {"k", Poly(2)}}));
              }});
  check_case({"fold", [](const Params& p) { return squared(p, p.build.fold(p.cube, 1, {Poly(1), Poly(1)}, {"h", b + c - 1})); }});
}

TEST_CASE("indexed access") {
  const auto rows = [](const Params& p) {  // square[b = ids]: [a c b]
    return p.build.gather(p.square, p.ids, GatherAttr{0, {kNoAxis, 2}, {0, 1}}, {{"a", a}, {"c", c}, {"b", b}});
  };
  check_case({"gather", [&](const Params& p) { return squared(p, rows(p)); }});
  check_case({"gather of shared axes", [](const Params& p) {  // x[b = ids] with a aligned: [a c]
                return squared(p, p.build.gather(p.x, p.ids, GatherAttr{1, {0, kNoAxis}, {0, 1}}, {{"a", a}, {"c", c}}));
              }});
  check_case({"scatter_add", [&](const Params& p) {
                return squared(p, p.build.scatter_add(rows(p), p.ids, GatherAttr{0, {kNoAxis, 2}, {0, 1}}, p.build.type(p.square).axes));
              }});
  for (const Op op : {Op::scatter_max, Op::scatter_min})
    check_case({std::string(to_string(op)), [&](const Params& p) {  // ids [a c], every place met: no infinity is multiplied
                  const NodeId place = p.build.iota({"c", c});
                  const NodeId all = p.build.map(MapFn::floor_div, {place, p.build.constant(Poly(2), DType::i32)});
                  return squared(p, p.build.scatter_extreme(op, p.cube, all, GatherAttr{2, {0, 1, kNoAxis}, {2}},
                                                            {{"a", a}, {"b", b}, {"n", Poly(2)}}));
                }});
  check_case({"scatter_set", [](const Params& p) {  // y into x at one row each
                const NodeId row = p.build.reduce(ReduceFn::sum, p.cube, {0, 1, 2});
                const NodeId place = p.build.iota({"a", a});
                const NodeId updates = p.build.broadcast(row, {}, {{"a", a}});
                return squared(p, p.build.scatter_set(squared(p, p.x), updates, place, GatherAttr{1, {0, kNoAxis}, {0}}));
              }});
}

TEST_CASE("casts go back to the operand's dtype") {
  check_case({"cast", [](const Params& p) { return squared(p, p.build.cast(p.x, DType::f64)); }});
}

}  // namespace
}  // namespace einc::test
