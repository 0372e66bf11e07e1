// SPDX-License-Identifier: Apache-2.0
// `einc FILE`: compile a program and show what was asked for: the cost report, any level (--emit), or why (--explain).
#include <einc/version.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <map>

#include "compiler/driver/check_outputs.h"
#include "compiler/driver/choose_device.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/command_options.h"
#include "compiler/driver/emit.h"
#include "compiler/driver/emit_cuda.h"
#include "compiler/driver/emit_kernels.h"
#include "compiler/driver/emit_object.h"
#include "compiler/driver/emit_schedule.h"
#include "compiler/driver/launch_plan.h"
#include "compiler/driver/launcher.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/show_plan.h"
#include "compiler/driver/show_report.h"
#include "compiler/ir/print.h"
#include "compiler/ir/text.h"
#include "compiler/pipeline/mesh_program.h"
#include "compiler/pipeline/pipeline.h"
#include "compiler/report/report.h"
#include "compiler/report/text.h"
#include "dsl/parser.h"

namespace einc {
namespace {

constexpr const char* kEmitKinds[] = {"ast", "graph", "grad", "shapes", "kernels",  "schedule", "llvm", "asm",
                                      "obj", "cuda",  "ptx",  "cubin",  "launches", "dot",      "json"};

void add_options(CLI::App& app, CompileRequest& r) {
  app.add_option("FILE", r.file, "the program, model.ein");
  app.add_option("-D", r.dims, "set a dim: name=value; the last one counts, but --diff compares two")
      ->allow_extra_args(false)
      ->type_name("NAME=VALUE");
  add_import_folders(app, r.import_folders);
  app.add_option("--report", r.report, "cost report: text, json, md (Markdown), csv (path and value of each number), html (a page)")
      ->expected(0, 1)
      ->default_str("text")
      ->check(one_of({"text", "json", "md", "csv", "html"}));
  app.add_option(
         "--diff", r.other,
         "the numbers in which the report of another program, OTHER.ein, differs; or, where a dim is set twice, those that change with its "
         "second value: --diff -D batch=8 -D batch=16")
      ->expected(0, 1)
      ->type_name("OTHER");
  app.add_option("--emit", r.emit,
                 "print a level of the whole program: ast, graph, grad, shapes, kernels, schedule (how they run; both of this processor, "
                 "or of the GPU of --device), llvm, "
                 "asm, cuda, ptx, launches (what an NVIDIA "
                 "GPU executes), dot or json; obj: write an object "
                 "file and a header to link into C++ programs; cubin: write machine code of NVIDIA GPUs and print what its kernels take")
      ->check(one_of(std::vector<std::string>(std::begin(kEmitKinds), std::end(kEmitKinds))));
  app.add_option(
      "-o", r.object.path,
      "where to write what --emit=obj makes: model.o, and model.h beside it; or what --emit=cubin or --report=html, md, csv make");
  app.add_option("--arch", r.arch,
                 "GPU architecture for --emit=cuda, ptx, cubin and launches, where it is not that of --device: " + known_archs());
  app.add_option("--cpu", r.object.cpu, "processor for --emit=obj: host, x86-64-v3, x86-64-v4 or another name that LLVM knows");
  app.add_option("--mode", r.object.mode, "what --emit=obj holds: training (a step, and the forward alone) or inference")
      ->check(one_of({"training", "inference"}));
  app.add_option(
         "--explain", r.explain,
         "why: memory (views and copies), precision (dtypes), contraction (orders of einsums), fusion (kernels, "
         "of --device where that is a GPU), gemm (contractions on NVIDIA GPUs), sharding (how values lie on the mesh, and what crosses it)")
      ->check(one_of({"memory", "precision", "contraction", "fusion", "gemm", "sharding"}));
  add_precision(app, r.precision);
  add_mesh(app, r.mesh, r.shard);
  add_memory_limit(app, r.memory_limit);
  app.add_flag("--discard-outputs", r.discard_outputs, "leave out what only the program's outputs need, as einc train does");
  app.add_option("--device", r.device,
                 "machine to plan for and to report times and memory of: a name of --list-devices, `here` for this one as measured, or a "
                 "JSON file (\"target\": \"cuda\" for GPUs)");
  app.add_option("--threads", r.threads,
                 "threads of this machine's processor, for the memory reported and for measuring `--device=here`; all for `here`, else one")
      ->transform(count_between(1, kMaxInt));
  app.add_option("--devices", r.devices, "number of devices to train on")->transform(count_between(1, kMaxCount));
  app.add_option("--tokens", r.tokens, "number of training tokens, 15e12 or 15T")->transform(quantity());
  app.add_option("--mfu", r.mfu, "model FLOPs utilisation to assume, in (0, 1]")->check(number_between(1e-9, 1));
  app.add_option("--fit", r.fit, "the largest value of this dim whose training step fits the device's memory")->type_name("DIM");
  app.add_option("--plan", r.plan,
                 "the ten fastest ways to split the program over that many devices, 64xh100-sxm, with their mesh and shard lines")
      ->type_name("NxDEVICE");
  app.add_option("--diagnostics", r.diagnostics, "form of error messages: text or json")->check(one_of({"text", "json"}));
  app.add_option("--dump-after", r.passes.dump_after, "print the result of a pass, a graph or kernels, on standard error")
      ->type_name("PASS");
  app.add_option("--disable", r.disable, "skip a pass")->type_name("PASS");
  app.add_flag("--time-passes", r.passes.times, "seconds of each pass, on standard error");
  app.add_flag("--passes", r.show_passes, "list the passes");
  app.add_flag("--list-devices", r.list_devices, "list the machines that --device knows");
  app.add_flag("--quiet,-q", r.quiet, "print no warnings");
  app.add_flag("--version", r.version, "print the version");
  std::string list = "Subcommands (einc NAME --help tells more):";
  for (const Command& c : commands()) list += fmt::format("\n  {:<10} {}", c.name, c.summary);
  app.footer(list);
}

// One answer a call: what would be left out is refused.
bool check_answers(const CompileRequest& request) {
  if (request.compares && !(request.report.empty() && request.emit.empty() && request.explain.empty() && request.fit.empty()))
    return fmt::print(stderr, "einc: --diff is an answer of its own: leave out --report, --emit, --explain and --fit\n"), false;
  if (!request.report.empty() && !request.emit.empty())
    return fmt::print(stderr, "einc: --report and --emit={} are two answers: ask for one of them\n", request.emit), false;
  const bool writes =
      request.emit == "obj" || request.emit == "cubin" || request.report == "html" || request.report == "md" || request.report == "csv";
  if (!request.object.path.empty() && !writes)
    return fmt::print(
               stderr,
               "einc: -o {} names what --emit=obj, --emit=cubin or --report=html, md and csv write; all else goes to standard output\n",
               printable(request.object.path)),
           false;
  return true;
}

// A word that is neither a file nor a command, but near a command or before a program: `einc trian model.ein`, `einc export model.ein`.
bool is_misspelled_command(const CLI::App& app, Arguments arguments) {
  const bool is_word =
      !arguments.empty() && !arguments.front().starts_with('-') && arguments.front().find_first_of("./") == std::string::npos;
  std::error_code error;  // a name too long is none of a file
  if (!is_word || std::filesystem::exists(arguments.front(), error)) return false;
  std::vector<std::string> names;
  for (const Command& c : commands()) names.emplace_back(c.name);
  std::string meant = did_you_mean(arguments.front(), names);
  const bool is_option = app.get_option_no_throw("--" + arguments.front()) != nullptr;
  if (meant.empty() && !is_option && arguments.size() > 1 && arguments[1].ends_with(".ein"))
    meant = fmt::format("; `einc {}` compiles it and says what it costs, einc --help lists the commands", printable(arguments[1]));
  if (!meant.empty()) fmt::print(stderr, "einc: no command `{}`, and no file of that name{}\n", printable(arguments.front()), meant);
  return !meant.empty();
}

bool check_fit(const CompileRequest& request, const Graph& graph, const std::optional<Device>& device) {
  if (!device) {
    fmt::print(stderr, "einc: --fit needs --device: the memory to fit into\n");
    return false;
  }
  const Dim* dim = graph.dims.find(Name(request.fit));
  if (dim == nullptr || dim->kind == DimKind::derived) {
    std::vector<std::string> names;
    for (const Dim& d : graph.dims.dims())
      if (d.kind != DimKind::derived) names.push_back(d.name.str());
    const std::string near = did_you_mean(request.fit, names);
    fmt::print(stderr, "einc: --fit={} names no {} of {}{}\n", printable(request.fit), dim == nullptr ? "dim" : "free or defaulted dim",
               request.file, near.empty() && !names.empty() ? fmt::format("; it has {}", fmt::join(names, ", ")) : near);
    return false;
  }
  return true;
}

std::string graph_text(const Graph& graph, const Bindings& given) {
  ReportOptions options;
  options.given = given;
  options.detail = Detail::ops;
  const Report report = build_report(graph, options);
  std::map<uint32_t, std::string> notes;
  auto show = [](const Amount& a) {
    return a.value && !a.formula.is_constant() ? fmt::format("{} = {}", a.formula.str(), a.value->str()) : a.formula.str();
  };
  for (const OpReport& op : report.ops)
    notes[op.id.index] = fmt::format("flops {}; bytes read {}, written {}", show(op.flops), show(op.bytes_read), show(op.bytes_written));
  return print_graph(graph, [&](NodeId id) {
    const auto found = notes.find(id.index);
    return found == notes.end() ? std::string() : found->second;
  });
}

// What stands below the graph, for the processor.
void show_native(const CompileRequest& request, const Graph& graph, const Bindings& dims) {
  CpuOptions options;
  options.scheduling = request.scheduling();
  const auto lowered = lower_graph(graph, dims, options);
  if (request.emit == "kernels") fmt::print("{}", emit_kernels(*lowered, lowered->lowered.program));
  if (request.emit == "schedule") fmt::print("{}", emit_schedule(*lowered, native_processor()));
  if (request.emit == "llvm") fmt::print("{}", llvm_text_of(lowered->lowered));
  if (request.emit == "asm") fmt::print("{}", assembly_of(lowered->lowered));
  if (request.explain == "fusion") fmt::print("{}", explain_fusion(*lowered));
}

// As the report: what einc makes no code for is planned as an NVIDIA GPU.
bool is_planned_as_gpu(const std::optional<Device>& device) { return device && device->target != DeviceTarget::cpu; }

// The GPU of --arch, else that of --device, else an H100's.
ExitStatus show_cuda(const CompileRequest& request, const Graph& graph, const Bindings& dims, const std::optional<Device>& device) {
  CudaOptions cuda;
  const GpuShape named = device ? device->gpu.value_or(GpuShape{}) : GpuShape{};
  const std::optional<GpuShape> gpu = request.arch.empty() ? named : gpu_shape_of_arch(request.arch);
  if (!gpu) {
    fmt::print(stderr, "einc: --arch={} is not a GPU that einc makes code for; it knows {}\n", printable(request.arch), known_archs());
    return ExitStatus::wrong_usage;
  }
  cuda.gpu = *gpu;
  cuda.mode = request.object.mode == "inference" ? RunMode::inference : RunMode::training;
  cuda.attention = cuda::AttentionLibrary::get();
  cuda.scheduling = request.scheduling();
  const auto program = compile_for_cuda(graph, dims, cuda);
  if (request.emit == "kernels") fmt::print("{}", emit_kernels(*program, program->executable.program));
  if (request.emit == "schedule") fmt::print("{}", emit_schedule(*program));
  if (request.explain == "fusion") fmt::print("{}", explain_fusion(*program));
  if (request.explain == "gemm") fmt::print("{}", explain_gemm(*program));
  if (request.emit == "launches") fmt::print("{}", launch_plan(*program));
  if (request.emit != "cuda" && request.emit != "ptx" && request.emit != "cubin") return ExitStatus::done;
  return emit_cuda(program->executable, request.emit, {request.arch.empty() ? gpu->arch() : request.arch, request.object.path});
}

// `einc FILE` alone: the summary.
bool asks_nothing(const CompileRequest& request) {
  return request.report.empty() && request.emit.empty() && request.explain.empty() && request.fit.empty();
}

TextStyle style_of_output() { return {terminal_width(), color_for(STDOUT_FILENO) == Color::on ? Paint::on : Paint::off}; }

ExitStatus show(const CompileRequest& request, const Compilation& c, const PipelineOptions& options, const std::optional<Device>& device,
                const Partitioned* partitioned) {
  const Graph& graph = *c.graph;
  const Bindings values = graph.dims.bind(options.dims).values;
  const TextStyle style = style_of_output();
  if (request.emit == "graph") fmt::print("{}", graph_text(graph, options.dims));
  if (request.emit == "grad") fmt::print("{}", emit_grad(graph));
  if (request.emit == "shapes") fmt::print("{}", emit_shapes(*c.elaborated, values));
  const bool of_either = request.emit == "kernels" || request.emit == "schedule" || request.explain == "fusion";
  const bool of_gpus =
      request.emit == "cuda" || request.emit == "ptx" || request.emit == "cubin" || request.emit == "launches" || request.explain == "gemm";
  if (of_gpus || (of_either && is_planned_as_gpu(device))) return show_cuda(request, graph, options.dims, device);
  if (of_either || request.emit == "llvm" || request.emit == "asm") show_native(request, graph, options.dims);
  if (request.emit == "dot") fmt::print("{}", emit_dot(graph));
  if (request.emit == "json") fmt::print("{}", emit_json(graph));
  if (request.explain == "precision") fmt::print("{}", explain_precision(graph));
  if (request.explain == "sharding" && partitioned) {
    const std::optional<StagedDevice> staged = graph.mesh.stages.any() ? staged_device(*partitioned, options.dims) : std::nullopt;
    const Localized local = staged ? Localized() : localize(*partitioned);
    const MeshReport report = mesh_report(graph, *partitioned, staged ? staged->whole : local, options.dims, device ? &*device : nullptr,
                                          staged ? &*staged : nullptr);
    fmt::print("{}", explain_sharding(graph, *partitioned, report, style.width));
  }
  if (request.explain == "contraction") fmt::print("{}", explain_contraction(graph, values));
  const bool explain_storage = request.explain == "memory", summary = asks_nothing(request);
  if (request.report.empty() && request.fit.empty() && !explain_storage && !summary) return ExitStatus::done;
  const Detail detail = request.report == "json" || request.report == "csv" || explain_storage ? Detail::ops : Detail::totals;
  const Device* cpu = find_device("cpu");
  const std::optional<Report> report =
      make_report(request, c, options, summary && !device ? std::optional(*cpu) : device, detail, partitioned);
  if (!report) return ExitStatus::wrong_usage;
  if (explain_storage) fmt::print("{}", explain_memory(*report, graph, style));
  if (summary) fmt::print("{}", render_summary(*report));
  if (!request.report.empty() || !request.fit.empty()) write_report(request, *report, c, style);
  return ExitStatus::done;
}

// The program's own dims; the other's go into the request.
std::optional<Bindings> parse_compared_dims(CompileRequest& request) {
  const auto compared = compared_settings(request.dims);
  if (!compared) return std::nullopt;
  if (request.other.empty() && compared->own.size() == compared->other.size()) {
    fmt::print(stderr, "einc: --diff takes another program, or a dim that -D sets twice: --diff -D batch=8 -D batch=16\n");
    return std::nullopt;
  }
  const auto own = parse_dim_settings(compared->own), other = parse_dim_settings(compared->other);
  if (!own || !other) return std::nullopt;
  request.other_dims = *other;
  return own;
}

PipelineOptions pipeline_options(const CompileRequest& request, const Bindings& dims) {
  PipelineOptions options;
  options.unused_names = UnusedNames::reported;
  options.dims = dims;
  options.import_folders = request.import_folders;
  if (!request.precision.empty()) options.precision = *parse_policy(request.precision);
  options.mesh = request.mesh;
  options.shard = request.shard;
  if (request.discard_outputs) options.roots = Roots::step;
  options.disabled = request.disable;
  options.observe = [&request](std::string_view pass, const Graph& graph, double seconds) {
    request.passes.show_time(pass, seconds, fmt::format("{} nodes", graph.size()));
    if (request.passes.wants(pass)) fmt::print(stderr, "# after {}\n{}", pass, print_graph(graph));
  };
  return options;
}

}  // namespace

Scheduling CompileRequest::scheduling() const {
  Scheduling scheduling = watched_scheduling(disable, passes);
  if (memory_limit) scheduling.memory_limit = MemoryLimit{*memory_limit};
  return scheduling;
}

ExitStatus compile_command(Arguments arguments) {
  CLI::App app("Compiles a tensor program and says what it costs.", "einc");
  CompileRequest request;
  add_options(app, request);
  if (is_misspelled_command(app, arguments)) return ExitStatus::wrong_usage;
  if (auto status = parse_arguments(app, arguments)) return *status;
  if (request.version) return fmt::print("einc {}\n", EINC_VERSION), ExitStatus::done;
  if (request.list_devices) return fmt::print("{}", list_devices_text()), ExitStatus::done;
  if (request.show_passes) {
    fmt::print("{}", list_passes_text());
    return ExitStatus::done;
  }
  request.compares = app.count("--diff") > 0;
  if (!check_answers(request)) return ExitStatus::wrong_usage;
  if (request.emit == "obj" && !check_object_request(request.object)) return ExitStatus::wrong_usage;
  if (request.emit == "cubin" && request.object.path.empty())
    return fmt::print(stderr, "einc: --emit=cubin needs -o: the file to write\n"), ExitStatus::wrong_usage;
  if (request.file.empty())
    return fmt::print(stderr, "einc: no file given\n\n{}", help_text(app, terminal_width())), ExitStatus::wrong_usage;
  const std::optional<Bindings> dims = request.compares ? parse_compared_dims(request) : parse_dim_settings(request.dims);
  if (!dims || !check_pass_names(request.passes.dump_after, request.disable)) return ExitStatus::wrong_usage;
  if (request.threads && !request.device.empty() && request.device != "here")
    return fmt::print(stderr, "einc: --threads is of this machine's processor: without --device, or with --device=here\n"),
           ExitStatus::wrong_usage;
  std::optional<Device> device;
  if (!request.device.empty() && !(device = choose_device(request.device, "einc", request.threads))) return ExitStatus::wrong_usage;
  if (const std::optional<std::string> problem = unreadable(request.file))
    return fmt::print(stderr, "einc: {}\n", *problem), ExitStatus::environment;

  const PipelineOptions options = pipeline_options(request, *dims);
  const DiagnosticsForm form = request.diagnostics == "json" ? DiagnosticsForm::json : DiagnosticsForm::text;
  if (request.emit == "ast") return emit_ast(request.file, form);
  if (!request.plan.empty()) return show_plan(request, options, style_of_output());
  Compilation c = compile_file(request.file, options);
  print_diagnostics(c.sources, c.diagnostics, form, request.quiet ? Severity::error : Severity::warning);
  if (!c.graph) return ExitStatus::wrong_program;
  if (const auto status = refuse_processes(*c.graph, request.file, Sharing::none)) return *status;
  const std::optional<Partitioned> partitioned = partition_program(c, options.dims);
  if (c.diagnostics.has_errors()) {
    print_diagnostics(c.sources, c.diagnostics, form, Severity::error);
    return ExitStatus::wrong_program;
  }
  if (request.explain == "sharding" && !partitioned)
    return fmt::print(stderr, "einc: --explain=sharding is about a mesh: add a line such as `mesh data = 2`, or give --mesh data=2\n"),
           ExitStatus::wrong_usage;
  if (request.compares) return show_difference(request, c, options, device, style_of_output());
  if (!request.fit.empty() && !check_fit(request, *c.graph, device)) return ExitStatus::wrong_usage;
  NamedFiles inputs = sources_of(c), outputs;
  inputs.emplace_back("--device", find_device(request.device) ? "" : request.device);
  if (!request.object.path.empty()) outputs.emplace_back("-o", request.object.path);
  if (request.emit == "obj") outputs.emplace_back("-o, whose header is", header_path(request.object));
  if (!check_outputs(outputs, inputs)) return ExitStatus::wrong_usage;
  if (request.emit == "obj") return emit_object(std::move(c), options, request.object);
  const ExitStatus status = show(request, c, options, device, partitioned ? &*partitioned : nullptr);
  if (request.passes.misses(processor_passes())) show_native(request, *c.graph, options.dims);
  if (request.passes.misses(gpu_passes())) show_cuda(request, *c.graph, options.dims, device);
  return status;
}

}  // namespace einc
