// SPDX-License-Identifier: Apache-2.0
// When a product with an epilogue is taken instead of the launches that do the same: where cuBLASLt has it, where it is no slower, and as
// the table says once it was measured.
#include <doctest/doctest.h>

#include <fstream>

#include "compiler/pipeline/cuda_program.h"
#include "emulator.h"
#include "runtime/cuda/cold_timer.h"
#include "runtime/cuda/cublaslt_api.h"
#include "tests/support/library_products.h"
#include "tests/support/run_graph.h"

namespace einc {

using namespace library_products;

namespace {

// x of `rows` x 16 times w plus b, then GELU; each size is a shape of its own in the table.
struct Layer {
  explicit Layer(int64_t count) : rows(count) {
    table_file();
    use_test_gpu();
    const Graph graph = compile_text(
        "dim rows = 8\ninput x: f32[rows deep=16]\ninput w: f32[deep wide=24]\ninput b: f32[wide]\n"
        "output y = gelu_tanh(einsum(x, w, \"rows deep, deep wide -> rows wide\") + b)\n",
        {{"rows", rows}});
    CudaOptions options;
    options.mode = RunMode::inference;
    options.library.products = 1;
    gpu.emplace(compile_for_cuda(graph, {{"rows", rows}}, options)->executable);
    for (const char* name : {"x", "w", "b"}) {
      const auto buffer = static_cast<uint32_t>(gpu->executor.find(BufferRole::input, name));
      gpu->executor.set(buffer, numbers(DType::f32, gpu->executable.program.buffers[buffer].shape));
    }
  }

  static HostArray numbers(DType dtype, const std::vector<int64_t>& shape) {
    int64_t count = 1;
    for (const int64_t n : shape) count *= n;
    HostArray array = library_products::numbers(dtype, count);
    array.shape = shape;
    return array;
  }

  // The numbers of the epilogue that ran, plain when the launches were apart.
  unsigned run() {
    gpu->executor.run(1, 1);
    const HostArray y = gpu->executor.get(gpu->executable.program.outputs[0].buffer);
    const std::vector<double> got = TensorView(y.dtype, y.shape, y.bytes.data()).to_doubles();
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < 24; ++c) {
        double sum = number(c);
        for (int64_t k = 0; k < 16; ++k) sum += number(r * 16 + k) * number(k * 24 + c);
        const double gelu = 0.5 * sum * (1 + std::tanh(std::sqrt(2 / M_PI) * (sum + 0.044715 * sum * sum * sum)));
        CHECK(got[static_cast<size_t>(r * 24 + c)] == doctest::Approx(gelu).epsilon(1e-5));
      }
    return emulator::last_gemm_epilogue();
  }

  int64_t rows;
  std::optional<OnGpu> gpu;
};

constexpr unsigned kBiasGelu = cuda::kLtGelu | cuda::kLtAddBias;

}  // namespace

TEST_CASE("a product takes what follows it along") {
  Layer layer(16);
  REQUIRE(layer.gpu->executable.fused.size() == 1);
  const auto kernels = emulator::calls("cuLaunchKernel"), products = emulator::calls("cublasLtMatmul");
  CHECK(layer.run() == kBiasGelu);
  // Each algorithm is tried and timed, both ways are timed, then one of them runs.
  CHECK(emulator::calls("cuLaunchKernel") == kernels + cuda::ColdTimer::kRuns);
  CHECK(emulator::calls("cublasLtMatmul") == products + 2 * (1 + cuda::ColdTimer::kRuns) + 2 * cuda::ColdTimer::kRuns + 1);
}

TEST_CASE("where it takes longer the launches stay apart, also in the next process") {
  emulator::set_epilogue_milliseconds(2);
  CHECK(Layer(24).run() == cuda::kLtPlain);
  emulator::set_epilogue_milliseconds(1);
  CHECK(Layer(24).run() == cuda::kLtPlain);
  CHECK(Layer(32).run() == kBiasGelu);
  std::ifstream in(table_file());
  const std::string table{std::istreambuf_iterator<char>(in), {}};
  CHECK(table.find(" = apart\n") != std::string::npos);
  CHECK(table.find(" = together\n") != std::string::npos);
}

TEST_CASE("without epilogues in cuBLASLt the launches do the same") {
  using emulator::Epilogues;
  emulator::set_epilogues(Epilogues::missing);
  CHECK(Layer(40).run() == cuda::kLtPlain);
  emulator::set_epilogues(Epilogues::unusable);
  CHECK(Layer(56).run() == cuda::kLtPlain);
  emulator::set_epilogues(Epilogues::offered);
}

TEST_CASE("a table says which way, and its hash is another for the other") {
  using cuda::AlgorithmTable;
  const std::string path = table_file() + "_ways";
  std::filesystem::remove(path);
  AlgorithmTable writes(path), other("");
  CHECK(writes.way_of("key", [] { return AlgorithmTable::Way::apart; }) == AlgorithmTable::Way::apart);
  CHECK(other.way_of("key", [] { return AlgorithmTable::Way::together; }) == AlgorithmTable::Way::together);
  CHECK(writes.used_hash() != other.used_hash());
  AlgorithmTable reads(path);
  CHECK(reads.way_of("key", []() -> AlgorithmTable::Way { throw std::logic_error("the table has it"); }) == AlgorithmTable::Way::apart);
  CHECK(reads.used_hash() == writes.used_hash());
  std::filesystem::remove(path);
}

TEST_CASE("a product that lands in a state gives the same where its algorithm is measured and where it is known") {
  const Graph graph = compile_text(
      "dim rows = 20\ninput x: f32[rows deep=16]\ninput w: f32[deep wide=24]\nstate s: f32[rows wide] ~ zeros\n"
      "output y = s * 2\ns <- einsum(x, w, \"rows deep, deep wide -> rows wide\")\n",
      {});
  CudaOptions options;
  options.library.products = 1;
  const auto runs = [&] {
    OnGpu gpu(compile_for_cuda(graph, {}, options)->executable);
    const auto give = [&](BufferRole role, const char* name) {
      const auto buffer = static_cast<uint32_t>(gpu.executor.find(role, name));
      gpu.executor.set(buffer, Layer::numbers(DType::f32, gpu.executable.program.buffers[buffer].shape));
      return buffer;
    };
    give(BufferRole::input, "x"), give(BufferRole::input, "w");
    const uint32_t state = give(BufferRole::state, "s");
    gpu.executor.run(1, 1);
    return std::pair{gpu.executor.get(gpu.executable.program.outputs[0].buffer).bytes, gpu.executor.get(state).bytes};
  };
  table_file();
  use_test_gpu();
  emulator::set_gemm_candidates(3);
  const auto products = emulator::calls("cublasLtMatmul");
  const auto measured = runs();
  CHECK(emulator::calls("cublasLtMatmul") == products + 3 * (1 + cuda::ColdTimer::kRuns) + 1);
  const auto known = runs();
  CHECK(emulator::calls("cublasLtMatmul") == products + 3 * (1 + cuda::ColdTimer::kRuns) + 2);
  emulator::set_gemm_candidates(1);
  CHECK((measured == known));
}

TEST_CASE("a search for a fault sees every value, a trace gives the time to the product") {
  Layer layer(48);
  CHECK(layer.run() == kBiasGelu);
  std::vector<size_t> launches;
  layer.gpu->executor.run_while(
      1, 1,
      [&](size_t launch) {
        launches.push_back(launch);
        return true;
      },
      CudaExecutor::Products::apart);
  CHECK(launches == std::vector<size_t>{0, 1});
  CHECK(emulator::last_gemm_epilogue() == cuda::kLtPlain);
  const std::vector<LaunchSpan> spans = layer.gpu->executor.run_traced(1, 2);
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].launch == 1);
  CHECK(spans[0].end == spans[0].begin);
  CHECK(spans[1].launch == 0);
}

}  // namespace einc
