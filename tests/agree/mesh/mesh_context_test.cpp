// SPDX-License-Identifier: Apache-2.0
// Context parallelism as devices carry it out: results of the whole program, bytes as foretold.
#include <doctest/doctest.h>

#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/context_programs.h"
#include "tests/support/mesh_examples.h"

using namespace einc;

TEST_CASE("context: devices give what the program gives whole, and send what the report says") {
  for (const ContextProgram& program : context_programs())
    for (const std::string mesh : {"context = 4", "data = 2, context = 2"}) {
      CAPTURE(program.name);
      CAPTURE(mesh);
      const std::string shard = mesh.starts_with("data") ? "shard batch over data\nshard seq over context\n" : "shard seq over context\n";
      const Compilation c = compiled_text(text_of(program, mesh, shard));
      const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
      const ProgramData data = data_for(*c.graph, {});
      const MeshRun run = run_on_mesh(*compiled, data.inputs, data.params, data.states, data.options, 1);
      REQUIRE(run.fault == NonFinite::nothing);
      const InterpretResult wanted = interpreted(*c.graph, data);
      CHECK(result_difference(as_result(run.values, wanted), wanted, 2e-4) == "");
      CHECK(counted_bytes(run.sent) == foretold_bytes(*c.graph, {}));
      CHECK(device_graph_problem(*c.graph, {}) == "");
    }
}
