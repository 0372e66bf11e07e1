// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/cpu_program.h"

namespace einc {

std::unique_ptr<LoweredGraph> lower_graph(const Graph& graph, const Bindings& given, const CpuOptions& options) {
  const Processor processor = options.processor.value_or(native_processor());
  const int threads = options.scheduling.memory_limit ? options.scheduling.memory_limit->threads : 1;
  auto result = std::make_unique<LoweredGraph>(
      LoweredGraph{form_within_limit(graph, given, options.mode, options.scheduling, processor_target(processor, threads)), {}});
  result->lowered = make_program(result->bound, result->list, result->plan);
  return result;
}

CpuProgram::CpuProgram(const Graph& graph, const Bindings& given, const CpuOptions& options)
    : lowered_(lower_graph(graph, given, options)) {
  FileCache cache(options.cache);
  native_ = compile_native(lowered_->lowered, cache);
}

}  // namespace einc
