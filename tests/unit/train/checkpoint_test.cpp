// SPDX-License-Identifier: Apache-2.0
// Checkpoints as they should be, of another program, and damaged ones.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "runtime/base/xxh64.h"
#include "tests/unit/train/saved_session.h"

using namespace einc;
using namespace einc::test;

namespace {

namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void overwrite(const std::string& path, const std::string& content) { std::ofstream(path, std::ios::binary) << content; }

template <class F>
std::string failure_of(F call, FailureKind kind) {
  try {
    call();
  } catch (const RuntimeFailure& failure) {
    CHECK(failure.kind() == kind);
    return failure.what();
  }
  return "nothing was thrown";
}

bool says(const std::string& text, const std::string& part) {
  const bool found = text.find(part) != std::string::npos;
  CHECK_MESSAGE(found, "no '", part, "' in: ", text);
  return found;
}

void save(CheckpointFolder& folder, const TestSession& session, uint64_t step, uint64_t keep = 10, TrainingPosition position = {}) {
  position.step = step;
  folder.save(session.session, position, run_settings(), keep);
}

std::vector<std::string> names(const std::string& folder) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(folder)) result.push_back(entry.path().filename().string());
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

TEST_CASE("a checkpoint gives back every bit, and where the run stood") {
  const TestFolder place;
  CheckpointFolder folder(place.path());
  const TestSession saved;
  const TrainingPosition position{1000, 0.1 + 0.2, 500};
  folder.save(saved.session, position, run_settings(), 1);
  CHECK(names(place.path()) == std::vector<std::string>{"step-00001000"});
  CHECK(names(place / "step-00001000") == std::vector<std::string>{"state.safetensors", "train.json", "weights.safetensors"});

  const auto found = folder.newest();
  REQUIRE(found);
  CHECK(found->passed_over.empty());
  CHECK(found->checkpoint.record().position == position);
  CHECK(found->checkpoint.record().run == run_settings());
  TestSession other(small_program(), 2);
  CHECK(other.bytes() != saved.bytes());
  CHECK(restore(found->checkpoint, other.session, run_settings(), Fit::exact).empty());
  CHECK(other.bytes() == saved.bytes());
}

TEST_CASE("what a run is needs no checkpoint of another") {
  const TestFolder place;
  CheckpointFolder folder(place.path());
  CHECK_FALSE(folder.newest());
  const TestSession saved;
  save(folder, saved, 10);
  const Checkpoint checkpoint(folder.folder_of(10));

  ProgramInfo changed = small_program();
  changed.dims[0].second = 8;
  changed.dims.emplace_back("heads", 2);
  changed.params[0].shape = {3, 6};
  changed.params[1].dtype = DType::f32;
  changed.params.push_back({"h.1.w", DType::f32, {"width"}, {3}});
  changed.states.erase(changed.states.begin());
  changed = with_initializers(changed);
  RunSettings now = run_settings();
  now.required["precision"] = "bf16";
  now.seeds.data = 7;
  now.noted["processor"] = "avx512";
  TestSession session(changed, 2);
  const std::string before = session.bytes();
  const std::string message = failure_of([&] { restore(checkpoint, session.session, now, Fit::exact); }, FailureKind::data);
  CHECK(message == folder.folder_of(10) +
                       ": not a checkpoint of what is to be trained:\n"
                       "  dim batch was 4, is 8 now\n"
                       "  dim heads is 2; the checkpoint does not say it\n"
                       "  seed of the data was 2, is 7 now\n"
                       "  precision was f32, is bf16 now\n"
                       "  param 'h.0.w' is f32[3 5] in the checkpoint, f32[3 6] in the program\n"
                       "  param 'h.0.b' is bf16[5] in the checkpoint, f32[5] in the program\n"
                       "  param 'h.1.w' is not in the checkpoint\n"
                       "  state 'h.0.w.m' of the checkpoint is not in the program");
  CHECK(session.bytes() == before);
  CHECK(noted_differences(checkpoint, now) == std::vector<std::string>{"processor was avx2, is avx512 now"});

  const auto left = restore(checkpoint, session.session, now, Fit::partial);
  CHECK(left.size() == 8);
  const auto* seen = static_cast<const std::byte*>(session.session.memory({SourceKind::state, 1}));
  CHECK(std::memcmp(seen, saved.session.memory({SourceKind::state, 2}), 32) == 0);
  const TestSession fresh(changed, 2);
  CHECK(std::memcmp(session.session.memory({SourceKind::param, 0}), fresh.session.memory({SourceKind::param, 0}), 72) == 0);

  ProgramInfo alien;
  alien.params = {{"else", DType::f32, {"n"}, {3}}};
  TestSession stranger(with_initializers(alien));
  says(failure_of([&] { restore(checkpoint, stranger.session, now, Fit::partial); }, FailureKind::data),
       "no tensor of the program is in it");
}

TEST_CASE("as many stay as asked, and the best one") {
  const TestFolder place;
  CheckpointFolder folder(place.path());
  const TestSession session;
  for (const uint64_t step : {10, 20, 30, 40}) save(folder, session, step, 2, {0, 1.5, std::min<uint64_t>(step, 20)});
  CHECK(folder.steps() == std::vector<uint64_t>{20, 30, 40});
  CHECK(fs::read_symlink(place / "best") == "step-00000020");
  save(folder, session, 50, 1, {0, 1.0, 50});
  CHECK(folder.steps() == std::vector<uint64_t>{50});
  CHECK(fs::read_symlink(place / "best") == "step-00000050");
  CHECK(names(place.path()) == std::vector<std::string>{"best", "step-00000050"});
}

TEST_CASE("a save of a step that is there replaces it, and one before damaged ones removes only older ones") {
  const TestFolder place;
  CheckpointFolder folder(place.path());
  const TestSession first, second(small_program(), 2);
  save(folder, first, 10);
  save(folder, second, 10);
  TestSession read(small_program(), 3);
  restore(folder.newest()->checkpoint, read.session, run_settings(), Fit::exact);
  CHECK(read.bytes() == second.bytes());
  save(folder, first, 20);
  overwrite(place / "step-00000020/weights.safetensors", "");
  save(folder, first, 15, 1);
  CHECK(folder.steps() == std::vector<uint64_t>{15, 20});
  CHECK(folder.newest()->checkpoint.record().position.step == 15);
  save(folder, first, 20, 1);
  CHECK(folder.newest()->passed_over.empty());
  CHECK(names(place.path()) == std::vector<std::string>{"step-00000020"});
}

TEST_CASE("one process keeps its checkpoints in a folder") {
  const TestFolder place;
  const CheckpointFolder folder(place.path());
  CHECK(failure_of([&] { CheckpointFolder again(place.path()); }, FailureKind::resource) ==
        place.path() + ": another process keeps its checkpoints there");
  says(failure_of([&] { CheckpointFolder none(place / "a/b"); }, FailureKind::resource),
       "a/b: cannot make this folder: No such file or directory");
}

TEST_CASE("every flipped bit and every cut of a checkpoint is found, and the one before is taken") {
  const TestFolder place;
  CheckpointFolder folder(place.path());
  const TestSession session;
  save(folder, session, 10);
  save(folder, session, 20);
  for (const char* name : kCheckpointFiles) {
    CAPTURE(name);
    const std::string path = place / "step-00000020/" + name, whole = content_of(path);
    const auto check = [&] {
      const auto found = folder.newest();
      REQUIRE(found);
      CHECK(found->checkpoint.record().position.step == 10);
      REQUIRE(found->passed_over.size() == 1);
      CHECK(found->passed_over.front().starts_with(path + ": "));
    };
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
      overwrite(path, damaged);
      check();
    }
    for (size_t length = 0; length < whole.size(); length += 7) {
      overwrite(path, whole.substr(0, length));
      check();
    }
    overwrite(path, whole + "\n");
    check();
    fs::remove(path);
    check();
    overwrite(path, whole);
    CHECK(folder.newest()->checkpoint.record().position.step == 20);
  }
  fs::remove(place / "step-00000010/train.json");
  overwrite(place / "step-00000020/train.json", "{}");
  const std::string message = failure_of([&] { folder.newest(); }, FailureKind::data);
  says(message, place.path() + ": none of its checkpoints is whole:\n  ");
  says(message, "step-00000020/train.json: its checksum is not that of its text");
  says(message, "step-00000010/train.json: cannot read: No such file or directory");
}

TEST_CASE("a record that somebody else made is read as what it is") {
  const auto read = [](const std::string& text) {
    return failure_of([&] { parse_checkpoint_record(text, "train.json"); }, FailureKind::data);
  };
  CheckpointRecord record;
  record.position.step = 3;
  record.run = run_settings();
  record.program = "a \"model\"\n.ein";
  record.dims = {{"batch", INT64_MAX}};
  const std::string text = to_json(record);
  CHECK(parse_checkpoint_record(text, "train.json").position == record.position);
  CHECK(parse_checkpoint_record(text, "train.json").run == record.run);
  CHECK(parse_checkpoint_record(text, "train.json").program == record.program);
  CHECK(parse_checkpoint_record(text, "train.json").dims == record.dims);

  const auto sealed = [](const std::string& body) {
    std::string hash = fmt::format("{:016x}", xxh64(std::as_bytes(std::span(body))));
    return body + ",\n  \"checksum\": \"" + hash + "\"\n}\n";
  };
  const std::string body = text.substr(0, text.find(",\n  \"checksum\""));
  CHECK(sealed(body) == text);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = body;
    REQUIRE(changed.find(from) != std::string::npos);
    return read(sealed(changed.replace(changed.find(from), from.size(), to)));
  };
  CHECK(with("\"version\": 1", "\"version\": 2") == "train.json: a checkpoint of version 2; this einc reads version 1");
  CHECK(with("einc checkpoint", "other") == "train.json: not the record of a checkpoint");
  CHECK(with("\"step\": 3", "\"step\": -3") == "train.json: 'step' is not a whole number");
  CHECK(with("\"step\": 3", "\"step\": 1e400") == "train.json: a number is beyond all formats");
  CHECK(with("\"step\": 3", "\"step\": 18446744073709551616") == "train.json: 'step' is not a whole number");
  CHECK(with("\"step\": 3", "\"stop\": 3") == "train.json: 'step' is missing");
  CHECK(with("\"step\": 3", "\"step\": 3, \"step\": 4") == "train.json: the key 'step' is there twice");
  CHECK(with("\"best\": null", "\"best\": 3") == "train.json: no object around 'step'");
  CHECK(with("\"seeds\": {", "\"seeds\": [[") == fmt::format("train.json: byte {}: not JSON", body.find("\"init\"") + 7));
  CHECK(with("\"avx2\"", std::string(20, '[') + std::string(20, ']')) == "train.json: JSON nests deeper than 16");
  CHECK(with("\"xxh64\": \"0", "\"xxh64\": \"g") == "train.json: 'xxh64' is not 16 hex digits");
  CHECK(read(std::string((16 << 20) + 1, ' ')) == "train.json: 16777217 bytes of JSON are above the limit of 16777216");
  CHECK(read(std::string(1 << 20, '[')) == "train.json: JSON nests deeper than 16");
  CHECK(read("null") == "train.json: its checksum is not that of its text: the file was changed or damaged");
  CHECK(read("") == "train.json: byte 0: not JSON");
}
