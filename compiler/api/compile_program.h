// From a compiled text to something that runs: the graphs of the forward and of the training step, and what lies below them.
#pragma once
#include <einc/einc.h>

#include <filesystem>
#include <optional>

#include "compiler/pipeline/pipeline.h"
#include "runtime/executor/session.h"

namespace einc {

struct Report;  // compiler/report/report.h

// The same text with the roots of each way to run it.
struct ProgramGraphs {
  Compilation compilation;  // without errors
  Graph forward;
  std::optional<Graph> training;  // of a program that minimizes something, unless compiled for inference
  Bindings dims;                  // those given
};

PipelineOptions pipeline_options(const CompileOptions& options);

// Throws Error (program) with the diagnostics when there were errors.
ProgramGraphs make_graphs(Compilation compilation, const PipelineOptions& options, Purpose purpose);

// Throws Error (usage) for a dim that has no value, or is none of the program's or cannot be set; (data) when values break a
// condition.
void check_dims(const Graph& graph, const Bindings& given);

// All dims have values.
ProgramInfo program_info(const ProgramGraphs& graphs);

std::shared_ptr<const ProgramRep> native_program(const ProgramGraphs& graphs, const std::filesystem::path& cache);
std::shared_ptr<const ProgramRep> reference_program(std::shared_ptr<const ProgramGraphs> graphs);

std::vector<Error::Diagnostic> to_public(const SourceMap& sources, const Diagnostics& diagnostics);
cost::Report to_public(const Report& report, const Graph& graph);

}  // namespace einc
