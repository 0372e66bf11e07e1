#include "compiler/pipeline/cpu_program.h"

#include <algorithm>

namespace einc {

Fusion fusion_without(const std::vector<std::string>& disabled) {
  const auto has = [&](std::string_view name) { return std::find(disabled.begin(), disabled.end(), name) != disabled.end(); };
  Fusion fusion = has("fusion") ? Fusion::off : Fusion::on;
  if (has("attention")) fusion.attention = false;
  if (has("recompute")) fusion.recomputes = false;
  if (has("in_place")) fusion.in_place = false;
  if (has("finite_state")) fusion.guards = false;
  return fusion;
}

std::unique_ptr<LoweredGraph> lower_graph(const Graph& graph, const Bindings& given, const CpuOptions& options) {
  auto result = std::make_unique<LoweredGraph>(LoweredGraph{form_graph(graph, given, options.mode, options.fusion), {}});
  result->lowered = make_program(result->bound, result->list, result->plan, options.processor.value_or(native_processor()));
  return result;
}

CpuProgram::CpuProgram(const Graph& graph, const Bindings& given, const CpuOptions& options)
    : lowered_(lower_graph(graph, given, options)) {
  FileCache cache(options.cache);
  native_ = compile_native(lowered_->lowered, cache);
}

}  // namespace einc
