// SPDX-License-Identifier: Apache-2.0
// How a param or state starts: each element is a function of (seed, path, element index) alone, so a tensor can be filled
// in any order, in pieces, on any device, with the same bits. Draws follow runtime/base/random.h with the path as stream.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace einc {

// constant(value); normal(mean, std); uniform(lo, hi); trunc_normal(mean, std, lo, hi), bounds absolute.
enum class InitKind : uint8_t { zeros, ones, constant, normal, uniform, trunc_normal };

std::string_view to_string(InitKind kind);
std::optional<InitKind> parse_init_kind(std::string_view name);
int argument_count(InitKind kind);

// Writes elements first, first + 1, ... of the tensor into `out`, unrounded.
// trunc_normal: attempt a of element i takes the normal of step a, until one lies within the bounds; after 64 attempts
// (bounds far in a tail) the uniform of step 64 is turned into a number by bisection of the cut distribution.
void fill_init(InitKind kind, std::span<const double> arguments, uint64_t seed, std::string_view path, uint64_t first,
               std::span<double> out);

}  // namespace einc
