// SPDX-License-Identifier: Apache-2.0
// Attention on the emulated GPU against the interpreter: layouts, masks, groups of heads, odd sizes, gradients, small floats.
#include <doctest/doctest.h>

#include <array>

#include "compiler/codegen/cuda/kernel_text.h"
#include "compiler/library/find_products.h"
#include "tests/support/attention_programs.h"
#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

void check(const std::string& text, const Bindings& dims, double tolerance = 2e-5, RunMode mode = RunMode::training) {
  CAPTURE(text);
  std::string sizes;
  for (const auto& [name, value] : dims) sizes += fmt::format("{}={} ", name.str(), value);
  CAPTURE(sizes);
  const Graph graph = finished(compile_text(text, dims), mode == RunMode::training ? Roots::training : Roots::inference);
  InterpretOptions options;
  options.mode = mode;
  const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1), states = initial_states(graph, dims, 1);
  const InterpretResult wanted = interpret(graph, dims, inputs, params, states, options);
  const CpuRun run = run_cuda(graph, dims, inputs, params, states, options);
  for (size_t o = 0; o < run.outputs.size(); ++o) CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
  for (const auto& [name, value] : run.gradients) {
    CAPTURE(name.str());
    CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
  }
}

}  // namespace

TEST_CASE("cuda: attention, layouts and odd sizes") {
  for (const Layout& layout : kLayouts) check(program(layout, kCausal), sizes(33, 33, 17, 20));
  for (int64_t n : {1, 17, 65}) check(program(kPlain, kCausal), sizes(n, n, 16, 16));
  check(program(kPlain, "s"), sizes(40, 7, 3, 2));
  check(program(kPlain, "s"), sizes(5, 100, 64, 65));
}

TEST_CASE("cuda: attention, masks and what else is made of scores") {
  for (const char* mask : kMasks) check(program(kLayouts[1], mask), sizes(50, 50, 16, 16));
}

TEST_CASE("cuda: attention, rows without keys") {
  for (const char* mask : kKeylessMasks)
    for (const std::string& text : {raised(kLayouts[1], mask), program(kLayouts[1], mask)})
      check(text.substr(0, text.find("loss = ")), sizes(100, 100, 16, 20), 2e-5, RunMode::inference);
}

TEST_CASE("cuda: attention's gradients lie where they are put side by side") {
  const std::pair<const char*, const char*> layouts[] = {
      {"three b h q d", "[b h k d]"}, {"b q three h d", "[b k h d]"}, {"b h q three d", "[b h k d]"}};
  for (const auto& [layout, keys] : layouts) {
    const std::string order = keys == std::string("[b h k d]") ? "b h q d" : "b q h d", of_keys = std::string(keys).substr(1, 7);
    const std::string text = fmt::format(
        "dim b = 2, q = 33, k = q, h = 3, d = 16, f = 24\ninput x: [b q f]\nparam w: [f three=3 h d] ~ normal(std = 1)\n"
        "p = einsum(x, w, \"b q f, f three h d -> {}\")\nm = p[three = 0]\nn: {} = p[three = 1]\nv: {} = p[three = 2]\n"
        "s = einsum(m, n, \"{}, {} -> b h q k\")\nw2 = softmax(where(iota(k) <= iota(q), s, -inf), k)\n"
        "y = einsum(w2, v, \"b h q k, {} -> b h q d\")\nloss = sum(y * y)\nminimize loss using sgd(lr = 0.1)\n",
        layout, keys, keys, order, of_keys, of_keys);
    const Bindings dims{{"q", 33}};
    check(text, dims);
    const Graph graph = finished(compile_text(text, dims));
    const auto program = compile_for_cuda(graph, dims, {});
    for (const GraphKernel& k : program->list.kernels)
      for (NodeId id : k.group.members) CHECK(program->bound[id].op != Op::concat);
    CHECK(program->executable.unfinished.size() == 1);
  }
}

TEST_CASE("cuda: attention, small floats") {
  check(program(kLayouts[1], kCausal, "bf16"), sizes(33, 33, 16, 20), 0.03);
  check(program(kPlain, kCausal, "f16"), sizes(33, 33, 16, 20), 0.004);
}

namespace {

CudaOptions planned_for(std::string_view arch) {
  CudaOptions options;
  options.gpu = gpu_shape_of_arch(arch).value();
  return options;
}

// How the program's attention is multiplied.
std::string kinds_of(const std::string& text, const Bindings& dims, const CudaOptions& options = {}) {
  const Graph graph = finished(compile_text(text, dims));
  const auto program = compile_for_cuda(graph, dims, options);
  std::string kinds;
  for (const GraphKernel& k : program->list.kernels)
    if (k.kernel->attention) kinds += std::string(k.plan->kind) + ";";
  return kinds;
}

}  // namespace

TEST_CASE("cuda: attention in f32 is on tensor cores where the program asks for tf32") {
  const Bindings dims = sizes(130, 130, 32, 16);
  CHECK(kinds_of(program(kPlain, kCausal, "f32"), dims).find("tensor cores") == std::string::npos);
  CHECK(kinds_of(program(kPlain, kCausal, "tf32"), dims).find("attention;") == std::string::npos);
  for (const Layout& layout : {kLayouts[0], kLayouts[1]}) {
    check(program(layout, kCausal, "tf32"), dims, 0.004);
    check(program(layout, "s", "tf32"), sizes(40, 150, 16, 48), 0.004);
    check(program(layout, "s", "tf32"), sizes(100, 7, 16, 16), 0.004);
  }
  check(program(kPlain, kCausal, "tf32"), sizes(70, 70, 128, 128), 0.004);
  check(program(kPlain, kCausal, "tf32"), sizes(70, 70, 256, 256), 0.004);
  for (const char* mask : kMasks) check(program(kLayouts[1], mask, "tf32"), sizes(80, 80, 16, 16), 0.004);
  check(program(kPlain, kCausal, "tf32"), sizes(33, 33, 17, 20));  // rows that are not whole 16 bytes: in f32
}

// A block of a GPU for graphics has 99 KiB, of an H100 227.
TEST_CASE("cuda: attention of wide heads planned for GPUs with little shared memory") {
  for (const auto& [precision, head, tolerance] : {std::tuple{"bf16", 128, 0.03}, {"tf32", 128, 0.004}, {"f32", 300, 2e-5}}) {
    const Bindings dims = sizes(130, 130, head, head);
    const std::string text = program(kPlain, kCausal, precision);
    const Graph graph = finished(compile_text(text, dims), Roots::training);
    const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1);
    const InterpretResult wanted = interpret(graph, dims, inputs, params, {}, {});
    use_test_gpu();
    for (const char* arch : sampled(std::array{"sm_80", "sm_89", "sm_120"}, 3)) {
      CAPTURE(arch);
      CAPTURE(text);
      const CudaOptions options = planned_for(arch);
      const CudaExecutable executable = compile_for_cuda(graph, dims, options)->executable;
      for (const CudaCall& call : executable.calls) CHECK(call.grid.shared_bytes <= options.gpu.block_shared_bytes);
      const CpuRun run = run_compiled(executable, inputs, params, {}, {}, false);
      for (const auto& [name, value] : run.gradients) CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
    }
  }
  // The forward and one of its gradients stay on tensor cores where a block has less.
  const Bindings dims = sizes(130, 130, 128, 128);
  const auto on_tensor_cores = [&](const char* arch) {
    const std::string kinds = kinds_of(program(kPlain, kCausal, "bf16"), dims, planned_for(arch));
    return std::ranges::count(kinds, ';') - static_cast<long>(kinds.find("attention;") != std::string::npos);
  };
  CHECK(on_tensor_cores("sm_90") == 3);
  CHECK(on_tensor_cores("sm_89") == 3);
}

namespace {

// How the sums over rows of a program's gradients are divided.
AttentionBlocks blocks_of_keys(const CudaProgramText& program) {
  for (const GraphKernel& k : program.list.kernels)
    if (k.kernel->attention)
      if (const auto* blocks = std::get_if<AttentionBlocks>(&k.plan->how); blocks && blocks->gathers) return *blocks;
  FAIL("no sums over rows");
  return {};
}

}  // namespace

// GPT-2 in plain f32, a sequence at a time: 12 heads; and keys that groups of heads share.
TEST_CASE("cuda: sums over rows of few heads keep all processors busy") {
  for (const auto& [groups, heads] : {std::pair{12, 1}, {4, 3}, {1, 1}})
    for (const char* arch : {"sm_80", "sm_89", "sm_90", "sm_100"}) {
      CAPTURE(groups);
      CAPTURE(arch);
      Bindings dims = sizes(4096, 4096, 64, 64);
      dims["b"] = 1, dims["g"] = groups, dims["h"] = heads;
      const CudaOptions options = planned_for(arch);
      const Graph graph = finished(compile_text(program(kPlain, kCausal), dims));
      const AttentionBlocks blocks = blocks_of_keys(*compile_for_cuda(graph, dims, options));
      CHECK(blocks.blocks() >= std::min(options.gpu.processors, 128 * groups));
      CHECK(blocks.key_blocks * blocks.keys >= 4096);
    }
  // As many heads as keep it busy: a block does all keys of its own.
  Bindings dims = sizes(256, 256, 64, 64);
  dims["b"] = 64, dims["g"] = 12, dims["h"] = 1;
  const Graph graph = finished(compile_text(program(kPlain, kCausal), dims));
  CHECK(blocks_of_keys(*compile_for_cuda(graph, dims, {})).blocks() == 64 * 12);
}

TEST_CASE("cuda: blocks of keys give the bits of one block") {
  use_test_gpu();
  for (const auto& [mask, rows, keys] :
       {std::tuple{"s", 40, 70}, {kCausal, 100, 100}, {kMasks[1], 130, 130}, {kMasks[2], 90, 120}, {kMasks[7], 100, 100}}) {
    const std::string text = step(kLayouts[1], mask, "f32");
    CAPTURE(text);
    const Bindings dims = sizes(rows, keys, 16, 24);
    const Graph graph = finished(compile_text(text, dims), Roots::inference);
    const TensorMap inputs = inputs_of(graph, dims);
    InterpretOptions options;
    options.mode = RunMode::inference;
    const InterpretResult wanted = interpret(graph, dims, inputs, {}, {}, options);
    CudaOptions one, many;
    one.mode = many.mode = RunMode::inference;
    one.gpu.processors = 1;
    const auto whole = compile_for_cuda(graph, dims, one), divided = compile_for_cuda(graph, dims, many);
    CHECK(blocks_of_keys(*whole).key_blocks == 1);
    CHECK(blocks_of_keys(*divided).key_blocks == (keys + 31) / 32);
    const CpuRun before = run_compiled(whole->executable, inputs, {}, {}, options, false);
    const CpuRun run = run_compiled(divided->executable, inputs, {}, {}, options, false);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, 2e-5) == "");
      CHECK(run.outputs[o].second.reals == before.outputs[o].second.reals);
    }
  }
}

TEST_CASE("cuda: a backward multiplies seven times, and reads one number of each row's softmax") {
  const char* window = "where(iota(k) <= iota(q) and iota(q) - iota(k) < 9, s, -inf)";
  const int64_t queries = 70, rows = 2 * 2 * 2 * queries;
  const Bindings dims = sizes(queries, queries, 32, 16);
  for (const auto& [text, mode] : {std::pair{program(kPlain, kCausal, "bf16"), RunMode::training},
                                   {step(kLayouts[1], window, "f16"), RunMode::inference},
                                   {program(kPlain, "where(iota(k) < length, s, -inf)"), RunMode::training}}) {
    CAPTURE(text);
    const Graph graph = finished(compile_text(text, dims), mode == RunMode::training ? Roots::training : Roots::inference);
    CudaOptions options;
    options.mode = mode;
    const auto program = compile_for_cuda(graph, dims, options);
    std::string products;
    for (const GraphKernel& k : program->list.kernels) {
      if (!k.kernel->attention) continue;
      const std::vector<AttentionStep>& steps = k.kernel->attention->steps;
      const auto folds = std::ranges::count(steps, AttentionPart::fold, &AttentionStep::part);
      products += fmt::format("{}+{} ", static_cast<int64_t>(steps.size()) - folds, folds);
      const auto of_rows = std::ranges::count_if(k.kernel->buffers, [&](const BufferUse& b) {
        return b.dtype == DType::f32 && b.count == rows && b.access != BufferAccess::scratch;
      });
      CHECK(of_rows == (folds > 0 ? 1 : 2));  // a forward writes log_sum; a backward reads that and delta
    }
    CHECK(products == "2+2 3+0 4+0 ");
  }
}

// The same weights would be needed for the backward of another function: a fold that looks alike stays.
TEST_CASE("cuda: a fold that is no softmax's delta stays as it is") {
  const std::string text = R"(
dim b = 2, q = 40, k = 40, d = 16
input query: bf16[b q d]
input keys: bf16[b k d]
input values: bf16[b k d]
input dy: bf16[b q d]
s = einsum(query, keys, "b q d, b k d -> b q k") * 0.25
m = max(s, k)
total = sum(exp(s - m), k)
output y = einsum(exp(s - m) / total, values, "b q k, b k d -> b q d")
dw = einsum(dy, values, "b q d, b k d -> b q k")
w = exp(s * SCALE - m) / total
delta = sum(w * dw, k)
output z = einsum(w * (dw - delta), keys, "b q k, b k d -> b q d")
)";
  for (const char* scale : {"1", "0.5"}) {
    std::string one = text;
    one.replace(one.find("SCALE"), 5, scale);
    check(one, {}, 0.03, RunMode::inference);
  }
}

TEST_CASE("cuda: a block of a program in tf32") {
  const std::string text = R"(
dim n = 64, m = 64
input x: [n m]
param w: [m k=64] ~ normal
param v: [k o=64] ~ normal
precision tf32 { h = einsum(x, w, "n m, m k -> n k") }
output y = einsum(h, v, "n k, k o -> n o")
)";
  CudaOptions options;
  options.library.products = 1;
  const Graph graph = finished(compile_text(text));
  const auto program = compile_for_cuda(graph, {}, options);
  std::vector<ProductSums> sums;
  for (const CudaCall& call : program->executable.calls)
    if (call.gemm) sums.push_back(call.gemm->sums);
  CHECK(sums == std::vector<ProductSums>{ProductSums::tf32, ProductSums::f32});
}

// Whole 16-bit rows: on tensor cores.
TEST_CASE("cuda: attention on tensor cores") {
  for (const Layout& layout : sampled(std::array{kLayouts[0], kLayouts[1]}, 2)) {
    check(program(layout, kCausal, "bf16"), sizes(130, 130, 32, 16), 0.03);
    check(program(layout, kCausal, "f16"), sizes(70, 70, 64, 64), 0.004);
    check(program(layout, "s", "bf16"), sizes(40, 150, 16, 48), 0.03);
    check(program(layout, "s", "bf16"), sizes(100, 7, 16, 16), 0.03);
  }
  check(program(kPlain, kCausal, "bf16"), sizes(200, 200, 128, 128), 0.03);
  check(program(kPlain, kCausal, "bf16"), sizes(70, 70, 256, 256), 0.03);
  for (const char* mask : sampled(kMasks, 2)) check(program(kLayouts[1], mask, "f16"), sizes(80, 80, 16, 16), 0.006);
}

// Lanes hold pairs of a row; memory takes 16 bytes at once, or 8 of f32 and of short rows, as loads give them.
TEST_CASE("cuda: attention stores what lies side by side together") {
  struct Case {
    const char* dtype;
    int64_t head;
    const char* together;
  };
  for (const auto& [dtype, head, together] :
       {Case{"bf16", 64, "reinterpret_cast<Vec<u32, 4>*>"}, {"f16", 16, "reinterpret_cast<Vec<f16, 2>*>"}}) {
    const Bindings dims = sizes(70, 70, head, head);
    const std::string source = step(kLayouts[1], kCausal, dtype);
    const Graph graph = finished(compile_text(source, dims), Roots::inference);
    CudaOptions options;
    options.mode = RunMode::inference;
    const auto program = compile_for_cuda(graph, dims, options);
    int kernels = 0, stores = 0;
    for (const GraphKernel& k : program->list.kernels) {
      if (!k.kernel->attention) continue;
      const std::string text = cuda_function(*k.kernel, *k.plan).body;
      for (size_t at = text.find(together); at != std::string::npos; at = text.find(together, at + 1)) ++stores;
      ++kernels;
    }
    CHECK(kernels == 3);
    CHECK(stores == 4);  // the forward's result, dq, dk and dv
    check(source, dims, 0.03, RunMode::inference);
  }
}

// Four warps multiply together where the GPU has it and heads are whole rows of 128 bytes. What copies have brought is told to the units
// that read it before the barrier, which the emulated GPU cannot check.
TEST_CASE("cuda: attention by wgmma") {
  struct Case {
    int major;
    int64_t head;
    const char* dtype;
    int64_t wgmma, together;  // of three kernels; blocks of that of d k and d v on a processor
  };
  for (const Case& c :
       {Case{9, 64, "bf16", 3, 3}, {9, 128, "f16", 3, 1}, {9, 48, "bf16", 0, 1}, {8, 64, "bf16", 0, 1}, {10, 64, "bf16", 0, 1}}) {
    CAPTURE(c.major);
    CAPTURE(c.head);
    CudaOptions options;
    options.mode = RunMode::inference, options.gpu.major = c.major;
    const Bindings dims = sizes(200, 200, c.head, c.head);
    const Graph graph = finished(compile_text(step(kLayouts[1], kCausal, c.dtype), dims), Roots::inference);
    const auto program = compile_for_cuda(graph, dims, options);
    int64_t wgmma = 0, together = 0;
    for (const GraphKernel& k : program->list.kernels) {
      const auto* tiles = k.plan ? std::get_if<AttentionTiles>(&k.plan->how) : nullptr;
      if (!tiles) continue;
      wgmma += tiles->wgmma ? 1 : 0;
      if (!tiles->results_over_keys) together = k.plan->blocks_together;
      const std::string text = cuda_function(*k.kernel, *k.plan).body;
      const size_t loop = text.find("const int turn");
      REQUIRE(loop != std::string::npos);
      const size_t arrived = text.find("cp_async_wait<0>", loop), told = text.find("wgmma_stored", loop),
                   barrier = text.find("__syncthreads", loop);
      CHECK(arrived < barrier);
      CHECK((told != std::string::npos) == tiles->wgmma);
      if (tiles->wgmma) CHECK((arrived < told && told < barrier && barrier < text.find("wgmma_begin", loop)));
      CHECK((text.find("ldmatrix", loop) == std::string::npos) == tiles->wgmma);
    }
    CHECK(wgmma == c.wgmma);
    CHECK(together == c.together);
  }
}

// A GPU of one processor, which few blocks keep busy: warps of 32 rows wherever registers and shared memory allow.
CudaOptions planned_for_wide_warps() {
  CudaOptions options;
  options.gpu.major = 8, options.gpu.processors = 1;
  options.mode = RunMode::inference;
  return options;
}

int64_t wide_warps(const CudaProgramText& program) {
  return std::ranges::count_if(program.list.kernels, [](const GraphKernel& k) {
    const auto* tiles = k.plan ? std::get_if<AttentionTiles>(&k.plan->how) : nullptr;
    return tiles && tiles->sets == 2;
  });
}

TEST_CASE("cuda: attention by warps of 32 rows has the bits of those of 16") {
  struct Case {
    const char *mask, *dtype;
    int64_t rows, keys, head;
    int64_t wide;  // of three kernels
  };
  const Case cases[] = {
      // Bounds beside the edges of tiles: of a tile that one warp needs and its neighbour does not.
      {"where(iota(k) <= iota(q) + 5, s, -inf)", "bf16", 200, 200, 32, 3},
      {"where(iota(k) + 37 >= iota(q) and iota(k) <= iota(q) + 5, s, -inf)", "bf16", 200, 200, 32, 3},
      {kCausal, "bf16", 200, 200, 64, 2},
      {kCausal, "f16", 131, 131, 32, 3},
      {"s", "bf16", 150, 70, 64, 2},
      {kMasks[1], "bf16", 260, 260, 32, 3},
      {kMasks[2], "f16", 140, 90, 16, 3},
      {kMasks[7], "bf16", 200, 200, 64, 2},
      {kCausal, "bf16", 130, 130, 128, 0},
  };
  use_test_gpu();
  for (const Case& c : sampled(cases, 4)) {
    const std::string text = step(kLayouts[1], c.mask, c.dtype);
    CAPTURE(text);
    const Bindings dims = sizes(c.rows, c.keys, c.head, c.head);
    const Graph graph = finished(compile_text(text, dims), Roots::inference);
    const TensorMap inputs = inputs_of(graph, dims);
    InterpretOptions options;
    options.mode = RunMode::inference;
    const InterpretResult wanted = interpret(graph, dims, inputs, {}, {}, options);
    CudaOptions narrow;
    narrow.gpu.major = 8, narrow.mode = RunMode::inference;
    const auto of_16 = compile_for_cuda(graph, dims, narrow), of_32 = compile_for_cuda(graph, dims, planned_for_wide_warps());
    CHECK(wide_warps(*of_16) == 0);
    CHECK(wide_warps(*of_32) == c.wide);
    const CpuRun before = run_compiled(of_16->executable, inputs, {}, {}, options, false);
    const CpuRun run = run_compiled(of_32->executable, inputs, {}, {}, options, false);
    for (size_t o = 0; o < run.outputs.size(); ++o) {
      CHECK(difference(run.outputs[o].second, wanted.outputs[o].second, 0.03) == "");
      CHECK(run.outputs[o].second.reals == before.outputs[o].second.reals);
    }
  }
}

TEST_CASE("cuda: attention in tf32 by warps of 32 rows") {
  const Bindings dims = sizes(150, 150, 32, 32);
  const Graph graph = finished(compile_text(program(kPlain, kCausal, "tf32"), dims), Roots::training);
  const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1);
  CudaOptions options = planned_for_wide_warps();
  options.mode = RunMode::training;
  const auto program = compile_for_cuda(graph, dims, options);
  CHECK(wide_warps(*program) > 0);
  use_test_gpu();
  const InterpretResult wanted = interpret(graph, dims, inputs, params, {}, {});
  const CpuRun run = run_compiled(program->executable, inputs, params, {}, {}, false);
  for (const auto& [name, value] : run.gradients) CHECK(difference(value, wanted.gradients.at(name), 0.004) == "");
}

// What a plug-in may compute, too: with EINC_ATTENTION_PLUGIN and EINC_ATTENTION_ALWAYS it does.
TEST_CASE("cuda: attention of 16-bit inputs and its gradients") {
  for (const Layout& layout : {kLayouts[0], kLayouts[1]})
    for (const char* mask : {"s", kCausal}) {
      check(step(layout, mask, "bf16"), sizes(70, 70, 64, 64), 0.03, RunMode::inference);
      check(step(layout, mask, "f16"), sizes(40, 40, 128, 128), 0.02, RunMode::inference);
    }
}
