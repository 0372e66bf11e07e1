// SPDX-License-Identifier: Apache-2.0
// A session for Python: it holds the arrays that its tensors lie in, runs without the interpreter's lock, and refuses two threads at once.
#pragma once
#include <einc/einc.h>

#include <atomic>
#include <map>

#include "compiler/python/arrays.h"

namespace einc::python {

enum class Role : uint8_t { input, param, state, output, gradient };
enum class Handing : uint8_t { views, copies };  // of results

class PythonSession {
 public:
  PythonSession(const Model& model, Target target, int threads, Handing handing, const ThreadTeam& team);

  void init(uint64_t seed);
  void seed(uint64_t seed);
  void set(const std::string& name, nb::handle array);
  // The tensor lies in the array from now on, as long as it is row-major. An input's array that is not, or that is a view of this session's
  // own memory, is copied: a run would read what it overwrites.
  void bind(const std::string& name, nb::handle array);
  // The output is made in the array, or copied there, in each run until release_outputs.
  void bind_output(const std::string& name, nb::handle array);
  void release_outputs();
  LoadedWeights load(const std::string& path, const std::string& names);
  void save(const std::string& path, Saved what);
  void save_checkpoint(const std::string& folder, int keep);
  bool resume(const std::string& folder);
  void run();
  void forward();
  void backward();
  double step();
  double evaluate();
  double loss();
  uint64_t steps();
  // As views of the session's memory, or copies: where they were asked for, and of targets whose results come and go.
  nb::object read(Role role, const std::string& name);

 private:
  // Alone in the session, and without the interpreter's lock while the function runs. Throws Error (usage) where another thread is in it.
  template <class Function>
  auto alone(Function&& function);
  TensorView tensor(Role role, const std::string& name) const;
  bool is_input(const std::string& name) const;
  bool was_handed_out(const ReadArray& array) const;
  nb::object owner_of(const TensorView& tensor);

  std::map<std::string, ReadArray> held_;          // arrays that tensors lie in: they outlive the session
  std::map<std::string, ReadArray> outputs_;       // that bound outputs lie in
  std::map<const std::byte*, size_t> handed_out_;  // views of this session's memory: where they begin, and their bytes
  Session session_;
  Handing handing_;
  std::atomic<bool> busy_ = false;
};

}  // namespace einc::python
