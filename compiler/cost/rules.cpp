// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/rules.h"

#include <array>

#include "runtime/base/check.h"

namespace einc {
namespace {

// width is heads*head, or embed when no heads are given; held is the layers whose activations the first pipeline stage
// keeps; active is the parameters that one token meets.
constexpr std::string_view kKaplan = "Kaplan et al. 2020", kPalm = "Chowdhery et al. 2022", kKorthikanti = "Korthikanti et al. 2022";
constexpr std::array kRules{
    Rule{RuleKind::parameters, "without embeddings", kKaplan, "2*layers*embed*(2*width + ffn)"},
    Rule{RuleKind::parameters, "of one token's experts", "", "params - 3*layers*(experts - used_experts)*embed*ffn"},

    Rule{RuleKind::forward_flops, "Kaplan", kKaplan, "4*layers*embed*(2*width + ffn) + 2*layers*seq*width"},
    Rule{RuleKind::forward_flops, "Kaplan, embed", kKaplan, "4*embed"},
    Rule{RuleKind::forward_flops, "Kaplan, de-embed", kKaplan, "2*embed*vocab"},
    Rule{RuleKind::forward_flops, "expert router", "", "2*layers*embed*experts"},
    Rule{RuleKind::step_flops, "6 N", kKaplan, "6*params"},
    Rule{RuleKind::step_flops, "PaLM", kPalm, "6*params + 12*layers*width*seq"},
    Rule{RuleKind::step_flops, "torchtitan", "its get_num_flop_per_token", "6*(active - vocab*embed) + 12*layers*width*seq"},
    Rule{RuleKind::step_flops, "Chinchilla, layers alone", "Hoffmann et al. 2022, appendix F",
         "3*layers*(8*embed*width + 4*seq*width + 3*heads*seq + 4*embed*ffn)"},
    Rule{RuleKind::step_flops, "Korthikanti", kKorthikanti, "72*layers*embed^2 + 12*layers*seq*embed + 6*embed*vocab"},
    Rule{RuleKind::hardware_flops, "Korthikanti, selective, as printed", kKorthikanti,
         "72*layers*embed^2 + 24*layers*seq*embed + 6*embed*vocab"},
    Rule{RuleKind::hardware_flops, "Korthikanti, selective, attention run once more", kKorthikanti,
         "72*layers*embed^2 + 16*layers*seq*embed + 6*embed*vocab"},

    Rule{RuleKind::bytes, "key-value cache of a token, 8 bit", "", "2*layers*kv_heads*head"},
    Rule{RuleKind::bytes, "key-value cache of a token, 16 bit", "", "4*layers*kv_heads*head"},

    Rule{RuleKind::bytes, "layer: inputs of the norms", kKorthikanti, "4*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: input of Q, K, V", kKorthikanti, "2*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: Q and K", kKorthikanti, "4*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: V", kKorthikanti, "2*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: softmax", kKorthikanti, "2*heads*batch*seq^2"},
    Rule{RuleKind::bytes, "layer: mask of the softmax' dropout", kKorthikanti, "heads*batch*seq^2"},
    Rule{RuleKind::bytes, "layer: the softmax' dropout", kKorthikanti, "2*heads*batch*seq^2"},
    Rule{RuleKind::bytes, "layer: input of the projection", kKorthikanti, "2*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: mask of the projection's dropout", kKorthikanti, "batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: attention in all", kKorthikanti, "11*batch*seq*embed + 5*heads*batch*seq^2"},
    Rule{RuleKind::bytes, "layer: input of the MLP", kKorthikanti, "2*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: input of GeLU", kKorthikanti, "8*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: GeLU", kKorthikanti, "8*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: mask of the MLP's dropout", kKorthikanti, "batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: MLP in all", kKorthikanti, "19*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: everything kept", kKorthikanti, "34*batch*seq*embed + 5*heads*batch*seq^2"},
    Rule{RuleKind::bytes, "layer: attention recomputed", kKorthikanti, "34*batch*seq*embed"},
    Rule{RuleKind::bytes, "layer: all recomputed", kKorthikanti, "2*batch*seq*embed"},
    Rule{RuleKind::share, "saved by recomputing attention", kKorthikanti, "5*heads*seq/(34*embed + 5*heads*seq)"},

    Rule{RuleKind::bytes, "tensor parallel", kKorthikanti, "held*batch*seq*(10*embed + 24*embed/tensor + 5*heads*seq/tensor)"},
    Rule{RuleKind::bytes, "tensor and sequence parallel", kKorthikanti, "held*batch*seq*(34*embed + 5*heads*seq)/tensor"},
    Rule{RuleKind::bytes, "tensor parallel, attention recomputed", kKorthikanti, "held*batch*seq*embed*(10 + 24/tensor)"},
    Rule{RuleKind::bytes, "tensor and sequence parallel, attention recomputed", kKorthikanti, "34*held*batch*seq*embed/tensor"},
    Rule{RuleKind::bytes, "all recomputed, block inputs kept", kKorthikanti, "2*held*batch*seq*embed"},
    Rule{RuleKind::bytes, "20 tensors a layer, 16 bit", "How to Scale Your Model, chapter 4", "40*layers*batch*seq*embed"},
    Rule{RuleKind::bytes, "result of every op, f32", "CS336, assignment 1",
         "8*layers*batch*seq*(8*embed + heads*seq) + 4*batch*seq*(embed + 2*vocab)"},
};

Poly name(const char* text) { return Poly::dim(Name(text)); }

// What stands for the derived names.
Substitution derived(const TransformerSizes& sizes) {
  Substitution map;
  map[Name("width")] = sizes.heads && sizes.head ? name("heads") * name("head") : name("embed");
  Poly held = name("layers");
  if (sizes.interleave) held += divide(name("layers") * (name("pipeline") - Poly(1)), name("pipeline") * name("interleave"));
  map[Name("held")] = held;
  Poly active = name("params");
  if (sizes.experts && sizes.used_experts)
    active -= Poly(3) * name("layers") * (name("experts") - name("used_experts")) * name("embed") * name("ffn");
  map[Name("active")] = active;
  return map;
}

Bindings values_of(const TransformerSizes& s) {
  Bindings values;
  const auto set = [&](const char* text, const std::optional<int64_t>& value) {
    if (value) values[Name(text)] = *value;
  };
  set("params", s.params);
  set("layers", s.layers);
  set("embed", s.embed);
  set("heads", s.heads);
  set("kv_heads", s.kv_heads ? s.kv_heads : s.heads);
  set("head", s.head);
  if (!s.head && s.embed && s.heads && *s.embed % *s.heads == 0) set("head", *s.embed / *s.heads);
  // An MLP four times as wide where no width is given; experts have one of their own.
  set("ffn", s.ffn);
  if (!s.ffn && s.embed && !s.experts && *s.embed < (int64_t{1} << 60)) set("ffn", 4 * *s.embed);
  set("vocab", s.vocab);
  set("seq", s.seq);
  set("batch", s.batch.value_or(1));
  set("experts", s.experts);
  set("used_experts", s.used_experts);
  set("tensor", s.tensor_parallel.value_or(1));
  set("pipeline", s.pipeline_parallel.value_or(1));
  set("interleave", s.interleave);
  return values;
}

}  // namespace

std::string_view to_string(RuleKind kind) {
  switch (kind) {
    case RuleKind::parameters:
      return "parameters";
    case RuleKind::forward_flops:
      return "forward FLOPs";
    case RuleKind::step_flops:
      return "step FLOPs";
    case RuleKind::hardware_flops:
      return "hardware FLOPs";
    case RuleKind::bytes:
      return "bytes";
    case RuleKind::share:
      return "share";
  }
  return "";
}

std::optional<Rational> TransformerSizes::tokens_per_step() const {
  if (!seq) return std::nullopt;
  return Rational(*seq) * Rational(batch.value_or(1));
}

std::vector<RuleValue> known_rules(const TransformerSizes& sizes) {
  const Bindings values = values_of(sizes);
  const Substitution map = derived(sizes);
  std::vector<RuleValue> result;
  for (const Rule& rule : kRules) {
    const auto written = parse_poly(rule.formula);
    EINC_CHECK(written.has_value(), "the formula of {}", rule.name);
    const Poly formula = written->substitute(map);
    const auto value = formula.evaluate(values);
    if (!value) continue;
    RuleValue row{&rule, formula, *value, std::nullopt};
    if (counts_flops(rule.kind))
      if (const auto tokens = sizes.tokens_per_step()) row.step = *value * *tokens;
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace einc
