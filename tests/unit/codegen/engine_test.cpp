// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/engine.h"

#include <doctest/doctest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SourceMgr.h>

#include <cmath>
#include <thread>
#include <vector>

#include "compiler/codegen/llvm/cpu_target.h"
#include "runtime/base/check.h"

using namespace einc;

namespace {

struct Parsed {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;

  explicit Parsed(const char* text) {
    llvm::SMDiagnostic diagnostic;
    module = llvm::parseAssemblyString(text, diagnostic, context);
    REQUIRE_MESSAGE(module != nullptr, diagnostic.getMessage().str());
    CpuTarget::host().adopt(*module);
    CpuTarget::host().optimize(*module);
  }
};

std::string object_of(const char* text) { return CpuTarget::host().object(*Parsed(text).module); }

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

constexpr const char* kAddOne = R"(
  define i64 @f(i64 %x) {
    %y = add i64 %x, 1
    ret i64 %y
  })";

int64_t twice(int64_t x) { return 2 * x; }
int64_t thrice(int64_t x) { return 3 * x; }

constexpr const char* kCallsHost = R"(
  declare i64 @host(i64)
  define i64 @f(i64 %x) {
    %y = call i64 @host(i64 %x)
    ret i64 %y
  })";

}  // namespace

TEST_CASE("engine: runs what an object defines, and only that") {
  Engine engine({});
  const auto code = engine.load(object_of(kAddOne));
  CHECK(code->function<int64_t(int64_t)>("f")(41) == 42);
  CHECK(message_of([&] { code->address("g"); }).find("no function 'g'") != std::string::npos);
}

TEST_CASE("engine: constants and tables of an object are found wherever it is loaded") {
  Engine engine({});
  const auto code = engine.load(object_of(R"(
    @table = private constant [4 x double] [double 1.5, double 2.5, double 3.5, double 4.5]
    define double @f(i64 %i) {
      %p = getelementptr double, ptr @table, i64 %i
      %x = load double, ptr %p
      %y = fadd double %x, 0.1
      ret double %y
    })"));
  CHECK(code->function<double(int64_t)>("f")(2) == 3.5 + 0.1);
}

TEST_CASE("engine: objects with equal names live side by side and see the engine's symbols") {
  const std::vector<EngineSymbol> two{{"host", reinterpret_cast<const void*>(&twice)}},
      three{{"host", reinterpret_cast<const void*>(&thrice)}};
  std::unique_ptr<LoadedCode> plain, doubled, tripled;
  {
    Engine first(two), second(three);
    plain = first.load(object_of(kAddOne));
    doubled = first.load(object_of(kCallsHost));
    tripled = second.load(object_of(kCallsHost));
  }
  CHECK(plain->function<int64_t(int64_t)>("f")(5) == 6);
  CHECK(doubled->function<int64_t(int64_t)>("f")(5) == 10);
  CHECK(tripled->function<int64_t(int64_t)>("f")(5) == 15);
}

TEST_CASE("engine: symbols of the process are out of reach, but for LLVM's memory functions") {
  Engine engine({});
  const std::string message = message_of([&] { engine.load(object_of(kCallsHost)); });
  CHECK(message.find("host") != std::string::npos);
  CHECK(message_of([&] {
          engine.load(object_of(
              "declare double @cos(double)\ndefine double @f(double %x) {\n %y = call double @cos(double %x)\n ret double %y\n}"));
        }).find("cos") != std::string::npos);
  const auto copy = engine.load(object_of(R"(
    declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
    define void @f(ptr %to, ptr %from, i64 %n) {
      call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %n, i1 false)
      ret void
    })"));
  const std::string from(1000, 'x');
  std::string to(1000, ' ');
  copy->function<void(char*, const char*, int64_t)>("f")(to.data(), from.data(), 1000);
  CHECK(to == from);
}

TEST_CASE("engine: threads load at once") {
  Engine engine({});
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i)
        if (engine.load(object_of(kAddOne))->function<int64_t(int64_t)>("f")(t) != t + 1) std::abort();
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("cpu target: ill-formed IR is refused, with LLVM's words") {
  llvm::LLVMContext context;
  llvm::Module module("bad", context);
  llvm::Function* function =
      llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), false), llvm::Function::ExternalLinkage, "f", module);
  llvm::BasicBlock::Create(context, "entry", function);
  CHECK(message_of([&] { CpuTarget::host().optimize(module); }).find("does not have terminator") != std::string::npos);
}

TEST_CASE("cpu target: full-width vectors, and fused only where the flag allows it") {
  const int lanes = CpuTarget::host().processor().vector_bits / 32;
  const std::string type = "<" + std::to_string(lanes) + " x float>";
  const auto text = [&](const std::string& flag) {
    return "define " + type + " @f(" + type + " %a, " + type + " %b, " + type + " %c) {\n %p = fmul " + flag + type +
           " %a, %b\n %s = fadd " + flag + type + " %p, %c\n ret " + type + " %s\n}";
  };
  const auto assembly = [&](const std::string& flag) { return CpuTarget::host().assembly(*Parsed(text(flag).c_str()).module); };
  const std::string strict = assembly(""), fused = assembly("contract ");
  CHECK(strict.find("vfm") == std::string::npos);
  CHECK(strict.find("mulps") != std::string::npos);
  if (lanes >= 8) {
    CHECK(fused.find("vfmadd") != std::string::npos);
    CHECK(fused.find(lanes == 16 ? "zmm" : "ymm") != std::string::npos);
  }
  CHECK(CpuTarget::host().key().find(CpuTarget::host().cpu()) != std::string::npos);
  CHECK(llvm_text(*Parsed(kAddOne).module).find("define i64 @f(i64 %x)") != std::string::npos);
}

TEST_CASE("cpu target: an object's bytes depend on the module alone") { CHECK(object_of(kCallsHost) == object_of(kCallsHost)); }
