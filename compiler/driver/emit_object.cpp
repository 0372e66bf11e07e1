// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/emit_object.h"

#include <fmt/format.h>

#include <filesystem>

#include "compiler/api/object_file.h"
#include "compiler/codegen/llvm/native_code.h"
#include "compiler/driver/open_program.h"
#include "compiler/driver/progress.h"
#include "runtime/base/printable.h"
#include "runtime/data/file.h"

namespace einc {
namespace {

void write_text(const std::string& path, const std::string& text) {
  const std::span<const std::byte> piece(reinterpret_cast<const std::byte*>(text.data()), text.size());
  write_file(path, {&piece, 1});
}

}  // namespace

bool check_object_request(const ObjectRequest& request) {
  if (request.path.empty()) return fmt::print(stderr, "einc: --emit=obj needs -o: the object file to write\n"), false;
  if (std::filesystem::path(request.path).extension() != ".o")
    return fmt::print(stderr, "einc: -o {}: an object file ends in .o\n", printable(request.path)), false;
  if (!processor_named(request.cpu)) {
    fmt::print(stderr,
               "einc: --cpu={}: no processor of this name with AVX2 and FMA: give host, x86-64-v3, x86-64-v4 or LLVM's name of one\n",
               printable(request.cpu));
    return false;
  }
  return true;
}

std::string header_path(const ObjectRequest& request) { return std::filesystem::path(request.path).replace_extension(".h").string(); }

ExitStatus emit_object(Compilation compilation, const PipelineOptions& options, const ObjectRequest& request) {
  if (!dims_are_set(*compilation.graph, options.dims)) return ExitStatus::wrong_usage;
  if (!compilation.graph->mesh.empty())
    return fmt::print(stderr,
                      "einc: --emit=obj is code for one device, and the program is for a mesh of them: take its `mesh` line away\n"),
           ExitStatus::environment;
  Progress progress("einc");
  progress.show("compiling");
  const Purpose purpose = request.mode == "inference" ? Purpose::inference : Purpose::training;
  const ProgramGraphs graphs = make_graphs(std::move(compilation), options, parts_for(purpose));
  const std::filesystem::path path(request.path);
  const ObjectFile file = make_object(graphs, path.stem().string(), request.cpu, *processor_named(request.cpu));
  write_text(request.path, file.object);
  write_text(header_path(request), file.header);
  return ExitStatus::done;
}

}  // namespace einc
