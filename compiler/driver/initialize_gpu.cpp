#include "compiler/driver/initialize_gpu.h"

#include <thread>

#include "runtime/cpu/thread_pool.h"
#include "runtime/executor/initialize.h"

namespace einc {

void initialize(CudaExecutor& executor, uint64_t seed) {
  ThreadPool pool(static_cast<int>(std::thread::hardware_concurrency()));
  const std::vector<ExecutableBuffer>& buffers = executor.program().buffers;
  for (uint32_t b = 0; b < buffers.size(); ++b) {
    const ExecutableBuffer& buffer = buffers[b];
    if (buffer.role != BufferRole::param && buffer.role != BufferRole::state) continue;
    HostArray first{buffer.dtype, buffer.shape, std::vector<std::byte>(static_cast<size_t>(buffer.bytes))};
    initialize(pool, buffer.init, buffer.init_arguments, seed, buffer.name, buffer.dtype, first.count(), first.bytes.data());
    executor.set(b, first);
  }
}

}  // namespace einc
