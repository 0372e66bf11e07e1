// SPDX-License-Identifier: Apache-2.0
// Programs, sessions and tensors: all that it takes to run compiled programs. It stands alone: a program compiled ahead of
// time (`einc FILE --emit=obj -o model.o`) needs this header and the target einc::runtime, and neither LLVM nor the compiler.
//
//   einc::Session session(model::program());      // model.h, written beside model.o; or of a Model (einc/einc.h)
//   session.init(/*seed=*/1);
//   session.set("x", std::span<const float>(batch));
//   session.run();
//   std::span<const float> y = session.output("y").as<float>();
//
// All functions throw Error and nothing else; of a program or session that was moved from, all but assignment throw it (usage).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "einc/error.h"
#include "einc/tensor.h"
#include "einc/thread_team.h"

struct DLManagedTensor;  // <dlpack/dlpack.h>

namespace einc {

class ProgramRep;
class SessionRep;

// What an object file made by --emit=obj holds. Its header declares the object; a Program is made from it.
struct CompiledObject {
  uint32_t version;
  const char* features;  // that the processor must have: "avx2 fma ..."
  const unsigned char* image;
  uint64_t image_bytes;
  void (*const* functions)();
  uint64_t function_count;
};

// A compiled program. Copies are handles to the same one; it may be shared by sessions on any number of threads.
class Program {
 public:
  // The object is static data: it outlives the program. Throws Error (resource) when this processor lacks a feature that the
  // object was made for, or when the object is of another version of einc than this library.
  explicit Program(const CompiledObject& object);

  const std::string& name() const;                                   // the file
  const std::vector<std::pair<std::string, int64_t>>& dims() const;  // all with their values, in the order of their declarations
  const std::vector<TensorInfo>& inputs() const;
  const std::vector<TensorInfo>& params() const;
  const std::vector<TensorInfo>& states() const;  // of the program and, when it trains, of its optimizer
  const std::vector<TensorInfo>& outputs() const;
  bool trains() const;  // has a training step

 protected:
  explicit Program(std::shared_ptr<const ProgramRep> rep) : rep_(std::move(rep)) {}

 private:
  friend class Session;
  const ProgramRep& rep() const;
  std::shared_ptr<const ProgramRep> rep_;
};

struct SessionOptions {
  int threads = 0;    // 0: as many as the machine has; at most 1024. Results are the same for any number
  int device = -1;    // of a program for NVIDIA GPUs: the number of its GPU, alike to that it was compiled for; -1: $EINC_CUDA_DEVICE, or 0
  ThreadTeam team{};  // whose threads the session runs on; empty: its own
};

// What a file did not settle.
struct LoadedWeights {
  std::vector<std::string> missing;  // params that it has not: they keep their values
  std::vector<std::string> unused;   // its tensors that are no param or state
};
enum class Saved : uint8_t { params, params_and_states };

// A program with values for its tensors. To be used by one thread at a time; sessions do not disturb each other.
class Session {
 public:
  // Inputs, params and states are zero until they are set. Throws Error (resource) when the memory is not to be had.
  explicit Session(const Program& program, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Program& program() const { return program_; }

  // Params and states as their initialisers say; the random draws of runs and steps follow from the same seed.
  void init(uint64_t seed);

  // The random draws of runs from here on follow from this seed instead; params and states stay.
  void seed(uint64_t seed);

  // Values of an input, param or state, copied into the session's own memory. Throws Error (usage): no tensor of this name, another dtype
  // or shape.
  void set(std::string_view name, const TensorView& values);
  // Elements in row-major order; as many as the tensor has.
  template <class T>
  void set(std::string_view name, std::span<const T> values) {
    set_elements(name, dtype_of<T>(), values.data(), values.size());
  }
  template <class T>
  void set(std::string_view name, const std::vector<T>& values) {
    set(name, std::span<const T>(values));
  }

  // Params and states by their paths from a .safetensors or .npz file, copied in; floats of another format are rounded to the
  // nearest. `names`: a file that says what the tensors are called there, see README.md; empty: as here. Nothing is changed
  // on an Error: data (a damaged file, another shape), resource (it cannot be read).
  LoadedWeights load(const std::string& path, const std::string& names = "");
  // Writes a .safetensors file: whole or not at all. Throws Error (resource).
  void save(const std::string& path, Saved what = Saved::params) const;

  // A checkpoint: params, states, seed and the number of steps done, as `folder`/step-N, which is there whole or not at all. Of
  // those before it the newest `keep` - 1 stay. Throws Error (resource, usage).
  void save_checkpoint(const std::string& folder, int keep = 2) const;
  // Goes on from the newest whole checkpoint of the folder as if nothing had happened in between; how many steps that were,
  // steps() says. False: there is none, and nothing changed. Throws Error: data (another program's, or none is whole), resource.
  bool resume(const std::string& folder);
  uint64_t steps() const;  // done since init, or in the life of the checkpoint

  // From now on the tensor lies in the caller's memory, which outlives the session or the next bind of this name: nothing is
  // copied, and a training step writes new params and states there. The memory is aligned as its elements are. Throws as set.
  template <class T>
  void bind(std::string_view name, std::span<T> memory) {
    static_assert(!std::is_const_v<T>, "bind writable memory, or an input by bind_input");
    bind_elements(name, dtype_of<T>(), memory.data(), memory.size());
  }
  void bind(std::string_view name, DType dtype, const std::vector<int64_t>& shape, void* memory);
  // An input that lies in memory that may only be read.
  template <class T>
  void bind_input(std::string_view name, std::span<const T> memory) {
    bind_input_elements(name, dtype_of<T>(), memory.data(), memory.size());
  }
  // A tensor of another library: of the processor's memory, row-major without gaps. The session takes it over and calls its
  // deleter when it is done with it; on an Error it stays the caller's.
  void bind(std::string_view name, DLManagedTensor* tensor);

  // The output is in the caller's memory after each run or step, which outlives the session or the next bind_output of this name: it is
  // made there, or copied there where it is an input, param, state or another output too. Null: it is in the session's own memory again.
  // Throws Error (usage): another dtype or shape.
  void bind_output(std::string_view name, DType dtype, const std::vector<int64_t>& shape, void* memory);

  // Params and states that the other session has too lie in its memory from now on: two specialisations of one program, say for many
  // tokens and for one, work on the same values. The other session outlives this one, binds none of them anew, and does not run at the
  // same time. Throws Error (usage): one has another dtype or shape there, and nothing is changed.
  void share(Session& other);

  // Computes the outputs from inputs, params and states, and the new values of the program's own states.
  void run();
  // The two halves of run() of a program compiled for Purpose::pullback: forward() makes the program's outputs and
  // reads no cotangents; backward(), once they are there, pulls them back. It goes on from what the last forward() has left, of inputs and
  // params that are still the same, and uses it up. Throw Error (usage): another program, or no forward() before this backward().
  void forward();
  void backward();
  // The minimized loss of inputs, params and states as they are, without dropout. These do not change; the outputs and gradients of the
  // last step are overwritten, since both run in the same memory. Throws Error (usage) when the program has none.
  double evaluate();
  // One training step: loss, gradients, and new params and states. The outputs are those of the training program (dropout is
  // on). Throws Error (usage) when the program has none.
  void step();

  // Values as they are now: they stay where they are until the session changes them, so copy what must last. Throw Error (usage) when there
  // are none: before a run or step, or overwritten.
  TensorView input(std::string_view name) const;
  TensorView param(std::string_view name) const;
  TensorView state(std::string_view name) const;
  TensorView output(std::string_view name) const;    // of the last run or step
  TensorView gradient(std::string_view name) const;  // of the minimized loss by a param, before clipping, in the last step
  TensorView read(std::string_view name) const;      // an output, param, state or input
  double loss() const;                               // of the last step

 private:
  void set_elements(std::string_view name, DType dtype, const void* data, size_t count);
  void bind_elements(std::string_view name, DType dtype, void* data, size_t count);
  void bind_input_elements(std::string_view name, DType dtype, const void* data, size_t count);

  SessionRep& rep() const;
  Program program_;
  std::unique_ptr<SessionRep> rep_;
};

}  // namespace einc
