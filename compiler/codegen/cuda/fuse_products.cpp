// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/fuse_products.h"

#include <algorithm>
#include <map>
#include <set>

#include "compiler/codegen/cuda/match_epilogue.h"
#include "compiler/lower/library_products.h"

namespace einc {
namespace {

constexpr int64_t kGeluStep = 8;  // columns that cuBLASLt keeps GELU's input in multiples of

class ProductFinder {
 public:
  ProductFinder(const CudaExecutable& executable, const BoundGraph& graph, const KernelList& list,
                const std::vector<WrittenBuffers>& written)
      : executable_(executable),
        program_(executable.program),
        graph_(graph),
        list_(list),
        written_(written),
        taken_(program_.launches.size(), false) {
    for (const ExecutableOutput& output : program_.outputs) results_.insert(output.buffer);
    for (const ExecutableOutput& gradient : program_.gradients) results_.insert(gradient.buffer);
    for (const BufferCopy& copy : program_.copies) results_.insert(copy.value);
    if (program_.loss >= 0) results_.insert(static_cast<uint32_t>(program_.loss));
    for (uint32_t l = 0; l < program_.launches.size(); ++l)
      for (const uint32_t b : program_.launches[l].buffers)
        if (users_[b].empty() || users_[b].back() != l) users_[b].push_back(l);
  }

  std::vector<CudaFusedProduct> run() {
    for (uint32_t l = 0; l < program_.launches.size(); ++l)
      if (suits(l)) add_elementwise(l);
    for (uint32_t l = 0; l < program_.launches.size(); ++l)
      if (suits(l)) add_sums(l);
    return std::move(found_);
  }

 private:
  const CudaGemm& gemm_of(uint32_t launch) const { return *executable_.calls[launch].gemm; }
  const ExecutableBuffer& buffer(uint32_t b) const { return program_.buffers[b]; }

  // A product whose result fills its buffer, row by row.
  bool suits(uint32_t launch) const {
    if (taken_[launch] || !executable_.calls[launch].gemm) return false;
    const CudaGemm& g = gemm_of(launch);
    return g.batch == 1 && g.sums != CudaSums::f64 && !g.result.transposed && is_whole(g.result, g.rows, g.columns) &&
           !is_source(buffer(g.result.buffer).role);
  }
  bool is_whole(const CudaMatrix& m, int64_t rows, int64_t columns) const {
    return m.offset == 0 && m.leading == columns && buffer(m.buffer).bytes == rows * columns * bytes_of(m.dtype);
  }

  bool is_kernel(uint32_t launch) const {
    const CudaCall& call = executable_.calls[launch];
    return !taken_[launch] && !call.gemm && !call.done_before && call.together.empty() && !written_[launch].empty();
  }

  // --- what is made of a product element by element ---

  void add_elementwise(uint32_t p) {
    CudaGemm gemm = gemm_of(p);
    const uint32_t product = gemm.result.buffer;
    const std::vector<uint32_t>& users = users_[product];
    if (users.size() < 2 || users[0] != p || !is_kernel(users[1])) return;
    const uint32_t e = users[1];
    const Launch& launch = program_.launches[e];
    const auto slot = std::ranges::find(launch.buffers, product) - launch.buffers.begin();
    const auto match = match_epilogue(*list_.kernels[e].kernel, static_cast<uint32_t>(slot), gemm.columns);
    if (!match) return;
    const bool kept = users.size() > 2 || results_.contains(product);
    if (kept && !match->reads_product) return;
    gemm.epilogue = match->epilogue;
    if (gemm.epilogue.bias) gemm.epilogue.bias->buffer = launch.buffers[gemm.epilogue.bias->buffer];
    if (gemm.epilogue.addend) gemm.epilogue.addend = launch.buffers[*gemm.epilogue.addend];
    if (gemm.epilogue.input) gemm.epilogue.input = launch.buffers[*gemm.epilogue.input];
    if (kept && gemm.epilogue.input) return;
    if (kept) gemm.epilogue.input = product;
    gemm.result.buffer = launch.buffers[match->result];
    gemm.result.dtype = buffer(gemm.result.buffer).dtype;
    if (kept && gemm.result.dtype != buffer(product).dtype) return;
    if (is_source(buffer(gemm.result.buffer).role) || !has_library(gemm) || !may_run_later(p, e, gemm)) return;
    take({gemm, {p, e}, p, e});
  }

  // As far as it is written; whether there is one for these matrices is asked when the GPU is there.
  static bool has_library(const CudaGemm& g) {
    const CudaEpilogue& e = g.epilogue;
    const bool short_result = bytes_of(g.result.dtype) == 2 && (is_fp8(g.left.dtype) || g.left.dtype == g.result.dtype);
    if (!short_result && g.result.dtype != DType::f32) return false;
    if (e.input && g.columns % kGeluStep != 0) return false;
    if (is_fp8(g.left.dtype) && (e.input || (e.bias && g.result.dtype == DType::f32))) return false;
    return !e.bias || e.bias->dtype == g.result.dtype || (e.bias->dtype == DType::f32 && bytes_of(g.result.dtype) == 2);
  }

  struct Range {
    int64_t from, to;
    bool meets(const Range& other) const { return from < other.to && other.from < to; }
  };
  Range range(uint32_t b) const { return {buffer(b).offset, buffer(b).offset + buffer(b).bytes}; }

  bool apart(uint32_t b, const std::vector<uint32_t>& others) const {
    return std::ranges::none_of(others, [&](uint32_t other) { return range(b).meets(range(other)); });
  }

  // The product in the place of launch e: what it reads is there still, and it writes where nothing is that it or anybody needs.
  bool may_run_later(uint32_t p, uint32_t e, const CudaGemm& gemm) const {
    const CudaEpilogue& epilogue = gemm.epilogue;
    std::vector<uint32_t> reads{gemm.left.buffer, gemm.right.buffer};
    if (gemm.scale) reads.push_back(*gemm.scale);
    for (uint32_t l = p + 1; l < e; ++l)
      for (const uint32_t b : program_.launches[l].buffers)
        if (writes(l, b) && !apart(b, reads)) return false;
    const bool keeps = epilogue.input && epilogue.activation == CudaActivation::gelu;
    if (epilogue.bias) reads.push_back(epilogue.bias->buffer);
    if (epilogue.input && !keeps) reads.push_back(*epilogue.input);
    if (epilogue.addend && *epilogue.addend != gemm.result.buffer && range(*epilogue.addend).from != range(gemm.result.buffer).from)
      reads.push_back(*epilogue.addend);
    if (!apart(gemm.result.buffer, reads)) return false;
    if (!keeps) return true;
    reads.push_back(gemm.result.buffer);
    if (epilogue.addend) reads.push_back(*epilogue.addend);
    if (!apart(*epilogue.input, reads)) return false;
    for (uint32_t l = p + 1; l < e; ++l)
      if (!apart(*epilogue.input, program_.launches[l].buffers) && *epilogue.input == gemm_of(p).result.buffer) return false;
    return true;
  }

  bool writes(uint32_t launch, uint32_t b) const {
    if (const auto& gemm = executable_.calls[launch].gemm) return gemm->result.buffer == b;
    const std::vector<uint32_t>& buffers = program_.launches[launch].buffers;
    for (size_t k = 0; k < buffers.size(); ++k)
      if (buffers[k] == b && (k >= written_[launch].size() || written_[launch][k])) return true;
    return false;
  }

  // --- sums of an operand ---

  void add_sums(uint32_t g) {
    for (const bool of_right : {true, false}) {
      CudaGemm gemm = gemm_of(g);
      const CudaMatrix& operand = of_right ? gemm.right : gemm.left;
      const int64_t count = of_right ? gemm.columns : gemm.rows;
      // As rows of one number for each sum: of the left operand that is its transpose.
      if (operand.transposed == of_right || !is_whole(operand, gemm.depth, count) || is_fp8(operand.dtype)) continue;
      for (uint32_t first : users_[operand.buffer]) {
        std::vector<uint32_t> parts = launches_of_sum(first, operand.buffer);
        if (parts.empty()) continue;
        const uint32_t sums = written_by(parts.back());
        if (buffer(sums).dtype != gemm.result.dtype || buffer(sums).bytes != count * bytes_of(gemm.result.dtype)) continue;
        if (is_source(buffer(sums).role) || !may_be_written_at(g, parts, sums)) continue;
        (of_right ? gemm.epilogue.right_sums : gemm.epilogue.left_sums) = CudaVector{sums, gemm.result.dtype};
        parts.push_back(g);
        std::ranges::sort(parts);
        take({gemm, parts, g, g});
        return;
      }
    }
  }

  uint32_t written_by(uint32_t launch) const {
    const std::vector<bool>& written = written_[launch];
    return program_.launches[launch].buffers[static_cast<size_t>(std::ranges::find(written, true) - written.begin())];
  }

  // The launches, `first` and those that add up its parts, that sum a value's rows and do nothing else; none when they do not.
  std::vector<uint32_t> launches_of_sum(uint32_t first, uint32_t value) const {
    const std::vector<NodeId>& members = list_.kernels[first].group.members;
    if (!is_kernel(first) || members.size() != 1 || graph_[members[0]].op != Op::reduce) return {};
    const NodeId sum = members[0], x = graph_[sum].operands[0];
    const auto& buffers = list_.kernels[first].buffers;
    const auto slot = std::ranges::find(buffers, x);
    if (slot == buffers.end() || program_.launches[first].buffers[static_cast<size_t>(slot - buffers.begin())] != value) return {};
    if (graph_[sum].as<ReduceAttr>().fn != ReduceFn::sum || graph_.padding_of(x) != 0 || !sums_rows(sum, x)) return {};
    std::vector<uint32_t> launches;
    for (uint32_t l = 0; l < list_.kernels.size(); ++l) {
      const std::vector<NodeId>& own = list_.kernels[l].group.members;
      if (std::ranges::find(own, sum) == own.end()) continue;
      if (own.size() != 1 || !is_kernel(l) || std::ranges::count(written_[l], true) != 1) return {};
      launches.push_back(l);
    }
    return launches;
  }

  // Whether the summed axes lie outside of all others in memory, and those in the order of the result.
  bool sums_rows(NodeId sum, NodeId x) const {
    const AxisList& axes = graph_[sum].as<ReduceAttr>().axes;
    const auto rank = graph_.shape(x).size();
    const auto axis = [&](size_t i) {
      return graph_.order.empty() || graph_.order[x.index].empty() ? static_cast<int>(i) : graph_.order[x.index][i];
    };
    if (!graph_.order.empty() && !graph_.order[sum.index].empty()) return false;
    int last = -1;
    for (size_t i = 0; i < rank; ++i) {
      if (graph_.shape(x)[static_cast<size_t>(axis(i))] == 1) continue;
      if (axes.contains(axis(i))) {
        if (last >= 0) return false;
      } else if (axis(i) < last) {
        return false;
      } else {
        last = axis(i);
      }
    }
    return true;
  }

  // Nothing between the launch and those of the sums reads these yet, or has something else in their place.
  bool may_be_written_at(uint32_t g, const std::vector<uint32_t>& parts, uint32_t sums) const {
    const uint32_t from = std::min(g, parts.front()), to = std::max(g, parts.back());
    for (uint32_t l = from; l <= to; ++l)
      if (std::ranges::find(parts, l) == parts.end() && !apart(sums, program_.launches[l].buffers)) return false;
    return true;
  }

  void take(CudaFusedProduct fused) {
    for (const uint32_t l : fused.parts) taken_[l] = true;
    found_.push_back(std::move(fused));
  }

  const CudaExecutable& executable_;
  const Executable& program_;
  const BoundGraph& graph_;
  const KernelList& list_;
  const std::vector<WrittenBuffers>& written_;
  std::vector<bool> taken_;                          // launches that are part of one
  std::set<uint32_t> results_;                       // buffers that are read after the last launch
  std::map<uint32_t, std::vector<uint32_t>> users_;  // launches that have a buffer, in order
  std::vector<CudaFusedProduct> found_;
};

}  // namespace

std::vector<CudaFusedProduct> find_fused_products(const CudaExecutable& executable, const BoundGraph& graph, const KernelList& list,
                                                  const std::vector<WrittenBuffers>& written) {
  return ProductFinder(executable, graph, list, written).run();
}

}  // namespace einc
