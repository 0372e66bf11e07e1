// SPDX-License-Identifier: Apache-2.0
// The passes in the two lists at the end are those that run, in that order and no other: --passes prints them, --dump-after, --disable and
// --time-passes name them.
#include "compiler/fuse/schedule_passes.h"

#include <algorithm>
#include <chrono>

#include "compiler/fuse/cut_scans.h"
#include "compiler/fuse/exact_log_sums.h"
#include "compiler/fuse/gather_folds.h"
#include "compiler/fuse/guard_updates.h"
#include "compiler/fuse/leave_out_padding.h"
#include "compiler/fuse/library_layouts.h"
#include "compiler/fuse/merge_sorts.h"
#include "compiler/fuse/narrow_products.h"
#include "compiler/fuse/orient_operands.h"
#include "compiler/fuse/orient_scans.h"
#include "compiler/fuse/padded_operands.h"
#include "compiler/fuse/pullback_halves.h"
#include "compiler/fuse/row_statistics.h"
#include "compiler/fuse/row_values.h"
#include "compiler/fuse/schedule_scans.h"
#include "compiler/fuse/store_concatenated.h"
#include "compiler/gpu_plan/gpu_plan_fields.h"
#include "compiler/ir/print.h"
#include "compiler/library/epilogues.h"
#include "compiler/library/find_products.h"
#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "compiler/lower/delay_sums.h"
#include "compiler/lower/divide_attention.h"
#include "compiler/lower/divide_reductions.h"
#include "compiler/lower/each_kernel.h"
#include "compiler/lower/exact_casts.h"
#include "compiler/lower/flatten_sums.h"
#include "compiler/lower/join_launches.h"
#include "compiler/lower/keep_rows.h"
#include "compiler/lower/own_parts.h"
#include "compiler/lower/points_first.h"
#include "compiler/lower/processor_plan.h"
#include "compiler/lower/schedule_text.h"
#include "compiler/lower/verify_plan.h"
#include "compiler/lower/widen_lanes.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

// Nodes whose values a run must leave in memory.
std::vector<NodeId> roots_of(const Graph& graph, RunMode mode) {
  std::vector<NodeId> roots;
  for (const Output& output : graph.outputs) roots.push_back(output.node);
  for (const Update& update : graph.updates)
    if (mode == RunMode::training || is_updated_always(graph[update.target])) roots.push_back(update.value);
  if (graph.loss.valid() && (mode == RunMode::training || graph.outputs.empty())) roots.push_back(graph.loss);
  if (mode == RunMode::training)
    for (const Update& gradient : graph.gradients) roots.push_back(gradient.value);
  return roots;
}

// In training every param and state is held, read or not.
std::vector<bool> needed_by(const Graph& graph, const std::vector<NodeId>& roots, RunMode mode) {
  std::vector<bool> live(graph.size(), false);
  for (NodeId id : roots) live[id.index] = true;
  for (const Update& update : graph.updates)
    if (live[update.value.index]) live[update.target.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Op op = graph.nodes[i].op;
    if (mode == RunMode::training && (op == Op::param || op == Op::state)) live[i] = true;
    if (live[i])
      for (NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  }
  return live;
}

// ---- of graphs

void keep_digits_of_log_sums(Forming& f) {
  ExactLogSums exact = exact_log_sums(f.graph());
  if (exact.graph) f.move_to(std::move(exact.graph), std::move(exact.at));
}

void gather_folds_where(Forming& f, const std::function<bool(NodeId)>& wanted) {
  // Most graphs have none: numbers for their dims and a copy would be made for nothing.
  if (std::ranges::none_of(f.graph().nodes, [](const Node& node) { return node.op == Op::fold; })) return;
  GatheredFolds gathered = gather_folds(f.bind(), roots_of(f.graph(), f.mode), wanted);
  if (gathered.graph) f.move_to(std::move(gathered.graph), std::move(gathered.at));
}

void gather_folds_of(Forming& f) {
  gather_folds_where(f, [](NodeId) { return true; });
}

void gather_short_folds_of(Forming& f) {
  gather_folds_where(f, [&](NodeId product) {
    const Graph& graph = f.graph();
    const auto is_short = [&](NodeId x) { return bytes_of(graph[x].type.dtype) == 2 && is_floating(graph[x].type.dtype); };
    return std::ranges::all_of(graph[product].operands, is_short) || is_in_tf32(graph, product);
  });
}

void merge_sorts_of(Forming& f) {
  if (std::ranges::none_of(f.graph().nodes, [](const Node& node) { return node.op == Op::top_k_index; })) return;
  MergedSorts merged = merge_sorts(f.bind());
  if (merged.graph) f.move_to(std::move(merged.graph), std::move(merged.at));
}

void orient_scans_of(Forming& f) {
  if (std::ranges::none_of(f.graph().nodes, [](const Node& node) { return node.op == Op::scan; })) return;
  OrientedScans oriented = orient_scans(f.bind());
  if (oriented.graph) f.move_to(std::move(oriented.graph), std::move(oriented.at));
}

void cut_scans_of(Forming& f) {
  const auto saves_some = [](const Node& node) { return node.op == Op::scan && node.as<ScanAttr>().save_every > 0; };
  if (std::ranges::none_of(f.graph().nodes, saves_some)) return;
  CutScans cut = cut_scans(f.bind(), roots_of(f.graph(), f.mode));
  if (cut.graph) f.move_to(std::move(cut.graph), std::move(cut.at));
}

void narrow_products_of(Forming& f) {
  if (!f.target.library) return;
  const BoundGraph bound = f.bind();
  if (std::unique_ptr<const Graph> narrow = narrow_products(bound, roots_of(f.graph(), f.mode), f.target)) f.own = std::move(narrow);
}

void orient_operands_of(Forming& f) {
  if (!f.target.library) return;
  OrientedGraph oriented = orient_operands(f.bind(), f.target);
  if (oriented.graph) f.move_to(std::move(oriented.graph), std::move(oriented.at));
}

void divide_maxima_of(Forming& f) {
  if (std::ranges::none_of(f.graph().nodes, is_whole_extreme)) return;
  RowMaxima divided = divide_maxima(f.bind());
  if (divided.graph) f.move_to(std::move(divided.graph), std::move(divided.at));
}

void cast_before_padding_of(Forming& f) {
  const auto& nodes = f.graph().nodes;
  if (!f.target.library || std::ranges::none_of(nodes, [](const Node& node) { return node.op == Op::pad; })) return;
  if (auto cast = cast_before_padding(f.bind(), roots_of(f.graph(), f.mode), f.target)) f.own = std::move(cast);
}

// Copies that each reader makes come last: the backward reads those, where there are some on the way to others, too.
void note_copies(const Forming& f, BoundGraph& bound) {
  if (f.twice.empty()) return;
  bound.again.assign(f.graph().size(), {}), bound.given = bound.again;
  for (size_t i = 0; i < f.twice.size(); i += 2) {
    const NodeId given = f.twice[i], copy = f.twice[i + 1];
    if (given.valid() && copy.valid()) bound.again[given.index] = copy, bound.given[copy.index] = given;
  }
}

void use_row_statistics_of(Forming& f) {
  if (f.options.leaves_out("attention")) return;
  const auto late = [](const Node& node) { return node.op == Op::contract && node.origin.phase == Phase::backward; };
  if (std::ranges::none_of(f.graph().nodes, late)) return;
  BoundGraph bound = f.bind();
  note_copies(f, bound);
  RowStatistics kept = use_row_statistics(bound, ValuePlaces(bound, roots_of(f.graph(), f.mode)).find_attention().found);
  if (kept.graph) f.move_to(std::move(kept.graph), std::move(kept.at));
}

void guard(Forming& f) {
  const bool elements = f.target.library || f.graph().mesh.of_device;
  const GradientLooks looks = elements ? GradientLooks::elements : GradientLooks::products;
  std::optional<GuardedGraph> guarded = guard_updates(f.bind(), f.mode, looks);
  if (!guarded) return;
  f.own = std::move(guarded->graph);  // nodes behind those that it has
  f.guard = std::move(guarded->guard);
}

// ---- of graphs with numbers for dims

void bind_dims(Forming& f) {
  f.roots = roots_of(f.graph(), f.mode);
  const std::vector<NodeId> looked_at = f.guard.roots();
  f.roots.insert(f.roots.end(), looked_at.begin(), looked_at.end());
  f.bound.emplace(bind_graph(f.graph(), f.dims, needed_by(f.graph(), f.roots, f.mode)));
  f.bound->guard = std::move(f.guard);
  f.bound->pulled = find_pulled(f.graph());
  if (f.twice.empty()) return;
  const auto mark = [&](std::vector<bool>& flags, const std::vector<NodeId>& set) {
    flags.assign(f.graph().size(), false);
    for (NodeId id : set)
      if (id.valid()) flags[id.index] = true;
  };
  mark(f.bound->late, f.late);
  mark(f.bound->where_read, f.where_read);
  mark(f.bound->twice, f.twice);
  note_copies(f, *f.bound);
}

// Scatters whose updates have no axis but those of the table.
void find_one_hot(Forming& f) {
  BoundGraph& graph = *f.bound;
  graph.one_hot.assign(graph.graph.size(), false);
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const Node& node = graph.graph.nodes[i];
    if (!graph.live[i] || node.op != Op::scatter_add) continue;
    const GatherAttr& attr = node.as<GatherAttr>();
    std::vector<int> of_table(graph.shape(node.operands[0]).size(), 0);
    for (int k = 0; k < attr.table_map.size(); ++k)
      if (k != attr.axis) ++of_table[static_cast<size_t>(attr.table_map[k])];
    graph.one_hot[i] = std::ranges::all_of(of_table, [](int times) { return times == 1; });
  }
}

void recompute(Forming& f, const RecomputeLimits& limits) { f.values->find_recomputed(f.attention.kernels, limits, f.target, *f.built); }

void find_attention(Forming& f) {
  f.attention = f.values->find_attention();
  f.list.no_attention = std::move(f.attention.refusals);
}

// What lies as the program says: for who reads it at the end, other devices among them, and what iterations of scans read or make.
std::vector<NodeId> row_major(const Forming& f) {
  std::vector<NodeId> values = f.roots;
  for (NodeId id : f.bound->read_whole()) values.push_back(id);
  for (uint32_t i = 0; i < f.graph().size(); ++i)
    if (f.graph().nodes[i].op == Op::scan_result) values.push_back(NodeId{i});
  return values;
}

// ---- of groups and kernels

KernelFormer& former(Forming& f) {
  if (!f.former) f.former.emplace(*f.bound, *f.values, f.attention, f.target, *f.built, f.list);
  return *f.former;
}

void form_kernels(Forming& f) {
  former(f).emit();
  f.former.reset();
  f.built.reset();  // what nobody shares, later passes change where it lies
}

// ---- of a library

void library_products_of(Forming& f) {
  if (f.target.library) find_library_products(*f.bound, *f.target.library, f.list);
}

void library_attention_of(Forming& f) {
  if (f.ask_attention) find_library_attention(*f.bound, f.ask_attention, f.list);
}

// ---- the lists

constexpr SchedulePass kMemoryLimitPass{"memory_limit", "under --memory-limit, saved values that the backward makes again",
                                        "first: it tries the passes behind it", recompute_within_limit};
constexpr SchedulePass kExactLogsPass{"exact_logs", "logarithms of sums of exponentials that keep their digits",
                                      "before anything counts on the nodes that it replaces", keep_digits_of_log_sums};
constexpr SchedulePass kMergeSortsPass{"merge_sorts", "long orders by merging runs, not by one selection after the other",
                                       "before anything counts on the nodes that it replaces", merge_sorts_of, true};
constexpr SchedulePass kCutScansPass{"cut_scans", "recurrences that `save every` some carries, in pieces that the backward makes again",
                                     "once their operands lie as iterations read them; adds nodes, which are looked at", cut_scans_of};
constexpr SchedulePass kRowStatisticsPass{
    "row_statistics", "attention's backward reads one number of a row for its weights and one for what their gradient subtracts",
    "replaces nodes; what is looked at is added behind it", use_row_statistics_of, true};
constexpr SchedulePass kFiniteStatePass{"finite_state", "a look at updates before they are stored; train always looks",
                                        "once nodes have their final numbers: it adds behind them", guard, true};
constexpr SchedulePass kBindPass{"bind", "numbers for dims, and which nodes the run needs", "last of what changes the graph", bind_dims};
constexpr SchedulePass kValuesPass{"values", "which values are made once and which where they are read",
                                   "needs numbers; attention and recompute change it",
                                   [](Forming& f) { f.values.emplace(*f.bound, f.roots); }};
constexpr SchedulePass kAttentionPass{"attention", "scores of rows against keys in tiles, never stored",
                                      "first of what forms kernels: it takes nodes that others would", find_attention, true};
constexpr SchedulePass kInPlacePass{"in_place", "results written where operands of their kernels lie",
                                    "scatters onto a state are grouped by it, and buffers planned",
                                    [](Forming& f) { f.list.in_place = true; }, true};
constexpr SchedulePass kFusionPass{"fusion",
                                   "several nodes as one kernel",
                                   "knows where values are made",
                                   [](Forming& f) { former(f).join_operands(); },
                                   true,
                                   [](Forming& f) { former(f).keep_apart(); }};
constexpr SchedulePass kKernelsPass{"kernels", "groups as loops over points, in an order that respects what they read",
                                    "once groups grow no more", form_kernels};
constexpr SchedulePass kScansPass{"scans", "iterations of recurrences as schedules of their own, by all these passes",
                                  "knows what lies in memory; what an iteration does is its own", schedule_scans};
constexpr SchedulePass kCollapsePass{"collapse", "neighbouring loops that every index walks as one become one",
                                     "first: later passes count loops", [](Forming& f) { for_each_kernel(f.list, collapse_axes); }};
constexpr SchedulePass kFlattenSumsPass{"flatten_sums", "sums of whole tensors along the elements as they lie",
                                        "before long sums are divided along those loops",
                                        [](Forming& f) { for_each_kernel(f.list, flatten_sums); }};
constexpr SchedulePass kDividePass{"divide_reductions", "long sums in parts that threads share, and a kernel that adds those",
                                   "needs loops as they stay; what it makes are kernels like others",
                                   [](Forming& f) { divide_reductions(f.list, f.target); }};
constexpr SchedulePass kExactCastsPass{"exact_casts", "scores of attention that are bf16 numbers already are not rounded again",
                                       "knows which kernels are attention; what they compute is final",
                                       [](Forming& f) { for_each_kernel(f.list, drop_exact_casts, KernelSort::attention); }, true};
constexpr SchedulePass kContractionsPass{"contractions", "which kernels are sums of products, by rows, columns and depth",
                                         "once no kernel is divided any more",
                                         [](Forming& f) { for_each_kernel(f.list, find_contraction); }};
constexpr SchedulePass kPlacesPass{"places", "where each buffer lies", "kernels and their order are final",
                                   [](Forming& f) { f.plan = verified_plan(*f.bound, f.list, f.roots, f.mode); }};

constexpr SchedulePass kProcessorPasses[] = {
    kMemoryLimitPass,
    kExactLogsPass,
    kMergeSortsPass,
    {"gather_folds", "gradients of windows as windows: no patches are stored and added", "before nodes are added that are looked at",
     gather_folds_of},
    // Not on GPUs: a product's tiles go through shared memory there, whichever way they lie.
    {"orient_scans", "what iterations multiply from the right is turned once, before the scan", "adds nodes, which are looked at",
     orient_scans_of},
    kCutScansPass,
    kRowStatisticsPass,
    kFiniteStatePass,
    kBindPass,
    kValuesPass,
    kAttentionPass,
    {"recompute", "elementwise values made again in the backward, not kept for it", "what attention reads is decided",
     [](Forming& f) { recompute(f, f.options.recompute); }, true},
    kInPlacePass,
    kFusionPass,
    kKernelsPass,
    kScansPass,
    kCollapsePass,
    kFlattenSumsPass,
    kDividePass,
    kExactCastsPass,
    kContractionsPass,
    // Not on GPUs: a library wants rows that lie evenly.
    {"store_concatenated", "products are stored where they are put side by side", "knows the products; their rows are not planned yet",
     [](Forming& f) { store_concatenated(*f.bound, f.roots, ConcatenatedBy::products, f.list); }, true},
    {"widen_lanes", "short innermost loops in vectors with the one around them, where results lie side by side along both",
     "loops are final",
     [](Forming& f) { for_each_kernel(f.list, [&](Kernel& kernel) { widen_lanes(kernel, f.target.processor.lanes(4)); }); }, true},
    {"leave_out_padding", "products of windows with the zeros around an image are not made",
     "contractions are final, as tiles will read them", [](Forming& f) { leave_out_padding(*f.bound, f.target.processor, f.list); }, true},
    {"keep_rows", "what two stages need along a row is kept in a thread's scratch", "stages are final",
     [](Forming& f) { for_each_kernel(f.list, keep_rows); }},
    kPlacesPass,
    {"loops", "how each kernel runs: vectors, tiles, panels, what threads divide",
     "knows what lies where, which results may pass the caches",
     [](Forming& f) { plan_loops_of(*f.bound, *f.plan, f.target.processor, f.list); }},
};

constexpr SchedulePass kGpuPasses[] = {
    kMemoryLimitPass,
    kExactLogsPass,
    kMergeSortsPass,
    // What is exact in f32 stays with the library: its products of patches are faster than tiles without tensor cores.
    {"gather_folds", "gradients of windows that tensor cores multiply as windows: no patches are stored and added",
     "before nodes are added that are looked at", gather_short_folds_of},
    {"narrow_products", "products of widened fp8 values read them before they are widened", "before their operands are oriented",
     narrow_products_of},
    {"orient_operands", "a copy of each fp8 value for each way in which products sum over it", "adds nodes, which are looked at",
     orient_operands_of},
    {"row_maxima", "the largest of a value that is made by rows as the largest of its rows' largest, which the rows' kernel finds",
     "adds nodes, which are looked at", divide_maxima_of, true},
    {"cast_before_padding", "images that are padded for products on tensor cores are rounded before",
     "before nodes are added that are looked at", cast_before_padding_of, true},
    kCutScansPass,
    kRowStatisticsPass,
    kFiniteStatePass,
    kBindPass,
    {"pad_where_read", "products on tensor cores read images without their padding, and ask what lies inside",
     "knows the products' operands; values are placed by it", [](Forming& f) { pad_where_read(*f.bound, f.roots, f.target); }, true},
    {"one_hot", "scatters of at most one update a row are made where the row is, by comparing positions", "kernels are grouped by it",
     find_one_hot},
    {"layouts", "values in between lie so that a library can multiply them", "kernels are grouped by it",
     [](Forming& f) { choose_layouts(*f.bound, row_major(f), f.target); }},
    {"pad_rows", "rows that a library multiplies take whole lines of memory", "knows the layouts",
     [](Forming& f) { pad_rows(*f.bound, row_major(f), f.target); }},
    kValuesPass,
    kAttentionPass,
    {"recompute", "elementwise values made again in the backward, not kept for it", "what attention reads is decided",
     [](Forming& f) {
       RecomputeLimits limits = f.options.recompute;
       limits.contractions = false;  // what a library multiplies must lie in memory
       recompute(f, limits);
     },
     true},
    kInPlacePass,
    kFusionPass,
    {"whole_reductions", "what reduces a whole value joins the kernel that goes over it anyway", "needs the groups",
     [](Forming& f) { former(f).join_whole_reductions(); }},
    kKernelsPass,
    kScansPass,
    kCollapsePass,
    kFlattenSumsPass,
    kDividePass,
    kExactCastsPass,
    kContractionsPass,
    {"points_first", "a row's single values are stored before its elements, which may then lie over their operands", "stages are final",
     [](Forming& f) { for_each_kernel(f.list, store_points_first); }},
    {"divide_attention", "what attention sums over keys and what it sums over rows are two kernels", "kernels of attention are final",
     [](Forming& f) { divide_attention(f.list); }},
    {"store_concatenated", "attention stores its results where they are put side by side", "knows the divided kernels",
     [](Forming& f) { store_concatenated(*f.bound, f.roots, ConcatenatedBy::attention, f.list); }, true},
    {"own_parts", "parts of small sums have places of their own", "knows all parts; what follows moves launches past each other",
     [](Forming& f) { give_parts_places(f.list, f.target.own_parts); }, true},
    {"delay_sums", "numbers that are made of parts wait for who reads them, so that equal kernels may be one launch",
     "places of kernels in the list are not counted on yet", [](Forming& f) { delay_sums(f.list); }, true},
    {"library_products", "contractions that a library multiplies", "kernels are final", library_products_of, true},
    {"epilogues", "products that may do what kernels around them do, in their epilogue: both ways stand",
     "knows the products; what an alternative reads is held in its place", [](Forming& f) { find_epilogues(*f.bound, f.roots, f.list); },
     true},
    {"library_attention", "attention that a plug-in may compute: both ways stand", "as the alternatives before it", library_attention_of,
     true},
    {"numbers_apart", "single numbers share no place with others, so that launches that make them may join", "places follow from it",
     [](Forming& f) { f.list.numbers_apart = true; }, true},
    kPlacesPass,
    {"join_launches", "launches of one kernel that nothing in between keeps apart, as one", "knows what lies where",
     [](Forming& f) { join_launches(*f.bound, *f.plan, f.list); }, true},
    {"threads", "who does what of a kernel: tiles on tensor cores, rows of warps and blocks, columns", "kernels and launches are final",
     [](Forming& f) { plan_threads_of(*f.bound, *f.target.gpu, f.list); }},
};

}  // namespace

bool Scheduling::leaves_out(std::string_view pass) const { return std::ranges::find(without, pass) != without.end(); }

Scheduling Scheduling::and_without(std::string pass) const {
  Scheduling more = *this;
  more.without.push_back(std::move(pass));
  return more;
}

BoundGraph Forming::bind() const { return bind_graph(graph(), dims, needed_by(graph(), roots_of(graph(), mode), mode)); }

void Forming::move_to(std::unique_ptr<const Graph> graph, std::vector<NodeId> to) {
  own = std::move(graph);
  for (auto* ids : {&late, &where_read, &twice})
    for (NodeId& id : *ids)
      if (id.valid()) id = to[id.index];
  if (at.empty()) return void(at = std::move(to));
  for (NodeId& id : at)
    if (id.valid()) id = to[id.index];
}

std::span<const SchedulePass> processor_passes() { return kProcessorPasses; }

ScheduleTarget processor_target(const Processor& processor, int threads) {
  KernelTarget sizes;
  sizes.processor = processor;
  return {processor_passes(), sizes, {}, [threads](const FormedView& formed) {
            return BesidePlan{threads * panel_bytes(formed.list), 0, {}};
          }};
}

std::span<const SchedulePass> gpu_passes() { return kGpuPasses; }

BufferPlan verified_plan(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& roots, RunMode mode) {
  BufferPlan plan = plan_buffers(graph, list, roots, mode);
  if (debug_level() < 1) return plan;
  const std::string problem = verify_plan(graph, list, plan, roots);
  EINC_CHECK(problem.empty(), "the plan of buffers loses a value: {}", problem);
  return plan;
}

void run_passes(Forming& forming, std::span<const SchedulePass> passes) {
  forming.passes = passes;
  const bool joins = std::ranges::any_of(passes, [](const SchedulePass& p) { return p.name == "whole_reductions"; });
  forming.target.whole_reductions = joins ? WholeReductions::joined : WholeReductions::alone;
  for (const SchedulePass& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    const auto run = pass.optional && forming.options.leaves_out(pass.name) ? pass.instead : pass.run;
    if (run) run(forming);
    if (debug_level() >= 1) {
      const std::string problem = verify(forming.list);
      EINC_CHECK(problem.empty(), "after {}: {}", pass.name, problem);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (forming.options.observe) forming.options.observe(pass.name, forming, seconds);
  }
  const std::string problem = verify(forming.list);
  EINC_CHECK(problem.empty(), "{}", problem);
}

std::string to_string(const Forming& f) {
  return f.list.kernels.empty() ? print_graph(f.graph()) : print_schedule(f.list, f.plan ? &*f.plan : nullptr, gpu_plan_text());
}

}  // namespace einc
