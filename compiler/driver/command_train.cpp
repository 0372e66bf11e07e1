// SPDX-License-Identifier: Apache-2.0
// `einc train FILE`: from initial weights to trained ones.
#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "compiler/api/compile_program.h"
#include "compiler/codegen/llvm/native_code.h"
#include "compiler/driver/check_outputs.h"
#include "compiler/driver/command_line.h"
#include "compiler/driver/interrupts.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/process_memory.h"
#include "compiler/driver/process_team.h"
#include "compiler/driver/saved_states.h"
#include "compiler/driver/standard_streams.h"
#include "compiler/driver/targets.h"
#include "compiler/driver/train.h"
#include "compiler/driver/train_checkpoints.h"
#include "compiler/ir/print.h"
#include "compiler/ir/text.h"
#include "compiler/pipeline/mesh_program.h"
#include "compiler/report/report.h"
#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/base/training_names.h"
#include "runtime/base/xxh64.h"
#include "runtime/cpu/peak.h"
#include "runtime/data/array_file.h"
#include "runtime/executor/weights.h"
#include "runtime/train/open_batches.h"
#include "runtime/train/record_batches.h"

namespace einc {
namespace {

struct TrainRequest {
  std::string file, target = "cpu", precision, mesh, shard, log, save, next, order = "random", token_format, optimizer, learning_rate,
                    record;
  std::string weights, names;  // to begin with
  CheckpointRequest checkpoint;
  std::optional<int64_t> memory_limit;
  std::vector<std::string> dims, import_folders, data, validation;
  uint64_t steps = 0, micro_batches = 1, log_every = 10, evaluate_every = 0, evaluation_batches = 20;
  std::optional<uint64_t> seed, init_seed, data_seed, dropout_seed;
  double validation_fraction = 0, timeout = 600;
  int threads = 0;
  bool quiet = false;
};

void add_options(CLI::App& app, TrainRequest& r) {
  app.add_option("FILE", r.file, "the program; it minimizes something")->required();
  app.add_option("-D", r.dims, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  add_import_folders(app, r.import_folders);
  app.add_option("--data", r.data,
                 "an input's data: name=train.bin, tokens of 16 or 32 bits, whose successors go to the other input of that shape; or "
                 "name=x.npy, an array with one row per example, one array for each input")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE");
  app.add_option("--val", r.validation, "the same for the validation loss")->allow_extra_args(false)->type_name("NAME=FILE");
  app.add_option("--val-fraction", r.validation_fraction, "without --val: the share of the data, at its end, that is kept for validation")
      ->check(number_between(0, 0.999));
  app.add_option("--next", r.next, "the input that gets the tokens that follow")->type_name("NAME");
  app.add_option("--dtype", r.token_format, "dtype of token files that do not say it: u16 or u32")->check(one_of({"u16", "u32"}));
  app.add_option("--order", r.order,
                 "random: each window is drawn from all; epochs: each is taken once per epoch, in a new order each time")
      ->check(one_of({"random", "epochs"}));
  app.add_option("--steps", r.steps, "training steps; with 0, --save writes the initial params")
      ->required()
      ->transform(count_between(0, kMaxCount));
  app.add_option("--accumulate", r.micro_batches,
                 "batches per step: their gradients are summed, so that a step takes the memory of one batch")
      ->transform(count_between(1, uint64_t{1} << 20));
  app.add_option("--lr", r.learning_rate, "a number or schedule in place of the file's: 3e-4, \"cosine(3e-4, total = 1000)\"");
  app.add_option("--optimizer", r.optimizer, "the optimizer in place of the file's: \"adamw(lr = 1e-3, weight_decay = 0.1)\"");
  app.add_option("--eval-every", r.evaluate_every, "steps between evaluations, the first before the first step; 0: one at the end")
      ->transform(count_between(0, kMaxCount));
  app.add_option("--eval-batches", r.evaluation_batches,
                 fmt::format("batches of an evaluation, the same each time; {} by default", r.evaluation_batches))
      ->transform(count_between(1, kMaxCount));
  app.add_option("--log", r.log, "write one JSON object per line: the run, log intervals, evaluations")->type_name("FILE");
  app.add_option("--log-every", r.log_every, "steps per log interval")->transform(count_between(1, kMaxCount));
  add_checkpoint_options(app, r.checkpoint);
  auto* weights = app.add_option("--weights", r.weights, "params to begin with: a .safetensors or .npz file")->type_name("FILE");
  app.add_option("--rename", r.names, "a file of lines `their.name -> our.name`, for weights from elsewhere: see runtime/training.md")
      ->type_name("FILE")
      ->needs(weights);
  app.add_option("--save", r.save, "where to write the params at the end, with running statistics: a .safetensors file")->type_name("FILE");
  app.add_option("--record-batches", r.record,
                 "write what the inputs hold in each batch, one array per input, to train elsewhere on the same data")
      ->type_name("FILE.npz");
  add_precision(app, r.precision);
  add_mesh(app, r.mesh, r.shard);
  app.add_option("--timeout", r.timeout, "with several processes: seconds that one waits for another before all end; 0: forever")
      ->check(number_between(0, 1e9));
  add_memory_limit(app, r.memory_limit);
  app.add_option("--target", r.target, kTargetHelp)->check(one_of(kTargets));
  app.add_option("--seed", r.seed, "seed of everything that has none of its own")->check(seed_check());
  app.add_option("--init-seed", r.init_seed, "seed of initial values")->check(seed_check());
  app.add_option("--data-seed", r.data_seed, "seed of the order of the data")->check(seed_check());
  app.add_option("--dropout-seed", r.dropout_seed, "seed of what a step draws, as for dropout")->check(seed_check());
  app.add_option("--threads", r.threads, "threads of the processor; all by default. The result is the same for any number")
      ->check(whole_number(1, kMaxInt));
  app.add_flag("--quiet", r.quiet, "print nothing unless something is wrong");
}

double value_of(const Amount& amount) { return amount.value ? amount.value->to_double() : 0; }

// Memory that a run takes of what it runs on: of the process, without its mapped data; or of the GPU, which gives nothing back before the
// run ends.
enum class Meter : uint8_t { process, gpu };
class MemoryMeter {
 public:
  explicit MemoryMeter(Meter of) : of_(of) {
    if (of_ == Meter::process) forget_high_water();
    before_ = of_ == Meter::gpu ? gpu_bytes_taken() : resident_bytes();
  }
  int64_t peak_bytes() const {
    if (of_ == Meter::gpu) return gpu_bytes_taken() - before_;
    return high_water_bytes() - before_ - std::max<int64_t>(0, file_bytes() - files_before_);
  }

 private:
  Meter of_;
  int64_t before_ = 0, files_before_ = file_bytes();
};

// Two batches lie ready while a step runs on the processor.
int64_t prefetched_bytes(const TrainRequest& r, const ProgramGraphs& graphs) {
  int64_t bytes = 0;
  if (r.target == "cpu")
    for (const TensorInfo& input : program_info(graphs).inputs) bytes += 2 * input.bytes();
  return bytes;
}

RunFacts facts_of(const TrainRequest& r, const ProgramGraphs& graphs, const ProgramRep& program, SessionRep& session,
                  const ProcessTeam& team) {
  const Graph& graph = *graphs.parts[Part::training];
  ReportOptions options;
  options.given = graphs.dims;
  options.plan = plan_for_processor(native_processor());
  const Report report = build_report(graph, options);
  RunFacts facts;
  facts.model = report.model;
  facts.precision = report.precision;
  facts.target = r.target;
  facts.dims = program.info.dims;
  facts.parameters = value_of(report.parameter_count);
  const auto micro_batches = static_cast<double>(r.micro_batches);
  facts.flops = value_of(report.step);
  if (const auto& micro = graphs.parts[Part::accumulation])
    facts.flops += (micro_batches - 1) * value_of(build_report(*micro, options).step);
  facts.tokens = micro_batches * value_of(report.six_nd.tokens);
  facts.examples = micro_batches * value_of(report.examples);
  facts.of_tokens = report.six_nd.of_tokens;
  facts.predicted_bytes = r.target == "cpu"    ? program.planned_bytes(session.pool().size()) + prefetched_bytes(r, graphs)
                          : r.target == "cuda" ? program.planned_bytes(session.pool().size())
                                               : static_cast<int64_t>(value_of(report.memory.peak_training));
  if (r.target == "cpu") {
    facts.peak_flops = graph.policy == Policy::bf16 ? bf16_dot_rate(session.pool()) : 0;
    if (facts.peak_flops == 0) facts.peak_flops = multiply_add_rate(session.pool());
  }
  facts.threads = session.pool().size();
  facts.device = fmt::format("{} thread{}", facts.threads, facts.threads == 1 ? "" : "s");
  if (r.target == "cuda") {
    facts.device = gpu_name();
    facts.peak_flops = gpu_peak_flops(graph.policy);
  }
  facts.peak_flops = team.rate_of_all(facts.peak_flops);
  if (team.size() > 1) facts.device = fmt::format("{} processes of {}", team.size(), facts.device);
  facts.steps = r.steps;
  facts.micro_batches = r.micro_batches;
  return facts;
}

// What is not said is as in the run that is gone on with.
TrainingSeeds seeds_of(const TrainRequest& r, const TrainingSeeds* earlier) {
  const TrainingSeeds other = earlier ? *earlier : TrainingSeeds{};
  const auto seed = [&](const std::optional<uint64_t>& own, uint64_t before) { return own ? *own : r.seed.value_or(before); };
  return {seed(r.init_seed, other.init), seed(r.data_seed, other.data), seed(r.dropout_seed, other.dropout)};
}

// "data = 4, model = 2": another one takes sums in another order.
std::string mesh_text(const Graph& graph, const Bindings& given) {
  const Bindings dims = graph.dims.bind(given).values;
  std::string text;
  for (const MeshAxis& axis : graph.mesh.axes)
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", axis.name.str(), axis.size.evaluate_integer(dims).value());
  return text;
}

// What of a processor decides the bits of its results.
std::string processor_text() {
  const Processor& processor = native_processor();
  return fmt::format("{}-bit vectors{}{}", processor.vector_bits, processor.matrix_tiles ? ", matrix tiles" : "",
                     processor.bf16_pairs ? ", pairs of bf16" : "");
}

RunSettings settings_of(const TrainRequest& r, const SessionRep& session, const RunFacts& facts, const Graph& graph, const Bindings& dims,
                        const Batches& training, const Batches* validation) {
  const std::string text = print_graph(graph);
  RunSettings run;
  run.seeds = facts.seeds;
  run.required = {{"data", training.description()}, {"precision", facts.precision}, {"micro-batches", std::to_string(r.micro_batches)}};
  run.noted = {{"program text", fmt::format("{:016x}", xxh64(std::as_bytes(std::span(text))))},
               {"target", r.target},
               {"processor", processor_text()}};
  if (!graph.mesh.empty()) run.noted["mesh"] = mesh_text(graph, dims);
  if (const std::string numerics = session.numerics(Part::training); !numerics.empty()) run.noted["numerics"] = numerics;
  if (validation != nullptr)
    run.noted["validation data"] = fmt::format("{} batches of {}", r.evaluation_batches, validation->description());
  return run;
}

// Passes on what the loop says, gathered into intervals.
class Watcher : public TrainingWatcher {
 public:
  Watcher(const SessionRep& session, uint64_t log_every, RunCheckpoints* checkpoints, const ProcessTeam& team)
      : session_(session), log_every_(log_every), checkpoints_(checkpoints), team_(team) {
    const ProgramInfo& info = session.program();
    for (uint32_t i = 0; i < info.outputs.size(); ++i)
      if (info.outputs[i].name.rfind(kAddedByTraining, 0) == 0)
        outputs_.emplace_back(info.outputs[i].name.substr(kAddedByTraining.size()), i);
    for (uint32_t i = 0; i < info.states.size(); ++i)
      if (info.states[i].name == kLossScale) loss_scale_ = Source{SourceKind::state, i};
  }
  void add(std::unique_ptr<RunView> view) { views_.push_back(std::move(view)); }

  void begin(const RunFacts& facts, const TrainingPosition& from) {
    steps_ = facts.steps;
    for (const auto& view : views_) view->begin(facts, from);
    start_ = std::chrono::steady_clock::now();
  }

  void stepped(const StepRecord& record) override {
    ++result_.steps;
    result_.step_seconds += record.seconds;
    loss_ += record.loss;
    seconds_ += record.seconds;
    const auto count = static_cast<double>(++count_);
    const LogInterval interval{record.step, loss_ / count, seconds_ / count, elapsed(), watched()};
    for (const auto& view : views_) view->stepped(interval);
    if (record.step % log_every_ != 0 && record.step != steps_) return;
    for (const auto& view : views_) view->interval(interval);
    loss_ = seconds_ = 0;
    count_ = 0;
  }

  void evaluated(const EvaluationRecord& record) override {
    for (const auto& view : views_) view->evaluated(record, elapsed());
  }

  Next between_steps(const TrainingPosition& position) override {
    const bool stops = team_.any(interrupt_asked() || output_is_lost());  // nobody watches any more
    const bool last = stops || position.step == steps_;
    if (checkpoints_) checkpoints_->consider(session_, position, last ? RunCheckpoints::Moment::last : RunCheckpoints::Moment::between);
    return stops ? Next::stop : Next::go_on;
  }

  void failed(const std::string& message) {
    for (const auto& view : views_) view->failed(message);
  }

  void end(const TrainingPosition& position, int64_t measured_bytes) {
    result_.position = position;
    result_.elapsed = elapsed();
    result_.measured_bytes = measured_bytes;
    result_.interrupted = position.step < steps_;
    for (const auto& view : views_) view->end(result_);
  }

 private:
  double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  std::vector<std::pair<std::string, double>> watched() const {
    std::vector<std::pair<std::string, double>> values;
    for (const auto& [name, index] : outputs_) values.emplace_back(name, session_.runner().output(index).to_doubles().front());
    if (loss_scale_) values.emplace_back("loss_scale", *static_cast<const float*>(session_.memory(*loss_scale_)));
    return values;
  }

  const SessionRep& session_;
  const uint64_t log_every_;
  RunCheckpoints* checkpoints_;  // null: none are kept
  const ProcessTeam& team_;
  std::vector<std::unique_ptr<RunView>> views_;
  std::vector<std::pair<std::string, uint32_t>> outputs_;  // that training adds
  std::optional<Source> loss_scale_;
  std::chrono::steady_clock::time_point start_;
  uint64_t steps_ = 0, count_ = 0;
  double loss_ = 0, seconds_ = 0;  // sums over the interval
  RunResult result_;
};

void begin_with(const TrainRequest& r, const Graph& elaborated, SessionRep& session) {
  const NameMap renamed = r.names.empty() ? NameMap() : NameMap::read(r.names);
  const LoadedWeights loaded = load_weights(r.weights, renamed, session.program(), session);
  const auto warn = [&](const std::vector<std::string>& names, const char* what) {
    if (names.empty()) return;
    fmt::print(stderr, "einc: warning: {}: {} {}: {}{}\n", printable(r.weights), names.size(), what, printable(names.front()),
               names.size() > 1 ? ", ..." : "");
  };
  warn(loaded.missing, "params are not in it and start from their initialisers");
  warn(loaded.unused, "arrays belong to no param");
  const ArrayFile file(r.weights);
  note_missing_states(elaborated, [&](const std::string& state) { return file.contains(renamed.theirs(state)); });
}

// What is not finite first, found in a program of one kernel for each node: a kernel of several would name the last one.
std::string explain(const NonFiniteStep& failure, const ProgramGraphs& graphs, SessionRep& session, const std::string& target) {
  if (target != "reference") {
    const auto program = whole_program(graphs, FileCache::default_folder(), Scheduling::unfused);
    const auto runner = program->start(std::make_shared<ThreadPool>(session.pool().size()), kDefaultDevice);
    session.lend(*runner);
    const std::string found = runner->find_fault(failure.part, failure.fault, session.seed(), session.draws());
    if (!found.empty()) return found;
  }
  return session.find_fault(failure.part, failure.fault);
}

// What decides a run's bits besides its options, which the processes were all given.
void demand_equal_runs(const ProcessTeam& team, const Graph& graph, const Batches& batches, const std::optional<MemoryLimit>& limit) {
  const auto hash = [](const std::string& text) { return xxh64(std::as_bytes(std::span(text))); };
  team.demand_equal(hash(print_graph(graph)), "program");
  team.demand_equal(hash(batches.description()), "data");
  team.demand_equal(hash(processor_text()), "kind of processor");
  if (limit) team.demand_equal(static_cast<uint64_t>(limit->threads), "number of threads under --memory-limit");
}

ExitStatus train(const TrainRequest& r, ProgramGraphs graphs_given, DataSettings data, DataSettings validation, const ProcessTeam& team) {
  std::optional<RunCheckpoints> checkpoints;
  const bool first = team.is_first();
  if (!r.checkpoint.folder.empty() && first) checkpoints.emplace(r.checkpoint);
  team.any(false);  // the folder is there
  if (!r.checkpoint.folder.empty() && !first) checkpoints.emplace(r.checkpoint, RunCheckpoints::Keeper::another);
  if (checkpoints && !checkpoints->may_begin()) return ExitStatus::wrong_usage;
  const TrainingSeeds seeds = seeds_of(r, checkpoints ? checkpoints->seeds() : nullptr);
  data.seed = validation.seed = seeds.data;
  const auto graphs = std::make_shared<const ProgramGraphs>(std::move(graphs_given));
  const int threads = r.threads > 0 ? r.threads : team.threads();
  std::optional<MemoryLimit> limit;
  if (r.memory_limit) limit = {*r.memory_limit, prefetched_bytes(r, *graphs), threads};
  const auto program = program_for(r.target, graphs, limit, team.transport());
  const std::shared_ptr<const Batches> batches = open_batches(data, program->info.inputs, DataPart::training);
  std::shared_ptr<const Batches> evaluation;
  if (!validation.files.empty())
    evaluation = open_batches(validation, program->info.inputs, r.validation.empty() ? DataPart::validation : DataPart::training);
  demand_equal_runs(team, *graphs->compilation.graph, *batches, limit);
  if (!r.record.empty() && first) record_batches(r.record, *batches, program->info.inputs, r.steps * r.micro_batches);
  const MemoryMeter memory(r.target == "cuda" ? Meter::gpu : Meter::process);
  SessionRep session(*program, threads);
  RunFacts facts = facts_of(r, *graphs, *program, session, team);
  facts.seeds = seeds;
  session.initialize(seeds.init);
  if (!r.weights.empty()) begin_with(r, *graphs->compilation.elaborated, session);
  TrainingPosition position;
  if (checkpoints)
    position =
        checkpoints->begin(session, settings_of(r, session, facts, *graphs->compilation.graph, graphs->dims, *batches, evaluation.get()));
  Watcher watcher(session, r.log_every, checkpoints ? &*checkpoints : nullptr, team);
  if (!r.log.empty() && first) watcher.add(json_log(r.log, position.step));
  if (!r.quiet && first) watcher.add(color_for(STDOUT_FILENO) == Color::on ? progress_bar(stdout) : plain_lines(stdout));
  Trainer trainer(session, {r.steps, r.micro_batches, facts.seeds.dropout, r.evaluate_every, r.evaluation_batches}, batches, evaluation,
                  watcher);
  catch_interrupts(team.size() > 1);
  team.limit_waits(r.timeout);  // each has compiled by now
  watcher.begin(facts, position);
  try {
    position = trainer.run(position);
  } catch (const NonFiniteStep& failure) {
    const std::string fault = explain(failure, *graphs, session, r.target);
    const std::string message = failure.what() + (fault.empty() ? "" : ": " + fault);
    watcher.failed(message);
    throw RuntimeFailure(FailureKind::numeric, message);
  }
  watcher.end(position, memory.peak_bytes());
  if (!r.save.empty() && first) {
    session.fetch_all();
    save_weights(r.save, program->info, session, states_saved_with_weights(*graphs->compilation.elaborated));
  } else if (!r.save.empty()) {
    session.pass_all();  // what the first process fetches
  }
  if (position.step >= r.steps) return ExitStatus::done;
  const std::string saved = checkpoints      ? printable(checkpoints->last_folder()) + " is saved: go on with --resume"
                            : r.save.empty() ? "nothing is saved: give --checkpoint"
                                             : printable(r.save) + " is saved";
  if (first) fmt::print(stderr, "einc: interrupted after step {}; {}\n", position.step, saved);
  return team.any(interrupt_asked()) ? ExitStatus::interrupted : ExitStatus::environment;  // else standard output is lost
}

// A status to leave with where the target or an op of the program does not go with its mesh.
std::optional<ExitStatus> refuse_mesh(Compilation& c, const Bindings& dims, const std::string& target, bool several) {
  if (c.graph->mesh.empty() || (target == "reference" && !several)) return std::nullopt;
  if (target == "reference") {
    fmt::print(stderr, "einc: --target=reference does not carry out a mesh among several processes\n");
    return ExitStatus::environment;
  }
  if (partition_program(c, dims)) return std::nullopt;
  print_diagnostics(c.sources, c.diagnostics, DiagnosticsForm::text, Severity::error);
  return ExitStatus::wrong_program;
}

}  // namespace

ExitStatus train_command(Arguments arguments) {
  CLI::App app("Trains a program on data.", "einc train");
  TrainRequest r;
  add_options(app, r);
  const std::optional<Launcher> launcher = find_launcher();
  const bool several = launcher && launcher->processes > 1;
  std::optional<Silence> silence;  // what is wrong before the processes know each other is wrong in all of them
  if (several && launcher->rank > 0) silence.emplace();
  if (auto status = parse_arguments(app, arguments)) return *status;
  const auto dims = parse_dim_settings(r.dims);
  const auto files = parse_assignments(r.data, "--data"), validation_files = parse_assignments(r.validation, "--val");
  if (!dims || !files || !validation_files) return ExitStatus::wrong_usage;
  PipelineOptions pipeline = program_options(*dims, Roots::step, r.precision, r.import_folders);
  pipeline.mesh = r.mesh, pipeline.shard = r.shard;
  pipeline.training.watched = Watched::training;
  pipeline.training.optimizer = r.optimizer;
  pipeline.training.learning_rate = r.learning_rate;
  pipeline.training.micro_batches = static_cast<int64_t>(r.micro_batches);
  auto opened = open_program(r.file, pipeline, r.quiet ? Severity::error : Severity::warning, Sharing::mesh);
  if (const auto* status = std::get_if<ExitStatus>(&opened)) return *status;
  auto& c = std::get<Compilation>(opened);
  if (!dims_are_set(*c.graph, *dims)) return ExitStatus::wrong_usage;
  NamedFiles inputs = sources_of(c);
  inputs.insert(inputs.end(), {{"--weights", r.weights}, {"--rename", r.names}});
  for (const auto& [name, path] : *files) inputs.emplace_back("--data " + name, path);
  for (const auto& [name, path] : *validation_files) inputs.emplace_back("--val " + name, path);
  if (!check_outputs({{"--log", r.log}, {"--save", r.save}, {"--record-batches", r.record}}, inputs)) return ExitStatus::wrong_usage;
  for (const char* ending : {".pt", ".pth", ".npz", ".npy", ".ckpt", ".h5"})
    if (r.save.ends_with(ending))
      return fmt::print(stderr,
                        "einc: --save {}: einc writes .safetensors, which safetensors.torch.load_file and safetensors.numpy.load_file "
                        "read: name the file so\n",
                        printable(r.save)),
             ExitStatus::wrong_usage;
  if (!c.graph->loss.valid())
    return fmt::print(stderr, "einc: {} minimizes nothing: end it with `minimize loss using adamw(lr = 1e-3)`\n", printable(r.file)),
           ExitStatus::wrong_program;

  if (const auto status = refuse_mesh(c, *dims, r.target, several)) return *status;

  DataSettings data;
  data.files = *files;
  data.next = r.next;
  if (!r.token_format.empty()) data.token_format = r.token_format == "u16" ? TokenFormat::u16 : TokenFormat::u32;
  data.order = r.order == "random" ? RowOrder::random : RowOrder::epochs;
  data.validation_fraction = r.validation_fraction;
  DataSettings validation = data;
  if (!validation_files->empty()) validation.files = *validation_files, validation.validation_fraction = data.validation_fraction = 0;
  if (validation_files->empty() && r.validation_fraction == 0) validation.files.clear();
  static constexpr Part kTrained[] = {Part::training, Part::evaluation};
  ProgramGraphs graphs = make_graphs(std::move(c), pipeline, std::span(kTrained).first(validation.files.empty() ? 1 : 2));
  if (r.micro_batches > 1) {
    pipeline.training.gradients = GradientUse::gather;
    add_micro_batches(graphs, compile_file(r.file, pipeline));
  }
  if (const auto status = several && r.target != "cuda" ? refuse_launcher(*launcher, r.file) : std::nullopt) return *status;
  const ProcessTeam team = several ? ProcessTeam(*launcher, r.target) : ProcessTeam();
  silence.reset();
  return team.run([&] { return train(r, std::move(graphs), data, validation, team); });
}

}  // namespace einc
