// SPDX-License-Identifier: Apache-2.0
// What every backend must give: PyTorch's values of the op programs, the interpreter's of the examples with their gradients and updates,
// and its random draws. With each of some ways to form kernels.
#pragma once
#include <functional>
#include <span>

#include "tests/support/run_cpu.h"

namespace einc {

using Backend = std::function<CpuRun(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params,
                                     const TensorMap& states, const Scheduling& scheduling)>;

// `every`: of such long tables one in so many, by turns (tests/support/sample.h).
void check_torch_programs(const Backend& backend, std::span<const Scheduling> ways, size_t every);
// Of tests/numeric/layers, those of a training step: with gradients and states.
void check_layers(const Backend& backend, std::span<const Scheduling> ways, size_t every);
void check_examples(const Backend& backend, std::span<const Scheduling> ways, size_t every);
// Positions that meet, in a table of many rows.
void check_scatters(const Backend& backend, std::span<const Scheduling> ways);
void check_orders(const Backend& backend, std::span<const Scheduling> ways);
// Contractions of several axes, batches and orders, results that are read in another order.
void check_products(const Backend& backend, std::span<const Scheduling> ways);
// So many points that threads take several neighbours each: elements by themselves, and sums over what lies far apart.
void check_packs(const Backend& backend, std::span<const Scheduling> ways);
void check_draws(const Backend& backend, std::span<const Scheduling> ways);

}  // namespace einc
