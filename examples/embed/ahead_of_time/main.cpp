// SPDX-License-Identifier: Apache-2.0
// Runs and trains examples/mlp.ein, which was compiled into this program. With a folder given, what goes in and comes out is
// written there as raw elements.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "classifier.h"

namespace {

void write(const std::string& folder, const char* name, const einc::TensorView& tensor) {
  if (folder.empty()) return;
  std::ofstream(folder + "/" + name, std::ios::binary).write(static_cast<const char*>(tensor.data()), tensor.bytes());
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "";
  einc::Session session(classifier_program());
  session.init(/*seed=*/5);
  std::vector<float> x(size_t{32} * 64);
  std::vector<int32_t> label(32);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < label.size(); ++i) label[i] = static_cast<int32_t>(i % 3);
  session.bind("x", std::span(x));
  session.set("label", label);
  write(folder, "x.f32", session.input("x"));
  write(folder, "label.i32", session.input("label"));

  session.run();
  write(folder, "logits.raw", session.output("logits"));
  session.step();
  write(folder, "training_logits.raw", session.output("logits"));
  const double first = session.loss();
  for (int step = 1; step < 100; ++step) session.step();
  std::printf("%s: loss %.4f, after a hundred steps %.4f\n", session.program().name().c_str(), first, session.loss());
  return session.loss() < first ? 0 : 1;
} catch (const einc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.kind());
}
