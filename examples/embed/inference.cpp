// SPDX-License-Identifier: Apache-2.0
// Compiles a program from a string, looks at it, and computes an output from memory that is not copied.
#include <einc/einc.h>

#include <cstdio>
#include <vector>

constexpr const char* kProgram = R"(
dim batch, features = 4, classes = 3
input x: f32[batch features]
param w: [features classes] ~ xavier(fan_in = features, fan_out = classes)
output probability = softmax(einsum(x, w, "batch features, features classes -> batch classes"), classes)
)";

int main() try {
  einc::CompileOptions options;
  options.dims = {{"batch", 2}};
  options.purpose = einc::Purpose::inference;
  const einc::Model model = einc::compile_text(kProgram, options, "classifier.ein");

  for (const einc::TensorInfo& tensor : model.inputs()) {
    std::printf("input %s: %s[", tensor.name.c_str(), std::string(to_string(tensor.dtype)).c_str());
    for (size_t i = 0; i < tensor.axes.size(); ++i)
      std::printf("%s%s=%lld", i > 0 ? " " : "", tensor.axes[i].c_str(), static_cast<long long>(tensor.shape[i]));
    std::printf("]\n");
  }
  std::printf("%s FLOPs = %s\n", model.report().forward.total.symbolic.c_str(), model.report().forward.total.digits.c_str());

  einc::Session session(model);
  session.init(/*seed=*/1);
  std::vector<float> x = {1, 2, 3, 4, -1, 0, 1, 2};
  session.bind("x", std::span(x));  // no copy: what x holds at run() counts
  session.run();
  const auto probability = session.output("probability").as<float>();
  for (size_t row = 0; row < 2; ++row)
    std::printf("%.6f %.6f %.6f\n", double{probability[3 * row]}, double{probability[3 * row + 1]}, double{probability[3 * row + 2]});
} catch (const einc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.kind());
}
