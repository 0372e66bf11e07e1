// SPDX-License-Identifier: Apache-2.0
// One compiled model, two sessions on two threads: each has values of its own, and equal seeds give equal bits.
//   two_sessions ../two_layer.ein
#include <einc/einc.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

std::vector<float> train(const einc::Model& model, int threads) {
  einc::Session session(model, {.threads = threads});
  session.init(/*seed=*/3);
  std::vector<float> x(static_cast<size_t>(model.inputs().front().count()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17;
  session.set("x", x);
  for (int step = 0; step < 20; ++step) session.step();
  const auto w = session.param("w1").as<float>();
  return {w.begin(), w.end()};
}

}  // namespace

int main(int argc, char** argv) try {
  einc::CompileOptions options;
  options.dims = {{"batch", 64}, {"width", 48}, {"out", 16}};
  const einc::Model model = einc::compile_file(argc > 1 ? argv[1] : "examples/two_layer.ein", options);
  std::vector<float> a, b;
  std::thread first([&] { a = train(model, 1); }), second([&] { b = train(model, 2); });
  first.join();
  second.join();
  const bool equal = a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
  std::printf("two sessions, %zu weights: %s bits\n", a.size(), equal ? "equal" : "different");
  return equal ? 0 : 1;
} catch (const einc::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.kind());
}
