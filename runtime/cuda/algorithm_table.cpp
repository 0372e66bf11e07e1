#include "runtime/cuda/algorithm_table.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "runtime/base/file_cache.h"
#include "runtime/base/hash.h"

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
std::string line_of(const std::string& key, const AlgorithmTable::Entry& entry) {
  return fmt::format("{} = {} {:x}\n", key, entry.workspace_bytes, fmt::join(entry.algorithm.data, " "));
}

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

void AlgorithmTable::read() {
  std::ifstream in(file_);
  std::string line;
  if (!std::getline(in, line)) return;
  if (line != kFirstLine) {
    file_.clear();
    return;
  }
  while (std::getline(in, line)) {
    const size_t at = line.find(" = ");
    if (at == std::string::npos) continue;
    if (const auto entry = parse_entry(line.c_str() + at + 3)) entries_.emplace(line.substr(0, at), *entry);
  }
}

AlgorithmTable::Entry AlgorithmTable::of(const std::string& key, const std::function<Entry()>& choose) {
  const std::lock_guard lock(mutex_);
  used_.insert(key);
  if (const auto found = entries_.find(key); found != entries_.end()) return found->second;
  const Entry entry = choose();
  entries_.emplace(key, entry);
  append(key, entry);
  return entry;
}

// One write for a line, so that processes that add at once do not mix theirs.
void AlgorithmTable::append(const std::string& key, const Entry& entry) {
  if (file_.empty()) return;
  std::error_code ignored;
  fs::create_directories(file_.parent_path(), ignored);
  std::FILE* out = std::fopen(file_.c_str(), "a");
  if (!out) return;
  std::string text = line_of(key, entry);
  if (fs::file_size(file_, ignored) == 0) text = std::string(kFirstLine) + "\n" + text;
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
}

uint64_t AlgorithmTable::used_hash() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const std::string& key : used_) text += line_of(key, entries_.at(key));
  return fnv1a(text);
}

}  // namespace einc::cuda
