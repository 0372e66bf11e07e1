// SPDX-License-Identifier: Apache-2.0
// Which bytes of a launch are memory's, against sums by hand.
#include "compiler/lower/launch_traffic.h"

#include <doctest/doctest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "compiler/fuse/form_graph.h"
#include "compiler/pipeline/pipeline.h"

using namespace einc;

namespace {

using Bytes = std::vector<int64_t>;

std::string text_of(const Bytes& bytes) { return fmt::format("{}", fmt::join(bytes, " ")); }

struct Traffic {
  Bytes from, to;
};

Traffic traffic_of(const std::string& program, RunMode mode, int64_t cache) {
  const Compilation c = compile_text("t.ein", program, {});
  REQUIRE(c.graph.has_value());
  const FormedGraph formed = form_graph(*c.graph, {}, mode, Scheduling::unfused);
  Traffic result;
  for (const LaunchTraffic& t : launch_traffic(formed.list, formed.plan, cache)) {
    result.from.push_back(t.from_memory);
    result.to.push_back(t.to_memory);
    CHECK(t.from_memory <= t.work.bytes_read);
    CHECK(t.to_memory <= t.work.bytes_written);
  }
  return result;
}

}  // namespace

TEST_CASE("bytes come from memory where more than the cache holds was touched in between") {
  // 4,000 bytes each: a = x*2, b = exp(a), y = b + x. The results take one another's place: x and that are all there is.
  const std::string chain = "input x: f32[n=1000]\na = x * 2\nb = exp(a)\noutput y = b + x\n";
  struct Row {
    int64_t cache;
    Bytes from, to;
  };
  const Row rows[] = {
      {0, {4000, 4000, 8000}, {4000, 4000, 4000}},     // no cache is known
      {3000, {4000, 4000, 8000}, {4000, 4000, 4000}},  // no value fits
      {4000, {4000, 0, 8000}, {0, 4000, 4000}},        // one does: a is read at once and overwritten there; x pushes b out
      {8000, {0, 0, 0}, {0, 0, 0}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.cache);
    const Traffic traffic = traffic_of(chain, RunMode::inference, row.cache);
    CHECK(text_of(traffic.from) == text_of(row.from));
    CHECK(text_of(traffic.to) == text_of(row.to));
  }
}

TEST_CASE("what a step leaves behind is written to memory when the next one finds it gone") {
  // A state of 4,000 bytes and a temporary value; x, 8,000 bytes, is read in between.
  const std::string program = "input x: f32[m=2000]\nstate s: [n=1000] ~ zeros\ns <- s * 0.5 + 1\noutput y = sum(x)\n";
  const auto sum = [](const Bytes& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); };
  const Traffic far = traffic_of(program, RunMode::inference, 9000), near = traffic_of(program, RunMode::inference, 100000);
  CHECK(sum(far.to) == 8004);  // and y
  CHECK(sum(far.from) == 12000);
  CHECK(sum(near.to) == 0);
  CHECK(sum(near.from) == 0);
}
