// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/processor_plan_text.h"

#include <algorithm>

#include "compiler/lower/keep_rows.h"
#include "compiler/lower/plan_fields.h"

namespace einc {

template <>
struct PlanWords<PanelSource> {
  static constexpr PanelSource last = PanelSource::by_width;
  static std::string_view name_of(PanelSource source) {
    return source == PanelSource::in_place ? "in_place" : source == PanelSource::by_depth ? "by_depth" : "by_width";
  }
};

template <>
struct PlanWords<Microkernel> {
  static constexpr Microkernel last = Microkernel::matrix_tiles;
  static std::string_view name_of(Microkernel kind) {
    return kind == Microkernel::vectors ? "vectors" : kind == Microkernel::bf16_pairs ? "bf16_pairs" : "matrix_tiles";
  }
};

template <>
struct PlanWords<SharedAxis> {
  static constexpr SharedAxis last = SharedAxis::columns;
  static std::string_view name_of(SharedAxis axis) { return axis == SharedAxis::rows ? "rows" : "columns"; }
};

template <>
struct PlanFields<LoopPlan> {
  static void visit(auto&& field) {
    field("vector", &LoopPlan::outer_vector, 'a');
    field("stage_vectors", &LoopPlan::stage_vector, 'a');
    field("lanes", &LoopPlan::lanes);
    field("divided", &LoopPlan::divided, 'a');
    field("inner", &LoopPlan::inner, 'a');
    field("chunk", &LoopPlan::chunk);
    field("turned", &LoopPlan::turned, 'a');
    field("turned_chunk", &LoopPlan::turned_chunk);
    field("domain", &LoopPlan::domain);
    field("owns_rows", &LoopPlan::owns_rows);
    field("whole_rows", &LoopPlan::whole_rows);
    field("fetched", &LoopPlan::fetched, 'b');
    field("streamed", &LoopPlan::streamed, 'b');
    field("kept", &LoopPlan::kept, 's');
  }
};

template <>
struct PlanFields<OperandGroups> {
  static void visit(auto&& field) {
    field("rows", &OperandGroups::rows);
    field("row_step", &OperandGroups::row_step);
    field("depths", &OperandGroups::depths);
    field("depth_step", &OperandGroups::depth_step);
    field("groups", &OperandGroups::groups);
    field("apart", &OperandGroups::apart);
  }
};

// But the kernel with its axes and what they say of it.
template <>
struct PlanFields<TiledContraction> {
  static void visit(auto&& field) {
    field("sums", &TiledContraction::dtype);
    field("by", &TiledContraction::microkernel);
    field("lanes", &TiledContraction::lanes);
    field("tile_rows", &TiledContraction::tile_rows);
    field("tile_vectors", &TiledContraction::tile_vectors);
    field("block_rows", &TiledContraction::block_rows);
    field("block_columns", &TiledContraction::block_columns);
    field("block_depth", &TiledContraction::block_depth);
    field("cached_depth", &TiledContraction::cached_depth);
    field("left", &TiledContraction::left);
    field("right", &TiledContraction::right);
    field("left_groups", &TiledContraction::left_groups);
    field("right_panels", &TiledContraction::right_panels);
    field("panel_tiles", &TiledContraction::panel_tiles);
    field("streamed", &TiledContraction::streamed, 'b');
    field("shared", &TiledContraction::shared);
    field("parts", &TiledContraction::parts);
  }
};

template <>
struct PlanFields<TiledAttention::Product> {
  using Product = TiledAttention::Product;
  static void visit(auto&& field) {
    field("inner", &Product::inner, 'a');
    field("in_place", &Product::in_place);
    field("on_matrix_tiles", &Product::on_matrix_tiles);
    field("left_panel", &Product::left_panel);
    field("right_panel", &Product::right_panel);
    field("sums_at", &Product::sums);
    field("pitch", &Product::pitch);
    field("tile_rows", &Product::tile_rows);
    field("tile_vectors", &Product::tile_vectors);
  }
};

template <>
struct PlanFields<TiledAttention> {
  static void visit(auto&& field) {
    field("products", &TiledAttention::products);
    field("elements", &TiledAttention::elements);
  }
};

namespace {

// Each outer axis has one part, and lanes and pieces are some.
std::string problem_of(const LoopPlan& plan, const Kernel& kernel) {
  std::vector<AxisId> loops = plan.divided;
  loops.insert(loops.end(), plan.inner.begin(), plan.inner.end());
  for (const std::optional<AxisId>& axis : {plan.outer_vector, plan.turned})
    if (axis) loops.push_back(*axis);
  if (!std::ranges::is_permutation(loops, kernel.outer)) return "a plan of other loops than the kernel's";
  for (size_t s = 0; s < kernel.stages.size(); ++s)
    if (const auto& axis = plan.stage_vector[s]; axis && std::ranges::find(kernel.stages[s].axes, *axis) == kernel.stages[s].axes.end())
      return fmt::format("stage {} has no loop a{}", s, *axis);
  if (plan.lanes < 1 || plan.domain < 1 || (plan.outer_vector && plan.chunk < 1) || (plan.turned && plan.turned_chunk < 1))
    return "loops without lanes or parts";
  return "";
}

std::string problem_of(const TiledContraction& t) {
  const bool some = std::min({int64_t{t.lanes}, int64_t{t.tile_rows}, int64_t{t.tile_vectors}, t.block_rows, t.block_columns, t.block_depth,
                              t.cached_depth, int64_t{t.right_panels}, int64_t{t.panel_tiles}, t.parts}) > 0;
  if (!some) return "tiles of nothing";
  const std::optional<LeftOutPadding> left_out = t.left_out();
  const bool fits = !left_out || (t.microkernel == Microkernel::vectors && left_out->line_rows() % t.tile_rows == 0);
  return fits ? "" : "tiles that leave no padding out";
}

std::string problem_of(const TiledAttention& t) {
  if (t.products.size() != t.attention().steps.size()) return "attention has another number of products";
  const auto outside = [&](int64_t at) { return at >= t.elements; };
  for (const TiledAttention::Product& p : t.products)
    if (outside(p.left_panel) || outside(p.right_panel) || outside(p.sums) || p.tile_rows < 1 || p.tile_vectors < 1)
      return "a product of attention beyond its memory";
  return "";
}

TiledContraction read_tiles(Cursor& c, const Kernel& kernel) {
  TiledContraction t;
  t.kernel = kernel;
  if (!kernel.contraction) return c.fail("tiles of a kernel that is no contraction"), t;
  t.flatten_axes();
  if (c.accept_word("turned")) t.turn();
  PlanReader(c, t.kernel).fields(t);
  if (const std::string problem = problem_of(t); !problem.empty()) c.fail(problem);
  return t;
}

TiledAttention read_attention(Cursor& c, const Kernel& kernel) {
  if (!kernel.attention) return c.fail("tiles of a kernel that is no attention"), TiledAttention{};
  c.expect("lanes");
  TiledAttention t = TiledAttention::around(kernel, static_cast<int>(c.integer(1, 1 << 16)));
  t.products.clear();
  PlanReader(c, t.kernel).fields(t);
  if (const std::string problem = problem_of(t); !problem.empty()) c.fail(problem);
  return t;
}

}  // namespace

std::string to_string(const ProcessorPlan& plan) {
  const std::string alone = plan.alone ? " alone" : "";
  if (plan.attention) return fmt::format("attention{} lanes {}", alone, plan.attention->lanes) + PlanWriter::fields(*plan.attention);
  if (plan.tiles) return "tiles" + alone + (plan.tiles->is_turned() ? " turned" : "") + PlanWriter::fields(*plan.tiles);
  return "loops" + alone + PlanWriter::fields(plan.plan);
}

ProcessorPlan read_processor_plan(Cursor& c, const Kernel& kernel) {
  ProcessorPlan plan;
  if (c.accept_word("attention")) {
    plan.alone = c.accept_word("alone");
    plan.attention = read_attention(c, kernel);
    plan.scratch_bytes = plan.attention->scratch_bytes();
  } else if (c.accept_word("tiles")) {
    plan.alone = c.accept_word("alone");
    plan.tiles = read_tiles(c, kernel);
    plan.scratch_bytes = plan.tiles->scratch_bytes();
  } else {
    c.expect("loops");
    plan.alone = c.accept_word("alone");
    PlanReader(c, kernel).fields(plan.plan);
    if (const std::string problem = problem_of(plan.plan, kernel); !problem.empty()) c.fail(problem);
    plan.scratch_bytes = row_bytes(kernel);
  }
  return plan;
}

}  // namespace einc
