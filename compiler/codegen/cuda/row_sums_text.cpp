// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/row_sums_text.h"

#include <algorithm>

#include "runtime/base/dtype.h"

namespace einc {

void RowSumsText::rows_of_a_part(const std::function<void()>& row) {
  declare_sums();
  const int64_t parts = kernel_.extent(*kernel_.part), teams = plan_.teams();
  const std::string first = teams > 1 ? fmt::format("{}(blockIdx.x) * {} + threadIdx.x / {}", index_type(), teams, plan_.team)
                                      : fmt::format("{}(blockIdx.x)", index_type());
  open(fmt::format("for ({} point = {}; point < {}; point += {})", index_type(), first, literal(plan_.points), parts * teams));
  decode(plan_.outer, "point");
  row();
  // Before the next row's reduction; where there are several, one stands between the others' barriers.
  const auto reducing = std::ranges::count_if(kernel_.stages, [](const Stage& stage) { return !stage.reductions.empty(); });
  if (reducing == 1 && plan_.kind == CudaTeam::block && plan_.team > 32) barrier();
  close();
  if (teams > 1) gather();
  store_sums();
}

void RowSumsText::add_to_sum(const Store& s) {
  const std::string sum = plan_.pack_axis ? fmt::format("sums{}[t * {} + u]", s.buffer, plan_.pack) : fmt::format("sums{}[t]", s.buffer);
  const DType dtype = register_dtype(dtype_of(s));
  line("{} = {};", sum, combine(Fold::sum, dtype, sum, as(s.value, dtype)));
}

void RowSumsText::for_each_sum(const VisitSum& visit) const {
  for (const Stage& stage : kernel_.stages)
    for (const Store& s : stage.stores)
      if (s.mode == StoreMode::sum) visit(stage, s);
}

void RowSumsText::declare_sums() {
  for_each_sum([&](const Stage&, const Store& s) { line("{} sums{}[{}];", register_type(dtype_of(s)), s.buffer, kept()); });
  line("#pragma unroll");
  open(fmt::format("for (int k = 0; k < {}; ++k)", kept()));
  for_each_sum([&](const Stage&, const Store& s) { line("sums{}[k] = {};", s.buffer, identity(Fold::sum, register_dtype(dtype_of(s)))); });
  close();
}

// The teams' sums, one team after the other, in the registers of the last.
void RowSumsText::gather() {
  const int last = plan_.teams() - 1;
  for_each_sum([&](const Stage&, const Store& s) {
    line("__shared__ {} gathered{}[{}];", register_type(dtype_of(s)), s.buffer, kept() * plan_.team);
  });
  line("const int lane = threadIdx.x % {0}, own_team = threadIdx.x / {0};", plan_.team);
  open(fmt::format("for (int team = 0; team < {}; ++team)", last));
  open("if (own_team == team)");
  gather_each([&](const std::string& own, const std::string& gathered, const std::string& both) {
    line("{} = team == 0 ? {} : {};", gathered, own, both);
  });
  close();
  line("__syncthreads();");
  close();
  line("if (own_team < {}) return;", last);
  gather_each([&](const std::string& own, const std::string&, const std::string& both) { line("{} = {};", own, both); });
}

void RowSumsText::gather_each(const Gathered& statement) {
  line("#pragma unroll");
  open(fmt::format("for (int k = 0; k < {}; ++k)", kept()));
  for_each_sum([&](const Stage&, const Store& s) {
    const std::string own = fmt::format("sums{}[k]", s.buffer), gathered = fmt::format("gathered{}[k * {} + lane]", s.buffer, plan_.team);
    statement(own, gathered, combine(Fold::sum, register_dtype(dtype_of(s)), gathered, own));
  });
  close();
}

void RowSumsText::store_sums() {
  const AxisId part = *kernel_.part;
  axis_[part] = fmt::format("a{}", part);
  line("const {0} a{1} = {0}(blockIdx.x);", index_type(), part);
  for (size_t s = 0; s < kernel_.stages.size(); ++s) {
    const std::vector<Store>& stores = kernel_.stages[s].stores;
    if (std::ranges::none_of(stores, [](const Store& x) { return x.mode == StoreMode::sum; })) continue;
    row_loop(plan_.stages[s]);
    for (const Store& x : stores)
      if (x.mode == StoreMode::sum) store_sum(x);
    close();
  }
}

void RowSumsText::store_sum(const Store& s) {
  const DType dtype = dtype_of(s);
  int width = pack_of_rows();
  while (width > 1 && (width * bytes_of(dtype) > 16 || !packs(kernel_, s.buffer, s.index, *plan_.pack_axis, width))) width /= 2;
  const std::string type = fmt::format("Vec<{}, {}>", storage_type(dtype), width);
  for (int from = 0; from < pack_of_rows(); from += width) {
    open("");
    line("{} pack;", type);
    for (int u = 0; u < width; ++u)
      line("pack.at[{}] = {};", u,
           stored(fmt::format("sums{}[t * {} + {}]", s.buffer, pack_of_rows(), from + u), register_dtype(dtype), dtype));
    line("*reinterpret_cast<{}*>(b{} + ({} + {})) = pack;", type, s.buffer, index(s.index), from);
    close();
  }
}

}  // namespace einc
