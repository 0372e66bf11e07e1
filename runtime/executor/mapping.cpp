// SPDX-License-Identifier: Apache-2.0
#include "runtime/executor/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/failure.h"

namespace einc {

Mapping::Mapping(int64_t bytes) : size_(static_cast<size_t>(std::max<int64_t>(bytes, 1))) {
  const auto present = static_cast<size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (size_ > present)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("running this takes {:.2f} GB of memory, and there are {:.2f} GB: set smaller dims",
                                     static_cast<double>(size_) / 1e9, static_cast<double>(present) / 1e9));
  void* at = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw RuntimeFailure(FailureKind::resource, fmt::format("no memory for {} bytes", size_));
  madvise(at, size_, MADV_HUGEPAGE);
  base_ = static_cast<std::byte*>(at);
}

Mapping::~Mapping() { munmap(base_, size_); }

void empty_pages(std::byte* begin, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(bytes)) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

}  // namespace einc
