#include "compiler/elaborate/foreign_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/elaborate/elaborate.h"

namespace einc {
namespace {

// Sorted by name. A near name would mislead here: `sort` is near `sqrt`, `median` near `mean`.
constexpr std::pair<std::string_view, std::string_view> kForeignFunctions[] = {
    {"arange", "iota(axis) counts along an axis"},
    {"argsort", "the axis' whole size as k sorts in descending order: top_k_index(x, axis, k)"},
    {"bmm", "einsum(x, y, \"b n d, b d k -> b n k\")"},
    {"cat", "concat(a, b, axis)"},
    {"chunk", "slices: x[axis = 0:2]"},
    {"clamp", "min(max(x, lo), hi)"},
    {"clip", "min(max(x, lo), hi)"},
    {"concatenate", "concat(a, b, axis)"},
    {"detach", "stop_gradient(x)"},
    {"dot", "einsum(x, y, \"n, n -> \")"},
    {"elu", "where(x > 0, x, expm1(x))"},
    {"expand", "repeat(x, \"d -> batch d\", batch=8); axes that an operand lacks are broadcast by themselves"},
    {"flatten", "rearrange(x, \"batch h w -> batch (h w)\")"},
    {"float", "cast(x, f32)"},
    {"full", "a number fits any shape"},
    {"gather", "table[axis = ids]"},
    {"index_add", "a sum by index: einsum(one_hot(ids, n), x, \"i n, i d -> n d\")"},
    {"index_select", "table[axis = ids]"},
    {"int", "cast(x, i32), which cuts toward 0"},
    {"leaky_relu", "where(x > 0, x, 0.01*x)"},
    {"len", "an axis' name is its size, as in `x / seq`"},
    {"log10", "log(x) / log(10)"},
    {"log2", "log(x) / log(2)"},
    {"matmul", "einsum(x, w, \"batch d, d k -> batch k\")"},
    {"median", "the k-th largest is top_k(x, axis, k)[axis = k - 1]"},
    {"mm", "einsum(x, w, \"n d, d k -> n k\")"},
    {"mse_loss", "mean((x - y)^2)"},
    {"nll_loss", "cross_entropy(logits, targets, classes)"},
    {"no_grad", "stop_gradient(x)"},
    {"norm", "sqrt(sum(x^2, axis))"},
    {"ones", "a number fits any shape: 1; a param begins so by `~ ones`"},
    {"ones_like", "a number fits any shape: 1"},
    {"outer", "einsum(x, y, \"n, m -> n m\")"},
    {"permute", "rearrange(x, \"h w c -> c h w\")"},
    {"power", "x^2 or pow(x, y)"},
    {"print", "`output y` is what a run shows"},
    {"range", "iota(axis) counts along an axis; a loop is `for i in layers { ... }`"},
    {"relu6", "min(relu(x), 6)"},
    {"reshape", "rearrange(x, \"batch (heads d) -> batch heads d\", heads=8)"},
    {"scatter_add", "a sum by index: einsum(one_hot(ids, n), x, \"i n, i d -> n d\")"},
    {"size", "an axis' name is its size, as in `x / seq`"},
    {"sort", "the axis' whole size as k sorts in descending order: top_k(x, axis, k); ascending is -top_k(-x, axis, k)"},
    {"split", "unpack(x, 2, 3, \"batch *\"), or slices: x[axis = 0:2]"},
    {"square", "x^2"},
    {"squeeze", "rearrange(x, \"batch 1 d -> batch d\")"},
    {"std", "sqrt(var(x, axis))"},
    {"swapaxes", "rearrange(x, \"h w c -> c w h\")"},
    {"take", "table[axis = ids]"},
    {"tan", "sin(x) / cos(x)"},
    {"tile", "repeat(x, \"d -> (copies d)\", copies=2)"},
    {"transpose", "rearrange(x, \"h w -> w h\")"},
    {"tril", "a mask of positions: where(iota(key) <= iota(query), x, 0)"},
    {"triu", "a mask of positions: where(iota(key) >= iota(query), x, 0)"},
    {"trunc", "cast(x, i32), which cuts toward 0"},
    {"unsqueeze", "rearrange(x, \"batch d -> batch 1 d\"); axes that an operand lacks are broadcast by themselves"},
    {"view", "rearrange(x, \"batch (heads d) -> batch heads d\", heads=8)"},
    {"zeros", "a number fits any shape: 0; a param begins so by `~ zeros`"},
    {"zeros_like", "a number fits any shape: 0"},
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
