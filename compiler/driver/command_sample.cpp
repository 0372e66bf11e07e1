// SPDX-License-Identifier: Apache-2.0
// `einc sample FILE`: text from a trained language model.
#include <einc/einc.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "compiler/driver/command_line.h"
#include "compiler/driver/find_model.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/saved_states.h"
#include "compiler/driver/standard_streams.h"
#include "compiler/driver/targets.h"
#include "compiler/driver/vocabulary.h"
#include "compiler/ir/interpret_ops.h"
#include "runtime/base/printable.h"
#include "runtime/data/array_file.h"
#include "runtime/data/file.h"
#include "runtime/data/name_map.h"
#include "runtime/sample/generate.h"

namespace einc {
namespace {

constexpr int64_t kReadAtOnce = 32;  // tokens of a prompt, when a model has a cache

struct SampleRequest {
  std::string file, weights, names, prompt, prompt_file, precision, target = "cpu";
  std::vector<std::string> dims, import_folders;
  VocabularyRequest vocabulary;
  ModelTensors tensors;
  GenerationSettings generation{.count = 500};
  int threads = 0;
  bool greedy = false, quiet = false;
};

void add_options(CLI::App& app, SampleRequest& r) {
  app.add_option("FILE", r.file, "the program: tokens in, logits out; with a state that each run writes at a position, a cache")
      ->required();
  app.add_option("-D", r.dims, "set a dim: name=value")->allow_extra_args(false)->type_name("NAME=VALUE");
  add_import_folders(app, r.import_folders);
  app.add_option("--weights", r.weights, "the params: a .safetensors or .npz file, such as einc train --save or a checkpoint holds")
      ->required();
  app.add_option("--rename", r.names, "a file of lines `their.name -> our.name`, for weights from elsewhere: see runtime/training.md")
      ->type_name("FILE");
  add_vocabulary_options(app, r.vocabulary);
  auto* prompt = app.add_option("--prompt", r.prompt, "what the text begins with; a newline by default");
  app.add_option("--prompt-file", r.prompt_file, "a file that holds the prompt")->excludes(prompt);
  app.add_option("-n,--tokens", r.generation.count, fmt::format("number of tokens to generate, {} by default", r.generation.count))
      ->transform(count_between(1, kMaxCount))
      ->capture_default_str();
  app.add_option("--temperature", r.generation.rule.temperature,
                 "divides the logits: below 1, likely tokens become likelier; 0 is --greedy")
      ->check(number_between(0, 1e6))
      ->capture_default_str();
  app.add_option("--top-k", r.generation.rule.top_k, "draw from the k most likely tokens only")->transform(count_between(1, kMaxCount));
  app.add_option("--top-p", r.generation.rule.top_p, "draw from the most likely tokens that together reach this probability")
      ->check(number_between(1e-9, 1));
  app.add_flag("--greedy", r.greedy, "always the most likely token");
  app.add_option("--seed", r.generation.seed, "seed of the draws")->check(seed_check());
  add_precision(app, r.precision);
  app.add_option("--target", r.target, kTargetHelp)->check(one_of(kTargets));
  app.add_option("--tokens-input", r.tensors.tokens, "the input that takes the tokens, where several could")->type_name("NAME");
  app.add_option("--position-input", r.tensors.position, "the input that takes their position")->type_name("NAME");
  app.add_option("--logits", r.tensors.logits, "the output that holds the logits")->type_name("NAME");
  app.add_option("--threads", r.threads, "threads of the processor; all by default")->check(whole_number(1, kMaxInt));
  app.add_flag("--quiet", r.quiet, "print the text and nothing else");
}

// The program compiled for sequences of one length.
Model specialise(const SampleRequest& r, const Bindings& dims, Name sequence, std::optional<int64_t> length) {
  CompileOptions options;
  for (const auto& [name, value] : dims) options.dims[name.str()] = value;
  if (length) options.dims[sequence.str()] = *length;
  options.import_folders.assign(r.import_folders.begin(), r.import_folders.end());
  options.purpose = Purpose::inference;
  options.target = r.target == "cuda" ? Target::cuda : r.target == "reference" ? Target::reference : Target::cpu;
  static constexpr std::pair<const char*, Precision> kPrecisions[] = {
      {"f32", Precision::f32}, {"tf32", Precision::tf32}, {"bf16", Precision::bf16}, {"f16", Precision::f16}, {"fp8", Precision::fp8}};
  for (const auto& [name, precision] : kPrecisions)
    if (r.precision == name) options.precision = precision;
  return compile_file(r.file, options);
}

void load(Session& session, const SampleRequest& r) {
  session.init(0);
  const LoadedWeights loaded = session.load(r.weights, r.names);
  if (loaded.missing.empty()) return;
  throw Error(ErrorKind::data, fmt::format("{} lacks {} of the program's params, the first of them '{}'", printable(r.weights),
                                           loaded.missing.size(), loaded.missing.front()));
}

struct Clock {
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

enum class Figures : uint8_t { hidden, shown };

ExitStatus write_text(LanguageModel& model, const Tokenizer& tokenizer, const std::string& prompt, const GenerationSettings& settings,
                      Figures figures) {
  const std::vector<int32_t> tokens = tokenizer.encode(prompt);
  if (tokens.empty()) return fmt::print(stderr, "einc: the prompt holds no token\n"), ExitStatus::wrong_usage;
  std::fwrite(prompt.data(), 1, prompt.size(), stdout);
  const Clock clock;
  double first = 0;
  int64_t count = 0;
  generate(model, tokens, settings, [&](int32_t token) {
    if (count++ == 0) first = clock.seconds();
    std::string text;
    tokenizer.decode(std::span(&token, 1), text, TextPart::middle);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return !output_is_lost();
  });
  std::fputc('\n', stdout);
  std::fflush(stdout);
  if (figures == Figures::shown) {
    fmt::print(stderr, "prompt of {} tokens and the first token {:.3f} s", tokens.size(), first);
    if (count > 1) fmt::print(stderr, ", then {:.1f} tokens/s", static_cast<double>(count - 1) / (clock.seconds() - first));
    fmt::print(stderr, "\n");
  }
  return ExitStatus::done;
}

ExitStatus sample(const SampleRequest& r, Bindings dims, const Graph& graph) {
  const std::optional<FoundModel> found = find_model(graph, r.tensors);
  if (!found) return ExitStatus::wrong_program;
  for (const Name texts : found->texts)
    if (dims.emplace(texts, 1).first->second != 1)
      return fmt::print(stderr, "einc: -D {}={}, but one text is drawn at a time\n", texts.str(), dims[texts]), ExitStatus::wrong_usage;
  const std::unique_ptr<Tokenizer> tokenizer = open_tokenizer(r.vocabulary.files, kind_of(r.vocabulary));
  std::string prompt = r.prompt.empty() ? "\n" : r.prompt;
  if (!r.prompt_file.empty()) {
    const MappedFile file(r.prompt_file);
    prompt.assign(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
    file.check_whole();
  }
  const SessionOptions threads{r.threads};
  std::optional<int64_t> context;
  if (found->cache) {
    Bindings one = dims;
    one[found->sequence] = 1;
    context = found->cache->evaluate_integer(bind_dims(graph, one));
  }
  const ArrayFile weights(r.weights);
  const NameMap names = r.names.empty() ? NameMap() : NameMap::read(r.names);
  note_missing_states(graph, [&](const std::string& state) { return weights.contains(names.theirs(state)); });
  Session last(specialise(r, dims, found->sequence, context ? std::optional<int64_t>(1) : std::nullopt), threads);
  load(last, r);
  const std::vector<TensorInfo>& outputs = last.program().outputs();
  const auto logits = std::find_if(outputs.begin(), outputs.end(), [&](const TensorInfo& t) { return t.name == found->tensors.logits; });
  const int64_t vocabulary = logits->shape.back();
  if (tokenizer->size() > vocabulary) {
    fmt::print(stderr, "einc: the vocabulary has {} tokens, but the model makes {}\n", tokenizer->size(), vocabulary);
    return ExitStatus::wrong_usage;
  }
  const Figures figures = r.quiet ? Figures::hidden : Figures::shown;
  GenerationSettings settings = r.generation;
  settings.vocabulary = tokenizer->size();
  if (r.greedy) settings.rule.temperature = 0;
  if (!context) return write_text(*model_without_cache(last, found->tensors), *tokenizer, prompt, settings, figures);
  Session several(specialise(r, dims, found->sequence, std::min(kReadAtOnce, *context)), threads);
  return write_text(*model_with_cache(several, last, found->tensors, *context), *tokenizer, prompt, settings, figures);
}

}  // namespace

ExitStatus sample_command(Arguments arguments) {
  SampleRequest r;
  CLI::App app("Generates text with a language model, token by token.", "einc sample");
  add_options(app, r);
  if (auto status = parse_arguments(app, arguments)) return *status;
  const auto dims = parse_dim_settings(r.dims);
  if (!dims) return ExitStatus::wrong_usage;
  if (const auto problem = contradiction(r.vocabulary)) return fmt::print(stderr, "einc: {}\n", *problem), ExitStatus::wrong_usage;
  const auto opened = open_program(r.file, program_options(*dims, Roots::inference, r.precision, r.import_folders));
  if (const auto* status = std::get_if<ExitStatus>(&opened)) return *status;
  const Graph& graph = *std::get<Compilation>(opened).graph;
  if (!dims_are_set(graph, *dims)) return ExitStatus::wrong_usage;
  return sample(r, *dims, graph);
}

}  // namespace einc
