// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/show_plan.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/api/render_report.h"
#include "compiler/driver/choose_device.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/open_program.h"
#include "compiler/plan/mesh_advice.h"

namespace einc {
namespace {

struct Fleet {
  int64_t devices = 0;
  Device device;
};

constexpr int64_t kMostDevices = 1'000'000;

// 64xh100-sxm; nullopt after a message.
std::optional<Fleet> parse_fleet(const std::string& text) {
  Fleet fleet;
  const char *begin = text.data(), *end = begin + text.size();
  const auto [behind, error] = std::from_chars(begin, end, fleet.devices);
  if (error != std::errc() || behind == end || *behind != 'x' || behind + 1 == end || fleet.devices < 2 || fleet.devices > kMostDevices) {
    fmt::print(stderr, "einc: --plan takes a number of devices, from 2 to {}, and what they are, such as 64xh100-sxm; it is {}\n",
               kMostDevices, printable(text));
    return std::nullopt;
  }
  const auto device = choose_device(std::string(behind + 1, end), "einc");
  if (!device) return std::nullopt;
  fleet.device = *device;
  return fleet;
}

}  // namespace

ExitStatus show_plan(const CompileRequest& request, const PipelineOptions& given, TextStyle style) {
  const std::optional<Fleet> fleet = parse_fleet(request.plan);
  if (!fleet) return ExitStatus::wrong_usage;
  DeclaredAxes declared;
  PipelineOptions options = given;
  options.declared = [&](Op op, Name path, const std::vector<DeclaredAxis>& axes) { declared[{op, path.str()}] = axes; };
  const Compilation c = compile_file(request.file, options);
  print_diagnostics(c.sources, c.diagnostics, request.diagnostics == "json" ? DiagnosticsForm::json : DiagnosticsForm::text,
                    request.quiet ? Severity::error : Severity::warning);
  if (!c.graph) return ExitStatus::wrong_program;
  options.declared = nullptr;
  const PlanStep plan = plan_for_device(request.scheduling(), fleet->device);
  const MeshAdvice advice = advise(c, options, declared, plan, fleet->device, fleet->devices);
  if (request.report == "json")
    fmt::print("{}", advice_json(advice));
  else
    fmt::print("{}", advice_document(advice, request.file).text(style));
  return ExitStatus::done;
}

}  // namespace einc
