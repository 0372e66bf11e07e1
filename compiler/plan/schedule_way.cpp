// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/schedule_way.h"

#include <algorithm>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/plan/schedule_stages.h"

namespace einc {

namespace {

// What stages of single iterations hold at least is off by less than this: by 3 % for a GPT in kilobytes.
constexpr double kNear = 1.1;

// Whole params or gradients of a layer are there for a while.
bool moves_layers(const MeshWay& way) { return way.spread == Spread::gradients || way.spread == Spread::params; }

}  // namespace

SentKind& of_kind(std::vector<SentKind>& list, const SentKind& like) {
  const auto known = std::ranges::find_if(list, [&](const SentKind& s) { return s.kind == like.kind && s.axis == like.axis; });
  if (known != list.end()) return *known;
  list.push_back({like.kind, like.axis, like.link, Rational(0), 0});
  return list.back();
}

std::vector<SentKind> sent_kinds(const MeshReport& report) {
  std::vector<SentKind> kinds;
  for (const CommunicationRow& row : report.rows) {
    SentKind& kind = of_kind(kinds, {row.kind, row.axis.str(), row.link, Rational(0), 0});
    kind.bytes = kind.bytes + *row.bytes.value;
    kind.seconds += *row.time_s;
  }
  return kinds;
}

std::optional<WayScheduler::Part> WayScheduler::measure(Micro micro, size_t sample, const MeshWay& way, const PlanStep& plan) {
  const Graph& graph = programs_.graph(micro, sample, way);
  const Bindings given = programs_.dims(sample, way);
  const auto made = partition_for_mesh(graph, given);
  const auto* partitioned = std::get_if<Partitioned>(&made);
  if (!partitioned) return std::nullopt;
  Localized local = localize(*partitioned);
  const MeshReport report = mesh_report(graph, *partitioned, local, given, &device_);
  const ProcessBytes process = plans_.process ? plans_.process(graph, given) : ProcessBytes{};
  const MeshStep step = mesh_step(std::move(local), given, plan, process, &device_, report.collective_times);
  if (!step.line || !report.time_s || !report.bytes.value) return std::nullopt;
  const auto held = [](int64_t all, const std::array<int64_t, kPhases>& in_use) {
    Part::Held bytes{static_cast<double>(all)};
    std::ranges::copy(in_use, bytes.in_use.begin());
    return bytes;
  };
  return Part{step.line->compute_s,
              step.line->end_s - step.line->compute_s,
              static_cast<double>(step.process),
              held(step.values, step.alive),
              held(step.working, step.in_use),
              *report.bytes.value,
              report.flops.value.value_or(Rational(0)),
              sent_kinds(report)};
}

WayScheduler::Part::Held WayScheduler::whole_of(const std::vector<Part>& samples, const Longer& longer, Part::Held Part::*held) const {
  Part::Held whole;
  const Part& largest = longer.parts.back();
  for (size_t phase = 0; phase < kPhases; ++phase) {
    std::vector<double> values;
    for (const Part& sample : samples) values.push_back((sample.*held).in_use[phase]);
    const auto taken = [&](size_t i) { return FewIterations::Taken{longer.iterations[i], (longer.parts[i].*held).in_use[phase]}; };
    whole.in_use[phase] = longer.parts.size() == 2 ? programs_.few().whole(taken(0), taken(1)) : programs_.few().whole(values);
  }
  whole.all = whole.most_in_use() + (largest.*held).all - (largest.*held).most_in_use();
  return whole;
}

PartitionedProgram WayScheduler::partitioned(const MeshWay& way, size_t sample) {
  const Graph& graph = programs_.graph(Micro::whole, sample, way);
  Bindings given = programs_.dims(sample, way);
  auto made = partition_for_mesh(graph, given);
  return {graph, std::move(given), std::get<Partitioned>(std::move(made))};
}

// With keys gathered: what a ring has of each row and key is nowhere whole.
StepFormulas WayScheduler::formulas_of(MeshWay way) {
  for (WayAxis& axis : way.axes) axis.keys = false;
  const PartitionedProgram folding = partitioned(way, programs_.folding());
  Bindings dims = folding.graph.dims.bind(folding.given).values;
  for (const auto& [name, value] : programs_.whole_dims()) dims[name] = value;
  return {folding.graph, folding.partitioned, placed_, device_, dims, programs_.batch()};
}

std::optional<WayScheduler::Longer> WayScheduler::measure_longer(Micro micro, const MeshWay& way, const PlanStep& plan, bool far,
                                                                 const std::optional<Part>& of_three) {
  far = far && programs_.iterations() > 12;
  auto shorter = far ? measure(micro, programs_.of_stages(2), way, plan) : of_three ? of_three : measure(micro, 1, way, plan);
  auto longer = shorter ? measure(micro, far ? programs_.of_stages(3) : programs_.folding(), way, plan) : std::nullopt;
  if (!longer) return std::nullopt;
  return Longer{{std::move(*shorter), std::move(*longer)}, far ? std::vector<int64_t>{8, 12} : std::vector<int64_t>{3, 4}};
}

// Of all iterations, by what the samples take.
std::optional<WayScheduler::Part> WayScheduler::measure_whole(Micro micro, const MeshWay& way, const PlanStep& plan) {
  std::vector<Part> parts;
  std::vector<SentKind> kinds;
  for (size_t sample = 0; sample < programs_.count(); ++sample) {
    auto part = measure(micro, sample, way, plan);
    if (!part) return std::nullopt;
    for (const SentKind& kind : part->sent) of_kind(kinds, kind);
    parts.push_back(std::move(*part));
  }
  const FewIterations& few = programs_.few();
  const auto whole = [&](auto of) {
    std::vector<std::decay_t<decltype(of(parts[0]))>> values;
    for (Part& part : parts) values.push_back(of(part));
    return few.whole(std::span<const std::decay_t<decltype(of(parts[0]))>>(values));
  };
  // Memory of one loop left short grows evenly from its third iteration on: what is on its way of two layers' gradients is less than that
  // in the first sample. Where whole params are gathered or gradients spread, from the eighth (GPT-2 XL, 8 devices).
  std::optional<Longer> longer(Longer{{parts.back()}, {}});
  if (parts.size() == 2) longer = measure_longer(micro, way, plan, moves_layers(way), parts.back());
  if (!longer) return std::nullopt;
  Part all{whole([](Part& p) { return p.work; }),
           std::max(0.0, whole([](Part& p) { return p.exposed; })),  // less with each iteration, down to nothing
           whole([](Part& p) { return p.process; }),
           whole_of(parts, *longer, &Part::values),
           whole_of(parts, *longer, &Part::working),
           whole([](Part& p) { return p.bytes; }),
           whole([](Part& p) { return p.flops; }),
           {}};
  for (const SentKind& kind : kinds) {
    SentKind& made = of_kind(all.sent, kind);
    made.bytes = whole([&](Part& p) { return of_kind(p.sent, kind).bytes; });
    made.seconds = whole([&](Part& p) { return of_kind(p.sent, kind).seconds; });
  }
  return all;
}

// Of a backward that makes values again: memory and work, by two programs alone.
std::optional<WayScheduler::Part> WayScheduler::measure_least(Micro micro, const MeshWay& way) {
  if (programs_.count() != 2) return measure_whole(micro, way, plans_.least);
  const auto both = measure_longer(micro, way, plans_.least, true, std::nullopt);
  if (!both) return std::nullopt;
  const auto whole = [&](double Part::*of) {
    return programs_.few().whole({both->iterations[0], both->parts[0].*of}, {both->iterations[1], both->parts[1].*of});
  };
  return Part{whole(&Part::work),
              std::max(0.0, whole(&Part::exposed)),
              whole(&Part::process),
              whole_of({}, *both, &Part::values),
              whole_of({}, *both, &Part::working),
              {},
              {},
              {}};
}

std::optional<WayScheduler::Step> WayScheduler::measure_step(const MeshWay& way, Backward backward) {
  Step step;
  const auto add = [&](Micro micro, int64_t times) {
    const auto part = backward == Backward::as_is ? measure_whole(micro, way, plans_.as_is) : measure_least(micro, way);
    if (!part) return false;
    step.held = std::max(step.held, part->held()), step.process = std::max(step.process, part->process);
    step.work += static_cast<double>(times) * part->work;
    step.exposed += static_cast<double>(times) * part->exposed;
    step.bytes = step.bytes + Rational(times) * part->bytes;
    step.flops = step.flops + Rational(times) * part->flops;
    for (const SentKind& kind : part->sent) {
      SentKind& sum = of_kind(step.sent, kind);
      sum.bytes = sum.bytes + Rational(times) * kind.bytes;
      sum.seconds += static_cast<double>(times) * kind.seconds;
    }
    return true;
  };
  const bool known = way.micro_batches == 1 ? add(Micro::whole, 1) : add(Micro::gather, way.micro_batches - 1) && add(Micro::last, 1);
  return known ? std::optional(std::move(step)) : std::nullopt;
}

// Reports take up to 0.8 % more than few iterations tell (GPT-2 XL in two stages), so that a way is told to fit where twice that is left.
double WayScheduler::margin() const { return programs_.few().counts().empty() ? 1 : 1.02; }

std::optional<ScheduledWay> WayScheduler::schedule_pipeline(const MeshWay& way, int64_t each) {
  const StepFormulas formulas = formulas_of(way);
  const PartitionedProgram program = partitioned(way, programs_.of_stages(each));
  const double further = programs_.stored_bytes() - programs_.stored_bytes(programs_.of_stages(each));
  return schedule_stages({program, formulas, plans_, device_, each, further, margin()}, way, programs_.batch_size(),
                         programs_.iterations());
}

std::optional<ScheduledWay> WayScheduler::schedule(const MeshWay& way) {
  if (!way.stages) return schedule_whole(way);
  // The sample has no more iterations than the program, whose names it is split by. What is on its way of whole layers, what hides it, and
  // what is made again grow evenly from a stage's fourth iteration on.
  const int64_t iterations = std::min(programs_.iterations() / way.stages->count, programs_.iterations() / 4);
  const int64_t most = std::clamp<int64_t>(iterations, 1, SamplePrograms::kMostOfStage);
  if (most == 1 || moves_layers(way)) return schedule_pipeline(way, most);
  auto scheduled = schedule_pipeline(way, 1);
  const auto near = [&] { return scheduled->fits ? scheduled->way.recomputes : scheduled->held.total() < kNear * device_.usable_bytes(); };
  return scheduled && near() ? schedule_pipeline(way, most) : std::move(scheduled);
}

std::optional<ScheduledWay> WayScheduler::schedule_whole(const MeshWay& way) {
  std::optional<Step> as_is = measure_step(way, Backward::as_is);
  if (!as_is) return std::nullopt;
  const WaySizes sizes = sizes_of(way, programs_.batch_size(), programs_.iterations()).front();
  const HeldRange formula = formulas_of(way).held(sizes);
  const auto planned = [](HeldBytes held, const Step& step) {
    held = held.planned(step.held), held.process = step.process;
    return held;
  };
  HeldRange held{planned(formula.as_is, *as_is), planned(formula.as_is, *as_is)};
  Step most = *as_is;  // made again
  if (held.as_is.total() * margin() > device_.usable_bytes())
    if (const auto least = measure_step(way, Backward::makes_again)) held.least = planned(formula.least, *least), most = *least;
  ScheduledWay scheduled{way, held.least, {}, 0, {}, Rational(0), Rational(0)};
  const auto step = fitted(held, device_.usable_bytes(), margin());
  scheduled.fits = step.has_value();
  if (!step) return scheduled;
  scheduled.held = step->held;
  scheduled.again = step->share * std::max(0.0, most.work - as_is->work);
  scheduled.way.recomputes = step->share > 0;
  scheduled.seconds = {as_is->work + scheduled.again, 0, std::max(0.0, as_is->exposed + step->share * (most.exposed - as_is->exposed))};
  scheduled.bytes = as_is->bytes, scheduled.flops = as_is->flops;
  scheduled.sent = std::move(as_is->sent);
  for (const SentKind& kind : scheduled.sent) scheduled.seconds.sent += kind.seconds;
  std::ranges::stable_sort(scheduled.sent, std::ranges::greater{}, &SentKind::seconds);
  return scheduled;
}

}  // namespace einc
