// SPDX-License-Identifier: Apache-2.0
// Names and axes of weights from elsewhere.
#include "runtime/data/name_map.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "test_files.h"

using namespace einc;

namespace {

HostArray counting(std::vector<int64_t> shape) {
  const int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<int32_t> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  HostArray array{DType::i32, std::move(shape), std::vector<std::byte>(values.size() * 4)};
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

std::vector<int32_t> values_of(const HostArray& array) {
  std::vector<int32_t> values(array.bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

std::string pattern_failure(const std::string& pattern, std::vector<int64_t> from = {6, 4}, std::vector<int64_t> to = {4, 6}) {
  return failure_of([&] { Rearrangement(pattern).apply(counting(std::move(from)), to); });
}

std::string map_failure(const std::string& text) {
  return failure_of([&] { NameMap::parse(text, "map.txt"); });
}

}  // namespace

TEST_CASE("axes are put in another order, split and merged") {
  CHECK(values_of(Rearrangement("a b -> b a").apply(counting({2, 3}), {3, 2})) == std::vector<int32_t>{0, 3, 1, 4, 2, 5});
  CHECK(values_of(Rearrangement("(a b) -> a b").apply(counting({6}), {2, 3})) == std::vector<int32_t>{0, 1, 2, 3, 4, 5});
  // Every element, by the definition.
  const HostArray array = counting({3, 4, 10});
  const HostArray result = Rearrangement("a b (c d) -> (d a) 1 c b").apply(array, {15, 1, 2, 4});
  const std::vector<int32_t> values = values_of(result);
  CHECK(result.shape == std::vector<int64_t>{15, 1, 2, 4});
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 4; ++b)
      for (int c = 0; c < 2; ++c)
        for (int d = 0; d < 5; ++d) CHECK(values[static_cast<size_t>(((d * 3 + a) * 2 + c) * 4 + b)] == (a * 4 + b) * 10 + c * 5 + d);
  CHECK(Rearrangement("a b -> b a").apply(counting({0, 3}), {3, 0}).bytes.empty());
  CHECK(values_of(Rearrangement("-> 1").apply(counting({}), {1})) == std::vector<int32_t>{0});
}

TEST_CASE("patterns that are wrong, and shapes that do not fit") {
  CHECK(pattern_failure("a b -> b a").empty());
  CHECK(pattern_failure("a b") == "`a b`: it has no `->`, or several");
  CHECK(pattern_failure("a b -> b c") == "`a b -> b c`: 'c' is on the right only");
  CHECK(pattern_failure("a b -> b") == "`a b -> b`: a name is on the left only");
  CHECK(pattern_failure("a a -> a") == "`a a -> a`: 'a' appears twice on one side");
  CHECK(pattern_failure("(a (b) -> b a") == "`(a (b) -> b a`: '(' is out of place");
  CHECK(pattern_failure("(a b -> b a") == "`(a b -> b a`: a group is not closed");
  CHECK(pattern_failure("a b -> b a)") == "`a b -> b a)`: ')' is out of place");
  CHECK(pattern_failure("a 2 -> 2 a") == "`a 2 -> 2 a`: '2' is neither a name nor 1");
  CHECK(pattern_failure("a b c -> a b c") == "`a b c -> a b c`: [6 4] does not become [4 6] by it");
  CHECK(pattern_failure("a b -> a b") == "`a b -> a b`: [6 4] does not become [4 6] by it");
  CHECK(pattern_failure("a b -> (a c) b", {6}, {6}) == "`a b -> (a c) b`: 'c' is on the right only");
  CHECK(pattern_failure("(a b) -> (b a)", {6}, {6}) == "`(a b) -> (b a)`: the size of 'a' does not follow from [6] and [6]");
  CHECK(pattern_failure("(a b) c -> a b c", {6, 4}, {4, 2, 4}) == "`(a b) c -> a b c`: [6 4] does not become [4 2 4] by it");
  std::string many;
  for (int i = 0; i < 40; ++i) many += fmt::format("a{} ", i);
  CHECK(pattern_failure(many + "->" + many).ends_with("it has more than 32 names"));
}

TEST_CASE("names by lines, with stars and comments; the first line that matches counts") {
  const NameMap map = NameMap::parse(
      "# of somewhere\n"
      "\r\n"
      "wte.weight -> wte   # tied\n"
      "layers.*.*.kernel -> h.*.*.w : in out -> out in\r\n"
      "x.* -> h.*\n"
      "all.* -> odd.*",
      "map.txt");
  CHECK(map.theirs("wte") == "wte.weight");
  CHECK(map.theirs("h.10.mlp.w") == "layers.10.mlp.kernel");
  CHECK(map.theirs("h.10") == "x.10");
  CHECK(map.theirs("h.10.mlp.b") == "h.10.mlp.b");
  CHECK(map.theirs("h.") == "h.");
  CHECK(NameMap().theirs("a.b") == "a.b");
}

TEST_CASE("lines that are wrong are told by their number") {
  CHECK(map_failure("a -> b\n\nnothing") ==
        "map.txt: line 3: a line is `their.name -> our.name`, or `their.name -> our.name : their axes -> our axes`");
  CHECK(map_failure("-> b") == "map.txt: line 1: '' is not a name");
  CHECK(map_failure("a b -> c") == "map.txt: line 1: 'a b' is not a name");
  CHECK(map_failure("a -> ") == "map.txt: line 1: '' is not a name");
  CHECK(map_failure("a.* -> b") == "map.txt: line 1: the two names have different numbers of `*`");
  CHECK(map_failure("*.*.*.*.* -> *.*.*.*.*") == "map.txt: line 1: more than 4 `*`");
  CHECK(map_failure("a -> b : x y -> y") == "map.txt: line 1: `x y -> y`: a name is on the left only");
  CHECK(map_failure(std::string(100, '\0')) ==
        "map.txt: line 1: a line is `their.name -> our.name`, or `their.name -> our.name : their axes -> our axes`");
}
