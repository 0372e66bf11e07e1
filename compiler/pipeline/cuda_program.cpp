#include "compiler/pipeline/cuda_program.h"

namespace einc {

std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph& graph, const Bindings& given, const CudaOptions& options) {
  Fusion fusion = options.fusion;
  fusion.target = cuda_target(options.library_products);
  fusion.limits.contractions = false;  // what a contraction reads must lie in memory
  auto result = std::make_unique<CudaProgramText>(CudaProgramText{form_graph(graph, given, options.mode, fusion), {}});
  result->executable = make_cuda_program(result->bound, result->list, result->plan, options.library_products);
  return result;
}

}  // namespace einc
