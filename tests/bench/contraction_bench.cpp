// SPDX-License-Identifier: Apache-2.0
// Contractions compiled by einc beside OpenBLAS and oneDNN (those whose libraries are installed), in one process, turn by turn,
// with the machine's measured multiply-add peak: `scripts/bench contraction`. A measurement, not a test.
//   contraction_bench [threads] [filter]
#include <dlfcn.h>
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "compiler/elaborate/elaborate.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "dsl/render.h"
#include "runtime/cpu/cpu_features.h"
#include "runtime/executor/executor.h"

using namespace einc;

namespace {

// One thread is measured by its own time on a processor, which other processes do not lengthen; several by the clock.
double seconds_now(int threads) {
  timespec t{};
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// --- the peak ---

constexpr int kPeakTurns = 20000, kSums = 24;

[[gnu::target("avx512f")]] void multiply_add_512() {
  asm volatile("vpxorq %%zmm30, %%zmm30, %%zmm30\n vpxorq %%zmm31, %%zmm31, %%zmm31\n" ::: "xmm0");
  for (int i = 0; i < kPeakTurns; ++i)
    asm volatile(
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm0\n vfmadd231ps %%zmm30, %%zmm31, %%zmm1\n vfmadd231ps %%zmm30, %%zmm31, %%zmm2\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm3\n vfmadd231ps %%zmm30, %%zmm31, %%zmm4\n vfmadd231ps %%zmm30, %%zmm31, %%zmm5\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm6\n vfmadd231ps %%zmm30, %%zmm31, %%zmm7\n vfmadd231ps %%zmm30, %%zmm31, %%zmm8\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm9\n vfmadd231ps %%zmm30, %%zmm31, %%zmm10\n vfmadd231ps %%zmm30, %%zmm31, %%zmm11\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm12\n vfmadd231ps %%zmm30, %%zmm31, %%zmm13\n vfmadd231ps %%zmm30, %%zmm31, %%zmm14\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm15\n vfmadd231ps %%zmm30, %%zmm31, %%zmm16\n vfmadd231ps %%zmm30, %%zmm31, %%zmm17\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm18\n vfmadd231ps %%zmm30, %%zmm31, %%zmm19\n vfmadd231ps %%zmm30, %%zmm31, %%zmm20\n"
        "vfmadd231ps %%zmm30, %%zmm31, %%zmm21\n vfmadd231ps %%zmm30, %%zmm31, %%zmm22\n vfmadd231ps %%zmm30, %%zmm31, %%zmm23\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
              "xmm15");
}

[[gnu::target("avx2,fma")]] void multiply_add_256() {
  asm volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n vpxor %%ymm15, %%ymm15, %%ymm15\n" ::: "xmm14", "xmm15");
  for (int i = 0; i < kPeakTurns * 2; ++i)
    asm volatile(
        "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n"
        "vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
        "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n"
        "vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n vfmadd231ps %%ymm14, %%ymm15, %%ymm10\n vfmadd231ps %%ymm14, %%ymm15, %%ymm11\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
              "xmm15");
}

[[gnu::target("avx512f,avx512bf16")]] void multiply_pairs() {
  asm volatile("vpxorq %%zmm30, %%zmm30, %%zmm30\n vpxorq %%zmm31, %%zmm31, %%zmm31\n" ::: "xmm0");
  for (int i = 0; i < kPeakTurns * 2; ++i)
    asm volatile(
        "vdpbf16ps %%zmm30, %%zmm31, %%zmm0\n vdpbf16ps %%zmm30, %%zmm31, %%zmm1\n vdpbf16ps %%zmm30, %%zmm31, %%zmm2\n"
        "vdpbf16ps %%zmm30, %%zmm31, %%zmm3\n vdpbf16ps %%zmm30, %%zmm31, %%zmm4\n vdpbf16ps %%zmm30, %%zmm31, %%zmm5\n"
        "vdpbf16ps %%zmm30, %%zmm31, %%zmm6\n vdpbf16ps %%zmm30, %%zmm31, %%zmm7\n vdpbf16ps %%zmm30, %%zmm31, %%zmm8\n"
        "vdpbf16ps %%zmm30, %%zmm31, %%zmm9\n vdpbf16ps %%zmm30, %%zmm31, %%zmm10\n vdpbf16ps %%zmm30, %%zmm31, %%zmm11\n" ::
            : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11");
}

// What multiplies: what einc chooses, or pairs of bf16 in vectors whatever else the processor has.
enum class Unit { chosen, pairs };

// GFLOP/s of independent multiply-adds of f32, or of pairs of bf16, on `threads` threads, the best of several rounds.
double peak(int threads, int rounds, Unit unit = Unit::chosen) {
  const bool wide = __builtin_cpu_supports("avx512f");
  const auto turns = [&] { unit == Unit::pairs ? multiply_pairs() : wide ? multiply_add_512() : multiply_add_256(); };
  const double flops = static_cast<double>(threads) * kPeakTurns * kSums * 2 * (unit == Unit::pairs ? 32 : wide ? 16 : 8);
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const double start = seconds_now(threads);
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(turns);
    turns();
    for (std::thread& t : others) t.join();
    best = std::max(best, flops / (seconds_now(threads) - start) * 1e-9);
  }
  return best;
}

// --- candidates ---

struct Case {
  const char* name;
  int64_t batch, m, n, k;
  const char *left, *right;  // patterns without the batch
  const char* dtype = "f32";
  Unit unit = Unit::chosen;
};

class EincCase {
 public:
  EincCase(const Case& c, int threads) {
    const std::string batch = c.batch > 1 ? "g " : "";
    const std::string text = fmt::format(
        "dim g = {}, m = {}, n = {}, k = {}\ninput a: {}[{}{}]\ninput b: {}[{}{}]\noutput y = einsum(a, b, \"{}{}, {}{} -> {}m n\")\n",
        c.batch, c.m, c.n, c.k, c.dtype, batch, c.left, c.dtype, batch, c.right, batch, c.left, batch, c.right, batch);
    SourceMap sources;
    Diagnostics diagnostics;
    std::optional<Graph> graph = elaborate(sources, *sources.add("bench.ein", text, diagnostics), {{}, {}}, diagnostics);
    if (!graph) fmt::print("{}", render_text(sources, diagnostics)), std::exit(1);
    graph_ = assign_precision(simplify(expand(*graph, Roots::training), Roots::training), Policy::inherit);
    CpuOptions options;
    options.cache.clear();
    if (c.unit == Unit::pairs) {
      options.processor = native_processor();
      options.processor->matrix_tiles = false, options.processor->bf16_pairs = true;
    }
    program_ = std::make_unique<CpuProgram>(graph_, Bindings{}, options);
    session_ = std::make_unique<Executor>(program_->program(), program_->functions(), threads);
    for (const char* name : {"a", "b"}) {
      const std::span<std::byte> bytes = session_->bytes(static_cast<uint32_t>(session_->find(BufferRole::input, name)));
      if (std::string(c.dtype) == "f32")
        fill(reinterpret_cast<float*>(bytes.data()), bytes.size() / 4);
      else
        fill_bf16(reinterpret_cast<uint16_t*>(bytes.data()), bytes.size() / 2);
    }
  }

  void run() { session_->run(0, 0); }
  float* left() { return data("a"); }
  float* right() { return data("b"); }
  const float* result() { return reinterpret_cast<const float*>(session_->bytes(program_->program().outputs[0].buffer).data()); }
  std::string plan() const {
    const auto& tiles = program_->lowered().lowered.functions.at(0).tiles;
    if (!tiles) return "loops";
    constexpr const char* kSource[] = {"place", "depth", "width"};
    return fmt::format("{}x{} {}/{} {}x{}x{} by {}", tiles->tile_rows, tiles->tile_columns(), kSource[static_cast<int>(tiles->left)],
                       kSource[static_cast<int>(tiles->right)], tiles->block_rows, tiles->block_columns, tiles->block_depth,
                       tiles->shared == SharedAxis::rows ? "rows" : "columns");
  }

 private:
  static void fill(float* x, size_t count) {
    for (size_t i = 0; i < count; ++i) x[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * 1e-3f;
  }
  static void fill_bf16(uint16_t* x, size_t count) {
    for (size_t i = 0; i < count; ++i) x[i] = static_cast<uint16_t>(0x3f00 + i * 7919 % 128);
  }
  float* data(const char* name) {
    return reinterpret_cast<float*>(session_->bytes(static_cast<uint32_t>(session_->find(BufferRole::input, name))).data());
  }

  Graph graph_;
  std::unique_ptr<CpuProgram> program_;
  std::unique_ptr<Executor> session_;
};

// A library of others that multiplies matrices of f32.
struct Peer {
  std::string name;
  // y = a b of one batch; leading dimensions are those of dense matrices.
  std::function<void(const Case&, const float* a, const float* b, float* y)> multiply;

  void run(const Case& c, const float* a, const float* b, float* y) const {
    for (int64_t g = 0; g < c.batch; ++g) multiply(c, a + g * c.m * c.k, b + g * c.k * c.n, y + g * c.m * c.n);
  }
};

bool turned_left(const Case& c) { return c.left[0] == 'k'; }
bool turned_right(const Case& c) { return c.right[0] == 'n'; }

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

// Settings of the environment may halve it, so they are taken away; a release that does not know this processor falls back
// to SSE and is told what it is.
std::optional<Peer> open_blas(int threads, char** argv) {
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  const bool told = std::getenv("EINC_BENCH_TOLD") != nullptr;
  for (const char* name : {"OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}) unsetenv(name);
  if (!told) unsetenv("OPENBLAS_CORETYPE");
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  const auto sgemm = symbol<Sgemm>(library, "cblas_sgemm");
  if (const auto set = symbol<void (*)(int)>(library, "openblas_set_num_threads")) set(threads);
  const auto name = symbol<const char* (*)()>(library, "openblas_get_corename");
  const std::string core = name ? name() : "";
  if (!told && core == "Prescott" && __builtin_cpu_supports("avx512f")) {
    setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    setenv("EINC_BENCH_TOLD", "1", 1);
    execv("/proc/self/exe", argv);
  }
  if (!sgemm) return std::nullopt;
  return Peer{fmt::format("OpenBLAS ({})", core), [sgemm](const Case& c, const float* a, const float* b, float* y) {
                constexpr int kRowMajor = 101, kPlain = 111, kTurned = 112;
                const auto m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
                sgemm(kRowMajor, turned_left(c) ? kTurned : kPlain, turned_right(c) ? kTurned : kPlain, m, n, k, 1, a,
                      turned_left(c) ? m : k, b, turned_right(c) ? k : n, 0, y, n);
              }};
}

std::optional<Peer> one_dnn(int threads) {
  using Sgemm = int (*)(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*, int64_t, float, float*, int64_t);
  void* library = nullptr;
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::nullopt;
  const auto sgemm = symbol<Sgemm>(library, "dnnl_sgemm");
  if (const auto set = symbol<void (*)(int)>(library, "omp_set_num_threads")) set(threads);
  if (!sgemm) return std::nullopt;
  return Peer{"oneDNN", [sgemm](const Case& c, const float* a, const float* b, float* y) {
                sgemm(turned_left(c) ? 'T' : 'N', turned_right(c) ? 'T' : 'N', c.m, c.n, c.k, 1, a, turned_left(c) ? c.m : c.k, b,
                      turned_right(c) ? c.k : c.n, 0, y, c.n);
              }};
}

// --- times ---

struct Times {
  std::vector<double> seconds;
  void add(double s) { seconds.push_back(s); }
  double quantile(double q) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[static_cast<size_t>(q * static_cast<double>(seconds.size() - 1))];
  }
};

double one_turn(int threads, int repeats, const std::function<void()>& run) {
  const double start = seconds_now(threads);
  for (int i = 0; i < repeats; ++i) run();
  return (seconds_now(threads) - start) / repeats;
}

// Peak, ours and theirs take turns, so that a clock or a load that drifts meets all of them.
void measure(const Case& c, int threads, double top, std::span<const Peer> installed) {
  EincCase ours(c, threads);
  const double flops = 2.0 * static_cast<double>(c.batch * c.m * c.n * c.k);
  const int repeats = std::max(1, static_cast<int>(2e-3 * top * 1e9 / flops));
  const int turns = std::clamp(static_cast<int>(1.0 * top * 1e9 / flops / repeats), 5, 101);
  const std::span<const Peer> peers = std::string(c.dtype) == "f32" ? installed : std::span<const Peer>();
  std::vector<float> theirs(peers.empty() ? 0 : static_cast<size_t>(c.batch * c.m * c.n));
  Times mine, ceiling;
  std::vector<Times> others(peers.size());
  double worst = 0;
  for (int turn = 0; turn <= turns; ++turn) {
    const double p = peak(threads, 1, c.unit);
    const double m = one_turn(threads, repeats, [&] { ours.run(); });
    if (turn > 0) mine.add(m), ceiling.add(1 / p);
    for (size_t k = 0; k < peers.size(); ++k) {
      const double o = one_turn(threads, repeats, [&] { peers[k].run(c, ours.left(), ours.right(), theirs.data()); });
      if (turn > 0) others[k].add(o);
      if (turn > 0) continue;
      for (size_t i = 0; i < theirs.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(ours.result()[i]) - static_cast<double>(theirs[i])));
    }
  }
  top = 1 / ceiling.quantile(0.5);
  const auto shares = [&](Times& t) {
    const auto share = [&](double q) { return flops / t.quantile(q) * 1e-9 / top * 100; };
    return fmt::format("{:>5.1f} %  best {:>5.1f} %  spread {:>4.1f} %", share(0.5), share(0),
                       (t.quantile(0.75) - t.quantile(0.25)) / t.quantile(0.5) * 100);
  };
  const double median = mine.quantile(0.5);
  const double bytes = (c.dtype[0] == 'b' ? 2.0 : 4.0) * static_cast<double>(c.batch * (c.m * c.k + c.k * c.n + c.m * c.n));
  fmt::print("{:<23} {:>7.1f} GFLOP/s {:>5.1f} GB/s {}", c.name, flops / median * 1e-9, bytes / median * 1e-9, shares(mine));
  for (Times& t : others) fmt::print(" | {}  ratio {:>5.2f}", shares(t), t.quantile(0.5) / median);
  if (!peers.empty()) fmt::print("  differ {:.0e}", worst);
  fmt::print("   {}\n", ours.plan());
  std::fflush(stdout);
}

constexpr Case kCases[] = {
    {"64^3 AB", 1, 64, 64, 64, "m k", "k n"},
    {"256^3 AB", 1, 256, 256, 256, "m k", "k n"},
    {"256^3 A'B", 1, 256, 256, 256, "k m", "k n"},
    {"256^3 AB'", 1, 256, 256, 256, "m k", "n k"},
    {"512^3 AB", 1, 512, 512, 512, "m k", "k n"},
    {"512^3 A'B", 1, 512, 512, 512, "k m", "k n"},
    {"512^3 AB'", 1, 512, 512, 512, "m k", "n k"},
    {"1024^3 AB", 1, 1024, 1024, 1024, "m k", "k n"},
    {"1024^3 A'B", 1, 1024, 1024, 1024, "k m", "k n"},
    {"1024^3 AB'", 1, 1024, 1024, 1024, "m k", "n k"},
    {"2048^3 AB", 1, 2048, 2048, 2048, "m k", "k n"},
    {"2048^3 A'B", 1, 2048, 2048, 2048, "k m", "k n"},
    {"2048^3 AB'", 1, 2048, 2048, 2048, "m k", "n k"},
    {"proj AB", 1, 256, 768, 768, "m k", "k n"},
    {"proj AB'", 1, 256, 768, 768, "m k", "n k"},
    {"fc up AB", 1, 256, 3072, 768, "m k", "k n"},
    {"fc up AB'", 1, 256, 3072, 768, "m k", "n k"},
    {"fc up dW A'B", 1, 3072, 768, 256, "k m", "k n"},
    {"fc down AB", 1, 256, 768, 3072, "m k", "k n"},
    {"fc down AB'", 1, 256, 768, 3072, "m k", "n k"},
    {"lm head AB", 1, 256, 50257, 768, "m k", "k n"},
    {"lm head AB'", 1, 256, 50257, 768, "m k", "n k"},
    {"lm head dX AB", 1, 256, 768, 50257, "m k", "k n"},
    {"lm head dW A'B", 1, 50257, 768, 256, "k m", "k n"},
    {"48 x 64^3 AB", 48, 64, 64, 64, "m k", "k n"},
    {"48 x 64^3 AB'", 48, 64, 64, 64, "m k", "n k"},
    {"48 x 256x256x64 AB'", 48, 256, 256, 64, "m k", "n k"},
    {"48 x 256x64x256 AB", 48, 256, 64, 256, "m k", "k n"},
    {"48 x 256x64x256 A'B", 48, 256, 64, 256, "k m", "k n"},
    {"1 x 768 x 3072 AB", 1, 1, 3072, 768, "m k", "k n"},
    {"1 x 768 x 3072 AB'", 1, 1, 3072, 768, "m k", "n k"},
    {"2 x 768 x 3072 AB", 1, 2, 3072, 768, "m k", "k n"},
    {"2 x 768 x 3072 AB'", 1, 2, 3072, 768, "m k", "n k"},
    {"4 x 768 x 3072 AB", 1, 4, 3072, 768, "m k", "k n"},
    {"4 x 768 x 3072 AB'", 1, 4, 3072, 768, "m k", "n k"},
    {"8 x 768 x 3072 AB", 1, 8, 3072, 768, "m k", "k n"},
    {"8 x 768 x 3072 AB'", 1, 8, 3072, 768, "m k", "n k"},
    {"bf16 256^3 AB", 1, 256, 256, 256, "m k", "k n", "bf16"},
    {"bf16 512^3 AB", 1, 512, 512, 512, "m k", "k n", "bf16"},
    {"bf16 1024^3 AB", 1, 1024, 1024, 1024, "m k", "k n", "bf16"},
    {"bf16 1024^3 A'B", 1, 1024, 1024, 1024, "k m", "k n", "bf16"},
    {"bf16 1024^3 AB'", 1, 1024, 1024, 1024, "m k", "n k", "bf16"},
    {"bf16 2048^3 AB", 1, 2048, 2048, 2048, "m k", "k n", "bf16"},
    {"bf16 proj AB", 1, 256, 768, 768, "m k", "k n", "bf16"},
    {"bf16 proj AB'", 1, 256, 768, 768, "m k", "n k", "bf16"},
    {"bf16 fc up AB", 1, 256, 3072, 768, "m k", "k n", "bf16"},
    {"bf16 fc up AB'", 1, 256, 3072, 768, "m k", "n k", "bf16"},
    {"bf16 fc up dW A'B", 1, 3072, 768, 256, "k m", "k n", "bf16"},
    {"bf16 fc down AB", 1, 256, 768, 3072, "m k", "k n", "bf16"},
    {"bf16 fc down AB'", 1, 256, 768, 3072, "m k", "n k", "bf16"},
    {"bf16 pairs 256^3 AB", 1, 256, 256, 256, "m k", "k n", "bf16", Unit::pairs},
    {"bf16 pairs 512^3 AB", 1, 512, 512, 512, "m k", "k n", "bf16", Unit::pairs},
    {"bf16 pairs 1024^3 AB", 1, 1024, 1024, 1024, "m k", "k n", "bf16", Unit::pairs},
    {"bf16 pairs 1024^3 A'B", 1, 1024, 1024, 1024, "k m", "k n", "bf16", Unit::pairs},
    {"bf16 pairs 1024^3 AB'", 1, 1024, 1024, 1024, "m k", "n k", "bf16", Unit::pairs},
    {"bf16 pairs fc up AB", 1, 256, 3072, 768, "m k", "k n", "bf16", Unit::pairs},
    {"bf16 pairs fc up AB'", 1, 256, 3072, 768, "m k", "n k", "bf16", Unit::pairs},
    {"bf16 pairs fc up dW A'B", 1, 3072, 768, 256, "k m", "k n", "bf16", Unit::pairs},
    {"bf16 pairs fc down AB", 1, 256, 768, 3072, "m k", "k n", "bf16", Unit::pairs},
    {"bf16 768x512x128 AB", 1, 768, 512, 128, "m k", "k n", "bf16"},
    {"bf16 768x128x512 AB'", 1, 768, 128, 512, "m k", "n k", "bf16"},
};

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const std::string filter = argc > 2 ? argv[2] : "";
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  const double top = peak(threads, 20);
  std::vector<Peer> peers;
  std::string names;
  for (std::optional<Peer> peer : {open_blas(threads, argv), one_dnn(threads)})
    if (peer) names += ", then " + peer->name, peers.push_back(std::move(*peer));
  fmt::print(
      "{} thread{}, multiply-add peak {:.1f} GFLOP/s (f32), load {:.1f}; share of the peak (of pairs, of theirs): einc{}, time over ours\n",
      threads, threads == 1 ? "" : "s", top, load, names.empty() ? ", no library beside it here" : names);
  for (const Case& c : kCases)
    if (std::string(c.name).find(filter) != std::string::npos && (c.unit == Unit::chosen || has_cpu_feature("avx512bf16")))
      measure(c, threads, top, peers);
}
