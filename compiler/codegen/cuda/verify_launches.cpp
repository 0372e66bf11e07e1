// SPDX-License-Identifier: Apache-2.0
// The order of the kernel list defines the versions of each buffer: a launch's read expects the version that the writes before it have
// left. Every way to run the launches is then carried out on the owners of memory, where an owner is a version of a buffer. Alternatives
// are tried one at a time and all at once; that any mixture of them is right follows as far as no two touch the same buffers.
#include "compiler/codegen/cuda/verify_launches.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/lower/memory_owners.h"

namespace einc {
namespace {

using Version = uint32_t;

// What runs at once: the versions that it reads and those that it leaves, by buffer.
struct Action {
  uint32_t launch = 0;  // for messages
  std::map<uint32_t, Version> reads, writes;
};

// Instead of `parts`, at the place of one of them.
struct Alternative {
  std::vector<uint32_t> parts;
  uint32_t at = 0;
  Action action;
  std::vector<uint32_t> in_place;  // buffers that it reads at the element that it writes
};

class LaunchVerifier {
 public:
  LaunchVerifier(const CudaExecutable& executable, const KernelList& list)
      : executable_(executable), program_(executable.program), list_(list) {
    count_versions();
    for (const CudaFusedProduct& fused : executable.fused) alternatives_.push_back(alternative(fused));
    for (const CudaAttention& attention : executable.attention) alternatives_.push_back(alternative(attention));
  }

  std::string run() {
    const size_t all = alternatives_.size();
    std::vector<bool> taken(all, false);
    carry_out(taken);
    for (size_t i = 0; i < all && problem_.empty(); ++i) {
      taken[i] = true;
      carry_out(taken);
      taken[i] = false;
    }
    if (all > 1 && problem_.empty()) carry_out(std::vector<bool>(all, true));
    return problem_;
  }

 private:
  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  // --- versions ---

  void count_versions() {
    versions_.assign(program_.buffers.size(), 0);
    for (uint32_t l = 0; l < program_.launches.size(); ++l) {
      Action& action = actions_.emplace_back();
      action.launch = l;
      before_.push_back(versions_);
      const Launch& launch = program_.launches[l];
      const GraphKernel& k = list_.kernels[l];
      const std::vector<BufferUse>& uses = k.kernel->buffers;
      for (size_t b = 0; b < uses.size() && b < launch.buffers.size(); ++b)
        if (uses[b].access == BufferAccess::read) action.reads[launch.buffers[b]] = before_[l][launch.buffers[b]];
      for (size_t b = 0; b < uses.size() && b < launch.buffers.size(); ++b)
        if (uses[b].access != BufferAccess::read)
          write(action, launch.buffers[b], std::ranges::any_of(k.parts, [&](const Parts& parts) { return parts.buffer == b; }));
      // Memory that a kernel uses while it runs.
      for (size_t b = uses.size(); b < launch.buffers.size(); ++b) action.writes[launch.buffers[b]] = 0;
    }
  }

  // The first version of a value replaces what lies there, as parts of a sum always do; later ones go on with it. A source has its first
  // from outside.
  void write(Action& action, uint32_t buffer, bool parts) {
    if (action.writes.contains(buffer)) return;
    if (!parts && (is_source(program_.buffers[buffer].role) || versions_[buffer] > 0)) action.reads.try_emplace(buffer, versions_[buffer]);
    action.writes[buffer] = ++versions_[buffer];
  }

  // --- alternatives ---

  // What a read of the alternative expects: what the part that reads the buffer does, else what is there before all parts.
  Version expected(const Alternative& alternative, uint32_t buffer) const {
    for (const uint32_t l : alternative.parts)
      if (const auto read = actions_[l].reads.find(buffer); read != actions_[l].reads.end()) return read->second;
    return before_[alternative.at][buffer];
  }
  void reads(Alternative& a, uint32_t buffer) const { a.action.reads[buffer] = expected(a, buffer); }
  // It leaves the version that the last part which writes the buffer leaves.
  void writes(Alternative& a, uint32_t buffer) {
    std::optional<Version> version;
    for (const uint32_t l : a.parts)
      if (const auto write = actions_[l].writes.find(buffer); write != actions_[l].writes.end()) version = write->second;
    if (!version) return fail(fmt::format("an alternative to launch {} writes a buffer that no part of it writes", a.at));
    a.action.writes[buffer] = *version;
  }

  Alternative alternative(const CudaFusedProduct& fused) {
    Alternative a{fused.parts, fused.at, {}, {}};
    a.action.launch = fused.at;
    const LibraryProduct& gemm = fused.gemm;
    const LibraryEpilogue& epilogue = gemm.epilogue;
    reads(a, gemm.left.buffer), reads(a, gemm.right.buffer);
    if (gemm.scale) reads(a, *gemm.scale);
    if (fused.cast)
      reads(a, fused.cast->from);
    else if (epilogue.bias)
      reads(a, epilogue.bias->buffer);
    if (epilogue.addend) {
      if (*epilogue.addend != gemm.result.buffer) reads(a, *epilogue.addend);
      a.in_place.push_back(*epilogue.addend);
    }
    if (epilogue.input) epilogue.activation == LibraryActivation::gelu ? writes(a, *epilogue.input) : reads(a, *epilogue.input);
    for (const auto& sums : {epilogue.left_sums, epilogue.right_sums})
      if (sums) writes(a, sums->buffer);
    writes(a, gemm.result.buffer);
    return a;
  }

  Alternative alternative(const CudaAttention& attention) {
    Alternative a{attention.parts, attention.at(), {}, {}};
    a.action.launch = attention.at();
    for (const auto* operand : {&attention.q, &attention.k, &attention.v}) reads(a, operand->buffer);
    if (attention.problem.direction == EINC_ATTENTION_FORWARD) {
      writes(a, attention.o.buffer);
      if (attention.problem.keeps_log_sum) writes(a, attention.log_sum.buffer);
      return a;
    }
    reads(a, attention.o.buffer), reads(a, attention.d_o.buffer);
    reads(a, attention.log_sum.buffer);
    for (const auto* operand : {&attention.d_q, &attention.d_k, &attention.d_v}) writes(a, operand->buffer);
    return a;
  }

  // --- one way to run ---

  void carry_out(const std::vector<bool>& taken) {
    memory_ = {};
    for (uint32_t b = 0; b < program_.buffers.size(); ++b)
      if (is_source(program_.buffers[b].role)) take(b, 0);
    for (const BufferCopy& copy : program_.snapshots) take(copy.target, 0);
    std::map<uint32_t, const Alternative*> at;
    std::set<uint32_t> done;
    for (size_t i = 0; i < taken.size(); ++i) {
      if (!taken[i]) continue;
      at[alternatives_[i].at] = &alternatives_[i];
      done.insert(alternatives_[i].parts.begin(), alternatives_[i].parts.end());
    }
    bool looked = false;
    for (uint32_t l = 0; l < program_.launches.size() && problem_.empty(); ++l) {
      if (!looked && changes_param(l)) find_checked(fmt::format("the look before launch {}", l)), looked = true;
      if (const auto instead = at.find(l); instead != at.end())
        together({&instead->second->action}, instead->second->in_place);
      else if (!done.contains(l) && !executable_.calls[l].done_before)
        together(joined(l), {});
    }
    finish();
  }

  std::vector<const Action*> joined(uint32_t launch) const {
    std::vector<const Action*> actions{&actions_[launch]};
    for (const uint32_t other : executable_.calls[launch].together) actions.push_back(&actions_[other]);
    return actions;
  }

  struct Range {
    int64_t from, to;
    bool meets(const Range& other) const { return from < other.to && other.from < to; }
  };
  Range range(uint32_t b) const { return {program_.buffers[b].offset, program_.buffers[b].offset + program_.buffers[b].bytes}; }
  static MemoryOwners::Owner owner(uint32_t buffer, Version version) { return uint64_t{version} << 32 | buffer; }
  void take(uint32_t b, Version version) { memory_.take(range(b).from, range(b).to, owner(b, version)); }
  void find(uint32_t b, Version version, const std::string& reader) {
    if (memory_.stranger(range(b).from, range(b).to, owner(b, version)))
      fail(fmt::format("{} does not find version {} of buffer {} ('{}')", reader, version, b, program_.buffers[b].name));
  }

  void together(const std::vector<const Action*>& actions, const std::vector<uint32_t>& in_place) {
    for (const Action* action : actions)
      for (const auto& [b, version] : action->reads) find(b, version, fmt::format("launch {}", action->launch));
    for (const Action* writer : actions)
      for (const auto& [w, version] : writer->writes) {
        for (const Action* other : actions)
          if (other != writer || actions.size() == 1) keep_apart(*writer, w, *other, in_place);
        take(w, version);
      }
  }

  // What runs at once must not touch what one of it writes. Inside a generated kernel verify_overlap has decided.
  void keep_apart(const Action& writer, uint32_t written, const Action& other, const std::vector<uint32_t>& in_place) {
    const bool itself = &writer == &other;
    if (itself && &writer == &actions_[writer.launch]) return;
    const auto apart = [&](uint32_t b) {
      if (!range(b).meets(range(written)) || (itself && b == written)) return;
      if (itself && std::ranges::find(in_place, b) != in_place.end() && range(b).from == range(written).from) return;
      fail(fmt::format("launch {} writes buffer {} where launch {} has buffer {} at the same time", writer.launch, written, other.launch,
                       b));
    };
    for (const auto& [b, version] : other.reads) apart(b);
    for (const auto& [b, version] : other.writes) apart(b);
  }

  // A cache may change before what is looked at later in the run; params change after all looks.
  bool changes_param(uint32_t launch) const {
    return program_.launches[launch].when == LaunchWhen::checked &&
           std::ranges::any_of(actions_[launch].writes, [&](const auto& w) { return program_.buffers[w.first].role == BufferRole::param; });
  }

  // What decides whether a run goes on.
  void find_checked(const std::string& reader) {
    for (const FiniteCheck& check : program_.checks) find(check.buffer, versions_[check.buffer], reader);
    for (const BoundOp& op : program_.bounds)
      if (op.fn == BoundFn::number || op.fn == BoundFn::magnitude)
        if (!is_source(program_.buffers[op.buffer].role)) find(op.buffer, versions_[op.buffer], reader);
    for (const BoundedUpdate& update : program_.bounded)
      for (const uint32_t b : {update.least, update.most}) find(b, versions_[b], reader);
  }

  void finish() {
    const auto last = [&](uint32_t b) { find(b, versions_[b], "the end of the run"); };
    for (const ExecutableOutput& output : program_.outputs) last(output.buffer);
    for (const ExecutableOutput& gradient : program_.gradients) last(gradient.buffer);
    if (program_.loss >= 0) last(static_cast<uint32_t>(program_.loss));
    find_checked("the end of the run");
    for (const BufferCopy& copy : program_.copies) last(copy.value);
    for (uint32_t b = 0; b < program_.buffers.size(); ++b)
      if (is_source(program_.buffers[b].role)) last(b);
  }

  const CudaExecutable& executable_;
  const Executable& program_;
  const KernelList& list_;
  std::vector<Version> versions_;             // of each buffer, after the last launch
  std::vector<std::vector<Version>> before_;  // each launch
  std::vector<Action> actions_;               // of each launch
  std::vector<Alternative> alternatives_;
  MemoryOwners memory_;
  std::string problem_;
};

}  // namespace

std::string verify_launches(const CudaExecutable& executable, const KernelList& list) { return LaunchVerifier(executable, list).run(); }

}  // namespace einc
