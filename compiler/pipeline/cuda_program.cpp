#include "compiler/pipeline/cuda_program.h"

namespace einc {

CudaExecutable compile_for_cuda(const Graph& graph, const Bindings& given, RunMode mode, Fusion fusion) {
  const FormedGraph formed = form_graph(graph, given, mode, fusion);
  return make_cuda_program(formed.bound, formed.list, formed.plan);
}

}  // namespace einc
