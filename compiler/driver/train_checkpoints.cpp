// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/train_checkpoints.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/driver/command_line.h"
#include "runtime/base/printable.h"

namespace einc {

void add_checkpoint_options(CLI::App& app, CheckpointRequest& request) {
  auto* folder = app.add_option("--checkpoint", request.folder, "a folder for checkpoints: params, optimizer state, position in the data")
                     ->type_name("DIR");
  app.add_option("--every", request.every, "steps between checkpoints; the last step and the best validation loss get one too")
      ->transform(count_between(1, kMaxCount))
      ->needs(folder);
  app.add_option("--keep", request.keep, "number of checkpoints to keep: the newest ones, and the best one besides")
      ->transform(count_between(1, kMaxCount))
      ->needs(folder);
  auto* resume = app.add_flag("--resume", request.resume,
                              "continue from the newest intact checkpoint, bit for bit; start from scratch if there is none")
                     ->needs(folder);
  app.add_flag("--partial", request.partial, "with --resume: take what fits from the checkpoint of another model or run")->needs(resume);
}

RunCheckpoints::RunCheckpoints(const CheckpointRequest& request, Keeper keeper)
    : request_(request),
      keeper_(keeper),
      folder_(keeper == Keeper::this_process ? CheckpointFolder(request.folder)
                                             : CheckpointFolder(request.folder, CheckpointFolder::Reader{})) {
  if (!request_.resume) return;
  found_ = folder_.newest();
  if (!found_) return;
  for (const std::string& problem : found_->passed_over) warn(problem);
  if (!found_->passed_over.empty())
    warn(fmt::format("going on from {}, the newest checkpoint that is whole", printable(found_->checkpoint.folder())));
}

void RunCheckpoints::warn(const std::string& text) const {
  if (keeper_ == Keeper::this_process) fmt::print(stderr, "einc: warning: {}\n", text);
}

bool RunCheckpoints::may_begin() const {
  if (request_.resume || keeper_ == Keeper::another) return true;
  const std::vector<uint64_t> steps = folder_.steps();
  if (steps.empty()) return true;
  fmt::print(stderr, "einc: {} has checkpoints up to step {}: go on from there with --resume, or take another folder\n",
             printable(folder_.path()), steps.back());
  return false;
}

TrainingPosition RunCheckpoints::begin(SessionRep& session, RunSettings run) {
  run_ = std::move(run);
  if (!found_) return {};
  const Checkpoint& checkpoint = found_->checkpoint;
  for (const std::string& line : noted_differences(checkpoint, run_))
    warn(fmt::format("since {}: {}", printable(checkpoint.folder()), line));
  const Fit fit = request_.partial ? Fit::partial : Fit::exact;
  for (const std::string& line : restore(checkpoint, session, run_, fit)) warn(fmt::format("{}: {}", printable(checkpoint.folder()), line));
  const TrainingPosition position = checkpoint.record().position;
  saved_ = position.step;
  found_.reset();
  return position;
}

void RunCheckpoints::consider(const SessionRep& session, const TrainingPosition& position, Moment moment) {
  const bool best = std::isfinite(position.best_loss) && position.best_step == position.step;
  if (position.step == saved_ || (moment == Moment::between && !best && position.step % request_.every != 0)) return;
  if (keeper_ == Keeper::this_process) {
    session.fetch_all();
    folder_.save(session, position, run_, request_.keep);
    session.release_all();
  } else {
    session.pass_all();
  }
  saved_ = position.step;
}

}  // namespace einc
