// SPDX-License-Identifier: Apache-2.0
// Functions that programs of one process share, and which must not.
#include "compiler/codegen/llvm/native_code.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/loaded_functions.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/pipeline.h"

using namespace einc;

namespace {

// A compiled program with the graph that it is of.
class Compiled {
 public:
  explicit Compiled(const std::string& text, const std::optional<Processor>& processor = {}) {
    Compilation compilation = compile_text("m.ein", text, {});
    REQUIRE(compilation.graph.has_value());
    graph_ = std::make_unique<Graph>(std::move(*compilation.graph));
    CpuOptions options;
    options.processor = processor;
    options.cache.clear();
    program_ = std::make_unique<CpuProgram>(*graph_, Bindings{}, options);
  }

  const std::vector<KernelFunction*>& functions() const { return program_->functions(); }
  const Executable& program() const { return program_->program(); }
  const std::vector<PlannedKernel>& kernels() const { return program_->lowered().lowered.functions; }

 private:
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<CpuProgram> program_;
};

size_t shared(const Compiled& a, const Compiled& b) {
  return static_cast<size_t>(
      std::ranges::count_if(a.functions(), [&](KernelFunction* f) { return std::ranges::find(b.functions(), f) != b.functions().end(); }));
}

// An object whose one function, `f`, does nothing.
std::shared_ptr<const LoadedCode> load_nothing(Engine& engine) {
  llvm::LLVMContext context;
  llvm::Module module("nothing", context);
  CpuTarget::host().adopt(module);
  llvm::IRBuilder<> b(context);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), false), llvm::Function::ExternalLinkage, "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  b.CreateRetVoid();
  return engine.load(CpuTarget::host().object(module));
}

constexpr const char* kProduct = R"(
input x: [rows=64 wide=64]
param w: [wide out=64] ~ normal(std = 0.1)
y = einsum(x, w, "rows wide, wide out -> rows out")
output z = )";

}  // namespace

TEST_CASE("programs of a process share the functions that they have in common") {
  const Compiled one(std::string(kProduct) + "softmax(y, out)"), other(std::string(kProduct) + "max(y, out) * 3");
  CHECK(shared(one, other) > 0);
  CHECK(shared(one, other) < one.functions().size());
  const Compiled again(std::string(kProduct) + "softmax(y, out)");
  CHECK((again.functions() == one.functions()));
}

// Several pieces of eight; of the second program a piece of one is compiled.
TEST_CASE("a program of many functions has each from the piece that it was compiled in") {
  std::string text = "input x: f32[n=100]\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("output y{} = cumsum(x * {}, n)\n", i, i + 2);
  const Compiled all(text), more(text + "output last = cumsum(x * 77, n)\n");
  const std::set<KernelFunction*> different(all.functions().begin(), all.functions().end());
  CHECK(different.size() == all.functions().size());
  CHECK(different.count(nullptr) == 0);
  CHECK(shared(all, more) == all.functions().size());
  CHECK(more.functions().size() > all.functions().size());
}

TEST_CASE("functions of one kernel that are planned otherwise are not shared") {
  const std::string text = "input x: f32[n=500000]\noutput y = x * 2\n";
  Processor small = native_processor(), large = small;
  small.streamed_bytes = 1, large.streamed_bytes = int64_t{1} << 40;
  const Compiled past(text, small), kept(text, large);
  REQUIRE(past.kernels().size() == 1);
  CHECK(past.kernels()[0].text() != kept.kernels()[0].text());
  CHECK(shared(past, kept) == 0);
}

TEST_CASE("a program's launches say what one thread does alone") {
  const Compiled few("input x: f32[n=1000]\noutput y = x * 2\n"), many("input x: f32[n=1000000]\noutput y = x * 2\n");
  CHECK(few.program().launches[0].alone);
  CHECK_FALSE(many.program().launches[0].alone);
}

TEST_CASE("code that nobody has is kept up to a limit, and forgotten behind it") {
  Engine engine({});
  const auto adds = [&](LoadedFunctions& functions, const std::string& text, size_t bytes) {
    const auto code = load_nothing(engine);
    functions.add(code, bytes, std::vector<LoadedFunctions::Named>{{"f", text}});
    return code;
  };
  LoadedFunctions functions(100);
  adds(functions, "first", 60);
  CHECK(functions.find("first"));
  CHECK_FALSE(functions.find("second"));
  const auto held = adds(functions, "second", 60);
  CHECK_FALSE(functions.find("first"));
  adds(functions, "third", 101);
  CHECK_FALSE(functions.find("third"));
  REQUIRE(functions.find("second"));  // whose code is held here
  CHECK(functions.find("second")->code == held);
  CHECK((functions.find("second")->function == held->function<KernelFunction>("f")));
}
