// SPDX-License-Identifier: Apache-2.0
// `einc estimate`: napkin numbers without a model, from 6 N D and bytes per parameter.
#include <fmt/format.h>
#include <unistd.h>

#include "compiler/cost/estimate.h"
#include "compiler/driver/choose_device.h"
#include "compiler/driver/command_line.h"
#include "compiler/report/json.h"
#include "compiler/report/text.h"

namespace einc {
namespace {

constexpr uint64_t kLargestSize = uint64_t{1} << 40;  // sizes whose products a report can print

void add_sizes(CLI::App& app, TransformerSizes& sizes) {
  const auto add = [&](const char* option, std::optional<int64_t>& size, const char* what) {
    app.add_option(option, size, what)
        ->transform(count_between(1, kLargestSize))
        ->type_name("COUNT")
        ->group("A transformer's sizes, for the rules of the literature");
  };
  add("--layers", sizes.layers, "blocks");
  add("--embed", sizes.embed, "width of the residual stream");
  add("--heads", sizes.heads, "attention heads");
  add("--kv-heads", sizes.kv_heads, "heads of keys and values; all unless given");
  add("--head", sizes.head, "width of a head; embed / heads unless given");
  add("--ffn", sizes.ffn, "width of the MLP, or of one expert; 4 embed unless given");
  add("--experts", sizes.experts, "experts of each layer");
  add("--used-experts", sizes.used_experts, "experts that a token uses");
  add("--vocab", sizes.vocab, "vocabulary");
  add("--seq", sizes.seq, "tokens of a sequence");
  add("--batch", sizes.batch, "sequences of a step; 1 unless given");
  add("--tensor-parallel", sizes.tensor_parallel, "devices that share a layer");
  add("--pipeline-parallel", sizes.pipeline_parallel, "pipeline stages");
  add("--interleave", sizes.interleave, "model chunks of each stage under the interleaved schedule");
}

}  // namespace

ExitStatus estimate_command(Arguments arguments) {
  CLI::App app("Training time, cost and memory of a model from its size alone.", "einc estimate");
  EstimateRequest request;
  std::string device, report = "text";
  app.add_option("--params", request.parameters, "parameters, 70e9 or 70B")->transform(quantity());
  app.add_option("--tokens", request.tokens, "training tokens, 15e12 or 15T")->transform(quantity());
  app.add_option("--device", device, "a name of einc --list-devices, or a JSON file");
  app.add_option("--devices", request.devices, "number of devices")->transform(count_between(1, uint64_t{1} << 30));
  app.add_option("--peak", request.peak, "FLOP/s of one device, in place of the table's")->transform(quantity());
  app.add_option("--mfu", request.mfu, "model FLOPs utilisation, in (0, 1]")->check(positive_number());
  app.add_option("--precision", request.precision, "bf16, f16, fp8, tf32 or f32: whose peak to take")
      ->check(one_of({"bf16", "f16", "fp8", "tf32", "f32"}));
  app.add_option("--optimizer", request.optimizer, "adamw, adam, adam8bit, adagrad, rmsprop, momentum or sgd: the largest model that fits");
  app.add_option("--batch-tokens", request.batch_tokens, "tokens per step, to find the number of steps")->transform(quantity());
  app.add_option("--report", report, "text or json")->check(one_of({"text", "json"}));
  add_sizes(app, request.sizes);
  constexpr const char* kMeasured = "Measured, for the utilisation";
  app.add_option("--seconds", request.seconds, "time of --flops, or of a step of --batch sequences of --seq tokens")
      ->check(positive_number())
      ->group(kMeasured);
  app.add_option("--flops", request.flops, "the work done in --seconds by all devices, such as the report's exact count")
      ->transform(quantity())
      ->group(kMeasured);
  app.add_option("--tokens-per-second", request.tokens_per_second, "measured rate of one device")
      ->check(positive_number())
      ->group(kMeasured);
  app.add_option("--device-hours", request.device_hours, "device-hours that all --tokens took")->check(positive_number())->group(kMeasured);
  if (auto status = parse_arguments(app, arguments)) return *status;
  if (!device.empty() && !(request.device = choose_device(device, "einc estimate"))) return ExitStatus::wrong_usage;
  const std::vector<std::string> problems = check_estimate(request);
  for (const std::string& problem : problems) fmt::print(stderr, "einc estimate: {}\n", problem);
  if (!problems.empty()) return ExitStatus::wrong_usage;
  const Estimate result = estimate(request);
  const TextStyle style{terminal_width(), color_for(STDOUT_FILENO) == Color::on ? Paint::on : Paint::off};
  if (report == "json")
    fmt::print("{}\n", render_json(result));
  else
    fmt::print("{}", render_text(result, style));
  return ExitStatus::done;
}

}  // namespace einc
