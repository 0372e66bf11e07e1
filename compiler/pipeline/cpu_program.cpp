#include "compiler/pipeline/cpu_program.h"

namespace einc {

std::unique_ptr<LoweredGraph> lower_graph(const Graph& graph, const Bindings& given, const CpuOptions& options) {
  auto result = std::make_unique<LoweredGraph>(LoweredGraph{form_graph(graph, given, options.mode, options.scheduling), {}});
  result->lowered = make_program(result->bound, result->list, result->plan, options.processor.value_or(native_processor()));
  return result;
}

CpuProgram::CpuProgram(const Graph& graph, const Bindings& given, const CpuOptions& options)
    : lowered_(lower_graph(graph, given, options)) {
  FileCache cache(options.cache);
  native_ = compile_native(lowered_->lowered, cache);
}

}  // namespace einc
