// SPDX-License-Identifier: Apache-2.0
// Small programs to plan, on small devices.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "compiler/api/mesh_process.h"
#include "compiler/api/render_report.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/plan/mesh_advice.h"
#include "dsl/render.h"
#include "tests/support/few_cases.h"
#include "tests/support/mesh_examples.h"

namespace einc {

struct PlanCase {
  const char* file;
  const char* dims;
  int64_t devices;
  double memory;  // bytes of a device
};

inline constexpr const char* kTinyGpt = "batch=8 seq=8 vocab=24 layers=6 heads=4 head=4";
inline constexpr const char* kTinyLlama = "batch=8 seq=8 vocab=24 layers=6 embed=16 heads=4 kv_heads=2 ffn=24";
inline PlanFor plans_for(const Device& device) {
  return [device](const Scheduling& scheduling) { return plan_for_device(scheduling, device); };
}

inline Device small_device(double memory) {
  Device device = *find_device("h100-sxm");
  device.memory_bytes = memory + device.reserve_bytes;
  device.links = {{"near", 4, 10e9, 1e-6}, {"far", 64, 1e9, 5e-6}};
  device.bandwidth = 50e9;  // so that small programs differ by their work as well
  device.bf16 = device.f32 = 50e9;
  return device;
}

// A program, the settings it was compiled with, and what its plan for one device places where.
struct Planned {
  PlanCase given;
  PipelineOptions options;
  DeclaredAxes declared;
  Compilation whole;
  Device device;

  explicit Planned(const PlanCase& c) : given(c), device(small_device(c.memory)) {
    options.dims = dims_of(c.dims);
    options.without_mesh = true;
    PipelineOptions telling = options;
    telling.declared = [&](Op op, Name path, const std::vector<DeclaredAxis>& axes) { declared[{op, path.str()}] = axes; };
    whole = compile_file(std::string("examples/") + c.file, telling);
    REQUIRE_MESSAGE(whole.graph.has_value(), render_text(whole.sources, whole.diagnostics));
  }
  Bindings dims() const { return whole.graph->dims.bind(options.dims).values; }
};

// What is read off a program before ways are looked for.
struct PlannedWays {
  SamplePrograms programs;
  PlacedWays placed;

  WayPlans plans(const Device& device) const { return way_plans(plans_for(device), programs, placed); }
  // With what a process takes besides.
  WayPlans all_plans(const Device& device) const {
    WayPlans all = plans(device);
    all.process = [device](const Graph& graph, const Bindings& dims) { return process_bytes_of(graph, dims, device.target); };
    return all;
  }

  // The least by formulas that are read off the way's own partition.
  double least_by_formulas(const Planned& p, const MeshWay& way, const Device& device) {
    const Graph& graph = programs.graph(Micro::whole, programs.folding(), way);
    const Bindings given = programs.dims(programs.folding(), way);
    const auto made = partition_for_mesh(graph, given);
    Bindings dims = graph.dims.bind(given).values;
    for (const auto& [name, value] : p.dims()) dims[name] = value;
    const StepFormulas formulas(graph, std::get<Partitioned>(made), placed, device, dims, programs.batch());
    return StepEstimate(formulas, way, programs.batch_size(), programs.iterations(), device).held().least.total();
  }

  // With so many examples of the batch in the plan that tells where values are.
  PlannedWays(const Planned& p, int64_t examples) : PlannedWays(p, examples, p.device) {}
  PlannedWays(const Planned& p, int64_t examples, const Device& device)
      : programs(p.whole, p.options, p.dims(), split_names(*p.whole.graph, p.declared)), placed(placed_with(examples, device)) {}

 private:
  PlacedWays placed_with(int64_t examples, const Device& device) {
    Bindings one = programs.dims(programs.count(), MeshWay{});
    one[programs.batch()] = std::max<int64_t>(1, examples);
    return placed_ways(programs.graph(Micro::whole, programs.count(), MeshWay{}), one, plans_for(device), programs.loop());
  }
};

}  // namespace einc
