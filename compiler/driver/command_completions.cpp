// SPDX-License-Identifier: Apache-2.0
// `einc completions bash|zsh|fish|man`: scripts that complete commands and options in a shell, and the manual page, all made of the options
// that the commands take themselves.
#include <fmt/format.h>

#include "compiler/driver/command_line.h"
#include "compiler/driver/command_options.h"

namespace einc {
namespace {

std::string all_names(const CommandText& command) {
  std::string names;
  for (const OptionText& option : command.options)
    for (const std::string& name : option.names) names += (names.empty() ? "" : " ") + name;
  return names;
}

std::string command_names(const std::vector<CommandText>& all) {
  std::string names;
  for (const CommandText& command : all)
    if (!command.name.empty()) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string bash_script(const std::vector<CommandText>& all) {
  std::string cases;
  for (const CommandText& command : all)
    if (!command.name.empty()) cases += fmt::format("    {}) options=\"{}\" ;;\n", command.name, all_names(command));
  return fmt::format(R"(# Completion of einc for bash.
_einc() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} options words=""
  case ${{COMP_WORDS[1]}} in
{}    *) options="{}" ;;
  esac
  [ "$COMP_CWORD" = 1 ] && words="{}"
  case $current in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current") $(compgen -f -- "$current")) ;;
  esac
}}
complete -o filenames -F _einc einc
)",
                     cases, all_names(all[0]), command_names(all));
}

std::string replaced(std::string_view text, std::string_view signs, std::string_view before) {
  std::string out;
  for (const char c : text) {
    if (signs.find(c) != std::string_view::npos) out += before;
    out += c;
  }
  return out;
}

// 'it'\''s'
std::string shell_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string zsh_arguments(const CommandText& command) {
  std::string out;
  for (const OptionText& option : command.options)
    for (const std::string& name : option.names) {
      const std::string value = option.value.empty() ? "" : ":" + replaced(option.value, ":\\", "\\") + ":_files";
      const std::string spec =
          name + (value.empty() || !name.starts_with("--") ? "" : "=") + "[" + replaced(option.description, "[]:\\", "\\") + "]" + value;
      out += " " + shell_quoted("*" + spec);
    }
  return out;
}

std::string zsh_script(const std::vector<CommandText>& all) {
  std::string commands, cases;
  for (const CommandText& command : all) {
    if (command.name.empty()) continue;
    commands += " " + shell_quoted(command.name + ":" + command.summary);
    cases += fmt::format("    {}) _arguments{} '*:file:_files' ;;\n", command.name, zsh_arguments(command));
  }
  return fmt::format(R"(#compdef einc
# Completion of einc for zsh.
_einc() {{
  local -a commands=({})
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    _files
    return
  fi
  case $words[2] in
{}    *) _arguments{} '*:file:_files' ;;
  esac
}}
_einc "$@"
)",
                     commands, cases, zsh_arguments(all[0]));
}

std::string fish_script(const std::vector<CommandText>& all) {
  std::string out = "# Completion of einc for fish.\n";
  for (const CommandText& command : all) {
    const std::string when =
        command.name.empty() ? "not __fish_seen_subcommand_from " + command_names(all) : "__fish_seen_subcommand_from " + command.name;
    if (!command.name.empty())
      out += fmt::format("complete -c einc -n __fish_use_subcommand -a {} -d {}\n", command.name, shell_quoted(command.summary));
    for (const OptionText& option : command.options) {
      std::string names;
      for (const std::string& name : option.names) names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      out += fmt::format("complete -c einc -n {}{}{} -d {}\n", shell_quoted(when), names, option.value.empty() ? "" : " -r",
                         shell_quoted(option.description));
    }
  }
  return out;
}

// Text of a manual page: backslashes and leading dots are roff's own.
std::string roff(std::string_view text) { return replaced(text, "\\-", "\\"); }

std::string man_page(const std::vector<CommandText>& all) {
  std::string out =
      ".TH EINC 1\n.SH NAME\neinc \\- compiler for tensor programs with named axes\n.SH SYNOPSIS\n.B einc\nFILE [options]\n.br\n.B "
      "einc\nCOMMAND [arguments]\n";
  out += ".SH DESCRIPTION\n" + roff(all[0].description) + "\n";
  for (const CommandText& command : all) {
    out += fmt::format(".SH \"EINC {}\"\n{}\n", command.name.empty() ? "FILE" : command.name, roff(command.description));
    for (const auto* list : {&command.positionals, &command.options})
      for (const OptionText& option : *list) {
        std::string head = fmt::format("{}", fmt::join(option.names, ", "));
        out += fmt::format(".TP\n.B {}{}{}\n{}\n", roff(head), head.empty() || option.value.empty() ? "" : " ", roff(option.value),
                           roff(option.description));
      }
  }
  return out +
         ".SH \"EXIT STATUS\"\n0 done; 1 the program is wrong; 2 the command line is wrong; 3 a data file is wrong; 4 resource or "
         "environment; 5 stopped on a "
         "non\\-finite value; 70 a defect of einc; 130 interrupted after a safe save.\n";
}

}  // namespace

ExitStatus completions_command(Arguments arguments) {
  CLI::App app("Prints the script that completes einc's commands and options in a shell, or its manual page.", "einc completions");
  std::string shell;
  app.add_option("SHELL", shell, "bash, zsh, fish, or man")->required()->check(one_of({"bash", "zsh", "fish", "man"}));
  if (auto status = parse_arguments(app, arguments)) return *status;
  const std::vector<CommandText> all = all_commands();
  fmt::print("{}", shell == "bash"   ? bash_script(all)
                   : shell == "zsh"  ? zsh_script(all)
                   : shell == "fish" ? fish_script(all)
                                     : man_page(all));
  return ExitStatus::done;
}

}  // namespace einc
