// SPDX-License-Identifier: Apache-2.0
// Faults that a plan over a mesh could have are planted and found, and the order of sums is looked at directly: what is added in another
// order gives other bits, which no comparison within a bound sees.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "compiler/api/verify_mesh.h"
#include "runtime/base/failure.h"
#include "runtime/mesh/collective_queue.h"
#include "tests/agree/mesh/mesh_run.h"

using namespace einc;

namespace {

using PlanFault = std::function<bool(MeshPlan& plan)>;  // false: there is nothing to spoil

MeshCollective* find_collective(MeshPlan& plan, const std::function<bool(const MeshCollective&)>& wanted) {
  for (MeshCollective& c : plan.collectives)
    if (wanted(c)) return &c;
  return nullptr;
}

bool of_axes(const MeshPlan& plan, const MeshCollective& c) { return plan.values[c.from].shape.size() > 1; }

bool largest_for_sum(MeshPlan& plan) {
  MeshCollective* c =
      find_collective(plan, [&](const MeshCollective& x) { return x.kind == CollectiveKind::all_reduce && of_axes(plan, x); });
  if (c) c->reduce = ReduceKind::max;
  return c != nullptr;
}

bool sum_over_the_other_axis(MeshPlan& plan) {
  MeshCollective* c =
      find_collective(plan, [&](const MeshCollective& x) { return x.kind == CollectiveKind::all_reduce && of_axes(plan, x); });
  if (c) c->mesh_axis = 1 - c->mesh_axis;
  return c != nullptr;
}

void forget(MeshPlan& plan, uint32_t number) {
  plan.collectives.erase(plan.collectives.begin() + number);
  std::erase_if(plan.steps, [&](const DeviceStep& step) { return is_collectives(step) && step.index == number; });
  for (DeviceStep& step : plan.steps)
    if (is_collectives(step) && step.index > number) --step.index;
}

bool forgotten_sum(MeshPlan& plan) {
  for (uint32_t i = 0; i < plan.collectives.size(); ++i)
    if (plan.collectives[i].kind == CollectiveKind::all_reduce && of_axes(plan, plan.collectives[i])) return forget(plan, i), true;
  return false;
}

bool sum_of_a_stale_value(MeshPlan& plan) {
  MeshCollective* first = nullptr;
  for (MeshCollective& c : plan.collectives) {
    if (c.kind != CollectiveKind::all_reduce || !of_axes(plan, c)) continue;
    const bool elsewhere = first && plan.values[first->from].offset != plan.values[c.from].offset;
    if (elsewhere && plan.values[first->from].shape == plan.values[c.from].shape) return c.from = first->from, true;
    if (!first) first = &c;
  }
  return false;
}

bool swapped_coordinates(MeshPlan& plan) {
  if (plan.coordinates.size() < 2) return false;
  std::swap(plan.coordinates[0].mesh_axis, plan.coordinates[1].mesh_axis);
  return true;
}

bool another_part_of_a_source(MeshPlan& plan) {
  for (MeshSource& source : plan.sources)
    for (std::vector<int>& over : source.layout.over)
      if (over.size() == 1) return over[0] = 1 - over[0], true;
  return false;
}

bool update_of_another_value(MeshPlan& plan) {
  for (MeshUpdate& a : plan.updates)
    for (MeshUpdate& b : plan.updates)
      if (a.value != b.value && plan.values[a.value].shape == plan.values[b.value].shape) return std::swap(a.value, b.value), true;
  return false;
}

bool parts_of_an_output_exchanged(MeshPlan& plan) {
  for (MeshResult& output : plan.outputs)
    for (std::vector<int>& over : output.layout.over)
      if (!over.empty()) return over[0] = 1 - over[0], true;
  return false;
}

// Of steps that start or wait for a collective, one with launches between it and where it is moved to.
using Steps = std::vector<DeviceStep>;
bool waits(const DeviceStep& step) { return step.act == DeviceAct::wait; }
bool starts(const DeviceStep& step) { return step.act == DeviceAct::start; }
bool computes(const DeviceStep& step) { return step.act == DeviceAct::compute; }

// A collective is waited for behind the launches that stand after its wait, and so its result is read while it is made.
bool late_wait(MeshPlan& plan) {
  for (auto wait = plan.steps.begin(); wait != plan.steps.end(); ++wait)
    if (const auto next = std::find_if(wait, plan.steps.end(), computes); waits(*wait) && next != plan.steps.end())
      return std::rotate(wait, wait + 1, next + 1), true;
  return false;
}

bool wait_forgotten(MeshPlan& plan) {
  for (auto wait = plan.steps.begin(); wait != plan.steps.end(); ++wait)
    if (waits(*wait) && std::find_if(wait, plan.steps.end(), computes) != plan.steps.end()) return plan.steps.erase(wait), true;
  return false;
}

// Before the launches that make what it reads.
bool early_start(MeshPlan& plan) {
  for (auto start = plan.steps.begin(); start != plan.steps.end(); ++start) {
    const bool of_source = starts(*start) && std::ranges::any_of(plan.sources, [&](const MeshSource& s) {
                             return s.value == plan.collectives[start->index].from;
                           });
    if (!starts(*start) || of_source || start == plan.steps.begin() || !computes(start[-1])) continue;
    return std::iter_swap(start - 1, start), true;
  }
  return false;
}

bool starts_exchanged(MeshPlan& plan) {
  const auto first = std::ranges::find_if(plan.steps, starts);
  const auto second = std::find_if(first + 1, plan.steps.end(), starts);
  return second != plan.steps.end() && (std::iter_swap(first, second), true);
}

// What a launch makes between a collective's start and its wait is placed over what that reads, or over what it makes.
bool reused_place(MeshPlan& plan, uint32_t MeshCollective::*side) {
  for (auto start = plan.steps.begin(); start != plan.steps.end(); ++start) {
    if (!starts(*start)) continue;
    for (auto step = start; !waits(*step) || step->index != start->index; ++step)
      if (computes(*step))
        for (const BoundValue& made : plan.code.bound) {
          const uint32_t value = plan.collectives[start->index].*side;
          if (made.launches > step->first && made.launches <= step->last && plan.values[made.value].bytes > 0 &&
              plan.values[value].bytes > 0)
            return plan.values[made.value].offset = plan.values[value].offset, true;
        }
  }
  return false;
}
bool reused_operand(MeshPlan& plan) { return reused_place(plan, &MeshCollective::from); }
bool reused_result(MeshPlan& plan) { return reused_place(plan, &MeshCollective::to); }

}  // namespace

TEST_CASE("mesh: faults of a plan are found") {
  const MeshExample example = mesh_examples()[1];  // GPT-2 by Megatron's lines, its moments split
  const Graph graph = *compiled(example).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_mesh(graph, dims, RunMode::training);
  const ProgramData data = data_for(graph, dims);
  const InterpretResult wanted = interpreted(graph, data);
  REQUIRE(run_difference(*program, data, wanted, 2e-4) == "");
  const std::pair<const char*, PlanFault> faults[] = {{"the largest for the sum", largest_for_sum},
                                                      {"a sum over the other mesh axis", sum_over_the_other_axis},
                                                      {"a sum forgotten", forgotten_sum},
                                                      {"a sum of a stale value", sum_of_a_stale_value},
                                                      {"coordinates exchanged", swapped_coordinates},
                                                      {"another device's part of a source", another_part_of_a_source},
                                                      {"an update that takes another's value", update_of_another_value},
                                                      {"an output put together wrongly", parts_of_an_output_exchanged}};
  for (const auto& [name, fault] : faults) {
    PerPart<MeshPlan> parts = program->parts();
    INFO(std::string(name));
    REQUIRE(fault(*parts[Part::training]));
    const MeshProgram spoilt(program->info, program->mesh(), std::move(parts), nullptr);
    CHECK(run_difference(spoilt, data, wanted, 2e-4) != "");
  }
}

TEST_CASE("mesh: a plan that loses a value while it is in flight is refused") {
  const std::pair<const char*, PlanFault> faults[] = {{"waited for too late", late_wait},
                                                      {"not waited for", wait_forgotten},
                                                      {"started before its operand is made", early_start},
                                                      {"starts exchanged", starts_exchanged},
                                                      {"a result in an operand's place", reused_operand},
                                                      {"a result in another's place", reused_result}};
  const MeshExample zero3{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=3 heads=4 head=4", "data=2", "batch=data; params=data"};
  for (const MeshExample& example : {mesh_examples()[1], zero3}) {
    INFO(example.shard);
    const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
    const MeshPlan& plan = *program->parts()[Part::training];
    REQUIRE(verify_mesh_plan(plan) == "");
    for (const auto& [name, fault] : faults) {
      MeshPlan spoilt = plan;
      INFO(name);
      REQUIRE(fault(spoilt));
      CHECK(verify_mesh_plan(spoilt) != "");
    }
  }
}

TEST_CASE("mesh: what a collective throws comes to who waits for it, and none behind it is carried out") {
  std::vector<uint32_t> carried_out;
  CollectiveQueue queue;
  const auto carry_out = [&](uint32_t number) {
    carried_out.push_back(number);
    if (number == 1 && carried_out.size() < 3) throw RuntimeFailure(FailureKind::resource, "number 1");
  };
  std::mutex computing;
  std::unique_lock lock(computing);
  for (int run = 0; run < 2; ++run) {
    queue.begin();
    for (const uint32_t number : {0U, 1U, 2U}) CHECK(queue.start([&, number] { carry_out(number); }) == number);
    queue.wait(0, lock);
    CHECK(lock.owns_lock());
    if (run == 1) {
      queue.wait(2, lock);
      break;
    }
    CHECK_THROWS_AS(queue.wait(2, lock), RuntimeFailure);
    CHECK_THROWS_AS(queue.wait(1, lock), RuntimeFailure);
    CHECK(lock.owns_lock());
    queue.abandon();
    CHECK(carried_out == std::vector<uint32_t>{0, 1});
  }
  CHECK(carried_out == std::vector<uint32_t>{0, 1, 0, 1, 2});
}

TEST_CASE("mesh: sums are a balanced tree over the coordinates") {
  // Terms whose sum depends on the order in each place.
  const auto term = [](int64_t device, int64_t i) {
    return std::sin(static_cast<float>(device * 37 + i)) * std::exp2f(static_cast<float>((device * 5 + i) % 13));
  };
  const std::function<float(int64_t, int64_t, int64_t)> tree = [&](int64_t begin, int64_t end, int64_t i) {
    if (end - begin == 1) return term(begin, i);
    const auto half = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(end - begin - 1)));
    return tree(begin, begin + half, i) + tree(begin + half, end, i);
  };
  ThreadPool pool(3);
  for (const int64_t devices : {1, 2, 3, 4, 5, 6, 7, 8, 13})
    for (const int64_t count : {int64_t{1}, int64_t{513}, int64_t{9000}}) {
      std::vector<std::vector<float>> terms;
      std::vector<const std::byte*> at;
      for (int64_t d = 0; d < devices; ++d) {
        terms.emplace_back();
        for (int64_t i = 0; i < count; ++i) terms.back().push_back(term(d, i));
      }
      for (const std::vector<float>& t : terms) at.push_back(reinterpret_cast<const std::byte*>(t.data()));
      std::vector<float> sum(static_cast<size_t>(count));
      tree_reduce(pool, ReduceKind::sum, DType::f32, at, count, reinterpret_cast<std::byte*>(sum.data()));
      bool same = true;
      for (int64_t i = 0; i < count; ++i) same = same && sum[static_cast<size_t>(i)] == tree(0, devices, i);
      CAPTURE(devices);
      CHECK(same);
    }
}
