// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/verify.h"

#include <doctest/doctest.h>

#include <functional>

#include "compiler/ir/read.h"
#include "sample_graph.h"

using namespace einc;

namespace {

Node& first(Graph& g, Op op) {
  for (Node& node : g.nodes)
    if (node.op == op) return node;
  FAIL("no such op");
  return g.nodes[0];
}

std::string problems(const Graph& g) {
  std::string all;
  for (const std::string& problem : verify(g)) all += problem + "\n";
  return all;
}

std::function<void(Graph&, Node&)> in_body(void (*breaks)(Graph&)) {
  return [breaks](Graph&, Node& n) {
    auto& scan = std::get<ScanAttr>(n.attr);
    auto body = std::make_shared<Graph>(*scan.body);
    breaks(*body);
    scan.body = body;
  };
}

}  // namespace

TEST_CASE("verify: the sample is well formed") { CHECK(problems(sample_graph()) == ""); }

TEST_CASE("verify: each broken rule is found") {
  struct Case {
    Op op;
    std::function<void(Graph&, Node&)> breaks;
    std::string problem;
  };
  const auto resize = [](Graph&, Node& n) { n.type.axes[0].size = Poly(77); };
  const Case cases[] = {
      {Op::map, resize, "has size 77"},
      {Op::map, [](Graph&, Node& n) { n.operands.pop_back(); }, "1 operands instead of 2"},
      {Op::map, [](Graph& g, Node& n) { n.operands[0] = NodeId{g.size() - 1}; }, "does not come before"},
      {Op::map, [](Graph&, Node& n) { n.attr = std::monostate(); }, "attributes of another op"},
      {Op::map,
       [](Graph&, Node& n) {
         n.type.axes.push_back({"k", Poly(2)});
       },
       "is of no operand"},
      {Op::reduce, resize, "has size 77"},
      {Op::reduce,
       [](Graph&, Node& n) {
         std::get<ReduceAttr>(n.attr).axes = {0, 0};
       },
       "axis 1 is missing"},
      {Op::reduce, [](Graph&, Node& n) { std::get<ReduceAttr>(n.attr).fn = ReduceFn::any; }, "is of bool"},
      {Op::reduce, [](Graph&, Node& n) { std::get<ReduceAttr>(n.attr).fn = ReduceFn::logsumexp; }, "is an op of its own"},
      {Op::scatter_max, [](Graph&, Node& n) { n.type.axes[1].size = Poly(77); }, "has no place"},
      {Op::scatter_min, [](Graph&, Node& n) { n.type.dtype = DType::f64; }, "dtype f64 from"},
      {Op::cumulate, [](Graph&, Node& n) { std::get<CumulateAttr>(n.attr).axis = 5; }, "no axis 5"},
      {Op::arg_reduce, [](Graph&, Node& n) { n.type.dtype = DType::f32; }, "positions are i32 or i64"},
      {Op::top_k_index, resize, "has size 77"},
      {Op::contract,
       [](Graph&, Node& n) {
         std::get<ContractAttr>(n.attr).right = {4, 2};
       },
       "in one operand only"},
      {Op::contract,
       [](Graph&, Node& n) {
         std::get<ContractAttr>(n.attr).left = {0, 1, 1};
       },
       "twice"},
      {Op::contract, resize, "has size 77"},
      {Op::permute,
       [](Graph&, Node& n) {
         std::get<PermuteAttr>(n.attr).order = {0, 0, 1};
       },
       "not a permutation"},
      {Op::broadcast, [](Graph&, Node& n) { std::get<BroadcastAttr>(n.attr).map = {7}; }, "axis 7 is missing"},
      {Op::split, resize, "axes of product"},
      {Op::merge, resize, "axes of product"},
      {Op::slice, [](Graph&, Node& n) { std::get<SliceAttr>(n.attr).step = 0; }, "step 0"},
      {Op::slice, [](Graph&, Node& n) { std::get<SliceAttr>(n.attr).start = Poly(-1); }, "outside the axis"},
      {Op::diagonal,
       [](Graph&, Node& n) {
         std::get<DiagonalAttr>(n.attr).map = {0, 1};
       },
       "axis 1 is missing"},
      {Op::window, [](Graph&, Node& n) { std::get<WindowAttr>(n.attr).strides[1] = Poly(9); }, "beyond its axis"},
      {Op::fold, [](Graph&, Node& n) { std::get<WindowAttr>(n.attr).strides.pop_back(); }, "strides between ranks"},
      {Op::pad, resize, "has size 77"},
      {Op::concat, resize, "has size 77"},
      {Op::gather,
       [](Graph&, Node& n) {
         std::get<GatherAttr>(n.attr).table_map = {kNoAxis, 1};
       },
       "has no place"},
      {Op::gather, [](Graph&, Node& n) { std::swap(n.operands[0], n.operands[1]); }, "positions of dtype f16"},
      {Op::scatter_add, [](Graph&, Node& n) { n.type.axes[1].size = Poly(77); }, "has no place"},
      {Op::scatter_set, resize, "base's sizes"},
      {Op::cast, resize, "sizes differ"},
      {Op::stop_gradient, [](Graph&, Node& n) { n.type.dtype = DType::i32; }, "dtype i32 from real"},
      {Op::softmax,
       [](Graph&, Node& n) {
         std::get<ReduceAttr>(n.attr).axes = {0, 1};
       },
       "one axis"},
      {Op::logsumexp, [](Graph&, Node& n) { std::get<ReduceAttr>(n.attr).axes = {1}; }, "axis 1 is missing"},
      {Op::dropout, [](Graph&, Node& n) { std::get<DropoutAttr>(n.attr).p = 1; }, "p is not in"},
      {Op::training, [](Graph&, Node& n) { n.type.dtype = DType::u8; }, "training is one bool"},
      {Op::scan, [](Graph&, Node& n) { std::get<ScanAttr>(n.attr).body = nullptr; }, "no body"},
      {Op::scan, [](Graph&, Node& n) { std::get<ScanAttr>(n.attr).slices = 3; }, "too few operands"},
      {Op::scan, [](Graph&, Node& n) { std::get<ScanAttr>(n.attr).length = Poly(5); }, "operand 1 has no first axis of its length"},
      {Op::scan, [](Graph&, Node& n) { std::swap(n.operands[0], n.operands[2]); }, "and its body reads"},
      {Op::scan, in_body([](Graph& body) { body.updates.pop_back(); }), "1 updates of 2 states"},
      {Op::scan, in_body([](Graph& body) { std::swap(body.updates[0], body.updates[1]); }), "update 0 is not of state 0"},
      {Op::scan, in_body([](Graph& body) { body.nodes.back().operands = {NodeId{99}}; }), "in its body: "},
      {Op::scan_result, [](Graph&, Node& n) { std::get<ScanResultAttr>(n.attr).index = 2; }, "no result 2"},
      {Op::scan_result, [](Graph&, Node& n) { std::get<ScanResultAttr>(n.attr).index = 1; }, "rank"},
      {Op::scan_result, [](Graph&, Node& n) { n.operands[0] = NodeId{0}; }, "of no scan"},
      {Op::all_reduce, [](Graph&, Node& n) { std::get<CollectiveAttr>(n.attr).mesh = 1; }, "the mesh has no axis 1"},
      {Op::all_reduce, [](Graph&, Node& n) { n.operands.push_back(n.operands[0]); }, "2 operands instead of 1"},
      {Op::all_reduce, [](Graph&, Node& n) { n.type.dtype = DType::i32; }, "dtype i32 of"},
      {Op::reduce_scatter, [](Graph&, Node& n) { std::get<CollectiveAttr>(n.attr).divided = 1; }, "has size"},
      {Op::all_gather, [](Graph&, Node& n) { std::get<CollectiveAttr>(n.attr).gathered = 3; }, "an axis is missing"},
      {Op::all_to_all, [](Graph&, Node& n) { std::get<CollectiveAttr>(n.attr).divided = 2; }, "axis 2 is put together and divided"},
      {Op::shift, [](Graph&, Node& n) { std::get<ShiftAttr>(n.attr).axis = 7; }, "no axis 7"},
      {Op::shift, [](Graph&, Node& n) { std::get<ShiftAttr>(n.attr).mesh = 1; }, "the mesh has no axis 1"},
      {Op::shift, [](Graph&, Node& n) { std::get<ShiftAttr>(n.attr).by = -1; }, "it goes -1 places"},
      {Op::shift, resize, "sizes differ"},
      {Op::random, [](Graph&, Node& n) { n.type.dtype = DType::i32; }, "numbers of dtype"},
      {Op::constant,
       [](Graph&, Node& n) {
         n.type.axes.push_back({"k", Poly(2)});
       },
       "no axes"},
      {Op::iota, [](Graph&, Node& n) { n.type.axes.clear(); }, "one axis of numbers"},
      {Op::input, [](Graph&, Node& n) { n.type.axes[0].size = Poly(0); }, "has size 0"},
      {Op::input, [](Graph& g, Node&) { g.nodes[0].origin.loop_context = 9; }, "no such loop context"},
      {Op::input, [](Graph& g, Node&) { g.outputs[0].node = NodeId{9999}; }, "%9999 does not exist"},
      {Op::input, [](Graph& g, Node&) { g.updates[1] = g.updates[0]; }, "updated twice"},
      {Op::input, [](Graph& g, Node&) { g.updates[0].target = g.outputs[0].node; }, "no param or state"},
      {Op::input, [](Graph& g, Node&) { g.loss = g.outputs[0].node; }, "the loss has axes"},
      {Op::input, [](Graph& g, Node&) { g.gradients[0].value = g.loss; }, "gradient of %2"},
      {Op::input, [](Graph& g, Node&) { g.loop_contexts[1].parent = 2; }, "comes before its parent"},
  };
  for (const Case& c : cases) {
    Graph g = sample_graph();
    c.breaks(g, first(g, c.op));
    const std::string found = problems(g);
    CHECK_MESSAGE(found.find(c.problem) != std::string::npos, to_string(c.op), ": ", c.problem, " in: ", found);
  }
}
