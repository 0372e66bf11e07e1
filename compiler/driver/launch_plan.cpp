// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/launch_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "compiler/codegen/cuda/kernel_text.h"
#include "compiler/library/map_gemm.h"

namespace einc {
namespace {

class Plan {
 public:
  explicit Plan(const CudaProgramText& program) : program_(program), executable_(program.executable), p_(executable_.program) {}

  std::string text() {
    std::string out = head() + memory();
    for (const BufferCopy& copy : p_.snapshots) out += fmt::format("before: {} <- {}\n", name_of(copy.target), name_of(copy.value));
    for (size_t i = 0; i < p_.launches.size(); ++i) out += launch(i) + together(i) + by_library(i);
    for (const BufferCopy& copy : p_.copies) out += fmt::format("after: {} <- {}\n", name_of(copy.target), name_of(copy.value));
    for (const ExecutableOutput& output : p_.outputs) out += fmt::format("output {}: {}\n", output.name, name_of(output.buffer));
    if (p_.loss >= 0) out += fmt::format("loss: {}\n", name_of(static_cast<uint32_t>(p_.loss)));
    return out;
  }

 private:
  std::string head() const {
    const auto count = [&](auto is) { return static_cast<size_t>(std::ranges::count_if(executable_.calls, is)); };
    const size_t products = count([](const CudaCall&c) { return c.gemm.has_value(); }),
                 joined = count([](const CudaCall&c) { return c.done_before; });
    std::string text = fmt::format("{} launches: {} of {} different kernels, {} products by cuBLASLt", p_.launches.size() - joined,
                                   p_.launches.size() - products - joined, p_.functions.size(), products);
    if (!executable_.attention.empty()) text += fmt::format(", attention {} times perhaps by a plug-in", executable_.attention.size());
    if (!executable_.fused.empty()) text += fmt::format(", {} of which may do what other launches do", executable_.fused.size());
    return text + "\n";
  }

  std::string memory() const {
    std::map<BufferRole, int64_t> bytes;
    for (const ExecutableBuffer& b : p_.buffers) bytes[b.role] += b.bytes;
    std::string text = fmt::format("memory: {} bytes\n", p_.memory_bytes);
    const int64_t gradients = bytes[BufferRole::gradient];
    text += fmt::format("  {} temporary, in the arena\n", p_.own_bytes - gradients);
    const auto line = [&](int64_t size, std::string_view of) {
      if (size > 0) text += fmt::format("  {} {}\n", size, of);
    };
    line(gradients, "gradients");
    line(bytes[BufferRole::input], "inputs");
    line(bytes[BufferRole::param], "params");
    line(bytes[BufferRole::state], "states");
    if (executable_.workspace_bytes > 0)
      text += fmt::format("workspace of cuBLASLt{}: {} bytes besides\n", executable_.attention.empty() ? "" : " and the plug-in",
                          executable_.workspace_bytes);
    return text;
  }

  static std::string_view word(BufferRole role) {
    switch (role) {
      case BufferRole::input:
        return "input";
      case BufferRole::param:
        return "param";
      case BufferRole::state:
        return "state";
      case BufferRole::arena:
        return "";
      case BufferRole::gradient:
        return "gradient";
    }
    return "";
  }

  std::string name_of(uint32_t buffer) const {
    const ExecutableBuffer& b = p_.buffers[buffer];
    if (is_source(b.role)) return fmt::format("{} {}", word(b.role), b.name);
    const auto order = executable_.orders.find(buffer);
    const std::string lies = order == executable_.orders.end() ? "" : fmt::format(" by axes {}", fmt::join(order->second, " "));
    return fmt::format("{}{}{}[{}]{} at {}", word(b.role), word(b.role).empty() ? "" : " ", to_string(b.dtype), fmt::join(b.shape, " "),
                       lies, b.offset);
  }

  std::string names(const Launch& launch, const std::vector<uint32_t>& places) const {
    std::string text;
    for (const uint32_t b : places) text += (text.empty() ? "" : ", ") + name_of(launch.buffers[b]);
    return text;
  }

  // What may run in the place of a launch.
  std::string together(size_t index) const {
    std::string text;
    for (const CudaFusedProduct& fused : executable_.fused) {
      if (fused.at != index) continue;
      std::vector<uint32_t> others = fused.parts;
      std::erase(others, static_cast<uint32_t>(index));
      if (fused.product == index)
        text += fmt::format("  or {}, instead of launch {}\n", describe(fused.gemm.epilogue), fmt::join(others, ", "));
      else
        text += fmt::format("  or by the product of launch {}: {}\n", fused.product, describe(fused.gemm.epilogue));
      if (fused.cast)
        text += fmt::format("  the bias first in {}, at {}\n", to_string(fused.gemm.result.dtype), p_.buffers[fused.cast->to].offset);
    }
    return text;
  }

  std::string operand(const CudaAttention::Operand& o) const {
    return name_of(o.buffer) + (o.offset > 0 ? fmt::format(" from element {}", o.offset) : "");
  }

  std::string by_library(size_t index) const {
    std::string text;
    if (const auto refusal = executable_.attention_refusals.find(static_cast<uint32_t>(index));
        refusal != executable_.attention_refusals.end())
      text += fmt::format("  {}\n", refusal->second);
    for (const CudaAttention& call : executable_.attention) {
      if (call.at() != index) continue;
      const std::vector<uint32_t> others(call.parts.begin(), call.parts.end() - 1);
      text += fmt::format("  or by the plug-in{}: {}\n",
                          others.empty() ? "" : fmt::format(", instead of launches {} too", fmt::join(others, " and ")),
                          cuda::to_string(call.problem));
      text += fmt::format("    q {}\n    k {}\n    v {}\n    o {}\n", operand(call.q), operand(call.k), operand(call.v), operand(call.o));
      const bool backward = call.problem.direction == EINC_ATTENTION_BACKWARD;
      if (backward || call.problem.keeps_log_sum) text += fmt::format("    log_sum {}\n", operand(call.log_sum));
      if (backward)
        text += fmt::format("    d_o {}\n    d_q {}\n    d_k {}\n    d_v {}\n", operand(call.d_o), operand(call.d_q), operand(call.d_k),
                            operand(call.d_v));
    }
    return text;
  }

  std::string launch(size_t index) {
    const Launch& l = p_.launches[index];
    std::string text = fmt::format("launch {}: {}{}{}\n", index, l.label, l.location.empty() ? "" : ", ", l.location);
    if (l.when == LaunchWhen::unbounded) text += "  only where a bound of an update does not suffice\n";
    if (l.scan >= 0) return text + scan(l, p_, std::to_string(index)) + operands(l, *program_.list.kernels[index].kernel);
    if (const auto& gemm = executable_.calls[index].gemm) return text + product(*gemm);
    const CudaCall& call = executable_.calls[index];
    if (call.done_before) return text + "  with an earlier one\n";
    const GraphKernel& made = program_.list.kernels[index];
    const Kernel& kernel = *made.kernel;
    const CudaGrid& grid = call.grid;
    text += fmt::format("  {}, {}: {} blocks of {}", p_.functions[l.function], made.plan->kind, product_of(grid.blocks),
                        product_of(grid.threads));
    if (grid.shared_bytes > 0) text += fmt::format(", {} bytes of shared memory", grid.shared_bytes);
    if (!call.together.empty()) text += fmt::format(", with launches {}", fmt::join(call.together, ", "));
    text += "\n" + operands(l, kernel);
    if (l.buffers.size() > kernel.buffers.size()) text += "  works in " + name_of(l.buffers.back()) + "\n";
    return text;
  }

  // What each iteration launches.
  std::string scan(const Launch& l, const Executable& outside, const std::string& number) const {
    const ScanProgram& s = outside.scans[static_cast<size_t>(l.scan)];
    std::string text = fmt::format("  {} iterations{}\n", s.length, s.reversed ? ", from the last to the first" : "");
    for (size_t i = 0; i < s.body.launches.size(); ++i) {
      const Launch& inner = s.body.launches[i];
      const std::string name = fmt::format("{}.{}", number, i);
      text += fmt::format("  launch {}: {}", name, inner.label);
      if (inner.scan >= 0) {
        text += "\n" + scan(inner, s.body, name);
        continue;
      }
      const CudaGrid& grid = executable_.grids[inner.function];
      text += fmt::format(", {}: {} blocks of {}\n", p_.functions[inner.function], product_of(grid.blocks), product_of(grid.threads));
    }
    return text;
  }

  std::string operands(const Launch& l, const Kernel& kernel) const {
    std::vector<uint32_t> read, written;
    for (uint32_t b = 0; b < kernel.buffers.size(); ++b) {
      const BufferAccess access = kernel.buffers[b].access;
      if (access == BufferAccess::read || access == BufferAccess::read_write) read.push_back(b);
      if (access == BufferAccess::write || access == BufferAccess::read_write) written.push_back(b);
    }
    std::string text;
    if (!read.empty()) text += "  reads " + names(l, read) + "\n";
    if (!written.empty()) text += "  writes " + names(l, written) + "\n";
    return text;
  }

  static std::string product_of(const std::array<uint32_t, 3>& sizes) {
    std::string text = std::to_string(sizes[0]);
    for (size_t i = 1; i < 3 && sizes[i] > 1; ++i) text += fmt::format(" x {}", sizes[i]);
    return text;
  }

  std::string product(const LibraryProduct& gemm) const {
    std::string text = fmt::format("  cuBLASLt, {}, sums in {}\n", describe(gemm),
                                   gemm.sums == ProductSums::f32    ? "f32"
                                   : gemm.sums == ProductSums::tf32 ? "tf32"
                                                                    : "f64");
    const auto matrix = [&](std::string_view which, const LibraryMatrix& m) {
      text += fmt::format("  {} {}, rows {} apart", which, name_of(m.buffer), m.leading);
      if (m.offset > 0) text += fmt::format(", from element {}", m.offset);
      if (gemm.batch > 1) text += fmt::format(", the next {} on", m.batch_stride);
      if (m.transposed) text += ", transposed";
      text += "\n";
    };
    matrix("left", gemm.left);
    matrix("right", gemm.right);
    matrix("result", gemm.result);
    if (gemm.scale) text += fmt::format("  times {}\n", name_of(*gemm.scale));
    return text;
  }

  const CudaProgramText& program_;
  const CudaExecutable& executable_;
  const Executable& p_;
};

}  // namespace

std::string launch_plan(const CudaProgramText& program) { return Plan(program).text(); }

}  // namespace einc
