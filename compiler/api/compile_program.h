// SPDX-License-Identifier: Apache-2.0
// From a compiled text to something that runs: the graphs of the forward and of the training step, and what lies below them.
#pragma once
#include <einc/einc.h>

#include <filesystem>
#include <optional>

#include "compiler/fuse/schedule_passes.h"
#include "compiler/ir/interpret.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/executor/session.h"
#include "runtime/mesh/transport.h"

namespace einc {

struct Report;  // compiler/report/report.h

// The same text with the roots of each way to run it that was asked for.
struct ProgramGraphs {
  Compilation compilation;                   // without errors
  std::optional<Compilation> micro_batches;  // of the accumulation
  PerPart<Graph> parts;
  Bindings dims;               // those given
  Roots roots;                 // of a training step
  bool training_mode = false;  // the forward's
};

PipelineOptions pipeline_options(const CompileOptions& options);

// Of the parts of a program that minimizes nothing there is the forward alone. Throws Error (program) with the diagnostics
// when there were errors.
ProgramGraphs make_graphs(Compilation compilation, const PipelineOptions& options, std::span<const Part> parts);
// Adds the accumulation: the same text, compiled with GradientUse::gather.
void add_micro_batches(ProgramGraphs& graphs, Compilation gathered);
// A part as elaborated, before any pass but the removal of what it does not need: what the interpreter runs.
Graph written_part(const ProgramGraphs& graphs, Part part);
std::span<const Part> parts_for(Purpose purpose);
// Of launches: what a run stores besides outputs.
RunMode run_mode(Part part);

// Throws Error (usage) for a dim that has no value, or is none of the program's or cannot be set; (data) when values break a
// condition.
void check_dims(const Graph& graph, const Bindings& given);

// All dims have values.
ProgramInfo program_info(const ProgramGraphs& graphs);

// A program with a mesh is carried out by its devices: those of this process one after another. `transport`: to the processes that have the
// others; null: this one has all of them.
std::shared_ptr<const ProgramRep> native_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                                 Scheduling scheduling = Scheduling::all, const EincTransport* transport = nullptr);
// Without regard to a mesh.
std::shared_ptr<const ProgramRep> whole_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                                Scheduling scheduling = Scheduling::all);
// As native_program and whole_program. Throw RuntimeFailure (resource) without a GPU.
std::shared_ptr<const ProgramRep> cuda_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                               Scheduling scheduling = Scheduling::all, const EincTransport* transport = nullptr);
std::shared_ptr<const ProgramRep> whole_cuda_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                                     Scheduling scheduling = Scheduling::all);
std::shared_ptr<const ProgramRep> reference_program(const ProgramGraphs& graphs);

std::vector<Error::Diagnostic> to_public(const SourceMap& sources, const Diagnostics& diagnostics);
cost::Report to_public(const Report& report, const Graph& graph);

}  // namespace einc
