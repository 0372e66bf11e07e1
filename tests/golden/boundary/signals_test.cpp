// SPDX-License-Identifier: Apache-2.0
// Signals that end a training, and data that changes under it. Nothing here waits for a time: what happens next is started by what the
// run has written.
#include <csignal>

#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSignalsProgram = R"(dim batch = 2, seq = 8, vocab = 16
input tokens: i32[batch seq]
param table: [vocab] ~ normal(std = 0.1)
loss = mean(table[vocab = tokens]^2)
minimize loss using sgd(lr = 0.1)
)";

class Training : public Place {
 public:
  Training() {
    write("m.ein", kSignalsProgram);
    write("train.bin", std::string(2 * 20'000, '\0'));  // several pages
  }
  // Has something happen to the run after its first step, whose line is in the log then.
  Ran run(const std::vector<std::string>& more, std::function<void(pid_t)> act) const {
    std::vector<std::string> words{"train",
                                   at("m.ein"),
                                   "--data=tokens=" + at("train.bin"),
                                   "--target=reference",
                                   "--quiet",
                                   "--steps=1000000000",
                                   "--log=" + at("log"),
                                   "--log-every=1"};
    words.insert(words.end(), more.begin(), more.end());
    Surroundings surroundings;
    surroundings.ready = [this] { return read("log").find("\"kind\":\"step\"") != std::string::npos; };
    surroundings.act = std::move(act);
    return run_einc(words, surroundings);
  }
};

}  // namespace

TEST_CASE("SIGHUP and SIGTERM save as an interrupt does") {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    CAPTURE(signal);
    const Training training;
    const Ran ran = training.run({"--checkpoint=" + training.at("c"), "--every=1000000000"}, [&](pid_t child) { kill(child, signal); });
    CHECK(ran.status == 130);
    CHECK_MESSAGE(ran.errors.ends_with(" is saved: go on with --resume\n"), ran.errors);
    CHECK(training.names("c").size() == 1);
  }
}

TEST_CASE("a hang-up that the process was told to ignore does not end it") {
  const Training training;
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);  // as nohup does; the run inherits it
  const Ran ran = training.run({}, [&](pid_t child) {
    kill(child, SIGHUP);
    // Signals of other numbers may overtake each other: the hang-up was taken or dropped when another step is done.
    const size_t seen = training.read("log").size();
    while (training.read("log").size() <= seen + 4096) usleep(200);
    CHECK(kill(child, 0) == 0);
    kill(child, SIGTERM);
  });
  sigaction(SIGHUP, &before, nullptr);
  CHECK(ran.status == 130);
}

TEST_CASE("a token file that is cut short under a run is a failure of data, not a signal") {
  for (const uintmax_t left : {uintmax_t{0}, uintmax_t{4096}, uintmax_t{10'001}}) {
    CAPTURE(left);
    const Training training;
    const Ran ran = training.run({}, [&](pid_t) { fs::resize_file(training.at("train.bin"), left); });
    CHECK(ran.signal == 0);
    CHECK(ran.status == 3);
    CHECK(ran.errors == fmt::format("einc: {}: the file was cut short while it was read\n", training.at("train.bin")));
  }
}

}  // namespace einc::test
