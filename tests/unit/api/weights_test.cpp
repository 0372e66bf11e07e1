// Params and states in .safetensors files.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

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
  CHECK(session.param("b").to_doubles() == std::vector<double>{0});
  write_safetensors(folder / "other.safetensors", {item("q", DType::f32, {4}, four)});
  CHECK(message(session, folder / "other.safetensors", ErrorKind::data).find("none of its tensors") != std::string::npos);
  CHECK(message(session, folder / "none.safetensors", ErrorKind::resource).find("none.safetensors") != std::string::npos);
}
