// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/cuda_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/codegen/cuda/kernel_text.h"
#include "compiler/codegen/cuda/prelude.h"
#include "compiler/gpu_plan/thread_plan.h"
#include "compiler/lower/assemble_program.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kWorkspaceBytes = 32 << 20;  // what cuBLASLt wants on Hopper

// Functions of kernels, equal ones once.
class Maker {
 public:
  Maker(const BoundGraph& graph, const KernelList& list, CudaExecutable& out, const GpuShape& gpu)
      : graph_(graph), list_(list), out_(out), gpu_(gpu) {}

  void choose(const BoundGraph& graph, const GraphKernel& k, Launch& launch) {
    if (&graph != &graph_) return choose_in_body(k, launch);
    for (size_t i = 0; i < k.buffers.size(); ++i)
      if (k.buffers[i].valid()) buffer_of_[k.buffers[i].index] = launch.buffers[i];
    if (launch.function == kNoFunction) return void(out_.calls.emplace_back());
    note_orders(k, launch);
    if (const LibraryProduct* product = list_.library.product(out_.calls.size())) {
      out_.workspace_bytes = kWorkspaceBytes;
      out_.calls.push_back({{}, in_buffers(*product)});
      launch.domain = 1;
      return;
    }
    launch.function = function_of(k, known_);
    const CudaFunction& function = functions_[launch.function];
    out_.calls.push_back({function.grid, std::nullopt});
    launch.domain = function.grid.blocks[0];
    scratch_bytes_ = std::max(scratch_bytes_, function.scratch_bytes);
  }

  // Memory that kernels use while they run lies behind what the program has of its own, before the sources.
  void finish() {
    Executable& program = out_.program;
    for (size_t f = 0; f < functions_.size(); ++f) name_function(f);
    note_unfinished();
    for (const FusedProduct& fused : list_.library.fused)
      out_.fused.push_back({in_buffers(fused.product), fused.parts, fused.plain, fused.at, std::nullopt});
    for (const AttentionCall& call : list_.library.attention) out_.attention.push_back(in_buffers(call));
    out_.attention_refusals = list_.library.attention_refusals;
    join();
    for (CudaFusedProduct& fused : out_.fused) add_cast(fused);
    for (size_t f = 0; f < functions_.size(); ++f)
      out_.texts.push_back(
          definition(functions_[f], program.functions[f], out_.by_table[f] ? BufferPassing::by_table : BufferPassing::one_by_one));
    if (scratch_bytes_ == 0) return;
    const int64_t from = (program.own_bytes + kAlignment - 1) / kAlignment * kAlignment;
    const int64_t by = from + (scratch_bytes_ + kAlignment - 1) / kAlignment * kAlignment - program.own_bytes;
    for (ExecutableBuffer& b : program.buffers)
      if (b.offset >= program.own_bytes) b.offset += by;
    program.own_bytes += by;
    program.memory_bytes += by;
    const auto scratch = static_cast<uint32_t>(program.buffers.size());
    ExecutableBuffer buffer;
    buffer.dtype = DType::u8;
    buffer.shape = {scratch_bytes_};
    buffer.bytes = scratch_bytes_;
    buffer.offset = from;
    program.buffers.push_back(std::move(buffer));
    for (size_t i = 0; i < program.launches.size(); ++i) {
      Launch& launch = program.launches[i];
      if (launch.function != kNoFunction && !out_.calls[i].gemm && functions_[launch.function].scratch_bytes > 0)
        launch.buffers.push_back(scratch);
    }
    for (size_t i = 0; i < program.launches.size(); ++i)
      if (Launch& launch = program.launches[i]; launch.scan >= 0) {
        launch.buffers.push_back(scratch);
        hand_scratch(program.scans[static_cast<size_t>(launch.scan)], static_cast<uint32_t>(launch.buffers.size()) - 1);
      }
    for (CudaFusedProduct& fused : out_.fused)
      if (fused.cast) fused.cast->to = fused.gemm.epilogue.bias->buffer = scratch;
  }

 private:
  // Operands that are values of the graph, by the buffers that they lie in.
  LibraryProduct in_buffers(LibraryProduct product) const {
    const auto place = [&](auto& buffer) { buffer = buffer_of_.at(buffer); };
    for (LibraryMatrix* m : {&product.left, &product.right, &product.result}) place(m->buffer);
    if (product.scale) place(*product.scale);
    LibraryEpilogue& e = product.epilogue;
    for (auto* numbers : {&e.bias, &e.left_sums, &e.right_sums})
      if (*numbers) place((*numbers)->buffer);
    for (auto* matrix : {&e.addend, &e.input})
      if (*matrix) place(**matrix);
    return product;
  }

  CudaAttention in_buffers(const AttentionCall& call) {
    const auto place = [&](const AttentionCall::Operand& o) {
      return o.value.valid() ? CudaAttention::Operand{buffer_of_.at(o.value.index), o.offset} : CudaAttention::Operand{};
    };
    out_.workspace_bytes = std::max(out_.workspace_bytes, call.workspace_bytes);
    return {call.problem,        call.parts,      place(call.q),   place(call.k),   place(call.v),  place(call.o),
            place(call.log_sum), place(call.d_o), place(call.d_q), place(call.d_k), place(call.d_v)};
  }

  // Launches of one kernel have one function, and its grid.
  void join() {
    out_.by_table.assign(functions_.size(), false);
    for (uint32_t l = 0; l < list_.runs_with.size(); ++l) {
      const uint32_t leader = list_.runs_with[l];
      if (leader == l) continue;
      const Launch &first = out_.program.launches[leader], &other = out_.program.launches[l];
      EINC_CHECK(first.function == other.function, "launch {} is joined with another function's", l);
      out_.calls[leader].together.push_back(l);
      out_.calls[l].done_before = true;
      out_.by_table[first.function] = true;
    }
  }

  void name_function(size_t f) { out_.program.functions.push_back(fmt::format("k{}", f)); }

  // cuBLASLt adds a bias in the format of the result.
  void add_cast(CudaFusedProduct& fused) {
    const LibraryProduct& g = fused.gemm;
    if (!g.epilogue.bias || g.epilogue.bias->dtype == g.result.dtype) return;
    const auto [known, fresh] = cast_of_.try_emplace({g.columns, g.result.dtype}, static_cast<uint32_t>(functions_.size()));
    if (fresh) {
      const Kernel kernel = cast_kernel(g.columns, g.epilogue.bias->dtype, g.result.dtype);
      functions_.push_back(cuda_function(kernel, plan_on_gpu(kernel, gpu_, ProductSums::f32)));
      name_function(known->second);
      out_.by_table.push_back(false);
    }
    fused.cast = {known->second, functions_[known->second].grid, g.epilogue.bias->buffer, 0};
    fused.gemm.epilogue.bias->dtype = g.result.dtype;
    scratch_bytes_ = std::max(scratch_bytes_, g.columns * bytes_of(g.result.dtype));
  }

  static Kernel cast_kernel(int64_t count, DType from, DType to) {
    Kernel kernel;
    kernel.axes = {{count, Name("column")}};
    kernel.outer = {0};
    kernel.buffers = {{from, BufferAccess::read, count}, {to, BufferAccess::write, count}};
    Scalar load, cast;
    load.kind = ScalarKind::load, load.dtype = from, load.index = Affine::of_axis(0);
    cast.kind = ScalarKind::cast, cast.dtype = to, cast.operands = {0};
    kernel.values = {load, cast};
    kernel.stages = {{{}, {}, {{1, Affine::of_axis(0), 1, StoreMode::set}}, false}};
    return kernel;
  }

  // Its kernels are functions of their own: those of the whole may be given tables of addresses.
  void choose_in_body(const GraphKernel& k, Launch& launch) {
    if (launch.scan >= 0) return;
    launch.function = function_of(k, known_in_bodies_);
    launch.domain = functions_[launch.function].grid.blocks[0];
    scratch_bytes_ = std::max(scratch_bytes_, functions_[launch.function].scratch_bytes);
    out_.grids.resize(functions_.size());
    out_.grids[launch.function] = functions_[launch.function].grid;
  }

  // The launch's buffer of this number to all kernels of the body that work in memory besides.
  void hand_scratch(ScanProgram& scan, uint32_t place) {
    const auto scratch = static_cast<uint32_t>(scan.body.buffers.size());
    ExecutableBuffer buffer;
    buffer.dtype = DType::u8;
    buffer.shape = {scratch_bytes_};
    buffer.bytes = scratch_bytes_;
    buffer.role = BufferRole::input;
    scan.body.buffers.push_back(std::move(buffer));
    scan.buffers.push_back({scratch, place, 0, 0});
    for (Launch& launch : scan.body.launches) {
      if (launch.scan >= 0 || functions_[launch.function].scratch_bytes > 0) launch.buffers.push_back(scratch);
      if (launch.scan >= 0)
        hand_scratch(scan.body.scans[static_cast<size_t>(launch.scan)], static_cast<uint32_t>(launch.buffers.size()) - 1);
    }
  }

  // A value that several launches make is whole after the last of them.
  void note_unfinished() {
    std::map<uint32_t, uint32_t> maker;
    for (uint32_t l = 0; l < list_.kernels.size(); ++l)
      for (size_t i = 0; i < list_.kernels[l].buffers.size(); ++i) {
        if (list_.kernels[l].kernel->buffers[i].access == BufferAccess::read || !list_.kernels[l].buffers[i].valid()) continue;
        const uint32_t buffer = out_.program.launches[l].buffers[i];
        const auto [known, first] = maker.try_emplace(buffer, l);
        if (first || known->second == l) continue;
        out_.unfinished[known->second].push_back(buffer);
        known->second = l;
      }
  }

  void note_orders(const GraphKernel& k, const Launch& launch) {
    if (graph_.order.empty()) return;
    for (size_t i = 0; i < k.buffers.size(); ++i) {
      if (!k.buffers[i].valid()) continue;
      if (const auto& order = graph_.order[k.buffers[i].index]; !order.empty())
        out_.orders[launch.buffers[i]] = {order.begin(), order.end()};
    }
  }

  using Functions = std::unordered_map<std::string, uint32_t>;  // by text

  uint32_t function_of(const GraphKernel& k, Functions& known) {
    EINC_CHECK(k.plan, "a kernel whose threads are not planned");
    const auto [same, fresh] = function_of_.try_emplace(k.plan.get());
    if (fresh) same->second = function_alike(*k.kernel, *k.plan, known);
    return same->second;
  }

  uint32_t function_alike(const Kernel& kernel, const GpuPlan& plan, Functions& known) {
    CudaFunction function = cuda_function(kernel, plan);
    const auto [same, fresh] = known.emplace(definition(function, ""), static_cast<uint32_t>(functions_.size()));
    if (fresh) functions_.push_back(std::move(function));
    return same->second;
  }

  const BoundGraph& graph_;
  const KernelList& list_;
  CudaExecutable& out_;
  const GpuShape& gpu_;
  std::unordered_map<uint32_t, uint32_t> buffer_of_;  // by value of the graph
  std::vector<CudaFunction> functions_;
  std::unordered_map<const GpuPlan*, uint32_t> function_of_;
  Functions known_, known_in_bodies_;                      // of launches, and of those in iterations
  std::map<std::pair<int64_t, DType>, uint32_t> cast_of_;  // of a vector of so many numbers to a format
  int64_t scratch_bytes_ = 0;
};

}  // namespace

KernelTarget cuda_target(const GpuShape& gpu, const LibraryLimits& library) {
  KernelTarget target;
  target.gpu = gpu;
  target.column_sums = kColumnSums;
  target.own_parts = kOwnParts;
  target.library = library;
  target.sum_order = SumOrder::of_kernel;
  target.flops_per_byte = 150;  // of bf16 on an A100: 312 TFLOP/s and 2.04 TB/s (cost/devices.cpp); an H100 has 295
  // Two blocks of a product's tiles on a processor, each for some turns at least.
  const int64_t sums = 2 * gpu.processors * 64 * 64;
  target.divide_products = {
      .points = sums, .elements = 1 << 22, .most_parts = 512, .enough_parts = 64, .smallest_part = 512, .most_points = sums};
  // Blocks of a row each, two on a processor; threads of a column each, an eighth of those that reside there.
  const int64_t blocks = 2 * gpu.processors, threads = gpu.threads(8);
  target.divide_rows = {.points = blocks, .elements = 1 << 16, .enough_parts = 512, .smallest_part = 8192, .most_points = 8 * blocks};
  target.divide_columns = {.points = threads, .elements = 1 << 18, .smallest_part = 64, .most_points = 16 * threads};
  return target;
}

CudaExecutable make_cuda_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const GpuShape& gpu) {
  CudaExecutable out;
  out.prelude = cuda_prelude();
  Maker maker(graph, list, out, gpu);
  out.program = assemble_program(graph, list, plan, [&](const BoundGraph& of, const GraphKernel& k, const Executable&, Launch& launch) {
    maker.choose(of, k, launch);
  });
  maker.finish();
  return out;
}

}  // namespace einc
