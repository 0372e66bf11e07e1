// SPDX-License-Identifier: Apache-2.0
// Precision assignment: what each node gets under a policy, and where casts stand.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "compiler/ir/interpret.h"
#include "compiler/ir/verify.h"
#include "compiler/precision/assign.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;

namespace {

const Poly n = Poly::dim("n"), m = Poly::dim("m");

Type matrix(DType dtype = DType::real) { return {dtype, {{"n", n}, {"m", n}}}; }

Graph assigned(const Graph& graph, Policy policy) {
  Graph result = assign_precision(graph, policy);
  for (const std::string& problem : verify(result)) FAIL_CHECK(problem);
  for (const Node& node : result.nodes) CHECK(node.type.dtype != DType::real);
  return result;
}

std::vector<const Node*> all(const Graph& graph, Op op) {
  std::vector<const Node*> found;
  for (const Node& node : graph.nodes)
    if (node.op == op) found.push_back(&node);
  return found;
}

DType output_dtype(const Graph& graph, size_t i = 0) { return graph.type(graph.outputs[i].node).dtype; }

NodeId matmul(Builder& b, NodeId x, NodeId y) { return b.contract(x, y, {0, 2}, {2, 1}, 2); }

}  // namespace

TEST_CASE("f32 adds no casts") {
  const Graph g = two_layer().graph;
  const Graph result = assigned(g, Policy::f32);
  CHECK(result.size() == g.size());
  for (const Node& node : result.nodes) CHECK(node.type.dtype == DType::f32);
}

TEST_CASE("tf32 is f32 in memory, and the graph says so") {
  const Graph g = two_layer().graph, result = assigned(g, Policy::tf32);
  CHECK(result.size() == g.size());
  for (const Node& node : result.nodes) CHECK(node.type.dtype == DType::f32);
  CHECK(result.policy == Policy::tf32);
}

TEST_CASE("bf16: contractions low, masters, gradients, losses and updates f32, one cast of each value") {
  const Graph g = assigned(two_layer().graph, Policy::bf16);
  for (const Node* c : all(g, Op::contract)) {
    for (NodeId x : c->operands) CHECK(g.type(x).dtype == DType::bf16);
    const bool parameter_gradient = c->origin.phase == Phase::backward && c->type.axis(0).name != Name("B");
    CHECK(c->type.dtype == (parameter_gradient ? DType::f32 : DType::bf16));
    CHECK_FALSE(c->reason.empty());
  }
  for (const Node* p : all(g, Op::param)) CHECK(p->type.dtype == DType::f32);
  for (const Update& gradient : g.gradients) CHECK(g.type(gradient.value).dtype == DType::f32);
  for (const Update& update : g.updates) CHECK(g.type(update.value).dtype == DType::f32);
  CHECK(g.type(g.loss).dtype == DType::f32);
  // x, w1, w2 and the gradient of h2 (a loss value, f32).
  const auto casts = all(g, Op::cast);
  CHECK(casts.size() == 3);
  for (const Node* cast : casts) CHECK(cast->origin.phase == Phase::forward);
  CHECK(g.policy == Policy::bf16);
}

TEST_CASE("normalisation and softmax are f32, what follows a contraction is low") {
  Graph g;
  Builder b(g);
  const NodeId x = b.input("x", matrix());
  const NodeId w = b.param({"w", {}, false}, matrix());
  const NodeId bias = b.param({"b", {}, false}, Type{DType::real, {{"m", n}}});
  const NodeId h = matmul(b, x, w);
  const NodeId shifted = b.map(MapFn::add, std::array{h, bias}, std::array{AxisList{0, 1}, AxisList{1}}, matrix().axes, DType::real);
  const NodeId up = b.map(MapFn::gelu, {shifted});
  const NodeId half = b.map(MapFn::mul, {up, b.constant(0.5)});
  const NodeId mean = b.reduce(ReduceFn::sum, half, {1});
  const NodeId centred = b.map(MapFn::sub, std::array{half, mean}, std::array{AxisList{0, 1}, AxisList{0}}, matrix().axes, DType::real);
  const NodeId out = matmul(b, centred, w);
  for (NodeId id : {h, shifted, up, half, mean, centred, out}) g.outputs.push_back({"y", id});
  const Graph r = assigned(g, Policy::bf16);
  const DType expected[] = {DType::bf16, DType::bf16, DType::bf16, DType::bf16, DType::f32, DType::f32, DType::bf16};
  for (size_t i = 0; i < std::size(expected); ++i) CHECK_MESSAGE(output_dtype(r, i) == expected[i], i);
  CHECK(all(r, Op::cast).size() == 3);  // x, w once, centred
}

TEST_CASE("a chain of elementwise nodes is rounded where it ends") {
  Graph g;
  Builder b(g);
  const NodeId w = b.param({"w", {}, false}, matrix());
  const NodeId h = matmul(b, b.input("x", matrix()), w);
  const NodeId inside = b.map(MapFn::exp, {h});
  const NodeId end = b.map(MapFn::mul, {inside, h});
  b.origin.pinned = true;
  const NodeId pinned = b.map(MapFn::tanh, {h}), shown = b.map(MapFn::sin, {h});
  b.origin.pinned = false;
  const NodeId other = b.map(MapFn::cos, {h});  // of the forward, and the backward reads it
  b.origin.phase = Phase::backward;
  const NodeId late = b.map(MapFn::add, {other, b.map(MapFn::neg, {h})});
  b.origin.phase = Phase::forward;
  g[pinned].type.dtype = DType::bf16;
  g.outputs.push_back({"end", matmul(b, end, w)});
  g.outputs.push_back({"pinned", b.map(MapFn::neg, {pinned})});
  g.outputs.push_back({"shown", shown});
  g.outputs.push_back({"late", late});
  const Graph r = assigned(g, Policy::bf16);
  const auto dtype = [&](MapFn fn) {
    for (const Node* node : all(r, Op::map))
      if (node->as<MapAttr>().fn == fn) return node->type.dtype;
    return DType::boolean;
  };
  CHECK(dtype(MapFn::exp) == DType::f32);
  CHECK(dtype(MapFn::mul) == DType::bf16);
  CHECK(dtype(MapFn::tanh) == DType::bf16);
  CHECK(dtype(MapFn::sin) == DType::bf16);
  CHECK(dtype(MapFn::cos) == DType::bf16);
  CHECK(dtype(MapFn::add) == DType::bf16);
}

TEST_CASE("a sum of products is f32 in a chain, but over a mesh, where devices may add it up") {
  for (const bool over_mesh : {false, true}) {
    Graph g;
    if (over_mesh) g.mesh.axes.push_back({"model", Poly(2)});
    Builder b(g);
    const NodeId x = b.input("x", matrix()), w = b.param({"w", {}, false}, matrix());
    const NodeId sum = b.map(MapFn::add, {b.map(MapFn::add, {matmul(b, x, w), matmul(b, w, x)}), matmul(b, w, w)});
    g.outputs.push_back({"y", b.map(MapFn::tanh, {b.map(MapFn::add, {sum, b.map(MapFn::exp, {x})})})});
    const Graph r = assigned(g, Policy::bf16);
    std::vector<DType> sums;
    for (const Node* node : all(r, Op::map))
      if (node->as<MapAttr>().fn == MapFn::add) sums.push_back(node->type.dtype);
    const DType expected = over_mesh ? DType::bf16 : DType::f32;
    CHECK(sums == std::vector<DType>{expected, expected, DType::f32});
  }
}

TEST_CASE("rows of a table are those of its narrow copy where a mesh leaves parts of it") {
  enum class Split { no, states, rows };
  for (const Split split : {Split::no, Split::states, Split::rows}) {
    Graph g;
    g.mesh.axes.push_back({"data", Poly(2)});
    if (split == Split::states) g.mesh.states.push_back(0);
    if (split == Split::rows) g.mesh.requests.push_back({Op::param, "w", 0, {0}});
    Builder b(g);
    const NodeId w = b.param({"w", {}, false}, matrix()), ids = b.input("ids", {DType::i32, {{"k", Poly(3)}}});
    const NodeId rows = b.gather(w, ids, GatherAttr{0, {kNoAxis, 1}, {0}}, {{"k", Poly(3)}, {"m", n}});
    g.outputs.push_back({"rows", rows});
    g.outputs.push_back({"product", matmul(b, w, w)});
    const Graph r = assigned(g, Policy::bf16);
    CHECK(output_dtype(r) == DType::bf16);
    const Node& gather = *all(r, Op::gather).at(0);
    CHECK(r[gather.operands[0]].op == (split == Split::no ? Op::param : Op::cast));
    CHECK(all(r, Op::cast).size() == (split == Split::no ? 2 : 1));  // the product's copy, and of the rows or of none
  }
}

TEST_CASE("a program that does not train stores what all readers take in fewer bits in those") {
  Graph g;
  Builder b(g);
  const NodeId w = b.param({"w", {}, false}, matrix()), table = b.param({"table", {}, false}, matrix());
  const NodeId scale = b.param({"scale", {}, false}, Type{DType::real, {{"m", n}}});
  const NodeId written = b.param({"written", {}, false}, matrix(DType::f32)), shown = b.param({"shown", {}, false}, matrix());
  const NodeId keys = b.state({"keys", {}}, matrix()), count = b.state({"count", {}}, matrix());
  const NodeId ids = b.input("ids", Type{DType::i32, {{"n", n}}});
  const NodeId rows = b.gather(table, ids, GatherAttr{0, {kNoAxis, 1}, {0}}, {{"n", n}, {"m", n}});
  NodeId h = matmul(b, matmul(b, rows, w), written);
  h = b.map(MapFn::mul, std::array{h, scale}, std::array{AxisList{0, 1}, AxisList{1}}, matrix().axes, DType::real);
  const NodeId kept = b.scatter_set(keys, matmul(b, h, w), ids, GatherAttr{0, {kNoAxis, 1}, {0}});
  g.updates.push_back({keys, kept});
  g.updates.push_back({count, b.map(MapFn::add, {count, b.map(MapFn::exp, {count})})});
  g.outputs.push_back({"y", matmul(b, matmul(b, h, kept), shown)});
  g.outputs.push_back({"shown", shown});
  const auto stored = [&](ParamStorage storage) {
    const Graph r = assign_precision(g, Policy::bf16, Fp8Scaling::current, storage);
    for (const std::string& problem : verify(r)) FAIL_CHECK(problem);
    std::map<std::string, DType> dtypes;
    for (const Node* p : all(r, Op::param)) dtypes[p->as<ParamAttr>().path.str()] = p->type.dtype;
    for (const Node* s : all(r, Op::state)) dtypes[s->as<StateAttr>().path.str()] = s->type.dtype;
    return dtypes;
  };
  for (const auto& [name, dtype] : stored(ParamStorage::masters)) CHECK_MESSAGE(dtype == DType::f32, name);
  for (const auto& [name, dtype] : stored(ParamStorage::as_read))
    CHECK_MESSAGE(dtype == (name == "w" || name == "table" || name == "keys" ? DType::bf16 : DType::f32), name);
}

TEST_CASE("elementwise work on inputs without a dtype is done in the policy's") {
  Graph g;
  Builder b(g);
  const NodeId a = b.input("a", matrix()), c = b.input("c", matrix());
  g.outputs.push_back({"y", b.map(MapFn::add, {a, c})});
  const NodeId wide = b.input("wide", matrix(DType::f32));
  g.outputs.push_back({"z", b.map(MapFn::relu, {wide})});
  const Graph r = assigned(g, Policy::bf16);
  CHECK(output_dtype(r, 0) == DType::bf16);
  CHECK(output_dtype(r, 1) == DType::f32);
  CHECK(all(r, Op::input)[0]->type.dtype == DType::f32);
}

TEST_CASE("pinned nodes and explicit casts keep their dtype") {
  Graph g;
  Builder b(g);
  const NodeId x = b.input("x", matrix()), w = b.param({"w", {}, false}, matrix());
  b.origin.pinned = true;
  const NodeId y = matmul(b, x, w);
  g[y].type.dtype = DType::f32;
  b.origin.pinned = false;
  g.outputs.push_back({"y", y});
  g.outputs.push_back({"z", b.cast(b.map(MapFn::relu, {y}), DType::f16)});
  const Graph r = assigned(g, Policy::bf16);
  CHECK(output_dtype(r, 0) == DType::f32);
  CHECK(output_dtype(r, 1) == DType::f16);
  for (NodeId x2 : all(r, Op::contract)[0]->operands) CHECK(r.type(x2).dtype == DType::bf16);
}

TEST_CASE("blocks override the file's policy") {
  Graph g;
  Builder b(g);
  g.policy = Policy::bf16;
  const NodeId x = b.input("x", matrix()), w = b.param({"w", {}, false}, matrix());
  const NodeId h = matmul(b, x, w);
  b.origin.policy = Policy::f32;
  g.outputs.push_back({"y", matmul(b, h, w)});
  const Graph r = assigned(g, Policy::inherit);
  const auto contractions = all(r, Op::contract);
  CHECK(contractions[0]->type.dtype == DType::bf16);
  CHECK(contractions[1]->type.dtype == DType::f32);
  for (NodeId operand : contractions[1]->operands) CHECK(r.type(operand).dtype == DType::f32);
}

TEST_CASE("f64 and written dtypes") {
  Graph g;
  Builder b(g);
  const NodeId x = b.input("x", matrix(DType::f64)), w = b.param({"w", {}, false}, matrix(DType::f64));
  g.outputs.push_back({"y", matmul(b, x, w)});
  const NodeId p = b.input("p", matrix(DType::bf16)), q = b.param({"q", {}, false}, matrix(DType::bf16));
  g.outputs.push_back({"z", matmul(b, p, q)});
  const Graph plain = assigned(g, Policy::inherit);
  CHECK(output_dtype(plain, 0) == DType::f64);
  CHECK(output_dtype(plain, 1) == DType::bf16);
  const Graph wide = assigned(g, Policy::f32);
  CHECK(output_dtype(wide, 0) == DType::f64);
  CHECK(output_dtype(wide, 1) == DType::f32);
}

TEST_CASE("fp8: e4m3 operands, e5m2 for gradients, bf16 results, every operand in its scale") {
  const Graph g = assigned(two_layer().graph, Policy::fp8);
  for (const Node* c : all(g, Op::contract)) {
    CHECK(c->type.dtype == DType::f32);
    for (NodeId x : c->operands) {
      const DType expected = c->origin.phase == Phase::backward && g[x].origin.phase == Phase::backward ? DType::f8e5m2 : DType::f8e4m3;
      CHECK(g.type(x).dtype == expected);
      CHECK(g[x].as<MapAttr>().fn == MapFn::div);
    }
  }
  int scaled = 0;
  for (const Node& node : g.nodes) scaled += node.type.dtype == DType::f8e4m3 || node.type.dtype == DType::f8e5m2;
  CHECK(scaled == 6);  // x, w1, h1, w2, and the gradients of h2 and h1
  // A product is as wide in memory as one of bf16 operands, also where a chain goes on with it; only gradients of params are wider.
  int products = 0;
  for (const Node* node : all(g, Op::map)) {
    if (g[node->operands[0]].op != Op::contract) continue;
    const bool of_param = std::ranges::any_of(g.gradients, [&](const Update& gradient) { return &g[gradient.value] == node; });
    CHECK(node->type.dtype == (of_param ? DType::f32 : DType::bf16));
    ++products;
  }
  CHECK(products == 5);
  for (const Update& gradient : g.gradients) CHECK(g.type(gradient.value).dtype == DType::f32);
}

TEST_CASE("fp8: products of activations alone are bf16, those of a cast, a view or a transposed view of a param are not") {
  Graph g;
  Builder b(g);
  const Type type{DType::real, {{"n", n}, {"n", n}}};
  const NodeId x = b.input("x", type), w = b.param({"w", {}, false}, type);
  g.outputs.push_back({"scores", matmul(b, x, x)});
  g.outputs.push_back({"turned", matmul(b, x, b.permute(w, {1, 0}))});
  g.outputs.push_back({"cast", matmul(b, b.cast(w, DType::bf16), x)});
  g.outputs.push_back({"function", matmul(b, x, b.map(MapFn::tanh, {w}))});
  const Graph r = assigned(g, Policy::fp8);
  const std::vector<const Node*> products = all(r, Op::contract);
  REQUIRE(products.size() == 4);
  const bool scaled[] = {false, true, true, false};
  for (size_t i = 0; i < 4; ++i)
    for (NodeId operand : products[i]->operands) CHECK(r.type(operand).dtype == (scaled[i] ? DType::f8e4m3 : DType::bf16));
}

TEST_CASE("fp8: large and small operands keep their values") {
  Graph g;
  Builder b(g);
  const Type type{DType::real, {{"n", Poly(2)}, {"n", Poly(2)}}};
  g.outputs.push_back({"y", matmul(b, b.input("x", type), b.param({"w", {}, false}, type))});
  const Graph r = assigned(g, Policy::fp8);
  TensorMap inputs, params;
  inputs.emplace("x", Tensor::of_reals({2, 2}, {1e6, 2e6, 3e6, -4e6}));
  params.emplace("w", Tensor::of_reals({2, 2}, {1e-9, 0, 0, 1e-9}));
  InterpretOptions options;
  options.arithmetic = Arithmetic::stored;
  const InterpretResult run = interpret(r, {}, inputs, params, {}, options);
  const double expected[] = {1e-3, 2e-3, 3e-3, -4e-3};
  for (size_t i = 0; i < 4; ++i) CHECK(run.outputs[0].second.reals[i] == doctest::Approx(expected[i]).epsilon(0.07));
}

TEST_CASE("fp8, delayed: each operand has the scale of the run before, and what is beyond it becomes the largest number") {
  Graph g;
  Builder b(g);
  const Type type{DType::real, {{"n", Poly(1)}, {"n", Poly(1)}}};
  g.outputs.push_back({"y", matmul(b, b.input("x", type), b.param({"w", {}, false}, type))});
  const Graph r = assign_precision(g, Policy::fp8, Fp8Scaling::delayed);
  for (const std::string& problem : verify(r)) FAIL_CHECK(problem);
  CHECK(all(r, Op::state).size() == 2);
  TensorMap states = initial_states(r, {}, 0);
  const Name of_x("fp8.0.amax");
  InterpretOptions options;
  options.arithmetic = Arithmetic::stored;
  const auto run = [&](double x, double w) {
    const TensorMap inputs{{Name("x"), Tensor::of_reals({1, 1}, {x})}}, params{{Name("w"), Tensor::of_reals({1, 1}, {w})}};
    InterpretResult result = interpret(r, {}, inputs, params, states, options);
    for (auto& [path, value] : result.states) states[path] = value;
    return result.outputs[0].second.reals[0];
  };
  CHECK(run(3, 2) == 6);    // the first scale is 1
  CHECK(run(1e6, 2) == 6);  // 3 is the largest that its scale lets through
  CHECK(states.at(of_x).reals[0] == 1e6);
  CHECK(run(-1e6, 2) == doctest::Approx(-2e6).epsilon(0.01));
  run(0, 2);
  CHECK(states.at(of_x).reals[0] == 1e6);
  run(std::numeric_limits<double>::infinity(), 2);
  CHECK(states.at(of_x).reals[0] == 1e6);
  CHECK(std::isnan(run(std::nan(""), 2)));
  CHECK(states.at(of_x).reals[0] == 1e6);
  CHECK(run(1e6, 2) == doctest::Approx(2e6).epsilon(0.01));
}

TEST_CASE("a cast stands below views, once for each buffer") {
  Graph g;
  Builder b(g);
  const NodeId x = b.input("x", matrix()), w = b.param({"w", {}, false}, matrix());
  const NodeId turned = b.permute(w, {1, 0});
  g.outputs.push_back({"y", matmul(b, matmul(b, x, w), turned)});
  const Graph r = assigned(g, Policy::bf16);
  const auto views = all(r, Op::permute);
  REQUIRE(views.size() == 1);  // the f32 view has no reader left
  CHECK(views[0]->type.dtype == DType::bf16);
  CHECK(all(r, Op::cast).size() == 2);
}
