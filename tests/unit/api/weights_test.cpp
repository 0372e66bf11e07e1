// SPDX-License-Identifier: Apache-2.0
// Params and states in .safetensors files.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/data/safetensors.h"
#include "tests/unit/api/programs.h"

using namespace einc;
using namespace einc::test;

namespace {

struct Folder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("einc_weights_" + std::to_string(::getpid()));
  Folder() { std::filesystem::create_directories(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

template <class T>
SafetensorsItem item(const char* name, DType dtype, std::vector<int64_t> shape, const std::vector<T>& values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

std::string message(Session& session, const std::string& path, ErrorKind kind) {
  try {
    session.load(path);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("a saved session goes on where it was") {
  const Folder folder;
  const Model model = compile_text(kLinear, options(Target::reference));
  const auto give = [](Session& session) {
    session.set("x", numbers(12, 0));
    session.set("y", numbers(4, 1));
  };
  Session a(model), b(model);
  a.init(3);
  give(a);
  for (int i = 0; i < 5; ++i) a.step();
  a.save(folder / "all.safetensors", Saved::params_and_states);
  a.step();
  const LoadedWeights loaded = b.load(folder / "all.safetensors");
  CHECK(loaded.missing.empty());
  CHECK(loaded.unused.empty());
  give(b);
  CHECK(b.state("seen").to_doubles() == std::vector<double>{5});
  b.step();
  CHECK(a.param("w").to_doubles() == b.param("w").to_doubles());
  CHECK(a.loss() == b.loss());
  a.save(folder / "params.safetensors");
  CHECK(SafetensorsFile(folder / "params.safetensors").tensors().size() == 2);
}

TEST_CASE("a session goes on from its newest checkpoint as if nothing had happened") {
  const Folder folder;
  CompileOptions with_dropout = options(Target::reference);
  const std::string text = std::string(kLinear).replace(std::string(kLinear).find("einsum(x, w"), 11, "einsum(dropout(x, 0.5), w");
  const Model model = compile_text(text, with_dropout);
  const auto give = [](Session& session) {
    session.set("x", numbers(12, 0));
    session.set("y", numbers(4, 1));
  };
  const auto weights = [](const Session& session) { return session.param("w").to_doubles(); };
  Session whole(model), first(model), second(model);
  whole.init(7);
  first.init(7);
  give(whole);
  give(first);
  give(second);
  for (int i = 0; i < 9; ++i) whole.step();
  CHECK_FALSE(second.resume(folder / "run"));
  for (int i = 0; i < 5; ++i) {
    first.step();
    if (i % 2 == 0) first.save_checkpoint(folder / "run");
  }
  CHECK(first.steps() == 5);
  CHECK_FALSE(std::filesystem::exists(folder / "run/step-00000001"));
  CHECK(std::filesystem::exists(folder / "run/step-00000003"));
  CHECK(second.resume(folder / "run"));
  CHECK(second.steps() == 5);
  while (second.steps() < 9) second.step();
  CHECK(weights(second) == weights(whole));
  CHECK(second.loss() == whole.loss());
  CHECK_THROWS_AS(second.save_checkpoint(folder / "run", 0), Error);
  CompileOptions larger = options(Target::reference, 5);
  Session other(compile_text(text, larger));
  try {
    other.resume(folder / "run");
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).find("dim batch was 4, is 5 now") != std::string::npos);
  }
}

TEST_CASE("weights of another float format are rounded, and what does not match is told") {
  const Folder folder;
  const std::vector<uint16_t> halves = {0x3F80, 0xC000, 0x3F00};  // bf16: 1, -2, 0.5
  const std::vector<float> extra = {1, 2};
  write_safetensors(folder / "w.safetensors", {item("w", DType::bf16, {3}, halves), item("v", DType::f32, {2}, extra)});
  Session session(compile_text(kLinear, options(Target::reference)));
  const LoadedWeights loaded = session.load(folder / "w.safetensors");
  CHECK(session.param("w").to_doubles() == std::vector<double>{1, -2, 0.5});
  CHECK(loaded.missing == std::vector<std::string>{"b"});
  CHECK(loaded.unused == std::vector<std::string>{"v"});
}

TEST_CASE("a file that does not fit changes nothing") {
  const Folder folder;
  const std::vector<float> four = {1, 2, 3, 4}, one = {9};
  const std::vector<int32_t> whole = {1, 2, 3};
  Session session(compile_text(kLinear, options(Target::reference)));
  write_safetensors(folder / "shape.safetensors", {item("b", DType::f32, {}, one), item("w", DType::f32, {4}, four)});
  CHECK(message(session, folder / "shape.safetensors", ErrorKind::data).find("'w' is f32[4], but the program's is f32[3]") !=
        std::string::npos);
  write_safetensors(folder / "dtype.safetensors", {item("b", DType::f32, {}, one), item("w", DType::i32, {3}, whole)});
  CHECK(message(session, folder / "dtype.safetensors", ErrorKind::data).find("'w' is i32[3]") != std::string::npos);
  write_safetensors(folder / "both.safetensors", {item("b", DType::f32, {1}, one), item("w", DType::f32, {4}, four)});
  const std::string both = message(session, folder / "both.safetensors", ErrorKind::data);
  CHECK(both.find("'b' is f32[1], but the program's is f32[]") != std::string::npos);
  CHECK(both.find("'w' is f32[4], but the program's is f32[3]") != std::string::npos);
  CHECK(session.param("b").to_doubles() == std::vector<double>{0});
  write_safetensors(folder / "other.safetensors", {item("q", DType::f32, {4}, four)});
  CHECK(message(session, folder / "other.safetensors", ErrorKind::data).find("none of its tensors") != std::string::npos);
  CHECK(message(session, folder / "none.safetensors", ErrorKind::resource).find("none.safetensors") != std::string::npos);
}

TEST_CASE("weights from elsewhere come in under their names and in their axes: Hugging Face's GPT-2") {
  const Folder folder;
  CompileOptions small = options(Target::reference, 1);
  small.dims = {{"batch", 1}, {"seq", 4}, {"vocab", 7}, {"layers", 2}, {"heads", 2}, {"head", 3}};
  Session session(compile_file(EINC_SOURCE_DIR "/examples/gpt2.ein", small));
  std::vector<std::pair<std::string, std::vector<int64_t>>> theirs = {{"wte.weight", {7, 6}}, {"wpe.weight", {4, 6}}};
  for (const std::string h : {"h.0.", "h.1."})
    for (const auto& [name, shape] : std::vector<std::pair<std::string, std::vector<int64_t>>>{{"ln_1.weight", {6}},
                                                                                               {"ln_1.bias", {6}},
                                                                                               {"attn.bias", {1, 1, 4, 4}},
                                                                                               {"attn.c_attn.weight", {6, 18}},
                                                                                               {"attn.c_attn.bias", {18}},
                                                                                               {"attn.c_proj.weight", {6, 6}},
                                                                                               {"attn.c_proj.bias", {6}},
                                                                                               {"ln_2.weight", {6}},
                                                                                               {"ln_2.bias", {6}},
                                                                                               {"mlp.c_fc.weight", {6, 24}},
                                                                                               {"mlp.c_fc.bias", {24}},
                                                                                               {"mlp.c_proj.weight", {24, 6}},
                                                                                               {"mlp.c_proj.bias", {6}}})
      theirs.emplace_back(h + name, shape);
  theirs.push_back({"ln_f.weight", {6}});
  theirs.push_back({"ln_f.bias", {6}});
  std::vector<std::vector<float>> values;
  std::vector<SafetensorsItem> items;
  for (const auto& [name, shape] : theirs) {
    size_t count = 1;
    for (const int64_t size : shape) count *= static_cast<size_t>(size);
    values.push_back(numbers(count, static_cast<double>(values.size())));
  }
  for (size_t i = 0; i < theirs.size(); ++i) items.push_back(item(theirs[i].first.c_str(), DType::f32, theirs[i].second, values[i]));
  write_safetensors(folder / "gpt2.safetensors", items);

  const LoadedWeights loaded = session.load(folder / "gpt2.safetensors", EINC_SOURCE_DIR "/examples/gpt2_from_huggingface.txt");
  CHECK(loaded.missing.empty());
  CHECK(loaded.unused == std::vector<std::string>{"h.0.attn.bias", "h.1.attn.bias"});
  // The key of head 1, element 2: column 1 * 6 + 1 * 3 + 2 of theirs.
  const auto ours = session.param("h.1.attn.w_qkv").as<float>();
  const std::vector<float>& packed = values[2 + 13 + 3];
  for (size_t row = 0; row < 6; ++row) CHECK(ours[((row * 3 + 1) * 2 + 1) * 3 + 2] == packed[row * 18 + 11]);
  CHECK(session.param("h.1.attn.b_out").as<float>()[5] == values[2 + 13 + 6][5]);
  CHECK(session.param("ln_f.shift").as<float>()[5] == values.back()[5]);

  const auto failure = [&](const char* name, const std::string& lines) {
    std::ofstream(folder / name) << lines;
    try {
      session.load(folder / "gpt2.safetensors", folder / name);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(failure("typo.txt", "wte.weight -> wte\nwpe.wieght -> wpe\n") ==
        folder / "typo.txt" + ": line 2: `wpe.wieght -> wpe` fits nothing: the file of weights has no tensor `wpe.wieght`");
  CHECK(failure("order.txt", "wte.weight -> wte : vocab embed -> embed vocab\n") ==
        folder / "order.txt" + ": line 1: 'wte.weight' for 'wte': `vocab embed -> embed vocab`: [7 6] does not become [7 6] by it");
}
