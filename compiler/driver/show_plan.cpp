// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/show_plan.h"

#include <fmt/format.h>

#include <charconv>

#include "compiler/api/mesh_process.h"
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

bool check_request(const CompileRequest& request) {
  const auto refuse = [](const char* why) { return fmt::print(stderr, "einc: --plan {}\n", why), false; };
  if (!request.emit.empty() || !request.explain.empty() || !request.fit.empty() || request.compares)
    return refuse("is an answer of its own: leave out --emit, --explain, --fit and --diff");
  if (!request.mesh.empty() || !request.shard.empty()) return refuse("looks for the mesh: leave out --mesh and --shard");
  if (!request.device.empty() || request.devices) return refuse("names the devices: leave out --device and --devices");
  if (request.memory_limit) return refuse("fits the device's memory: leave out --memory-limit");
  if (!request.report.empty() && request.report != "text" && request.report != "json")
    return refuse("is printed as text or, with --report=json, as JSON");
  return true;
}

bool check_program(const CompileRequest& request, const Graph& graph, const Bindings& given) {
  const BindResult bound = graph.dims.bind(given);
  if (!bound.unset.empty()) {
    std::string names;
    for (const Name name : bound.unset) names += fmt::format(" -D {}=...", name.str());
    return fmt::print(stderr, "einc: --plan needs a value for every dim: add{}\n", names), false;
  }
  if (!graph.loss.valid())
    return fmt::print(stderr, "einc: --plan is about training, and {} minimizes nothing\n", printable(request.file)), false;
  return true;
}

// Nothing to show: why not, and what would help.
ExitStatus tell_of_nothing(const CompileRequest& request, const MeshAdvice& advice) {
  const std::string fleet = fmt::format("{} x {}", advice.devices, advice.device.name);
  if (advice.estimated == 0) {
    std::string sizes;
    for (const std::string& size : advice.sizes) sizes += (sizes.empty() ? "" : ", ") + size;
    fmt::print(stderr,
               "einc: no mesh of {} devices splits {}: no axes of {} divide into so many parts; set sizes that do, such as -D {}={}\n",
               advice.devices, printable(request.file), sizes, advice.batch.empty() ? "batch" : advice.batch.str(),
               (advice.batch_size / advice.devices + 1) * advice.devices);
    return ExitStatus::wrong_usage;
  }
  if (advice.smallest) {
    const EstimatedWay& least = *advice.smallest;
    fmt::print(stderr,
               "einc: no way to split {} over {} fits {:.0f} bytes: the least is {:.0f} on each device, with {}; more devices take less\n",
               printable(request.file), fleet, advice.device.usable_bytes(), least.held.total(), options_of(advice, least.way));
    return ExitStatus::environment;
  }
  fmt::print(stderr, "einc: {} has no times for {}: a link that spans {} devices, or a rate of a number format is missing\n", fleet,
             printable(request.file), advice.devices);
  return ExitStatus::wrong_usage;
}

}  // namespace

ExitStatus show_plan(const CompileRequest& request, const PipelineOptions& given, TextStyle style) {
  const std::optional<Fleet> fleet = check_request(request) ? parse_fleet(request.plan) : std::nullopt;
  if (!fleet) return ExitStatus::wrong_usage;
  DeclaredAxes declared;
  PipelineOptions options = given;
  options.without_mesh = true;
  options.declared = [&](Op op, Name path, const std::vector<DeclaredAxis>& axes) { declared[{op, path.str()}] = axes; };
  const Compilation c = compile_file(request.file, options);
  print_diagnostics(c.sources, c.diagnostics, request.diagnostics == "json" ? DiagnosticsForm::json : DiagnosticsForm::text,
                    request.quiet ? Severity::error : Severity::warning);
  if (!c.graph) return ExitStatus::wrong_program;
  if (!check_program(request, *c.graph, options.dims)) return ExitStatus::wrong_usage;
  options.declared = nullptr;
  const PlanFor plan_for = [&](const Scheduling& scheduling) {
    Scheduling asked = request.scheduling();
    asked.memory_limit = scheduling.memory_limit;
    return plan_for_device(asked, fleet->device);
  };
  const auto process = [&](const Graph& graph, const Bindings& dims) { return process_bytes_of(graph, dims, fleet->device.target); };
  const MeshAdvice advice = advise(c, options, declared, plan_for, fleet->device, fleet->devices, process);
  if (advice.ways.empty()) return tell_of_nothing(request, advice);
  fmt::print("{}", request.report == "json" ? advice_json(advice) : advice_document(advice).text(style));
  return ExitStatus::done;
}

}  // namespace einc
