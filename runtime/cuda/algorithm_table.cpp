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
  std::FILE* out = std::fopen(file_.c_str(), "a");
  if (!out) return;
  std::string text = line_of(key, value);
  if (fs::file_size(file_, ignored) == 0) text = std::string(kFirstLine) + "\n" + text;
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
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
