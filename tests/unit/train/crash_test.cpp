// SPDX-License-Identifier: Apache-2.0
// Every way in which a save can break off leaves a checkpoint that loads, and it is the old one or the new one, bit for bit.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sys/wait.h>

#include "tests/unit/train/faulty_files.h"
#include "tests/unit/train/saved_session.h"

using namespace einc;
using namespace einc::test;

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeep = 1;

// Steps 10 and 20 are there, and what a save that broke off left behind; 30, the best so far, is saved.
struct Scene {
  enum class Replaces : uint8_t { nothing, same_step };
  explicit Scene(Replaces replaces) : step(replaces == Replaces::nothing ? 30 : 20) {
    QuickFiles quick;
    CheckpointFolder folder(place.path(), quick);
    folder.save(before.session, position(10), run_settings(), 2);
    folder.save(before.session, position(20), run_settings(), 2);
    fs::create_directory(place / ".step-00000015.tmp");
    fs::copy(place / "step-00000010/state.safetensors", place / ".step-00000015.tmp/state.safetensors");
    fs::create_symlink("step-00000010", place / ".best.tmp");
    fs::create_directory(trash.path());
  }
  static TrainingPosition position(uint64_t at) { return {at, 3.0 - 0.1 * static_cast<double>(at), at}; }
  // False after a RuntimeFailure.
  bool save(FileSystem& files) const {
    try {
      CheckpointFolder(place.path(), files).save(after.session, position(step), run_settings(), kKeep);
    } catch (const RuntimeFailure& failure) {
      CHECK(failure.kind() == FailureKind::resource);
      CHECK(std::string(failure.what()).starts_with(place.path()));
      return false;
    }
    return true;
  }
  // Whether it is the new one; the next save succeeds and leaves nothing else.
  bool check() const {
    QuickFiles quick;
    CheckpointFolder folder(place.path(), quick);
    const auto found = folder.newest();
    REQUIRE(found);
    CHECK(found->passed_over.empty());
    TestSession session(small_program(), 3);
    CHECK(restore(found->checkpoint, session.session, run_settings(), Fit::exact).empty());
    const bool is_new = found->checkpoint.record().position.step == step && session.bytes() == after.bytes();
    CHECK((is_new || (found->checkpoint.record().position.step == 20 && session.bytes() == before.bytes())));
    CHECK(found->checkpoint.record().position == position(is_new ? step : 20));
    folder.save(after.session, position(40), run_settings(), 1);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(place.path())) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    CHECK(names == std::vector<std::string>{"best", "step-00000040"});
    CHECK(fs::read_symlink(place / "best") == "step-00000040");
    return is_new;
  }

  uint64_t step;
  TestFolder place, trash{"trash"};
  TestSession before{small_program(), 1}, after{small_program(), 2};
};

constexpr Scene::Replaces kScenes[] = {Scene::Replaces::nothing, Scene::Replaces::same_step};

size_t calls_of_a_save(Scene::Replaces replaces) {
  FaultyFiles files(Fault::none, 0);
  const Scene scene(replaces);
  REQUIRE(scene.save(files));
  CHECK(scene.check());
  return files.calls();
}

}  // namespace

TEST_CASE("a call that fails, a disk that fills, a short write: the old checkpoint or the new one") {
  for (const auto replaces : kScenes) {
    const size_t calls = calls_of_a_save(replaces);
    CHECK(calls > 40);
    for (const Fault fault : {Fault::input_output, Fault::disk_full, Fault::short_write, Fault::short_then_full}) {
      size_t old = 0, fresh = 0;
      for (size_t at = 0; at < calls; ++at) {
        CAPTURE(at);
        CAPTURE(static_cast<int>(fault));
        const Scene scene(replaces);
        FaultyFiles files(fault, at);
        const bool saved = scene.save(files);
        const bool leftover = fs::exists(scene.place / fmt::format(".step-{:08}.tmp", scene.step));
        const bool is_new = scene.check();
        CHECK((is_new || !saved));
        CHECK((is_new || !leftover));  // nor is room taken by what could not be written
        if (fault == Fault::short_write) CHECK((saved && is_new));
        ++(is_new ? fresh : old);
      }
      CHECK(fresh > 0);
      CHECK((old > 0 || fault == Fault::short_write));
    }
  }
}

TEST_CASE("a process that is killed at any call of a save: the old checkpoint or the new one") {
  for (const auto replaces : kScenes) {
    const size_t calls = calls_of_a_save(replaces);
    size_t old = 0, fresh = 0;
    for (const Fault fault : {Fault::killed_before, Fault::killed_amid})
      for (size_t at = 0; at < calls; ++at) {
        CAPTURE(at);
        const Scene scene(replaces);
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
          FaultyFiles files(fault, at);
          scene.save(files);
          ::_exit(0);
        }
        int state = 0;
        REQUIRE(::waitpid(child, &state, 0) == child);
        CHECK(WIFEXITED(state));
        CHECK(WEXITSTATUS(state) == 9);
        ++(scene.check() ? fresh : old);
      }
    CHECK(old > 0);
    CHECK(fresh > 0);
  }
}

TEST_CASE("a power cut after any call of a save: what was not synced is lost, and the old checkpoint or the new one loads") {
  for (const auto replaces : kScenes)
    for (const Names names : {Names::as_before, Names::as_now}) {
      size_t old = 0, fresh = 0;
      for (size_t at = 0;; ++at) {
        CAPTURE(at);
        CAPTURE(static_cast<int>(names));
        const Scene scene(replaces);
        VolatileFiles files(scene.trash.path(), at);
        scene.save(files);
        files.cut(names);
        ++(scene.check() ? fresh : old);
        if (files.on()) break;
      }
      CHECK(old > 20);
      CHECK(fresh > 3);
    }
}
