// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/mirror.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>

#include "runtime/base/failure.h"

namespace einc {
namespace {

struct Mirrors {
  std::mutex mutex;
  std::map<std::byte*, std::weak_ptr<CudaMirror>> by_host;
};
Mirrors& mirrors() {
  static Mirrors mirrors;
  return mirrors;
}

}  // namespace

std::shared_ptr<CudaMirror> CudaMirror::of(std::byte* host, int64_t bytes) {
  const std::lock_guard lock(mirrors().mutex);
  std::weak_ptr<CudaMirror>& known = mirrors().by_host[host];
  if (auto found = known.lock(); found) {
    if (&found->gpu_ == &cuda::Gpu::current()) return found;
    throw RuntimeFailure(FailureKind::data, fmt::format("a param or state that a session on GPU {} holds is bound on GPU {} too",
                                                        found->gpu_.number(), cuda::Gpu::current().number()));
  }
  auto made = std::make_shared<CudaMirror>(host, bytes);
  known = made;
  return made;
}

CudaMirror::CudaMirror(std::byte* host, int64_t bytes)
    : host_(host), bytes_(static_cast<size_t>(bytes)), device_(cuda::allocate(bytes, "a param or state")) {}

CudaMirror::~CudaMirror() {
  {
    const std::lock_guard lock(mirrors().mutex);
    const auto found = mirrors().by_host.find(host_);
    if (found != mirrors().by_host.end() && found->second.expired()) mirrors().by_host.erase(found);
  }
  if (newer_ != Newer::gpu) return;
  try {
    const cuda::GpuScope scope(gpu_);
    const cuda::OwnedStream stream = cuda::make_stream();
    update_host(stream.get());
  } catch (const std::exception&) {  // the GPU has failed, which the run that did it has said
  }
}

void CudaMirror::update_gpu(cuda::Stream stream) {
  if (newer_ != Newer::host) return;
  EINC_CUDA(cuMemcpyHtoDAsync_v2, device_.get(), host_, bytes_, stream);
  EINC_CUDA(cuStreamSynchronize, stream);  // memory that the caller has pinned is read while the call has returned
  newer_ = Newer::neither;
}

void CudaMirror::update_host(cuda::Stream stream) {
  if (newer_ != Newer::gpu) return;
  EINC_CUDA(cuMemcpyDtoHAsync_v2, host_, device_.get(), bytes_, stream);
  EINC_CUDA(cuStreamSynchronize, stream);
  newer_ = Newer::neither;
}

CudaInput::CudaInput(int64_t bytes)
    : bytes_(static_cast<size_t>(bytes)),
      staged_(cuda::allocate_host(bytes)),
      arriving_(cuda::allocate(bytes, "an input")),
      device_(cuda::allocate(bytes, "an input")) {
  EINC_CUDA(cuEventCreate, arrived_.out(), cuda::kEventWithoutTiming);
}

void CudaInput::update_gpu(cuda::Stream stream, cuda::Stream copies) {
  if (!written_) return;
  std::memcpy(staged_.get(), host_, bytes_);
  EINC_CUDA(cuMemcpyHtoDAsync_v2, arriving_.get(), staged_.get(), bytes_, copies);
  EINC_CUDA(cuEventRecord, arrived_.get(), copies);
  EINC_CUDA(cuStreamWaitEvent, stream, arrived_.get(), 0);
  EINC_CUDA(cuMemcpyDtoDAsync_v2, device_.get(), arriving_.get(), bytes_, stream);
  written_ = false;
}

}  // namespace einc
