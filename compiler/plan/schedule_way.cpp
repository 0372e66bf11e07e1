// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/schedule_way.h"

#include <algorithm>

#include "compiler/context/partition_for_mesh.h"
#include "compiler/plan/schedule_stages.h"
#include "compiler/report/mesh_step.h"

namespace einc {

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

std::optional<WayScheduler::Part> WayScheduler::measure(Micro micro, size_t sample, const MeshWay& way) {
  const Graph& graph = programs_.graph(micro, sample, way);
  const Bindings given = programs_.dims(sample, way);
  const auto made = partition_for_mesh(graph, given);
  const auto* partitioned = std::get_if<Partitioned>(&made);
  if (!partitioned) return std::nullopt;
  Localized local = localize(*partitioned);
  const MeshReport report = mesh_report(graph, *partitioned, local, given, &device_);
  const MeshStep step = mesh_step(std::move(local), given, plan_, {}, &device_, report.collective_s);
  if (!step.line || !report.time_s || !report.bytes.value) return std::nullopt;
  const auto held = [](int64_t all, const std::array<int64_t, kPhases>& in_use) {
    Part::Held bytes{static_cast<double>(all)};
    std::ranges::copy(in_use, bytes.in_use.begin());
    return bytes;
  };
  return Part{step.line->compute_s,
              step.line->end_s - step.line->compute_s,
              held(step.values, step.alive),
              held(step.working, step.in_use),
              *report.bytes.value,
              report.flops.value.value_or(Rational(0)),
              sent_kinds(report)};
}

WayScheduler::Part::Held WayScheduler::whole_of(const std::vector<Part>& samples, const Part& largest, Part::Held Part::*held) const {
  Part::Held whole;
  for (size_t phase = 0; phase < kPhases; ++phase) {
    std::vector<double> values;
    for (const Part& sample : samples) values.push_back((sample.*held).in_use[phase]);
    // What is on its way of two layers' gradients is less than that in the first sample.
    whole.in_use[phase] = samples.size() == 2 ? programs_.few().whole_of_last(values[1], (largest.*held).in_use[phase])
                                              : programs_.few().whole(std::span<const double>(values));
  }
  whole.all = whole.most_in_use() + (largest.*held).all - (largest.*held).most_in_use();
  return whole;
}

PartitionedProgram WayScheduler::folding(const MeshWay& way) {
  const Graph& graph = programs_.graph(Micro::whole, programs_.count(), way);
  Bindings given = programs_.dims(programs_.count(), way);
  auto made = partition_for_mesh(graph, given);
  return {graph, std::move(given), std::get<Partitioned>(std::move(made))};
}

StepFormulas WayScheduler::formulas_of(const PartitionedProgram& folding) {
  Bindings dims = folding.graph.dims.bind(folding.given).values;
  for (const auto& [name, value] : programs_.whole_dims()) dims[name] = value;
  return {folding.graph, folding.partitioned, placed_, device_, dims, programs_.batch()};
}

HeldBytes WayScheduler::held_by(const MeshWay& way) {
  return StepEstimate(formulas_of(folding(way)), way, programs_.batch_size(), programs_.iterations(), device_).held().least;
}

// Of all iterations, by what the samples take.
std::optional<WayScheduler::Part> WayScheduler::measure_whole(Micro micro, const MeshWay& way) {
  std::vector<Part> parts;
  std::vector<SentKind> kinds;
  for (size_t sample = 0; sample < programs_.count(); ++sample) {
    auto part = measure(micro, sample, way);
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
  const auto folding = programs_.count() == 2 ? measure(micro, programs_.count(), way) : parts.back();
  if (!folding) return std::nullopt;
  Part all{whole([](Part& p) { return p.work; }),
           std::max(0.0, whole([](Part& p) { return p.exposed; })),  // less with each iteration, down to nothing
           whole_of(parts, *folding, &Part::values),
           whole_of(parts, *folding, &Part::working),
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

std::optional<ScheduledWay> WayScheduler::schedule(const MeshWay& way) {
  if (way.stages) {
    const PartitionedProgram program = folding(way);
    return schedule_stages({program, formulas_of(program), plan_, device_}, way, programs_.batch_size(), programs_.iterations());
  }
  ScheduledWay scheduled{way, {}, {}, 0, {}, Rational(0), Rational(0)};
  double planned = 0;  // bytes
  const auto add = [&](Micro micro, int64_t times) {
    const auto part = measure_whole(micro, way);
    if (!part) return false;
    planned = std::max(planned, part->held());
    scheduled.seconds.work += static_cast<double>(times) * part->work;
    scheduled.seconds.exposed += static_cast<double>(times) * part->exposed;
    scheduled.bytes = scheduled.bytes + Rational(times) * part->bytes;
    scheduled.flops = scheduled.flops + Rational(times) * part->flops;
    for (const SentKind& kind : part->sent) {
      SentKind& sum = of_kind(scheduled.sent, kind);
      sum.bytes = sum.bytes + Rational(times) * kind.bytes;
      sum.seconds += static_cast<double>(times) * kind.seconds;
      scheduled.seconds.sent += static_cast<double>(times) * kind.seconds;
    }
    return true;
  };
  if (way.micro_batches == 1 ? !add(Micro::whole, 1) : !(add(Micro::gather, way.micro_batches - 1) && add(Micro::last, 1)))
    return std::nullopt;
  const StepFormulas formulas = formulas_of(folding(way));
  const WaySizes sizes = sizes_of(way, programs_.batch_size(), programs_.iterations()).front();
  const auto fitted = formulas.fitted(formulas.held(sizes).planned(planned), sizes, device_.usable_bytes());
  if (!fitted) {
    scheduled.fits = false;
    return scheduled;
  }
  scheduled.held = fitted->held;
  scheduled.again = fitted->again;
  scheduled.seconds.work += fitted->again;
  scheduled.way.recomputes = fitted->again > 0;
  std::ranges::stable_sort(scheduled.sent, std::ranges::greater{}, &SentKind::seconds);
  return scheduled;
}

}  // namespace einc
