// SPDX-License-Identifier: Apache-2.0
// A session whose tensors can be looked at, and a folder that goes away.
#pragma once
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/executor/session.h"
#include "runtime/train/checkpoint_folder.h"

namespace einc::test {

class IdleRunner : public Runner {
 public:
  void bind(Source, void*) override {}
  NonFinite run_while_finite(Part, uint64_t, uint64_t) override { return NonFinite::nothing; }
  std::string find_fault(Part, NonFinite, uint64_t, uint64_t) override { return ""; }
  TensorView output(uint32_t) const override { return nothing(); }
  TensorView gradient(uint32_t) const override { return nothing(); }
  TensorView loss(Part) const override { return nothing(); }

 private:
  static TensorView nothing() { return {DType::f32, {0}, nullptr}; }
};

class IdleProgram : public ProgramRep {
 public:
  explicit IdleProgram(ProgramInfo described) : ProgramRep(std::move(described)) {}
  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool>, int) const override { return std::make_unique<IdleRunner>(); }
  bool has(Part) const override { return true; }
  int64_t planned_bytes(int) const override { return 0; }
};

inline ProgramInfo with_initializers(ProgramInfo info) {
  info.param_inits.assign(info.params.size(), {InitKind::normal, {0, 1}});
  info.state_inits.assign(info.states.size(), {InitKind::normal, {0, 1}});
  return info;
}

inline ProgramInfo small_program() {
  ProgramInfo info;
  info.name = "small.ein";
  info.dims = {{"batch", 4}, {"width", 3}};
  info.params = {{"h.0.w", DType::f32, {"width", "out"}, {3, 5}}, {"h.0.b", DType::bf16, {"out"}, {5}}};
  info.states = {
      {"h.0.w.m", DType::f32, {"width", "out"}, {3, 5}}, {"minimize.step", DType::f32, {}, {}}, {"seen", DType::i64, {"batch"}, {4}}};
  return with_initializers(info);
}

struct TestSession {
  explicit TestSession(ProgramInfo info = small_program(), uint64_t seed = 1) : program(std::move(info)), session(program, 1) {
    session.initialize(seed);
  }
  // All params' and states' bytes.
  std::string bytes() const {
    std::string all;
    for (const SourceKind kind : {SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < sources_of(program.info, kind).size(); ++i)
        all.append(static_cast<const char*>(session.memory({kind, i})), static_cast<size_t>(sources_of(program.info, kind)[i].bytes()));
    return all;
  }
  IdleProgram program;
  SessionRep session;
};

inline RunSettings run_settings() {
  return {{1, 2, UINT64_MAX}, {{"data", "train.bin, 1000 tokens"}, {"precision", "f32"}}, {{"processor", "avx2"}}};
}

// In memory where the system has a place for that: thousands of small files are slow on a disk.
inline std::filesystem::path scratch() { return std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path(); }

class TestFolder {
 public:
  explicit TestFolder(const std::string& name = "checkpoints") : path_(scratch() / ("einc-" + name + "-" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  std::string path() const { return path_.string(); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace einc::test
