// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/mirror.h"
#include "runtime/executor/find_fault.h"

namespace einc {
namespace {

constexpr const char* kPartNames[kParts] = {"the forward run", "the evaluation", "the training step", "the micro-batches"};

// Steps and micro-batches alternate, and nothing of one is read after the other began.
bool is_of_steps(Part part) { return part == Part::training || part == Part::accumulation; }

// Where each part's own memory lies: in a block of the parts that share one.
int64_t own_bytes(const PerPart<CudaExecutable>& parts, Part part) {
  int64_t bytes = 0;
  for (const Part other : {Part::forward, Part::evaluation, Part::training, Part::accumulation})
    if (parts[other] && (other == part || (is_of_steps(other) && is_of_steps(part))))
      bytes = std::max(bytes, parts[other]->program.own_bytes);
  return bytes;
}

// Parts run one after another, so that one does for all.
int64_t workspace_bytes(const PerPart<CudaExecutable>& parts) {
  int64_t bytes = 0;
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& part = parts[static_cast<Part>(p)]) bytes = std::max(bytes, part->workspace_bytes);
  return bytes;
}

class CudaRunner : public Runner {
 public:
  CudaRunner(const ProgramInfo& info, const PerPart<CudaExecutable>& parts, const PerPart<CudaKernels>& kernels, const cuda::Gpu& gpu)
      : info_(info),
        parts_(parts),
        kernels_(kernels),
        gpu_(gpu),
        stream_(std::make_shared<const cuda::OwnedStream>(own_stream())),
        copies_(own_stream()) {
    const cuda::GpuScope scope(gpu_);
    with_plan([&] {
      for (const TensorInfo& input : info.inputs) inputs_.emplace_back(input.bytes());
    });
    mirrors_[0].resize(info.params.size());
    mirrors_[1].resize(info.states.size());
  }
  ~CudaRunner() override {
    const cuda::GpuScope scope(gpu_);
    cuda::driver().cuStreamSynchronize(stream_->get());
  }

  void bind(Source source, void* memory) override {
    const cuda::GpuScope scope(gpu_);
    if (source.kind == SourceKind::input) return inputs_[source.index].set_host(memory);
    forget(source);
    cuda::driver().cuStreamSynchronize(stream_->get());  // a step may be under way where the values lie now
    std::shared_ptr<CudaMirror>& held = mirror(source);
    const int64_t bytes = sources_of(info_, source.kind)[source.index].bytes();
    with_plan([&] { held = CudaMirror::of(static_cast<std::byte*>(memory), bytes); });
    for (auto& executor : executors_)
      if (executor) bind_to(*executor, source);
  }

  void fetch(Source source) override {
    const cuda::GpuScope scope(gpu_);
    if (source.kind != SourceKind::input) mirror(source)->update_host(stream_->get());
  }
  void forget(Source source) override { known_->forget(buffer_role(source.kind), sources_of(info_, source.kind)[source.index].name); }
  void written(Source source) override {
    forget(source);
    source.kind == SourceKind::input ? inputs_[source.index].written() : mirror(source)->host_wrote();
  }
  void abandon(Source source) override {
    if (source.kind != SourceKind::input) mirror(source)->abandon();
  }

  NonFinite run_while_finite(Part part, uint64_t seed, uint64_t step) override {
    const cuda::GpuScope scope(gpu_);
    CudaExecutor& executor = begin(part);
    const NonFinite fault = executor.run_while_finite(seed, step, guard(part));
    if (fault == NonFinite::nothing)
      end(part);
    else if (parts_[part]->program.loss >= 0)
      losses_[part] = executor.loss();
    return fault;
  }

  std::string find_fault(Part part, NonFinite what, uint64_t seed, uint64_t step) override {
    const cuda::GpuScope scope(gpu_);
    CudaExecutor& executor = begin(part);
    HostArray held;
    const auto values = [&](uint32_t buffer) {
      held = executor.get(buffer);
      return held.bytes.data();
    };
    const WatchedRun run{
        executor.program(), values,
        [&](const std::function<bool(size_t)>& goes_on) { executor.run_while(seed, step, goes_on, CudaExecutor::Products::apart); },
        parts_[part]->orders, parts_[part]->unfinished};
    return einc::find_fault(run, what);
  }

  std::string numerics(Part part) override {
    const cuda::GpuScope scope(gpu_);
    update_sources();  // products are measured on the values that they will get
    CudaExecutor& runs = executor(part);
    runs.plan_gemms();
    runs.plan_attention();
    const std::string attention = runs.library_attention().empty() ? "" : ", attention by " + cuda::AttentionLibrary::get()->name();
    return fmt::format("{}, gemm algorithms {:016x}{}", gpu_.name(), cuda::AlgorithmTable::get().used_hash(), attention);
  }

  TensorView output(uint32_t index) const override { return view(last_, parts_[last_]->program.outputs[index].buffer); }

  TensorView gradient(uint32_t param) const override {
    for (const ExecutableOutput& gradient : parts_[Part::training]->program.gradients)
      if (gradient.name == info_.params[param].name) return view(Part::training, gradient.buffer);
    throw RuntimeFailure(FailureKind::data, fmt::format("'{}' has no gradient: it is not trained", info_.params[param].name));
  }

  TensorView loss(Part part) const override {
    const HostArray& value = *losses_[part];
    return {value.dtype, value.shape, value.bytes.data()};
  }

 private:
  cuda::OwnedStream own_stream() const {
    const cuda::GpuScope scope(gpu_);
    return cuda::make_stream();
  }

  std::shared_ptr<CudaMirror>& mirror(Source source) { return mirrors_[source.kind == SourceKind::param ? 0 : 1][source.index]; }

  template <class Visit>
  void each_source(Visit visit) {
    for (const SourceKind kind : {SourceKind::input, SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < sources_of(info_, kind).size(); ++i) visit(Source{kind, i});
  }

  void bind_to(CudaExecutor& executor, Source source) {
    const int buffer = executor.find(buffer_role(source.kind), sources_of(info_, source.kind)[source.index].name);
    const cuda::DevicePointer address = source.kind == SourceKind::input ? inputs_[source.index].address() : mirror(source)->address();
    if (buffer >= 0) executor.bind(static_cast<uint32_t>(buffer), address);
  }

  CudaExecutor& executor(Part part) {
    std::unique_ptr<CudaExecutor>& executor = executors_[static_cast<size_t>(part)];
    if (executor) return *executor;
    std::shared_ptr<const cuda::DeviceMemory>& memory = memories_[static_cast<size_t>(is_of_steps(part) ? Part::training : part)];
    with_plan([&] {
      if (!memory)
        memory = std::make_shared<const cuda::DeviceMemory>(
            cuda::allocate(own_bytes(parts_, part), fmt::format("{}'s own memory", kPartNames[static_cast<size_t>(part)])));
      if (parts_[part]->workspace_bytes > 0 && !workspace_) workspace_ = gemm_workspace(workspace_bytes(parts_));
      executor = std::make_unique<CudaExecutor>(*parts_[part], *kernels_[part], CudaPlace{&gpu_, stream_, memory, workspace_});
    });
    each_source([&](Source source) { bind_to(*executor, source); });
    return *executor;
  }

  StepGuard& guard(Part part) {
    std::optional<StepGuard>& guard = guards_[part];
    if (!guard) guard.emplace(parts_[part]->program, known_);
    return *guard;
  }

  // A failure to get memory tells what all of it is for.
  template <class Allocate>
  void with_plan(Allocate allocate) const {
    try {
      allocate();
    } catch (const RuntimeFailure& failure) {
      if (failure.kind() != FailureKind::resource) throw;
      throw RuntimeFailure(FailureKind::resource, failure.what() + plan());
    }
  }

  std::string plan() const {
    const auto total = [](const std::vector<TensorInfo>& tensors) {
      int64_t bytes = 0;
      for (const TensorInfo& tensor : tensors) bytes += tensor.bytes();
      return static_cast<double>(bytes) / 1e9;
    };
    std::string text = fmt::format("\n  params {:.2f} GB\n  states {:.2f} GB\n  inputs {:.2f} GB", total(info_.params), total(info_.states),
                                   2 * total(info_.inputs));
    for (size_t p = 0; p < kParts; ++p)
      if (parts_[static_cast<Part>(p)])
        text += fmt::format("\n  {} {:.2f} GB{}", kPartNames[p], static_cast<double>(parts_[static_cast<Part>(p)]->program.own_bytes) / 1e9,
                            static_cast<Part>(p) == Part::accumulation ? ", shared with the training step" : "");
    if (const int64_t bytes = workspace_bytes(parts_); bytes > 0)
      text += fmt::format("\n  the workspace of cuBLASLt {:.2f} GB", static_cast<double>(bytes) / 1e9);
    return text + "\n  set smaller dims, or a batch in micro-batches";
  }

  void update_sources() {
    for (auto& mirrors : mirrors_)
      for (const auto& held : mirrors) held->update_gpu(stream_->get());
  }

  CudaExecutor& begin(Part part) {
    CudaExecutor& runs = executor(part);
    for (CudaInput& input : inputs_) input.update_gpu(stream_->get(), copies_.get());
    update_sources();
    views_[static_cast<size_t>(part)].clear();
    if (is_of_steps(part)) views_[static_cast<size_t>(Part::training)].clear();
    return runs;
  }

  void end(Part part) {
    CudaExecutor& ran = *executors_[static_cast<size_t>(part)];
    if (parts_[part]->program.loss >= 0) losses_[part] = ran.loss();
    bool shared = false;
    const auto wrote = [&](SourceKind kind) {
      for (uint32_t i = 0; i < sources_of(info_, kind).size(); ++i) {
        shared = shared || mirror({kind, i}).use_count() > 1;
        if (ran.find(buffer_role(kind), sources_of(info_, kind)[i].name) >= 0) mirror({kind, i})->gpu_wrote();
      }
    };
    if (part == Part::training) wrote(SourceKind::param);
    if (part != Part::evaluation) {
      wrote(SourceKind::state);
      last_ = part;
    }
    if (shared) ran.wait();  // the other session has a stream of its own
  }

  TensorView view(Part part, uint32_t buffer) const {
    HostArray& held = views_[static_cast<size_t>(part)][buffer];
    if (held.bytes.empty()) held = executors_[static_cast<size_t>(part)]->get(buffer);
    return {held.dtype, held.shape, held.bytes.data()};
  }

  const ProgramInfo& info_;
  const PerPart<CudaExecutable>& parts_;
  const PerPart<CudaKernels>& kernels_;
  const cuda::Gpu& gpu_;
  std::shared_ptr<const cuda::OwnedStream> stream_;
  cuda::OwnedStream copies_;
  std::vector<CudaInput> inputs_;
  std::vector<std::shared_ptr<CudaMirror>> mirrors_[2];  // params, states
  std::shared_ptr<const cuda::DeviceMemory> memories_[kParts], workspace_;
  std::unique_ptr<CudaExecutor> executors_[kParts];
  mutable std::map<uint32_t, HostArray> views_[kParts];  // what was read of the last run, by buffer
  PerPart<HostArray> losses_;
  std::shared_ptr<SourceBounds> known_ = std::make_shared<SourceBounds>();
  PerPart<StepGuard> guards_;
  Part last_ = Part::forward;
};

}  // namespace

CudaProgram::CudaProgram(ProgramInfo program, PerPart<CudaExecutable> parts, FileCache& cache, int threads)
    : ProgramRep(std::move(program)), parts_(std::move(parts)), shape_(cuda::Gpu::current().shape()) {
  EINC_CHECK(info.trains == has(Part::training), "'{}' trains: {}", info.name, info.trains);
  for (size_t p = 0; p < kParts; ++p)
    if (const auto& part = parts_[static_cast<Part>(p)]) kernels_[static_cast<Part>(p)].emplace(*part, cache, threads);
}

int64_t CudaProgram::planned_bytes(int) const {
  int64_t bytes = source_bytes(info) + workspace_bytes(parts_);
  for (const Part part : {Part::forward, Part::evaluation, Part::training})
    if (parts_[part]) bytes += own_bytes(parts_, part);
  return bytes;
}

std::unique_ptr<Runner> CudaProgram::start(std::shared_ptr<ThreadPool>, int device) const {
  const cuda::Gpu& gpu = device < 0 ? cuda::Gpu::get() : cuda::Gpu::numbered(device);
  if (gpu.shape() != shape_)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("the program is compiled for a GPU of another shape than GPU {}, {}", gpu.number(), gpu.name()));
  return std::make_unique<CudaRunner>(info, parts_, kernels_, gpu);
}

}  // namespace einc
