// What a graph is asked for. Training: all outputs, updates, the minimized loss and its gradients. Inference: outputs (the
// loss when there is none) and updates of the user's own states; dropout does nothing. Evaluation: the loss alone, likewise
// without dropout; nothing is updated.
#pragma once
#include <cstdint>

namespace einc {

enum class Roots : uint8_t { training, inference, evaluation };

}  // namespace einc
