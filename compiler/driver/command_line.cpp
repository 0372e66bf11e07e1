// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/command_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <sstream>

#include "compiler/driver/command_options.h"
#include "compiler/driver/foreign_options.h"
#include "dsl/near_name.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

// The first argument that is written as an option and is none. What stands behind an option that takes a value is that value.
std::optional<std::string> unknown_option(const CLI::App& app, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") break;
    const bool is_number = argument.size() > 1 && std::string_view("0123456789.").find(argument[1]) != std::string_view::npos;
    if (argument.size() < 2 || argument[0] != '-' || is_number) continue;
    const bool is_long = argument[1] == '-';
    const size_t equals = argument.find('=');
    const std::string name = is_long ? argument.substr(0, equals) : argument.substr(0, 2);
    const CLI::Option* option = app.get_option_no_throw(name);
    if (option == nullptr) return is_long ? name : argument;
    const bool value_inside = is_long ? equals != std::string::npos : argument.size() > 2;
    if (!value_inside && option->get_items_expected_min() > 0) ++i;
  }
  return std::nullopt;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// A dim of the program, `--seq 512`, or an input, `--x x.npy`, taken for an option.
std::string instead_of_setting(const CLI::App& app, Arguments arguments, const std::string& unknown) {
  if (!unknown.starts_with("--")) return "";
  const std::string name = unknown.substr(2);
  std::string value;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(unknown + "=")) value = arguments[i].substr(unknown.size() + 1);
    if (arguments[i] == unknown && i + 1 < arguments.size()) value = arguments[i + 1];
  }
  if (is_digits(value) && app.get_option_no_throw("-D") != nullptr)
    return fmt::format("; a dim is set by -D {}={}", printable(name), value);
  for (const char* option : {"--input", "--data"})
    if (app.get_option_no_throw(option) != nullptr && value.find('.') != std::string::npos)
      return fmt::format("; did you mean `{} {}={}`?", option, printable(name), printable(value));
  return "";
}

std::string instead_of_option(const CLI::App& app, Arguments arguments, const std::string& unknown) {
  if (unknown == "--device" && app.get_option_no_throw("--target") != nullptr)
    return ": it runs here, on --target; `einc FILE --device NAME` tells what another machine would take";
  for (const ForeignOption& option : foreign_options())
    if (option.theirs == unknown && (option.ours.empty() || app.get_option_no_throw(std::string(option.ours)) != nullptr))
      return fmt::format(": {}", option.write);
  const std::string near = did_you_mean(unknown, option_names(app));
  return near.empty() ? instead_of_setting(app, arguments, unknown) : near;
}

// What was meant by a word that has no place: an option without its dashes, NAME=FILE with a blank for the sign, a second program.
std::string instead_of_extra(const CLI::App& app, Arguments arguments) {
  const std::string extra = app.remaining().front();
  for (size_t i = 1; extra == "=" && i + 1 < arguments.size(); ++i)
    if (arguments[i] == "=")
      return fmt::format("; a setting has no spaces: did you mean `{}={}`?", printable(arguments[i - 1]), printable(arguments[i + 1]));
  if (const size_t equals = extra.find('='); equals != 0 && equals != std::string::npos)
    for (const char* option : {"--input", "--data"})
      if (app.get_option_no_throw(option) != nullptr && extra.find('.', equals) != std::string::npos)
        return fmt::format("; did you mean `{} {}`?", option, printable(extra));
  if (app.get_option_no_throw("--" + extra) != nullptr) return fmt::format("; did you mean `--{}`?", printable(extra));
  if (!arguments.empty() && app.get_option_no_throw("--" + arguments.front()) != nullptr)
    return fmt::format("; did you mean `--{}`?", printable(arguments.front()));
  for (size_t i = 2; i < arguments.size(); ++i) {
    const std::string &option = arguments[i - 2], &name = arguments[i - 1];
    if (arguments[i] != extra) continue;
    if (option == "--fit") return fmt::format("; --fit {} finds the largest value by itself", printable(name));
    if (option == "-D" && is_digits(extra)) return fmt::format("; did you mean `-D {}={}`?", printable(name), extra);
    const bool unit = !name.empty() && name.find_first_not_of("0123456789.") == std::string::npos;  // `--params 7 B`
    if (unit && extra.size() <= 3)
      return fmt::format("; a unit has no space before it: did you mean `{} {}{}`?", printable(option), printable(name), printable(extra));
    static constexpr std::string_view kPairs[] = {"--input", "--output", "--param", "--data", "--val"};
    const bool takes_pair =
        std::find(std::begin(kPairs), std::end(kPairs), option) != std::end(kPairs) && name.find_first_of("=-/.") == std::string::npos;
    if (takes_pair) return fmt::format("; did you mean `{} {}={}`?", printable(option), printable(name), printable(extra));
  }
  if (extra.ends_with(".ein") && app.get_option_no_throw("--diff") != nullptr) return "; --diff compares two programs";
  return "";
}

// An option that is spelled wrong comes first: an option that it should have been may be missing because of it.
std::string usage_error(const CLI::App& app, Arguments arguments, const CLI::ParseError& error) {
  if (const auto unknown = unknown_option(app, arguments))
    return fmt::format("no option `{}`{}", printable(*unknown), instead_of_option(app, arguments, *unknown));
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr)
    return fmt::format("`{}` is one argument too many{}", printable(app.remaining().front()), instead_of_extra(app, arguments));
  std::string text = printable(error.what());
  const size_t wants_value = text.find(": 1 required ");
  if (const CLI::Option* option = app.get_option_no_throw(text.substr(0, wants_value));
      wants_value != std::string::npos && option != nullptr)
    return fmt::format("{} takes a value: {}", option->get_name(), option->get_description());
  if (const size_t at = text.find(": takes "); at != std::string::npos) text.erase(at, 1);  // "--steps takes a whole number ..."
  return text;
}

std::optional<double> to_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
  return whole ? std::optional(value) : std::nullopt;
}

std::string wants(std::string_view what, const std::string& found) { return fmt::format("takes {}; found `{}`", what, printable(found)); }

}  // namespace

std::string did_you_mean(std::string_view written, const std::vector<std::string>& candidates) {
  const auto lower = [](std::string_view text) {
    std::string low(text);
    std::transform(low.begin(), low.end(), low.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return low;
  };
  const std::optional<std::string> near = near_name(lower(written), {candidates.begin(), candidates.end()});
  return near ? fmt::format("; did you mean `{}`?", *near) : "";
}

std::optional<ExitStatus> parse_arguments(CLI::App& app, Arguments arguments) {
  if (parser_observer() != nullptr) {
    (*parser_observer())(app);
    return ExitStatus::done;
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  // CLI11 prints to C++ streams, which do not go through ours.
  std::ostringstream help;
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_text(app, terminal_width()));
    return ExitStatus::done;
  } catch (const CLI::Success& success) {
    app.exit(success, help, help);
    fmt::print("{}", help.str());
    return ExitStatus::done;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "einc: {}\n{} --help lists what it takes\n", usage_error(app, arguments, error), app.get_name());
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

std::optional<ComparedSettings> compared_settings(const std::vector<std::string>& settings) {
  ComparedSettings compared;
  std::map<std::string, int> times;
  for (const std::string& setting : settings) {
    const std::string dim = setting.substr(0, setting.find('='));
    const int time = ++times[dim];
    if (time > 2) {
      fmt::print(stderr, "einc: -D sets {} {} times; --diff compares two values\n", printable(dim), time);
      return std::nullopt;
    }
    if (time == 1) compared.own.push_back(setting);
    compared.other.push_back(setting);  // the last one counts
  }
  return compared;
}

void add_import_folders(CLI::App& app, std::vector<std::string>& folders) {
  app.add_option("-I", folders, "a folder to import from, besides that of the importing file; may be given again")
      ->allow_extra_args(false)
      ->type_name("FOLDER");
}

void add_precision(CLI::App& app, std::string& precision) {
  app.add_option("--precision", precision,
                 "f32, bf16, f16 or fp8, in place of the file's policy; tf32: f32, with matrix products of NVIDIA GPUs in tf32")
      ->check(one_of({"f32", "tf32", "bf16", "f16", "fp8"}));
}

void add_mesh(CLI::App& app, std::string& mesh, std::string& shard) {
  app.add_option("--mesh", mesh, "the devices of the program, data=4,model=2, in place of its `mesh` line");
  app.add_option("--shard", shard,
                 "what is split over them, \"batch=data; heads,hidden=model; states=data\", in place of its `shard` lines");
}

namespace {

constexpr std::pair<char, const char*> kLetters[] = {{'k', "e3"}, {'K', "e3"}, {'M', "e6"}, {'G', "e9"}, {'B', "e9"}, {'T', "e12"}};

// "15T" is "15e12"; what ends with no such letter stays as it is.
std::string spell_out(const std::string& text) {
  for (const auto& [letter, power] : kLetters)
    if (text.size() > 1 && text.back() == letter && text.find_first_of("eE") == std::string::npos)
      return text.substr(0, text.size() - 1) + power;
  return text;
}

std::optional<uint64_t> to_whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return std::nullopt;
}

}  // namespace

CLI::Validator whole_number(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        const auto value = to_whole_number(text);
        return value && *value >= least && *value <= most ? std::string()
                                                          : wants(fmt::format("a whole number from {} to {}", least, most), text);
      },
      "");
}

CLI::Validator count_between(uint64_t least, uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        std::optional<uint64_t> value = to_whole_number(text);
        const double number = value ? 0 : to_number(spell_out(text)).value_or(0.5);
        if (number >= 0 && number == std::floor(number) && number < 0x1p53 && !value) value = static_cast<uint64_t>(number);
        if (!value || *value < least || *value > most) return wants(fmt::format("a whole number from {} to {}", least, most), text);
        text = std::to_string(*value);
        return std::string();
      },
      "");
}

CLI::Validator seed_check() { return whole_number(0, UINT64_MAX); }

CLI::Validator positive_number() {
  return CLI::Validator(
      [](const std::string& text) { return to_number(text).value_or(0) > 0 ? std::string() : wants("a positive number", text); }, "");
}

CLI::Validator number_between(double low, double high) {
  return CLI::Validator(
      [low, high](const std::string& text) {
        const auto value = to_number(text);
        if (value && *value >= low && *value <= high) return std::string();
        std::string message = wants(fmt::format("a number from {} to {}", low, high), text);
        const auto percent = to_number(text.ends_with('%') ? text.substr(0, text.size() - 1) : text).value_or(0);
        if (high == 1 && percent > 1 && percent <= 100) message += fmt::format("; {} % is {:g}", percent, percent / 100);
        return message;
      },
      "");
}

CLI::Validator quantity() {
  return CLI::Validator(
      [](std::string& text) {
        const std::string plain = spell_out(text);
        if (!(to_number(plain).value_or(0) > 0)) return wants("a positive number such as 15e12 or 15T", text);
        text = plain;
        return std::string();
      },
      "");
}

CLI::Validator byte_count() {
  return CLI::Validator(
      [](std::string& text) {
        constexpr std::pair<const char*, double> kUnits[] = {{"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30},
                                                             {"TiB", 0x1p40}, {"kB", 1e3},     {"MB", 1e6},
                                                             {"GB", 1e9},     {"TB", 1e12},    {"", 1}};
        for (const auto& [unit, bytes] : kUnits) {
          if (!text.ends_with(unit)) continue;
          const double count = to_number(text.substr(0, text.size() - std::strlen(unit))).value_or(0) * bytes;
          if (!(count >= 1 && count < 0x1p60)) break;
          text = std::to_string(static_cast<int64_t>(count));
          return std::string();
        }
        return wants("a number of bytes such as 40GB (of 10^9), 512MiB or 40e9", text);
      },
      "");
}

void add_memory_limit(CLI::App& app, std::optional<int64_t>& bytes) {
  app.add_option("--memory-limit", bytes,
                 "most memory that a training step may take: values saved for the backward are recomputed to stay below it")
      ->transform(byte_count())
      ->type_name("BYTES");
}

CLI::Validator one_of(std::vector<std::string> choices) {
  return CLI::Validator(
      [choices = std::move(choices)](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string();
        std::string list;
        for (size_t i = 0; i < choices.size(); ++i) list += (i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ") + choices[i];
        if (text == "gpu" && std::find(choices.begin(), choices.end(), "cuda") != choices.end())
          return wants(list, text) + "; did you mean `cuda`?";  // by its letters it is near to `cpu`
        return wants(list, text) + did_you_mean(text, choices);
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
    const std::string path = setting.substr(equals + 1);
    if (const size_t comma = path.find(','); comma != std::string::npos && path.find('=', comma) != std::string::npos) {
      fmt::print(stderr, "einc: each file has a {} of its own: {} {}={} {} {}\n", option, option, printable(setting.substr(0, equals)),
                 printable(path.substr(0, comma)), option, printable(path.substr(comma + 1)));
      return std::nullopt;
    }
    result.emplace_back(setting.substr(0, equals), path);
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

int terminal_width(int file_descriptor) {
  if (const char* columns = std::getenv("COLUMNS")) {
    const int value = std::atoi(columns);
    if (value >= 20 && value <= 1000) return value;
  }
  winsize size{};
  if (isatty(file_descriptor) != 0 && ioctl(file_descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20) return size.ws_col;
  return 100;
}

}  // namespace einc
