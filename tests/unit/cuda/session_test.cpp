// SPDX-License-Identifier: Apache-2.0
// Sessions whose program runs on the GPU: the values that the host reads and writes are those that the GPU works on.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <memory>
#include <thread>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "tests/unit/cuda/trained_program.h"

namespace einc {
namespace {

using Four = std::array<float, 4>;

Four four(const void* values) {
  Four result;
  std::memcpy(result.data(), values, sizeof result);
  return result;
}
Four four(const TensorView& view) { return four(view.data()); }

struct Ready : SessionRep {
  Ready() : SessionRep(trained_program(), 1) {
    initialize(1);
    give({1, 2, 3, 4}, {0, 2, 0, 5}, {0, 1, 2, 3});
  }
  void give(Four x, Four t, std::array<int32_t, 4> ids) {
    set(kX, x.data());
    set(kT, t.data());
    set(kIds, ids.data());
  }
  Four w() const { return four(memory(kW)); }
  float count() const { return *static_cast<const float*>(memory(kCount)); }
  float loss() const { return *static_cast<const float*>(runner().loss(Part::training).data()); }
};

// Of ids 0 1 2 3: w after a step from ones.
constexpr Four kStepped{1 - 0.25f, 1, 1 - 0.25f * 9, 1 + 0.25f * 4};

unsigned long long copies_back() { return emulator::calls("cuMemcpyDtoHAsync_v2"); }

}  // namespace

TEST_CASE("a step on the GPU changes params and states that the host then reads") {
  Ready session;
  session.step();
  CHECK(session.loss() == 1 + 0 + 9 + 1);
  CHECK(session.w() == kStepped);
  CHECK(session.count() == 1);
  CHECK(four(session.runner().output(0)) == Four{1, 2, 3, 4});
  CHECK(four(session.runner().gradient(0)) == Four{2, 0, 18, -8});
  session.step();
  CHECK(session.count() == 2);
  CHECK(four(session.runner().output(0)) == Four{kStepped[0] * 1, kStepped[1] * 2, kStepped[2] * 3, kStepped[3] * 4});
}

TEST_CASE("values that the host sets between steps are used, and the others stay on the GPU") {
  Ready session;
  session.step();
  const Four w{5, 6, 7, 8};
  session.set(kW, w.data());
  session.give({1, 1, 1, 1}, {0, 0, 0, 0}, {3, 3, 0, 1});
  session.step();
  CHECK(session.loss() == 64 + 64 + 25 + 36);
  CHECK(session.count() == 2);
  const auto before = copies_back();
  session.memory(kCount);
  CHECK(copies_back() == before);  // it is here already
  session.initialize(1);
  CHECK(session.w() == Four{1, 1, 1, 1});
}

TEST_CASE("inputs may lie in another place at each run") {
  Ready session;
  Four x{1, 1, 1, 1}, other{2, 2, 2, 2};
  session.bind(kX, x.data(), nullptr);
  session.run();
  CHECK(four(session.runner().output(0)) == x);
  session.bind(kX, other.data(), nullptr);
  session.run();
  CHECK(four(session.runner().output(0)) == other);
  other = {3, 3, 3, 3};  // written there without a word
  session.run();
  CHECK(four(session.runner().output(0)) == other);
  session.unbind(kX);
  session.run();
  CHECK(four(session.runner().output(0)) == Four{1, 2, 3, 4});
}

TEST_CASE("memory of the caller's holds what a step made when it returns, and what the caller writes there counts") {
  Ready session;
  Four w{1, 1, 1, 1};
  session.bind(kW, w.data(), nullptr);
  session.step();
  CHECK(w == kStepped);
  w = {2, 2, 2, 2};
  session.run();
  CHECK(four(session.runner().output(0)) == Four{2, 4, 6, 8});
  session.unbind(kW);
  CHECK(session.w() == Four{1, 1, 1, 1});
}

TEST_CASE("after the first step a step is two graphs, and runs no call of its own per kernel") {
  Ready session;
  session.step();
  session.step();
  const auto kernels = emulator::calls("cuLaunchKernel"), graphs = emulator::calls("cuGraphLaunch"),
             allocations = emulator::calls("cuMemAlloc_v2");
  session.step();
  CHECK(emulator::calls("cuLaunchKernel") == kernels);
  CHECK(emulator::calls("cuGraphLaunch") == graphs + 2);
  CHECK(emulator::calls("cuMemAlloc_v2") == allocations);
  CHECK(session.count() == 3);
}

TEST_CASE("a first run is no graph, and neither is the first one after a buffer has moved") {
  Ready session;
  const auto captures = emulator::calls("cuStreamBeginCapture_v2");
  session.step();
  CHECK(emulator::calls("cuStreamBeginCapture_v2") == captures);
  session.step();
  CHECK(emulator::calls("cuStreamBeginCapture_v2") == captures + 2);
  CHECK(session.count() == 2);
}

TEST_CASE("each thread may use a session") {
  auto session = std::make_unique<Ready>();
  session->step();
  const auto on_another_thread = [](const auto& work) { std::thread(work).join(); };
  on_another_thread([&] { CHECK(session->w() == kStepped); });
  on_another_thread([&] { CHECK(four(session->runner().output(0)) == Four{1, 2, 3, 4}); });
  on_another_thread([&] { session->step(); });
  on_another_thread([&] { CHECK(session->numerics(Part::training).find("emulated GPU") == 0); });
  Four w{1, 1, 1, 1};
  on_another_thread([&] { session->bind(kW, w.data(), nullptr); });
  session->step();
  CHECK(w == kStepped);
  const size_t held = emulator::used_memory();
  on_another_thread([&] { session.reset(); });
  CHECK(emulator::used_memory() < held);
}

TEST_CASE("a loss that is not finite leaves params and states as they were, and its cause is named") {
  Ready session;
  session.step();
  session.give({1, INFINITY, 3, 4}, {0, 2, 0, 5}, {0, 1, 2, 3});
  CHECK(session.train(Part::training) == NonFinite::loss);
  CHECK(session.w() == kStepped);
  CHECK(session.count() == 1);
  CHECK(session.find_fault(Part::training, NonFinite::loss) == "the input 'x' holds inf before the step, at [1]");
  session.give({1e30f, 2, 3, 4}, {0, 2, 0, 5}, {0, 1, 2, 3});
  CHECK(session.train(Part::training) == NonFinite::loss);
  CHECK(session.find_fault(Part::training, NonFinite::loss) == "'loss' (trained.ein:4:1) is the first tensor that holds inf");
  session.give({1, 2, 3, 4}, {0, 2, 0, 5}, {0, 1, 2, 3});
  CHECK(session.train(Part::training) == NonFinite::nothing);
  CHECK(session.count() == 2);
}

TEST_CASE("an index out of range is reported before params change") {
  Ready session;
  session.give({1, 2, 3, 4}, {0, 2, 0, 5}, {0, 1, 9, -2});
  CHECK_THROWS_WITH_AS(session.step(), "index out of range: 'ids' at [2] is 9, but axis 'n' of 'w' has size 4 (trained.ein:3:9)",
                       RuntimeFailure);
  CHECK(session.w() == Four{1, 1, 1, 1});
  session.give({1, 2, 3, 4}, {0, 2, 0, 5}, {0, 1, 2, 3});
  session.step();
  CHECK(session.w() == kStepped);
}

TEST_CASE("an evaluation changes nothing, and outputs are still those of the step") {
  Ready session;
  session.step();
  const float after = 0.75f * 0.75f + 0 + 3.75f * 3.75f + 3 * 3;
  CHECK(session.evaluate(0) == after);
  CHECK(four(session.runner().output(0)) == Four{1, 2, 3, 4});
  CHECK(session.w() == kStepped);
  CHECK(session.count() == 1);
}

TEST_CASE("sessions that share params work on the same values, on the GPU too") {
  Ready trained, reader;
  reader.share(kW, trained, kW);
  trained.step();
  const auto before = copies_back();
  reader.run();
  CHECK(four(reader.runner().output(0)) == Four{kStepped[0], kStepped[1] * 2, kStepped[2] * 3, kStepped[3] * 4});
  CHECK(copies_back() == before + 2);  // the control of the run and its output: no param
  CHECK(reader.w() == kStepped);
  const Four w{4, 3, 2, 1};
  trained.set(kW, w.data());
  reader.run();
  CHECK(four(reader.runner().output(0)) == Four{4, 6, 6, 4});
}

TEST_CASE("a session that ends gives all its memory back and brings nothing over that nobody reads") {
  const size_t held = emulator::used_memory();
  unsigned long long before = 0;
  {
    Ready session;
    session.step();
    before = copies_back();
  }
  CHECK(copies_back() == before);
  CHECK(emulator::used_memory() == held);
}

TEST_CASE("the parts of a program share cuBLASLt's workspace") {
  Ready session;
  session.step();
  const size_t with_one = emulator::used_memory();
  session.run();
  CHECK(emulator::used_memory() - with_one < 5 << 20);
  CHECK(TrainedProgram::make().planned_bytes(1) > 5 << 20);
  CHECK(TrainedProgram::make().planned_bytes(1) < 10 << 20);
}

TEST_CASE("a GPU that is full says what all the memory is for") {
  Ready session;
  emulator::set_memory(emulator::used_memory() + 256);
  CHECK_THROWS_WITH_AS(session.step(),
                       "the training step's own memory takes 0.00 GB, and of the 4.29 GB of emulated GPU only 0.00 GB are free\n"
                       "  params 0.00 GB\n  states 0.00 GB\n  inputs 0.00 GB\n  the forward run 0.00 GB\n  the evaluation 0.00 GB\n"
                       "  the training step 0.00 GB\n  the workspace of cuBLASLt 0.01 GB\n  set smaller dims, or a batch in micro-batches",
                       RuntimeFailure);
  emulator::set_memory(size_t{4} << 30);
  session.step();
  CHECK(session.w() == kStepped);
}

}  // namespace einc
