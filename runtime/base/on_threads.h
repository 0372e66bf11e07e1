// SPDX-License-Identifier: Apache-2.0
// Pieces of work that do not depend on each other, on a few threads that live as long as the work: what is compiled in pieces.
#pragma once
#include <cstddef>
#include <functional>

namespace einc {

// Calls `work(0)` ... `work(pieces - 1)`, each once, on up to `threads` threads, the caller's among them; fewer where the system refuses
// some. Rethrows what a piece threw, behind which no further one begins.
void on_threads(size_t pieces, int threads, const std::function<void(size_t)>& work);

}  // namespace einc
