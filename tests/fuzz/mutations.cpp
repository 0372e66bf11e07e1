// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutations.h"

#include <algorithm>

#include "tests/fuzz/mutation_places.h"
#include "tests/fuzz/plan_mutations.h"

namespace einc {
namespace {

bool each_guard(Kernel& kernel, const auto& plant) {
  return each_value(kernel, [&](Scalar& v) { return std::any_of(v.guards.begin(), v.guards.end(), plant); });
}

bool one_more_stride(const Kernel& kernel, Affine& index, Chooser& choose) {
  for (Affine::Term& t : index.terms)
    if (kernel.extent(t.axis) > 1 && choose.here()) {
      t.coefficient += t.coefficient == -1 ? 2 : 1;
      return true;
    }
  return false;
}

bool exchange_strides(const Kernel& kernel, Affine& index, Chooser& choose) {
  for (size_t i = 0; i < index.terms.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      Affine::Term &a = index.terms[i], &b = index.terms[j];
      if (a.coefficient == b.coefficient || kernel.extent(a.axis) < 2 || kernel.extent(b.axis) < 2 || !choose.here()) continue;
      std::swap(a.coefficient, b.coefficient);
      return true;
    }
  return false;
}

template <bool change(const Kernel&, Affine&, Chooser&)>
bool load_index(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) { return v.kind == ScalarKind::load && change(kernel, v.index.affine, choose); });
}

template <bool change(const Kernel&, Affine&, Chooser&)>
bool store_index(Kernel& kernel, Chooser& choose) {
  return each_store(kernel, [&](Store& s) { return change(kernel, s.index.affine, choose); });
}

template <ScalarKind kind>
bool offset_of(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) { return v.kind == kind && one_further(v.index.affine, choose); });
}

bool store_offset(Kernel& kernel, Chooser& choose) {
  return each_store(kernel, [&](Store& s) { return one_further(s.index.affine, choose); });
}

bool row_not_kept(Kernel& kernel, Chooser& choose) {
  for (Stage& stage : kernel.stages)
    for (size_t i = 0; i < stage.stores.size(); ++i) {
      if (kernel.buffers[stage.stores[i].buffer].access != BufferAccess::scratch || !choose.here()) continue;
      stage.stores.erase(stage.stores.begin() + static_cast<int64_t>(i));
      return true;
    }
  return false;
}

bool gather_ignores_its_position(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::load || v.index.dynamic.empty() || !choose.here()) return false;
    v.index.dynamic.clear();
    return true;
  });
}

bool other_buffer_loaded(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::load) return false;
    for (uint16_t b = 0; b < kernel.buffers.size(); ++b) {
      if (b == v.slot || kernel.buffers[b] != kernel.buffers[v.slot] || kernel.buffers[b].access != BufferAccess::read) continue;
      if (!choose.here()) continue;
      v.slot = b;
      return true;
    }
    return false;
  });
}

bool guard_left_out(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.guards.empty() || (v.kind != ScalarKind::load && v.guards.size() == 1) || !choose.here()) return false;
    v.guards.pop_back();
    return true;
  });
}

bool guard_too_wide(Kernel& kernel, Chooser& choose) {
  return each_guard(kernel, [&](Range& g) { return choose.here() && (g.upper += 1, true); });
}

bool guard_too_narrow(Kernel& kernel, Chooser& choose) {
  return each_guard(kernel, [&](Range& g) { return choose.here() && (g.lower += 1, true); });
}

template <Fold from, Fold to>
bool fold_becomes(Kernel& kernel, Chooser& choose) {
  return std::any_of(kernel.reductions.begin(), kernel.reductions.end(), [&](Accumulation& r) {
    if (r.fold != from || !choose.here()) return false;
    r.fold = to;
    return true;
  });
}

template <MapFn from, MapFn to>
bool map_becomes(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::map || v.fn != from || !choose.here()) return false;
    v.fn = to;
    return true;
  });
}

template <MapFn fn, size_t first>
bool operands_exchanged(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::map || v.fn != fn || v.operands[first] == v.operands[first + 1] || !choose.here()) return false;
    std::swap(v.operands[first], v.operands[first + 1]);
    return true;
  });
}

bool outer_loop_ends_early(Kernel& kernel, Chooser& choose) {
  return std::any_of(kernel.outer.begin(), kernel.outer.end(), [&](AxisId a) { return shorten(kernel, a, choose); });
}

bool reduction_ends_early(Kernel& kernel, Chooser& choose) {
  return std::any_of(kernel.stages.begin(), kernel.stages.end(), [&](const Stage& stage) {
    return !stage.reductions.empty() &&
           std::any_of(stage.axes.begin(), stage.axes.end(), [&](AxisId a) { return shorten(kernel, a, choose); });
  });
}

bool division_of_an_index(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if ((v.kind != ScalarKind::quotient && v.kind != ScalarKind::remainder) || !choose.here()) return false;
    v.integer += 1;
    return true;
  });
}

bool epilogue_lost(Kernel& kernel, Chooser& choose) {
  if (!kernel.contraction) return false;
  const auto sum =
      std::find_if(kernel.values.begin(), kernel.values.end(), [](const Scalar& v) { return v.kind == ScalarKind::reduction; });
  const auto id = static_cast<ValueId>(sum - kernel.values.begin());
  return each_store(kernel, [&](Store& s) {
    if (id >= kernel.values.size() || s.value == id || kernel.values[s.value].dtype != sum->dtype || !choose.here()) return false;
    s.value = id;
    return true;
  });
}

bool sign_of_a_constant(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::constant || v.real == 0 || !choose.here()) return false;
    v.real = -v.real;
    return true;
  });
}

bool other_distribution(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::random || v.random == RandomKind::keep_mask || !choose.here()) return false;
    v.random = v.random == RandomKind::uniform ? RandomKind::normal : RandomKind::uniform;
    return true;
  });
}

bool other_keep_probability(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::random || v.random != RandomKind::keep_mask || !choose.here()) return false;
    v.real = 1 - v.real;
    return true;
  });
}

bool check_too_strict(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    if (v.kind != ScalarKind::checked || v.integer == 0 || !choose.here()) return false;  // 0: a divisor
    v.integer -= 1;
    return true;
  });
}

bool rounding_left_out(Kernel& kernel, Chooser& choose) {
  return each_value(kernel, [&](Scalar& v) {
    const bool narrow = v.dtype == DType::bf16 || v.dtype == DType::f16;
    if (v.kind != ScalarKind::cast || !narrow || !choose.here()) return false;
    v.dtype = DType::f32;
    return true;
  });
}

bool stage_left_out(Kernel& kernel, Chooser& choose) {
  for (size_t s = 0; kernel.stages.size() > 1 && s < kernel.stages.size(); ++s) {
    if (!kernel.stages[s].reductions.empty() || !choose.here()) continue;
    kernel.stages.erase(kernel.stages.begin() + static_cast<int64_t>(s));
    kernel.contraction.reset();
    return true;
  }
  return false;
}

// Sums are then added to what lies in memory.
bool clearing_left_out(Kernel& kernel, Chooser& choose) {
  for (size_t s = 0; s + 1 < kernel.stages.size(); ++s) {
    const std::vector<Store>& next = kernel.stages[s + 1].stores;
    const bool adds = std::any_of(next.begin(), next.end(), [](const Store& x) { return x.mode == StoreMode::add; });
    if (!adds || !choose.here()) continue;
    kernel.stages.erase(kernel.stages.begin() + static_cast<int64_t>(s));
    return true;
  }
  return false;
}

bool scatter_overwrites(Kernel& kernel, Chooser& choose) {
  return each_store(kernel, [&](Store& s) {
    if (s.mode != StoreMode::add || !choose.here()) return false;
    s.mode = StoreMode::set;
    return true;
  });
}

bool store_left_out(Kernel& kernel, Chooser& choose) {
  for (Stage& stage : kernel.stages)
    for (size_t i = 0; i < stage.stores.size(); ++i) {
      if (!choose.here()) continue;
      stage.stores.erase(stage.stores.begin() + static_cast<int64_t>(i));
      return true;
    }
  return false;
}

bool launch_left_out(LoweredProgram& lowered, Chooser& choose) {
  std::vector<Launch>& launches = lowered.program.launches;
  for (size_t l = 0; l < launches.size(); ++l) {
    if (launches[l].when == LaunchWhen::unbounded || !choose.here()) continue;
    launches.erase(launches.begin() + static_cast<int64_t>(l));
    return true;
  }
  return false;
}

bool padding_one_further(Kernel& kernel, Chooser& choose) {
  if (!kernel.contraction) return false;
  for (PaddedAxis& axis : kernel.contraction->padded)
    if (choose.here()) return axis.first += 1, true;
  return false;
}

bool dependent_launches_exchanged(LoweredProgram& lowered, Chooser& choose) {
  std::vector<Launch>& launches = lowered.program.launches;
  const auto access = [&](const Launch& l, size_t b) { return lowered.functions[l.function].kernel->buffers[b].access; };
  for (size_t l = 0; l + 1 < launches.size(); ++l) {
    const Launch &first = launches[l], &second = launches[l + 1];
    if (first.when == LaunchWhen::unbounded || second.when == LaunchWhen::unbounded) continue;
    bool depends = false;
    for (size_t w = 0; w < first.buffers.size(); ++w)
      for (size_t r = 0; r < second.buffers.size(); ++r)
        depends |=
            first.buffers[w] == second.buffers[r] && access(first, w) != BufferAccess::read && access(second, r) != BufferAccess::write;
    if (!depends || !choose.here()) continue;
    std::swap(launches[l], launches[l + 1]);
    return true;
  }
  return false;
}

bool last_chunk_left_out(LoweredProgram& lowered, Chooser& choose) {
  for (Launch& launch : lowered.program.launches)
    if (launch.domain > 1 && launch.when != LaunchWhen::unbounded && choose.here()) return launch.domain -= 1, true;
  return false;
}

// What launches that only look say is compared by wrong_bound.
bool groups_further_apart(LoweredProgram& lowered, Chooser& choose) {
  for (PlannedKernel& f : lowered.functions)
    if (f.tiles && f.tiles->left_groups && f.tiles->left_groups->groups > 1 && choose.here()) return f.tiles->left_groups->apart += 1, true;
  return false;
}

bool bounds_exchanged(LoweredProgram& lowered, Chooser& choose) {
  for (BoundedUpdate& update : lowered.program.bounded)
    if (choose.here()) return std::swap(update.least, update.most), true;
  return false;
}

bool other_stream(LoweredProgram& lowered, Chooser& choose) {
  for (Launch& launch : lowered.program.launches)
    for (std::string& stream : launch.streams)
      if (choose.here()) return stream += "'", true;
  return false;
}

bool buffers_exchanged(LoweredProgram& lowered, Chooser& choose) {
  const auto& buffers = lowered.program.buffers;
  for (Launch& launch : lowered.program.launches)
    for (size_t i = 0; i < launch.buffers.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const uint32_t a = launch.buffers[i], b = launch.buffers[j];
        if (a == b || buffers[a].bytes != buffers[b].bytes || buffers[a].dtype != buffers[b].dtype || !choose.here()) continue;
        std::swap(launch.buffers[i], launch.buffers[j]);
        return true;
      }
  return false;
}

bool snapshot_left_out(LoweredProgram& lowered, Chooser& choose) {
  if (lowered.program.snapshots.empty() || !choose.here()) return false;
  lowered.program.snapshots.pop_back();
  return true;
}

bool copy_left_out(LoweredProgram& lowered, Chooser& choose) {
  if (lowered.program.copies.empty() || !choose.here()) return false;
  lowered.program.copies.pop_back();
  return true;
}

constexpr Mutation kMutations[] = {
    {"a load's stride is one more", load_index<one_more_stride>},
    {"a load is one element further", offset_of<ScalarKind::load>},
    {"two strides of a load are exchanged", load_index<exchange_strides>},
    {"a gather ignores its position", gather_ignores_its_position},
    {"another buffer is loaded", other_buffer_loaded},
    {"a store's stride is one more", store_index<one_more_stride>},
    {"a store is one element further", store_offset},
    {"two strides of a store are exchanged", store_index<exchange_strides>},
    {"a store is left out", store_left_out},
    {"a row that a later stage reads is not kept", row_not_kept},
    {"a guard is left out", guard_left_out},
    {"a guard's upper bound is one more", guard_too_wide},
    {"a guard's lower bound is one more", guard_too_narrow},
    {"a sum is a maximum", fold_becomes<Fold::sum, Fold::max>},
    {"a maximum is a minimum", fold_becomes<Fold::max, Fold::min>},
    {"a product is a sum", fold_becomes<Fold::prod, Fold::sum>},
    {"an argmax is an argmin", fold_becomes<Fold::arg_max, Fold::arg_min>},
    {"a difference has its operands exchanged", operands_exchanged<MapFn::sub, 0>},
    {"a quotient has its operands exchanged", operands_exchanged<MapFn::div, 0>},
    {"a choice has its branches exchanged", operands_exchanged<MapFn::where, 1>},
    {"a sum of two is a difference", map_becomes<MapFn::add, MapFn::sub>},
    {"tanh is erf", map_becomes<MapFn::tanh, MapFn::erf>},
    {"less is less or equal", map_becomes<MapFn::less, MapFn::less_equal>},
    {"an outer loop ends one early", outer_loop_ends_early},
    {"a reduction ends one early", reduction_ends_early},
    {"an index is divided by one more", division_of_an_index},
    {"zeros around an image lie one element further", padding_one_further},
    {"the epilogue of a contraction is lost", epilogue_lost},
    {"a constant has the other sign", sign_of_a_constant},
    {"an index value is one more", offset_of<ScalarKind::index>},
    {"a draw is the next one", offset_of<ScalarKind::random>},
    {"a draw is of another distribution", other_distribution},
    {"dropout keeps what it should drop", other_keep_probability},
    {"a check of an index is too strict", check_too_strict},
    {"a rounding to 16 bits is left out", rounding_left_out},
    {"a stage is left out", stage_left_out},
    {"a scatter does not clear its result", clearing_left_out},
    {"a scatter overwrites what it should add to", scatter_overwrites},
    {"a value's place is given away too early", place_given_away},
    {"a result lies over an operand that its kernel reads elsewhere", result_over_operand},
    {"a store of a stage comes before what a later one loads", store_before_loads},
    {"the first of values added up in place lies elsewhere", sum_begun_elsewhere},
    {"a launch is left out", launch_left_out},
    {"two dependent launches are exchanged", dependent_launches_exchanged},
    {"the last chunk of a launch is left out", last_chunk_left_out},
    {"groups of an operand lie further apart", groups_further_apart},
    {"an update's least and most are exchanged", bounds_exchanged},
    {"a launch draws from another stream", other_stream},
    {"two buffers of a launch are exchanged", buffers_exchanged},
    {"a snapshot is left out", snapshot_left_out},
    {"a copy after the run is left out", copy_left_out},
};

bool plant(LoweredGraph& lowered, const Mutation& mutation, Chooser& choose) {
  if (const auto* kernel = std::get_if<KernelMutation>(&mutation.plant)) return plant_in_kernels(lowered, *kernel, choose);
  if (const auto* plan = std::get_if<PlanMutation>(&mutation.plant)) return (*plan)(lowered, choose);
  return std::get<ProgramMutation>(mutation.plant)(lowered.lowered, choose);
}

}  // namespace

std::span<const Mutation> mutations() { return kMutations; }

std::unique_ptr<LoweredGraph> lower_mutated(const Graph& graph, RunMode mode, const Mutation& mutation, uint64_t choice) {
  CpuOptions options;
  options.mode = mode;
  auto lowered = lower_graph(graph, {}, options);
  Chooser none(SIZE_MAX);
  plant(*lowered, mutation, none);
  if (none.seen() == 0) return nullptr;
  Chooser one(choice % none.seen());
  plant(*lowered, mutation, one);
  if (!std::holds_alternative<ProgramMutation>(mutation.plant)) {
    plan_loops_of(lowered->bound, lowered->plan, native_processor(), lowered->list);  // of the kernels as they are now
    lowered->lowered = make_program(lowered->bound, lowered->list, lowered->plan);
  }
  return lowered;
}

}  // namespace einc
