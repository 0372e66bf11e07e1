// SPDX-License-Identifier: Apache-2.0
// What the system refuses (threads, memory for their stacks, longer files) and numbers out of range: a message and a status, no signal,
// and nothing half-written.
#include "tests/golden/boundary/place.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLimitsProgram = R"(dim n = 2000
input x: f32[n]
param w: f32[n] ~ ones
output y = x * w
loss = mean((x * w)^2)
minimize loss using sgd(lr = 0.1)
)";

class Model : public Place {
 public:
  Model() : rows_(write("rows.npy", npy_of_floats(std::vector<float>(2000, 1), 2000))), program_(write("m.ein", kLimitsProgram)) {}
  std::vector<std::string> train(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", program_, "--data", "x=" + rows_, "--target=reference"});
    return more;
  }
  std::vector<std::string> run(std::vector<std::string> more) const {
    more.insert(more.begin(), {"run", program_, "--input", "x=" + rows_});
    return more;
  }

 private:
  std::string rows_, program_;
};

}  // namespace

TEST_CASE("threads above the limit, and threads that the system refuses") {
  const Model model;
  for (const char* threads : {"1025", "1000000", "2147483647"}) {
    const Ran ran = run_einc(model.run({"--threads", threads}));
    CHECK(ran.status == 4);
    CHECK(ran.errors == fmt::format("einc: {} threads: the limit is 1024\n", threads));
  }
  CHECK(run_einc(model.run({"--threads=0"})).status == 2);
  CHECK(run_einc(model.run({"--threads=99999999999999"})).status == 2);
  CHECK(run_einc(model.train({"--steps=1", "--threads=1000000"})).status == 4);
  if (kMemoryFactor > 1) return;  // a sanitizer reserves terabytes
  const Ran refused = run_einc(model.run({"--threads=500"}), {.address_bytes = uint64_t{1} << 30});
  CHECK(refused.status == 4);
  CHECK_MESSAGE(refused.errors.starts_with("einc: cannot start a thread: "), refused.errors);
}

TEST_CASE("a file that may not get longer: status 4, and what was begun is gone") {
  const Model model;
  const Surroundings short_files{.file_bytes = 4096};
  const std::pair<std::vector<std::string>, const char*> rows[] = {
      {model.train({"--steps=1", "--save=" + model.at("w.safetensors")}), "w.safetensors"},
      {model.train({"--steps=1", "--checkpoint=" + model.at("c")}), "c"},
      {model.run({"--output=y=" + model.at("y.npy")}), "y.npy"},
  };
  for (const auto& [command, name] : rows) {
    CAPTURE(name);
    const Ran ran = run_einc(command, short_files);
    CHECK(ran.signal == 0);
    CHECK(ran.status == 4);
    CHECK_MESSAGE(ran.errors.find("File too large") != std::string::npos, ran.errors);
  }
  CHECK(model.names() == std::vector<std::string>{"c", "m.ein", "rows.npy"});
  CHECK(model.names("c").empty());
  const Ran log = run_einc(model.train({"--steps=100", "--log-every=1", "--quiet", "--log=" + model.at("log")}), short_files);
  CHECK(log.signal == 0);
  CHECK(log.status == 4);
}

TEST_CASE("numbers out of range: a short message, and no word of the user's reaches the terminal raw") {
  const Model model;
  for (const char* steps : {"-1", "18446744073709551616", "1000000000001", "1.5", "nan", "\x1b[31m"}) {
    const Ran ran = run_einc(model.train({"--steps", steps}));
    CHECK(ran.status == 2);
    CHECK_MESSAGE(ran.errors.find("--steps takes a whole number from 0 to 1000000000000; found ") != std::string::npos, ran.errors);
    CHECK(ran.errors.size() < 200);
    CHECK(ran.errors.find('\x1b') == std::string::npos);
  }
  CHECK(run_einc({model.at("m.ein"), "--report", "--device=h100-sxm", "--tokens=1e9", "--devices=nan"}).status == 2);
  CHECK(run_einc({model.at("m.ein"), "--report", "--device=h100-sxm", "--tokens=inf"}).status == 2);
  CHECK(run_einc({"estimate", "--params=1e9", "--tokens=1e9", "--device=h100-sxm", "--devices=nan"}).status == 2);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{model.at("m.ein"), "--emit=\x1b[31m"},
                                             {model.at("m.ein"), "--\x1b[31m"},
                                             {model.at("m.ein"), "--fit=\x1b[31m", "--device=cpu"},
                                             {model.at("m.ein"), "--device=\x1b[31m", "--report"},
                                             {"run", model.at("m.ein"), "--input", "\x1b[31m=x"},
                                             {"train", "\x1b[31m"},
                                             {"--report", "\x1b[31m.ein"}}) {
    const Ran ran = run_einc(command);
    CHECK(ran.status != 0);
    CHECK_MESSAGE(ran.errors.find('\x1b') == std::string::npos, ran.errors);
  }
}

}  // namespace einc::test
