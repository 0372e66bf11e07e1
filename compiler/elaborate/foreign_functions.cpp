// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/foreign_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/elaborate/elaborate.h"

namespace einc {
namespace {

// Sorted by name. A near name would mislead here: `median` is near `mean`.
constexpr std::pair<std::string_view, std::string_view> kForeignFunctions[] = {
    {"arange", "iota(axis) counts along an axis"},
    {"bmm", "einsum(x, y, \"b n d, b d k -> b n k\")"},
    {"cat", "concat(a, b, axis)"},
    {"chunk", "slices: x[axis = 0:2]"},
    {"clip", "clamp(x, lo, hi)"},
    {"concatenate", "concat(a, b, axis)"},
    {"detach", "stop_gradient(x)"},
    {"dot", "einsum(x, y, \"n, n -> \")"},
    {"elu", "where(x > 0, x, expm1(x))"},
    {"expand", "repeat(x, \"d -> batch d\", batch=8); axes that an operand lacks are broadcast by themselves"},
    {"flatten", "rearrange(x, \"batch h w -> batch (h w)\")"},
    {"float", "cast(x, f32)"},
    {"floor_divide", "a // b of integers, floor(a / b) of reals"},
    {"gather", "table[axis = ids]"},
    {"index_add", "a sum by index: segment_sum(x, ids, nodes)"},
    {"index_select", "table[axis = ids]"},
    {"int", "cast(x, i32), which cuts toward 0"},
    {"leaky_relu", "where(x > 0, x, 0.01*x)"},
    {"len", "an axis' name is its size, as in `x / seq`"},
    {"linspace", "lo + (hi - lo) * iota(axis) / (axis - 1)"},
    {"log10", "log(x) / log(10)"},
    {"log2", "log(x) / log(2)"},
    {"matmul", "einsum(x, w, \"batch d, d k -> batch k\")"},
    {"median", "the middle of sort(x, axis)"},
    {"mm", "einsum(x, w, \"n d, d k -> n k\")"},
    {"mse_loss", "mean((x - y)^2)"},
    {"nll_loss", "cross_entropy(logits, targets, classes)"},
    {"no_grad", "stop_gradient(x)"},
    {"ones_like", "ones(axes), or just 1: a number fits any shape"},
    {"outer", "einsum(x, y, \"n, m -> n m\")"},
    {"permute", "rearrange(x, \"h w c -> c h w\")"},
    {"power", "x^2 or pow(x, y)"},
    {"print", "`output y` is what a run shows"},
    {"range", "iota(axis) counts along an axis; a loop is `for i in layers { ... }`"},
    {"relu6", "clamp(x, 0, 6)"},
    {"reshape", "rearrange(x, \"batch (heads d) -> batch heads d\", heads=8)"},
    {"roll", "concat(x[axis = k:], x[axis = :k], axis)"},
    {"scatter_add", "a sum by index: segment_sum(x, ids, nodes)"},
    {"size", "an axis' name is its size, as in `x / seq`"},
    {"split", "unpack(x, 2, 3, \"batch *\"), or slices: x[axis = 0:2]"},
    {"square", "x^2"},
    {"squeeze", "rearrange(x, \"batch 1 d -> batch d\")"},
    {"swapaxes", "rearrange(x, \"h w c -> c w h\")"},
    {"take", "table[axis = ids]"},
    {"tile", "repeat(x, \"d -> (copies d)\", copies=2)"},
    {"transpose", "rearrange(x, \"h w -> w h\")"},
    {"tril", "a mask of positions: where(iota(key) <= iota(query), x, 0)"},
    {"triu", "a mask of positions: where(iota(key) >= iota(query), x, 0)"},
    {"unsqueeze", "rearrange(x, \"batch d -> batch 1 d\"); axes that an operand lacks are broadcast by themselves"},
    {"view", "rearrange(x, \"batch (heads d) -> batch heads d\", heads=8)"},
    {"zeros_like", "zeros(axes), or just 0: a number fits any shape"},
};
static_assert(std::is_sorted(std::begin(kForeignFunctions), std::end(kForeignFunctions)));

}  // namespace

std::string foreign_function_hint(std::string_view function) {
  if (const auto nn = bundled_library("nn"); nn && nn->find(fmt::format("fn {}(", function)) != std::string_view::npos)
    return fmt::format("`{}` is in the bundled library: `import nn`", function);
  const auto* found = std::lower_bound(std::begin(kForeignFunctions), std::end(kForeignFunctions), function,
                                       [](const auto& entry, std::string_view name) { return entry.first < name; });
  return found != std::end(kForeignFunctions) && found->first == function ? std::string(found->second) : "";
}

}  // namespace einc
