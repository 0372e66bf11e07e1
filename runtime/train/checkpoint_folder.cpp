// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpoint_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBest = "best";
constexpr std::string_view kDraftEnding = ".tmp";

std::string name_of(uint64_t step) { return fmt::format("step-{:08}", step); }
// A name that is no checkpoint's: something unfinished, or on its way out.
std::string draft_of(const std::string& name) { return fmt::format(".{}{}", name, kDraftEnding); }

std::optional<uint64_t> step_of(std::string_view name) {
  constexpr std::string_view kStart = "step-";
  if (!name.starts_with(kStart)) return std::nullopt;
  uint64_t step = 0;
  std::from_chars(name.data() + kStart.size(), name.data() + name.size(), step);
  if (name_of(step) != name) return std::nullopt;
  return step;
}

bool is_draft(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(kDraftEnding)) return false;
  const std::string_view inner = name.substr(1, name.size() - 1 - kDraftEnding.size());
  return inner == kBest || step_of(inner).has_value();
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  if (error) throw RuntimeFailure(FailureKind::resource, fmt::format("{}: cannot list: {}", printable(folder), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).lexically_normal().parent_path().string();
  return parent.empty() ? "." : parent;
}

}  // namespace

FileSystem& CheckpointFolder::system_files() {
  static FileSystem files;
  return files;
}

CheckpointFolder::CheckpointFolder(std::string path, FileSystem& files) : path_(std::move(path)), files_(files) {
  while (path_.size() > 1 && path_.ends_with('/')) path_.pop_back();
  if (files_.make_folder(path_) == 0) {
    sync_folder(files_, parent_of(path_));
  } else if (errno != EEXIST) {
    fail_with_errno(path_, "make this folder");
  }
  lock_ = files_.open_folder(path_);
  if (lock_ < 0) fail_with_errno(path_, "open this folder");
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    files_.close(lock_);
    throw RuntimeFailure(FailureKind::resource, fmt::format("{}: another process keeps its checkpoints there", printable(path_)));
  }
}

CheckpointFolder::~CheckpointFolder() {
  if (lock_ >= 0) files_.close(lock_);
}

std::vector<uint64_t> CheckpointFolder::steps() const {
  std::vector<uint64_t> steps;
  for (const std::string& name : names_in(path_))
    if (const auto step = step_of(name)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string CheckpointFolder::folder_of(uint64_t step) const { return inside(name_of(step)); }

void CheckpointFolder::remove_folder(const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (files_.remove(folder + "/" + name) != 0) fail_with_errno(folder + "/" + name, "remove");
  if (files_.remove(folder) != 0) fail_with_errno(folder, "remove");
}

// What is there of a checkpoint that could not be written goes, if it can: a full disk has no room for it. That it could not be written is
// what its owner is told.
void CheckpointFolder::give_up(const std::string& draft) {
  try {
    if (exists(draft)) remove_folder(draft);
  } catch (const RuntimeFailure&) {  // the next save tries again
  }
}

void CheckpointFolder::remove_drafts() {
  for (const std::string& name : names_in(path_)) {
    if (!is_draft(name)) continue;
    if (fs::is_directory(fs::symlink_status(inside(name)))) {
      remove_folder(inside(name));
    } else if (files_.remove(inside(name)) != 0) {
      fail_with_errno(inside(name), "remove");
    }
  }
}

void CheckpointFolder::save(const SessionRep& session, const TrainingPosition& position, const RunSettings& run, uint64_t keep) {
  remove_drafts();
  const std::string target = folder_of(position.step), draft = inside(draft_of(name_of(position.step)));
  const bool replaces = exists(target);
  try {
    if (files_.make_folder(draft) != 0) fail_with_errno(draft, "make this folder");
    write_checkpoint(files_, draft, session, position, run);
    if ((replaces ? files_.exchange(draft, target) : files_.rename(draft, target)) != 0)
      fail_with_errno(target, "put the new checkpoint in place");
  } catch (const RuntimeFailure&) {
    give_up(draft);
    throw;
  }
  sync_folder(files_, path_);
  if (replaces) remove_folder(draft);
  point_at_best(position);
  remove_old(position, keep);
  sync_folder(files_, path_);
}

void CheckpointFolder::point_at_best(const TrainingPosition& position) {
  if (!std::isfinite(position.best_loss) || !exists(folder_of(position.best_step))) return;
  const std::string name = name_of(position.best_step), link = inside(kBest), draft = inside(draft_of(kBest));
  std::error_code none;
  if (fs::read_symlink(link, none) == name) return;
  if (files_.make_link(name, draft) != 0) {
    if (errno == EPERM || errno == EOPNOTSUPP) return;  // a file system without links; train.json says it too
    fail_with_errno(draft, "make a link");
  }
  if (files_.rename(draft, link) != 0) {
    const int error = errno;
    files_.remove(draft);
    errno = error;
    fail_with_errno(link, "rename a link to it");
  }
}

void CheckpointFolder::remove_old(const TrainingPosition& position, uint64_t keep) {
  const std::vector<uint64_t> all = steps();
  std::vector<uint64_t> older(all.begin(), std::lower_bound(all.begin(), all.end(), position.step));
  older.resize(older.size() - std::min<size_t>(older.size(), keep - 1));
  for (const uint64_t step : older) {
    if (std::isfinite(position.best_loss) && position.best_step == step) continue;
    // Under a name that nobody takes for a checkpoint, before it is half there.
    const std::string draft = inside(draft_of(name_of(step)));
    if (files_.rename(folder_of(step), draft) != 0) fail_with_errno(folder_of(step), "rename");
    remove_folder(draft);
  }
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest() const {
  std::vector<uint64_t> all = steps();
  std::vector<std::string> passed_over;
  for (; !all.empty(); all.pop_back()) {
    try {
      Checkpoint checkpoint(folder_of(all.back()));
      if (checkpoint.record().position.step == all.back()) return Found{std::move(checkpoint), std::move(passed_over)};
      passed_over.push_back(
          fmt::format("{}: it is a checkpoint of step {}", printable(folder_of(all.back())), checkpoint.record().position.step));
    } catch (const RuntimeFailure& failure) {
      passed_over.emplace_back(failure.what());
    }
  }
  if (passed_over.empty()) return std::nullopt;
  std::string text;
  for (const std::string& line : passed_over) text += "\n  " + line;
  throw RuntimeFailure(FailureKind::data, fmt::format("{}: none of its checkpoints is whole:{}", printable(path_), text));
}

}  // namespace einc
