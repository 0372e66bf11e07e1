// SPDX-License-Identifier: Apache-2.0
// What the command line answers to wrong usage, and what it shows unasked, through the real binary.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>
#include <sstream>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("einc_command_line_{}", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, std::string_view text) const {
    std::ofstream(at(name), std::ios::binary) << text;
    return at(name);
  }

 private:
  fs::path path_;
};

// Status 2, nothing on standard output, and these words in a short message that says who speaks.
void check_usage(const std::vector<std::string>& arguments, const std::string& said) {
  const Ran ran = run_einc(arguments);
  CAPTURE(arguments);
  INFO(ran.errors);
  CHECK(ran.status == 2);
  CHECK(ran.output.empty());
  CHECK(ran.errors.starts_with("einc"));
  CHECK(ran.errors.find(said) != std::string::npos);
  CHECK(ran.errors.find('\x1b') == std::string::npos);
  CHECK(ran.errors.size() < 600);
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("near names of commands, options, values, devices and dims") {
  const std::string file = "examples/two_layer.ein";
  check_usage({"trian", file}, "no command `trian`, and no file of that name; did you mean `train`?");
  check_usage({"ESTIMATE"}, "did you mean `estimate`?");
  check_usage({file, "--raport"}, "einc: no option `--raport`; did you mean `--report`?");
  check_usage({file, "--Report"}, "did you mean `--report`?");
  check_usage({"train", file, "--step", "10"}, "einc: no option `--step`; did you mean `--steps`?");
  check_usage({"run", file, "--wieghts=w.npz"}, "no option `--wieghts`; did you mean `--weights`?");
  check_usage({"train", file}, "einc: --steps is required");
  check_usage({file, "--emit=grpah"}, "did you mean `graph`?");
  check_usage({file, "--report", "--memory-limit=40Gb"}, "--memory-limit takes a number of bytes such as 40GB (of 10^9), 512MiB or 40e9");
  check_usage({file, "--report", "--memory-limit=0"}, "--memory-limit takes a number of bytes");
  check_usage({file, "--disable=bind"}, "einc: the pass `bind` may not be left out");
  check_usage({file, "--emit=ptx", "--arch=sm_75"}, "--arch=sm_75 is not a GPU that einc makes code for; it knows sm_80, sm_86");
  check_usage({file, "--emit=\x1b[31m"}, "found `\\x1b[31m`");
  check_usage({file, "--fit=bath", "--device=h200"}, "did you mean `batch`?");
  check_usage({file, "--report", "--device=H200"}, "did you mean h200");
  check_usage({file, "other.ein"}, "einc: `other.ein` is one argument too many");
}

TEST_CASE("numbers out of range are told shortly") {
  const std::string file = "examples/two_layer.ein";
  check_usage({"train", file, "--steps", "-1"}, "--steps takes a whole number from 0 to 1000000000000; found `-1`");
  check_usage({"train", file, "--steps", "18446744073709551616"}, "--steps takes a whole number");
  check_usage({file, "--report", "--device=h200", "--tokens", "15X"}, "--tokens takes a positive number such as 15e12 or 15T; found `15X`");
  check_usage({file, "--report", "--device=h200", "--tokens=1e12", "--devices=nan"}, "--devices takes a whole number");
  check_usage({file, "--report", "--device=h200", "--tokens=1e12", "--mfu=1.5"}, "--mfu takes a number from");
  check_usage({"bench", file, "--steps", "0"}, "--steps takes a whole number from 1");
}

TEST_CASE("one answer a call") {
  const std::string file = "examples/two_layer.ein";
  check_usage({file, "--report", "--emit=graph"}, "--report and --emit=graph are two answers");
  check_usage({file, "--report", "-o", "out.html"}, "-o out.html names what --emit=obj, --emit=cubin or --report=html");
}

TEST_CASE("a page is written whole, and never over the program") {
  const Folder folder;
  const std::string program = folder.write("p.ein", "input x: f32[n=3]\noutput y = x * 2\n"), page = folder.at("p.html");
  const Ran ran = run_einc({program, "--report=html", "--device=h200", "-o", page});
  INFO(ran.errors);
  CHECK(ran.status == 0);
  CHECK(ran.output.empty());
  std::ifstream file(page, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK(text.starts_with("<!DOCTYPE html>"));
  CHECK(text.ends_with("</html>\n"));
  CHECK(run_einc({program, "--report=html", "--device=h200"}).output == text);
  check_usage({program, "--report=html", "-o", program}, "-o");
  CHECK(run_einc({program, "--report=html", "-o", folder.at("none/p.html")}).status == 4);
  for (const char* form : {"md", "csv"}) {
    const Ran other = run_einc({program, fmt::format("--report={}", form)});
    CHECK(other.status == 0);
    CHECK(holds(other.output, form == std::string("md") ? "## Parameters" : "flops.step,3"));
  }
}

TEST_CASE("two programs side by side") {
  const Folder folder;
  const std::string one = folder.write("one.ein", "dim n = 4\ninput x: f32[n d=3]\noutput y = x * 2\n"),
                    two = folder.write("two.ein", "dim n = 4\ninput x: f32[n d=3]\noutput y = x * 2 + 1\n"),
                    wrong = folder.write("wrong.ein", "output y = z\n");
  const Ran ran = run_einc({one, "--diff", two, "-D", "n=8"});
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(ran.output.starts_with("Difference  one.ein and two.ein\n"));
  std::string line = ran.output.substr(ran.output.find("  flops.step "));
  line.resize(line.find('\n'));
  CHECK(line.find(" 24 ") != std::string::npos);  // 8 * 3 products
  CHECK(line.find(" 48 ") != std::string::npos);  // and as many sums
  CHECK(line.ends_with("2.000"));
  CHECK(!holds(ran.output, "symbolic"));
  CHECK(!holds(ran.output, "dims.n"));
  CHECK(run_einc({one, "--diff", one}).output == "Difference  one.ein and one.ein\n  no number differs\n");
  CHECK(run_einc({one, "--diff", wrong}).status == 1);
  CHECK(run_einc({one, "--diff", folder.at("none.ein")}).status == 4);
  check_usage({one, "--diff", two, "--report"}, "--diff is an answer of its own");

  const Ran sizes = run_einc({one, "--diff", "-D", "n=8", "-D", "n=16"});
  INFO(sizes.output);
  CHECK(sizes.status == 0);
  CHECK(sizes.output.starts_with("Difference  one.ein and one.ein\n"));
  const auto row = [&](const Ran& shown, const std::string& name) {
    std::string text = shown.output.substr(std::min(shown.output.find("  " + name + " "), shown.output.size()));
    return text.substr(0, text.find('\n'));
  };
  CHECK(holds(row(sizes, "dims.n"), " 8 "));
  CHECK(holds(row(sizes, "dims.n"), " 16 "));
  CHECK(row(sizes, "flops.step").ends_with("2.000"));
  // Of another program the second value, too: (16 * 3 + 16 * 3) / (4 * 3).
  CHECK(row(run_einc({one, "--diff", two, "-D", "n=4", "-D", "n=16"}), "flops.step").ends_with("8.000"));
  check_usage({one, "--diff", "-D", "n=8"}, "--diff takes another program, or a dim that -D sets twice");
  check_usage({one, "--diff", "-D", "n=8", "-D", "n=9", "-D", "n=10"}, "-D sets n 3 times");
}

TEST_CASE("this machine as a device is measured three times, and the best is kept") {
  const Folder folder;
  const char* given = std::getenv("XDG_CACHE_HOME");
  const std::string before = given ? given : "";
  setenv("XDG_CACHE_HOME", folder.at("cache").c_str(), 1);
  const std::vector<std::string> command{"examples/two_layer.ein", "--device=here", "--report=csv"};
  const auto bandwidth = [&] {
    return nlohmann::json::parse(run_einc({"examples/two_layer.ein", "--device=here", "--report=json"}).output)["device"]["bandwidth"]
        .get<double>();
  };
  const Ran first = run_einc(command);
  const double second = bandwidth(), third = bandwidth(), fourth = bandwidth();
  const Ran fifth = run_einc(command), sixth = run_einc(command);
  given ? setenv("XDG_CACHE_HOME", before.c_str(), 1) : unsetenv("XDG_CACHE_HOME");
  INFO(first.errors);
  CHECK(first.status == 0);
  CHECK(holds(first.output, "device.name,here\n"));
  CHECK(holds(first.output, "\ndevice.step_time_s,"));
  CHECK(third >= second);
  CHECK(fourth == third);
  CHECK(fifth.output == sixth.output);
}

TEST_CASE("a report of several threads counts the scratch of each") {
  const auto report = [](const std::vector<std::string>& more) {
    std::vector<std::string> command{"examples/mlp.ein", "--report=json"};
    command.insert(command.end(), more.begin(), more.end());
    return nlohmann::json::parse(run_einc(command).output);
  };
  const nlohmann::json one = report({}), three = report({"--threads=3"});
  const auto bytes = [](const nlohmann::json& r, const char* row) { return r["memory"][row]["bytes"].get<int64_t>(); };
  CHECK(one["threads"] == 1);
  CHECK(three["threads"] == 3);
  REQUIRE(bytes(one, "workspace_per_thread") > 0);
  CHECK(bytes(three, "peak_training") - bytes(one, "peak_training") == 2 * bytes(one, "workspace_per_thread"));
  check_usage({"examples/mlp.ein", "--report", "--threads=2", "--device=h200"},
              "--threads is of this machine's processor: without --device, or with --device=here");
}

TEST_CASE("a file alone gives its summary in two lines") {
  const Ran ran = run_einc({"examples/two_layer.ein", "--device=h200"});
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(std::count(ran.output.begin(), ran.output.end(), '\n') == 2);
  CHECK(holds(ran.output, "81,920 parameters, "));
  CHECK(holds(ran.output, " FLOPs a step, "));
  CHECK(holds(ran.output, " at the peak\n"));
  CHECK(holds(ran.output, " predicted for a step on h200, "));
  CHECK(holds(ran.output, " of it bound by "));
  const Ran report = run_einc({"examples/two_layer.ein", "--device=h200", "--report"});
  CHECK(report.output.starts_with(ran.output));
  const Ran alone = run_einc({"examples/two_layer.ein"});
  CHECK(holds(alone.output, " on cpu, "));

  const Folder folder;
  const Ran free = run_einc({folder.write("free.ein", "dim n\ninput x: [n]\noutput y = x * x\n")});
  CHECK(free.status == 0);
  CHECK(holds(free.output, "give -D n=..."));
}

TEST_CASE("a schedule is that of the device named") {
  const Ran here = run_einc({"examples/two_layer.ein", "--emit=schedule"});
  CHECK(here.status == 0);
  CHECK(here.output.starts_with("schedule 1\n"));
  CHECK(holds(here.output, "parts for threads"));
  const std::pair<const char*, const char*> gpus[] = {{"h200", " on sm_90 with 132 processors\n"},
                                                      {"rtx4090", " on sm_89 with 128 processors\n"},
                                                      {"mi300x", " on sm_90 with 132 processors\n"}};  // no code: as its report
  for (const auto& [device, machine] : gpus) {
    const Ran there = run_einc({"examples/two_layer.ein", "--emit=schedule", std::string("--device=") + device});
    CHECK(there.status == 0);
    CHECK(there.output.starts_with("schedule 1\n"));
    CHECK(holds(there.output, " threads\n"));
    CHECK(there.output.ends_with(machine));
  }
}

TEST_CASE("kernels, and why they are what they are, are those of the device named") {
  const auto of = [](const char* asked, const char* device) {
    const Ran ran = run_einc({"examples/attention.ein", "--precision=bf16", asked, std::string("--device=") + device});
    CHECK(ran.status == 0);
    return ran.output;
  };
  const std::string here = of("--explain=fusion", "cpu"), there = of("--explain=fusion", "h200");
  CHECK(holds(here, "is attention: 128 rows by 128 keys in blocks of "));
  CHECK(!holds(here, "tensor cores"));
  CHECK(!holds(here, "library"));
  CHECK(holds(there, ", by a library: qkv\n"));
  CHECK(holds(there, "is attention: 128 rows by 128 keys on tensor cores in blocks of "));
  const std::string kernels = of("--emit=kernels", "h200");
  CHECK(holds(kernels, " = a library's: qkv\n"));
  CHECK(!holds(of("--emit=kernels", "cpu"), "library"));
}

TEST_CASE("what is made for a GPU is made for the one named, by its architecture or as the device") {
  const auto launches = [](const std::vector<std::string>& options) {
    std::vector<std::string> all{"examples/attention.ein", "--emit=launches"};
    all.insert(all.end(), options.begin(), options.end());
    const Ran ran = run_einc(all);
    CHECK(ran.status == 0);
    return ran.output;
  };
  const std::string ampere = launches({"--arch=sm_80"}), hopper = launches({});
  CHECK(launches({"--device=h200"}) == hopper);
  CHECK(launches({"--device=a100-80gb"}) == ampere);
  CHECK(launches({"--device=h200", "--arch=sm_80"}) == ampere);
  CHECK(launches({"--device=cpu"}) == hopper);
  CHECK(ampere != hopper);
}

TEST_CASE("estimates that cannot be") {
  const std::vector<std::string> run{"estimate", "--params", "7B", "--tokens", "2T", "--device=h100-sxm"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = run;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Ran suffixed = run_einc(run), plain = run_einc({"estimate", "--params", "7e9", "--tokens", "2e12", "--device=h100-sxm"});
  CHECK(suffixed.status == 0);
  CHECK(suffixed.output == plain.output);
  check_usage(with({"--devices", "2.5"}), "--devices takes a whole number");
  check_usage(with({"--mfu", "nan"}), "--mfu takes a positive number");
  check_usage(with({"--mfu", "1.5"}), "--mfu is a fraction of the device's peak");
  check_usage({"estimate", "--params", "inf"}, "--params takes a positive number");
  check_usage({"estimate", "--params", "7B", "--tokens", "2T", "--device=a100-80gb", "--precision=fp8"}, "a100-80gb has no fp8");
  check_usage({"estimate", "--layers=2", "--embed=64", "--heads=4", "--kv-heads=8"}, "--kv-heads 8 do not divide --heads 4");
  check_usage({"estimate", "--layers=2", "--embed=64", "--experts=4", "--used-experts=8"}, "--used-experts 8 are more than --experts 4");
  const Ran fast = run_einc({"estimate", "--params=7B", "--tokens=2T", "--device=h100-sxm", "--flops=1e18", "--seconds=1"});
  CHECK(fast.status == 0);
  CHECK(holds(fast.output, "warning: a utilisation above 1"));
  const Ran grouped = run_einc({"estimate", "--layers=2", "--embed=64", "--heads=4", "--kv-heads=2", "--seq=8", "--vocab=10"});
  CHECK(grouped.status == 0);
  CHECK(holds(grouped.output, "warning: the rules are those of multi-head attention"));
}

TEST_CASE("gradcheck samples a large model and says so") {
  const Ran ran = run_einc({"gradcheck", "examples/mlp.ein", "-D", "batch=8", "-D", "hidden=16", "--max-elements", "6"});
  INFO(ran.output);
  CHECK(ran.status == 0);
  CHECK(holds(ran.output, "6 of 12730 elements, drawn with --seed 0"));
  CHECK(ran.errors.empty());
  const Ran again = run_einc({"gradcheck", "examples/mlp.ein", "-D", "batch=8", "-D", "hidden=16", "--max-elements", "6"});
  CHECK(again.output == ran.output);
}

TEST_CASE("integers that bench makes up lie within all that they index") {
  const Folder folder;
  const std::string head = "dim n = 64\n";
  for (const std::string body : {
           // Segments of two kinds beside tokens of many, as in BERT.
           "input t: i32[n]\ninput s: i32[n]\nparam a: [v=1000 d=8] ~ normal(std=1)\nparam b: [k=2 d=8] ~ normal(std=1)\n"
           "loss = mean((a[v=t] + b[k=s])^2)\n",
           // One input that indexes two tables, behind a view and arithmetic.
           "input t: i32[n]\nparam a: [v=50 d=8] ~ normal(std=1)\nparam b: [k=7 d=8] ~ normal(std=1)\n"
           "loss = mean((a[v=t * 2 + 3] + b[k=t - 1])^2)\n",
       }) {
    CAPTURE(body);
    const std::string file = folder.write("index.ein", head + body + "minimize loss using sgd(lr = 0.1)\n");
    const Ran ran = run_einc({"bench", file, "--steps=1", "--json"});
    INFO(ran.errors);
    CHECK(ran.status == 0);
  }
}

namespace {

// An .npy file of f32 rows.
std::string float_rows(int rows, int columns) {
  std::string file = "\x93NUMPY" + std::string("\x01\x00", 2);
  std::string header =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  header.resize(117, ' ');
  header += '\n';
  file += static_cast<char>(header.size());
  file += '\0';
  file += header;
  for (int i = 0; i < rows * columns; ++i) {
    const float value = static_cast<float>(i % 5) - 1.5F;
    file.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return file;
}

}  // namespace

TEST_CASE("training is true in steps alone: statistics are learned there, saved, and read everywhere else") {
  const Folder folder;
  const std::string file = folder.write("norm.ein",
                                        "import nn\ndim batch = 4, features = 3\ninput x: f32[batch features]\n"
                                        "param w: [features] ~ ones\nh = batch_norm(3 * x + 1) as norm\noutput m = mean(h)\n"
                                        "output mode = where(training, 1, 0)\nminimize mean((h * w)^2) using sgd(lr = 0.1)\n");
  const std::string data = folder.write("x.npy", float_rows(8, 3)), batch = folder.write("b.npy", float_rows(4, 3)),
                    weights = folder.at("w.safetensors");
  const Ran trained = run_einc({"train", file, "--data", "x=" + data, "--val", "x=" + data, "--steps=40", "--save", weights, "--quiet"});
  INFO(trained.errors);
  REQUIRE(trained.status == 0);
  std::ifstream in(weights, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK(holds(text, "\"norm.running_mean\""));
  CHECK(holds(text, "\"norm.running_var\""));
  for (const char* target : {"cpu", "reference"}) {
    CAPTURE(target);
    const std::string on = std::string("--target=") + target;
    const Ran run = run_einc({"run", file, "--input", "x=" + batch, "--weights", weights, on}),
              step = run_einc({"run", file, "--input", "x=" + batch, "--weights", weights, on, "--mode=training"}),
              fresh = run_einc({"run", file, "--input", "x=" + batch, on});
    INFO((run.errors + step.errors + fresh.errors));
    CHECK(run.status == 0);
    CHECK(step.status == 0);
    CHECK(run.output != fresh.output);  // the statistics that were learned
    CHECK(step.output != run.output);   // those of the batch
    CHECK(run.errors.find("keep their initial values") == std::string::npos);
  }
  const Ran check = run_einc({"gradcheck", file});
  INFO(check.output);
  CHECK(check.status == 0);
}

TEST_CASE("running statistics are saved with the weights, caches are not") {
  const Folder folder;
  const std::string file = folder.write("statistics.ein",
                                        "dim batch = 4, features = 3, width = 5\n"
                                        "input x: f32[batch features]\n"
                                        "param w: [features width] ~ normal(std = 1)\n"
                                        "state average: [width] ~ zeros\n"
                                        "state cache: [batch width] ~ zeros\n"
                                        "h = einsum(x, w, \"batch features, features width -> batch width\")\n"
                                        "average <- 0.5 * average + 0.5 * mean(h, batch)\n"
                                        "cache <- h\n"
                                        "output y = h - average + cache\n"
                                        "loss = mean(h^2)\n"
                                        "minimize loss using sgd(lr = 0.1)\n");
  const std::string data = folder.write("x.npy", float_rows(8, 3)), weights = folder.at("w.safetensors");
  const Ran trained = run_einc({"train", file, "--data", "x=" + data, "--steps=3", "--save", weights, "--quiet"});
  INFO(trained.errors);
  REQUIRE(trained.status == 0);
  std::ifstream in(weights, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  CHECK(holds(text, "\"average\""));
  CHECK(holds(text, "\"w\""));
  CHECK(!holds(text, "\"cache\""));
  const Ran more = run_einc(
      {"train", file, "--data", "x=" + data, "--steps=0", "--weights", weights, "--save", folder.at("same.safetensors"), "--quiet"});
  CHECK(more.status == 0);
  CHECK(more.errors.empty());
  std::ifstream same_in(folder.at("same.safetensors"), std::ios::binary);
  CHECK(std::string((std::istreambuf_iterator<char>(same_in)), {}) == text);
}

TEST_CASE("a memory limit: what it takes, and what is too little") {
  const std::vector<std::string> step{"examples/mlp.ein", "--discard-outputs", "--report=json"};
  const auto with = [&](const std::string& limit) {
    std::vector<std::string> arguments = step;
    arguments.push_back("--memory-limit=" + limit);
    return run_einc(arguments);
  };
  const Ran enough = with("1GiB"), little = with("1MB");
  CHECK(enough.status == 0);
  CHECK(holds(enough.output, "\"recomputed\": []"));
  CHECK(little.status == 4);
  CHECK(little.output.empty());
  CHECK(holds(little.errors, "if the backward recomputes all that it can: more than the limit of 1000000 bytes"));
}

TEST_CASE("a memory limit lets a larger batch fit, and never one that it refuses") {
  // Small: run_einc ends what takes 10 CPU seconds, and a search over a batch's sizes plans some hundred steps.
  const std::string half_model = "-D seq=64 -D vocab=256 -D layers=1 -D heads=2 -D head=32";
  const auto batch_within = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"examples/gpt2.ein", "--fit=batch", "--report=json", "--device=cpu"};
    std::istringstream dims(half_model);
    for (std::string word; dims >> word;) arguments.push_back(word);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_einc(arguments);
    REQUIRE_MESSAGE(ran.status == 0, ran.errors);
    return nlohmann::json::parse(ran.output).at("fit").at("value").get<int64_t>();
  };
  const int64_t limited = batch_within({"--memory-limit=4MB"});
  CHECK(limited > 1);
  const auto peak = [&](int64_t batch, const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"examples/gpt2.ein", "--report=json", fmt::format("-Dbatch={}", batch)};
    std::istringstream dims(half_model);
    for (std::string word; dims >> word;) arguments.push_back(word);
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_einc(arguments);
    return ran.status == 0 ? nlohmann::json::parse(ran.output).at("memory").at("peak_training").at("bytes").get<int64_t>() : -ran.status;
  };
  CHECK(peak(limited, {}) > 4'000'000);  // more than would fit as it is
  CHECK(peak(limited, {"--memory-limit=4MB"}) <= 4'000'000);
  CHECK(peak(limited + 1, {"--memory-limit=4MB"}) == -4);
}

}  // namespace einc::test
