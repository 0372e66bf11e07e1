#include "compiler/ir/step_outputs.h"

#include "runtime/base/training_names.h"

namespace einc {

Graph without_outputs(Graph graph) {
  if (graph.loss.valid())
    std::erase_if(graph.outputs, [](const Output& output) { return !output.name.str().starts_with(kAddedByTraining); });
  return graph;
}

}  // namespace einc
