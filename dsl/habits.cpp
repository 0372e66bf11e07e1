// SPDX-License-Identifier: Apache-2.0
// Each hint says what to write. The list is searched for names that begin statements or stand where nothing of that name is known, so a
// program may use any of these words as names of its own.
#include "dsl/habits.h"

#include <algorithm>
#include <array>

namespace einc {
namespace {

constexpr auto kWordHabits = std::to_array<WordHabit>({
    {"def", HabitKind::block, "a function is `fn`, with its body in braces: fn act(x) { return relu(x) }"},
    {"function", HabitKind::block, "a function is `fn`: fn act(x) { return relu(x) }"},
    {"func", HabitKind::block, "a function is `fn`: fn act(x) { return relu(x) }"},
    {"class", HabitKind::block,
     "there are no classes: a layer is a fn, with its params inside: fn layer(x: [... c]) { param w: [c] ~ ones ... }"},
    {"struct", HabitKind::block, "there are no structs: a fn hands over several values by `return a, b`"},
    {"while", HabitKind::block,
     "a loop has a count known while compiling, `for i in 3 { ... }`, or runs along an axis, `scan t in time { ... }`"},
    {"with", HabitKind::block, "there are no contexts: stop_gradient(x) replaces no_grad, `precision bf16 { ... }` autocast"},
    {"try", HabitKind::block, "there are no exceptions: what can go wrong is said before the program runs"},
    {"elif", HabitKind::block, "write `else if`, on the line of the `}` before it", "else if"},
    {"switch", HabitKind::block, "write if ... { } else if ... { }"},
    {"match", HabitKind::block, "write if ... { } else if ... { }"},
    {"let", HabitKind::binding, "a binding has no word before it: y = ..."},
    {"var", HabitKind::binding, "a binding has no word before it: y = ..."},
    {"val", HabitKind::binding, "a binding has no word before it: y = ..."},
    {"auto", HabitKind::binding, "a binding has no word before it: y = ..."},
    {"const", HabitKind::line, "a size is declared by `dim n = 8`, a value bound by `y = ...`"},
    {"int", HabitKind::line, "a size is declared by `dim n = 8`, a value bound by `y = ...`"},
    {"float", HabitKind::line, "a value is bound by `y = ...`, a dtype is part of a type: input x: f32[n]"},
    {"from", HabitKind::line, "ops are words of the language; `import nn` brings in the bundled layers"},
    {"assert", HabitKind::line, "shapes are proved while compiling: an annotation states them, y: [a b] = x"},
    {"global", HabitKind::line, "a fn sees no outside values: pass them as arguments"},
    {"del", HabitKind::line, "memory is planned: a value ends where it is read last"},
    {"print", HabitKind::line, "`output y` is what a run shows"},
    {"raise", HabitKind::line, "there are no exceptions"},
    {"yield", HabitKind::line, "a fn ends with `return`; a scan gathers values by `collect`"},
    {"async", HabitKind::line, "the order of work is planned by the compiler"},
    {"module", HabitKind::block, "a layer is a fn: fn layer(x: [... c]) { ... }"},
    {"model", HabitKind::block, "a file is a model: write its statements without a block, or a fn"},
    {"tensor", HabitKind::line, "a tensor is an `input`, a `param` or a `state`: input x: f32[batch seq]"},
    {"maximize", HabitKind::line, "minimize its negative: minimize -score using adamw(lr = 1e-3)"},
    {"maximise", HabitKind::line, "minimize its negative: minimize -score using adamw(lr = 1e-3)"},
    {"minimise", HabitKind::line, "write `minimize`", "minimize"},
    {"pass", HabitKind::alone, "a fn ends with `return` and a value"},
    {"break", HabitKind::alone, "a loop runs its whole count: where(c, a, b) chooses between values"},
    {"continue", HabitKind::alone, "a loop runs its whole body: where(c, a, b) chooses between values"},
    {"lambda", HabitKind::value, "a function has a name: fn act(x) { return relu(x) }"},
    {"None", HabitKind::value, "there is no None: leave the argument or the statement out"},
    {"null", HabitKind::value, "there is no null: leave the argument or the statement out"},
    {"True", HabitKind::value, "write `true`", "true"},
    {"False", HabitKind::value, "write `false`", "false"},
    {"self", HabitKind::value, "there are no objects: a fn's params are declared inside it, param w: [c] ~ ones"},
    {"float32", HabitKind::value, "write `f32`", "f32"},
    {"float64", HabitKind::value, "write `f64`", "f64"},
    {"float16", HabitKind::value, "write `f16`", "f16"},
    {"bfloat16", HabitKind::value, "write `bf16`", "bf16"},
    {"int32", HabitKind::value, "write `i32`", "i32"},
    {"int64", HabitKind::value, "write `i64`", "i64"},
    {"uint8", HabitKind::value, "write `u8`", "u8"},
    {"long", HabitKind::value, "write `i64`", "i64"},
    {"double", HabitKind::value, "write `f64`", "f64"},
    {"half", HabitKind::value, "write `f16`", "f16"},
});

constexpr auto kModules = std::to_array<std::string_view>(
    {"torch", "nn", "F", "np", "numpy", "jnp", "jax", "lax", "tf", "keras", "math", "einops", "functional", "optim", "self"});

}  // namespace

const WordHabit* find_habit(std::string_view word) {
  const auto found = std::find_if(kWordHabits.begin(), kWordHabits.end(), [&](const WordHabit& h) { return h.word == word; });
  return found == kWordHabits.end() ? nullptr : &*found;
}

bool is_foreign_module(std::string_view word) { return std::find(kModules.begin(), kModules.end(), word) != kModules.end(); }

}  // namespace einc
