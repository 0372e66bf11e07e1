// SPDX-License-Identifier: Apache-2.0
// A program that trains one param of four numbers, w, by hand: y = w * x; loss = sum of (y - t)^2; w -= rate * 2 (y - t) x. Its state
// counts the steps. `ids` picks which element of w multiplies x.
#pragma once
#include "runtime/cuda/cuda_program.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {

constexpr const char* kPick = R"(
extern "C" __global__ void pick(const f32* w, const f32* x, const i32* ids, f32* y, const u64* step, const u64* keys, Fault* fault,
                                i32 launch) {
  const i32 i = threadIdx.x;
  i32 at = ids[i];
  if (at < 0 || at >= 4) {
    index_fault(fault, launch, 0, i, at);
    at = 0;
  }
  y[i] = w[at] * x[i];
})";
constexpr const char* kLoss = R"(
extern "C" __global__ void square_loss(const f32* y, const f32* t, f32* loss, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  __shared__ f32 part[4];
  const i32 i = threadIdx.x;
  part[i] = (y[i] - t[i]) * (y[i] - t[i]);
  __syncthreads();
  if (i == 0) *loss = part[0] + part[1] + part[2] + part[3];
})";
constexpr const char* kUpdate = R"(
extern "C" __global__ void update(const f32* y, const f32* t, const f32* x, const i32* ids, f32* w, f32* gradient, f32* count,
                                  const u64* step, const u64* keys, Fault* fault, i32 launch) {
  const i32 i = threadIdx.x;
  f32 sum = 0;
  for (i32 k = 0; k < 4; ++k)
    if (ids[k] == i) sum += 2.f * (y[k] - t[k]) * x[k];
  gradient[i] = sum;
  w[i] -= 0.125f * sum;
  if (i == 0) *count += 1.f;
})";

class TrainedProgram {
 public:
  static CudaProgram make() {
    ProgramInfo info;
    info.name = "trained.ein";
    info.inputs = {{"x", DType::f32, {"n"}, {4}}, {"t", DType::f32, {"n"}, {4}}, {"ids", DType::i32, {"n"}, {4}}};
    info.params = {{"w", DType::f32, {"n"}, {4}}};
    info.states = {{"count", DType::f32, {}, {}}};
    info.outputs = {{"y", DType::f32, {"n"}, {4}}};
    info.param_inits = {{InitKind::ones, {}}};
    info.state_inits = {{InitKind::zeros, {}}};
    info.trains = true;
    PerPart<CudaExecutable> parts;
    parts[Part::forward] = part({kPick}, {"pick"});
    parts[Part::evaluation] = part({kPick, kLoss}, {"pick", "square_loss"});
    parts[Part::training] = part({kPick, kLoss, kUpdate}, {"pick", "square_loss", "update"});
    use_test_gpu();
    return CudaProgram(info, parts, test_cubins(), 2);
  }

 private:
  static CudaExecutable part(const std::vector<std::string>& texts, const std::vector<std::string>& functions) {
    CudaExecutable executable;
    Executable& program = executable.program;
    const auto add = [&](BufferRole role, const char* name, DType dtype, std::vector<int64_t> shape) {
      const int64_t bytes = shape.empty() ? 4 : shape[0] * 4;
      program.buffers.push_back({role, name, dtype, std::move(shape), bytes, program.memory_bytes, InitKind::zeros, {}});
      program.memory_bytes += 256;
    };
    add(BufferRole::arena, "", DType::f32, {4});
    add(BufferRole::arena, "", DType::f32, {});
    add(BufferRole::gradient, "w", DType::f32, {4});
    program.own_bytes = program.memory_bytes;
    add(BufferRole::input, "x", DType::f32, {4});
    add(BufferRole::input, "t", DType::f32, {4});
    add(BufferRole::input, "ids", DType::i32, {4});
    add(BufferRole::param, "w", DType::f32, {4});
    add(BufferRole::state, "count", DType::f32, {});
    enum : uint32_t { y, loss, gradient, x, t, ids, w, count };
    const std::vector<std::vector<uint32_t>> buffers{{w, x, ids, y}, {y, t, loss}, {y, t, x, ids, w, gradient, count}};
    const char* labels[] = {"picked", "loss", "w's update"};
    for (uint32_t l = 0; l < functions.size(); ++l) {
      Launch launch;
      launch.function = l;
      launch.buffers = buffers[l];
      launch.label = labels[l];
      launch.location = "trained.ein:" + std::to_string(l + 3) + ":1";
      if (l == 2) launch.when = LaunchWhen::checked;
      if (l == 0) launch.sites = {{"ids", "axis 'n' of 'w'", {4}, 4, " (trained.ein:3:9)"}};
      program.launches.push_back(launch);
      executable.calls.push_back({{{1, 1, 1}, {4, 1, 1}, 0}, std::nullopt});
    }
    program.functions = functions;
    program.outputs = {{"y", y}};
    if (functions.size() > 1) program.loss = loss;
    if (functions.size() > 2) program.gradients = {{"w", gradient}}, program.checks = {{NonFinite::loss, loss}};
    executable.prelude = cuda_prelude();
    executable.texts = texts;
    executable.workspace_bytes = 5 << 20;
    return executable;
  }
};

inline constexpr Source kX{SourceKind::input, 0}, kT{SourceKind::input, 1}, kIds{SourceKind::input, 2}, kW{SourceKind::param, 0},
    kCount{SourceKind::state, 0};

inline const CudaProgram& trained_program() {
  static const CudaProgram program = TrainedProgram::make();
  return program;
}

}  // namespace einc
