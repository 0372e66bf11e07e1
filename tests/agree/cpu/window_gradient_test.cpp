// SPDX-License-Identifier: Apache-2.0
// Gradients of convolutions: gathered as windows where they may be, added patch by patch where not; the interpreter's values either way.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/support/attention_programs.h"
#include "tests/support/run_cpu.h"
#include "tests/support/run_graph.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

struct Convolution {
  const char* name;
  const char* inputs;  // image i, kernel k and t, by which the result is weighted
  const char* result;  // the convolution
  bool gathered;
};

constexpr Convolution kConvolutions[] = {
    {"3 x 3, padded", "input i: f32[b=2 y=7 x=9 c=8]\ninput k: f32[ky=3 kx=3 c o=6]\ninput t: f32[b p=7 q=9 o]\n",
     "einsum(pad(i, y = (1, 1), x = (1, 1)), k, \"b (p + ky) (q + kx) c, ky kx c o -> b p q o\")", true},
    {"3 x 3 of a large image, not padded", "input i: f32[b=2 y=32 x=30 c=8]\ninput k: f32[ky=3 kx=3 c o=6]\ninput t: f32[b p=30 q=28 o]\n",
     "einsum(i, k, \"b (p + ky) (q + kx) c, ky kx c o -> b p q o\")", true},
    {"5 x 5 of a small image, not padded", "input i: f32[b=2 y=8 x=8 c=8]\ninput k: f32[ky=5 kx=5 c o=6]\ninput t: f32[b p=4 q=4 o]\n",
     "einsum(i, k, \"b (p + ky) (q + kx) c, ky kx c o -> b p q o\")", false},
    {"padded unevenly", "input i: f32[b=2 y=12 x=9 c=8]\ninput k: f32[ky=4 kx=2 c o=6]\ninput t: f32[b p=12 q=9 o]\n",
     "einsum(pad(i, y = (1, 2), x = (0, 1)), k, \"b (p + ky) (q + kx) c, ky kx c o -> b p q o\")", true},
    {"padded by more than the kernel's reach, gathered before the padding is cut off",
     "input i: f32[b=2 y=6 c=8]\ninput k: f32[ky=2 c o=6]\ninput t: f32[b p=9 o]\n",
     "einsum(pad(i, y = (2, 2)), k, \"b (p + ky) c, ky c o -> b p o\")", true},
    {"along one axis, channels first", "input i: f32[b=3 c=8 y=40]\ninput k: f32[o=5 c ky=3]\ninput t: f32[b o p=40]\n",
     "einsum(pad(i, y = (2, 0)), k, \"b c (p + ky), o c ky -> b o p\")", true},
    {"of few channels", "input i: f32[b=2 y=16 c=7]\ninput k: f32[ky=3 c o=6]\ninput t: f32[b p=14 o]\n",
     "einsum(i, k, \"b (p + ky) c, ky c o -> b p o\")", false},
    {"of each channel by itself", "input i: f32[b=3 y=20 c=4]\ninput k: f32[ky=3 c]\ninput t: f32[b p=20 c]\n",
     "einsum(pad(i, y = (1, 1)), k, \"b (p + ky) c, ky c -> b p c\")", false},
    {"by every second place", "input i: f32[b=2 y=8 x=8 c=8]\ninput k: f32[ky=3 kx=3 c o=6]\ninput t: f32[b p=4 q=4 o]\n",
     "einsum(pad(i, y = (1, 0), x = (1, 0)), k, \"b (2*p + ky) (2*q + kx) c, ky kx c o -> b p q o\")", true},
    {"by every second place, padded at both ends",
     "input i: f32[b=2 y=8 x=12 c=8]\ninput k: f32[ky=3 kx=5 c o=6]\ninput t: f32[b p=4 q=6 o]\n",
     "einsum(pad(i, y = (1, 1), x = (2, 2)), k, \"b (2*p + ky) (2*q + kx) c, ky kx c o -> b p q o\")", true},
    {"by every third place, channels first", "input i: f32[b=3 c=8 y=39]\ninput k: f32[o=5 c ky=7]\ninput t: f32[b o p=13]\n",
     "einsum(pad(i, y = (3, 1)), k, \"b c (3*p + ky), o c ky -> b o p\")", true},
    {"by every second place along one of two axes",
     "input i: f32[b=2 y=16 x=16 c=8]\ninput k: f32[ky=3 kx=3 c o=6]\ninput t: f32[b p=16 q=8 o]\n",
     "einsum(pad(i, y = (1, 1), x = (0, 1)), k, \"b (p + ky) (2*q + kx) c, ky kx c o -> b p q o\")", true},
    {"by every second place of a number that is a dim",
     "dim half = 4\ninput i: f32[b=2 y=2*half c=8]\ninput k: f32[ky=3 c o=6]\ninput t: f32[b p=half o]\n",
     "einsum(pad(i, y = (1, 0)), k, \"b (2*p + ky) c, ky c o -> b p o\")", true},
    {"by every second place of an odd number", "input i: f32[b=2 y=9 c=8]\ninput k: f32[ky=3 c o=6]\ninput t: f32[b p=5 o]\n",
     "einsum(pad(i, y = (1, 1)), k, \"b (2*p + ky) c, ky c o -> b p o\")", false},
    {"of patches side by side", "input i: f32[b=2 y=8 c=8]\ninput k: f32[ky=2 c o=6]\ninput t: f32[b p=4 o]\n",
     "einsum(i, k, \"b (2*p + ky) c, ky c o -> b p o\")", false},
    {"of nine remainders", "input i: f32[b=2 y=12 x=12 c=8]\ninput k: f32[ky=5 kx=5 c o=6]\ninput t: f32[b p=4 q=4 o]\n",
     "einsum(pad(i, y = (1, 1), x = (1, 1)), k, \"b (3*p + ky) (3*q + kx) c, ky kx c o -> b p q o\")", false},
    {"by every second place, in bf16", "input i: bf16[b=2 y=16 x=16 c=8]\ninput k: bf16[ky=3 kx=3 c o=6]\ninput t: bf16[b p=8 q=8 o]\n",
     "einsum(pad(i, y = (1, 1), x = (1, 1)), k, \"b (2*p + ky) (2*q + kx) c, ky kx c o -> b p q o\")", true},
    {"with places apart", "input i: f32[b=2 y=20 c=8]\ninput k: f32[ky=3 c o=6]\ninput t: f32[b p=20 o]\n",
     "einsum(pad(i, y = (2, 2)), k, \"b (p + 2*ky) c, ky c o -> b p o\")", false},
    {"in bf16", "input i: bf16[b=2 y=16 x=16 c=8]\ninput k: bf16[ky=3 kx=3 c o=6]\ninput t: bf16[b p=16 q=16 o]\n",
     "einsum(pad(i, y = (1, 1), x = (1, 1)), k, \"b (p + ky) (q + kx) c, ky kx c o -> b p q o\")", true},
    {"in f64", "input i: f64[b=2 y=16 c=8]\ninput k: f64[ky=3 c o=6]\ninput t: f64[b p=16 o]\n",
     "einsum(pad(i, y = (1, 1)), k, \"b (p + ky) c, ky c o -> b p o\")", true},
};

bool has_kernel_of(const CpuProgram& cpu, Op op) {
  return std::ranges::any_of(cpu.lowered().list.kernels, [&](const GraphKernel& k) {
    return std::ranges::any_of(k.group.members, [&](NodeId id) { return cpu.lowered().bound[id].op == op; });
  });
}
bool adds_patches(const CpuProgram& cpu) { return has_kernel_of(cpu, Op::fold); }

}  // namespace

TEST_CASE("gradients of convolutions by their images are convolutions, where that is no more work") {
  for (const Convolution& c : kConvolutions) {
    CAPTURE(std::string(c.name));
    const std::string text =
        fmt::format("{}conv = {}\noutput g = grad(sum(conv * t), i)\noutput kg = grad(sum(conv * t), k)\n", c.inputs, c.result);
    const Graph graph = finished(compile_text(text, {}), Roots::inference);
    TensorMap inputs = inputs_of(graph, {});
    for (auto& [name, value] : inputs) value = from_host(to_host(value));  // rounded to their dtype
    const InterpretResult wanted = interpret(graph, {}, inputs, {}, {});
    CpuOptions options;
    options.mode = RunMode::inference;
    options.cache.clear();
    const CpuProgram cpu(graph, {}, options);
    CHECK(adds_patches(cpu) == !c.gathered);
    CHECK(!has_kernel_of(cpu, Op::concat));  // products of every second place are stored between the others
    InterpretOptions interpreted;
    interpreted.mode = RunMode::inference;
    const CpuRun run = run_program(cpu.program(), cpu.functions(), inputs, {}, {}, interpreted, 2);
    const double tolerance = std::string(c.name).ends_with("in bf16") ? 0x1p-7 : 2e-5;
    for (size_t o = 0; o < run.outputs.size(); ++o) CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
  }
}

TEST_CASE("patches that something else reads are stored and added") {
  const std::string text =
      "input i: f32[b=2 y=18 c=8]\ninput k: f32[ky=3 c o=6]\ninput t: f32[b p=16 o]\n"
      "conv = einsum(i, k, \"b (p + ky) c, ky c o -> b p o\")\noutput g = grad(sum(conv * t), i)\n";
  for (const bool read : {false, true}) {
    const Graph graph =
        finished(compile_text(text + (read ? "output patches = einsum(k, t, \"ky c o, b p o -> b p ky c\")\n" : ""), {}), Roots::inference);
    CpuOptions options;
    options.mode = RunMode::inference;
    options.cache.clear();
    CHECK(adds_patches(CpuProgram(graph, {}, options)) == read);
  }
}
