// SPDX-License-Identifier: Apache-2.0
// Runs of several processes of which one is killed at any moment. All end soon, and what they leave goes on in any number of them.
#include <signal.h>

#include <array>
#include <chrono>
#include <random>
#include <thread>

#include "tests/golden/processes/mesh_runs.h"
#include "tests/support/sample.h"

namespace einc::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr uint64_t kSteps = 150;

class Killed {
 public:
  explicit Killed(std::string_view model) : runs_(model), random_(static_cast<unsigned>(kills_asked(kByDefault))) {
    runs_.done(1, "straight", options());
  }

  // Kills a run again and again until it has been killed that many times or is through, and lets it end.
  void chain(int most) {
    const std::string name = fmt::format("killed{}", chains_++);
    for (int here = 0; here < most && kill_one(name); ++here) ++kills_;
    runs_.done(among({1, 2, 4, 8}), name, options());
    CHECK(runs_.checkpoint(name, kSteps) == runs_.checkpoint("straight", kSteps));
  }
  int kills() const { return kills_; }
  int with_checkpoint() const { return with_checkpoint_; }
  static constexpr int kByDefault = 2;

 private:
  static std::vector<std::string> options() { return {fmt::format("--steps={}", kSteps), "--every=7", "--resume"}; }
  int among(const std::vector<int>& all) { return all[random_() % all.size()]; }

  // When its log holds so many steps, those of killed runs before it included, and a moment later: wherever it has come to by then.
  bool kill_one(const std::string& name) {
    const int processes = among({2, 4, 8});
    const uint64_t step = random_() % kSteps;
    const auto later = std::chrono::microseconds(random_() % 20000);
    const uint32_t victim = random_();
    CAPTURE(processes);
    CAPTURE(step);
    CAPTURE(victim);
    Clock::time_point killed;
    Surroundings surroundings;
    surroundings.ready = [&] { return runs_.logged_steps(name) >= step; };
    surroundings.act = [&](pid_t launcher) {
      std::vector<pid_t> ranks;
      for (int tries = 0; ranks.empty() && tries < 2000; ++tries) {  // a launcher takes a while to start them
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        ranks = einc_below(launcher);
      }
      if (ranks.empty()) return;  // the run was over by then
      std::this_thread::sleep_for(later);
      kill(ranks[victim % ranks.size()], SIGKILL);
      killed = Clock::now();
    };
    const Ran ran = runs_.run(processes, name, options(), surroundings);
    if (ran.status == 0) return false;
    CHECK_MESSAGE(killed != Clock::time_point(), ran.errors);
    CHECK(Clock::now() - killed < std::chrono::seconds(10));
    const fs::path saved = runs_.folder().at(name);
    with_checkpoint_ += fs::exists(saved) && fs::directory_iterator(saved) != fs::directory_iterator();
    return true;
  }

  const MeshRuns runs_;
  std::mt19937 random_;
  int chains_ = 0, kills_ = 0, with_checkpoint_ = 0;
};

void check_kills(std::string_view model) {
  if (!launches()) return;
  Killed killed(model);
  const int asked = kills_asked(Killed::kByDefault);
  while (killed.kills() < asked) killed.chain(1 + asked / 10);
  CHECK(killed.with_checkpoint() > 0);
  MESSAGE(killed.kills(), " kills, ", killed.with_checkpoint(), " of them with a checkpoint behind");
}

}  // namespace

TEST_CASE("processes: of a run that is killed at any moment and goes on in another number of them no bit is lost") {
  for (const std::string_view model : sampled(std::array{kMeshModel, kLayersModel}, 2)) check_kills(model);
}

}  // namespace einc::test
