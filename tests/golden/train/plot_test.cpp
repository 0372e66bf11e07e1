// SPDX-License-Identifier: Apache-2.0
// `einc plot`: what a drawing shows of the logs, and which files are refused.
#include <fmt/format.h>

#include <cstdio>

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
  CHECK(logarithmic_ticks(2.25, 4.6) == std::vector<double>{2.5, 3, 3.5, 4, 4.5});  // where 2 and 5 are one at most
}

namespace {

// What a drawing's paths say, as points: "M92.0 10.0L..." is two numbers a point.
std::vector<std::vector<std::pair<double, double>>> lines_of(const std::string& svg) {
  std::vector<std::vector<std::pair<double, double>>> lines;
  for (size_t at = svg.find("<path d=\"M"); at != std::string::npos; at = svg.find("<path d=\"M", at + 1)) {
    std::vector<std::pair<double, double>> line;
    const char* text = svg.c_str() + at + 9;
    double x = 0, y = 0;
    for (int used = 0; std::sscanf(text, "%*1[ML]%lf %lf%n", &x, &y, &used) == 2; text += used) line.emplace_back(x, y);
    if (line.size() > 1) lines.push_back(line);  // a frame is of V and H after its first point
  }
  return lines;
}

// One run to step 30 at 100 tokens a step, gone on with from step 20 at 300.
constexpr std::string_view kResumed = R"({"kind":"run","model":"m.ein","first_step":0,"tokens_per_step":100}
{"kind":"step","step":10,"loss":4.0,"tokens_per_second":1,"elapsed":10}
{"kind":"step","step":20,"loss":2.0,"tokens_per_second":1,"elapsed":30}
{"kind":"step","step":30,"loss":9.0,"tokens_per_second":1,"elapsed":35}
{"kind":"run","model":"m.ein","first_step":20,"tokens_per_step":300}
{"kind":"step","step":30,"loss":3.0,"tokens_per_second":1,"elapsed":10}
{"kind":"step","step":40,"loss":1.0,"tokens_per_second":1,"elapsed":90}
)";

}  // namespace

TEST_CASE("a drawing over time and over tokens counts what earlier runs did") {
  const TrainFolder folder;
  const std::string log = folder.text("run.jsonl", kResumed);
  const auto places = [&](const char* axis, const char* label) {
    const Ran ran = run_einc({"plot", log, "-o", folder.at("x.svg"), axis});
    INFO(ran.errors);
    REQUIRE(ran.status == 0);
    const std::string svg = folder.content("x.svg");
    CHECK(count(svg, label) == 1);
    const auto line = lines_of(svg).at(0);
    std::vector<double> shares;  // of the axis, from the first point to the last
    for (const auto& point : line) shares.push_back((point.first - line.front().first) / (line.back().first - line.front().first));
    return shares;
  };
  const auto near = [](const std::vector<double>& have, const std::vector<double>& want) {
    REQUIRE(have.size() == want.size());
    for (size_t i = 0; i < want.size(); ++i) CHECK(have[i] == doctest::Approx(want[i]).epsilon(0.001));
  };
  near(places("--x=step", ">step<"), {0, 1.0 / 3, 2.0 / 3, 1});
  near(places("--x=time", ">minutes of training<"), {0, 20.0 / 110, 30.0 / 110, 1});  // 10, 30, 30 + 10, 30 + 90 s
  near(places("--x=tokens", ">tokens<"), {0, 1.0 / 7, 4.0 / 7, 1});                   // 1000, 2000, 2000 + 3000, 2000 + 6000
}

TEST_CASE("an axis that a log does not hold is refused") {
  const TrainFolder folder;
  const auto refused = [&](std::string_view log, const char* axis, int status, const char* message) {
    const Ran ran = run_einc({"plot", folder.text("run.jsonl", log), "-o", folder.at("x.svg"), axis});
    INFO(ran.errors);
    CHECK(ran.status == status);
    CHECK(ran.errors.find(message) != std::string::npos);
  };
  refused(kLog, "--x=time", 3, "what it says of step 0 has no time (`elapsed`); draw it over --x=step");
  refused(kLog, "--x=tokens", 3, "its steps are of examples, not tokens");
  refused("{\"kind\":\"run\",\"tokens_per_step\":8}\n{\"kind\":\"step\",\"step\":1,\"loss\":1,\"examples_per_second\":2}\n", "--x=tokens",
          3, "its steps are of examples, not tokens");
  refused(kLog, "--x=steps", 2, "did you mean `step`?");
  refused(kLog, "--smooth=0", 2, "--smooth takes");
  refused("{\"kind\":\"step\",\"step\":7,\"loss\":-3}\n", "--log", 3, "the loss of run at step 7 is -3; its logarithm is not finite");
}

TEST_CASE("a logarithmic axis puts equal ratios at equal distances") {
  const TrainFolder folder;
  const std::string log = folder.text("run.jsonl", kResumed);
  const auto loss = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all{"plot", log, "-o", folder.at("x.svg")};
    all.insert(all.end(), more.begin(), more.end());
    REQUIRE(run_einc(all).status == 0);
    return lines_of(folder.content("x.svg")).at(0);
  };
  const auto line = loss({}), logarithmic = loss({"--log"});  // 4, 2, 3, 1
  CHECK((line[1].second - line[0].second) == doctest::Approx(2 * (line[3].second - line[1].second)).epsilon(0.01));
  CHECK((logarithmic[1].second - logarithmic[0].second) == doctest::Approx(logarithmic[3].second - logarithmic[1].second).epsilon(0.01));
  CHECK(count(folder.content("x.svg"), ">loss, logarithmic<") == 1);
  for (const char* tick : {">1<", ">2<"}) CHECK(count(folder.content("x.svg"), tick) == 1);
}

TEST_CASE("a smoothed loss is the mean of the last values, before these faintly") {
  const TrainFolder folder;
  REQUIRE(run_einc({"plot", folder.text("run.jsonl", kResumed), "-o", folder.at("x.svg"), "--smooth=2"}).status == 0);
  const std::string svg = folder.content("x.svg");
  CHECK(count(svg, "means of the last 2 values of the log") == 1);
  const auto lines = lines_of(svg);
  const auto &raw = lines.at(0), &smooth = lines.at(1);
  REQUIRE(smooth.size() == 4);
  CHECK(smooth[0].second == raw[0].second);
  for (size_t i = 1; i < 4; ++i) CHECK(smooth[i].second == doctest::Approx((raw[i].second + raw[i - 1].second) / 2).epsilon(0.001));
  CHECK(count(svg, "stroke-opacity=\"0.3\"") == 1);
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
  refused("no json\nat all\n", 3, "line 1 is not a line of a log");
  refused("[1, 2]\n", 3, "line 1 is not a line of a log");
  refused(std::string(100'000, '[') + "\n", 3, "line 1 is nested too deeply");
  refused("{\"kind\":\"step\",\"step\":\"1\",\"loss\":null}\n", 3, "holds no step");
  CHECK(run_einc({"plot", folder.at("missing.jsonl"), "-o", folder.at("x.svg")}).status == 4);
}

TEST_CASE("a PNG is drawn where rsvg-convert is installed, and else einc says how to get one") {
  const TrainFolder folder;
  const Ran ran = run_einc({"plot", folder.text("run.jsonl", kLog), "-o", folder.at("x.png")});
  CAPTURE(ran.errors);
  if (ran.status == 0) {
    CHECK(folder.content("x.png").starts_with("\x89PNG"));
  } else {
    CHECK(ran.status == 2);
    CHECK(ran.errors.find("install rsvg-convert") != std::string::npos);
  }
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
