// What a training step leaves for its reader.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

enum class StepOutputs : uint8_t { kept, dropped };

// A graph that trains without the outputs that its program names, where nobody reads them: what they alone need is no longer made, and
// others' memory can be used again. Those that training adds (optimizer.*) stay. Nodes keep their numbers; a graph that minimizes nothing
// stays as it is.
Graph without_outputs(Graph graph);

}  // namespace einc
