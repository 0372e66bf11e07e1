// SPDX-License-Identifier: Apache-2.0
#include "tests/support/context_programs.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "dsl/render.h"
#include "tests/support/mesh_examples.h"

namespace einc {
namespace {

constexpr const char* kScores =
    "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\") * rsqrt(head)\n";
constexpr const char* kMixed = "mixed = einsum(weights, v, \"batch heads seq key, batch heads key head -> batch seq heads head\")\n";

constexpr ContextProgram kPrograms[] = {
    {"full", kScores, kMixed},
    {"causal",
     "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\") * rsqrt(head)\n"
     "scores = where(iota(key) <= iota(seq), scores, -inf)\n",
     kMixed},
    {"keys first",
     "scores = einsum(k, q, \"batch heads key head, batch heads seq head -> batch heads key seq\") * rsqrt(head)\n"
     "scores = where(iota(key) <= iota(seq), scores, -inf)\n",
     "mixed = einsum(v, weights, \"batch heads key head, batch heads key seq -> batch seq heads head\")\n"},
    {"a bias for each pair, and keys that are left out",
     "pairs: [heads seq key] = bias\n"
     "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\") * rsqrt(head) + pairs\n"
     "kept: [batch key] = keep\n"
     "scores = where(kept > 0, scores, -1e9)\n",
     kMixed},
    {"soft cap and a window",
     "scores = 5 * tanh(einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\") / 5)\n"
     "scores = where((iota(key) <= iota(seq)) and (iota(seq) - iota(key) < 5), scores, -inf)\n",
     kMixed},
    {"grouped heads",
     "scores = einsum(q, k, \"batch heads group seq head, batch heads key head -> batch heads group seq key\") * rsqrt(head)\n"
     "scores = where(iota(key) <= iota(seq), scores, -inf)\n",
     "mixed = einsum(weights, v, \"batch heads group seq key, batch heads key head -> batch seq heads group head\")\n", true},
};

}  // namespace

std::span<const ContextProgram> context_programs() { return kPrograms; }

std::string text_of(const ContextProgram& program, const std::string& mesh, const std::string& shard) {
  const std::string group = program.grouped ? " group" : "";
  std::string text = "dim batch = 2, seq = 8, embed = 6, heads = 2, group = 3, head = 4\nmesh " + mesh + "\n" + shard;
  text += "input x: f32[batch seq embed]\ninput target: f32[batch seq embed]\ninput keep: f32[batch seq]\n";
  text += "input bias: f32[heads seq, to=seq]\n";
  text += fmt::format("param wq: [embed heads{} head] ~ normal(std = 0.3)\nparam wk: [embed heads head] ~ normal(std = 0.3)\n", group);
  text += fmt::format("param wv: [embed heads head] ~ normal(std = 0.3)\nparam wo: [heads{} head embed] ~ normal(std = 0.3)\n", group);
  text += fmt::format("q = einsum(x, wq, \"batch seq embed, embed heads{0} head -> batch heads{0} seq head\")\n", group);
  text += "k: [batch heads key head] = einsum(x, wk, \"batch seq embed, embed heads head -> batch heads seq head\")\n";
  text += "v: [batch heads key head] = einsum(x, wv, \"batch seq embed, embed heads head -> batch heads seq head\")\n";
  text += program.scores;
  text += "weights = softmax(scores, key)\n";
  text += program.mixed;
  text += fmt::format("o = einsum(mixed, wo, \"batch seq heads{0} head, heads{0} head embed -> batch seq embed\")\noutput o\n", group);
  return text + "loss = mean((o - target)^2)\nminimize loss using sgd(lr = 0.1)\n";
}

std::string with_length(std::string text, int64_t seq) {
  constexpr std::string_view kLength = "seq = 8";
  return text.replace(text.find(kLength), kLength.size(), fmt::format("seq = {}", seq));
}

Compilation compiled_text(const std::string& text, Roots roots) {
  PipelineOptions options;
  options.roots = roots;
  Compilation c = compile_text("context.ein", text, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  return c;
}

Partitioned parts_of(const Graph& graph) {
  auto made = partition_for_mesh(graph, {});
  REQUIRE(std::holds_alternative<Partitioned>(made));
  return std::get<Partitioned>(std::move(made));
}

std::string shard_lines(const std::string& mesh, bool keys) {
  std::string lines = "shard seq over context\n";
  if (keys) lines += "shard keys over context\n";
  if (mesh.starts_with("data")) lines += "shard batch over data\n";
  if (mesh.ends_with("model = 2")) lines += "shard heads over model\n";
  return lines;
}

void check_on_meshes(const std::vector<std::string>& meshes, bool keys,
                     const std::function<void(const ContextProgram&, const std::string&, Roots, const Partitioned&)>& look) {
  for (const ContextProgram& program : context_programs())
    for (const std::string& mesh : meshes) {
      CAPTURE(program.name);
      CAPTURE(mesh);
      for (const Roots roots : {Roots::training, Roots::inference}) {
        const Compilation c = compiled_text(text_of(program, mesh, shard_lines(mesh, keys)), roots);
        const Partitioned parts = parts_of(*c.graph);
        ProgramData data = data_for(*c.graph, {});
        if (roots == Roots::inference) data.options.mode = RunMode::inference;
        CHECK(partition_problem(*c.graph, parts, data, 1e-12) == "");
        look(program, mesh, roots, parts);
      }
    }
}

}  // namespace einc
