// SPDX-License-Identifier: Apache-2.0
// Which products of convolutions are not made, and that the work of kernels is that of those that are: counted by loops over windows.
#include "compiler/fuse/leave_out_padding.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/lower/processor_plan.h"
#include "compiler/pipeline/pipeline.h"

using namespace einc;

namespace {

struct ConvolutionCase {
  int64_t size, channels, features, kernel, step, before, after;
};

std::string text_of(const ConvolutionCase& c) {
  return fmt::format(
      "input a: f32[g=2 h={0} w={0} c={1}]\ninput b: f32[ky={3} kx={3} c o={2}]\n"
      "output z = einsum(pad(a, h = ({5}, {6}), w = ({5}, {6})), b, \"g ({4}*y + ky) ({4}*x + kx) c, ky kx c o -> g y x o\")\n",
      c.size, c.channels, c.features, c.kernel, c.step, c.before, c.after);
}

// Pairs of a place along one axis and an element of the window that lie in the image, and all.
std::pair<int64_t, int64_t> pairs_of(const ConvolutionCase& c) {
  int64_t inside = 0, all = 0;
  for (int64_t place = 0; c.step * place + c.kernel <= c.before + c.size + c.after; ++place)
    for (int64_t k = 0; k < c.kernel; ++k, ++all) {
      const int64_t at = c.step * place + k - c.before;
      inside += at >= 0 && at < c.size;
    }
  return {inside, all};
}

// A program's kernels for a processor.
class FormedProgram {
 public:
  FormedProgram(const std::string& text, const Processor& processor)
      : compiled_(compile_text("t.ein", text, {})),
        formed_(form_graph(*compiled_.graph, {}, RunMode::inference, Scheduling::all, processor_target(processor))) {}

  const std::vector<GraphKernel>& kernels() const { return formed_.list.kernels; }
  const Kernel& product() const {
    const auto found = std::ranges::find_if(kernels(), [](const GraphKernel& k) { return k.kernel->contraction.has_value(); });
    REQUIRE(found != kernels().end());
    return *found->kernel;
  }

 private:
  const Compilation compiled_;
  const FormedGraph formed_;
};

constexpr Processor kVectors{.vector_bits = 512, .vector_registers = 32};

}  // namespace

TEST_CASE("padding: products with zeros are neither made nor counted") {
  struct Row {
    ConvolutionCase c;
    int axes;  // along which some are left out: of long lines so few products are with zeros that they stay, whole lines never
  };
  const Row rows[] = {
      {{7, 16, 32, 3, 1, 1, 1}, 2},  {{14, 32, 64, 3, 1, 1, 1}, 2}, {{28, 16, 32, 3, 1, 1, 1}, 2}, {{56, 16, 64, 3, 1, 1, 1}, 1},
      {{14, 16, 32, 3, 2, 1, 1}, 2}, {{12, 8, 24, 5, 1, 2, 2}, 2},  {{8, 16, 32, 2, 1, 1, 0}, 2},  {{14, 16, 32, 1, 1, 0, 0}, 0},
      {{14, 3, 32, 3, 1, 1, 1}, 0}};  // three channels: too few to begin and end a loop for
  for (const auto& [c, axes] : rows) {
    CAPTURE(text_of(c));
    const FormedProgram program(text_of(c), kVectors);
    const Kernel& kernel = program.product();
    REQUIRE(kernel.contraction->padded.size() == static_cast<size_t>(axes));
    const auto [inside, all] = pairs_of(c);
    const int64_t of_lines = axes > 0 ? inside : all, of_places = axes > 1 ? inside : all;
    CHECK(work_of(kernel).contraction == 2 * 2 * of_lines * of_places * c.channels * c.features);
    const std::optional<TiledContraction> tiles = tile_contraction(kernel, kVectors, {});
    REQUIRE(tiles.has_value());
    CHECK(tiles->left_out().has_value() == (axes > 0));
    if (axes > 0)
      CHECK(tiles->left_out()->share() == doctest::Approx(static_cast<double>(of_lines * of_places) / static_cast<double>(all * all)));
  }
}

TEST_CASE("padding: kernels of images padded otherwise, or by something else, are not shared") {
  const std::string conv = "einsum({}, b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")";
  const std::string text = fmt::format(
      "input a: f32[g=2 h=14 w=14 c=16]\ninput e: f32[g h=16 w=16 c]\ninput b: f32[ky=3 kx=3 c o=32]\noutput p = {}\noutput q = {}\noutput "
      "r = "
      "{}\n",
      fmt::format(fmt::runtime(conv), "pad(a, h = (1, 1), w = (1, 1))"), fmt::format(fmt::runtime(conv), "pad(a, h = (2, 0), w = (0, 2))"),
      fmt::format(fmt::runtime(conv), "e"));
  std::vector<std::vector<int64_t>> firsts;
  const FormedProgram program(text, kVectors);
  for (const GraphKernel& k : program.kernels()) {
    if (!k.kernel->contraction) continue;
    std::vector<int64_t>& first = firsts.emplace_back();
    for (const PaddedAxis& axis : k.kernel->contraction->padded) first.push_back(axis.first);
  }
  std::ranges::sort(firsts);
  CHECK(firsts == std::vector<std::vector<int64_t>>{{}, {-2, 0}, {-1, -1}});
}

TEST_CASE("padding: pairs and tiles of bf16 multiply zeros") {
  const std::string text =
      "input a: bf16[g=2 h=14 w=14 c=32]\ninput b: bf16[ky=3 kx=3 c o=32]\n"
      "output z = einsum(pad(a, h = (1, 1), w = (1, 1)), b, \"g (y + ky) (x + kx) c, ky kx c o -> g y x o\")\n";
  for (const bool pairs : {false, true}) {
    Processor processor = kVectors;
    (pairs ? processor.bf16_pairs : processor.matrix_tiles) = true;
    CHECK(FormedProgram(text, processor).product().contraction->padded.empty());
  }
}
