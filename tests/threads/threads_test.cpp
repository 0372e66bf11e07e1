// SPDX-License-Identifier: Apache-2.0
// The runtime under ThreadSanitizer: the pool that divides launches, sessions side by side, batches filled ahead, checkpoints meanwhile.
// The runtime's sources are compiled for it; the program is machine code made ahead of time, which ThreadSanitizer does not see.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "runtime/train/prefetch.h"
#include "threads_program.h"

using namespace einc;

namespace {

// Numbers below the vocabulary's size, by batch and place.
class Walk : public Batches {
 public:
  void fill(uint64_t batch, std::span<const InputSlot> inputs) const override {
    for (const InputSlot& slot : inputs)
      for (int64_t i = 0; i < slot.info->count(); ++i) {
        const auto value = static_cast<int32_t>((batch * 7 + static_cast<uint64_t>(i) * 5 + slot.info->name.size()) % 48);
        std::memcpy(slot.memory + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
      }
  }
  std::string origin(uint64_t, std::string_view, uint64_t) const override { return ""; }
  uint64_t batches_per_epoch() const override { return 0; }
  std::string description() const override { return "a walk"; }
};

std::vector<float> bits_of(const Session& session) {
  std::vector<float> all;
  for (const TensorInfo& param : session.program().params()) {
    const std::span<const float> values = session.param(param.name).as<float>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

void train(Session& session, uint64_t first, uint64_t steps) {
  const std::vector<TensorInfo> inputs = session.program().inputs();
  Prefetch batches(std::make_shared<Walk>(), inputs, first);
  for (uint64_t step = 0; step < steps; ++step) {
    const std::span<const InputSlot> batch = batches.next();
    for (const InputSlot& slot : batch)
      session.set(slot.info->name, std::span(reinterpret_cast<const int32_t*>(slot.memory), static_cast<size_t>(slot.info->count())));
    session.step();
    if (step % 4 == 1) session.evaluate();
  }
}

std::vector<float> trained(const Program& program, int threads, uint64_t steps) {
  Session session(program, {.threads = threads});
  session.init(3);
  train(session, 0, steps);
  return bits_of(session);
}

}  // namespace

TEST_CASE("a session on several threads gives the bits of one") {
  const Program program = threads_program_program();
  const std::vector<float> alone = trained(program, 1, 12);
  for (const int threads : {2, 3, 5}) CHECK(trained(program, threads, 12) == alone);
}

TEST_CASE("sessions of one program on threads of their own") {
  const Program program = threads_program_program();
  const std::vector<float> alone = trained(program, 1, 8);
  std::vector<std::vector<float>> results(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < results.size(); ++i)
    threads.emplace_back([&, i] { results[i] = trained(program, static_cast<int>(1 + i % 2), 8); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<float>& result : results) CHECK(result == alone);
}

TEST_CASE("a session is made, moved, saved and ended on different threads while another trains") {
  namespace fs = std::filesystem;
  const Program program = threads_program_program();
  const fs::path folder = fs::temp_directory_path() / fmt::format("einc_threads_{}", getpid());
  std::thread beside([&] { trained(program, 2, 10); });
  auto session = std::make_unique<Session>(program, SessionOptions{.threads = 2});
  session->init(3);
  std::thread([&] { train(*session, 0, 4); }).join();
  Session moved = std::move(*session);
  session.reset();
  std::thread([&] { moved.save_checkpoint(folder.string()); }).join();
  std::thread([&] {
    Session other(program, {.threads = 3});
    REQUIRE(other.resume(folder.string()));
    CHECK(other.steps() == 4);
    train(other, 4, 4);
    train(moved, 4, 4);
    CHECK(bits_of(other) == bits_of(moved));
  }).join();
  beside.join();
  fs::remove_all(folder);
}

TEST_CASE("batches are given up while one is being filled") {
  const Program program = threads_program_program();
  for (int i = 0; i < 50; ++i) {
    Prefetch batches(std::make_shared<Walk>(), program.inputs(), 0);
    for (int k = 0; k < i % 3; ++k) batches.next();
  }
}
