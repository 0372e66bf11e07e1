// SPDX-License-Identifier: Apache-2.0
// The compiler as a library. Compile a program once, run it in as many sessions as you like:
//
//   einc::CompileOptions options;
//   options.dims = {{"batch", 32}};
//   const einc::Model model = einc::compile_file("model.ein", options);
//   einc::Session session(model);                        // einc/runtime.h
//   session.init(/*seed=*/1);
//   session.set("x", batch);
//   session.step();
//   std::cout << session.loss() << ' ' << model.report().step.digits << " FLOPs\n";
//
// All functions throw Error and nothing else; what is wrong with a program's text is in Error::diagnostics(). They may be
// called from several threads at once.
#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "einc/report.h"
#include "einc/runtime.h"

namespace einc {

enum class Target : uint8_t {
  cpu,        // machine code for this processor
  cuda,       // kernels for this machine's NVIDIA GPU; sessions keep params, states and results there and copy them when they are read
  reference,  // the interpreter, in f64: slow, what other targets are held to
};

// What replaces the program's own precision policy. tf32 is f32 in whose products GPUs keep 10 bits behind the point of each factor.
enum class Precision : uint8_t { as_written, f32, tf32, bf16, f16, fp8 };

enum class Purpose : uint8_t {
  training,   // step() and run()
  inference,  // run() alone: no optimizer state, no code for a step
  // run() alone, which also pulls gradients back: for each floating output y there is an input `cotangent.y` like it, and `gradient.NAME`
  // of each floating input and each param that is not frozen is an output: the gradient of the sum of all cotangent.y * y. forward() makes
  // the outputs alone, backward() then the gradients. States are read and stay as they are: the new value of each that the program updates
  // is an output `next.NAME`.
  pullback,
};

struct CompileOptions {
  std::map<std::string, int64_t> dims;  // values of free dims, and of others that have a default
  Precision precision = Precision::as_written;
  Target target = Target::cpu;
  Purpose purpose = Purpose::training;  // of a program that minimizes something; others have no step
  // Of a program that minimizes nothing: run() is that of a training model, where dropout acts and `training` is true.
  bool training_mode = false;
  // Folder of machine code; unset: ~/.cache/einc, empty: none. The process shares what it has loaded, and keeps the last 64 MiB of it,
  // anyway.
  std::optional<std::filesystem::path> code_cache;
  // Bytes that a session may take, its sources and results included (on the reference: no limit; on a GPU: of its memory). A step keeps
  // within it by making values of the forward again in the backward, with the same bits; Error (resource) tells the least where that is not
  // enough. Over a mesh nothing is made again: a limit that the program does not keep as it is is an Error.
  std::optional<int64_t> memory_limit{};
  std::string report_device{};  // the machine that reports speak of, a name of `einc --list-devices`; empty: this processor
  std::vector<std::filesystem::path> import_folders{};  // where imports are read from besides the importing file's own folder
};

enum class ReportForm : uint8_t {
  json,  // as of `einc FILE --report=json`
  html,  // one page, without a network
  text,  // for a terminal
};

// A compiled program. Copies are handles to the same one.
class Model : public Program {
 public:
  struct Details;
  const std::vector<Error::Diagnostic>& warnings() const;
  // Built at the first call.
  const cost::Report& report() const;
  std::string render_report(ReportForm form) const;
  bool has_modes() const;  // dropout or `training` is in it: CompileOptions::training_mode tells what run() gives
  bool draws() const;      // random numbers, in one of its modes

 private:
  Model(std::shared_ptr<const ProgramRep> program, std::shared_ptr<const Details> details);
  friend struct Details;
  const Details& details() const;
  std::shared_ptr<const Details> details_;
};

// Throw Error: program (what is wrong with the text, or with a dim that it has not), usage (a dim without a value), data (values of
// dims that break a condition of the program), resource (a file that cannot be read; no LLVM in this build).
Model compile_file(const std::string& path, const CompileOptions& options = {});
// `name` stands for the text in diagnostics; imports are looked for beside it.
Model compile_text(std::string_view text, const CompileOptions& options = {}, const std::string& name = "model.ein");

// The report without compiling further: dims may be left without values, amounts are formulas then.
cost::Report report_file(const std::string& path, const CompileOptions& options = {});
cost::Report report_text(std::string_view text, const CompileOptions& options = {}, const std::string& name = "model.ein");
std::string render_report_of_file(const std::string& path, ReportForm form, const CompileOptions& options = {});
std::string render_report_of_text(std::string_view text, ReportForm form, const CompileOptions& options = {},
                                  const std::string& name = "model.ein");

}  // namespace einc
