// SPDX-License-Identifier: Apache-2.0
// The prelude through NVRTC itself, to machine code of the GPUs that einc is for. NVRTC needs no GPU; where it is not installed nothing is
// tested here, and the test says so.
#include <doctest/doctest.h>

#include "compiler/codegen/cuda/prelude.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/libraries.h"

namespace einc {
namespace {

constexpr const char* kAll = R"(
extern "C" __global__ void __launch_bounds__(64) all_of_it(const f32* x, f32* y, Fault* fault, i32 launch) {
  __shared__ f32 held[64];
  EINC_SHARED(memory);
  const i32 i = threadIdx.x;
  held[i] = x[i];
  __syncthreads();
  f32 sum = to_f32(to_bf16(held[63 - i])) + to_f32(to_f16(x[i])) + to_f32(to_e4m3(x[i])) + to_f32(to_e5m2(x[i]));
  if (x[i] < 0) index_fault(fault, launch, 0, i, static_cast<i64>(x[i]));
  cp_async16(memory + 16 * i, x + 4 * i, 8);
  cp_async_commit();
  cp_async_wait<0>();
  __syncthreads();
  u32 a[4], b[4];
  ldmatrix_x4(a, memory + 16 * i);
  ldmatrix_x4_trans(b, memory + 16 * i);
  f32 c[4] = {};
  mma_m16n8k16_bf16(c, a, b);
  mma_m16n8k16_f16(c, a, b + 2);
  Vec<f32, 4> v = load_vec<4>(x + 4 * i);
  v.at[0] += c[0] + sum + larger(smaller(exp2_short(sum), c[1]), round_to_bf16(c[2]));
  v.at[1] += __uint_as_float(pack_bf16x2(c[1], c[2]) ^ pack_f16x2(c[3], c[0]));
  transpose_quad(a);
  v.at[2] += __uint_as_float(a[0]);
  store_vec(y + 4 * i, v);
}
)";

bool is_here() {
  if (cuda::has_nvrtc()) return true;
  MESSAGE("NVRTC is not installed: nothing was compiled");
  return false;
}

}  // namespace

TEST_CASE("the prelude compiles for sm_80, sm_90 and sm_100 without spills") {
  if (!is_here()) return;
  FileCache none("");
  for (const char* arch : {"sm_80", "sm_90", "sm_100"}) {
    CAPTURE(arch);
    const cuda::Cubin cubin = cuda::compile_cubin(std::string(cuda_prelude()) + kAll, arch, none);
    CHECK(cubin.code.substr(1, 3) == "ELF");
    REQUIRE(cubin.kernels.size() == 1);
    const cuda::KernelUse& use = cubin.kernels[0];
    CHECK(use.name == "all_of_it");
    CHECK(use.registers > 8);
    CHECK(use.registers <= 128);
    CHECK(use.spill_store_bytes + use.spill_load_bytes == 0);
    CHECK(use.shared_bytes == 1024);  // 256 declared, and then up to where dynamic memory begins
    CHECK(use.barriers == 1);
  }
}

TEST_CASE("vectors are read and written at once") {
  if (!is_here()) return;
  const std::string ptx = cuda::compile_ptx(std::string(cuda_prelude()) + R"(
extern "C" __global__ void eight(const bf16* x, bf16* y) { store_vec(y + 8 * threadIdx.x, load_vec<8>(x + 8 * threadIdx.x)); })",
                                            "sm_90");
  CHECK(ptx.find("ld.global.v4.u32") != std::string::npos);
  CHECK(ptx.find("st.global.v4.u32") != std::string::npos);
}

TEST_CASE("a product and a sum are one operation only where the text says so") {
  if (!is_here()) return;
  const std::string ptx = cuda::compile_ptx(std::string(cuda_prelude()) + R"(
extern "C" __global__ void apart(const f32* x, f32* y) { y[threadIdx.x] = x[0] * x[threadIdx.x] + x[1]; }
extern "C" __global__ void at_once(const f32* x, f32* y) { y[threadIdx.x] = add_product(x[0], x[threadIdx.x], x[1]); })",
                                            "sm_90");
  const std::string at_once = ptx.substr(ptx.find(".entry at_once"));
  CHECK(ptx.substr(0, ptx.find(".entry at_once")).find("fma.rn.f32") == std::string::npos);
  CHECK(at_once.find("fma.rn.f32") != std::string::npos);
}

TEST_CASE("an arch that NVRTC does not know is named") {
  if (!is_here()) return;
  FileCache none("");
  std::string said;
  try {
    cuda::compile_cubin(std::string(cuda_prelude()), "sm_12345", none);
  } catch (const RuntimeFailure& failure) {
    said = failure.what();
  }
  CHECK(said.find("this version of NVRTC does not take --gpu-architecture=sm_12345") == 0);
}

TEST_CASE("what a kernel takes is read from the assembler's log, and survives the cache") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90'\n"
      "ptxas info    : Function properties for helper\n"
      "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Function properties for first\n"
      "    24 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
      "ptxas info    : Used 42 registers, used 3 barriers, 24 bytes cumulative stack size, 1024 bytes smem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90'\n"
      "ptxas info    : Function properties for second\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n";
  CHECK(cuda::parse_kernel_use(log) == std::vector<cuda::KernelUse>{{"first", 42, 3, 24, 12, 20, 1024}, {"second", 8, 0, 0, 0, 0, 0}});
}

}  // namespace einc
