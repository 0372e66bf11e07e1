// SPDX-License-Identifier: Apache-2.0
// Where the batch grows with the devices, a device's work does not: what it made of all devices' rows would show here.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/cost/totals.h"
#include "compiler/partition/localize.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

bool has_batch(const Graph& graph) {
  return std::ranges::any_of(graph.nodes, [](const Node& node) {
    return (node.op == Op::input || node.op == Op::random) &&
           std::ranges::any_of(node.type.axes, [](const Axis& axis) { return axis.name == Name("batch"); });
  });
}

// FLOPs of a step on one device, and what its values before fusion would take. No value: neither its inputs nor its draws have a batch.
struct DeviceWork {
  std::string sent;  // kinds of the forward's collectives
  double flops = 0, bytes = 0;
};
// `model`: beside the devices that have other rows, a second axis of the mesh, over which `hidden` is split.
std::optional<DeviceWork> device_work(const std::string& text_or_file, bool is_file, int devices, bool model = false) {
  PipelineOptions options;
  options.dims = {{Name("batch"), 4 * devices}};
  options.mesh = fmt::format("data={}{}", devices, model ? ",model=2" : "");
  options.shard = model ? "batch=data; hidden=model" : "batch=data";
  options.roots = Roots::step;
  const Compilation c = is_file ? compile_file(text_or_file, options) : compile_text("m.ein", text_or_file, options);
  if (!c.graph || !has_batch(*c.graph)) return std::nullopt;
  auto parts = partition_for_mesh(*c.graph, options.dims);
  REQUIRE(std::holds_alternative<Partitioned>(parts));
  const Graph device = localize(std::get<Partitioned>(parts)).graph;
  const Bindings values = device.dims.bind(options.dims).values;
  DeviceWork work{collective_counts(std::get<Partitioned>(parts), Phase::forward)};
  work.flops = *count_flops(device, constant_nodes(device)).step().to_double(values);
  for (const Node& node : device.nodes)
    if (kind_of(node.op) != OpKind::view && node.op != Op::random)
      work.bytes += *node.type.count().to_double(values) * static_cast<double>(bytes_of(node.type.dtype));
  return work;
}

}  // namespace

TEST_CASE("weak scaling: a device of two does what one of eight does") {
  int models = 0;
  for (const std::string& name : zoo_models()) {
    if (name == "clip") continue;  // each image is told from all others' texts
    CAPTURE(name);
    const std::string file = "tests/zoo/models/" + name + ".ein";
    const auto two = device_work(file, true, 2), eight = device_work(file, true, 8);
    if (!two || !eight) continue;
    ++models;
    CHECK(two->flops == doctest::Approx(eight->flops).epsilon(1e-3));  // of scalars, some are the mesh's
    CHECK(two->bytes == eight->bytes);
  }
  CHECK(models > 15);
}

// Where the rows of all devices could be made by each.
TEST_CASE("weak scaling: what is drawn, and what is repeated") {
  const std::string lines[] = {"y = dropout(x, 0.3)", "y = x + 0.1 * normal(batch, k) * cast(uniform(batch) < 0.5, f32)",
                               "q = repeat(w, \"k -> batch k\", batch=batch)\ny = x * tanh(q / sqrt(1 + mean(q^2, k)))",
                               "table = repeat(w, \"k -> batch row k\", batch=batch, row=5)\n"
                               "y = x * einsum(tanh(table), v, \"batch row k, k out -> batch row out\")[row = 2, out = 1]",
                               "h = x\nscan i in steps=3 { h = dropout(tanh(h), 0.3) + 0.1 * normal(batch, k) }\ny = h"};
  for (const std::string& line : lines) {
    CAPTURE(line);
    const std::string text =
        "dim batch = 4, k = 8\nmesh data = 2\nshard batch over data\ninput x: [batch k]\nparam w: [k] ~ ones\n"
        "param v: [k out=3] ~ ones\n" +
        line + "\nloss = mean(y^2) + sum(v)\nminimize loss using momentum(lr = 0.1)\n";
    const auto two = device_work(text, false, 2), eight = device_work(text, false, 8);
    REQUIRE(two);
    REQUIRE(eight);
    CHECK(two->flops == doctest::Approx(eight->flops).epsilon(1e-3));
    CHECK(two->bytes == eight->bytes);
  }
}

TEST_CASE("weak scaling: a program that draws its data") {
  const auto two = device_work("examples/lstm.ein", true, 2), eight = device_work("examples/lstm.ein", true, 8);
  REQUIRE(two);
  REQUIRE(eight);
  CHECK(two->sent == "all_reduce data 1");
  CHECK(two->flops == doctest::Approx(eight->flops).epsilon(1e-3));
  CHECK(two->bytes == eight->bytes);
}

TEST_CASE("weak scaling: what is repeated goes through layers that are split otherwise") {
  const std::string text =
      "dim batch = 4, k = 8, hidden = 16\nmesh data = 2\nshard batch over data\ninput x: [batch k]\nparam latent: [k] ~ ones\n"
      "param w1: [k hidden] ~ normal(std = 0.3)\nparam w2: [hidden out=k] ~ normal(std = 0.3)\n"
      "q = repeat(latent, \"k -> batch k\", batch=batch)\nu = tanh(einsum(q, w1, \"batch k, k hidden -> batch hidden\"))\n"
      "y: [batch k] = einsum(u, w2, \"batch hidden, hidden out -> batch out\")\nloss = mean((x * y)^2)\n"
      "minimize loss using momentum(lr = 0.1)\n";
  const auto two = device_work(text, false, 2, true), eight = device_work(text, false, 8, true);
  REQUIRE(two);
  REQUIRE(eight);
  CHECK(two->flops == doctest::Approx(eight->flops).epsilon(1e-3));
  CHECK(two->bytes == eight->bytes);
  CHECK(two->sent == "all_reduce data 1, all_reduce model 1");  // the loss, and y
}
