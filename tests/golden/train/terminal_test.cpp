// SPDX-License-Identifier: Apache-2.0
// What stands on a terminal while a command works: the bar of a training at 80 columns and fewer, and progress of what takes a while.
#include <algorithm>

#include "tests/golden/train/folder.h"
#include "tests/support/run_on_terminal.h"

namespace einc::test {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::vector<std::string> bars(const Shown& shown) {
  std::vector<std::string> bars;
  std::copy_if(shown.drawn.begin(), shown.drawn.end(), std::back_inserter(bars),
               [](const std::string& line) { return has(line, "  loss "); });
  return bars;
}

}  // namespace

TEST_CASE("at any width the bar keeps loss, rate and time left, and fits") {
  const TrainFolder folder;
  const std::string program = folder.text("m.ein", kTokenModel), tokens = folder.tokens("train.bin", 3000, 16);
  for (const int columns : {60, 80, 120}) {
    CAPTURE(columns);
    const Shown shown = run_on_terminal(
        {"train", program, "--data", "tokens=" + tokens, "--steps=0.5k", "--val-fraction=0.2", "--eval-every=100", "--eval-batches=2"},
        columns);
    CHECK(shown.status == 0);
    const std::vector<std::string> drawn = bars(shown);
    REQUIRE(!drawn.empty());
    for (const std::string& line : drawn) {
      CAPTURE(line);
      CHECK(columns_of(line) < static_cast<size_t>(columns));
      CHECK(has(line, "tokens/s"));
      CHECK(line.ends_with(" left"));
    }
    CHECK(has(drawn.back(), "500/500  loss "));
    CHECK(has(drawn.back(), "━"));
    CHECK(has(drawn.back(), "  val ") == (columns >= 80));
    CHECK(has(drawn.back(), "  norm ") == (columns >= 120));
  }
}

TEST_CASE("what takes more than two seconds shows how far it is, and leaves nothing behind") {
  const TrainFolder folder;
  const std::string program =
      folder.text("wide.ein",
                  "dim n = 192, hidden = 192\nparam w: [n hidden] ~ normal(std = 0.1)\ninput x: [n]\n"
                  "loss = mean(tanh(einsum(x, w, \"n, n hidden -> hidden\"))^2)\nminimize loss using sgd(lr = 0.1)\n");
  const Shown check = run_on_terminal({"gradcheck", program, "--elements=1M", "--max-elements=9k"}, 80);
  CHECK(check.status == 0);
  const auto is_progress = [](const std::string& line) {
    return line.starts_with("gradcheck: w, element ") && has(line, " of ") && line.ends_with(" left") && columns_of(line) < 80;
  };
  CHECK(std::any_of(check.drawn.begin(), check.drawn.end(), is_progress));
  CHECK(check.drawn.back() == "all gradients agree");
  const Shown bench = run_on_terminal({"bench", program, "--steps=200k"}, 80);
  CHECK(bench.status == 0);
  CHECK(std::any_of(bench.drawn.begin(), bench.drawn.end(), [](const std::string& line) {
    return line.starts_with("bench: step ") && has(line, " of 200000, ") && line.ends_with(" left");
  }));
}

TEST_CASE("what is quick shows no progress") {
  const TrainFolder folder;
  const Shown shown = run_on_terminal({"gradcheck", folder.text("m.ein", kTokenModel), "--max-elements=1"}, 80);
  CHECK(std::none_of(shown.drawn.begin(), shown.drawn.end(), [](const std::string& line) { return line.starts_with("gradcheck:"); }));
}

}  // namespace einc::test
