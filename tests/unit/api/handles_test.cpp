// SPDX-License-Identifier: Apache-2.0
// Handles that hold nothing, memory at the null address, threads that the system refuses: Error, and the process lives on.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>

#include "runtime/program/image.h"
#include "tests/support/run_einc.h"
#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

std::optional<ErrorKind> kind_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.kind();
  }
  return std::nullopt;
}

Session made() { return Session(compile_text(kLinear, options(Target::reference)), {.threads = 1}); }

}  // namespace

TEST_CASE("a program or session that was moved from throws, and can be assigned to") {
  Model model = compile_text(kLinear, options(Target::reference));
  const Model other = std::move(model);
  const std::vector<std::function<void()>> of_model{
      [&] { (void)model.name(); },   [&] { (void)model.dims(); },    [&] { (void)model.inputs(); }, [&] { (void)model.params(); },
      [&] { (void)model.states(); }, [&] { (void)model.outputs(); }, [&] { (void)model.trains(); }, [&] { (void)model.warnings(); },
      [&] { (void)model.report(); }, [&] { Session session(model); }};
  for (const auto& call : of_model) CHECK(kind_of(call) == ErrorKind::usage);
  model = other;
  CHECK(model.trains());

  Session session = made(), taken = std::move(session);
  const std::vector<float> x(12), y(4);
  std::vector<float> w(3);
  const std::vector<std::function<void()>> of_session{
      [&] { session.init(1); },
      [&] { session.set("x", x); },
      [&] {
        session.set("x", TensorView(DType::f32, {4, 3}, x.data()));
      },
      [&] { session.load("w.safetensors"); },
      [&] { session.save("w.safetensors"); },
      [&] { session.save_checkpoint("/nowhere/folder"); },
      [&] { (void)session.steps(); },
      [&] { session.bind("w", std::span<float>(w)); },
      [&] { session.bind("w", DType::f32, {3}, w.data()); },
      [&] { session.bind_input("x", std::span<const float>(x)); },
      [&] { session.bind("x", nullptr); },
      [&] { session.share(taken); },
      [&] { taken.share(session); },
      [&] { session.run(); },
      [&] { (void)session.evaluate(); },
      [&] { session.step(); },
      [&] { (void)session.input("x"); },
      [&] { (void)session.param("w"); },
      [&] { (void)session.state("seen"); },
      [&] { (void)session.output("p"); },
      [&] { (void)session.gradient("w"); },
      [&] { (void)session.read("w"); },
      [&] { (void)session.loss(); },
      [&] { (void)session.program().name(); },
  };
  for (size_t i = 0; i < of_session.size(); ++i) {
    CAPTURE(i);
    CHECK(kind_of(of_session[i]) == ErrorKind::usage);
  }
  session = std::move(taken);
  session.set("x", x);
  session.set("y", y);
  session.step();
  session = made();  // over one that holds something
  session.init(1);
}

TEST_CASE("memory at the null address is refused where elements are needed") {
  Session session = made();
  CHECK(kind_of([&] { session.set("x", std::span<const float>(static_cast<const float*>(nullptr), 12)); }) == ErrorKind::usage);
  CHECK(kind_of([&] { session.set("x", TensorView(DType::f32, {4, 3}, nullptr)); }) == ErrorKind::usage);
  CHECK(kind_of([&] { session.bind("w", std::span<float>(static_cast<float*>(nullptr), 3)); }) == ErrorKind::usage);
  CHECK(kind_of([&] { session.bind("w", DType::f32, {3}, nullptr); }) == ErrorKind::usage);
  CHECK(kind_of([&] { session.bind_input("x", std::span<const float>(static_cast<const float*>(nullptr), 12)); }) == ErrorKind::usage);
  CHECK(kind_of([&] { (void)TensorView(DType::f32, {2}, nullptr).as<float>(); }) == ErrorKind::usage);
  CHECK(kind_of([&] { (void)TensorView(DType::f32, {2}, nullptr).to_doubles(); }) == ErrorKind::usage);
  CHECK(TensorView(DType::f32, {0}, nullptr).as<float>().empty());
  CHECK(kind_of([&] { Program program(CompiledObject{kObjectVersion, nullptr, nullptr, 0, nullptr, 0}); }) == ErrorKind::usage);
}

TEST_CASE("more threads than the limit, or than the system gives, are an error") {
  const Model model = compile_text(kLinear, options(Target::reference));
  CHECK(kind_of([&] { Session session(model, {.threads = 1025}); }) == ErrorKind::resource);
  CHECK(kind_of([&] { Session session(model, {.team = {.index = [] { return 0; }}}); }) == ErrorKind::usage);
  CHECK(kind_of([&] { Session session(model, {.threads = 1'000'000}); }) == ErrorKind::resource);
  Session(model, {.threads = 1024}).init(1);
  if (kMemoryFactor > 1) return;  // a sanitizer reserves terabytes
  // In a process of its own: stacks of 8 MiB do not fit into what is left to it.
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    rlim_t pages = 0;  // that the process has already: other tests' and the threads' above
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{1} << 30);
    const rlimit few{most, most};
    setrlimit(RLIMIT_AS, &few);
    const bool refused = kind_of([&] { Session session(model, {.threads = 500}); }) == ErrorKind::resource;
    const bool lives = !kind_of([&] { Session session(model, {.threads = 2}); });
    _exit(refused && lives ? 0 : 1);
  }
  int state = 0;
  REQUIRE(waitpid(child, &state, 0) == child);
  CHECK(WIFEXITED(state));
  CHECK(WEXITSTATUS(state) == 0);
}
