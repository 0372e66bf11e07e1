// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/make_program.h"

#include <fmt/format.h>

#include <unordered_map>

#include "compiler/lower/assemble_program.h"
#include "compiler/lower/processor_plan_text.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// Functions of kernels, equal ones once.
class Maker {
 public:
  void choose(const GraphKernel& k, Launch& launch) {
    EINC_CHECK(k.loops, "a kernel whose loops are not planned");
    launch.function = function_of(*k.kernel, *k.loops);
    launch.domain = functions[launch.function].domain();
  }

  std::vector<PlannedKernel> functions;

 private:
  uint32_t function_of(const Kernel& kernel, const ProcessorPlan& plan) {
    const auto [known, fresh] = function_of_.try_emplace(&plan);
    if (fresh) known->second = function_alike(kernel, plan);
    return known->second;
  }

  uint32_t function_alike(const Kernel& kernel, const ProcessorPlan& plan) {
    const auto index = static_cast<uint32_t>(functions.size());
    PlannedKernel planned(fmt::format("k{}", index), kernel, plan);
    const auto [known, fresh] = known_.emplace(planned.text(), index);
    if (!fresh) return known->second;
    functions.push_back(std::move(planned));
    return index;
  }

  std::unordered_map<const ProcessorPlan*, uint32_t> function_of_;
  std::unordered_map<std::string, uint32_t> known_;
};

}  // namespace

std::string PlannedKernel::text() const { return to_string(*kernel) + to_string(static_cast<const ProcessorPlan&>(*this)) + '\n'; }

LoweredProgram make_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan) {
  Maker maker;
  LoweredProgram out;
  out.program = assemble_program(graph, list, plan, [&](const BoundGraph&, const GraphKernel& k, const Executable&, Launch& launch) {
    if (launch.function != kNoFunction) maker.choose(k, launch);
  });
  out.program.scratch_bytes = panel_bytes(list);
  out.functions = std::move(maker.functions);
  for (const PlannedKernel& function : out.functions) out.program.functions.push_back(function.name);
  return out;
}

}  // namespace einc
