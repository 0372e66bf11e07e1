// SPDX-License-Identifier: Apache-2.0
// Every rewrite rule has a row: an expression before and the expression that it must become.
#include <doctest/doctest.h>

#include <functional>
#include <set>
#include <string>

#include "compiler/ir/verify.h"
#include "compiler/simplify/rewrite.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/graph_counts.h"

namespace einc {
namespace {

using test::tensor;

// The sources that rows use: x, y [a b], s [] and v [b] in this order.
struct Sources {
  Builder& build;
  NodeId x, y, s, v, square;
  explicit Sources(Builder& b)
      : build(b),
        x(b.input("x", tensor({"a", "b"}))),
        y(b.input("y", tensor({"a", "b"}))),
        s(b.input("s", tensor({}))),
        v(b.input("v", tensor({"b"}))),
        square(b.input("square", Type{DType::real, {{"a", Poly::dim("a")}, {"a", Poly::dim("a")}}})) {}
  NodeId c(ScalarValue value) const { return build.constant(std::move(value)); }
  NodeId map(MapFn fn, std::initializer_list<NodeId> operands) const { return build.map(fn, operands); }
  NodeId spread(NodeId id) const {  // any of s and v over [a b]
    const int rank = build.type(id).rank();
    return build.broadcast(id, rank == 0 ? AxisList{} : AxisList{1}, build.type(x).axes);
  }
  NodeId number() const { return build.map(MapFn::rsqrt, {build.constant(Poly::dim("a"))}); }  // known with the dims
};

using Make = std::function<NodeId(const Sources&)>;
struct Row {
  std::string_view rule;
  Make before, after;
};

const Poly a = Poly::dim("a"), b = Poly::dim("b");
ScalarValue fraction(int64_t n, int64_t d) { return Poly(Rational(n, d)); }

const std::vector<Row>& map_rows() {
  using M = MapFn;
  static const std::vector<Row> rows{
      {"fold-constant",
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.map(M::mul, {e.c(Poly(2)), e.c(divide(Poly(1), a * b))})});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(divide(Poly(2), a * b))});
       }},
      {"absorb-view", [](const Sources& e) { return e.map(M::exp, {e.map(M::neg, {e.spread(e.v)})}); },
       [](const Sources& e) { return e.spread(e.map(M::exp, {e.map(M::neg, {e.v})})); }},
      {"mul-one",
       [](const Sources& e) {
         return e.map(M::mul, {e.c(1.0), e.x});
       },
       [](const Sources& e) { return e.x; }},
      {"div-one",
       [](const Sources& e) {
         return e.map(M::div, {e.x, e.c(Poly(1))});
       },
       [](const Sources& e) { return e.x; }},
      {"add-zero",
       [](const Sources& e) {
         return e.map(M::add, {e.x, e.spread(e.c(Poly(0)))});
       },
       [](const Sources& e) { return e.x; }},
      {"sub-zero",
       [](const Sources& e) {
         return e.map(M::sub, {e.x, e.c(Poly(0))});
       },
       [](const Sources& e) { return e.x; }},
      {"zero-sub",
       [](const Sources& e) {
         return e.map(M::sub, {e.c(Poly(0)), e.x});
       },
       [](const Sources& e) { return e.map(M::neg, {e.x}); }},
      {"mul-minus-one",
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(Poly(-1))});
       },
       [](const Sources& e) { return e.map(M::neg, {e.x}); }},
      {"mul-zero",
       [](const Sources& e) {
         e.build.origin.phase = Phase::backward;
         return e.map(M::mul, {e.x, e.c(Poly(0))});
       },
       [](const Sources& e) { return e.spread(e.c(Poly(0))); }},
      {"mul-chain",
       [](const Sources& e) {
         return e.map(M::mul, {e.map(M::div, {e.x, e.number()}), e.c(Poly(3))});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.map(M::div, {e.c(Poly(3)), e.number()})});
       }},
      {"div-chain",
       [](const Sources& e) {
         return e.map(M::div, {e.map(M::div, {e.c(Poly(6)), e.x}), e.c(Poly(4))});
       },
       [](const Sources& e) {
         return e.map(M::div, {e.c(fraction(3, 2)), e.x});
       }},
      {"neg-neg", [](const Sources& e) { return e.map(M::neg, {e.map(M::neg, {e.x})}); }, [](const Sources& e) { return e.x; }},
      {"neg-sub",
       [](const Sources& e) {
         return e.map(M::neg, {e.map(M::sub, {e.x, e.s})});
       },
       [](const Sources& e) {
         return e.map(M::sub, {e.s, e.x});
       }},
      {"neg-scale",
       [](const Sources& e) {
         return e.map(M::neg, {e.map(M::mul, {e.x, e.c(Poly(2))})});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(Poly(-2))});
       }},
      {"scale-neg",
       [](const Sources& e) {
         return e.map(M::mul, {e.map(M::neg, {e.x}), e.c(Poly(2))});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(Poly(-2))});
       }},
      {"mul-neg-neg",
       [](const Sources& e) {
         return e.map(M::mul, {e.map(M::neg, {e.x}), e.map(M::neg, {e.y})});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.y});
       }},
      {"add-neg",
       [](const Sources& e) {
         return e.map(M::add, {e.map(M::neg, {e.x}), e.y});
       },
       [](const Sources& e) {
         return e.map(M::sub, {e.y, e.x});
       }},
      {"sub-neg",
       [](const Sources& e) {
         return e.map(M::sub, {e.x, e.map(M::neg, {e.y})});
       },
       [](const Sources& e) {
         return e.map(M::add, {e.x, e.y});
       }},
      {"power",
       [](const Sources& e) {
         return e.map(M::add, {e.map(M::pow, {e.x, e.c(2.0)}), e.map(M::pow, {e.x, e.c(0.5)})});
       },
       [](const Sources& e) {
         return e.map(M::add, {e.map(M::mul, {e.x, e.x}), e.map(M::sqrt, {e.x})});
       }},
      {"power",
       [](const Sources& e) {
         return e.map(M::mul, {e.map(M::pow, {e.x, e.c(Poly(0))}), e.map(M::pow, {e.y, e.c(-1.0)})});
       },
       [](const Sources& e) {
         return e.map(M::div, {e.c(Poly(1)), e.y});
       }},
      {"where-constant",
       [](const Sources& e) {
         return e.map(M::where, {e.map(M::less, {e.c(1.0), e.c(2.0)}), e.x, e.y});
       },
       [](const Sources& e) { return e.x; }},
      {"below-infinity",
       [](const Sources& e) {
         const NodeId index = e.spread(e.build.iota({"b", Poly::dim("b")}));
         return e.map(M::where, {e.map(M::less, {index, e.c(HUGE_VAL)}), e.x, e.y});
       },
       [](const Sources& e) { return e.x; }},
      {"where-same",
       [](const Sources& e) {
         return e.map(M::where, {e.map(M::less, {e.x, e.y}), e.s, e.s});
       },
       [](const Sources& e) { return e.spread(e.s); }},
      {"max-same",
       [](const Sources& e) {
         return e.map(M::maximum, {e.x, e.x});
       },
       [](const Sources& e) { return e.x; }},
      {"min-same",
       [](const Sources& e) {
         return e.map(M::minimum, {e.x, e.x});
       },
       [](const Sources& e) { return e.x; }},
      {"and-same",
       [](const Sources& e) {
         const NodeId c = e.map(M::less, {e.x, e.y});
         return e.map(M::logical_and, {c, c});
       },
       [](const Sources& e) {
         return e.map(M::less, {e.x, e.y});
       }},
      {"or-same",
       [](const Sources& e) {
         const NodeId c = e.map(M::less, {e.x, e.y});
         return e.map(M::logical_or, {c, c});
       },
       [](const Sources& e) {
         return e.map(M::less, {e.x, e.y});
       }},
  };
  return rows;
}

std::vector<Axis> merged_axes() { return {{"(a b)", a * b}}; }
NodeId flat(const Sources& e, NodeId id) { return e.build.merge(id, {2}, merged_axes()); }
NodeId unflat(const Sources& e, NodeId id) { return e.build.split(id, {2}, e.build.type(e.x).axes); }

const std::vector<Row>& view_rows() {
  using M = MapFn;
  static const std::vector<Row> rows{
      {"exact-constant",
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(0.25)});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(fraction(1, 4))});
       }},
      {"stop-gradient", [](const Sources& e) { return e.build.stop_gradient(e.x); }, [](const Sources& e) { return e.x; }},
      {"permute-scalar",
       [](const Sources& e) {
         return e.build.permute(e.build.permute(e.spread(e.s), {1, 0}), {1, 0});
       },
       [](const Sources& e) { return e.spread(e.s); }},
      {"rename",
       [](const Sources& e) {
         return e.map(M::neg, {e.build.rename(e.x, {{"p", a}, {"q", b}})});
       },
       [](const Sources& e) { return e.map(M::neg, {e.x}); }},
      {"permute-permute",
       [](const Sources& e) {
         return e.build.permute(e.build.permute(e.x, {1, 0}), {1, 0});
       },
       [](const Sources& e) { return e.x; }},
      {"broadcast-nothing",
       [](const Sources& e) {
         return e.build.broadcast(e.x, {0, 1}, e.build.type(e.x).axes);
       },
       [](const Sources& e) { return e.x; }},
      {"broadcast-broadcast",
       [](const Sources& e) {
         return e.build.broadcast(e.build.broadcast(e.s, {}, {{"b", b}}), {1}, e.build.type(e.x).axes);
       },
       [](const Sources& e) { return e.spread(e.s); }},
      {"split-scalar", [](const Sources& e) { return unflat(e, e.build.broadcast(e.s, {}, merged_axes())); },
       [](const Sources& e) { return e.spread(e.s); }},
      {"split-nothing",
       [](const Sources& e) {
         return e.build.split(e.x, {1, 1}, e.build.type(e.x).axes);
       },
       [](const Sources& e) { return e.x; }},
      {"split-merge", [](const Sources& e) { return unflat(e, flat(e, e.x)); }, [](const Sources& e) { return e.x; }},
      {"merge-scalar", [](const Sources& e) { return flat(e, e.spread(e.s)); },
       [](const Sources& e) { return e.build.broadcast(e.s, {}, merged_axes()); }},
      {"merge-nothing",
       [](const Sources& e) {
         return e.build.merge(e.x, {1, 1}, e.build.type(e.x).axes);
       },
       [](const Sources& e) { return e.x; }},
      {"merge-split", [](const Sources& e) { return flat(e, unflat(e, flat(e, e.x))); }, [](const Sources& e) { return flat(e, e.x); }},
      {"slice-scalar", [](const Sources& e) { return e.build.slice(e.spread(e.s), 1, Poly(0), Poly(2)); },
       [](const Sources& e) {
         return e.build.broadcast(e.s, {}, {{"a", a}, {"b", Poly(2)}});
       }},
      {"slice-all", [](const Sources& e) { return e.build.slice(e.x, 0, Poly(0), a); }, [](const Sources& e) { return e.x; }},
      {"slice-pad",
       [](const Sources& e) {
         return e.build.slice(e.build.pad(e.x, {Poly(0), Poly(2)}, {Poly(0), Poly(1)}, Poly(0)), 1, Poly(2), b);
       },
       [](const Sources& e) { return e.x; }},
      {"slice-concat",
       [](const Sources& e) {
         const NodeId parts[] = {e.x, e.y};
         return e.build.slice(e.build.concat(parts, 0), 0, a, a);
       },
       [](const Sources& e) { return e.y; }},
      {"diagonal-scalar",
       [](const Sources& e) {
         return e.build.diagonal(e.build.broadcast(e.s, {}, e.build.type(e.square).axes), {0, 0});
       },
       [](const Sources& e) {
         return e.build.broadcast(e.s, {}, {{"a", a}});
       }},
      {"window-scalar",
       [](const Sources& e) {
         return e.build.window(e.build.broadcast(e.s, {}, {{"b", b + 1}}), 0, {Poly(1), Poly(1)}, {{"p", b}, {"q", Poly(2)}});
       },
       [](const Sources& e) {
         return e.build.broadcast(e.s, {}, {{"p", b}, {"q", Poly(2)}});
       }},
      {"pad-nothing",
       [](const Sources& e) {
         return e.build.pad(e.x, {Poly(0), Poly(0)}, {Poly(0), Poly(0)}, Poly(0));
       },
       [](const Sources& e) { return e.x; }},
      {"concat-one",
       [](const Sources& e) {
         const NodeId parts[] = {e.x};
         return e.build.concat(parts, 0);
       },
       [](const Sources& e) { return e.x; }},
      {"cast-same", [](const Sources& e) { return e.build.cast(e.x, DType::real); }, [](const Sources& e) { return e.x; }},
      {"cast-constant",
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.build.cast(e.build.constant(Poly(3), DType::i32), DType::real)});
       },
       [](const Sources& e) {
         return e.map(M::mul, {e.x, e.c(Poly(3))});
       }},
  };
  return rows;
}

NodeId sum(const Sources& e, NodeId id, AxisList axes) { return e.build.reduce(ReduceFn::sum, id, axes); }

const std::vector<Row>& sum_rows() {
  static const std::vector<Row> rows{
      {"reduce-nothing", [](const Sources& e) { return sum(e, e.x, {}); }, [](const Sources& e) { return e.x; }},
      {"reduce-unit",
       [](const Sources& e) {
         return sum(e, e.build.merge(e.x, {1, 0, 1}, {{"a", a}, {"", Poly(1)}, {"b", b}}), {1, 2});
       },
       [](const Sources& e) { return sum(e, e.x, {1}); }},
      {"reduce-broadcast",
       [](const Sources& e) {
         return sum(e, e.spread(e.v), {0, 1});
       },
       [](const Sources& e) {
         return e.map(MapFn::mul, {sum(e, e.v, {0}), e.c(a)});
       }},
      {"reduce-permute",
       [](const Sources& e) {
         return sum(e, e.build.permute(e.x, {1, 0}), {0});
       },
       [](const Sources& e) { return sum(e, e.x, {1}); }},
      {"contract-zero",
       [](const Sources& e) {
         e.build.origin.phase = Phase::backward;
         return e.build.contract(e.spread(e.c(Poly(0))), e.y, {0, 2}, {1, 2}, 2);
       },
       [](const Sources& e) { return e.build.broadcast(e.c(Poly(0)), {}, e.build.type(e.square).axes); }},
      {"contract-view",
       [](const Sources& e) {
         return e.build.contract(e.build.permute(e.x, {1, 0}), e.y, {2, 0}, {1, 2}, 2);
       },
       [](const Sources& e) {
         return e.build.contract(e.x, e.y, {0, 2}, {1, 2}, 2);
       }},
      {"contract-view",
       [](const Sources& e) {
         return e.build.contract(e.x, e.spread(e.v), {0, 1}, {0, 1}, 1);
       },
       [](const Sources& e) {
         return e.build.contract(e.x, e.v, {0, 1}, {1}, 1);
       }},
  };
  return rows;
}

// Equal computations, whatever the axes are called.
bool same(const Graph& g, NodeId p, const Graph& h, NodeId q) {
  const Node &m = g[p], &n = h[q];
  if (m.op != n.op || m.attr != n.attr || m.type.dtype != n.type.dtype || !m.type.same_sizes(n.type)) return false;
  if (m.operands.size() != n.operands.size()) return false;
  for (size_t k = 0; k < m.operands.size(); ++k)
    if (!same(g, m.operands[k], h, n.operands[k])) return false;
  return true;
}

Graph graph_of(const Make& make) {
  Graph graph;
  Builder build(graph);
  const Sources sources(build);
  graph.outputs.push_back({"out", make(sources)});
  return graph;
}

void check(const std::vector<Row>& rows, std::span<const RewriteRule> rules) {
  std::set<std::string_view> tested;
  for (const Row& row : rows) {
    CAPTURE(row.rule);
    tested.insert(row.rule);
    const Graph before = simplify(graph_of(row.before), Roots::training), after = graph_of(row.after);
    Graph expected = simplify(after, Roots::training);
    CHECK(same(before, before.outputs[0].node, expected, expected.outputs[0].node));
    CHECK(before.type(before.outputs[0].node) == graph_of(row.before).type(graph_of(row.before).outputs[0].node));
    if (after.size() > 5) CHECK(rewrite(expected).count == 0);
  }
  for (const RewriteRule& rule : rules) CHECK_MESSAGE(tested.contains(rule.name), rule.name);
}

TEST_CASE("elementwise rules") { check(map_rows(), map_rules()); }
TEST_CASE("view rules") { check(view_rows(), view_rules()); }
TEST_CASE("reduction and contraction rules") { check(sum_rows(), sum_rules()); }

TEST_CASE("rules keep dtypes") {
  const auto real_of_integers = [](MapFn fn) {
    return [fn](const Sources& e) {
      const NodeId n = e.build.iota({"a", a});
      const NodeId operands[] = {n, e.c(Poly(fn == MapFn::pow ? 2 : -1))};
      const AxisList maps[] = {{0}, {}};
      return e.build.map(fn, operands, maps, {{"a", a}}, DType::real);
    };
  };
  const Graph power = graph_of(real_of_integers(MapFn::pow));
  CHECK(rewrite(power).count == 0);
  const Graph negated = simplify(graph_of(real_of_integers(MapFn::mul)), Roots::training);
  CHECK(verify(negated).empty());
  CHECK(test::count_maps(negated, MapFn::neg) == 1);
  CHECK(negated.type(negated.outputs[0].node).dtype == DType::real);
}

TEST_CASE("what must not be rewritten") {
  const auto unchanged = [](const Make& make) {
    const Graph graph = graph_of(make);
    return rewrite(graph).count == 0;
  };
  CHECK(unchanged([](const Sources& e) { return e.map(MapFn::mul, {e.x, e.c(Poly(0))}); }));  // 0 * inf is nan
  CHECK(unchanged([](const Sources& e) { return e.map(MapFn::sub, {e.x, e.x}); }));
  CHECK(unchanged([](const Sources& e) { return e.map(MapFn::div, {e.x, e.x}); }));
  CHECK(unchanged([](const Sources& e) { return e.build.contract(e.spread(e.v), e.y, {0, 2}, {1, 2}, 2); }));  // counted as written
  // One factor would be infinite, and 0 times it no number, where the two steps give 0; or so small that it is 0 in f32.
  for (const int exponent : {100, -100})
    CHECK(unchanged([exponent](const Sources& e) {
      const NodeId factor = e.c(pow(Poly(2), exponent));
      return e.map(MapFn::mul, {e.map(MapFn::mul, {e.x, factor}), factor});
    }));
  CHECK(unchanged([](const Sources& e) {
    e.build.origin.pinned = true;
    return e.build.cast(e.x, DType::real);
  }));
}

}  // namespace
}  // namespace einc
