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

[[noreturn]] void become_einc(std::vector<char*>& words, Stack stack, const std::string& output, const std::string& errors) {
  const auto redirect = [](const std::string& path, int to) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || dup2(file, to) < 0) _exit(126);
  };
  const int empty = open("/dev/null", O_RDONLY);
  if (empty < 0 || dup2(empty, STDIN_FILENO) < 0) _exit(126);
  redirect(output, STDOUT_FILENO);
  redirect(errors, STDERR_FILENO);
  limit(RLIMIT_CPU, 10 * kSlowdown);  // a hang ends by a signal
  limit(RLIMIT_CORE, 0);
  if (kMemoryFactor == 1) limit(RLIMIT_AS, rlim_t{2} << 30);  // sanitizers reserve terabytes
  if (stack == Stack::small) limit(RLIMIT_STACK, rlim_t{256} << 10);
  setenv("EINC_CUDA_PATH", EINC_EMULATED_GPU, 1);
  execv(words[0], words.data());
  _exit(127);
}

}  // namespace

namespace {

// Polls, so that a child that has ended is not signalled.
int wait_with_signal(pid_t child, const Signal& signal, int& state, rusage& used) {
  while (!signal.when()) {
    if (const pid_t ended = wait4(child, &state, WNOHANG, &used); ended != 0) return ended;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  kill(child, signal.number);
  return wait4(child, &state, 0, &used);
}

Ran run(const std::vector<std::string>& arguments, Stack stack, const std::optional<Signal>& signal) {
  std::string binary = EINC_BINARY;
  std::vector<std::string> copies = arguments;
  std::vector<char*> words{binary.data()};
  for (std::string& argument : copies) words.push_back(argument.data());
  words.push_back(nullptr);
  const std::string stem = (fs::temp_directory_path() / ("einc_ran_" + std::to_string(getpid()))).string();
  const std::string output = stem + ".out", errors = stem + ".err";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) become_einc(words, stack, output, errors);
  int state = 0;
  rusage used{};
  const pid_t ended = signal ? wait_with_signal(child, *signal, state, used) : wait4(child, &state, 0, &used);
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

Ran run_einc(const std::vector<std::string>& arguments, Stack stack) { return run(arguments, stack, std::nullopt); }

Ran run_einc(const std::vector<std::string>& arguments, const Signal& signal) { return run(arguments, Stack::usual, signal); }

}  // namespace einc::test
