// SPDX-License-Identifier: Apache-2.0
#include "tests/support/mesh_examples.h"

#include <doctest/doctest.h>

#include "dsl/render.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/run_graph.h"

namespace einc {
namespace {

constexpr const char* kTinyGpt = "batch=4 seq=6 vocab=16 layers=2 heads=4 head=4";
constexpr MeshExample kExamples[] = {
    {"gpt2.ein", kTinyGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model"},
    {"gpt2.ein", kTinyGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model; states=data"},
    {"gpt2.ein", kTinyGpt, "data=4", "batch=data; gradients=data"},
    {"gpt2.ein", kTinyGpt, "data=4,model=2", "batch=data; heads,hidden,vocab=model; params=data"},
    {"two_layer.ein", "batch=6 width=4 out=6", "data=3,model=2", "batch=data; out=model; states=data"},
    {"two_layer.ein", "batch=8 width=4 out=6", "data=4,model=2", "batch=data; out=model; states=data"},
    {"mlp.ein", "batch=8 features=6 hidden=4 classes=6", "data=2,model=2", "batch=data; hidden=model; params=data"},
    {"attention.ein", "batch=4 seq=6 heads=2 head=3", "data=2,model=2", "batch=data; heads=model; gradients=data"},
    {"deep_linear.ein", "batch=4 width=6 layers=3", "data=2,model=3", "batch=data; params=data"},
    {"cnn.ein", "batch=4 height=8 width=8", "data=4", "batch=data; states=data"},
    {"vit.ein", "batch=4 rows=2 cols=2 side=2 layers=2 heads=2 head=2", "data=2,model=2", "batch=data; heads,hidden=model"},
    {"lora.ein", "batch=4 width=6 out=8 rank=2", "pod=2,data=2,model=2", "batch=pod,data; out=model; states=data"},
    {"nanogpt.ein", "batch=4 seq=4 vocab=12 layers=1 heads=2 head=3", "data=2,context=2", "batch=data; seq=context; params=data"},
    {"shakespeare_char.ein", "batch=4 seq=4 vocab=12 layers=1 heads=2 head=3", "data=2,model=2", "batch=data; heads,hidden,vocab=model"},
    {"llama.ein", "batch=4 seq=4 vocab=12 layers=2 embed=8 heads=4 kv_heads=2 ffn=6", "data=2,model=2",
     "batch=data; kv_heads,ffn,vocab=model; params=data", 0.05},  // bf16
    {"llama.ein", "batch=4 seq=4 vocab=12 layers=2 embed=8 heads=4 kv_heads=2 ffn=6", "data=4", "batch=data; states=data", 0.05},
    {"../tests/zoo/models/gru.ein", "batch=4 seq=5 hidden=8", "data=2", "batch=data"},
    {"../tests/zoo/models/lstm.ein", "batch=4 seq=3 hidden=6 vocab=8", "data=2,model=2", "batch=data; vocab=model; params=data"},
    {"../tests/zoo/models/mamba.ein", "batch=4 seq=4 inner=12 vocab=8", "data=2,model=2", "batch=data; inner=model; states=data"},
    {"lstm.ein", "batch=4", "model=2", "hidden=model"},
    {"lstm.ein", "batch=4 hidden=6", "data=2", "batch=data"}};  // draws its data

}  // namespace

std::span<const MeshExample> mesh_examples() { return kExamples; }

Bindings dims_of(std::string_view text) {
  Bindings dims;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size()), sign = text.find('=');
    dims[Name(text.substr(0, sign))] = std::stoll(std::string(text.substr(sign + 1, end - sign - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return dims;
}

Compilation compiled(const MeshExample& example, Roots roots) {
  PipelineOptions options;
  options.dims = dims_of(example.dims);
  options.mesh = example.mesh;
  options.shard = example.shard;
  options.precision = example.precision;
  options.roots = roots;
  Compilation c = compile_file(std::string("examples/") + example.file, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  return c;
}

ProgramData data_for(const Graph& graph, const Bindings& dims) {
  ProgramData data{dims, program_inputs(graph, dims, 1), initial_params(graph, dims, 1), initial_states(graph, dims, 1), {}};
  data.options.step = 3;
  return data;
}

const char* const kWholeNumbers = R"(
dim batch = 24, features = 24, hidden = 24, classes = 24
input x: f32[batch features]
input ids: i32[batch]
param table: [classes features] ~ normal(std = 1)
param w1: [features hidden] ~ normal(std = 1)
param b1: [hidden] ~ normal(std = 1)
param w2: [hidden classes] ~ normal(std = 1)
h = relu(einsum(x + table[classes = ids], w1, "batch features, features hidden -> batch hidden") + b1)
y = einsum(h, w2, "batch hidden, hidden classes -> batch classes")
output y
output top = max(y, classes)
output least = min(y, batch)
loss = sum(y)
minimize loss using momentum(lr = 1, momentum = 0.5)
)";

const char* const kDrawingScan = R"(
dim batch = 4, k = 6
input x: [batch time=3 k]
param w: [k out=k] ~ normal(std = 0.5)
h = 0 * x[time = 0]
scan t in time {
  v: [batch k] = einsum(h, w, "batch k, k out -> batch out")
  h = dropout(tanh(v + x[time = t]), 0.3) + where(iota(batch) == t, 1, 0) * normal(batch)
  collect seen = mean(h^2, k)
}
output seen
loss = mean(h^2) + sum(seen)
minimize loss using momentum(lr = 0.1)
)";

const char* const kScanMeshes[4] = {
    "mesh data = 2\nshard batch over data\n", "mesh data = 4\nshard batch over data\nshard params over data\n",
    "mesh pod = 2, data = 2\nshard batch over pod, data\n", "mesh data = 2, model = 2\nshard batch over data\nshard k over model\n"};

void set_whole_numbers(TensorMap& values, uint64_t seed) {
  for (auto& [name, tensor] : values)
    for (size_t i = 0; i < tensor.reals.size(); ++i) tensor.reals[i] = static_cast<double>((i * 7 + seed + name.str().size()) % 5) - 2;
}

}  // namespace einc
