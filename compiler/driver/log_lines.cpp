// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/log_lines.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

constexpr size_t kMaxLine = 1 << 20;  // bytes
constexpr int kMaxDepth = 64;

int deepest(const std::string& text) {
  int depth = 0, most = 0;
  for (const char c : text) most = std::max(most, depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0);
  return most;
}

// Of a line that tells of a time after `step` steps.
bool is_later(const nlohmann::json& line, uint64_t step) {
  const auto above = [&](const char* field, uint64_t bound) {
    const auto found = line.find(field);
    return found != line.end() && found->is_number_unsigned() && found->get<uint64_t>() > bound;
  };
  const nlohmann::json& kind = line.at("kind");
  if (kind == "run") return step > 0 && above("first_step", step - 1);  // it did not get beyond this step, or it saved
  return kind == "failure" || above("step", step);
}

}  // namespace

void read_log(const std::string& path, const std::function<bool(const LogLine& line)>& take) {
  const InputFile checked(path);  // says why a file cannot be read
  std::ifstream in(path, std::ios::binary);
  size_t number = 0;
  uint64_t end = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (in.eof()) return;
    end += text.size() + 1;
    if (text.empty()) continue;
    const auto fail = [&](const char* what) {
      throw RuntimeFailure(FailureKind::data, fmt::format("{}: line {} {}", printable(path), number, what));
    };
    if (text.size() > kMaxLine) fail("is longer than a log's");
    if (deepest(text) > kMaxDepth) fail("is nested too deeply");
    nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || !line.contains("kind")) fail("is not a line of a log that `einc train --log` writes");
    if (!take({std::move(line), end})) return;
  }
}

void cut_log(const std::string& path, uint64_t step) {
  uint64_t kept = 0;
  read_log(path, [&](const LogLine& line) {
    const bool stays = !is_later(line.fields, step);
    if (stays) kept = line.end;
    return stays;
  });
  std::error_code error;
  std::filesystem::resize_file(path, kept, error);
  if (error) throw RuntimeFailure(FailureKind::resource, fmt::format("cannot shorten {}: {}", printable(path), error.message()));
}

}  // namespace einc
