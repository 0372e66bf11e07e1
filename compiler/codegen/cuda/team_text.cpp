// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/team_text.h"

#include <algorithm>

namespace einc {
namespace {

std::string shuffled(DType dtype, const std::string& x) {
  if (dtype == DType::boolean) return fmt::format("bool(__shfl_xor_sync(0xffffffffu, i32({}), lanes))", x);
  return fmt::format("__shfl_xor_sync(0xffffffffu, {}, lanes)", x);
}

}  // namespace

std::string TeamText::rank() const {
  switch (plan_.kind) {
    case CudaTeam::thread:
      return "0";
    case CudaTeam::warp:
      return fmt::format("(threadIdx.x & {})", plan_.team - 1);
    case CudaTeam::block:
      return "threadIdx.x";
    case CudaTeam::column:
      return "threadIdx.y";
  }
  return "";
}

void TeamText::barrier() {
  if (plan_.kind == CudaTeam::warp) line("__syncwarp();");
  if (plan_.kind == CudaTeam::block || plan_.kind == CudaTeam::column) line("__syncthreads();");
}

void TeamText::decode(const std::vector<AxisId>& axes, const std::string& number) {
  std::string rest = number;
  for (size_t k = axes.size(); k-- > 0;) {
    const AxisId a = axes[k];
    const int64_t extent = kernel_.extent(a) / (packed(a) ? plan_.pack : 1);
    std::string at = k == 0 ? rest : fmt::format("{} % {}", rest, literal(extent));
    if (packed(a)) at = fmt::format("({}) * {}{}", at, plan_.pack, plan_.row_start ? " - row_start" : "");
    axis_[a] = fmt::format("a{}", a);
    line("const {} a{} = {};", index_type(), a, at);
    if (k > 0) rest = fmt::format("({} / {})", rest, literal(extent));
  }
}

void TeamText::row_loop(const std::vector<AxisId>& axes) {
  line("#pragma unroll");
  open(fmt::format("for (int t = 0; t < {}; ++t)", plan_.row_steps));
  line("const {0} i = {0}({1}) + t * {2};", index_type(), rank(), plan_.team);
  if (const int64_t trips = packs_of(axes); plan_.row_steps * plan_.team > trips) line("if (i >= {}) break;", trips);
  decode(axes, "i");
}

void TeamText::join(uint16_t index, const std::string& x, const std::string& place) {
  const Accumulation& r = kernel_.reductions[index];
  if (keeps_position(r))
    line("if (comes_first_as_{}({}, {}, r{}, p{})) r{} = {}, p{} = {};", r.fold == Fold::arg_max ? "largest" : "least", x, place, index,
         index, index, x, index, place);
  else
    line("r{} = {};", index, combine(r.fold, folded_dtype(r), fmt::format("r{}", index), x));
}

void TeamText::finish(const std::vector<uint16_t>& reductions) {
  synchronised_ = false;
  if (!is_team() || reductions.empty()) return;
  if (plan_.kind != CudaTeam::column) {
    open(fmt::format("for (int lanes = {}; lanes > 0; lanes >>= 1)", plan_.kind == CudaTeam::warp ? plan_.team / 2 : 16));
    for (uint16_t r : reductions) {
      const bool place = keeps_position(kernel_.reductions[r]);
      const DType dtype = folded_dtype(kernel_.reductions[r]);
      line("const {} x{} = {};", register_type(dtype), r, shuffled(dtype, fmt::format("r{}", r)));
      if (place) line("const i64 q{} = __shfl_xor_sync(0xffffffffu, p{}, lanes);", r, r);
      join(r, fmt::format("x{}", r), fmt::format("q{}", r));
    }
    close();
  }
  if (plan_.kind == CudaTeam::warp) return;
  const bool column = plan_.kind == CudaTeam::column;
  const int parts = column ? plan_.team : plan_.team / 32;
  if (parts == 1) return;
  const std::string own = column ? "threadIdx.y * 32 + threadIdx.x" : "threadIdx.x >> 5";
  if (!column) open("if ((threadIdx.x & 31) == 0)");
  for (uint16_t r : reductions) {
    line("shared_r{}[{}] = r{};", r, own, r);
    if (keeps_position(kernel_.reductions[r])) line("shared_p{}[{}] = p{};", r, own, r);
  }
  if (!column) close();
  line("__syncthreads();");
  for (uint16_t r : reductions) {
    const std::string first = column ? "threadIdx.x" : "0", each = column ? "part * 32 + threadIdx.x" : "part";
    line("r{0} = shared_r{0}[{1}];", r, first);
    if (keeps_position(kernel_.reductions[r])) line("p{0} = shared_p{0}[{1}];", r, first);
    open(fmt::format("for (int part = 1; part < {}; ++part)", parts));
    join(r, fmt::format("shared_r{}[{}]", r, each), fmt::format("shared_p{}[{}]", r, each));
    close();
  }
  synchronised_ = true;
}

void TeamText::declare_shared() {
  const bool column = plan_.kind == CudaTeam::column;
  if (!column && (plan_.kind != CudaTeam::block || plan_.team <= 32)) return;
  const int elements = column ? plan_.team * 32 : plan_.team / 32;
  for (const Stage& stage : kernel_.stages)
    for (uint16_t r : stage.reductions) {
      const DType dtype = folded_dtype(kernel_.reductions[r]);
      line("__shared__ {} shared_r{}[{}];", register_type(dtype), r, elements);
      if (keeps_position(kernel_.reductions[r])) line("__shared__ i64 shared_p{}[{}];", r, elements);
    }
}

}  // namespace einc
