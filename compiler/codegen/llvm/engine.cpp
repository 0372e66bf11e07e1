// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/engine.h"

#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "compiler/codegen/llvm/cpu_target.h"
#include "compiler/codegen/llvm/error.h"

namespace einc {
namespace {

llvm::JITSymbolFlags callable() { return llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable; }

std::vector<std::string> defined_functions(llvm::MemoryBufferRef object) {
  const auto file = take(llvm::object::ObjectFile::createObjectFile(object));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : file->symbols()) {
    const uint32_t flags = take(symbol.getFlags());
    if (flags & llvm::object::SymbolRef::SF_Undefined || !(flags & llvm::object::SymbolRef::SF_Global)) continue;
    if (take(symbol.getType()) == llvm::object::SymbolRef::ST_Function) names.push_back(take(symbol.getName()).str());
  }
  return names;
}

}  // namespace

struct Engine::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  llvm::orc::JITDylib* host = nullptr;
  std::atomic<int> loaded{0};

  // What LLVM reports besides returning an error: which symbols are missing, for one.
  std::mutex mutex;
  std::string complaint;
};

struct LoadedCode::Impl {
  std::shared_ptr<Engine::Impl> engine;
  llvm::orc::JITDylib* library = nullptr;
  std::map<std::string, void*, std::less<>> functions;
};

Engine::Engine(std::span<const EngineSymbol> symbols) : impl_(std::make_shared<Impl>()) {
  CpuTarget::host();
  llvm::orc::LLJITBuilder builder;
  builder.setLinkProcessSymbolsByDefault(false);
  builder.setPlatformSetUp(llvm::orc::setUpInactivePlatform);
  impl_->jit = take(builder.create());
  llvm::orc::ExecutionSession& session = impl_->jit->getExecutionSession();
  session.setErrorReporter([impl = impl_.get()](llvm::Error error) {
    const std::lock_guard lock(impl->mutex);
    impl->complaint += llvm::toString(std::move(error)) + ' ';
  });
  impl_->host = &session.createBareJITDylib("host");
  llvm::orc::SymbolMap table;
  const auto add = [&](std::string_view name, const void* address) {
    table[impl_->jit->mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(address), callable()};
  };
  add("memcpy", reinterpret_cast<const void*>(&std::memcpy));
  add("memmove", reinterpret_cast<const void*>(&std::memmove));
  add("memset", reinterpret_cast<const void*>(&std::memset));
  for (const EngineSymbol& symbol : symbols) add(symbol.name, symbol.address);
  take(impl_->host->define(llvm::orc::absoluteSymbols(std::move(table))));
}

Engine::~Engine() = default;

std::unique_ptr<LoadedCode> Engine::load(std::string_view object) {
  auto bytes = llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), "kernels");
  llvm::orc::ExecutionSession& session = impl_->jit->getExecutionSession();
  llvm::orc::SymbolLookupSet names;
  for (const std::string& name : defined_functions(*bytes)) names.add(impl_->jit->mangleAndIntern(name));
  auto code = std::make_unique<LoadedCode::Impl>();
  code->engine = impl_;
  code->library = &session.createBareJITDylib(fmt::format("code {}", impl_->loaded++));
  code->library->addToLinkOrder(*impl_->host);
  auto loaded = std::make_unique<LoadedCode>(std::move(code));
  LoadedCode::Impl& held = *loaded->impl_;
  take(impl_->jit->addObjectFile(*held.library, std::move(bytes)));
  auto found = session.lookup({{held.library, llvm::orc::JITDylibLookupFlags::MatchExportedSymbolsOnly}}, std::move(names));
  if (!found) {
    const std::string error = llvm::toString(found.takeError());
    const std::lock_guard lock(impl_->mutex);
    EINC_CHECK(false, "LLVM cannot link: {}{}", std::exchange(impl_->complaint, {}), error);
  }
  for (const auto& [name, symbol] : *found) held.functions.emplace((*name).str(), symbol.getAddress().toPtr<void*>());
  return loaded;
}

LoadedCode::LoadedCode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

LoadedCode::~LoadedCode() {
  llvm::orc::ExecutionSession& session = impl_->engine->jit->getExecutionSession();
  if (llvm::Error error = session.removeJITDylib(*impl_->library)) session.reportError(std::move(error));
}

void* LoadedCode::address(std::string_view name) const {
  const auto it = impl_->functions.find(name);
  EINC_CHECK(it != impl_->functions.end(), "the object defines no function '{}'", name);
  return it->second;
}

}  // namespace einc
