// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/search_ways.h"

#include "compiler/context/partition_for_mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <future>
#include <iterator>
#include <numeric>
#include <set>
#include <thread>

namespace einc {
namespace {

constexpr int64_t kMostMicroBatches = 4096;
constexpr unsigned kMostThreads = 8;

// Orders of the axes from the outermost in; two that split the same keep theirs, for they are alike but for what is spread.
std::vector<std::vector<int>> orders_of(const MeshWay& way) {
  std::vector<int> order(way.axes.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> orders;
  do {
    bool kept = true;
    for (size_t a = 0; a < order.size(); ++a)
      for (size_t b = a + 1; b < order.size(); ++b)
        if (order[a] > order[b] && way.axes[static_cast<size_t>(order[a])].split == way.axes[static_cast<size_t>(order[b])].split)
          kept = false;
    if (kept) orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

// What is split and spread, whatever the sizes: a partition at the first sizes met stands for all, so that a search need not make one for
// each. Of one micro-batch `states` and `gradients` are the same: gradients live within a step.
std::string kind_of(const MeshWay& way) {
  std::string key;
  for (const WayAxis& axis : way.axes) {
    key += axis.spreads ? "|+" : "|";
    for (const Name name : axis.split) key += name.str() + ",";
  }
  return key + std::string(to_string(way.spread == Spread::states ? Spread::gradients : way.spread));
}

MeshWay in_order(const MeshWay& way, const std::vector<int>& order) {
  MeshWay made = way;
  for (size_t k = 0; k < order.size(); ++k) made.axes[k] = way.axes[static_cast<size_t>(order[k])];
  return made;
}

// Products of sizes of two and more; nothing where there is no such.
void factorise(int64_t devices, size_t axes, std::vector<int64_t>& sizes, const std::function<void(const std::vector<int64_t>&)>& visit) {
  if (axes == 0) {
    if (devices == 1) visit(sizes);
    return;
  }
  if (axes == 1) {
    if (devices == 1) return;
    sizes.push_back(devices);
    visit(sizes);
    sizes.pop_back();
    return;
  }
  for (int64_t size = 2; size <= devices / 2; ++size) {
    if (devices % size != 0) continue;
    sizes.push_back(size);
    factorise(devices / size, axes - 1, sizes, visit);
    sizes.pop_back();
  }
}

}  // namespace

unsigned way_threads() { return std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads); }

bool ranks_before(const StepSeconds& a, const HeldBytes& held_a, const MeshWay& way_a, const StepSeconds& b, const HeldBytes& held_b,
                  const MeshWay& way_b) {
  if (a.total() != b.total()) return a.total() < b.total();
  if (held_a.total() != held_b.total()) return held_a.total() < held_b.total();
  return way_a.mesh() + way_a.shard() < way_b.mesh() + way_b.shard();
}

WaySearch::WaySearch(SamplePrograms& programs, const PlacedWays& placed, const Device& device, std::vector<Spread> spreads)
    : programs_(programs),
      names_(programs.names()),
      placed_(placed),
      device_(device),
      budget_(device.usable_bytes() - (device.target == DeviceTarget::cpu ? programs.stored_bytes() : 0)),
      spreads_(std::move(spreads)) {
  for (const SplitName& name : names_) {
    int64_t parts = 0;
    for (const SplitPlace& place : name.places) parts = std::gcd(parts, place.size.evaluate_integer(programs_.whole_dims()).value_or(1));
    parts_.push_back(parts);
  }
  for (int64_t n = 1; n <= programs_.batch_size() && n <= kMostMicroBatches; ++n)
    if (programs_.batch_size() % n == 0) micro_batches_.push_back(n);
  find_roles();
}

// Inputs' names each by itself, the batch's first; sets of params' names.
void WaySearch::find_roles() {
  std::set<std::string> taken;
  for (const auto& [name, value] : programs_.whole_dims()) taken.insert(name.str());
  const auto fresh = [&](std::string name) {
    std::string made = name;
    for (int n = 2; !taken.insert(made).second; ++n) made = fmt::format("{}{}", name, n);
    return made;
  };
  for (const bool batch : {true, false})
    for (size_t i = 0; i < names_.size(); ++i)
      if (names_[i].of_data && (names_[i].name == programs_.batch()) == batch)
        roles_.push_back({{i}, true, fresh(batch ? "data" : "context")});
  const std::vector<std::vector<size_t>> sets = sets_of_params(names_);
  for (const std::vector<size_t>& set : sets) roles_.push_back({set, false, ""});
  const std::string model = fresh("model");
  for (Role& role : roles_)
    if (role.axis.empty()) role.axis = model;
  stage_axis_ = fresh("stage");
}

// Up to three axes that split different names; the data may be split by two, of which the inner alone is spread along. None: stages alone.
std::vector<WaySearch::Kind> WaySearch::kinds() const {
  std::vector<Kind> kinds{Kind{}};
  const auto apart = [&](size_t a, size_t b) {
    return std::ranges::none_of(roles_[a].names,
                                [&](size_t name) { return std::ranges::find(roles_[b].names, name) != roles_[b].names.end(); });
  };
  const bool twice = !roles_.empty() && roles_[0].of_data;
  for (size_t a = 0; a < roles_.size(); ++a) {
    kinds.push_back({a});
    for (size_t b = a + 1; b < roles_.size(); ++b) {
      if (!apart(a, b)) continue;
      kinds.push_back({a, b});
      for (size_t c = b + 1; c < roles_.size(); ++c)
        if (apart(a, c) && apart(b, c) && (roles_[a].of_data || roles_[b].of_data)) kinds.push_back({a, b, c});
    }
  }
  if (!twice) return kinds;
  kinds.push_back({0, 0});
  for (size_t c = 1; c < roles_.size(); ++c)
    if (apart(0, c)) kinds.push_back({0, 0, c});
  return kinds;
}

// Without the names that do not divide; nothing where an axis is left with none.
std::optional<MeshWay> WaySearch::way_of(const Kind& kind, const std::vector<int64_t>& sizes) const {
  MeshWay way;
  std::set<std::string> taken;
  for (size_t k = 0; k < kind.size(); ++k) {
    const Role& role = roles_[kind[k]];
    const bool outer = k + 1 < kind.size() && kind[k + 1] == kind[k];
    const bool inner = k > 0 && kind[k - 1] == kind[k];
    const int64_t parts = outer ? sizes[k] * sizes[k + 1] : inner ? sizes[k] * sizes[k - 1] : sizes[k];
    WayAxis axis{outer ? "pod" : role.axis, sizes[k], {}, role.of_data && !outer};
    for (const size_t i : role.names)
      if (parts_[i] % parts == 0) axis.split.push_back(names_[i].name);
    if (axis.split.empty()) return std::nullopt;
    for (int n = 2; taken.contains(axis.name) || programs_.whole_dims().contains(Name(axis.name)); ++n)
      axis.name = fmt::format("{}{}", outer ? "pod" : role.axis, n);
    taken.insert(axis.name);
    way.axes.push_back(std::move(axis));
  }
  return way;
}

std::vector<Spread> WaySearch::spreads_of(const MeshWay& way) const {
  const bool along = std::ranges::any_of(way.axes, &WayAxis::spreads);
  const bool apart = std::ranges::any_of(way.axes, [&](const WayAxis& axis) {  // an axis of the data that nothing is spread along
    return !axis.spreads && std::ranges::any_of(way.axes, [&](const WayAxis& other) { return other.spreads && other.split == axis.split; });
  });
  if (!along) return {Spread::nothing};
  std::vector<Spread> spreads = spreads_;
  if (apart) std::erase(spreads, Spread::nothing);
  return spreads;
}

// None, and all numbers of stages that divide the devices.
std::vector<std::optional<WayStages>> WaySearch::stages_of(int64_t devices) const {
  std::vector<std::optional<WayStages>> all{std::nullopt};
  for (int64_t count = 2; count <= std::min(devices, programs_.iterations()); ++count)
    if (devices % count == 0) all.push_back(WayStages{stage_axis_, count, programs_.loop()});
  return all;
}

// Divisors of the batch that leave each device a whole number of examples.
std::vector<int64_t> WaySearch::micro_batches_of(const MeshWay& way) const {
  const int64_t batch = programs_.batch_size();
  int64_t parts = 1;
  for (const WayAxis& axis : way.axes)
    if (std::ranges::find(axis.split, programs_.batch()) != axis.split.end()) parts *= axis.size;
  std::vector<int64_t> counts;
  if (batch % parts != 0) return counts;
  // Sums of gradients would be whole: `gradients` is as fast with less memory.
  if (way.spread == Spread::states && !way.stages) return {1};
  for (const int64_t n : micro_batches_)
    if ((batch / parts) % n == 0) counts.push_back(n);
  // Stages wait for more than half of a step where microbatches are fewer than they.
  if (way.stages) counts.erase(counts.begin(), std::min(std::ranges::lower_bound(counts, way.stages->count), counts.end() - 1));
  return counts;
}

std::unique_ptr<StepFormulas> WaySearch::made_for(Graph& graph, MeshWay way) const {
  way.stages.reset();
  set_mesh(graph, way, names_);
  const Bindings given = programs_.dims(programs_.count(), way);
  const auto made = partition_for_mesh(graph, given);
  const auto* partitioned = std::get_if<Partitioned>(&made);
  if (!partitioned) return nullptr;
  Bindings dims = graph.dims.bind(given).values;
  for (const auto& [name, value] : programs_.whole_dims()) dims[name] = value;
  return std::make_unique<StepFormulas>(graph, *partitioned, placed_, device_, dims, programs_.batch());
}

// Kinds of ways are independent of each other: as many at once as there are processors.
void WaySearch::make_formulas(const std::vector<MeshWay>& meshes) {
  std::vector<std::pair<MeshWay, std::unique_ptr<StepFormulas>*>> wanted;
  for (const MeshWay& mesh : meshes)
    for (const Spread spread : spreads_of(mesh)) {
      MeshWay way = mesh;
      way.spread = spread;
      if (const auto [at, is_new] = formulas_.try_emplace(kind_of(way)); is_new) wanted.emplace_back(way, &at->second);
    }
  const Graph& sample = programs_.graph(Micro::whole, programs_.count(), MeshWay{});
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    Graph graph = sample;
    for (size_t i = next++; i < wanted.size(); i = next++) *wanted[i].second = made_for(graph, wanted[i].first);
  };
  std::vector<std::future<void>> others;
  for (unsigned t = 1; t < way_threads(); ++t) others.push_back(std::async(std::launch::async, work));
  work();
  for (std::future<void>& other : others) other.get();
}

const StepFormulas* WaySearch::formulas_of(const MeshWay& way) {
  const auto [at, is_new] = formulas_.try_emplace(kind_of(way));
  if (is_new) {
    Graph graph = programs_.graph(Micro::whole, programs_.count(), MeshWay{});
    at->second = made_for(graph, way);
  }
  return at->second.get();
}

std::optional<EstimatedWay> WaySearch::estimate(const MeshWay& way) {
  const StepFormulas* formulas = formulas_of(way);
  if (!formulas) return std::nullopt;
  StepEstimate estimate(*formulas, way, programs_.batch_size(), programs_.iterations(), device_);
  std::vector<int> order(way.axes.size());
  std::iota(order.begin(), order.end(), 0);
  return EstimatedWay{way, estimate.held().as_is, estimate.seconds(order), 0};
}

// Of one mesh: for each spread the fastest number of micro-batches and order of axes that fits.
void WaySearch::try_sizes(const MeshWay& mesh, FoundWays& found) {
  std::vector<EstimatedWay> fitting;
  for (const Spread spread : spreads_of(mesh)) {
    MeshWay way = mesh;
    way.spread = spread;
    const StepFormulas* formulas = formulas_of(way);
    if (!formulas) continue;
    const std::vector<std::vector<int>> orders = orders_of(way);
    std::optional<EstimatedWay> fastest, smallest;
    for (const int64_t count : micro_batches_of(way)) {
      way.micro_batches = count;
      StepEstimate estimate(*formulas, way, programs_.batch_size(), programs_.iterations(), device_);
      ++found.estimated;
      const HeldRange& held = estimate.held();
      way.recomputes = held.least.total() < held.as_is.total();
      if (!smallest || held.least.total() < smallest->held.total()) smallest = EstimatedWay{way, held.least, {}, 0};
      const std::optional<StepEstimate::Fit> fitted = estimate.fit(budget_);
      if (!fitted) continue;
      ++found.fitting;
      way.recomputes = fitted->again > 0;
      for (const std::vector<int>& order : orders) {
        const StepSeconds seconds = estimate.seconds(order);
        if (fastest && seconds.total() >= fastest->seconds.total()) continue;
        if (std::isfinite(seconds.total())) fastest = EstimatedWay{in_order(way, order), fitted->held, seconds, fitted->again};
      }
    }
    if (smallest) found.smallest.push_back(std::move(*smallest));
    if (fastest) fitting.push_back(std::move(*fastest));
  }
  for (size_t i = 0; i < fitting.size(); ++i) {
    bool beaten = false;
    for (size_t k = 0; k < fitting.size(); ++k) {
      const double faster = fitting[i].seconds.total() - fitting[k].seconds.total(),
                   less = fitting[i].held.total() - fitting[k].held.total();
      beaten = beaten || (k != i && faster >= 0 && less >= 0 && (faster > 0 || less > 0 || k < i));
    }
    if (!beaten) found.best.push_back(fitting[i]);
  }
}

std::vector<MeshWay> WaySearch::meshes_of(int64_t devices) const {
  std::set<std::string> seen;
  std::vector<MeshWay> meshes;
  for (const std::optional<WayStages>& stages : stages_of(devices))
    for (const Kind& kind : kinds()) {
      std::vector<int64_t> sizes;
      factorise(stages ? devices / stages->count : devices, kind.size(), sizes, [&](const std::vector<int64_t>& chosen) {
        std::optional<MeshWay> way = way_of(kind, chosen);
        if (!way) return;
        way->stages = stages;
        if (seen.insert(way->mesh() + way->shard()).second) meshes.push_back(*way);
      });
    }
  return meshes;
}

FoundWays WaySearch::search(int64_t devices, size_t count) {
  FoundWays found;
  const std::vector<MeshWay> meshes = meshes_of(devices);
  make_formulas(meshes);
  for (const MeshWay& mesh : meshes) try_sizes(mesh, found);
  const auto faster = [](const EstimatedWay& a, const EstimatedWay& b) {
    return ranks_before(a.seconds, a.held, a.way, b.seconds, b.held, b.way);
  };
  std::ranges::copy_if(found.best, std::back_inserter(found.keeping), [](const EstimatedWay& e) { return !e.way.recomputes; });
  const auto keep = [&](std::vector<EstimatedWay>& list, auto before) {
    const auto kept = static_cast<std::ptrdiff_t>(std::min(count, list.size()));
    std::ranges::partial_sort(list, list.begin() + kept, before);
    list.resize(static_cast<size_t>(kept));
  };
  keep(found.best, faster);
  keep(found.keeping, faster);
  keep(found.smallest, [](const EstimatedWay& a, const EstimatedWay& b) { return ranks_before({}, a.held, a.way, {}, b.held, b.way); });
  return found;
}

}  // namespace einc
