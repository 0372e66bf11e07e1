// SPDX-License-Identifier: Apache-2.0
// Trains the program in a file for a hundred steps on made-up data, and keeps what it learnt.
//   training ../mlp.ein
#include <einc/einc.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) try {
  einc::CompileOptions options;
  options.dims = {{"batch", 32}, {"features", 20}, {"hidden", 24}, {"classes", 4}};
  const einc::Model model = einc::compile_file(argc > 1 ? argv[1] : "examples/mlp.ein", options);

  einc::Session session(model);
  session.init(/*seed=*/1);
  std::vector<float> x(32 * 20);
  std::vector<int32_t> label(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.7F * static_cast<float>(i));
  for (size_t i = 0; i < label.size(); ++i) label[i] = x[20 * i] > 0 ? (x[20 * i + 1] > 0 ? 3 : 2) : (x[20 * i + 1] > 0 ? 1 : 0);
  session.set("x", x);
  session.set("label", label);

  session.step();
  const double first = session.loss();
  for (int step = 1; step < 100; ++step) session.step();
  session.run();
  std::printf("loss %.4f, after a hundred steps %.4f; accuracy %.2f\n", first, session.loss(),
              double{session.output("accuracy").as<float>()[0]});
  session.save("mlp.safetensors");
  einc::Session again(model);
  again.load("mlp.safetensors");
  again.set("x", x);
  again.set("label", label);
  again.run();
  const bool same = again.output("logits").to_doubles() == session.output("logits").to_doubles();
  std::printf("saved and loaded: %s logits\n", same ? "the same" : "other");
  return session.loss() < first / 2 && same ? 0 : 1;
} catch (const einc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.kind());
}
