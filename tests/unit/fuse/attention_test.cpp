// SPDX-License-Identifier: Apache-2.0
// What is taken for attention and what is not; the work and the memory of its kernels, counted pair by pair.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/attention.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

constexpr int64_t kBatch = 2, kHeads = 3, kHead = 16, kValue = 8;

std::string program(const std::string& masked, const std::string& rest = "") {
  return fmt::format(R"(
dim b = {}, h = {}, q, k = q, d = {}, c = {}
param query: [b h q d] ~ normal(std = 1)
param keys: [b h k d] ~ normal(std = 1)
param values: [b h k c] ~ normal(std = 1)
param bias: [h q k] ~ zeros
s = einsum(query, keys, "b h q d, b h k d -> b h q k")
w = softmax({}, k)
output y = einsum(w, values, "b h q k, b h k c -> b h q c")
loss = sum(y * y)
{}
minimize loss using sgd(lr = 0.1)
)",
                     kBatch, kHeads, kHead, kValue, masked, rest);
}

struct FormedAttention {
  Graph graph;
  FormedGraph formed;
  FormedAttention(const std::string& text, const Bindings& dims, Scheduling scheduling = Scheduling::all)
      : graph(assign_precision(simplify(expand(compile_text(text, dims), Roots::training), Roots::training), Policy::inherit)),
        formed(form_graph(graph, dims, RunMode::training, scheduling)) {}

  std::vector<const Kernel*> attention() const {
    std::vector<const Kernel*> all;
    for (const GraphKernel& k : formed.list.kernels)
      if (k.kernel->attention) all.push_back(k.kernel.get());
    return all;
  }
  std::string refusal() const { return formed.list.no_attention.empty() ? "" : formed.list.no_attention.front().reason; }
};

using Needed = bool (*)(int64_t row, int64_t key);

// Pairs of rows and keys when 32 rows take the keys from the first to the last that one of them needs, in twelves.
int64_t pairs(int64_t size, Needed needed) {
  int64_t sum = 0;
  for (int64_t first = 0; first < size; first += 32) {
    const int64_t last = std::min(size, first + 32);
    int64_t low = size, high = 0;
    for (int64_t row = first; row < last; ++row)
      for (int64_t key = 0; key < size; ++key)
        if (needed(row, key)) low = std::min(low, key), high = std::max(high, key + 1);
    low = low / 12 * 12, high = std::min(size, (high + 11) / 12 * 12);
    sum += (last - first) * (high - low);
  }
  return sum;
}

}  // namespace

TEST_CASE("attention: keys that the mask shuts out are not visited, forward or backward") {
  const std::pair<const char*, Needed> masks[] = {
      {"s", [](int64_t, int64_t) { return true; }},
      {"where(iota(k) <= iota(q), s, -inf)", [](int64_t row, int64_t key) { return key <= row; }},
      {"where(iota(q) < iota(k), -inf, s)", [](int64_t row, int64_t key) { return key <= row; }},
      {"where(iota(k) <= iota(q) and iota(q) - iota(k) < 20, s, -inf)",
       [](int64_t row, int64_t key) { return key <= row && row - key < 20; }},
      {"where(iota(q) <= iota(k) + 5, tanh(s), -inf)", [](int64_t row, int64_t key) { return row <= key + 5; }},
      // Nothing is proven of these: some row would have no key, or a masked pair may count.
      {"where(iota(k) < iota(q), s, -inf)", [](int64_t, int64_t) { return true; }},
      {"where(iota(k) <= iota(q), s, -30)", [](int64_t, int64_t) { return true; }},
  };
  for (const auto& [mask, needed] : masks)
    for (int64_t size : {5, 33, 100, 128}) {
      CAPTURE(mask);
      CAPTURE(size);
      const FormedAttention formed(program(mask), {{"q", size}});
      const auto kernels = formed.attention();
      REQUIRE(kernels.size() == 2);
      const int64_t all = kBatch * kHeads * pairs(size, needed);
      CHECK(work_of(*kernels[0]).contraction == 2 * all * (kHead + kValue));
      CHECK(work_of(*kernels[1]).contraction == 2 * all * (3 * kHead + 2 * kValue));
    }
}

TEST_CASE("attention: memory grows with the rows, not with pairs of rows and keys") {
  const auto bytes = [](int64_t size, Scheduling scheduling) {
    return static_cast<double>(
               FormedAttention(program("where(iota(k) <= iota(q), s, -inf)"), {{"q", size}}, scheduling).formed.plan.total_bytes) -
           4.0 * kHeads * static_cast<double>(size * size);  // the bias, which nobody reads
  };
  CHECK(bytes(4096, Scheduling::all) < 2.01 * bytes(2048, Scheduling::all));
  CHECK(bytes(4096, Scheduling::without_attention) > 3.5 * bytes(2048, Scheduling::without_attention));
}

TEST_CASE("attention: what is none is left alone, and the reason told") {
  const Bindings dims{{"q", 40}};
  const auto reason = [&](const std::string& text) {
    const FormedAttention formed(text, dims);
    CHECK(formed.attention().empty());
    return formed.refusal();
  };
  CHECK(reason(program("s", "output weights = w")) == "its scores are kept");
  CHECK(reason(program("s + bias")) == "scores are reduced over another axis than their keys");
  CHECK(reason(program("s", "output most = argmax(w, k)")) == "it reads scores in another way");
  // A classifier over a hidden layer, and a loss over logits, are no attention.
  CHECK(reason(R"(
dim q, f = 20, m = 30, classes = 10
input x: f32[q f]
input ids: i32[q]
param w: [f m] ~ normal(std = 1)
param u: [m classes] ~ normal(std = 1)
logits = einsum(gelu(einsum(x, w, "q f, f m -> q m")), u, "q m, m classes -> q classes")
loss = mean(cross_entropy(logits, ids, classes))
minimize loss using sgd(lr = 0.1)
)")
            .empty());
}

TEST_CASE("attention: the verifier refuses what tiles cannot run") {
  const FormedAttention formed(program("s"), {{"q", 40}});
  Kernel broken = *formed.attention().front();
  CHECK(verify(broken).empty());
  std::swap(broken.attention->steps.front().left, broken.attention->steps.front().right);
  CHECK(verify(broken) == "r0 multiplies no rows with keys");
  broken = *formed.attention().front();
  broken.attention->steps.pop_back();
  CHECK(verify(broken) == "a reduction belongs to no step");
}

TEST_CASE("attention: equal layers share a kernel, those of another mask, scale or key have their own") {
  const auto layer = [](int number, const std::string& masked, const std::string& keys) {
    return fmt::format(
        "s{0} = einsum(x, {2}, \"b h q d, b h k d -> b h q k\")\nw{0} = softmax({1}, k)\n"
        "x = einsum(w{0}, values, \"b h q k, b h k d -> b h q d\")\n",
        number, masked, keys);
  };
  const auto kernels = [&](const std::vector<std::string>& layers) {
    std::string text = "dim b = 2, h = 3, q = 64, k = q, d = 16\n";
    for (const char* name : {"query", "keys", "values", "others"})
      text += fmt::format("param {}: [b h {} d] ~ normal(std = 1)\n", name, name == std::string("query") ? "q" : "k");
    text += "x = query\n";
    for (const std::string& l : layers) text += l;
    text += "output y = x\nloss = sum(x * x)\nminimize loss using sgd(lr = 0.1)\n";
    const FormedAttention attention(text, {});
    REQUIRE(attention.refusal().empty());
    std::vector<const Kernel*> all = attention.attention();
    REQUIRE(all.size() == 2 * layers.size());
    std::vector<std::string> texts;
    for (const Kernel* kernel : all) texts.push_back(to_string(*kernel));
    for (size_t i = 0; i < all.size(); ++i)
      for (size_t j = 0; j < i; ++j) CHECK((all[i] == all[j]) == (texts[i] == texts[j]));
    std::ranges::sort(texts);
    return std::ranges::distance(texts.begin(), std::ranges::unique(texts).begin());
  };
  const std::string plain = layer(1, "s1", "keys");
  const std::string second = layer(2, "s2", "keys"), third = layer(3, "s3", "keys"), fourth = layer(4, "s4", "keys");
  CHECK(kernels({plain, second, third}) < 6);
  CHECK(kernels({plain, second, third, fourth}) == kernels({plain, second, third}));  // layers between others are alike
  CHECK(kernels({plain, layer(2, "s2", "others"), third}) == kernels({plain, second, third}));
  CHECK(kernels({plain, layer(2, "s2 * 0.5", "keys")}) == 4);
  CHECK(kernels({plain, layer(2, "where(k <= q, s2, -inf)", "keys"), layer(3, "where(k <= q, s3, -inf)", "keys")}) == 4);
}
