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

TEST_CASE("habits of other command lines are refused with what stands for them here") {
  const StrangersFolder folder;
  const std::vector<std::string> train = {"train", "p.ein", "--data", "x=p.npy", "--steps", "10"};
  const auto more = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), train.begin(), train.end());
    return arguments;
  };
  check({{{"p.ein", "-D", "batch", "=", "8"}, 2, "`=` is one argument too many", "did you mean `batch=8`?"},
         {{"p.ein", "-D", "batch=4.5"}, 2, "found `batch=4.5`", "-D batch=16"},
         {{"p.ein", "--report", "--device", "4090"}, 2, "no device `4090`", "did you mean rtx4090"},
         {{"p.ein", "--report", "--device", "gpu"}, 2, "no device `gpu`", "such as h200"},
         {{"p.ein", "--explain"}, 2, "--explain takes a value", "fusion"},
         {{"p.ein", "--explain=speed"}, 2, "found `speed`", "fusion"},
         {{"p.ein", "-o", "report.html"}, 2, "-o report.html", "--report=html"},
         {{"p.ein", "--fit=n,k", "--device", "h200"}, 2, "--fit=n,k names no dim", "it has batch"},
         {{"p.ein", "--memory-limit", "40G"}, 2, "found `40G`", "40GB"},
         {{"p.ein", "--plan", "h200"}, 2, "--plan takes a number of devices", "64xh100-sxm"},
         {{"p.ein", "--mesh", "4"}, 1, "expected the name of an axis of the mesh, found `4`", "mesh data = 4"},
         {{"p", "--report"}, 4, "no file p", "did you mean p.ein?"},
         {more({"--epochs", "3"}), 2, "no option `--epochs`", "--steps counts batches"},
         {more({"--batch-size", "16"}), 2, "no option `--batch-size`", "-D batch=16"},
         {more({"--learning-rate", "0.1"}), 2, "no option `--learning-rate`", "--lr 1e-3"},
         {more({"--gpu"}), 2, "no option `--gpu`", "--target=cuda"},
         {more({"--save", "w.pt"}), 2, "--save w.pt", ".safetensors"},
         {{"run", "p.ein", "x=x.npy"}, 2, "`x=x.npy` is one argument too many", "did you mean `--input x=x.npy`?"},
         {{"run", "p.ein", "--target", "gpu"}, 2, "found `gpu`", "did you mean `cuda`?"},
         {{"run", "p.ein", "--weights"}, 2, "--weights takes a value", ".safetensors"},
         {{"gradcheck", "p.ein", "--eps", "1e-3"}, 2, "no option `--eps`", "--tolerance"},
         {{"estimate", "--params", "7B", "--gpus", "8"}, 2, "no option `--gpus`", "--devices N"},
         {{"fmt", "--inplace", "p.ein"}, 2, "no option `--inplace`", "in place without an option"},
         {{"explain", "322"}, 2, "no code `322`", "did you mean `E0322`?"},
         {{"-v"}, 2, "no option `-v`", "--version"},
         {{"export", "p.ein"}, 2, "no command `export`", "einc --help lists the commands"}});
}

TEST_CASE("settings in other spellings are refused with einc's") {
  const StrangersFolder folder;
  check({{{"p.ein", "-D", "batch", "16"}, 2, "`16` is one argument too many", "did you mean `-D batch=16`?"},
         {{"p.ein", "--seq", "512"}, 2, "no option `--seq`", "-D seq=512"},
         {{"p.ein", "--layers=24"}, 2, "no option `--layers`", "-D layers=24"},
         {{"p.ein", "--flops"}, 2, "no option `--flops`", "--report"},
         {{"p.ein", "--fit", "batch", "32", "--device", "h200"}, 2, "`32` is one argument too many", "finds the largest value by itself"},
         {{"p.ein", "--report", "--tokens", "3B", "--mfu", "40"}, 2, "found `40`", "40 % is 0.4"},
         {{"p.ein", "--report", "--tokens", "3B", "--mfu", "40%"}, 2, "found `40%`", "40 % is 0.4"},
         {{"p.py"}, 4, "no file p.py", "did you mean p.ein?"},
         {{"run", "p.ein", "--x", "x.npy"}, 2, "no option `--x`", "did you mean `--input x=x.npy`?"},
         {{"run", "p.ein", "-i", "x=x.npy"}, 2, "no option `-i`", "--input NAME=FILE"},
         {{"train", "p.ein", "--steps", "9", "--data", "x=x.npy,y=y.npy"},
          2,
          "each file has a --data of its own",
          "--data x=x.npy --data y=y.npy"},
         {{"estimate", "--params", "7", "B"}, 2, "`B` is one argument too many", "did you mean `--params 7B`?"},
         {{"gradcheck", "p.ein", "--rtol", "1e-3"}, 2, "no option `--rtol`", "--tolerance"},
         {{"tokenize", "p.ein", "-o", "t.bin", "--encoding", "gpt2"}, 2, "no option `--encoding`", "--kind gpt2"},
         {{"fmt", "--diff", "p.ein"}, 2, "no option `--diff`", "--check"}});
}

TEST_CASE("data files of strangers are refused with the cure") {
  const StrangersFolder folder;
  const auto write = [](const char* name, const std::string& content) { StrangersFolder::write(name, content); };
  write("ok.npy", npy("<f4", "4, 3", 48));
  write("turned.npy", npy("<f4", "3, 4", 48));
  write("flat.npy", npy("<f4", "12,", 48));
  write("unit.npy", npy("<f4", "4, 1, 3", 48));
  write("channels_first.npy", npy("<f4", "2, 3, 4, 5", 480));
  write("image.ein", "dim n = 2, height = 4, width = 5, c = 3\ninput x: f32[n height width c]\noutput y = x\n");
  write("rows.json", "[[1, 2, 3]]\n");
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
  write("text.txt", std::string(100, 'a') + "\n");
  write("more.npy", npy("<f4", "5, 3", 60));
  write("one.npy", npy("<f4", "3,", 12));
  write("big_version.npy", std::string("\x93NUMPY\x09\0\x76\0", 10) + std::string(118, ' '));
  write("no_descr.npy", std::string("\x93NUMPY\1\0\x0c\0{\"shape\": 4}", 22));
  write("broken.safetensors", safetensors("{\"w\": oops}", 12));
  write("turned.safetensors", safetensors(R"({"v":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}})", 48));
  write("above.bin", std::string("\1\0\2\0\3\0\1\0\2\0\3\0\1\0\2\0\x63\0\1\0", 20));
  std::string wide;
  for (char token = 0; token < 64; ++token) wide += std::string{static_cast<char>(token % 16), '\0', '\0', '\0'};
  write("wide.bin", wide);
  write("few.bin", std::string("\1\0\2\0", 4));
  write("none.bin", "");
  write("tokenizer.json", "{\"version\": \"1.0\", \"model\": {");
  write("wordpiece.json", R"({"version":"1.0","model":{"type":"WordPiece","vocab":{"a":0}}})");
  write("merges.txt", "#version: 0.2\nt h\n");
  write("latin1.txt", "caf\xe9\n");
  write("map.txt", "v -> w\n");
  write("not_a_log.jsonl", "hello\n");
  fs::create_directory("folder");
  StrangersFolder::write("turned.ein", "dim n = 3, k = 4\nparam v: [k n] ~ ones\noutput y = sum(v)\n");
  const auto run = [](const char* file) { return std::vector<std::string>{"run", "p.ein", "--input", std::string("x=") + file}; };
  const auto weights = [](const char* file) { return std::vector<std::string>{"run", "p.ein", "--input", "x=ok.npy", "--weights", file}; };
  const std::string save = "numpy.save(\"x.npy\"";
  check({{run("turned.npy"), 3, "input 'x' has shape [3 4]", "is [4 3]"},
         {run("unit.npy"), 3, "input 'x' has shape [4 1 3]", "numpy.squeeze(array)"},
         {{"run", "image.ein", "--input", "x=channels_first.npy"}, 3, "shape [2 3 4 5]", "numpy.transpose(array, (0, 2, 3, 1))"},
         {run("rows.json"), 3, "if it is JSON", save},
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
  const auto tokens = [](const char* file) {
    return std::vector<std::string>{"train", "lm.ein", "--data", std::string("tokens=") + file, "--steps", "200"};
  };
  const auto tokenize = [](const char* kind, const char* vocabulary) {
    return std::vector<std::string>{"tokenize", "text.txt", "-o", "t.bin", "--kind", kind, "--vocab", vocabulary};
  };
  check({{run("more.npy"), 3, "input 'x' has shape [5 3]", "-D batch=5"},
         {run("big_version.npy"), 3, "format version", "1.0, 2.0 and 3.0 are"},
         {run("no_descr.npy"), 3, "no_descr.npy: byte ", ""},
         {run("folder"), 4, "folder: cannot read: not a regular file", ""},
         {weights("one.npy"), 3, "one array without a name", "--param NAME=FILE"},
         {weights("broken.safetensors"), 3, "the header is not JSON", ""},
         {weights("other.safetensors"), 3, "none of its arrays (weight)", "--rename FILE"},
         {{"run", "turned.ein", "--weights", "turned.safetensors"}, 3, "param 'v' has shape [3 4]", "--rename's file turns it"},
         {{"run", "p.ein", "--input", "x=ok.npy", "--weights", "other.safetensors", "--rename", "map.txt"},
          3,
          "map.txt: line 1: `v -> w` fits nothing",
          "the file of weights has no tensor `v`"},
         {tokens("text.txt"), 3, "text.txt: byte 0: it is text", "einc tokenize"},
         {tokens("above.bin"), 3, "is 99, but axis 'vocab'", "token 8 of above.bin"},
         {tokens("wide.bin"), 3, "every second number of 16 bits is 0", "--dtype u32"},
         {tokens("few.bin"), 3, "2 tokens are too few for a window of 4", ""},
         {tokens("none.bin"), 3, "0 tokens are too few", ""},
         {tokens("folder"), 4, "folder: cannot read: not a regular file", ""},
         {{"train", "lm.ein", "--data", "text=few.bin", "--steps", "1"}, 2, "no input of that name", "tokens and targets"},
         {tokenize("huggingface", "tokenizer.json"), 3, "tokenizer.json: byte ", "not JSON"},
         {tokenize("huggingface", "wordpiece.json"), 3, "'WordPiece'", "reads BPE and Unigram"},
         {tokenize("gpt2", "merges.txt"), 3, "line 1: not a token in base64", "beside encoder.json"},
         {{"tokenize", "latin1.txt", "-o", "t.bin", "--kind", "chars"}, 3, "byte 3 of the text: not UTF-8", "--kind bytes"},
         {{"plot", "not_a_log.jsonl", "-o", "a.svg"}, 3, "line 1 is not a line of a log", "einc train --log"}});
}

}  // namespace einc::test
