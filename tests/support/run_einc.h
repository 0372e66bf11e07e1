// SPDX-License-Identifier: Apache-2.0
// Runs the einc binary the way a user does, under limits of its own, and measures it.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace einc::test {

struct Ran {
  int status = -1;  // exit status; -1 when a signal ended it
  int signal = 0;
  double cpu_seconds = 0;
  int64_t peak_kib = 0;
  std::string output, errors;
};

enum class Stack : uint8_t { usual, small };  // small: 256 KiB

Ran run_einc(const std::vector<std::string>& arguments, Stack stack = Stack::usual);

// What it is sent while it runs, unless it ends before: as soon as `when` says so, which is asked again and again. A run is at a known
// place then on any machine and in any build, which no time could say.
struct Signal {
  int number;
  std::function<bool()> when;
};
Ran run_einc(const std::vector<std::string>& arguments, const Signal& signal);

// Where a stream of the process leads: to a file whose text Ran holds, to a full disk, to no descriptor, or to a pipe that nobody reads.
enum class Stream : uint8_t { kept, full, closed, broken };

struct Surroundings {
  Stream output = Stream::kept, errors = Stream::kept;
  std::optional<uint64_t> file_bytes = {};     // no file gets longer
  std::optional<uint64_t> address_bytes = {};  // left out where a sanitizer reserves terabytes
  // As soon as `ready` holds, `act` happens to the process; unless it ends before.
  std::function<bool()> ready = {};
  std::function<void(pid_t)> act = {};
  std::vector<std::string> launcher = {};  // a command that starts einc
};
Ran run_einc(const std::vector<std::string>& arguments, const Surroundings& surroundings);

// A build with sanitizers is slower, and its shadow memory counts as used.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 20;
inline constexpr int kMemoryFactor = 8;
#else
inline constexpr int kSlowdown = 1;
inline constexpr int kMemoryFactor = 1;
#endif

}  // namespace einc::test
