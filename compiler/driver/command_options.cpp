// SPDX-License-Identifier: Apache-2.0
// A command is asked by running it with an observer set: it sets its parser up, hands it to parse_arguments, and returns at once.
#include "compiler/driver/command_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/driver/commands.h"

namespace einc {
namespace {

struct HelpExamples {
  std::string_view command, examples;
};

// By the name of the parser: what people mostly ask of the command.
constexpr HelpExamples kHelpExamples[] = {
    {"einc",
     "einc model.ein\neinc model.ein --report --device h100-sxm -D batch=64\neinc model.ein --report=html -o cost.html\n"
     "einc model.ein --fit=batch --device a100-80gb\neinc explain E0322"},
    {"einc run", "einc run model.ein --input x=x.npy --weights w.safetensors --output y=y.npy"},
    {"einc train",
     "einc train model.ein --data tokens=train.bin --val tokens=val.bin --steps 2000 --log run.jsonl --save w.safetensors\n"
     "einc train model.ein --data tokens=train.bin --steps 10000 --checkpoint runs/a --every 500 --resume"},
    {"einc plot", "einc plot a.jsonl b.jsonl -o loss.svg\neinc plot run.jsonl -o loss.html --x=tokens --log --smooth=20"},
    {"einc bench", "einc bench model.ein -D batch=8 --trace=step.json"},
    {"einc gradcheck", "einc gradcheck model.ein -D batch=2 -D embed=8"},
    {"einc estimate", "einc estimate --params 70B --tokens 15T --device h100-sxm --devices 1024 --mfu 0.4"},
    {"einc tokenize", "einc tokenize input.txt -o train.bin --kind chars --split 0.9"},
    {"einc sample", "einc sample model.ein --weights w.safetensors --vocab chars.json --prompt \"ROMEO:\""},
    {"einc detokenize", "einc detokenize train.bin --vocab chars.json | head"},
    {"einc fmt", "einc fmt model.ein\neinc fmt --check *.ein"},
    {"einc explain", "einc explain E0322"},
    {"einc completions",
     "einc completions bash > ~/.local/share/bash-completion/completions/einc\n"
     "einc completions zsh > \"${fpath[1]}/_einc\"\neinc completions fish > ~/.config/fish/completions/einc.fish\n"
     "einc completions man > ~/.local/share/man/man1/einc.1"},
};

// In this order; an option that no group names comes last.
struct HelpGroup {
  std::string_view title;
  std::vector<std::string_view> options;
};
const std::vector<HelpGroup>& help_groups() {
  static const auto* const groups = new std::vector<HelpGroup>{
      {"The program", {"-D", "-I", "--precision", "--mesh", "--shard", "--optimizer", "--lr", "--rename", "--arch", "--cpu"}},
      {"The model",
       {"--params", "--layers", "--embed", "--heads", "--kv-heads", "--head", "--ffn", "--experts", "--used-experts", "--seq"}},
      {"Data",
       {"--input", "--param", "--weights", "--output", "--data", "--val", "--val-fraction", "--next", "--order", "--dtype", "--kind",
        "--vocab", "--merges", "--split", "--prompt", "--prompt-file", "--record-batches"}},
      {"The text", {"--temperature", "--top-k", "--top-p", "--greedy"}},
      {"Inputs and outputs", {"--tokens-input", "--position-input", "--logits"}},
      {"What to check", {"--elements", "--max-elements", "--tolerance"}},
      {"What to show",
       {"--report", "--emit", "--explain", "--diff", "--diagnostics", "--passes", "--list-devices", "--quiet", "--version", "-o", "--json",
        "--kernels", "--x", "--smooth", "--check", "--stdout"}},
      {"The machine",
       {"--device", "--devices", "--target", "--threads", "--fit", "--memory-limit", "--plan", "--tokens", "--mfu", "--peak"}},
      {"The run",
       {"--steps", "--accumulate", "--batch", "--batch-tokens", "--seed", "--init-seed", "--data-seed", "--dropout-seed", "--mode",
        "--save", "--resume", "--partial", "--timeout", "--tensor-parallel", "--pipeline-parallel", "--interleave"}},
      {"What was measured", {"--seconds", "--flops", "--tokens-per-second", "--device-hours"}},
      {"Checkpoints and logs", {"--checkpoint", "--every", "--keep", "--log", "--log-every", "--eval-every", "--eval-batches", "--trace"}},
      {"For work on einc", {"--dump-after", "--disable", "--time-passes", "--discard-outputs", "--arithmetic", "--no-cache"}}};
  return *groups;
}

// What an option takes, in a word; numbers are N.
std::string value_name(const std::string& option, const std::string& type) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"--arch", "ARCH"},     {"--cpu", "CPU"},         {"--device", "NAME"},      {"--diagnostics", "FORM"}, {"--disable", "PASS"},
      {"--dtype", "DTYPE"},   {"--emit", "LEVEL"},      {"--explain", "TOPIC"},    {"--kind", "KIND"},        {"--lr", "RATE"},
      {"--merges", "FILE"},   {"--mesh", "AXES"},       {"--mode", "MODE"},        {"--optimizer", "NAME"},   {"--order", "ORDER"},
      {"--output", "FILE"},   {"--precision", "DTYPE"}, {"--prompt-file", "FILE"}, {"--report", "FORM"},      {"--shard", "RULES"},
      {"--target", "TARGET"}, {"--vocab", "FILE"},      {"--weights", "FILE"},     {"--x", "AXIS"},           {"-o", "FILE"},
  };
  if (type == "UINT" || type == "INT" || type == "FLOAT" || type == "COUNT") return "N";
  if (type != "TEXT") return type;
  const auto* found = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.first == option; });
  return found == std::end(kNames) ? type : std::string(found->second);
}

// A command line, broken before an option where it is longer than the terminal is wide.
std::string wrapped_command(std::string_view command, size_t columns) {
  std::string out, line = "  ";
  while (!command.empty()) {
    const size_t next = std::min(command.find(" -", 1), command.size());
    const std::string_view piece = command.substr(0, next);
    if (line.size() + piece.size() + 2 > columns && line.size() > 6) {
      out += line + " \\\n";
      line = "     ";
    }
    line += piece;
    command.remove_prefix(next);
  }
  return out + line + "\n";
}

// Words of the text in lines of so many columns, all but the first behind `indent` blanks.
std::string wrapped_text(std::string_view text, size_t indent, size_t columns) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const bool fresh = column == indent;
    if (!fresh && column + 1 + word.size() > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!fresh) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

std::string help_row(const std::string& head, const std::string& description, size_t columns) {
  const size_t indent = columns >= 60 ? 26 : 4;
  std::string line = "  " + head;
  line += line.size() + 2 > indent ? "\n" + std::string(indent, ' ') : std::string(indent - line.size(), ' ');
  return line + wrapped_text(description, indent, std::max(columns, indent + 20)) + "\n";
}

std::string head_of(const OptionText& option) {
  std::string head = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value.empty()) head += (head.empty() ? "" : " ") + option.value;
  return head;
}

OptionText option_text(const CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) text.value = option.get_positional() ? option.get_name(true, false) : option.get_type_name();
  if (!option.get_positional() && text.value.empty() && option.get_items_expected_max() > 0) text.value = "VALUE";
  if (!option.get_positional()) text.value = value_name(text.names.back(), text.value);
  text.description = option.get_description();
  text.required = option.get_required();
  return text;
}

const HelpGroup* group_of(const OptionText& option) {
  for (const HelpGroup& group : help_groups())
    for (const std::string& name : option.names)
      if (std::find(group.options.begin(), group.options.end(), name) != group.options.end()) return &group;
  return nullptr;
}

}  // namespace

const ParserObserver*& parser_observer() {
  static const ParserObserver* observer = nullptr;
  return observer;
}

CommandText command_text(const CLI::App& app) {
  CommandText text;
  text.description = app.get_description();
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? text.positionals : text.options).push_back(option_text(*option));
  return text;
}

std::vector<CommandText> all_commands() {
  std::vector<CommandText> all;
  const ParserObserver observer = [&](const CLI::App& app) { all.push_back(command_text(app)); };
  parser_observer() = &observer;
  const std::vector<std::string> none;
  compile_command(none);
  all.back().summary = "compile a program and look at it";
  for (const Command& command : commands()) {
    command.run(none);
    all.back().name = command.name;
    all.back().summary = command.summary;
  }
  parser_observer() = nullptr;
  return all;
}

std::string help_text(const CLI::App& app, int columns) {
  const size_t width = static_cast<size_t>(columns);
  const CommandText text = command_text(app);
  std::string usage = "Usage: " + app.get_name();
  for (const OptionText& positional : text.positionals)
    usage += (positional.required ? " " : " [") + positional.value + (positional.required ? "" : "]");
  std::string out = wrapped_text(text.description, 0, width) + "\n\n" + usage + " [options]\n";
  if (app.get_name() == "einc") {
    out += "       einc COMMAND --help\n\nCommands:\n";
    for (const Command& command : commands()) out += help_row(command.name, command.summary, width);
  }
  if (!text.positionals.empty()) out += "\n";
  for (const OptionText& positional : text.positionals) out += help_row(positional.value, positional.description, width);
  const auto group = [&](std::string_view title, const HelpGroup* wanted) {
    std::string rows;
    for (const OptionText& option : text.options)
      if (group_of(option) == wanted) rows += help_row(head_of(option), option.description, width);
    if (!rows.empty()) out += fmt::format("\n{}:\n{}", title, rows);
  };
  for (const HelpGroup& wanted : help_groups()) group(wanted.title, &wanted);
  group("Other options", nullptr);
  for (const HelpExamples& row_of_examples : kHelpExamples) {
    if (row_of_examples.command != app.get_name()) continue;
    out += "\nExamples:\n";
    std::string_view rest = row_of_examples.examples;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      out += wrapped_command(rest.substr(0, end), width);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return out;
}

}  // namespace einc
