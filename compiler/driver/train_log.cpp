// SPDX-License-Identifier: Apache-2.0
// `--log run.jsonl`: see README for the fields.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/driver/log_lines.h"
#include "compiler/driver/train.h"
#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

class JsonLog : public RunView {
 public:
  JsonLog(const std::string& path, uint64_t done) : path_(path) {
    const bool goes_on = done > 0 && std::filesystem::exists(path);
    if (goes_on) cut_log(path, done);
    file_ = std::fopen(path.c_str(), goes_on ? "ae" : "we");
    if (file_ == nullptr) fail();
  }
  ~JsonLog() override { std::fclose(file_); }
  JsonLog(const JsonLog&) = delete;
  JsonLog& operator=(const JsonLog&) = delete;

  void begin(const RunFacts& facts, const TrainingPosition& from) override {
    facts_ = facts;
    nlohmann::ordered_json dims = nlohmann::ordered_json::object();
    for (const auto& [name, value] : facts.dims) dims[name] = value;
    write({{"kind", "run"},
           {"model", facts.model},
           {"dims", dims},
           {"precision", facts.precision},
           {"target", facts.target},
           {"threads", facts.threads},
           {"device", facts.device},
           {"first_step", from.step},
           {"steps", facts.steps},
           {"micro_batches", facts.micro_batches},
           {"seeds", {{"init", facts.seeds.init}, {"data", facts.seeds.data}, {"dropout", facts.seeds.dropout}}},
           {"parameters", facts.parameters},
           {"flops_per_step", facts.flops},
           {"tokens_per_step", facts.tokens},
           {"examples_per_step", facts.examples},
           {"predicted_bytes", facts.predicted_bytes},
           {"peak_flops", facts.peak_flops > 0 ? nlohmann::ordered_json(facts.peak_flops) : nlohmann::ordered_json()}});
  }

  void interval(const LogInterval& interval) override {
    nlohmann::ordered_json line{{"kind", "step"}, {"step", interval.step}, {"loss", interval.loss}};
    for (const auto& [name, value] : interval.watched) line[name] = value;
    line["step_seconds"] = interval.seconds;
    line[fmt::format("{}_per_second", facts_.item())] = facts_.items() / interval.seconds;
    if (const auto mfu = facts_.mfu(interval.seconds)) line["mfu"] = *mfu;
    line["elapsed"] = interval.elapsed;
    write(line);
  }

  void evaluated(const EvaluationRecord& record, double elapsed) override {
    write({{"kind", "evaluation"},
           {"step", record.step},
           {"validation_loss", record.loss},
           {"seconds", record.seconds},
           {"elapsed", elapsed},
           {"best", record.best}});
  }

  void failed(const std::string& message) override { write({{"kind", "failure"}, {"message", message}}); }

  void end(const RunResult& result) override {
    write({{"kind", "end"},
           {"step", result.position.step},
           {"interrupted", result.interrupted},
           {"step_seconds", result.step_seconds},
           {"elapsed", result.elapsed},
           {"measured_bytes", result.measured_bytes}});
  }

 private:
  void write(const nlohmann::ordered_json& line) {
    const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) fail();
  }
  [[noreturn]] void fail() const {
    throw RuntimeFailure(FailureKind::resource, fmt::format("cannot write {}: {}", printable(path_), std::strerror(errno)));
  }

  std::string path_;
  std::FILE* file_ = nullptr;
  RunFacts facts_;
};

}  // namespace

std::unique_ptr<RunView> json_log(const std::string& path, uint64_t done) { return std::make_unique<JsonLog>(path, done); }

}  // namespace einc
