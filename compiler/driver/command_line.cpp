#include "compiler/driver/command_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

namespace einc {

std::optional<ExitStatus> parse_arguments(CLI::App& app, Arguments arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& success) {
    app.exit(success);
    return ExitStatus::done;
  } catch (const CLI::ParseError& error) {
    app.exit(error);
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

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision,
                 "f32, bf16, f16 or fp8: overrides the file's policy; tf32: f32, with NVIDIA GPUs' products in tf32")
      ->check(CLI::IsMember({"f32", "tf32", "bf16", "f16", "fp8"}));
}

CLI::Validator seed_check() {
  return CLI::Validator(
      [](const std::string& text) {
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool whole = error == std::errc() && end == text.data() + text.size();
        return whole ? std::string() : fmt::format("a whole number from 0 to 18446744073709551615 is wanted, not {}", printable(text));
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
