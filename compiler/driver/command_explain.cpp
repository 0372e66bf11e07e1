// SPDX-License-Identifier: Apache-2.0
// `einc explain E0322`: what a diagnostic's code means, why the rule is there, a program that breaks it and the mended one.
#include <fmt/format.h>

#include "compiler/driver/command_line.h"
#include "dsl/explain.h"
#include "runtime/base/ascii.h"

namespace einc {

ExitStatus explain_command(Arguments arguments) {
  CLI::App app("Says what the code of an error or warning means, with an example and its cure. Without a code, lists all codes.",
               "einc explain");
  std::vector<std::string> codes;
  app.add_option("CODE", codes, "such as E0322");
  if (auto status = parse_arguments(app, arguments)) return *status;
  if (codes.empty())
    for (const Explanation& e : explanations()) fmt::print("{}  {:<24} {}\n", e.code, e.identifier, e.what.substr(0, e.what.find(". ")));
  for (size_t i = 0; i < codes.size(); ++i) {
    const Explanation* found = explain(codes[i]);
    if (!found) {
      std::vector<std::string> names;
      for (const Explanation& e : explanations()) names.insert(names.end(), {e.code, e.identifier});
      const bool digits = codes[i].size() <= 4 && is_digits(codes[i]);
      const std::string meant = digits ? "E" + std::string(4 - codes[i].size(), '0') + codes[i] : codes[i];
      fmt::print(stderr, "einc: no code `{}`{}\neinc explain lists all of them\n", printable(codes[i]), did_you_mean(meant, names));
      return ExitStatus::wrong_usage;
    }
    fmt::print("{}{}", i == 0 ? "" : "\n", render(*found));
  }
  return ExitStatus::done;
}

}  // namespace einc
