// SPDX-License-Identifier: Apache-2.0
// Standard output and error that take nothing: whatever the command, einc says so by status 4, or says nothing, and no signal ends it.
#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

constexpr std::string_view kStreamsProgram = R"(dim n = 4
input x: f32[n]
param w: f32[n] ~ ones
output y = x * w
output loss = mean((x * w)^2)
minimize loss using sgd(lr = 0.1)
)";

// One command of each kind that prints.
std::vector<std::vector<std::string>> printing_commands(const Place& place) {
  const std::string program = place.write("m.ein", kStreamsProgram), letter = place.write("letter.txt", "dear reader");
  place.write("x.npy", npy_of_floats({1, 2, 3, 4}));
  place.write("rows.npy", npy_of_floats({1, 2, 3, 4, 5, 6, 7, 8}, 8));
  REQUIRE(run_einc({"tokenize", letter, "-o", place.at("letter.bin")}).status == 0);
  std::vector<std::vector<std::string>> commands{
      {"--help"},
      {"--version"},
      {"--list-devices"},
      {"--passes"},
      {"dtypes"},
      {"estimate", "--params", "70e9", "--tokens", "15e12", "--device", "h100-sxm"},
      {program, "--report"},
      {program, "--report=json"},
      {program, "--explain=memory"},
      {program, "--emit=llvm"},
      {"fmt", "--stdout", program},
      {"fmt", "--help"},
      {"run", program, "--input", "x=" + place.at("x.npy")},
      {"train", program, "--data", "x=" + place.at("rows.npy"), "--steps=2", "--log-every=1"},
      {"gradcheck", program},
      {"bench", program, "--steps=1"},
      {"detokenize", place.at("letter.bin")},
  };
  for (const char* kind : {"ast", "graph", "grad", "shapes", "kernels", "schedule", "dot", "json"})
    commands.push_back({program, std::string("--emit=") + kind});
  return commands;
}

}  // namespace

TEST_CASE("standard output that takes nothing is status 4, whatever the command") {
  const Place place;
  const std::pair<Stream, const char*> streams[] = {
      {Stream::full, "No space left on device"}, {Stream::closed, "Bad file descriptor"}, {Stream::broken, "Broken pipe"}};
  size_t turn = 0;
  for (const std::vector<std::string>& command : printing_commands(place)) {
    CAPTURE(command.front());
    CAPTURE(command.back());
    // The mechanism is one, so that each command has its turn with one of the streams.
    const auto& [stream, reason] = streams[turn++ % std::size(streams)];
    const Ran ran = run_einc(command, {.output = stream});
    CHECK(ran.status == 4);
    CHECK_MESSAGE(ran.errors.ends_with(fmt::format("einc: cannot write standard output: {}\n", reason)), ran.errors);
  }
}

TEST_CASE("a training whose output nobody reads any more saves and ends") {
  const Place place;
  const std::string program = place.write("m.ein", kStreamsProgram), rows = place.write("rows.npy", npy_of_floats({1, 2, 3, 4}));
  const std::vector<std::string> command{
      "train", program, "--data", "x=" + rows, "--steps=1000000", "--log-every=1", "--checkpoint=" + place.at("c")};
  const Ran ran = run_einc(command, {.output = Stream::broken});
  CHECK(ran.status == 4);
  CHECK_MESSAGE(ran.errors.starts_with("einc: interrupted after step 1; "), ran.errors);
  CHECK(std::filesystem::exists(place.at("c/step-00000001/train.json")));
}

TEST_CASE("standard error that takes nothing changes no status") {
  const Place place;
  const std::string wrong = place.write("wrong.ein", "output y = q\n"), letter = place.write("letter.txt", "dear reader"),
                    right = place.write("m.ein", kStreamsProgram);
  const std::pair<std::vector<std::string>, int> commands[] = {
      {{wrong, "--report"}, 1},       {{wrong, "--diagnostics=json"}, 1},
      {{"--no-such-option"}, 2},      {{"run", right, "--input", "x=" + letter}, 3},
      {{place.at("missing.ein")}, 4}, {{"tokenize", letter, "-o", place.at("letter.bin")}, 0},
      {{right, "--time-passes"}, 0},
  };
  for (const Stream stream : {Stream::full, Stream::closed, Stream::broken})
    for (const auto& [command, status] : commands) {
      CAPTURE(command.front());
      const Ran ran = run_einc(command, {.errors = stream});
      CHECK(ran.signal == 0);
      CHECK(ran.status == status);
    }
}

TEST_CASE("what a closed stream would have taken lands in no file") {
  const Place place;
  const std::string program = place.write("m.ein", kStreamsProgram), x = place.write("x.npy", npy_of_floats({1, 2, 3, 4}));
  REQUIRE(run_einc({"run", program, "--input", "x=" + x, "--output", "y=" + place.at("kept.npy")}).status == 0);
  const Ran ran = run_einc({"run", program, "--input", "x=" + x, "--output", "y=" + place.at("y.npy")},
                           {.output = Stream::closed, .errors = Stream::closed});
  CHECK(ran.status == 4);  // the loss is printed
  CHECK(place.read("y.npy") == place.read("kept.npy"));
}

}  // namespace einc::test
