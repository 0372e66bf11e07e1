// SPDX-License-Identifier: Apache-2.0
// Random programs on the emulated GPU give what the interpreter gives: 200 in two parts. EINC_RANDOM_PROGRAMS=FIRST:COUNT runs other seeds.
#include <fmt/format.h>

#include <unordered_map>

#include "tests/support/agree.h"
#include "tests/support/random_check.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

void move_functions(Executable& body, const std::vector<uint32_t>& moved) {
  for (Launch& launch : body.launches)
    if (launch.scan < 0) launch.function = moved[launch.function];
  for (ScanProgram& scan : body.scans) move_functions(scan.body, moved);
}

// Gives programs one list of functions, each text once: what they share is compiled once.
void share_functions(std::span<CudaExecutable> programs) {
  std::vector<std::string> texts, names;
  std::vector<bool> by_table;
  std::unordered_map<std::string, uint32_t> known;  // by text with the name of the first that has it left out
  for (CudaExecutable& program : programs) {
    std::vector<uint32_t> moved;
    for (size_t f = 0; f < program.texts.size(); ++f) {
      std::string text = program.texts[f];
      const std::string call = program.program.functions[f] + "(";
      const size_t at = text.find(call);
      REQUIRE(at != std::string::npos);
      text.erase(at, call.size() - 1);
      const auto [place, fresh] = known.try_emplace(text, static_cast<uint32_t>(texts.size()));
      moved.push_back(place->second);
      if (!fresh) continue;
      names.push_back(fmt::format("k{}", names.size()));
      texts.push_back(text.insert(at, names.back()));
      by_table.push_back(!program.by_table.empty() && program.by_table[f]);
    }
    for (size_t l = 0; l < program.calls.size(); ++l)
      if (!program.calls[l].gemm && program.program.launches[l].scan < 0)
        program.program.launches[l].function = moved[program.program.launches[l].function];
    for (ScanProgram& scan : program.program.scans) move_functions(scan.body, moved);
    std::vector<CudaGrid> grids;
    for (size_t f = 0; f < program.grids.size(); ++f) {
      if (grids.size() <= moved[f]) grids.resize(moved[f] + 1);
      const CudaGrid& grid = program.grids[f];
      if (grid.blocks != CudaGrid{}.blocks || grid.threads != CudaGrid{}.threads) grids[moved[f]] = grid;
    }
    program.grids = std::move(grids);
    for (CudaFusedProduct& fused : program.fused)
      if (fused.cast) fused.cast->function = moved[fused.cast->function];
  }
  for (CudaExecutable& program : programs) program.texts = texts, program.by_table = by_table, program.program.functions = names;
}

Runs runs_of(const Graph& graph, std::span<const Way> ways, const LibraryLimits& library) {
  use_test_gpu();
  const auto programs = std::make_shared<std::vector<CudaExecutable>>();
  for (const Way& way : ways) programs->push_back(compile_for_test_gpu(graph, {}, way.mode, way.scheduling, library)->executable);
  share_functions(*programs);
  Runs runs;
  for (size_t i = 0; i < ways.size(); ++i)
    runs.push_back([programs, i, fused = !ways[i].scheduling.leaves_out("fusion")](const Wanted& w) {
      return run_compiled((*programs)[i], w.inputs, w.params, w.states, w.options, fused);
    });
  return runs;
}

Runs cuda_runs(const Graph& graph, std::span<const Way> ways) { return runs_of(graph, ways, {INT64_MAX}); }
// The library multiplies all that it can, and all rows that it reads lie as it likes them: programs this small have neither otherwise.
Runs library_runs(const Graph& graph, std::span<const Way> ways) { return runs_of(graph, ways, {1, 1, 1}); }

// Kernels without fusion are many, and each takes long to compile here: one program in eight has them.
std::vector<Way> cuda_ways(uint64_t seed) {
  std::vector<Way> ways = ways_of(seed);
  if (ways[1].scheduling.leaves_out("fusion") && seed % 8 != 0) ways.pop_back();
  return ways;
}

}  // namespace

TEST_CASE("cuda: programs once compiled wrongly agree") {
  const std::vector<Way> ways = {all_ways().front(), all_ways().back()};  // a training step, and inference
  for (const Compile& compile : {Compile(cuda_runs), Compile(library_runs)})
    check_regress_programs([&](const std::string& text, uint64_t seed) { return disagreement(text, seed, ways, compile); });
}

TEST_CASE("cuda: random programs agree") {
  check_random_programs(1, 30, [](const std::string& text, uint64_t seed) { return disagreement(text, seed, cuda_ways(seed), cuda_runs); });
}

TEST_CASE("cuda: random programs agree whose products are a library's") {
  check_random_programs(101, 30,
                        [](const std::string& text, uint64_t seed) { return disagreement(text, seed, cuda_ways(seed), library_runs); });
}
