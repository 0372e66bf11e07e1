// SPDX-License-Identifier: Apache-2.0
// `einc plot`: what a drawing shows of the logs, and which files are refused.
#include <fmt/format.h>

#include "compiler/driver/plot.h"
#include "tests/golden/train/folder.h"

namespace einc::test {
namespace {

constexpr std::string_view kLog = R"({"kind":"run","model":"m.ein"}
{"kind":"evaluation","step":0,"validation_loss":4.5,"best":true}
{"kind":"step","step":10,"loss":4.0,"learning_rate":0.001,"tokens_per_second":20000}
{"kind":"step","step":20,"loss":2.5,"learning_rate":0.002,"tokens_per_second":21000}
{"kind":"evaluation","step":20,"validation_loss":2.25,"best":true}
{"kind":"end","step":20}
)";

size_t count(const std::string& text, std::string_view what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a drawing has the panels, keys and axes of its runs") {
  const TrainFolder folder;
  const std::string first = folder.text("first.jsonl", kLog), second = folder.text("a<b.jsonl", kLog);
  const Ran ran = run_einc({"plot", first, second, "-o", folder.at("loss.svg")});
  INFO(ran.errors);
  REQUIRE(ran.status == 0);
  const std::string svg = folder.content("loss.svg");
  CHECK(svg.rfind("<svg ", 0) == 0);
  for (const char* label : {">step<", ">loss<", ">learning rate<", ">tokens/s<"}) CHECK(count(svg, label) == 1);
  CHECK(svg.find(">first: loss 2.5000, best validation loss 2.2500 at step 20<") != std::string::npos);
  CHECK(svg.find(">a&lt;b: loss") != std::string::npos);
  CHECK(count(svg, "<path d=\"M") == 3 + 2 * 4);  // three frames; loss, validation, rate and throughput of each run
  CHECK(count(svg, "<circle") == 2 * 2);
  REQUIRE(run_einc({"plot", first, "-o", folder.at("loss.html")}).status == 0);
  CHECK(folder.content("loss.html").rfind("<!DOCTYPE html>", 0) == 0);
}

TEST_CASE("a loss that falls by decades is drawn over a logarithmic axis, throughput in what the run counts") {
  const TrainFolder folder;
  const auto drawn = [&](double last, const char* rate) {
    std::string log = "{\"kind\":\"run\",\"model\":\"m.ein\"}\n";
    const double losses[] = {2.0, 0.5, last};
    for (int i = 0; i < 3; ++i) log += fmt::format("{{\"kind\":\"step\",\"step\":{},\"loss\":{},\"{}\":500}}\n", i + 1, losses[i], rate);
    REQUIRE(run_einc({"plot", folder.text("run.jsonl", log), "-o", folder.at("run.svg")}).status == 0);
    return folder.content("run.svg");
  };
  const std::string decades = drawn(2e-5, "examples_per_second");
  CHECK(count(decades, ">loss, logarithmic<") == 1);
  for (const char* tick : {">0.0001<", ">0.001<", ">0.01<", ">0.1<", ">1<"}) CHECK(count(decades, tick) == 1);
  CHECK(count(decades, ">examples/s<") == 1);
  CHECK(count(decades, ">tokens/s<") == 0);
  const std::string near = drawn(0.05, "tokens_per_second"), negative = drawn(-3, "tokens_per_second");
  CHECK(count(near, ">loss<") == 1);
  CHECK(count(negative, ">loss<") == 1);
}

TEST_CASE("ticks of a logarithmic axis") {
  CHECK(logarithmic_ticks(0.5, 30) == std::vector<double>{0.5, 1, 2, 5, 10, 20});
  CHECK(logarithmic_ticks(1e-6, 1).size() == 7);
}

TEST_CASE("a log that is cut off is drawn, one that is none is refused") {
  const TrainFolder folder;
  const std::string cut = folder.text("cut.jsonl", kLog.substr(0, kLog.size() - 40));
  CHECK(run_einc({"plot", cut, "-o", folder.at("x.svg")}).status == 0);
  const auto refused = [&](const std::string& text, int status, const std::string& message) {
    const Ran ran = run_einc({"plot", folder.text("bad.jsonl", text), "-o", folder.at("x.svg")});
    CHECK(ran.status == status);
    CHECK(ran.errors.find(message) != std::string::npos);
  };
  refused("", 3, "holds no step and no evaluation");
  refused("no json\nat all\n", 3, "line 1 is no line of a log");
  refused("[1, 2]\n", 3, "line 1 is no line of a log");
  refused(std::string(100'000, '[') + "\n", 3, "line 1 is nested too deeply");
  refused("{\"kind\":\"step\",\"step\":\"1\",\"loss\":null}\n", 3, "holds no step");
  CHECK(run_einc({"plot", folder.at("missing.jsonl"), "-o", folder.at("x.svg")}).status == 4);
  CHECK(run_einc({"plot", cut, "-o", folder.at("x.png")}).status == 2);
}

TEST_CASE("ticks are round and within the range") {
  CHECK(plot_ticks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(plot_ticks(3, 17, 3) == std::vector<double>{5, 10, 15});
  for (const double high : {1e-6, 0.3, 7.0, 2000.0, 3e12}) {
    const auto ticks = plot_ticks(0, high, 6);
    CHECK(ticks.size() >= 4);
    CHECK(ticks.size() <= 8);
    CHECK(ticks.back() <= high * (1 + 1e-9));
  }
}

}  // namespace einc::test
