// SPDX-License-Identifier: Apache-2.0
// XXH64 (seed 0, by libxxhash) of bytes that come in pieces: the checksum of checkpoints' files, as `xxhsum -H1` prints it. It finds
// damage; it does not withstand somebody who wants two contents of one hash. Checkpoints name it `xxh64`, so it stays this one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

struct XXH64_state_s;

namespace einc {

class Xxh64 {
 public:
  Xxh64();
  void update(std::span<const std::byte> bytes);
  uint64_t digest() const;

 private:
  struct Free {
    void operator()(XXH64_state_s* state) const;
  };
  std::unique_ptr<XXH64_state_s, Free> state_;
};

uint64_t xxh64(std::span<const std::byte> bytes);

}  // namespace einc
