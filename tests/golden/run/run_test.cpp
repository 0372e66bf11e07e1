// SPDX-License-Identifier: Apache-2.0
// `einc run` on files, through the binary: every format in and out, what is wrong with data and what is said of it.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/base/float_format.h"
#include "runtime/data/array_file.h"
#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / fmt::format("einc_run_{}", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string at(const std::string& name) const { return (path_ / name).string(); }
  std::string text(const std::string& name, std::string_view content) const {
    std::ofstream(at(name), std::ios::binary) << content;
    return at(name);
  }
  std::string arrays(const std::string& name, const NamedArrays& values) const {
    write_arrays(at(name), *array_format(name), values);
    return at(name);
  }

 private:
  fs::path path_;
};

HostArray array(DType dtype, std::vector<int64_t> shape, const std::vector<double>& values) {
  HostArray a{dtype, std::move(shape), std::vector<std::byte>(values.size() * static_cast<size_t>(bytes_of(dtype)))};
  for (size_t i = 0; i < values.size(); ++i) store_number(dtype, values[i], a.bytes.data() + i * static_cast<size_t>(bytes_of(dtype)));
  return a;
}

std::vector<float> floats(const HostArray& a) {
  REQUIRE(a.dtype == DType::f32);
  std::vector<float> values(a.bytes.size() / sizeof(float));
  std::memcpy(values.data(), a.bytes.data(), a.bytes.size());
  return values;
}

bool says(const Ran& ran, const std::string& what) { return ran.errors.find(what) != std::string::npos; }

void check_fails(const Ran& ran, int status, const std::string& message) {
  INFO(ran.errors);
  CHECK(ran.status == status);
  CHECK(ran.output.empty());
  CHECK(ran.errors == "einc: " + message + "\n");
}

constexpr const char* kTargets[] = {"--target=cpu", "--target=cuda", "--target=reference"};

// y = x * w + b, and a sum of it.
constexpr std::string_view kProgram = R"(dim n
dim k = 2
input x: f32[n k]
param w: [k] ~ ones
param b: [k] ~ zeros
output y = x * w + b
output total = sum(x * w + b)
)";

constexpr std::string_view kGather = R"(dim vocab = 10, width = 2, n = 3
input ids: i32[n]
param table: [vocab width] ~ ones
output y = sum(table[vocab = ids], n)
)";

constexpr std::string_view kPlace = R"(dim slots = 4, width = 2
input pos: i32[]
input x: f32[width]
state cache: f32[slots width] ~ zeros
cache[slots = pos] <- x
output y = sum(cache, slots)
)";

}  // namespace

TEST_CASE("arrays come from and go to each format, on each target; a free dim takes an input's size") {
  const Folder folder;
  const std::string program = folder.text("p.ein", kProgram);
  const NamedArrays x{{"x", array(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6})}};
  const NamedArrays weights{{"w", array(DType::f32, {2}, {10, 100})}, {"b", array(DType::f16, {2}, {0.5, 0.25})}};
  for (const char* target : kTargets)
    for (const char* in : {"in.npy", "in.npz", "in.safetensors"})
      for (const char* out : {"out.npz", "out.safetensors"})
        for (const char* kept : {"w.npz", "w.safetensors"}) {
          CAPTURE(target);
          CAPTURE(in);
          CAPTURE(out);
          const Ran ran =
              run_einc({"run", program, target, "--input", "x=" + folder.arrays(in, x), "--weights", folder.arrays(kept, weights),
                        "--output", "y=" + folder.at(out), "--output", "total=" + folder.at(out)});
          INFO(ran.errors);
          REQUIRE(ran.status == 0);
          CHECK(ran.output.empty());
          CHECK(ran.errors.empty());
          const ArrayFile file(folder.at(out));
          CHECK(floats(file.read("y")) == std::vector<float>{10.5, 200.25, 30.5, 400.25, 50.5, 600.25});
          CHECK(file.read("y").shape == std::vector<int64_t>{3, 2});
          CHECK(floats(file.read("total")) == std::vector<float>{1292.25});
        }
  const Ran npy = run_einc({"run", program, "--input", "x=" + folder.arrays("x.npy", x), "--output", "y=" + folder.at("y.npy")});
  CHECK(npy.status == 0);
  CHECK(npy.output == "total: f32[] 21\n");
  CHECK(floats(ArrayFile(folder.at("y.npy")).read("")) == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("weights: left over, missing, not finite, or none of the program's") {
  const Folder folder;
  const std::string program = folder.text("p.ein", kProgram);
  const std::string x = "x=" + folder.arrays("x.npy", {{"x", array(DType::f32, {1, 2}, {1, 2})}});
  const auto run = [&](const NamedArrays& weights) {
    return run_einc({"run", program, "--input", x, "--weights", folder.arrays("w.safetensors", weights)});
  };
  const Ran some = run({{"w", array(DType::f32, {2}, {2, 3})}, {"other", array(DType::f32, {}, {1})}});
  CHECK(some.status == 0);
  CHECK(some.output == "y: f32[1 2]\n[[2. 6.]]\ntotal: f32[] 8\n");
  CHECK(says(some, "warning: 1 of the weights' arrays belong to no param: other\n"));
  CHECK(says(some, "warning: 1 param is not among the weights and starts from its initialiser: b\n"));
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const Ran odd = run({{"w", array(DType::f32, {2}, {inf, nan})}, {"b", array(DType::bf16, {2}, {-inf, 0})}});
  CHECK(odd.status == 0);
  CHECK(says(odd, "w.safetensors: 'w' has 2 values that are NaN or infinite\n"));
  CHECK(says(odd, "w.safetensors: 'b' has 1 values that are NaN or infinite\n"));
  check_fails(run({{"other", array(DType::f32, {}, {1})}}), 3,
              folder.at("w.safetensors") +
                  ": none of its arrays (other) is a param of the program, which has w, b; --rename FILE says which is which");
  check_fails(run({{"w", array(DType::f32, {3}, {1, 2, 3})}, {"b", array(DType::f32, {2}, {1, 2})}}), 3,
              "param 'w' has shape [3], but f32[k] is [2]");
}

TEST_CASE("weights of other names and axes by a file of renamings") {
  const Folder folder;
  const std::string program = folder.text("p.ein",
                                          "dim n, k = 2\ninput x: f32[n k]\nparam w: [k out=3] ~ ones\n"
                                          "output y = einsum(x, w, \"n k, k out -> n out\")\n");
  const std::string x = "x=" + folder.arrays("x.npy", {{"x", array(DType::f32, {1, 2}, {1, 10})}});
  const std::string weights = folder.arrays("w.npz", {{"linear.weight", array(DType::f32, {3, 2}, {1, 2, 3, 4, 5, 6})}});
  for (const char* target : kTargets) {
    const Ran ran = run_einc({"run", program, target, "--input", x, "--weights", weights, "--rename",
                              folder.text("map.txt", "linear.* -> h.*eight : out in -> in out\nlinear.weight -> w : out in -> in out\n")});
    check_fails(ran, 3, folder.at("map.txt") + ": line 1: `linear.* -> h.*eight` fits nothing: the program has no tensor `h.*eight`");
    const Ran right = run_einc({"run", program, target, "--input", x, "--weights", weights, "--rename",
                                folder.text("map.txt", "linear.weight -> w : out in -> in out\n")});
    CHECK(right.errors.empty());
    CHECK(right.output == "y: f32[1 3]\n[[21. 43. 65.]]\n");
  }
  CHECK(run_einc({"run", program, "--input", x, "--rename", folder.at("map.txt")}).status == 2);
}

TEST_CASE("positions out of range are told with input, place, value, axis and size") {
  const Folder folder;
  const std::string gather = folder.text("gather.ein", kGather), place = folder.text("place.ein", kPlace);
  for (const char* target : kTargets) {
    CAPTURE(target);
    for (const auto& [values, at, value] : {std::tuple(std::vector<double>{1, 12, -3}, 1, 12), {{9, 0, -1}, 2, -1}, {{10, 0, 1}, 0, 10}}) {
      const Ran ran =
          run_einc({"run", gather, target, "--input", "ids=" + folder.arrays("ids.npy", {{"", array(DType::i32, {3}, values)}})});
      check_fails(
          ran, 3,
          fmt::format("index out of range: 'ids' at [{}] is {}, but axis 'vocab' of 'table' has size 10 ({}:4:16)", at, value, gather));
    }
    for (const double position : {-1.0, 4.0}) {
      const Ran ran =
          run_einc({"run", place, target, "--input", "pos=" + folder.arrays("pos.npy", {{"", array(DType::i32, {}, {position})}}),
                    "--input", "x=" + folder.arrays("x.npy", {{"", array(DType::f32, {2}, {1, 2})}})});
      check_fails(ran, 3,
                  fmt::format("index out of range: 'pos' at [] is {}, but axis 'slots' of 'cache' has size 4 ({}:5:7)",
                              static_cast<int>(position), place));
    }
  }
}

TEST_CASE("a divisor of 0 is told with its tensor and place") {
  const Folder folder;
  const std::string program = folder.text(
      "d.ein", "dim n = 2, m = 70\ninput a: i64[m]\ninput counts: i32[n m]\noutput q = a // counts + (a + 1) % (counts * counts + 1)\n");
  std::vector<double> dividends(70, -7), counts(140, 2);
  const auto run = [&](const char* target) {
    return run_einc({"run", program, target, "--input", "a=" + folder.arrays("a.npy", {{"", array(DType::i64, {70}, dividends)}}),
                     "--input", "counts=" + folder.arrays("counts.npy", {{"", array(DType::i32, {2, 70}, counts)}})});
  };
  for (const char* target : kTargets) {
    CAPTURE(target);
    CHECK(run(target).status == 0);
  }
  counts[70 + 37] = 0;
  for (const char* target : kTargets) {
    CAPTURE(target);
    check_fails(run(target), 3, fmt::format("division by zero: 'counts' at [1, 37] is 0 ({}:4:12)", program));
  }
}

TEST_CASE("a divisor that a cast makes 0 stops the run") {
  const Folder folder;
  const std::string input = "a=" + folder.arrays("a.npy", {{"", array(DType::i32, {3}, {7, 8, 9})}});
  for (const char* divisor : {"cast(full(n, 0.5), i32)", "cast(cast(full(n, 256), u8), i32)"}) {
    const std::string program = folder.text("c.ein", fmt::format("dim n = 3\ninput a: i32[n]\noutput q = a // {}\n", divisor));
    for (const char* target : kTargets) {
      CAPTURE(target);
      const auto run = run_einc({"run", program, target, "--input", input});
      CHECK(run.status == 3);
      CHECK(run.errors.find("division by zero") != std::string::npos);
    }
  }
}

TEST_CASE("data that does not fit the program") {
  const Folder folder;
  const std::string program = folder.text("p.ein", kProgram), gather = folder.text("gather.ein", kGather);
  const auto given = [&](const HostArray& value) { return folder.arrays("given.npy", {{"", value}}); };
  for (const char* target : kTargets) {
    CAPTURE(target);
    check_fails(run_einc({"run", program, target, "--input", "x=" + given(array(DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}))}), 3,
                "input 'x' has shape [2 3], but f32[n k] is [2 2]: give -D k=3 to the program");
    check_fails(run_einc({"run", program, target, "-D", "n=1"}), 2, "no value given for input 'x': --input x=FILE");
    check_fails(run_einc({"run", gather, target, "--input", "ids=" + given(array(DType::f32, {3}, {1, 2, 3}))}), 3,
                "input 'ids' is i32, but given as f32");
    check_fails(run_einc({"run", gather, target, "--input", "ids=" + given(array(DType::i64, {3}, {1, 2, 4294967296.0}))}), 3,
                "input 'ids' at [2] is 4294967296, which i32 cannot hold");
    check_fails(run_einc({"run", program, target, "--input", "x=" + given(array(DType::f64, {1, 2}, {1, -1e300}))}), 3,
                "input 'x' at [0, 1] is -1e+300, which f32 cannot hold");
    const std::string real = folder.text("real.ein", "input x: [n=2]\noutput y = x\n");
    check_fails(run_einc({"run", real, target, "--input", "x=" + given(array(DType::f64, {2}, {3.5e38, 1}))}), 3,
                "input 'x' at [0] is 3.5e+38, which f32 cannot hold");
  }
  const std::string cut = folder.text("cut.npz", "PK");
  check_fails(run_einc({"run", program, "--input", "x=" + cut}), 3, cut + ": byte 2: too short for a .npz file");
  const std::string two = folder.arrays("two.npz", {{"a", array(DType::f32, {}, {1})}, {"b", array(DType::f32, {}, {1})}});
  check_fails(run_einc({"run", program, "--input", "x=" + two}), 3, two + ": no array 'x' among its 2: a, b");
  check_fails(run_einc({"run", program, "--input", "x=" + folder.at("none.npy")}), 4,
              folder.at("none.npy") + ": cannot read: No such file or directory");
}

TEST_CASE("wrong names on the command line") {
  const Folder folder;
  const std::string program = folder.text("p.ein", kProgram);
  const std::string x = "x=" + folder.arrays("x.npy", {{"", array(DType::f32, {1, 2}, {1, 2})}});
  check_fails(run_einc({"run", program, "--input", "z=none.npy"}), 2, "--input z: the program has no input of that name; it has x");
  check_fails(run_einc({"run", program, "--param", "z=none.npy"}), 2, "--param z: the program has no param of that name; it has w, b");
  check_fails(run_einc({"run", program, "--input", x, "--output", "z=z.npy"}), 2,
              "--output z: the program has no output of that name; it has y, total");
  check_fails(run_einc({"run", program, "--input", x, "--output", "y=y.csv"}), 2,
              "--output y=y.csv: the file's name must end in .npy, .npz or .safetensors");
  check_fails(run_einc({"run", program, "--input", x, "--output", "y=a.npy", "--output", "total=a.npy"}), 2,
              "--output total=a.npy: a .npy file holds one array, and this one is taken; .npz and .safetensors hold several");
  check_fails(run_einc({"run", program, "--input", x, "--output", "y=a.npz", "--output", "y=b.npz"}), 2, "--output y is given twice");
  check_fails(run_einc({"run", program}), 2, "n has no value, which a run needs: give -D n=8");
  check_fails(run_einc({"run", program, "--input", x, "--output", "y=" + folder.at("none/y.npy")}), 4,
              folder.at("none/y.npy") + ": cannot write: No such file or directory");
}

TEST_CASE("a dtype that a format has no name for keeps its values") {
  const Folder folder;
  const std::string program = folder.text("p.ein", "dim n\ninput x: f32[n]\noutput y = cast(x, bf16)\n");
  const std::string x = "x=" + folder.arrays("x.npy", {{"", array(DType::f32, {2}, {1, 3.14159})}});
  const Ran npy = run_einc({"run", program, "--input", x, "--output", "y=" + folder.at("y.npy")});
  CHECK(npy.status == 0);
  CHECK(npy.errors == "einc: y is bf16, which .npy has no name for: written as f32, its values the same\n");
  CHECK(floats(ArrayFile(folder.at("y.npy")).read("")) == std::vector<float>{1, 3.140625});
  CHECK(run_einc({"run", program, "--input", x, "--output", "y=" + folder.at("y.safetensors")}).errors.empty());
  CHECK(ArrayFile(folder.at("y.safetensors")).read("y").bytes == array(DType::bf16, {2}, {1, 3.140625}).bytes);
}

TEST_CASE("tf32 is a policy of GPUs' products: elsewhere it is f32") {
  const auto values = [](const std::string& precision) {
    const Ran ran = run_einc({"run", "examples/data/linear.ein", "--seed", "1", "--precision", precision});
    INFO(ran.errors);
    CHECK(ran.status == 0);
    return ran.output;
  };
  CHECK(values("tf32") == values("f32"));
  const Ran report = run_einc({"examples/two_layer.ein", "--report=json", "--precision=tf32"});
  REQUIRE(report.status == 0);
  CHECK(nlohmann::json::parse(report.output)["precision"] == "tf32");
}

TEST_CASE("a program that the machine's memory cannot hold is refused before it is asked for") {
  const Folder folder;
  const std::string program = folder.text("gather.ein", kGather);
  const std::string ids = "ids=" + folder.arrays("ids.npy", {{"", array(DType::i32, {3}, {1, 2, 3})}});
  for (const char* target : kTargets) {
    const Ran ran = run_einc({"run", program, target, "--input", ids, "-D", "vocab=10000000000"});
    INFO(ran.errors);
    CHECK(ran.status == 4);
    CHECK((says(ran, " GB of memory, and there are") || says(ran, " GB are free")));
    CHECK(ran.cpu_seconds < 2 * kSlowdown);
    CHECK(ran.peak_kib < int64_t{256} * 1024 * kMemoryFactor);
  }
}

}  // namespace einc::test
