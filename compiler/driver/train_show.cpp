// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "compiler/driver/command_line.h"
#include "compiler/driver/train.h"

namespace einc {

std::string with_prefix(double value, std::string_view unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  for (; value >= 999.5 && prefix + 1 < std::size(kPrefixes); ++prefix) value /= 1000;
  const int digits = value >= 99.95 || (prefix == 0 && value == std::floor(value)) ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
}

std::string duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

namespace {

std::string bytes_text(int64_t bytes) { return with_prefix(static_cast<double>(bytes), "B"); }

std::string watched_text(const LogInterval& interval) {
  std::string text;
  for (const auto& [name, value] : interval.watched) {
    const bool rate = name.rfind("learning_rate", 0) == 0;
    if (rate) text += fmt::format("  lr{} {:.3g}", name.substr(std::string_view("learning_rate").size()), value);
    if (name == "gradient_norm") text += fmt::format("  norm {:.3g}", value);
    if (name == "loss_scale") text += fmt::format("  scale {:g}", value);
  }
  return text;
}

// What both forms say before, between and after.
class TextView : public RunView {
 public:
  explicit TextView(std::FILE* out) : out_(out) {}

  void begin(const RunFacts& facts, const TrainingPosition& from) override {
    facts_ = facts;
    from_ = from;
    say(fmt::format("{}: {} parameters, {} and {} a step, {} of memory predicted; {} in {} on {}\n", facts.model,
                    static_cast<int64_t>(facts.parameters), with_prefix(facts.flops, "FLOP"),
                    with_prefix(facts.items(), facts.items() == 1 ? "example" : facts.item()), bytes_text(facts.predicted_bytes),
                    from.step == 0 ? fmt::format("{} steps", facts.steps) : fmt::format("steps {} to {}", from.step + 1, facts.steps),
                    facts.precision, facts.device));
  }

  void failed(const std::string&) override {}

  void end(const RunResult& r) override {
    std::string text =
        fmt::format("{} {} steps in {}", r.interrupted ? "interrupted after" : "trained", r.position.step, duration(r.elapsed));
    if (r.steps > 0) {
      const double step = r.step_seconds / static_cast<double>(r.steps);
      text += fmt::format(": {:.3g} ms a step, {}{}", step * 1e3, throughput_text(step), mfu_text(step));
    }
    if (std::isfinite(r.position.best_loss))
      text += fmt::format("; best validation loss {:.4f} at step {}", r.position.best_loss, r.position.best_step);
    say(fmt::format("{}; {} of memory at the peak ({} predicted)\n", text, bytes_text(r.measured_bytes),
                    bytes_text(facts_.predicted_bytes)));
  }

 protected:
  void say(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
  }
  std::string throughput_text(double step) const { return with_prefix(facts_.items() / step, fmt::format("{}/s", facts_.item())); }
  std::string mfu_text(double step) const {
    const auto mfu = facts_.mfu(step);
    return mfu ? fmt::format(", MFU {:.1f} %", 100 * *mfu) : "";
  }
  std::string interval_text(const LogInterval& i) const {
    return fmt::format("loss {:.4f}{}  {:.3g} ms, {}{}", i.loss, watched_text(i), i.seconds * 1e3, throughput_text(i.seconds),
                       mfu_text(i.seconds));
  }
  static std::string evaluation_text(const EvaluationRecord& record) {
    return fmt::format("step {}  validation loss {:.4f}{}\n", record.step, record.loss, record.best ? " (best)" : "");
  }
  std::string left_text(const LogInterval& i) const {
    const double done = static_cast<double>(i.step - from_.step), left = static_cast<double>(facts_.steps - i.step);
    return duration(i.elapsed / done * left) + " left";
  }

  std::FILE* out_;
  RunFacts facts_;
  TrainingPosition from_;
};

class PlainLines : public TextView {
 public:
  using TextView::TextView;
  void interval(const LogInterval& i) override { say(fmt::format("step {}  {}, {}\n", i.step, interval_text(i), left_text(i))); }
  void evaluated(const EvaluationRecord& record, double) override { say(evaluation_text(record)); }
};

class ProgressBar : public TextView {
 public:
  using TextView::TextView;

  void stepped(const LogInterval& now) override {
    const auto time = std::chrono::steady_clock::now();
    if (time - drawn_ < std::chrono::milliseconds(100) && now.step != facts_.steps) return;
    drawn_ = time;
    draw(now);
  }
  void interval(const LogInterval&) override {}
  void evaluated(const EvaluationRecord& record, double) override {
    validation_ = fmt::format("  val {:.4f}", record.loss);
    say("\r\x1b[K" + evaluation_text(record));
    if (last_) draw(*last_);
  }
  void failed(const std::string&) override { say("\n"); }
  void end(const RunResult& result) override {
    say("\n");
    TextView::end(result);
  }

 private:
  // Loss, rate and time left always; the others while there is room, the most wanted first. What is left of the line is the bar.
  void draw(const LogInterval& now) {
    last_ = now;
    constexpr size_t kFewest = 8, kMost = 20;  // cells of the bar, while there is room for other things
    const std::string start = fmt::format(" {}/{}  loss {:.4f}", now.step, facts_.steps, now.loss);
    const std::string end = fmt::format("  {}, {}", throughput_text(now.seconds), left_text(now));
    const auto room = static_cast<size_t>(std::max(terminal_width(STDOUT_FILENO) - 1, 0));
    std::string extra, mfu = mfu_text(now.seconds);
    if (!mfu.empty()) mfu.replace(0, 1, " ");  // after two spaces, as the others
    for (const std::string& text : {validation_, watched_text(now), mfu})
      if (kFewest + start.size() + extra.size() + text.size() + end.size() <= room) extra += text;
    std::string text = start + extra + end;
    const size_t cells = std::min(kMost, room - std::min(room, text.size()));
    const auto filled = static_cast<size_t>(static_cast<double>(now.step) / static_cast<double>(facts_.steps) * static_cast<double>(cells));
    std::string bar;
    for (size_t i = 0; i < cells; ++i) bar += i < filled ? "━" : "╌";
    say("\r\x1b[K" + bar + text.substr(0, room));
  }

  std::chrono::steady_clock::time_point drawn_{};
  std::optional<LogInterval> last_;
  std::string validation_;
};

}  // namespace

std::unique_ptr<RunView> plain_lines(std::FILE* out) { return std::make_unique<PlainLines>(out); }
std::unique_ptr<RunView> progress_bar(std::FILE* terminal) { return std::make_unique<ProgressBar>(terminal); }

}  // namespace einc
