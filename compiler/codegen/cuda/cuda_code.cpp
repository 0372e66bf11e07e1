// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/cuda_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/codegen/cuda/fuse_products.h"
#include "compiler/codegen/cuda/join_launches.h"
#include "compiler/codegen/cuda/kernel_text.h"
#include "compiler/codegen/cuda/map_gemm.h"
#include "compiler/codegen/cuda/prelude.h"
#include "compiler/codegen/cuda/thread_plan.h"
#include "compiler/lower/assemble_program.h"
#include "compiler/lower/library_products.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kWorkspaceBytes = 32 << 20;  // what cuBLASLt wants on Hopper

// Functions of kernels, equal ones once.
class Maker {
 public:
  Maker(const BoundGraph& graph, CudaExecutable& out, const GpuShape& gpu, int64_t smallest)
      : graph_(graph), out_(out), gpu_(gpu), smallest_(smallest) {}

  void choose(const BoundGraph& graph, const GraphKernel& k, Launch& launch) {
    if (&graph != &graph_) return choose_in_body(graph, k, launch);
    if (launch.scan >= 0) return leave_to_scan(*k.kernel);
    note_orders(k, launch);
    if (std::optional<CudaGemm> gemm = map_gemm(*k.kernel).gemm; gemm && is_worth(*gemm)) {
      out_.workspace_bytes = kWorkspaceBytes;
      for (CudaMatrix* m : {&gemm->left, &gemm->right, &gemm->result}) m->buffer = launch.buffers[m->buffer];
      if (gemm->scale) gemm->scale = launch.buffers[*gemm->scale];
      if (gemm->left.dtype == DType::f32) gemm->sums = f32_products(graph_, k);
      out_.calls.push_back({{}, std::move(gemm)});
      launch.domain = 1;
      find_written(*k.kernel);
      return;
    }
    launch.function = function_of(graph, k, known_);
    const CudaFunction& function = functions_[launch.function];
    out_.calls.push_back({function.grid, std::nullopt});
    launch.domain = function.grid.blocks[0];
    scratch_bytes_ = std::max(scratch_bytes_, function.scratch_bytes);
    find_written(*k.kernel);
    if (function.scratch_bytes > 0) written_.back().clear();
  }

  // Memory that kernels use while they run lies behind what the program has of its own, before the sources.
  void finish(const KernelList& list, const LibraryAttention& attention) {
    Executable& program = out_.program;
    for (size_t f = 0; f < functions_.size(); ++f) name_function(f);
    const std::vector<TouchedBuffer> touched = touched_by(attention, program);
    for (const TouchedBuffer& t : touched) program.launches[t.launch].buffers.push_back(t.buffer);
    note_unfinished(list);
    join_launches(out_, written_);
    out_.fused = find_fused_products(out_, graph_, list, written_);
    for (const TouchedBuffer& t : touched) program.launches[t.launch].buffers.pop_back();
    add_library_attention(attention, out_);
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
      if (launch.scan < 0 && !out_.calls[i].gemm && functions_[launch.function].scratch_bytes > 0) launch.buffers.push_back(scratch);
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
  void name_function(size_t f) { out_.program.functions.push_back(fmt::format("k{}", f)); }

  // cuBLASLt adds a bias in the format of the result.
  void add_cast(CudaFusedProduct& fused) {
    const CudaGemm& g = fused.gemm;
    if (!g.epilogue.bias || g.epilogue.bias->dtype == g.result.dtype) return;
    const auto [known, fresh] = cast_of_.try_emplace({g.columns, g.result.dtype}, static_cast<uint32_t>(functions_.size()));
    if (fresh) {
      functions_.push_back(cuda_function(cast_kernel(g.columns, g.epilogue.bias->dtype, g.result.dtype), gpu_));
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
  void choose_in_body(const BoundGraph& graph, const GraphKernel& k, Launch& launch) {
    if (launch.scan >= 0) return;
    launch.function = function_of(graph, k, known_in_bodies_);
    launch.domain = functions_[launch.function].grid.blocks[0];
    scratch_bytes_ = std::max(scratch_bytes_, functions_[launch.function].scratch_bytes);
    out_.grids.resize(functions_.size());
    out_.grids[launch.function] = functions_[launch.function].grid;
  }

  // Nothing joins a launch that is many.
  void leave_to_scan(const Kernel& kernel) {
    out_.calls.emplace_back();
    find_written(kernel);
    written_.back().clear();
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

  void find_written(const Kernel& kernel) {
    WrittenBuffers& written = written_.emplace_back();
    for (const BufferUse& use : kernel.buffers) written.push_back(use.access != BufferAccess::read);
  }

  // A value that several launches make is whole after the last of them.
  void note_unfinished(const KernelList& list) {
    std::map<uint32_t, uint32_t> maker;
    for (uint32_t l = 0; l < list.kernels.size(); ++l)
      for (size_t i = 0; i < list.kernels[l].buffers.size(); ++i) {
        if (list.kernels[l].kernel->buffers[i].access == BufferAccess::read || !list.kernels[l].buffers[i].valid()) continue;
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

  uint32_t function_of(const BoundGraph& graph, const GraphKernel& k, Functions& known) {
    const CudaSums products = f32_products(graph, k);
    const auto [same, fresh] = function_of_.try_emplace({k.kernel.get(), products});
    if (fresh) same->second = function_alike(*k.kernel, products, known);
    return same->second;
  }

  uint32_t function_alike(const Kernel& kernel, CudaSums products, Functions& known) {
    CudaFunction function = cuda_function(kernel, gpu_, products);
    const auto [same, fresh] = known.emplace(definition(function, ""), static_cast<uint32_t>(functions_.size()));
    if (fresh) functions_.push_back(std::move(function));
    return same->second;
  }

  bool is_worth(const CudaGemm& g) const { return is_worth_library(g.batch, g.rows, g.columns, g.depth, smallest_); }

  const BoundGraph& graph_;
  CudaExecutable& out_;
  const GpuShape& gpu_;
  const int64_t smallest_;  // products that a library's call is worth
  std::vector<CudaFunction> functions_;
  std::map<std::pair<const Kernel*, CudaSums>, uint32_t> function_of_;
  Functions known_, known_in_bodies_;                      // of launches, and of those in iterations
  std::vector<WrittenBuffers> written_;                    // by launch
  std::map<std::pair<int64_t, DType>, uint32_t> cast_of_;  // of a vector of so many numbers to a format
  int64_t scratch_bytes_ = 0;
};

}  // namespace

CudaSums f32_products(const BoundGraph& graph, const GraphKernel& kernel) {
  const auto in_tf32 = [&](NodeId id) { return graph[id].op != Op::contract || is_in_tf32(graph.graph, id); };
  return std::ranges::all_of(kernel.group.members, in_tf32) ? CudaSums::tf32 : CudaSums::f32;
}

KernelTarget cuda_target(const GpuShape& gpu, int64_t library_products) {
  KernelTarget target;
  target.column_sums = kColumnSums;
  target.library_products = library_products;
  // Two blocks of a product's tiles on a processor, each for some turns at least.
  const int64_t sums = 2 * gpu.processors * 64 * 64;
  target.divide_products = {
      .points = sums, .elements = 1 << 22, .most_parts = 512, .enough_parts = 64, .smallest_part = 512, .most_points = sums};
  // Blocks of a row each, two on a processor; threads of a column each, an eighth of those that reside there.
  const int64_t blocks = 2 * gpu.processors, threads = gpu.threads(8);
  target.divide_rows = {.points = blocks, .elements = 1 << 16, .enough_parts = 512, .smallest_part = 8192, .most_points = 8 * blocks};
  target.divide_columns = {.points = threads, .elements = 1 << 18, .smallest_part = 64, .most_points = 4 * threads};
  return target;
}

CudaExecutable make_cuda_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const GpuShape& gpu,
                                 int64_t library_products, const LibraryAttention& attention) {
  CudaExecutable out;
  out.prelude = cuda_prelude();
  Maker maker(graph, out, gpu, library_products);
  out.program = assemble_program(graph, list, plan, [&](const BoundGraph& of, const GraphKernel& k, const Executable&, Launch& launch) {
    maker.choose(of, k, launch);
  });
  maker.finish(list, attention);
  return out;
}

}  // namespace einc
