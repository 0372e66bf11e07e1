// SPDX-License-Identifier: Apache-2.0
// Touching a mapped page that its file no longer has (somebody shortened it, or the disk fails) raises SIGBUS, which ends the process.
// Within a guarded mapping such a page reads as zeros instead, and the mapping remembers it: whoever has used the bytes asks before the
// result counts. SIGBUS anywhere else goes to the handler that was there before ours.
#pragma once
#include <cstddef>
#include <span>

namespace einc {

struct GuardedRange;

class GuardedMapping {
 public:
  // `bytes`: a mapping, from its first page on, which outlives this.
  explicit GuardedMapping(std::span<const std::byte> bytes);
  ~GuardedMapping();
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;

  bool is_cut() const;  // bytes read so far, or later ones, were not the file's

 private:
  GuardedRange* range_;
};

}  // namespace einc
