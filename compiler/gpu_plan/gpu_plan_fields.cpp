// SPDX-License-Identifier: Apache-2.0
#include "compiler/gpu_plan/gpu_plan_fields.h"

#include <algorithm>
#include <bit>

#include "compiler/lower/flatten.h"
#include "compiler/lower/plan_fields.h"
#include "compiler/lower/transposes.h"

namespace einc {

template <>
struct PlanWords<CudaTeam> {
  static constexpr CudaTeam last = CudaTeam::column;
  static std::string_view name_of(CudaTeam team) {
    constexpr std::string_view kNames[] = {"thread", "warp", "block", "column"};
    return kNames[static_cast<size_t>(team)];
  }
};

template <>
struct PlanWords<KeptLoads> {
  static constexpr KeptLoads last = KeptLoads::all;
  static std::string_view name_of(KeptLoads keeps) {
    constexpr std::string_view kNames[] = {"none", "of_row", "all"};
    return kNames[static_cast<size_t>(keeps)];
  }
};

template <>
struct PlanFields<AttentionTiles::Tile> {
  using Tile = AttentionTiles::Tile;
  static void visit(auto&& field) {
    field("load", &Tile::load);
    field("inner", &Tile::inner, 'a');
    field("width", &Tile::width);
    field("own", &Tile::own);
  }
};

template <>
struct PlanFields<AttentionTiles::Product> {
  using Product = AttentionTiles::Product;
  static void visit(auto&& field) {
    field("step", &Product::step);
    field("own", &Product::own);
    field("other", &Product::other);
    field("inner", &Product::inner, 'a');
  }
};

template <>
struct PlanFields<AttentionTiles::Online> {
  using Online = AttentionTiles::Online;
  static void visit(auto&& field) {
    field("max", &Online::max, 'r');
    field("sum", &Online::sum, 'r');
    field("x", &Online::x);
    field("exponential", &Online::exponential);
    field("most", &Online::most);
    field("least", &Online::least);
  }
};

template <>
struct PlanFields<AttentionTiles> {
  static void visit(auto&& field) {
    field("own", &AttentionTiles::own, 'a');
    field("other", &AttentionTiles::other, 'a');
    field("in", &AttentionTiles::dtype);
    field("step", &AttentionTiles::step);
    field("sets", &AttentionTiles::sets);
    field("wgmma", &AttentionTiles::wgmma);
    field("blocks_together", &AttentionTiles::blocks_together);
    field("tiles", &AttentionTiles::tiles);
    field("vectors", &AttentionTiles::vectors);
    field("scores", &AttentionTiles::scores);
    field("results", &AttentionTiles::results);
    field("online", &AttentionTiles::online);
    field("folds", &AttentionTiles::folds, 'r');
    field("lefts", &AttentionTiles::lefts);
    field("row_factors", &AttentionTiles::row_factors);
    field("batches", &AttentionTiles::batches);
    field("own_blocks", &AttentionTiles::own_blocks);
    field("results_over_rows", &AttentionTiles::results_over_keys);
  }
};

// But the order in which values are made, which follows from the kernel.
template <>
struct PlanFields<AttentionBlocks> {
  static void visit(auto&& field) {
    field("rows", &AttentionBlocks::rows);
    field("row_blocks", &AttentionBlocks::row_blocks);
    field("batches", &AttentionBlocks::batches);
    field("keys", &AttentionBlocks::keys);
    field("key_blocks", &AttentionBlocks::key_blocks);
    field("gathers", &AttentionBlocks::gathers);
    field("tiles_in_scratch", &AttentionBlocks::tiles_shared);
    field("tile_bytes", &AttentionBlocks::tile_bytes);
    field("fold_bytes", &AttentionBlocks::fold_bytes);
    field("sum_bytes", &AttentionBlocks::sum_bytes);
  }
};

template <>
struct PlanFields<ProductTiles::Operand> {
  using Operand = ProductTiles::Operand;
  static void visit(auto&& field) {
    field("by_depth", &Operand::by_depth);
    field("copied", &Operand::copied);
  }
};

// But the kernel with its axes and what they say of it; of contractions on plain cores, too.
template <>
struct PlanFields<ProductTiles> {
  static void visit(auto&& field) {
    field("in", &ProductTiles::dtype);
    field("left", &ProductTiles::left);
    field("right", &ProductTiles::right);
    field("rows", &ProductTiles::rows);
    field("columns", &ProductTiles::columns);
  }
};

template <>
struct PlanFields<ContractionTiles> {
  static void visit(auto&& field) {
    field("tile_rows", &ContractionTiles::tile_rows);
    field("tile_columns", &ContractionTiles::tile_columns);
    field("tile_depth", &ContractionTiles::tile_depth);
    field("thread_rows", &ContractionTiles::thread_rows);
    field("thread_columns", &ContractionTiles::thread_columns);
  }
};

template <>
struct PlanFields<ScatterBlocks> {
  static void visit(auto&& field) {
    field("stage", &ScatterBlocks::stage, 's');
    field("position", &ScatterBlocks::position);
    field("table_rows", &ScatterBlocks::table_rows);
    field("positions", &ScatterBlocks::positions);
    field("points", &ScatterBlocks::points);
    field("threads", &ScatterBlocks::threads);
    field("chunks", &ScatterBlocks::chunks);
    field("rows", &ScatterBlocks::rows);
  }
};

template <>
struct PlanFields<TransposedAxes> {
  static void visit(auto&& field) {
    field("along", &TransposedAxes::along, 'a');
    field("across", &TransposedAxes::across, 'a');
  }
};

template <>
struct PlanFields<TileStore> {
  static void visit(auto&& field) {
    field("stage", &TileStore::stage, 's');
    field("store", &TileStore::store);
    field("axes", &TileStore::axes);
  }
};

template <>
struct PlanFields<ThreadPlan> {
  static void visit(auto&& field) {
    field("by", &ThreadPlan::kind);
    field("team", &ThreadPlan::team);
    field("block_threads", &ThreadPlan::block_threads);
    field("outer", &ThreadPlan::outer, 'a');
    field("stages", &ThreadPlan::stages, 'a');
    field("pack_axis", &ThreadPlan::pack_axis, 'a');
    field("pack", &ThreadPlan::pack);
    field("row_start", &ThreadPlan::row_start);
    field("row_steps", &ThreadPlan::row_steps);
    field("keeps", &ThreadPlan::keeps);
    field("ahead", &ThreadPlan::ahead);
    field("in_shared", &ThreadPlan::in_shared);
    field("tiles", &ThreadPlan::tiles);
    field("points", &ThreadPlan::points);
    field("blocks", &ThreadPlan::blocks);
  }
};

namespace {

struct FormName {
  std::string operator()(const AttentionTiles&) const { return "attention_tiles"; }
  std::string operator()(const AttentionBlocks&) const { return "attention_blocks"; }
  std::string operator()(const ProductTiles&) const { return "product_tiles"; }
  std::string operator()(const ContractionTiles&) const { return "contraction_tiles"; }
  std::string operator()(const ScatterBlocks&) const { return "scatter"; }
  std::string operator()(const ThreadedLoops&) const { return "threads"; }
};

const ThreadPlan& fields_in(const ThreadedLoops& loops) { return loops.threads; }
const auto& fields_in(const auto& form) { return form; }

template <class Tiles>
Tiles read_flat(Cursor& c, const Kernel& kernel) {
  Tiles tiles;
  tiles.kernel = kernel;
  if (!kernel.contraction) return c.fail("tiles of a kernel that is no contraction"), tiles;
  const FlatContraction flat = flatten_contraction(tiles.kernel);
  tiles.row = flat.row, tiles.column = flat.column, tiles.depth = flat.depth, tiles.batches = flat.batches;
  PlanReader(c, tiles.kernel).fields(tiles);
  return tiles;
}

// Places of attention's products and tiles that their lists do not have.
std::string problem_of(const AttentionTiles& t, const Kernel& kernel) {
  const auto beyond = [&](int tile) { return tile >= static_cast<int>(t.tiles.size()); };
  for (const auto* products : {&t.scores, &t.results})
    for (const AttentionTiles::Product& p : *products)
      if (p.step >= kernel.attention->steps.size() || beyond(p.own) || beyond(p.other)) return "a product of attention without a tile";
  const bool each = t.lefts.size() == t.results.size() && (t.row_factors.empty() || t.row_factors.size() == t.results.size());
  return each ? "" : "attention's results without what they multiply";
}

bool is_row(const ThreadPlan& plan) { return plan.kind == CudaTeam::warp || plan.kind == CudaTeam::block; }

// Each outer axis and each stage's loops, in some order.
std::string problem_of(const ThreadPlan& plan, const Kernel& kernel) {
  if (!std::ranges::is_permutation(plan.outer, kernel.outer)) return "a plan of other points than the kernel's";
  if (plan.stages.size() != kernel.stages.size()) return "a plan of another number of stages";
  for (size_t s = 0; s < plan.stages.size(); ++s)
    if (!std::ranges::is_permutation(plan.stages[s], kernel.stages[s].axes)) return fmt::format("stage {} has other loops", s);
  for (const TileStore& tile : plan.tiles)
    if (tile.store >= kernel.stages[tile.stage].stores.size()) return fmt::format("stage {} has no store {}", tile.stage, tile.store);
  const bool divides_warp = plan.team <= 32 && std::has_single_bit(static_cast<unsigned>(plan.team));
  if (plan.kind == CudaTeam::warp && (!divides_warp || plan.points % 32 * plan.team % 32 != 0)) return "a warp with lanes that have no row";
  const auto along_pack = [&](const std::vector<AxisId>& axes) { return std::ranges::find(axes, plan.pack_axis) != axes.end(); };
  const bool packed = is_row(plan) && std::ranges::any_of(plan.stages, along_pack), in_registers = plan.row_steps > 0;
  for (const ValueId id : plan.ahead)
    if (!packed || !in_registers || !plan.loads_pack(kernel, id) || !kernel.values[id].index.dynamic.empty())
      return fmt::format("v{} is no load at a row's start", id);
  for (const ValueId id : plan.in_shared)
    if (!packed || in_registers || plan.kind != CudaTeam::block || !plan.loads_pack(kernel, id))
      return fmt::format("v{} is no load of a row's packs", id);
  return plan.team > 0 && plan.block_threads >= plan.team && plan.pack > 0 && plan.blocks > 0 ? "" : "a team of no threads";
}

GpuForm read_form(Cursor& c, const Kernel& kernel) {
  std::string problem;
  const auto checked = [&](auto form) -> GpuForm {
    if (!problem.empty()) c.fail(problem);
    return form;
  };
  const std::string form = c.word();
  if (form == "attention_tiles" || form == "attention_blocks") {
    if (!kernel.attention) return c.fail("tiles of a kernel that is no attention"), GpuForm{};
    if (form == "attention_tiles") {
      AttentionTiles tiles;
      PlanReader(c, kernel).fields(tiles);
      problem = problem_of(tiles, kernel);
      return checked(std::move(tiles));
    }
    AttentionBlocks blocks;
    blocks.schedule = schedule_attention(kernel);
    PlanReader(c, kernel).fields(blocks);
    return blocks;
  }
  if (form == "product_tiles") return read_flat<ProductTiles>(c, kernel);
  if (form == "contraction_tiles") return read_flat<ContractionTiles>(c, kernel);
  if (form == "scatter") {
    ScatterBlocks blocks;
    PlanReader(c, kernel).fields(blocks);
    return blocks;
  }
  if (form != "threads") return c.fail(fmt::format("'{}' is no plan of a GPU", form)), GpuForm{};
  ThreadedLoops loops{tile_transposes(kernel), {}};
  const Kernel& planned = loops.transposed ? *loops.transposed : kernel;
  PlanReader(c, planned).fields(loops.threads);
  problem = problem_of(loops.threads, planned);
  return checked(std::move(loops));
}

}  // namespace

std::string fields_of(const GpuPlan& plan) {
  return std::visit([](const auto& form) { return FormName()(form) + PlanWriter::fields(fields_in(form)); }, plan.how);
}

GpuPlan read_gpu_plan(Cursor& line, const Kernel& kernel) {
  GpuForm form = read_form(line, kernel);
  return line.failed() ? GpuPlan{} : gpu_plan_of(std::move(form), kernel);
}

GpuPlanText gpu_plan_text() {
  return {fields_of, [](Cursor& line, const Kernel& kernel) -> std::shared_ptr<const GpuPlan> {
            return std::make_shared<GpuPlan>(read_gpu_plan(line, kernel));
          }};
}

}  // namespace einc
