// SPDX-License-Identifier: Apache-2.0
// What --target means.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "compiler/api/compile_program.h"

namespace einc {

inline const std::vector<std::string> kTargets{"cpu", "cuda", "reference"};
inline constexpr const char* kTargetHelp = "cpu: this machine's processor; cuda: an NVIDIA GPU; reference: the interpreter";

// `memory_limit`: of a session, in bytes. `transport`: to the processes that share the program's mesh; null: this one has all of it.
std::shared_ptr<const ProgramRep> program_for(const std::string& target, const std::shared_ptr<const ProgramGraphs>& graphs,
                                              const std::optional<MemoryLimit>& memory_limit = {},
                                              const EincTransport* transport = nullptr);

// FLOP/s of products in the program's precision by the sheet of the GPU that programs run on; 0: a GPU that the table does not have.
double gpu_peak_flops(Policy policy);
// Bytes of the GPU's memory that are taken, by any process.
int64_t gpu_bytes_taken();
std::string gpu_name();

}  // namespace einc
