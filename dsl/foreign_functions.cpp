// SPDX-License-Identifier: Apache-2.0
#include "dsl/foreign_functions.h"

#include <algorithm>
#include <span>
#include <utility>

namespace einc {
namespace {

// Sorted by name. A near name would mislead here: `median` is near `mean`.
constexpr std::pair<std::string_view, std::string_view> kForeignFunctions[] = {
    {"AdamW", "`minimize loss using adamw(lr = 1e-3)`"},
    {"AvgPool2d", "`import nn` and avg_pool(x, ...)"},
    {"BatchNorm1d", "`import nn` and batch_norm(x), over all axes but the last"},
    {"BatchNorm2d", "`import nn` and batch_norm(x), with the channels last"},
    {"Conv1d", "`import nn` and conv(x, ...), or a pattern with a window: einsum(x, w, \"b (t + k) c, k c o -> b t o\")"},
    {"Conv2d", "`import nn` and conv(x, ...), or a pattern with a window: einsum(x, w, \"b (y + i) (z + j) c, i j c o -> b y z o\")"},
    {"CrossEntropyLoss", "mean(cross_entropy(logits, targets, classes))"},
    {"Dropout", "dropout(x, 0.1)"},
    {"Embedding", "`import nn` and embedding(ids, vocab, embed), or a gather: table[vocab = ids]"},
    {"Flatten", "rearrange(x, \"batch h w -> batch (h w)\")"},
    {"GroupNorm", "`import nn` and group_norm(x, groups), with the channels last"},
    {"Identity", "use x itself"},
    {"LayerNorm", "`import nn` and layer_norm(x), along the last axis"},
    {"Linear", "`import nn` and linear(x, hidden), or linear_bias(x, hidden)"},
    {"MSELoss", "mean((x - y)^2)"},
    {"MaxPool2d", "`import nn` and max_pool(x, ...)"},
    {"ModuleList", "a loop makes params of its own in each iteration: for i in layers { x = block(x) }"},
    {"MultiheadAttention", "`import nn` and attention(x, heads, head)"},
    {"Parameter", "param w: [d] ~ zeros"},
    {"RMSNorm", "`import nn` and rms_norm(x), along the last axis"},
    {"Sequential", "one call after the other: x = relu(linear(x, hidden))"},
    {"Tensor", "input x: f32[batch seq]"},
    {"arange", "iota(axis) counts along an axis"},
    {"bmm", "einsum(x, y, \"b n d, b d k -> b n k\")"},
    {"cat", "concat(a, b, axis)"},
    {"chunk", "slices: x[axis = 0:2]"},
    {"clip", "clamp(x, lo, hi)"},
    {"concatenate", "concat(a, b, axis)"},
    {"detach", "stop_gradient(x)"},
    {"dot", "einsum(x, y, \"n, n -> \")"},
    {"elu", "where(x > 0, x, expm1(x))"},
    {"enumerate", "the index of a loop counts from 0: for i in layers { ... }"},
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
    {"param", "a statement of its own: param w: [d] ~ zeros"},
    {"permute", "rearrange(x, \"h w c -> c h w\")"},
    {"power", "x^2 or pow(x, y)"},
    {"print", "`output y` is what a run shows"},
    {"rand", "uniform(axes)"},
    {"randn", "normal(axes)"},
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
    {"tensor", "a number stands for itself; data come in by `input x: f32[n]`"},
    {"tile", "repeat(x, \"d -> (copies d)\", copies=2)"},
    {"transpose", "rearrange(x, \"h w -> w h\")"},
    {"tril", "a mask of positions: where(iota(key) <= iota(query), x, 0)"},
    {"triu", "a mask of positions: where(iota(key) >= iota(query), x, 0)"},
    {"unsqueeze", "rearrange(x, \"batch d -> batch 1 d\"); axes that an operand lacks are broadcast by themselves"},
    {"view", "rearrange(x, \"batch (heads d) -> batch heads d\", heads=8)"},
    {"zeros_like", "zeros(axes), or just 0: a number fits any shape"},
    {"zip", "a loop counts: for i in layers { ... }"},
};
static_assert(std::is_sorted(std::begin(kForeignFunctions), std::end(kForeignFunctions)));

// Of tensors and modules, where a function of the same name would mean something else or is not known.
constexpr std::pair<std::string_view, std::string_view> kForeignMethods[] = {
    {"H", "rearrange(x, \"h w -> w h\")"},
    {"T", "rearrange(x, \"h w -> w h\"); mostly it is not needed, since axes line up by their names"},
    {"add", "x + y"},
    {"append", "in a scan, `collect ys = e` stacks values; stack(a, b, axis) joins tensors"},
    {"backward", "`minimize loss using sgd(lr = 0.1)` trains, and grad(y, x) is a gradient"},
    {"clone", "values never change: use x itself"},
    {"contiguous", "layouts are planned by the compiler: use x itself"},
    {"copy", "values never change: use x itself"},
    {"cpu", "`--target` of the command line says where a program runs"},
    {"cuda", "`--target=cuda` of the command line says where a program runs"},
    {"data", "use x itself"},
    {"device", "`--target` of the command line says where a program runs"},
    {"div", "x / y"},
    {"dtype", "a tensor's dtype stands in its declaration; cast(x, f32) changes it"},
    {"eval", "`training` is true in steps of training and false elsewhere: if training { ... } else { ... }"},
    {"forward", "a fn is called by its name: f(x)"},
    {"grad", "grad(y, x) is the derivative of the scalar y by x"},
    {"half", "cast(x, f16)"},
    {"item", "a scalar is used as it is"},
    {"long", "cast(x, i64)"},
    {"mT", "rearrange(x, \"b h w -> b w h\")"},
    {"masked_fill", "where(mask, value, x)"},
    {"mul", "x * y"},
    {"ndim", "the number of axes is known: it stands in the type"},
    {"numel", "the product of the sizes of its axes, as in `batch * seq`"},
    {"numpy", "`einc run FILE --output y=y.npy` writes a value"},
    {"parameters", "`minimize loss over \"h.*\" using ...` chooses params by their paths"},
    {"requires_grad", "a `param` is trained, a `frozen param` is not"},
    {"requires_grad_", "a `param` is trained, a `frozen param` is not"},
    {"shape", "an axis' name is its size, as in `x / seq`"},
    {"size", "an axis' name is its size, as in `x / seq`"},
    {"step", "`minimize loss using sgd(lr = 0.1)` trains"},
    {"sub", "x - y"},
    {"t", "rearrange(x, \"h w -> w h\"); mostly it is not needed, since axes line up by their names"},
    {"to", "cast(x, f32); where a program runs, `--target` of the command line says"},
    {"train", "`training` is true in steps of training: if training { ... } else { ... }"},
    {"type", "cast(x, f32)"},
    {"zero_grad", "`minimize loss using sgd(lr = 0.1)` trains: gradients begin at 0 in each step"},
};
static_assert(std::is_sorted(std::begin(kForeignMethods), std::end(kForeignMethods)));

std::string_view find_in(std::span<const std::pair<std::string_view, std::string_view>> table, std::string_view wanted) {
  const auto found =
      std::lower_bound(table.begin(), table.end(), wanted, [](const auto& entry, std::string_view name) { return entry.first < name; });
  return found != table.end() && found->first == wanted ? found->second : std::string_view();
}

}  // namespace

std::string foreign_function_hint(std::string_view function) { return std::string(find_in(kForeignFunctions, function)); }

std::string foreign_method_hint(std::string_view method) {
  const std::string_view own = find_in(kForeignMethods, method);
  return std::string(own.empty() ? find_in(kForeignFunctions, method) : own);
}

}  // namespace einc
