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
    {"einc estimate", "einc estimate --params 70B --tokens 15T --device h100-sxm --devices 1024 --mfu 0.4"},
    {"einc tokenize", "einc tokenize input.txt -o train.bin --kind chars --split 0.9"},
    {"einc sample", "einc sample model.ein --weights w.safetensors --vocab chars.json --prompt \"ROMEO:\""},
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
      {"Data", {"--input", "--param", "--weights", "--output", "--data", "--val", "--dtype", "--vocab", "--prompt"}},
      {"What to show",
       {"--report", "--emit", "--explain", "--diff", "--diagnostics", "--passes", "--list-devices", "--quiet", "--version", "-o"}},
      {"The machine", {"--device", "--devices", "--target", "--threads", "--fit", "--memory-limit", "--plan", "--tokens", "--mfu"}},
      {"The run",
       {"--steps", "--accumulate", "--seed", "--init-seed", "--data-seed", "--dropout-seed", "--mode", "--save", "--resume", "--timeout"}},
      {"Checkpoints and logs", {"--checkpoint", "--every", "--keep", "--log", "--log-every", "--eval-every", "--eval-batches", "--trace"}},
      {"For work on einc", {"--dump-after", "--disable", "--time-passes", "--discard-outputs", "--arithmetic"}}};
  return *groups;
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
    out += "\nExamples:\n  ";
    for (const char c : row_of_examples.examples) out += c == '\n' ? std::string("\n  ") : std::string(1, c);
    out += "\n";
  }
  return out;
}

}  // namespace einc
