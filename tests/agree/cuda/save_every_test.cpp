// SPDX-License-Identifier: Apache-2.0
// `save every k` on the GPU: the launches of an iteration are the same, whichever piece they are in.
#include <doctest/doctest.h>

#include "tests/support/run_cuda.h"
#include "tests/support/saved_recurrences.h"

using namespace einc;

TEST_CASE("cuda: save every k changes no bit") {
  for (const SavedProgram& program : saved_programs()) {
    CAPTURE(program.name);
    CHECK(changed_by_save_every(program, [](const Wanted& w) { return run_cuda(w.graph, {}, w.inputs, w.params, w.states, w.options); }) ==
          "");
  }
}
