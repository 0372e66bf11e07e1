// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/scatter_text.h"

#include "compiler/codegen/cuda/value_text.h"

namespace einc {
namespace {

constexpr int kTogether = 8;  // elements on their way from memory at once, before they are added one after another

class ScatterText : ValueText {
 public:
  ScatterText(const Kernel& kernel, const ScatterBlocks& plan) : ValueText(kernel), p_(plan), stage_(kernel.stages[plan.stage]) {}

  std::string run() {
    ++depth_;
    line("__shared__ i32 found[{}], counts[{}];", p_.threads, p_.threads / 32);
    line("const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;");
    line("const {0} row0 = {0}(blockIdx.x) / {1};", index_type(), p_.chunks);
    line("const {0} point = {0}(blockIdx.x) % {1} * {2} + {0}(threadIdx.x);", index_type(), p_.chunks, p_.threads);
    line("const bool inside = point < {};", p_.points);
    decode(kernel_.outer, "(inside ? point : 0)");
    for (size_t s = 0; s < p_.stage; ++s) fill(kernel_.stages[s]);
    open(fmt::format("for ({0} first = 0; first < {1}; first += {2})", index_type(), p_.positions, p_.threads));
    find();
    line("__syncthreads();");
    open(fmt::format("for (int k = 0; inside && k < total; k += {})", kTogether));
    update();
    close();
    line("__syncthreads();");
    close();
    return std::move(text_);
  }

 private:
  void decode(const std::vector<AxisId>& axes, const std::string& number) {
    std::string rest = number;
    for (size_t k = axes.size(); k-- > 0;) {
      const AxisId a = axes[k];
      axis_[a] = fmt::format("a{}", a);
      line("const {} a{} = {};", index_type(), a, k == 0 ? rest : fmt::format("{} % {}", rest, kernel_.extent(a)));
      rest = fmt::format("({} / {})", rest, kernel_.extent(a));
    }
  }

  void fill(const Stage& stage) {
    const AxisId a = stage.axes[0];
    axis_[a] = "row";
    open(fmt::format("for ({0} row = row0; row < {1}; row += {2})", index_type(), p_.table_rows, p_.apart()));
    open("if (inside)");
    for (const Store& s : stage.stores) store(s);
    close();
    close();
  }

  // The positions of this round that fall on the block's rows, in order.
  void find() {
    line("bool mine = false;");
    open(fmt::format("if (first + {}(threadIdx.x) < {})", index_type(), p_.positions));
    decode(stage_.axes, fmt::format("(first + {}(threadIdx.x))", index_type()));
    line("const i64 at = {};", as(p_.position, DType::i64));
    line("mine = {}(at) % {} == row0;", index_type(), p_.apart());
    close();
    line("const u32 marks = __ballot_sync(0xffffffffu, mine);");
    line("if (lane == 0) counts[warp] = __popc(marks);");
    line("__syncthreads();");
    line("int before = 0, total = 0;");
    open(fmt::format("for (int w = 0; w < {}; ++w)", p_.threads / 32));
    line("if (w < warp) before += counts[w];");
    line("total += counts[w];");
    close();
    line("if (mine) found[before + __popc(marks & ((1u << lane) - 1))] = i32(first) + i32(threadIdx.x);");
  }

  // What is added is no element of the table (plan_scatter).
  void update() {
    const Store& s = stage_.stores[0];
    const DType dtype = kernel_.buffers[s.buffer].dtype, held = register_dtype(dtype);
    line("{} x[{}];", register_type(dtype), kTogether);
    line("{} place[{}];", index_type(), kTogether);
    each_of_found([&] {
      decode(stage_.axes, "found[k + u]");
      line("place[u] = {};", index(s.index));
      line("x[u] = {};", as(s.value, held));
    });
    each_of_found([&] {
      const std::string element = fmt::format("b{}[place[u]]", s.buffer);
      const std::string sum = s.mode == StoreMode::set ? "x[u]" : combine(fold_of(s.mode), held, loaded(element, dtype), "x[u]");
      line("{} = {};", element, stored(sum, held, dtype));
    });
  }

  void each_of_found(const auto& body) {
    line("#pragma unroll");
    open(fmt::format("for (int u = 0; u < {}; ++u)", kTogether));
    line("if (k + u >= total) break;");
    body();
    close();
  }

  const ScatterBlocks& p_;
  const Stage& stage_;
};

}  // namespace

std::string scatter_text(const Kernel& kernel, const ScatterBlocks& plan) { return ScatterText(kernel, plan).run(); }

}  // namespace einc
