// SPDX-License-Identifier: Apache-2.0
// The tree is written out as one expression: of 7 terms ((0+1)+(2+3)) + ((4+5)+6). Elements are added in f32 (f64, and integers in their
// own dtype) and rounded at the end, as the processor's sums are, so that both make the same bits.
#include "compiler/codegen/cuda/mesh_text.h"

#include <fmt/format.h>

#include <bit>
#include <map>

#include "compiler/codegen/cuda/prelude.h"
#include "compiler/codegen/cuda/value_text.h"

namespace einc {
namespace {

bool is_float(DType dtype) { return register_dtype(dtype) == DType::f32 || dtype == DType::f64; }

// Formats that are computed in f32.
bool is_small(DType dtype) { return register_dtype(dtype) == DType::f32 && storage_type(dtype) != "f32"; }
std::string loaded_text(const std::string& element, DType dtype) { return is_small(dtype) ? fmt::format("to_f32({})", element) : element; }

// A NaN wins over every number; of equal ones the left is taken.
std::string_view combine_text(ReduceKind reduce, DType dtype) {
  switch (reduce) {
    case ReduceKind::sum:
      return is_float(dtype) ? "a + b" : "S(u64(a) + u64(b))";
    case ReduceKind::prod:
      return is_float(dtype) ? "a * b" : "S(u64(a) * u64(b))";
    case ReduceKind::max:
      return "a != a ? a : b != b ? b : a < b ? b : a";
    case ReduceKind::min:
      return "a != a ? a : b != b ? b : b < a ? b : a";
    case ReduceKind::any:
      return "S(a != S(0) || b != S(0))";
    case ReduceKind::all:
      return "S(a != S(0) && b != S(0))";
  }
  return "";
}

std::string tree_text(size_t begin, size_t end) {
  if (end - begin == 1) return fmt::format("t{}", begin);
  const size_t middle = begin + std::bit_floor(end - begin - 1);
  return fmt::format("combine({}, {})", tree_text(begin, middle), tree_text(middle, end));
}

std::string loop_text(const std::string& body) {
  return "  for (i64 i = i64(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += i64(gridDim.x) * blockDim.x) {\n" + body + "  }\n";
}

std::string sum_text(ReduceKind reduce, DType dtype, size_t terms) {
  const std::string name = sum_function(reduce, dtype, static_cast<int64_t>(terms));
  // A boolean is a byte, of any value but 0.
  const std::string_view storage = dtype == DType::boolean ? "u8" : storage_type(dtype);
  const std::string_view sum = is_float(dtype) ? register_type(dtype) : storage;
  std::string pointers, loads;
  for (size_t t = 0; t < terms; ++t) {
    pointers += fmt::format("  const {0}* p{1} = reinterpret_cast<const {0}*>(terms[{1}]);\n", storage, t);
    loads += fmt::format("    const {} t{} = {};\n", sum, t, loaded_text(fmt::format("p{}[i]", t), dtype));
  }
  const std::string result = tree_text(0, terms);
  const std::string stored = is_small(dtype) ? fmt::format("to_{}({})", storage, result) : result;
  return fmt::format(
             "extern \"C\" __global__ void {}(const u64* terms, {}* result, i64 count) {{\n  typedef {} S;\n"
             "  const auto combine = [](S a, S b) -> S {{ return {}; }};\n",
             name, storage, sum, combine_text(reduce, dtype)) +
         pointers + loop_text(loads + fmt::format("    result[i] = {};\n", stored)) + "}\n";
}

// x - x is 0 for numbers alone.
std::string check_text(DType dtype) {
  const auto element = [&](const char* array) { return loaded_text(fmt::format("{}[i]", array), dtype); };
  return fmt::format(
             "extern \"C\" __global__ void {0}(const {1}* next, const {1}* old, i64 count, i32* found) {{\n"
             "  bool strange = false, refused = false;\n",
             check_function(dtype), storage_type(dtype)) +
         loop_text(fmt::format("    const {0} x = {1}, y = {2};\n"
                               "    const bool finite = x - x == 0;\n"
                               "    strange = strange || !finite;\n"
                               "    refused = refused || x != x || (!finite && y - y == 0);\n",
                               register_type(dtype), element("next"), element("old"))) +
         "  if (strange) atomicExch(found, 1);\n  if (refused) atomicExch(found + 1, 1);\n}\n";
}

// As runtime/mesh/tree_sum.h rounds it.
std::string scale_text(DType dtype) {
  const std::string_view storage = storage_type(dtype), number = register_type(dtype);
  const std::string scaled = fmt::format("{} * {}(by)", loaded_text("values[i]", dtype), number);
  return fmt::format("extern \"C\" __global__ void {}({}* values, i64 count, f64 by) {{\n", scale_function(dtype), storage) +
         loop_text(fmt::format("    values[i] = {};\n", is_small(dtype) ? fmt::format("to_{}({})", storage, scaled) : scaled)) + "}\n";
}

using Functions = std::map<std::string, std::string>;  // texts, by their names

void add_functions(Functions& functions, const MeshPlan& plan, const MeshShape& mesh) {
  for (const MeshCollective& c : plan.collectives) {
    if (c.kind != CollectiveKind::all_reduce && c.kind != CollectiveKind::reduce_scatter) continue;
    const DType dtype = plan.values[c.to].dtype;
    const int64_t terms = mesh.sizes[static_cast<size_t>(c.mesh_axis)];
    functions.try_emplace(sum_function(c.reduce, dtype, terms), sum_text(c.reduce, dtype, static_cast<size_t>(terms)));
  }
  for (const DeviceTensor& value : plan.values)
    if (const std::string name = check_function(value.dtype); !name.empty()) functions.try_emplace(name, check_text(value.dtype));
}

CudaExecutable executable_of(Functions functions) {
  CudaExecutable made;
  made.prelude = cuda_prelude();
  for (auto& [name, text] : functions) made.program.functions.push_back(name), made.texts.push_back(std::move(text));
  made.by_table.assign(made.texts.size(), false);
  return made;
}

}  // namespace

CudaExecutable mesh_functions(const MeshPlan& plan, const MeshShape& mesh) {
  Functions functions;
  add_functions(functions, plan, mesh);
  return executable_of(std::move(functions));
}

CudaExecutable mesh_functions(const PipelinePlan& pipeline, const MeshShape& mesh) {
  Functions functions;
  for (const PipelineStage& stage : pipeline.stages) {
    for (const StageRound& round : stage.rounds) add_functions(functions, round.plan, mesh);
    for (const uint32_t sum : stage.sums) {
      const DType dtype = stage.rounds[kRoundOfMicrobatches].plan.values[sum].dtype;
      functions.try_emplace(scale_function(dtype), scale_text(dtype));
      functions.try_emplace(sum_function(ReduceKind::sum, dtype, 2), sum_text(ReduceKind::sum, dtype, 2));
    }
  }
  return executable_of(std::move(functions));
}

}  // namespace einc
