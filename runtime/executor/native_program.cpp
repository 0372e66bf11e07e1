#include "runtime/executor/native_program.h"

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/executor/executor.h"

namespace einc {
namespace {

BufferRole role_of(SourceKind kind) {
  return kind == SourceKind::input ? BufferRole::input : kind == SourceKind::param ? BufferRole::param : BufferRole::state;
}

class NativeRunner : public Runner {
 public:
  NativeRunner(const ProgramInfo& info, const NativePart& forward, const NativePart* training, std::shared_ptr<ThreadPool> pool)
      : info_(info), forward_(forward.program), run_(forward.program, forward.functions, pool, Sources::bound) {
    if (training != nullptr) {
      training_ = &training->program;
      train_.emplace(training->program, training->functions, pool, Sources::bound);
    }
  }

  void bind(Source source, void* memory) override {
    const std::string& name = sources_of(info_, source.kind)[source.index].name;
    const auto bind_in = [&](Executor& executor) {
      const int buffer = executor.find(role_of(source.kind), name);
      if (buffer >= 0) executor.bind(static_cast<uint32_t>(buffer), static_cast<std::byte*>(memory));
    };
    bind_in(run_);
    if (train_) bind_in(*train_);
  }

  void run(uint64_t seed, uint64_t step) override {
    run_.run(seed, step);
    trained_last_ = false;
  }

  void train(uint64_t seed, uint64_t step) override {
    train_->run(seed, step);
    trained_last_ = true;
  }

  TensorView output(uint32_t index) const override {
    const Executable& program = trained_last_ ? *training_ : forward_;
    return view(trained_last_ ? *train_ : run_, program, program.outputs[index].buffer);
  }

  TensorView gradient(uint32_t param) const override {
    for (const ExecutableOutput& gradient : training_->gradients)
      if (gradient.name == info_.params[param].name) return view(*train_, *training_, gradient.buffer);
    throw RuntimeFailure(FailureKind::data, fmt::format("'{}' has no gradient: it is not trained", info_.params[param].name));
  }

  TensorView loss() const override { return view(*train_, *training_, static_cast<uint32_t>(training_->loss)); }

 private:
  static TensorView view(const Executor& executor, const Executable& program, uint32_t buffer) {
    const ExecutableBuffer& b = program.buffers[buffer];
    return {b.dtype, b.shape, executor.address(buffer)};
  }

  const ProgramInfo& info_;
  const Executable& forward_;
  const Executable* training_ = nullptr;
  Executor run_;
  std::optional<Executor> train_;
  bool trained_last_ = false;
};

}  // namespace

NativeProgram::NativeProgram(ProgramInfo program, NativePart forward, std::optional<NativePart> training)
    : ProgramRep(std::move(program)), forward_(std::move(forward)), training_(std::move(training)) {
  EINC_CHECK(info.trains == training_.has_value(), "'{}' trains: {}", info.name, info.trains);
}

std::unique_ptr<Runner> NativeProgram::start(std::shared_ptr<ThreadPool> pool) const {
  return std::make_unique<NativeRunner>(info, forward_, training_ ? &*training_ : nullptr, std::move(pool));
}

}  // namespace einc
