// SPDX-License-Identifier: Apache-2.0
// einc's entry: picks the subcommand and turns what escapes into an exit status.
#include <einc/error.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "compiler/driver/allocator.h"
#include "compiler/driver/commands.h"
#include "compiler/driver/standard_streams.h"
#include "runtime/base/big_stack.h"
#include "runtime/base/failure.h"
#include "runtime/base/file_cache.h"

namespace {

einc::ExitStatus dispatch(const std::vector<std::string>& arguments) {
  if (!arguments.empty())
    for (const einc::Command& command : einc::commands())
      if (arguments.front() == command.name) return command.run(einc::Arguments(arguments).subspan(1));
  if (arguments.empty() || arguments.front() != "help" || std::filesystem::exists("help")) return einc::compile_command(arguments);
  std::vector<std::string> asked(arguments.begin() + 1, arguments.end());  // `einc help train`
  asked.emplace_back("--help");
  return dispatch(asked);
}

einc::ExitStatus report_defect(const std::exception& error) {
  fmt::print(stderr,
             "einc: internal error: {}\nThis is a defect of einc, not of your file. Please report it with the file and the command line.\n",
             error.what());
  return einc::ExitStatus::internal;
}

// Runs the command; what it throws becomes a message and a status.
einc::ExitStatus guarded_dispatch(const std::vector<std::string>& arguments) {
  try {
    einc::ExitStatus status{};
    einc::run_on_big_stack([&] { status = dispatch(arguments); });
    return status;
  } catch (const einc::RuntimeFailure& failure) {
    fmt::print(stderr, "einc: {}\n", failure.what());
    return einc::status_of(failure.kind());
  } catch (const einc::Error& error) {
    if (error.kind() == einc::ErrorKind::internal) return report_defect(error);
    fmt::print(stderr, "einc: {}\n", error.what());
    return static_cast<einc::ExitStatus>(error.kind());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "einc: out of memory\n");
    return einc::ExitStatus::environment;
  } catch (const std::exception& error) {
    return report_defect(error);
  }
}

}  // namespace

int main(int argc, char** argv) {
  einc::tune_allocator();
  einc::guard_standard_streams();
  einc::FileCache::warn_by([](const std::string& warning) { fmt::print(stderr, "einc: warning: {}\n", warning); });
  einc::ExitStatus status = guarded_dispatch({argv + 1, argv + argc});
  if (const auto problem = einc::finish_output()) {
    fmt::print(stderr, "einc: cannot write standard output: {}\n", *problem);
    if (status != einc::ExitStatus::interrupted) status = einc::ExitStatus::environment;
  }
  return static_cast<int>(status);
}
