// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/xxh64.h"

#include <xxhash.h>

#include <new>

namespace einc {

void Xxh64::Free::operator()(XXH64_state_s* state) const { XXH64_freeState(state); }

Xxh64::Xxh64() : state_(XXH64_createState()) {
  if (!state_) throw std::bad_alloc();
  XXH64_reset(state_.get(), 0);
}

void Xxh64::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH64_update(state_.get(), bytes.data(), bytes.size());  // its pointer must not be null
}

uint64_t Xxh64::digest() const { return XXH64_digest(state_.get()); }

uint64_t xxh64(std::span<const std::byte> bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace einc
