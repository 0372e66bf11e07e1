// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/algorithm_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "runtime/base/file_cache.h"
#include "runtime/base/hash.h"
#include "runtime/base/regular_file.h"

namespace einc::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstLine = "einc gemm algorithms 1";

fs::path default_file() {
  if (const char* given = std::getenv("EINC_GEMM_TABLE")) return given;
  const fs::path folder = FileCache::default_folder();
  return folder.empty() ? fs::path() : folder / "gemm_algorithms.txt";
}

// KEY = WORKSPACE WORD... (eight words)
std::string text_of(const AlgorithmTable::Entry& entry) {
  return fmt::format("{} {:x}", entry.workspace_bytes, fmt::join(entry.algorithm.data, " "));
}

// KEY = together
constexpr const char* kWays[] = {"together", "apart", "library", "own"};
std::string text_of(AlgorithmTable::Way way) { return kWays[static_cast<size_t>(way)]; }

std::string line_of(const std::string& key, const std::string& value) { return fmt::format("{} = {}\n", key, value); }

std::optional<AlgorithmTable::Entry> parse_entry(const char* text) {
  AlgorithmTable::Entry entry;
  char* end = nullptr;
  entry.workspace_bytes = std::strtoull(text, &end, 10);
  for (uint64_t& word : entry.algorithm.data) {
    if (*end != ' ') return std::nullopt;
    word = std::strtoull(end + 1, &end, 16);
  }
  if (*end != '\0') return std::nullopt;
  return entry;
}

}  // namespace

AlgorithmTable& AlgorithmTable::get() {
  static AlgorithmTable table(default_file());
  return table;
}

AlgorithmTable::AlgorithmTable(fs::path file) : file_(std::move(file)) { read(); }

// A table decides which code runs, so that it is as safe as the code's cache.
void AlgorithmTable::read() {
  constexpr size_t kMaxBytes = size_t{16} << 20;  // of some hundred bytes a shape
  std::error_code error;
  if (file_.empty() || !fs::exists(fs::symlink_status(file_, error))) return;
  const RegularFile file(file_.string());
  if (!file.is_open() || !is_own(file.status()) || static_cast<uint64_t>(file.status().st_size) > kMaxBytes) {
    file_.clear();
    return;
  }
  std::istringstream in(file.read_start(kMaxBytes).value_or(""));
  std::string line;
  if (!std::getline(in, line)) return;
  if (line != kFirstLine) {
    file_.clear();
    return;
  }
  while (std::getline(in, line)) {
    const size_t at = line.find(" = ");
    if (at == std::string::npos) continue;
    const std::string key = line.substr(0, at), value = line.substr(at + 3);
    for (const Way way : {Way::together, Way::apart, Way::library, Way::own})
      if (value == text_of(way)) ways_.emplace(key, way);
    if (const auto entry = parse_entry(value.c_str())) entries_.emplace(key, *entry);
  }
}

AlgorithmTable::Entry AlgorithmTable::of(const std::string& key, const std::function<Entry()>& choose) {
  const std::lock_guard lock(mutex_);
  used_.insert(key);
  if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
  const Entry entry = choose();
  entries_.emplace(key, entry);
  append(key, text_of(entry));
  return entry;
}

AlgorithmTable::Way AlgorithmTable::way_of(const std::string& key, const std::function<Way()>& choose) {
  {
    const std::lock_guard lock(mutex_);
    used_.insert(key);
    if (const auto found = ways_.find(key); found != ways_.end()) return found->second;
  }
  const Way way = choose();  // which asks for algorithms
  const std::lock_guard lock(mutex_);
  if (const auto [known, fresh] = ways_.emplace(key, way); !fresh) return known->second;
  append(key, text_of(way));
  return way;
}

// One write for a line, so that processes that add at once do not mix theirs.
void AlgorithmTable::append(const std::string& key, const std::string& value) {
  if (file_.empty()) return;
  std::error_code ignored;
  fs::create_directories(file_.parent_path(), ignored);
  const int out = ::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
  if (out < 0) return;
  std::string text = line_of(key, value);
  struct stat status {};
  if (::fstat(out, &status) == 0 && S_ISREG(status.st_mode) && is_own(status)) {
    if (status.st_size == 0) text = std::string(kFirstLine) + "\n" + text;
    // A line that is cut off, by a full disk, is passed over when it is read.
    [[maybe_unused]] const ssize_t written = ::write(out, text.data(), text.size());
  }
  ::close(out);
}

uint64_t AlgorithmTable::used_hash() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& key : used_) {
    if (const auto entry = entries_.find(key); entry != entries_.end()) text += line_of(key, text_of(entry->second));
    if (const auto way = ways_.find(key); way != ways_.end()) text += line_of(key, text_of(way->second));
  }
  return fnv1a(text);
}

}  // namespace einc::cuda
