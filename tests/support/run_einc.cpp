// SPDX-License-Identifier: Apache-2.0
#include "tests/support/run_einc.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace einc::test {
namespace {

namespace fs = std::filesystem;

std::string take(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  fs::remove(path);
  return text.str();
}

void limit(decltype(RLIMIT_CPU) what, rlim_t value) {
  const rlimit both{value, value};
  setrlimit(what, &both);
}

int open_stream(Stream stream, const std::string& path) {
  if (stream == Stream::full) return open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (stream != Stream::broken) return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  int ends[2];
  if (pipe(ends) != 0) return -1;
  close(ends[0]);
  return ends[1];
}

void redirect(Stream stream, const std::string& path, int to) {
  const int file = open_stream(stream, path);
  if (file < 0 || dup2(file, to) < 0) _exit(126);
  if (file != to) close(file);
  if (stream == Stream::closed) close(to);
}

[[noreturn]] void become_einc(std::vector<char*>& words, Stack stack, const Surroundings& surroundings, const std::string& output,
                              const std::string& errors) {
  const int empty = open("/dev/null", O_RDONLY);
  if (empty < 0 || dup2(empty, STDIN_FILENO) < 0) _exit(126);
  close(empty);
  redirect(surroundings.output, output, STDOUT_FILENO);
  redirect(surroundings.errors, errors, STDERR_FILENO);
  limit(RLIMIT_CPU, 30 * kSlowdown);  // a hang ends by a signal; a training run took 12 s of a core that others used, too
  limit(RLIMIT_CORE, 0);
  if (kMemoryFactor == 1 && surroundings.launcher.empty())
    limit(RLIMIT_AS, surroundings.address_bytes.value_or(rlim_t{2} << 30));  // sanitizers reserve terabytes
  if (surroundings.file_bytes) limit(RLIMIT_FSIZE, *surroundings.file_bytes);
  if (stack == Stack::small) limit(RLIMIT_STACK, rlim_t{256} << 10);
  setenv("EINC_CUDA_PATH", EINC_EMULATED_GPU, 0);  // where a test has not chosen another
  execvp(words[0], words.data());
  _exit(127);
}

}  // namespace

namespace {

// Polls, so that nothing happens to a child that has ended.
int wait_and_act(pid_t child, const Surroundings& surroundings, int& state, rusage& used) {
  while (!surroundings.ready()) {
    if (const pid_t ended = wait4(child, &state, WNOHANG, &used); ended != 0) return ended;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  surroundings.act(child);
  return wait4(child, &state, 0, &used);
}

Ran run(const std::vector<std::string>& arguments, Stack stack, const Surroundings& surroundings) {
  std::vector<std::string> copies = surroundings.launcher;
  copies.emplace_back(EINC_BINARY);
  copies.insert(copies.end(), arguments.begin(), arguments.end());
  std::vector<char*> words;
  for (std::string& argument : copies) words.push_back(argument.data());
  words.push_back(nullptr);
  const std::string stem = (fs::temp_directory_path() / ("einc_ran_" + std::to_string(getpid()))).string();
  const std::string output = stem + ".out", errors = stem + ".err";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become_einc(words, stack, surroundings, output, errors);
  int state = 0;
  rusage used{};
  const pid_t ended = surroundings.ready ? wait_and_act(child, surroundings, state, used) : wait4(child, &state, 0, &used);
  if (ended != child) throw std::runtime_error("wait4 failed");
  Ran ran;
  if (WIFEXITED(state)) ran.status = WEXITSTATUS(state);
  if (WIFSIGNALED(state)) ran.signal = WTERMSIG(state);
  const auto seconds = [](const timeval& t) { return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6; };
  ran.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  ran.peak_kib = used.ru_maxrss;
  ran.output = take(output);
  ran.errors = take(errors);
  return ran;
}

}  // namespace

Ran run_einc(const std::vector<std::string>& arguments, Stack stack) { return run(arguments, stack, {}); }

Ran run_einc(const std::vector<std::string>& arguments, const Signal& signal) {
  Surroundings surroundings;
  surroundings.ready = signal.when;
  surroundings.act = [&](pid_t child) { kill(child, signal.number); };
  return run(arguments, Stack::usual, surroundings);
}

Ran run_einc(const std::vector<std::string>& arguments, const Surroundings& surroundings) {
  return run(arguments, Stack::usual, surroundings);
}

}  // namespace einc::test
