// SPDX-License-Identifier: Apache-2.0
// Meshes on the command line: --mesh and --shard, the report's section, --explain=sharding, and what launchers are told.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "compiler/symbolic/poly.h"
#include "tests/support/json_schema.h"
#include "tests/support/near_seconds.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

// Variables of a launcher, for as long as this lives.
class Launched {
 public:
  explicit Launched(std::vector<std::pair<const char*, const char*>> variables) : variables_(std::move(variables)) {
    for (const auto& [name, value] : variables_) ::setenv(name, value, 1);
  }
  ~Launched() {
    for (const auto& [name, value] : variables_) ::unsetenv(name);
  }
  Launched(const Launched&) = delete;
  Launched& operator=(const Launched&) = delete;

 private:
  std::vector<std::pair<const char*, const char*>> variables_;
};

const std::vector<std::string> kGpt{"examples/gpt2.ein",
                                    "-D",
                                    "vocab=50304",
                                    "--device=h100-sxm",
                                    "--mesh",
                                    "data=4,model=2",
                                    "--shard",
                                    "batch=data; heads,hidden,vocab=model; states=data"};

std::vector<std::string> with(std::vector<std::string> arguments, const std::string& last) {
  arguments.push_back(last);
  return arguments;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("meshes: the report says what each device sends") {
  const Ran ran = run_einc(with(kGpt, "--report=json"));
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const auto json = nlohmann::json::parse(ran.output);
  const auto schema = nlohmann::json::parse(std::ifstream("compiler/report/report.schema.json"));
  const std::vector<std::string> problems = SchemaCheck(schema)(json);
  CHECK(problems == std::vector<std::string>());
  CHECK(json["mesh"]["devices"] == 8);
  Bindings dims;
  for (const auto& [name, value] : json["dims"].items()) dims[Name(name)] = value.get<int64_t>();
  double sent = 0, seconds = 0;
  int64_t large = 0;  // sums of whole activations over the model
  for (const auto& row : json["communication"]) {
    // The formula, in base dims, is the number; derived names are in `dims` as well.
    CHECK(*parse_poly(row["symbolic"].get<std::string>())->evaluate(dims) == Rational(row["bytes"].get<int64_t>()));
    sent += row["bytes"].get<double>();
    seconds += row["time_s"].get<double>();
    CHECK(row["link"] == "NVLink");  // 8 devices
    const double each = row["bytes"].get<double>() / row["count"].get<double>();
    if (row["kind"] == "all_reduce" && row["axis"] == "model" && each == 2.0 * 1024 * 768 * 4) large += row["count"].get<int64_t>();
  }
  CHECK(large == 4 * 12 + 2);  // of two devices each sends a half twice
  CHECK(sent == json["per_device"]["communication"]["bytes"].get<double>());
  CHECK(std::abs(seconds - json["per_device"]["communication_s"].get<double>()) < 1e-9);
  const double parameters = json["memory"]["parameters"]["bytes"].get<double>();
  CHECK(json["per_device"]["parameters"]["bytes"].get<double>() < parameters * 0.55);
  CHECK(json["per_device"]["optimizer_state"]["bytes"].get<double>() < 2 * parameters * 0.15);
  CHECK(json["per_device"]["flops"]["count"].get<double>() < json["flops"]["step"].get<double>() * 0.14);

  const Ran text = run_einc(with(kGpt, "--report"));
  CHECK(says(text.output, "Communication a step, each device  mesh data 4 x model 2: 8 devices"));
  CHECK(says(text.output, "reduce_scatter  data"));
  const Ran md = run_einc(with(kGpt, "--report=md"));
  CHECK(says(md.output, "## Communication a step, each device"));
  const Ran html = run_einc(with(kGpt, "--report=html"));
  CHECK(says(html.output, "<h2>Communication a step, each device"));
}

TEST_CASE("meshes: what is exposed of communication lies between what no schedule hides and all of it") {
  for (const char* shard : {"batch=data; heads,hidden,vocab=model", "batch=data; heads,hidden,vocab=model; states=data",
                            "batch=data; heads,hidden,vocab=model; params=data"}) {
    CAPTURE(shard);
    std::vector<std::string> arguments = kGpt;
    arguments.back() = shard;
    const auto json = nlohmann::json::parse(run_einc(with(arguments, "--report=json")).output);
    double exposed = 0, saved = 0;
    for (const auto& row : json["communication"]) {
      exposed += row["exposed_s"].get<double>(), saved += row["saved_s"].get<double>();
      CHECK(row["exposed_s"].get<double>() >= 0);
      CHECK(row["saved_s"].get<double>() >= 0);
      CHECK(row["exposed_s"].get<double>() + row["saved_s"].get<double>() <= row["time_s"].get<double>() * (1 + 1e-9));
    }
    const auto& device = json["per_device"];
    CHECK(device["saved_s"].get<double>() == near_seconds(saved));
    CHECK((saved > 0) == (std::string_view(shard).find("s=data") != std::string_view::npos));  // gathers are joined
    const double all = device["communication_s"], compute = device["compute_s"], step = device["step_time_s"];
    CHECK(device["exposed_s"].get<double>() == near_seconds(exposed));
    CHECK(step == near_seconds(compute + exposed));
    CHECK(step >= std::max(compute, all));
    CHECK(exposed < all * 0.9);
    const Ran text = run_einc(with(arguments, "--report"));
    CHECK(says(text.output, "time    hidden  link"));
    CHECK(says(text.output, "of communication that is not hidden, MFU "));
  }
}

namespace {

// GPT-2 of 12 layers on stages, and beside them on two devices for each layer's heads where `model` is.
nlohmann::json stages_report(const std::string& mesh, const std::string& shard, const std::string& more = "",
                             const std::string& limit = "") {
  std::vector<std::string> arguments{"examples/gpt2.ein", "-D", "vocab=50304", "--device=h100-sxm", "--report=json", "--mesh", mesh,
                                     "--shard",           shard};
  for (const std::string& argument : {more, limit})
    if (!argument.empty()) arguments.push_back(argument);
  const Ran ran = run_einc(arguments);
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  return nlohmann::json::parse(ran.output);
}

}  // namespace

TEST_CASE("stages: the report adds up") {
  const auto schema = nlohmann::json::parse(std::ifstream("compiler/report/report.schema.json"));
  for (const std::string model : {"", ",model=2"}) {
    CAPTURE(model);
    const std::string heads = model.empty() ? "" : "; heads,hidden,vocab=model";
    const auto json = stages_report("stage=4" + model, "layers=stage(microbatches=8)" + heads);
    CHECK(SchemaCheck(schema)(json) == std::vector<std::string>());
    const auto& pipeline = json["mesh"]["pipeline"];
    CHECK(pipeline["microbatches"] == 8);
    const double devices = model.empty() ? 1 : 2;
    double flops = 0, parameters = 0, held = 4, most = 0;
    int64_t first = 0;
    const auto& device = json["per_device"];
    const double step = device["step_time_s"];
    for (const auto& stage : pipeline["stages"]) {
      CHECK(stage["first"] == first);
      CHECK(stage["iterations"] == 3);
      CHECK(stage["held"] == held--);
      first += 3;
      flops += stage["flops"].get<double>() * devices;
      parameters += stage["parameters"].get<double>();
      most = std::max(most, stage["flops"].get<double>());
      CHECK(stage["peak"] > stage["parameters"]);
      const double busy = 8 * (stage["forward_s"].get<double>() + stage["backward_s"].get<double>()) + stage["update_s"].get<double>();
      CHECK(busy + stage["idle_s"].get<double>() == near_seconds(step));
      CHECK(stage["idle_s"] > 0);
    }
    CHECK(most == device["flops"]["count"].get<double>());
    CHECK(flops == doctest::Approx(json["flops"]["step"].get<double>()).epsilon(1e-3));
    const double whole = json["memory"]["parameters"]["bytes"];
    if (model.empty()) CHECK(parameters == whole);
    CHECK(device["compute_s"].get<double>() + device["exposed_s"].get<double>() + device["idle_s"].get<double>() == near_seconds(step));
  }
}

// One stage of one microbatch is a device of a mesh without stages, but for its update, which is a program of its own: what that shares out
// goes on beside no backward, and gradients lie in memory until it begins.
TEST_CASE("stages: one of them is the whole") {
  const auto staged = stages_report("stage=1,data=2", "layers=stage(microbatches=1); batch=data; states=data");
  const auto whole = stages_report("data=2", "batch=data; states=data");
  const auto &of_stage = staged["per_device"]["planned"], &of_whole = whole["per_device"]["planned"];
  CHECK(of_stage["executed"].get<double>() == doctest::Approx(of_whole["executed"].get<double>()).epsilon(0.001));
  CHECK(of_stage["process"] == of_whole["process"]);
  CHECK(of_stage["peak"].get<double>() == doctest::Approx(of_whole["peak"].get<double>()).epsilon(0.05));
  for (const char* key : {"compute_s", "communication_s", "step_time_s", "mfu"}) {
    CAPTURE(key);
    CHECK(staged["per_device"][key].get<double>() == doctest::Approx(whole["per_device"][key].get<double>()).epsilon(0.02));
  }
  CHECK(staged["mesh"]["pipeline"]["stages"][0]["peak"] == of_stage["peak"]);
  for (const char* key : {"flops", "parameters", "gradients", "optimizer_state", "inputs", "communication"}) {
    CAPTURE(key);
    const auto amount = [&](const nlohmann::json& report) {
      return report["per_device"][key][std::string_view(key) == "flops" ? "count" : "bytes"].get<double>();
    };
    // A stage decays all of a param of which it updates a part.
    CHECK(amount(staged) == doctest::Approx(amount(whole)).epsilon(std::string_view(key) == "flops" ? 1e-4 : 1e-15));
  }
}

// A bubble of (p - 1)/m of the work, where stages are alike; more microbatches make it smaller, and hold no more memory.
TEST_CASE("stages: more microbatches") {
  double before = 1e9;
  for (const int microbatches : {1, 2, 4, 8}) {
    const auto json = stages_report("stage=4", "layers=stage(microbatches=" + std::to_string(microbatches) + ")", "-Dbatch=64");
    const double idle = json["mesh"]["pipeline"]["stages"][1]["idle_s"], step = json["per_device"]["step_time_s"];
    CHECK(idle / step < before);
    before = idle / step;
    CHECK(json["mesh"]["pipeline"]["stages"][0]["held"] == std::min(microbatches, 4));
  }
}

// Gradients that are not spread are added up over microbatches, whole, and shared out once.
TEST_CASE("stages: what a spread of gradients saves, and what it sends") {
  const auto report = [](const std::string& spread) {
    return stages_report("stage=4,data=2", "layers=stage(microbatches=8); batch=data; " + spread + "=data", "-Dbatch=16");
  };
  const auto sent = [](const nlohmann::json& json) {
    double bytes = 0;
    for (const auto& row : json["communication"])
      if (row["kind"] == "reduce_scatter") bytes += row["bytes"].get<double>();
    return bytes;
  };
  const auto states = report("states"), gradients = report("gradients");
  CHECK(sent(gradients) == 8 * sent(states));
  const auto& stage = states["mesh"]["pipeline"]["stages"][1];
  const double saved = stage["peak"].get<double>() - gradients["mesh"]["pipeline"]["stages"][1]["peak"].get<double>();
  // Sums of gradients are parts, but gradients of two of the stage's three layers are on their way while they are shared out.
  const double params = stage["parameters"].get<double>();
  CHECK(saved < params / 2);
  CHECK(saved > params / 2 - 0.9 * params);
}

// A limit is of each stage's device, with all that it holds: the first stage has the most microbatches, and makes values again.
TEST_CASE("stages: under a limit") {
  const auto free = stages_report("stage=4", "layers=stage(microbatches=8)", "-Dbatch=64");
  const auto peak = [](const nlohmann::json& json, size_t s) { return json["mesh"]["pipeline"]["stages"][s]["peak"].get<int64_t>(); };
  const int64_t limit = peak(free, 0) - 100'000'000;
  REQUIRE(peak(free, 1) < limit);
  const auto bound = stages_report("stage=4", "layers=stage(microbatches=8)", "-Dbatch=64", "--memory-limit=" + std::to_string(limit));
  CHECK(peak(bound, 0) <= limit);
  CHECK(peak(bound, 1) == peak(free, 1));
  const auto seconds = [](const nlohmann::json& json, size_t s) {
    return json["mesh"]["pipeline"]["stages"][s]["backward_s"].get<double>();
  };
  CHECK(seconds(bound, 0) > seconds(free, 0));
  CHECK(seconds(bound, 1) == seconds(free, 1));
}

TEST_CASE("stages: what is told of them, and refused") {
  const std::vector<std::string> program{"examples/gpt2.ein", "--mesh", "stage=4", "--shard", "layers=stage(microbatches=8)"};
  const Ran text = run_einc(with(program, "--report"));
  CHECK(says(text.output, "Stages of layers over stage  8 microbatches: one forward, one backward"));
  CHECK(says(text.output, "      0        0..2"));
  const Ran sharding = run_einc(with(program, "--explain=sharding"));
  CHECK(says(sharding.output, "stage 2 reads it"));
  const Ran many = run_einc({"examples/gpt2.ein", "--mesh", "stage=16", "--shard", "layers=stage(microbatches=8)"});
  CHECK(many.status == 1);
  CHECK(says(many.errors, "12 iterations do not make 16 stages"));
  const Ran odd = run_einc({"examples/gpt2.ein", "--mesh", "stage=4", "--shard", "layers=stage(microbatches=3)"});
  CHECK(odd.status == 1);
  CHECK(says(odd.errors, "batch = 8 is not divided by 3, its microbatches on all devices"));
  CHECK(says(odd.errors, "the next size that fits is batch = 9"));
}

// H100 SXM: eight devices by NVLink at 450 GB/s and 3.4 us a step, a network card of 50 GB/s and 9.6 us for each.
TEST_CASE("meshes: rings over several nodes use the cards of all devices that a node has of the axis") {
  struct Case {
    const char* mesh;
    const char* link;
    double bandwidth, steps_s;
  };
  const Case cases[] = {
      {"data=8", "NVLink", 450e9, 7 * 3.4e-6},
      {"data=64", "network", 8 * 50e9, 3 * 9.6e-6 + 7 * 3.4e-6},  // eight nodes by halves
      {"data=16,model=2", "network", 4 * 50e9, 2 * 9.6e-6 + 3 * 3.4e-6},
      {"data=4,model=8", "network", 50e9, 2 * 9.6e-6},
  };
  for (const Case& c : cases) {
    CAPTURE(c.mesh);
    const Ran ran = run_einc({"examples/gpt2.ein", "-D", "vocab=50304", "-D", "batch=64", "-D", "heads=16", "--device=h100-sxm", "--mesh",
                              c.mesh, "--shard", "batch=data", "--report=json"});
    REQUIRE_MESSAGE(ran.status == 0, ran.errors);
    int rows = 0;
    const auto json = nlohmann::json::parse(ran.output);
    for (const auto& row : json["communication"]) {
      if (row["axis"] != "data") continue;
      ++rows;
      CHECK(row["link"] == c.link);
      const double rounds = row["kind"] == "all_reduce" ? 2 : 1;
      const double seconds = row["bytes"].get<double>() / c.bandwidth + row["count"].get<double>() * rounds * c.steps_s;
      CHECK(row["time_s"].get<double>() == near_seconds(seconds, 1e-6));
    }
    CHECK(rows > 0);
  }
}

TEST_CASE("meshes: a device's step is its launches, as planned, and what it sends") {
  const auto json_of = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"examples/gpt2.ein", "-D", "vocab=50304", "--device=h100-sxm", "--precision=bf16", "--report=json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = run_einc(arguments);
    REQUIRE_MESSAGE(ran.status == 0, ran.errors);
    return nlohmann::json::parse(ran.output);
  };
  const auto mesh = json_of({"-D", "batch=16", "--mesh", "data=2", "--shard", "batch=data"}), one = json_of({"-D", "batch=8"});
  const auto& device = mesh["per_device"];
  const double compute = device["compute_s"], step = device["step_time_s"], alone = one["device"]["step_time_s"];
  CHECK(step == near_seconds(compute + device["exposed_s"].get<double>()));
  // Half of the batch on each: the same work, but that the gradients' sums stand between the backward and the updates.
  CHECK(compute > alone * 0.98);
  CHECK(compute < alone * 1.15);
  const double model = mesh["flops"]["forward"]["total"].get<double>() + mesh["flops"]["backward"]["total"].get<double>();
  CHECK(device["mfu"].get<double>() == doctest::Approx(model / (2 * mesh["device"]["peak_flops"].get<double>() * step)));
  const Ran text =
      run_einc({"examples/gpt2.ein", "-D", "batch=16", "--mesh", "data=2", "--shard", "batch=data", "--device=h100-sxm", "--report"});
  CHECK(says(text.output, " of work as planned, "));
}

TEST_CASE("meshes: every layout and collective is explained") {
  const Ran ran = run_einc(with(kGpt, "--explain=sharding"));
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  CHECK(says(ran.output, "f32[embed hidden/model]"));
  CHECK(says(ran.output, "i32[batch/data seq]"));
  CHECK(says(ran.output, "sum over what model splits, wanted whole"));
  CHECK(says(ran.output, "sum over what data splits, wanted in parts"));
  const Ran none = run_einc({"examples/gpt2.ein", "--explain=sharding"});
  CHECK(none.status == 2);
  CHECK(says(none.errors, "--mesh data=2"));
}

TEST_CASE("meshes: sizes that are left open, and sizes that do not fit") {
  const Ran open = run_einc({"examples/mlp.ein", "--mesh", "data", "--shard", "batch=data", "--report"});
  REQUIRE_MESSAGE(open.status == 0, open.errors);
  CHECK(says(open.output, "(data-1)/data*(8*"));
  const Ran odd = run_einc({"examples/mlp.ein", "--mesh", "data=3", "--shard", "batch=data"});
  CHECK(odd.status == 1);
  CHECK(says(odd.errors, "error[E1005]"));
  CHECK(says(odd.errors, "the next size that fits is batch = 129"));
}

TEST_CASE("meshes: run gives what the program gives without one; what cannot carry a mesh out says so") {
  const std::string file = EINC_SOURCE_DIR "/tests/golden/command_line/mesh_rows.ein";
  const auto lines_of = [&](std::vector<std::string> more) {
    std::vector<std::string> all{"run", file, "--seed=4"};
    all.insert(all.end(), more.begin(), more.end());
    return run_einc(all);
  };
  const Ran one = lines_of({"--mesh=data=1"}), four = lines_of({}), reference = lines_of({"--target=reference"});
  CHECK_MESSAGE(four.status == 0, four.errors);
  CHECK(says(four.output, "total: f32[] 3240"));
  CHECK(four.output == one.output);
  CHECK(four.output == reference.output);
  setenv("EINC_CUDA_PATH", EINC_EMULATED_GPU, 1);
  const Ran gpu = lines_of({"--target=cuda"});
  unsetenv("EINC_CUDA_PATH");
  CHECK_MESSAGE(gpu.status == 0, gpu.errors);
  CHECK(gpu.output == one.output);
  const Ran bench = run_einc({"bench", file});
  CHECK(bench.status == 4);
  CHECK(says(bench.errors, "bench measures one device"));
  const Ran object = run_einc({file, "--emit=obj", "-o", (std::filesystem::temp_directory_path() / "einc_mesh.o").string()});
  CHECK(object.status == 4);
  CHECK(says(object.errors, "--emit=obj is code for one device"));
}

TEST_CASE("meshes: a recurrence over rows that lie on several devices gives what it gives on one, by run and train") {
  const std::string file = EINC_SOURCE_DIR "/tests/golden/command_line/mesh_scan.ein";
  const Ran two = run_einc({"run", file}), one = run_einc({"run", file, "--mesh=data=1"});
  CHECK_MESSAGE(two.status == 0, two.errors);
  CHECK(two.output == one.output);
  CHECK(says(two.output, "h: f32[4] 3. 3. 3. 3."));
  const Ran trained = run_einc({"train", file, "--steps=1"});
  CHECK_MESSAGE(trained.status == 0, trained.errors);
}

TEST_CASE("meshes: several processes and no mesh") {
  const std::string file = "examples/two_layer.ein";
  const std::vector<std::pair<const char*, const char*>> launchers[] = {{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}},
                                                                        {{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}},
                                                                        {{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}},
                                                                        {{"WORLD_SIZE", "2"}, {"RANK", "0"}}};
  for (const auto& launcher : launchers) {
    const Launched launched(launcher);
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{file}, {"train", file, "--steps", "1"}, {"bench", file}}) {
      const Ran ran = run_einc(arguments);
      CAPTURE(ran.errors);
      CHECK(ran.status == 2);
      CHECK(ran.output.empty());
      CHECK(says(ran.errors, "started 2 processes"));
      CHECK(says(ran.errors, "\n  mesh data = 2\n  shard batch over data\n"));
    }
  }
  {
    const Launched second({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}});
    const Ran ran = run_einc({file});
    CHECK(ran.status == 2);
    CHECK(ran.errors.empty());  // the first one speaks
  }
  {
    const Launched alone({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}});
    CHECK(run_einc({file}).status == 0);
  }
  const Launched meshed({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}});
  const Ran ran = run_einc({file, "--mesh", "data=2", "--shard", "batch=data"});
  CHECK(ran.status == 4);
  CHECK(says(ran.errors, "only `einc train` shares a mesh out"));
}

TEST_CASE("meshes: a launcher that connects its processes to no MPI is told how to") {
  struct Row {
    std::vector<std::pair<const char*, const char*>> variables;
    const char* line;  // empty: the rank is not the first, which speaks
  };
  const Row rows[] = {{{{"WORLD_SIZE", "2"}, {"RANK", "0"}},
                       "torchrun started 2 processes that no MPI connects: start them by\n  mpirun -np 2 einc train "},
                      {{{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}, "by\n  srun --mpi=pmix -n 4 einc train "},
                      {{{"WORLD_SIZE", "2"}, {"RANK", "1"}}, ""}};
  for (const Row& row : rows) {
    const Launched launched(row.variables);
    const Ran ran = run_einc({"train", "examples/mlp.ein", "--mesh=data=4", "--shard=batch=data", "--steps=1"});
    CAPTURE(ran.errors);
    CHECK(ran.status == 2);
    CHECK(says(ran.errors, row.line));
    CHECK(ran.errors.empty() == (*row.line == '\0'));
  }
}

}  // namespace einc::test
