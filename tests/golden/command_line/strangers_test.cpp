// SPDX-License-Identifier: Apache-2.0
// Command lines and data files as a stranger gets them wrong: each is refused by the right status, names what is wrong, and says what to
// do.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/run_einc.h"

namespace einc::test {
namespace {

namespace fs = std::filesystem;

class StrangersFolder {
 public:
  StrangersFolder() : before_(fs::current_path()), path_(fs::temp_directory_path() / fmt::format("einc_strangers_{}", getpid())) {
    fs::create_directories(path_);
    fs::current_path(path_);
    write("p.ein",
          "dim batch = 4\ninput x: f32[batch n=3]\nparam w: [n] ~ ones\noutput y = x * w\nloss = mean(y^2)\nminimize loss using sgd(lr = "
          "0.1)\n");
    write("import.ein", "import \"nothing.ein\"\ninput x: f32[n=3]\noutput y = x\n");
    write("lm.ein",
          "dim batch = 2, seq = 4, vocab = 16, width = 8\ninput tokens: i32[batch seq]\ninput targets: i32[batch seq]\n"
          "param table: [vocab width] ~ normal(std = 0.1)\nparam out: [width vocab] ~ normal(std = 0.1)\n"
          "logits = einsum(table[vocab = tokens], out, \"... width, width vocab -> ... vocab\")\n"
          "loss = mean(cross_entropy(logits, targets, vocab))\nminimize loss using sgd(lr = 0.1)\n");
  }
  ~StrangersFolder() {
    fs::current_path(before_);
    fs::remove_all(path_);
  }
  StrangersFolder(const StrangersFolder&) = delete;
  StrangersFolder& operator=(const StrangersFolder&) = delete;
  static void write(const std::string& name, const std::string& content) { std::ofstream(name, std::ios::binary) << content; }

 private:
  fs::path before_, path_;
};

// What is asked, the status, and parts of the answer: what is wrong, and the cure ("" where the first part is it).
struct Row {
  std::vector<std::string> arguments;
  int status;
  std::string wrong, cure;
};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const Ran ran = run_einc(row.arguments);
    CAPTURE(fmt::format("{}", fmt::join(row.arguments, " ")));
    CAPTURE(ran.errors);
    CHECK(ran.status == row.status);
    CHECK(ran.errors.find(row.wrong) != std::string::npos);
    CHECK(ran.errors.find(row.cure) != std::string::npos);
  }
}

std::string npy(const std::string& dtype, const std::string& shape, size_t bytes) {
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, shape);
  header.resize(117, ' ');
  return std::string("\x93NUMPY\1\0\x76\0", 10) + header + "\n" + std::string(bytes, '\0');
}

std::string safetensors(const std::string& header, size_t bytes) {
  std::string length(8, '\0');
  length[0] = static_cast<char>(header.size());
  return length + header + std::string(bytes, '\0');
}

}  // namespace

TEST_CASE("command lines of strangers are refused with the cure") {
  const StrangersFolder folder;
  check({{{"report", "p.ein"}, 2, "`p.ein` is one argument too many", "did you mean `--report`?"},
         {{"p.ein", "report"}, 2, "`report` is one argument too many", "did you mean `--report`?"},
         {{"p.ein", "--report=yaml"}, 2, "found `yaml`", "text, json, md, csv or html"},
         {{"p.ein", "--report", "--device=h1000"}, 2, "no device `h1000`", "did you mean h100-sxm"},
         {{"p.ein", "--emit=cubn"}, 2, "found `cubn`", "did you mean `cubin`?"},
         {{"p.ein", "--precision=fp32"}, 2, "found `fp32`", "did you mean `f32`?"},
         {{"p.ein", "-D", "batch"}, 2, "found `batch`", "-D batch=16"},
         {{"p.ein", "-D", "bacth=8"}, 1, "-D sets `bacth`", "did you mean `batch`?"},
         {{"p.ein", "--fit", "batch"}, 2, "--fit needs --device", ""},
         {{"train", "p.ein", "--data", "x=p.npy"}, 2, "--steps is required", ""},
         {{"train", "p.ein", "--data", "x=p.npy", "--steps", "ten"}, 2, "found `ten`", "--steps takes a whole number"},
         {{"train", "p.ein", "--steps", "10"}, 2, "no data", "--data NAME=FILE"},
         {{"run", "p.ein"}, 2, "no value given for input 'x'", "--input x=FILE"},
         {{"run", "p.ein", "--input", "x", "p.npy"}, 2, "`p.npy` is one argument too many", "did you mean `--input x=p.npy`?"},
         {{"run", "p.ein", "--input", "z=p.npy"}, 2, "no input of that name", "it has x"},
         {{"bench", "p.ein", "--device", "h200"}, 2, "no option `--device`", "einc FILE --device NAME"},
         {{"estimate", "--params", "70X"}, 2, "found `70X`", "15e12 or 15T"},
         {{"tokenize", "p.ein"}, 2, "--output is required", ""},
         {{"explain", "E999"}, 2, "no code `E999`", "einc explain lists all of them"},
         {{"gradcheck", "p.ein", "--tolerance", "0"}, 2, "found `0`", "--tolerance takes a positive number"},
         {{"import.ein"}, 1, "cannot import `nothing.ein`: there is no such file", ""},
         {{"p.ein", "lm.ein"}, 2, "`lm.ein` is one argument too many", "--diff compares two programs"}});
}

TEST_CASE("data files of strangers are refused with the cure") {
  const StrangersFolder folder;
  const auto write = [](const char* name, const std::string& content) { StrangersFolder::write(name, content); };
  write("ok.npy", npy("<f4", "4, 3", 48));
  write("turned.npy", npy("<f4", "3, 4", 48));
  write("flat.npy", npy("<f4", "12,", 48));
  write("complex.npy", npy("<c8", "4, 3", 96));
  write("object.npy", npy("|O", "4, 3", 96));
  write("cut.npy", npy("<f4", "4, 3", 43));
  write("empty.npy", "");
  write("table.csv", "1,2,3\n4,5,6\n");
  write("new.pkl", "\x80\x04\x95");
  write("old.pt", "\x80\x02\x8a\nl\xfc\x9c");
  write("packed.npy.gz", "\x1F\x8B\x08 packed");
  write("data.h5", "\x89HDF\r\n\x1a\n");
  write("cat.jpg", "\xFF\xD8\xFF\xE0 cat");
  write("model.gguf", "GGUF\3\1\1\1 model");
  write("other.safetensors", safetensors(R"({"weight":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", 12));
  write("wide.safetensors", safetensors(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 16));
  write("short.safetensors", safetensors(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8));
  write("odd.bin", "abc");
  const auto run = [](const char* file) { return std::vector<std::string>{"run", "p.ein", "--input", std::string("x=") + file}; };
  const auto weights = [](const char* file) { return std::vector<std::string>{"run", "p.ein", "--input", "x=ok.npy", "--weights", file}; };
  const std::string save = "numpy.save(\"x.npy\"";
  check({{run("turned.npy"), 3, "input 'x' has shape [3 4]", "is [4 3]"},
         {run("flat.npy"), 3, "input 'x' has shape [12]", "is [4 3]"},
         {run("complex.npy"), 3, "dtype '<c8' is not supported", "save the array as float64, float32"},
         {run("object.npy"), 3, "dtype '|O' is not supported", "save the array as float64, float32"},
         {run("cut.npy"), 3, "the header promises 48 bytes of elements, but 43 follow", ""},
         {run("empty.npy"), 3, "0 bytes are too few for a .npy file", ""},
         {run("table.csv"), 3, "it is text", save},
         {run("new.pkl"), 3, "it is Python's pickle", save},
         {run("old.pt"), 3, "a PyTorch checkpoint", "safetensors.torch.save_file("},
         {run("packed.npy.gz"), 3, "it is compressed", "gunzip"},
         {run("data.h5"), 3, "it is HDF5", save},
         {run("cat.jpg"), 3, "it is a picture", save},
         {weights("model.gguf"), 3, "it is GGUF", "take the model's .safetensors"},
         {weights("other.safetensors"), 3, "none of its arrays (weight) is a param of the program", "which has w"},
         {weights("wide.safetensors"), 3, "param 'w' has shape [4]", "is [3]"},
         {weights("short.safetensors"), 3, "its shape and dtype take 12 bytes, but its offsets have 8", ""},
         {{"train", "lm.ein", "--data", "tokens=odd.bin", "--steps", "1"}, 3, "3 bytes of tokens are no whole number of u16", ""},
         {{"train", "lm.ein", "--data", "tokens=old.pt", "--steps", "1"},
          3,
          "a PyTorch file",
          "numpy.asarray(tokens, dtype=\"uint16\").tofile"}});
}

}  // namespace einc::test
