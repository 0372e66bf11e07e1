// SPDX-License-Identifier: Apache-2.0
// Objects linked into this process by LLVM's ORC JIT. An object sees the symbols given to the engine, memcpy, memmove and
// memset (which LLVM may call on its own), and nothing else of the process.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace einc {

struct EngineSymbol {
  std::string name;
  const void* address;
};

// The code of one object; it stays until this is destroyed.
class LoadedCode {
 public:
  struct Impl;
  explicit LoadedCode(std::unique_ptr<Impl> impl);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // The address of a function that the object defines.
  void* address(std::string_view name) const;

  template <class Function>
  Function* function(std::string_view name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  friend class Engine;
  std::unique_ptr<Impl> impl_;
};

// May be used from several threads at once.
class Engine {
 public:
  struct Impl;
  explicit Engine(std::span<const EngineSymbol> symbols);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Objects may define the same names; what they miss is an InternalError that names it. The code may outlive the engine.
  std::unique_ptr<LoadedCode> load(std::string_view object);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace einc
