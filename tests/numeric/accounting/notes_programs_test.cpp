// SPDX-License-Identifier: Apache-2.0
// The source notes' claims near_to programs: rows S and X whose numbers are values of a run, or stand in a part of the report.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/ir/interpret.h"
#include "dsl/diagnostic.h"
#include "tables.h"

using namespace einc;
using namespace einc::accounting;
using nlohmann::json;

namespace {

using Reals = std::vector<double>;

std::map<std::string, Tensor> outputs_of(const std::string& model, const TensorMap& inputs, const TensorMap& params) {
  const Compilation c = compiled(model, "-");
  std::map<std::string, Tensor> values;
  for (const auto& [name, tensor] : interpret(*c.graph, {}, inputs, params, {}).outputs) values[name.str()] = tensor;
  return values;
}

TensorMap first_params(const std::string& model) { return initial_params(*compiled(model, "-").graph, {}, 0); }

double deviation(const Reals& values) {
  double sum = 0, squares = 0;
  for (const double v : values) sum += v, squares += v * v;
  const double n = static_cast<double>(values.size());
  return std::sqrt(squares / n - sum * sum / (n * n));
}

double farthest(const Reals& values) {
  double most = 0;
  for (const double v : values) most = std::max(most, std::abs(v));
  return most;
}

Reals counted(int64_t count) {
  Reals values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return values;
}

doctest::Approx near_to(double value, double epsilon) { return doctest::Approx(value).epsilon(epsilon); }

// FLOPs of the backward products that come from one line of a model.
Reals backward_products(const std::string& model, int line) {
  const json report = report_of(model, "-", Detail::ops);
  Reals flops;
  for (const json& op : report.at("ops"))
    if (op.at("phase") == "backward" && op.at("kind") == "contract" && op.at("source").at("line") == line)
      flops.push_back(op.at("flops").get<double>());
  return flops;
}

}  // namespace

TEST_CASE("S18: random data times random weights deviates by the root of the input's size") {
  const auto values = outputs_of("notes_variance", {}, first_params("notes_variance"));
  CHECK(deviation(values.at("y").reals) == near_to(128, 0.05));  // 512 draws; the notes' 18.9 is one
}

TEST_CASE("S19, S40: what initialisers draw") {
  const TensorMap params = first_params("notes_initial");
  const auto of = [&](const char* path) { return params.at(Name(path)).reals; };
  const double sigma = 1.0 / 128;
  CHECK(deviation(of("notes")) == near_to(sigma, 0.004));  // bounds at 384 sigma cut nothing
  CHECK(farthest(of("notes")) > 3 * sigma);
  CHECK(farthest(of("notes")) < 6 * sigma);
  constexpr double kept = 0.98658;  // the deviation of a normal number cut at three sigma
  CHECK(deviation(of("cut")) == near_to(kept * sigma, 0.004));
  CHECK(farthest(of("cut")) <= 3 * sigma);
  // One fan alone and Glorot's two differ by a constant.
  const double root = std::sqrt(1.0 / 512);
  CHECK(deviation(of("fan_in")) == near_to(kept * root, 0.004));
  CHECK(deviation(of("glorot")) == near_to(root, 0.004));
  CHECK(deviation(of("glorot_wide")) == near_to(std::sqrt(2.0 / 4) * root, 0.004));
}

TEST_CASE("S27, S28: an element's place in memory, and heads split off an axis") {
  const auto values = outputs_of(
      "notes_layout",
      {{"x", Tensor::of_reals({4, 4}, counted(16), DType::f32)}, {"h", Tensor::of_reals({2, 3, 8}, counted(48), DType::f32)}}, {});
  const Reals& memory = values.at("memory").reals;
  const double element = values.at("element").reals.at(0);
  CHECK(element == 1 * 4 + 2 * 1);
  CHECK(std::find(memory.begin(), memory.end(), element) - memory.begin() == 6);  // the seventh
  CHECK(values.at("split").shape == std::vector<int64_t>{2, 3, 2, 4});
  CHECK(values.at("split").reals == counted(48));
}

TEST_CASE("S37: the gradients of two layers are the loops that accumulate them") {
  constexpr size_t B = 3, D = 4, K = 2;
  const TensorMap params = first_params("notes_backward");
  const auto values = outputs_of("notes_backward", {{"x", Tensor::of_reals({B, D}, counted(B * D), DType::f64)}}, params);
  const Reals &h1 = values.at("h1").reals, &h2 = values.at("h2").reals, &d_h2 = values.at("d_h2").reals, &w2 = params.at(Name("w2")).reals;
  Reals d_w2(D * K), d_h1(B * D);
  for (size_t b = 0; b < B; ++b)
    for (size_t k = 0; k < K; ++k) {
      CHECK(d_h2[b * K + k] == near_to(2.0 / (B * K) * h2[b * K + k], 1e-12));
      for (size_t d = 0; d < D; ++d) {
        d_w2[d * K + k] += h1[b * D + d] * d_h2[b * K + k];
        d_h1[b * D + d] += w2[d * K + k] * d_h2[b * K + k];
      }
    }
  for (size_t i = 0; i < D * K; ++i) CHECK(values.at("d_w2").reals[i] == near_to(d_w2[i], 1e-12));
  for (size_t i = 0; i < B * D; ++i) CHECK(values.at("d_h1").reals[i] == near_to(d_h1[i], 1e-12));
}

TEST_CASE("S38, S39: the second layer's gradients are two products, the first layer's is one: data has none") {
  const double B = 1024, D = 256, K = 64;
  CHECK(backward_products("two_layer", 7) == Reals{2 * B * D * K, 2 * B * D * K});
  CHECK(backward_products("two_layer", 6) == Reals{2 * B * D * D});
  CHECK(backward_products("two_layer_dx", 6) == Reals{2 * B * D * D, 2 * B * D * D});
}

TEST_CASE("S07: numbers are f32 unless something else is asked for") {
  const json report = report_of("two_layer", "-");
  const json& tensors = report.at("parameters").at("tensors");
  CHECK(tensors.size() == 2);
  for (const json& tensor : tensors) CHECK(tensor.at("dtype") == "f32");
}

TEST_CASE("S25: e4m3 has no infinity to write") {
  const auto error_count = [](const std::string& dtype) {
    return compile_text("test.ein", "output y = cast(inf, " + dtype + ")", {}).diagnostics.error_count();
  };
  CHECK(error_count("f8e4m3") == 1);
  CHECK(error_count("f8e5m2") == 0);
}

TEST_CASE("S47: three times Chinchilla's forward blocks is 0.99 to 1.10 of 6 N D") {
  double least = 10, most = 0;
  for (const char* dims : {"layers=10 heads=10 head=64", "layers=20 heads=16 head=64", "layers=24 heads=10 head=128",
                           "layers=26 heads=14 head=128", "layers=28 heads=16 head=128", "layers=40 heads=28 head=128"}) {
    const json report = report_of("chinchilla_blocks", dims);
    double forward = 0;
    for (const json& component : report.at("components"))
      if (component.at("name") != "embed" && component.at("name") != "de-embed") forward += component.at("flops_per_token").get<double>();
    const double ratio = 3 * forward / (6 * report_of("chinchilla", dims).at("parameters").at("count").get<double>());
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  CHECK(least == near_to(0.99, 0.005));
  CHECK(most == near_to(1.10, 0.005));
}

TEST_CASE("S68: a transformer saves many times the B T D L elements of the linear model") {
  const auto saved = [](const std::string& model, const std::string& dims) {
    return report_of(model, dims).at("memory").at("saved_activations").at("bytes").get<double>();
  };
  const double linear = 4.0 * 1024 * 768 * 12;
  CHECK(saved("@nanogpt", "batch=1") > 20 * linear);
  // The linear model: the hidden inputs, the data and the prediction.
  CHECK(saved("deep_linear", "batch=1024 D=768 L=12") == linear + 4.0 * 1024 * (768 + 1));
}

TEST_CASE("S03, S23, X07, X08, X09: what the text shows of sizes is not what other tools show") {
  const auto shows = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  const std::string matrix = text_of("ffn_matrix", "-");
  CHECK(shows(matrix, "2.250 GiB"));
  CHECK_FALSE(shows(matrix, "2306"));
  CHECK_FALSE(shows(matrix, "2.3 GB"));
  struct Row {
    const char *model, *dims, *right, *wrong;
  };
  for (const Row& row : {Row{"qwen", "layers=80 embed=8192 heads=64 kv_heads=64 ffn=24576", "72.29 G", "56.1"},
                         Row{"@gpt2", "seq=2048 layers=96 heads=96 head=128", "174.6 G", "162.5"}, Row{"@llama", "-", "6.738 G", "6.57"}}) {
    const std::string text = text_of(row.model, row.dims);
    const std::string parameters = text.substr(text.find("Parameters"), 80);
    CHECK_MESSAGE(shows(parameters, row.right), row.model, parameters);
    CHECK_FALSE(shows(parameters, row.wrong));
  }
}
