// SPDX-License-Identifier: Apache-2.0
// Files that somebody shortens while they are mapped: a failure of data, never a signal, and other mappings are untouched.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/data/safetensors.h"
#include "runtime/data/token_file.h"
#include "tests/unit/data/test_files.h"

using namespace einc;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
constexpr size_t kTokens = 10'000;  // several pages

std::string tokens() {
  std::string bytes(2 * kTokens, '\1');
  return bytes;
}

bool says_cut(const std::string& failure) { return failure.find("the file was cut short while it was read") != std::string::npos; }

}  // namespace

TEST_CASE("tokens behind the cut are a failure, also those of the page that the file now ends in") {
  for (const uintmax_t left : {uintmax_t{0}, uintmax_t{100}, uintmax_t{4096}, uintmax_t{2 * kTokens - 1}}) {
    CAPTURE(left);
    const TestFile cut("cut.bin", tokens()), whole("whole.bin", tokens());
    const TokenFile file(cut.path()), other(whole.path());
    std::vector<int32_t> read(kTokens);
    file.read(0, read);
    CHECK(read.back() == 0x0101);
    std::filesystem::resize_file(cut.path(), left);
    CHECK(says_cut(failure_of([&] { file.read(0, read); })));
    CHECK(says_cut(failure_of([&] { file.read(kTokens - 1, std::span(read).first(1)); })));
    CHECK(says_cut(failure_of([&] { file.sample_hash(); })));
    other.read(0, read);
    CHECK(std::accumulate(read.begin(), read.end(), 0) == 0x0101 * static_cast<int>(kTokens));
  }
}

TEST_CASE("several threads that touch what is gone") {
  const TestFile cut("cut.bin", tokens());
  const TokenFile file(cut.path());
  std::filesystem::resize_file(cut.path(), 0);
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      std::vector<int32_t> read(kTokens);
      if (says_cut(failure_of([&] { file.read(0, read); }))) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 4);
}

TEST_CASE("a tensor behind the cut") {
  const std::vector<float> values(5000, 1);
  const TestFile weights("w.safetensors", "");
  write_safetensors(weights.path(), {{"w", DType::f32, {5000}, std::as_bytes(std::span(values))}});
  const SafetensorsFile file(weights.path());
  std::filesystem::resize_file(weights.path(), 4096);
  CHECK(says_cut(failure_of([&] { file.read(*file.find("w")); })));
}

TEST_CASE("a signal that has nothing to do with a mapping does what it did before") {
  const TestFile mapped("mapped.bin", tokens());
  const TokenFile file(mapped.path());  // our handler is in place
  for (const bool sent : {false, true}) {
    CAPTURE(sent);
    const TestFile foreign("foreign.bin", tokens());
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGALRM, SIG_DFL);
      alarm(10);  // rather than for ever
      if (sent) raise(SIGBUS);
      const int descriptor = open(foreign.path().c_str(), O_RDONLY);
      const void* at = mmap(nullptr, 2 * kTokens, PROT_READ, MAP_PRIVATE, descriptor, 0);
      std::filesystem::resize_file(foreign.path(), 0);
      _exit(*static_cast<const volatile char*>(at));
    }
    int state = 0;
    REQUIRE(waitpid(child, &state, 0) == child);
    // A sanitizer's own handler reports and exits.
    CHECK(((WIFSIGNALED(state) && WTERMSIG(state) == SIGBUS) || (kSanitized && WIFEXITED(state) && WEXITSTATUS(state) != 0)));
  }
}
