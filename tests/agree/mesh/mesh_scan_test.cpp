// SPDX-License-Identifier: Apache-2.0
// Recurrences whose iterations are done in parts.
#include <doctest/doctest.h>

#include "compiler/pipeline/pipeline.h"
#include "tests/agree/mesh/mesh_run.h"

using namespace einc;

TEST_CASE("mesh: iterations that draw give on devices what they give whole, and send what is foretold") {
  for (const char* lines : kScanMeshes) {
    CAPTURE(std::string(lines));
    const Compilation c = compile_text("m.ein", std::string(lines) + kDrawingScan, {});
    REQUIRE(c.graph.has_value());
    const ProgramData data = data_for(*c.graph, {});
    const InterpretResult wanted = interpreted(*c.graph, data);
    CHECK(device_graph_problem(*c.graph, {}) == "");
    const auto program = compile_for_mesh(*c.graph, {}, RunMode::training);
    CHECK(run_difference(*program, data, wanted, 1e-5) == "");
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 2);
    CHECK(counted_bytes(run.sent) == foretold_bytes(*c.graph, {}));
    CHECK(run_difference(*compile_for_gpus(*c.graph, {}, RunMode::training), data, wanted, 1e-5) == "");
  }
}
