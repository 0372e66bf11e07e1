// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/cpu_target.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "compiler/codegen/llvm/error.h"
#include "runtime/base/failure.h"
#include "runtime/base/matrix_tiles.h"
#include "runtime/cpu/cpu_features.h"

namespace einc {
namespace {

// Part of every cache key: a change here makes old objects unusable.
constexpr const char* kPasses =
    "always-inline,globaldce,"
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,"
    "loop-mssa(licm),early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg<sink-common-insts>)";

// Where multiplying pairs of bf16 takes twice as long as multiplying them as f32: measured on the second, whose core the others have.
constexpr std::string_view kSlowPairs[] = {"sapphirerapids", "emeraldrapids", "graniterapids", "graniterapids-d"};

// Its units do a vector of 512 bits in two cycles.
constexpr std::string_view kHalves = "znver4";

constexpr const char* kVariable = "EINC_CPU";

std::unique_ptr<llvm::TargetMachine> make_machine(const CpuTarget& target, const std::string& features) {
  llvm::orc::JITTargetMachineBuilder builder{llvm::Triple(target.triple())};
  builder.setCPU(target.cpu());
  builder.addFeatures({features});
  builder.setCodeGenOptLevel(llvm::CodeGenOptLevel::Aggressive);
  builder.setRelocationModel(llvm::Reloc::PIC_);
  builder.setCodeModel(llvm::CodeModel::Small);
  return take(builder.createTargetMachine());
}

std::vector<std::string> enabled_features(const CpuTarget& target, const std::string& features) {
  std::vector<std::string> names;
  for (const llvm::SubtargetFeatureKV& feature : make_machine(target, features)->getMCSubtargetInfo()->getEnabledProcessorFeatures())
    names.emplace_back(feature.Key);
  return names;
}

bool has(const std::vector<std::string>& features, std::string_view name) {
  return std::find(features.begin(), features.end(), name) != features.end();
}

std::string run_codegen(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  EINC_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, type), "LLVM cannot write this kind of file");
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

}  // namespace

const CpuTarget& CpuTarget::found() {
  static const CpuTarget target = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::orc::JITTargetMachineBuilder found = take(llvm::orc::JITTargetMachineBuilder::detectHost());
    CpuTarget host;
    host.triple_ = found.getTargetTriple().str();
    host.cpu_ = found.getCPU();
    host.features_ = found.getFeatures().getString();
    if (const long bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE); bytes > 0) host.processor_.level1_bytes = bytes;
    if (const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE); bytes > 0) host.processor_.level2_bytes = bytes;
    if (!enable_matrix_tiles()) host.features_ += ",-amx-tile,-amx-bf16,-amx-int8";
    host.describe();
    return host;
  }();
  return target;
}

const CpuTarget& CpuTarget::host() {
  static const CpuTarget target = [] {
    const char* asked = std::getenv(kVariable);
    if (!asked || !*asked || asked == std::string_view("host")) return found();
    const auto refuse = [&](const std::string& why) {
      throw RuntimeFailure(FailureKind::resource, fmt::format("{}={}: {}", kVariable, asked, why));
    };
    const std::optional<CpuTarget> lesser = named(asked);
    if (!lesser) refuse("no processor of this name with AVX2 and FMA: give x86-64-v3, x86-64-v4 or LLVM's name of one");
    if (const std::string missing = missing_cpu_features(lesser->required_features()); !missing.empty())
      refuse("this processor lacks " + missing);
    return *lesser;
  }();
  return target;
}

std::optional<CpuTarget> CpuTarget::named(const std::string& cpu) {
  if (cpu == "host") return host();
  CpuTarget target;
  target.triple_ = found().triple();
  if (!make_machine(found(), "")->getMCSubtargetInfo()->isCPUStringValid(cpu)) return std::nullopt;
  target.cpu_ = cpu;
  target.describe();
  const std::vector<std::string> enabled = enabled_features(target, target.features_);
  const bool serves = has(enabled, "avx2") && has(enabled, "fma");
  return serves ? std::optional(target) : std::nullopt;
}

void CpuTarget::describe() {
  const std::vector<std::string> enabled = enabled_features(*this, features_);
  if (has(enabled, "avx")) processor_.vector_bits = 256;
  if (has(enabled, "avx512f")) processor_.vector_bits = 512, processor_.vector_registers = 32;
  const bool bf16 = has(enabled, "avx512f") && has(enabled, "avx512bf16");
  processor_.bf16_pairs = bf16 && std::find(std::begin(kSlowPairs), std::end(kSlowPairs), cpu_) == std::end(kSlowPairs);
  if (cpu_ == kHalves) processor_.unit_bits = processor_.vector_bits / 2;
  processor_.matrix_tiles = bf16 && has(enabled, "amx-tile") && has(enabled, "amx-bf16");
  key_ = triple_ + ' ' + cpu_ + ' ' + features_ + fmt::format(" {}K {}K", processor_.level1_bytes >> 10, processor_.level2_bytes >> 10) +
         " LLVM " LLVM_VERSION_STRING " " + kPasses;
}

std::string CpuTarget::required_features() const {
  const std::vector<std::string> enabled = enabled_features(*this, features_);
  std::string required;
  for (const std::string_view name : cpu_feature_names())
    if (has(enabled, name)) (required += required.empty() ? "" : " ") += name;
  return required;
}

void CpuTarget::adopt(llvm::Module& module) const {
  module.setTargetTriple(triple_);
  module.setDataLayout(make_machine(*this, features_)->createDataLayout());
}

void CpuTarget::optimize(llvm::Module& module) const {
  std::string complaints;
  llvm::raw_string_ostream complaint_stream(complaints);
  EINC_CHECK(!llvm::verifyModule(module, &complaint_stream), "LLVM IR is not well formed: {}", complaints);
  for (llvm::Function& function : module) {
    if (function.isDeclaration()) continue;
    function.addFnAttr("target-cpu", cpu_);
    function.addFnAttr("target-features", features_);
    function.addFnAttr("prefer-vector-width", std::to_string(processor_.vector_bits));
    function.setDoesNotThrow();
  }
  const std::unique_ptr<llvm::TargetMachine> machine = make_machine(*this, features_);
  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  take(builder.parsePassPipeline(passes, kPasses));
  passes.run(module, modules);
}

std::string CpuTarget::object(llvm::Module& module) const {
  return run_codegen(module, *make_machine(*this, features_), llvm::CodeGenFileType::ObjectFile);
}

std::string CpuTarget::assembly(llvm::Module& module) const {
  return run_codegen(module, *make_machine(*this, features_), llvm::CodeGenFileType::AssemblyFile);
}

std::string llvm_text(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

}  // namespace einc
