// `einc estimate`: napkin numbers without a model, from 6 N D and bytes per parameter.
#include <fmt/format.h>
#include <unistd.h>

#include "compiler/cost/estimate.h"
#include "compiler/driver/choose_device.h"
#include "compiler/driver/command_line.h"
#include "compiler/report/json.h"
#include "compiler/report/text.h"

namespace einc {

ExitStatus estimate_command(Arguments arguments) {
  CLI::App app("Training time, cost and memory of a model from its size alone.", "einc estimate");
  EstimateRequest request;
  std::string device, report = "text";
  app.add_option("--params", request.parameters, "parameters, 70e9");
  app.add_option("--tokens", request.tokens, "training tokens, 15e12");
  app.add_option("--device", device, "a name of einc --list-devices, or a JSON file");
  app.add_option("--devices", request.devices, "how many");
  app.add_option("--mfu", request.mfu, "model FLOPs utilisation, in (0, 1]");
  app.add_option("--precision", request.precision, "bf16, f16, fp8 or f32: which peak counts");
  app.add_option("--optimizer", request.optimizer, "adamw, adam, adagrad, rmsprop, momentum or sgd: the largest model that fits");
  app.add_option("--batch-tokens", request.batch_tokens, "tokens a step, for the number of steps");
  app.add_option("--report", report, "text or json")->check(CLI::IsMember({"text", "json"}));
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
