// SPDX-License-Identifier: Apache-2.0
// What a graph is asked for. Training: all outputs, updates, the minimized loss and its gradients. Step: the same without the outputs
// that the program names, where nobody reads them; those that training adds (optimizer.*) stay. Inference: outputs (the loss when there is
// none) and updates of the user's own states; dropout does nothing. Evaluation: the loss alone, likewise without dropout; nothing is
// updated.
#pragma once
#include <cstdint>

namespace einc {

enum class Roots : uint8_t { training, step, inference, evaluation };

inline bool trains(Roots roots) { return roots == Roots::training || roots == Roots::step; }

}  // namespace einc
