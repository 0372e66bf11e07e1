// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/gpu_plan/gpu_plan.h"
#include "tests/fuzz/mutation_places.h"
#include "tests/fuzz/mutations.h"

namespace einc {
namespace {

bool sums_over_rows(const Store& s) { return s.mode == StoreMode::sum; }

bool sum_over_rows_left_out(Kernel& kernel, Chooser& choose) {
  return std::any_of(kernel.stages.begin(), kernel.stages.end(), [&](Stage& stage) {
    const auto sum =
        std::find_if(stage.stores.begin(), stage.stores.end(), [&](const Store& s) { return sums_over_rows(s) && choose.here(); });
    if (sum == stage.stores.end()) return false;
    stage.stores.erase(sum);
    return true;
  });
}

bool sum_over_rows_elsewhere(Kernel& kernel, Chooser& choose) {
  return each_store(kernel, [&](Store& s) { return sums_over_rows(s) && one_further(s.index.affine, choose); });
}

bool sum_over_rows_of_an_operand(Kernel& kernel, Chooser& choose) {
  return each_store(kernel, [&](Store& s) {
    const Scalar& v = kernel.values[s.value];
    if (!sums_over_rows(s) || v.kind != ScalarKind::map || v.operands.size() < 2 || !choose.here()) return false;
    s.value = v.operands[0];
    return true;
  });
}

bool rows_end_early(Kernel& kernel, Chooser& choose) {
  return kernel.part && std::any_of(kernel.outer.begin(), kernel.outer.end(), [&](AxisId a) { return shorten(kernel, a, choose); });
}

bool parts_end_early(Kernel& kernel, Chooser& choose) {
  const auto is_part = [&](AxisId a) { return kernel.axes[a].name == Name("part"); };
  return std::any_of(kernel.stages.begin(), kernel.stages.end(), [&](const Stage& stage) {
    return std::any_of(stage.axes.begin(), stage.axes.end(), [&](AxisId a) { return is_part(a) && shorten(kernel, a, choose); });
  });
}

bool a_part_without_a_block(Kernel& kernel, Chooser& choose) { return kernel.part && shorten(kernel, *kernel.part, choose); }

constexpr Mutation kGpuMutations[] = {
    {"a sum over rows is left out", sum_over_rows_left_out},
    {"a sum over rows is one element further", sum_over_rows_elsewhere},
    {"a sum over rows is of another value", sum_over_rows_of_an_operand},
    {"the rows of parts end one early", rows_end_early},
    {"the sums of the last part are left out", parts_end_early},
    {"a part has no block", a_part_without_a_block},
};

}  // namespace

std::span<const Mutation> gpu_mutations() { return kGpuMutations; }

std::unique_ptr<CudaProgramText> mutated_for_cuda(const Graph& graph, const Mutation& mutation, uint64_t choice) {
  constexpr int64_t kLibraryProducts = INT64_MAX;
  CudaOptions options;
  options.library.products = kLibraryProducts;
  auto compiled = compile_for_cuda(graph, {}, options);
  const KernelMutation mutate = std::get<KernelMutation>(mutation.plant);
  Chooser none(SIZE_MAX);
  plant_in_kernels(*compiled, mutate, none);
  if (none.seen() == 0) return nullptr;
  Chooser one(choice % none.seen());
  plant_in_kernels(*compiled, mutate, one);
  plan_threads_of(compiled->bound, compiled->gpu, compiled->list);  // of the kernels as they are now
  compiled->executable = make_cuda_program(compiled->bound, compiled->list, compiled->plan, compiled->gpu);
  return compiled;
}

}  // namespace einc
