// SPDX-License-Identifier: Apache-2.0
// Time and peak memory of whole `einc FILE --report` processes on large models: `scripts/bench` runs it. Prints the median of
// the runs with the spread beside the goal; a measurement, not a test.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace {

struct Case {
  const char* name;
  std::vector<std::string> arguments;
  double goal_seconds;
  double goal_megabytes;
};

struct Measurement {
  double seconds;
  double megabytes;
};

Measurement run_once(const std::string& binary, const std::vector<std::string>& arguments) {
  std::vector<char*> argv{const_cast<char*>(binary.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    const int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execv(binary.c_str(), argv.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fmt::print(stderr, "a run failed: exit status {}\n", WEXITSTATUS(status));
  return {seconds, static_cast<double>(usage.ru_maxrss) / 1024};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: report_bench EINC_BINARY EXAMPLES_FOLDER\n");
    return 2;
  }
  const std::string binary = argv[1], examples = std::string(argv[2]) + "/";
  const std::vector<Case> cases{
      {"two-layer", {examples + "two_layer.ein", "--report"}, 0.1, 50},
      {"GPT-2 small", {examples + "gpt2.ein", "--report"}, 0.3, 200},
      {"GPT-2 XL, 48 layers", {examples + "gpt2.ein", "-D", "layers=48", "-D", "heads=25", "--report"}, 0.3, 200},
      {"Llama 405B, 126 layers",
       {examples + "llama.ein", "-D", "layers=126", "-D", "embed=16384", "-D", "heads=128", "-D", "kv_heads=8", "-D", "ffn=53248", "-D",
        "vocab=128256", "--report"},
       1.0,
       1000},
      {"plan of 405B, 16,384 devices",
       {examples + "llama.ein", "-D", "layers=126", "-D", "embed=16384", "-D", "heads=128", "-D", "kv_heads=8", "-D", "ffn=53248", "-D",
        "vocab=128256", "-D", "seq=8192", "-D", "batch=2048", "--plan", "16384xh100-sxm"},
       2.0,
       1000},
      {"order of 12 operands", {examples + "../tests/bench/twelve_operands.ein", "--report"}, 0.05, 50},
  };
  constexpr int kRuns = 7;
  fmt::print("{:<28} {:>10} {:>19} {:>8} {:>10} {:>8}\n", "einc FILE --report", "median s", "min .. max s", "goal s", "peak MB", "goal MB");
  for (const Case& c : cases) {
    std::vector<double> seconds;
    double megabytes = 0;
    run_once(binary, c.arguments);  // warms the page cache
    for (int i = 0; i < kRuns; ++i) {
      const Measurement m = run_once(binary, c.arguments);
      seconds.push_back(m.seconds);
      megabytes = std::max(megabytes, m.megabytes);
    }
    std::sort(seconds.begin(), seconds.end());
    fmt::print("{:<28} {:>10.3f} {:>8.3f} .. {:>7.3f} {:>8.2f} {:>10.1f} {:>8.0f}\n", c.name, seconds[kRuns / 2], seconds.front(),
               seconds.back(), c.goal_seconds, megabytes, c.goal_megabytes);
  }
  return 0;
}
