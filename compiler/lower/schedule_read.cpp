// SPDX-License-Identifier: Apache-2.0
// Line by line; lines that are no heading belong to the loops of the kernel before them, whose text is read when it ends.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "compiler/lower/kernel_read.h"
#include "compiler/lower/processor_plan_text.h"
#include "compiler/lower/scan_schedule.h"
#include "compiler/lower/schedule_names.h"
#include "compiler/lower/schedule_text.h"

namespace einc {
namespace {

constexpr int64_t kMostKernels = 1 << 24;

using Bodies = std::span<const std::shared_ptr<const ScanSchedule>>;

class ScheduleReader {
 public:
  // Takes from `bodies` those of its scans.
  ScheduleReader(uint32_t nodes, Bodies& bodies, const GpuPlanText& gpu) : nodes_(nodes), bodies_(bodies), gpu_(gpu) {}

  std::variant<ScheduleText, LineError> read(std::string_view text) {
    int number = 0;
    while (!text.empty()) {
      ++number;
      const size_t end = std::min(text.find('\n'), text.size());
      const std::string_view written = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      Cursor c(written);
      if (c.at_end()) continue;
      if (body_depth_ > 0) {
        body_line(written, c.peek_word());
        if (error_) return *error_;
        continue;
      }
      if (!heading(c, number)) {
        if (list().kernels.empty() || last().kernel) return LineError{number, fmt::format("'{}' is no line of a schedule", c.peek_word())};
        loops_ += std::string(written) + "\n";
        continue;
      }
      if (!c.at_end()) c.fail("something is left at the end of the line");
      if (error_) return *error_;
      if (c.failed()) return LineError{number, c.error()};
    }
    if (body_depth_ > 0) return LineError{body_line_, "the body of a scan has no end"};
    end_kernel();
    if (error_) return *error_;
    find_in_memory();
    return std::move(made_);
  }

 private:
  KernelList& list() { return made_.list; }
  GraphKernel& last() { return made_.list.kernels.back(); }

  // False for a line of a kernel's loops.
  bool heading(Cursor& c, int number) {
    const std::string word = c.peek_word();
    if (word == "body") return c.accept_word(word), begin_body(c, number), true;
    const auto known = kHeadings.find(word);
    if (known == kHeadings.end()) return false;
    c.accept_word(word);
    if (known->second.of_kernel && (list().kernels.empty() || !loops_.empty())) {
      c.fail(fmt::format("'{}' stands before a kernel's loops", word));
    } else {
      if (!known->second.of_kernel) end_kernel();
      first_line_ = number;
      (this->*known->second.read)(c);
    }
    return true;
  }

  struct Heading {
    void (ScheduleReader::*read)(Cursor& c);
    bool of_kernel = false;
  };
  static const std::map<std::string, Heading, std::less<>> kHeadings;

  void format(Cursor& c) {
    if (!list().kernels.empty()) return c.fail("the format's number stands first");
    if (c.integer(0, INT64_MAX) != kScheduleFormat && !c.failed()) c.fail(fmt::format("a schedule of format {} is read", kScheduleFormat));
  }

  // ---- a kernel

  void kernel(Cursor& c) {
    c.integer(static_cast<int64_t>(list().kernels.size()), static_cast<int64_t>(list().kernels.size()));
    list().kernels.emplace_back();
    last().when = c.word_of([](std::string_view word) { return named(word, LaunchWhen::checked); }, "time of a launch");
  }
  void members(Cursor& c) { last().group.members = values(c); }
  void stored(Cursor& c) { last().group.stored = values(c); }
  void siblings(Cursor&) { last().group.siblings = true; }
  void base(Cursor& c) { last().group.base = value(c); }
  void buffers(Cursor& c) { last().buffers = values(c); }
  void streams(Cursor& c) { last().streams = values(c); }
  void sites(Cursor& c) { last().sites = values(c); }
  void parts(Cursor& c) {
    c.expect("b");
    const auto buffer = static_cast<uint16_t>(c.integer(0, UINT16_MAX));
    c.expect("at");
    last().parts.push_back({buffer, c.integer(0, INT64_MAX)});
  }

  // ---- a scan
  // Its heading and states stand before the kernel's lines, its body behind them. Graphs are not part of a schedule's text: what numbers
  // within a body mean is told by the scans that the caller gives, whose order is that of the headings.

  void scan(Cursor& c) {
    if (bodies_.empty()) return c.fail("the graph of this scan's body is not given");
    const ScanSchedule& given = *bodies_.front();
    bodies_ = bodies_.subspan(1);
    const auto count_after = [&](std::string_view word, int64_t most) {
      c.expect(word);
      return c.integer(0, most);
    };
    const int64_t length = count_after("of", INT64_MAX);
    c.expect("iterations");
    const Direction direction = c.accept_word("reverse") ? Direction::reverse : Direction::forward;
    const int64_t pieces = count_after("pieces", INT64_MAX);
    const auto wholes = static_cast<int>(count_after("wholes", INT32_MAX)), slices = static_cast<int>(count_after("slices", INT32_MAX)),
               carries = static_cast<int>(count_after("carries", INT32_MAX));
    const int64_t workspace = count_after("workspace", INT64_MAX);
    scan_ = std::make_shared<ScanSchedule>(
        ScanSchedule{given.body, nullptr, given.bound, {}, {}, length, direction, pieces, wholes, slices, carries, {}, workspace});
    states_ = given.places.size();
  }

  void state(Cursor& c) {
    if (!scan_) return c.fail("a state outside a scan");
    ScanSchedule::Place place;
    if (c.accept("b")) {
      place.buffer = static_cast<int>(c.integer(0, UINT16_MAX));
    } else {
      c.expect("at");
      place.offset = c.integer(0, INT64_MAX);
    }
    scan_->places.push_back(place);
  }

  void begin_body(Cursor& c, int number) {
    if (!scan_ || loops_.empty()) return c.fail("a body stands behind the lines of a scan");
    body_depth_ = 1, body_line_ = number;
  }

  // Bodies within bodies are read by a reader of their own, so that here only the depth counts.
  void body_line(std::string_view written, std::string_view word) {
    body_depth_ += word == "body" ? 1 : word == "end" ? -1 : 0;
    if (body_depth_ > 0) return void(body_ += std::string(written) + "\n");
    auto read = ScheduleReader(static_cast<uint32_t>(scan_->bound.graph.size()), bodies_, gpu_).read(std::exchange(body_, {}));
    if (auto* wrong = std::get_if<LineError>(&read)) return void(error_ = LineError{body_line_ + wrong->line, std::move(wrong->message)});
    auto& made = std::get<ScheduleText>(read);
    scan_->list = std::move(made.list), scan_->plan = std::move(made.plan);
    has_body_ = true;
  }

  void end_scan(Kernel& kernel) {
    const auto beyond = [&](const ScanSchedule::Place& place) { return place.buffer >= static_cast<int>(kernel.buffers.size()); };
    if (!has_body_) error_ = LineError{first_line_, "a scan without a body"};
    if (scan_->places.size() != states_) error_ = LineError{first_line_, fmt::format("{} states of {}", scan_->places.size(), states_)};
    if (std::ranges::any_of(scan_->places, beyond)) error_ = LineError{first_line_, "a state in a buffer that the kernel has not"};
    kernel.scan = std::exchange(scan_, nullptr);
    has_body_ = false;
  }

  void end_kernel() {
    if (list().kernels.empty() || last().kernel || error_) return;
    auto read = read_kernel(loops_);
    if (auto* wrong = std::get_if<KernelReadError>(&read))
      return void(error_ = LineError{first_line_ + wrong->line, std::move(wrong->message)});
    Kernel& made = std::get<Kernel>(read);
    size_t in_memory = 0;
    for (const BufferUse& b : made.buffers) in_memory += b.access != BufferAccess::scratch;
    if (last().buffers.size() != in_memory)
      return void(error_ = LineError{first_line_, fmt::format("{} values for {} buffers", last().buffers.size(), in_memory)});
    for (const Parts& p : last().parts)
      if (p.buffer >= in_memory || last().buffers[p.buffer].valid())
        return void(error_ = LineError{first_line_, fmt::format("parts in b{}, which is no buffer of parts", p.buffer)});
    if (scan_) {  // not shared: equal lines of two scans say nothing of their bodies
      end_scan(made);
      last().kernel = std::make_shared<Kernel>(std::move(made));
    } else {
      std::shared_ptr<const Kernel>& kernel = kernels_[loops_];
      if (!kernel) kernel = std::make_shared<Kernel>(std::move(made));
      last().kernel = kernel;
    }
    loops_.clear();
  }

  // ---- how it runs

  // Plans of one text are one object, as they were before they were written.
  template <class Plan, class Read>
  void read_plan(Cursor& c, std::map<std::pair<const Kernel*, std::string>, std::shared_ptr<const Plan>>& known,
                 std::shared_ptr<const Plan> GraphKernel::*place, const Read& read) {
    if (error_) return;
    if (list().kernels.empty()) return c.fail("a plan of no kernel");
    if (last().kernel->scan || last().kernel->collective) return c.fail("a plan of what its own launches do");
    std::shared_ptr<const Plan>& plan = known[{last().kernel.get(), std::string(c.rest())}];
    if (!plan)
      plan = read(*last().kernel);
    else
      c.skip_rest();
    last().*place = plan;
  }
  void plan(Cursor& c) {
    read_plan(c, plans_, &GraphKernel::loops,
              [&](const Kernel& kernel) { return std::make_shared<const ProcessorPlan>(read_processor_plan(c, kernel)); });
  }
  void gpu_plan(Cursor& c) {
    if (!gpu_.read) return c.fail("plans of a GPU are not read here");
    read_plan(c, gpu_plans_, &GraphKernel::plan, [&](const Kernel& kernel) { return gpu_.read(c, kernel); });
  }

  void find_in_memory() {
    list().in_memory.assign(nodes_, false);
    for (const GraphKernel& k : list().kernels)
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.buffers[b].valid() && k.kernel->buffers[b].access != BufferAccess::read) list().in_memory[k.buffers[b].index] = true;
  }

  // ---- of the list

  NodeId value(Cursor& c) { return NodeId{c.node(nodes_)}; }
  std::vector<NodeId> values(Cursor& c) {
    std::vector<NodeId> values;
    while (!c.at_end()) values.push_back(c.accept("-") ? NodeId{} : value(c));
    return values;
  }
  uint32_t kernel_number(Cursor& c) { return static_cast<uint32_t>(c.integer(0, static_cast<int64_t>(list().kernels.size()) - 1)); }

  void continued(Cursor& c) {
    Continued made;
    made.whole = value(c);
    c.expect("from");
    made.base = value(c);
    list().continued.push_back(made);
  }
  void in_place(Cursor&) { list().in_place = true; }
  void numbers_apart(Cursor&) { list().numbers_apart = true; }

  LibraryMatrix matrix(Cursor& c, std::string_view which) {
    LibraryMatrix m;
    c.expect(which);
    m.buffer = c.node(nodes_);
    m.dtype = c.word_of(parse_dtype, "dtype");
    c.expect("from");
    m.offset = c.integer();
    c.expect("leading");
    m.leading = c.integer();
    c.expect("batch");
    m.batch_stride = c.integer();
    m.transposed = c.accept_word("transposed");
    return m;
  }
  LibraryVector numbers(Cursor& c) {
    const uint32_t buffer = c.node(nodes_);
    return {buffer, c.word_of(parse_dtype, "dtype")};
  }

  LibraryProduct product_of(Cursor& c) {
    LibraryProduct p;
    c.expect("of");
    p.batch = c.integer(1, INT64_MAX);
    for (int64_t* size : {&p.rows, &p.columns, &p.depth}) c.expect("x"), *size = c.integer(1, INT64_MAX);
    c.expect("sums");
    p.sums = c.word_of([](std::string_view word) { return named(word, ProductSums::f64); }, "format of sums");
    p.left = matrix(c, "left"), p.right = matrix(c, "right"), p.result = matrix(c, "result");
    LibraryEpilogue& e = p.epilogue;
    if (c.accept_word("scale")) p.scale = c.node(nodes_);
    if (c.accept_word("bias")) e.bias = numbers(c);
    if (c.accept_word("addend")) e.addend = c.node(nodes_);
    for (const auto activation : {LibraryActivation::gelu, LibraryActivation::gelu_slope})
      if (c.accept_word(name_of(activation))) e.activation = activation;
    if (c.accept_word("input")) e.input = c.node(nodes_);
    if (c.accept_word("left_sums")) e.left_sums = numbers(c);
    if (c.accept_word("right_sums")) e.right_sums = numbers(c);
    return p;
  }

  void product(Cursor& c) {
    list().library.products.resize(list().kernels.size());
    const uint32_t number = kernel_number(c);
    const LibraryProduct made = product_of(c);
    if (!c.failed()) list().library.products[number] = made;
  }
  void fused(Cursor& c) {
    FusedProduct made;
    while (!c.accept_word("at") && !c.failed()) made.parts.push_back(kernel_number(c));
    made.at = kernel_number(c);
    c.expect("plain");
    made.plain = kernel_number(c);
    made.product = product_of(c);
    list().library.fused.push_back(std::move(made));
  }
  void plugin(Cursor& c) {
    AttentionCall made;
    einc_attention_problem& p = made.problem;
    const bool backward = c.accept_word("backward");
    if (!backward) c.expect("forward");
    p.direction = backward ? EINC_ATTENTION_BACKWARD : EINC_ATTENTION_FORWARD;
    const bool f16 = c.accept_word("f16");
    if (!f16) c.expect("bf16");
    p.dtype = f16 ? EINC_ATTENTION_F16 : EINC_ATTENTION_BF16;
    p.mask = c.accept_word("causal") ? EINC_ATTENTION_CAUSAL : EINC_ATTENTION_NO_MASK;
    p.keeps_log_sum = c.accept_word("keeps_log_sum") ? 1 : 0;
    p.deterministic = c.accept_word("deterministic") ? 1 : 0;
    c.expect("scale");
    p.scale = c.hexadecimal();
    c.expect("of");
    p.batch = c.integer(1, INT64_MAX);
    c.expect("x");
    p.query_heads = c.integer(1, INT64_MAX);
    c.expect("per");
    p.key_heads = c.integer(1, INT64_MAX);
    for (int64_t* size : {&p.queries, &p.keys, &p.head_size, &p.value_size}) c.expect("x"), *size = c.integer(1, INT64_MAX);
    c.expect("workspace");
    made.workspace_bytes = c.integer(0, INT64_MAX);
    c.expect("instead of");
    do made.parts.push_back(kernel_number(c));
    while (!c.accept_word("with") && !c.failed());
    for (const auto& [name, operand, steps] : kAttentionOperands)
      if (c.accept_word(name)) read_operand(c, made.*operand, p.*steps);
    list().library.attention.push_back(std::move(made));
  }
  void read_operand(Cursor& c, AttentionCall::Operand& operand, einc_attention_steps& steps) {
    operand.value = value(c);
    c.expect("from");
    operand.offset = c.integer();
    c.expect("steps");
    for (int64_t* step : {&steps.batch, &steps.head, &steps.row}) *step = c.integer();
  }
  void held(Cursor& c) {
    HeldValue made;
    made.value = value(c);
    c.expect("until");
    made.until = kernel_number(c);
    if (c.accept_word("from")) made.from = kernel_number(c);
    list().library.held.push_back(made);
  }
  void together(Cursor& c) {
    std::vector<uint32_t>& runs_with = list().runs_with;
    for (auto k = static_cast<uint32_t>(runs_with.size()); k < list().kernels.size(); ++k) runs_with.push_back(k);
    const uint32_t leader = kernel_number(c);
    while (!c.at_end()) {
      const uint32_t other = kernel_number(c);
      if (!c.failed()) runs_with[other] = leader;
    }
  }

  // ---- of the plan

  void place(Cursor& c) {
    made_.plan.buffers.resize(nodes_);
    BufferPlan::Buffer made;
    const NodeId id = value(c);
    made.place = c.word_of([](std::string_view word) { return named(word, BufferPlace::bound); }, "place");
    if (made.place == BufferPlace::in_target) {
      made.target = value(c);
    } else {
      c.expect("at");
      made.offset = c.integer(0, INT64_MAX);
    }
    c.expect("of");
    made.bytes = c.integer(0, INT64_MAX);
    if (!c.failed()) made_.plan.buffers[id.index] = made;
  }
  void snapshot(Cursor& c) {
    BufferPlan::Snapshot made;
    made.source = value(c);
    c.expect("at");
    made.offset = c.integer(0, INT64_MAX);
    made_.plan.snapshots.push_back(made);
  }
  void memory(Cursor& c) {
    BufferPlan& plan = made_.plan;
    plan.buffers.resize(nodes_);
    c.expect("arena");
    plan.arena_bytes = c.integer(0, INT64_MAX);
    c.expect("parts at");
    plan.parts_offset = c.integer(0, INT64_MAX);
    c.expect("own");
    plan.own_bytes = c.integer(0, INT64_MAX);
    c.expect("of");
    plan.total_bytes = c.integer(0, INT64_MAX);
  }

  const uint32_t nodes_;
  Bodies& bodies_;
  const GpuPlanText& gpu_;
  ScheduleText made_;
  std::string loops_;  // of the last kernel
  int first_line_ = 0;
  std::shared_ptr<ScanSchedule> scan_;  // of the last kernel
  size_t states_ = 0;                   // that it has
  std::string body_;
  int body_depth_ = 0, body_line_ = 0;  // 0: outside bodies
  bool has_body_ = false;
  std::map<std::string, std::shared_ptr<const Kernel>> kernels_;                                 // by their text
  std::map<std::pair<const Kernel*, std::string>, std::shared_ptr<const ProcessorPlan>> plans_;  // by their text
  std::map<std::pair<const Kernel*, std::string>, std::shared_ptr<const GpuPlan>> gpu_plans_;
  std::optional<LineError> error_;
};

const std::map<std::string, ScheduleReader::Heading, std::less<>> ScheduleReader::kHeadings{
    {"schedule", {&ScheduleReader::format}},
    {"kernel", {&ScheduleReader::kernel}},
    {"members", {&ScheduleReader::members, true}},
    {"stored", {&ScheduleReader::stored, true}},
    {"siblings", {&ScheduleReader::siblings, true}},
    {"base", {&ScheduleReader::base, true}},
    {"buffers", {&ScheduleReader::buffers, true}},
    {"parts", {&ScheduleReader::parts, true}},
    {"streams", {&ScheduleReader::streams, true}},
    {"sites", {&ScheduleReader::sites, true}},
    {"scan", {&ScheduleReader::scan, true}},
    {"state", {&ScheduleReader::state, true}},
    {"plan", {&ScheduleReader::plan}},
    {"gpu_plan", {&ScheduleReader::gpu_plan}},
    {"continued", {&ScheduleReader::continued}},
    {"in_place", {&ScheduleReader::in_place}},
    {"product", {&ScheduleReader::product}},
    {"fused", {&ScheduleReader::fused}},
    {"plugin", {&ScheduleReader::plugin}},
    {"held", {&ScheduleReader::held}},
    {"together", {&ScheduleReader::together}},
    {"place", {&ScheduleReader::place}},
    {"snapshot", {&ScheduleReader::snapshot}},
    {"memory", {&ScheduleReader::memory}},
    {"numbers_apart", {&ScheduleReader::numbers_apart}},
};

}  // namespace

std::variant<ScheduleText, LineError> read_schedule(std::string_view text, uint32_t nodes, Bodies bodies, const GpuPlanText& gpu) {
  return ScheduleReader(nodes, bodies, gpu).read(text);
}

std::vector<std::shared_ptr<const ScanSchedule>> scans_of(const KernelList& list) {
  std::vector<std::shared_ptr<const ScanSchedule>> scans;
  for (const GraphKernel& k : list.kernels) {
    if (!k.kernel->scan) continue;
    scans.push_back(k.kernel->scan);
    std::ranges::move(scans_of(k.kernel->scan->list), std::back_inserter(scans));
  }
  return scans;
}

}  // namespace einc
