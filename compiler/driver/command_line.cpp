#include "compiler/driver/command_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace einc {
namespace {

// What CLI11 says repeats the user's words.
void print_lines(const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    fmt::print(stderr, "{}\n", printable(std::string_view(text).substr(at, end - at)));
    at = end + 1;
  }
}

}  // namespace

std::optional<ExitStatus> parse_arguments(CLI::App& app, Arguments arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  // CLI11 prints to C++ streams, which do not go through ours.
  std::ostringstream help, problem;
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& success) {
    app.exit(success, help, problem);
    fmt::print("{}", help.str());
    return ExitStatus::done;
  } catch (const CLI::ParseError& error) {
    app.exit(error, help, problem);
    print_lines(problem.str());
    return ExitStatus::wrong_usage;
  }
  return std::nullopt;
}

std::optional<Bindings> parse_dim_settings(const std::vector<std::string>& settings) {
  Bindings bindings;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    std::string digits;
    if (equals != std::string::npos)
      for (char c : setting.substr(equals + 1))
        if (c != '_') digits += c;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (equals == 0 || digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value < 1) {
      fmt::print(stderr, "einc: -D takes name=value with a whole number from 1 to 2^63 - 1, such as -D batch=16; found `{}`\n",
                 printable(setting));
      return std::nullopt;
    }
    bindings[Name(setting.substr(0, equals))] = value;
  }
  return bindings;
}

void add_import_folders(CLI::App& app, std::vector<std::string>& folders) {
  app.add_option("-I", folders, "a folder to import from, besides that of the importing file; may be given again")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision,
                 "f32, bf16, f16 or fp8: overrides the file's policy; tf32: f32, with NVIDIA GPUs' products in tf32")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "f16", "fp8"}));
}

CLI::Validator whole_number(uint64_t first, uint64_t last) {
  return CLI::Validator(
      [first, last](const std::string& text) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole && value >= first && value <= last
                   ? std::string()
                   : fmt::format("a whole number from {} to {} is wanted, not {}", first, last, printable(text));
      },
      "");
}

CLI::Validator seed_check() { return whole_number(0, std::numeric_limits<uint64_t>::max()); }

CLI::Validator positive_number() {
  return CLI::Validator(
      [](const std::string& text) {
        double value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool number = error == std::errc() && end == text.data() + text.size();
        return number && value > 0 && std::isfinite(value) ? std::string()
                                                           : fmt::format("a number above 0 is wanted, not {}", printable(text));
      },
      "");
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_assignments(const std::vector<std::string>& settings,
                                                                                  const char* option) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == setting.size()) {
      fmt::print(stderr, "einc: {} takes name=path, such as {} x=x.npy; found `{}`\n", option, option, printable(setting));
      return std::nullopt;
    }
    result.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return result;
}

Color color_for(int file_descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  if (no_color != nullptr && *no_color != '\0') return Color::off;
  if (term != nullptr && std::string_view(term) == "dumb") return Color::off;
  return isatty(file_descriptor) != 0 ? Color::on : Color::off;
}

int terminal_width() {
  if (const char* columns = std::getenv("COLUMNS")) {
    const int value = std::atoi(columns);
    if (value >= 20 && value <= 1000) return value;
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 100;
}

}  // namespace einc
