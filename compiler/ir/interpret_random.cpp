// SPDX-License-Identifier: Apache-2.0
// Random numbers and dropout of the interpreter: draws of runtime/base/random.h, element index in row-major order.
#include "compiler/ir/interpret_ops.h"
#include "runtime/base/random.h"

namespace einc {

void evaluate_random(Evaluation& e) {
  const RandomAttr& attr = e.node.as<RandomAttr>();
  const PhiloxKey key = random_key(e.options.seed, attr.stream.str() + stream_suffix(e.options.iterations));
  const auto n = static_cast<uint64_t>(e.out.count());
  for (uint64_t i = 0; i < n; ++i) {
    switch (attr.kind) {
      case RandomKind::uniform:
        e.out.reals[i] = random_uniform(key, e.options.step, i);
        break;
      case RandomKind::normal:
        e.out.reals[i] = random_normal(key, e.options.step, i);
        break;
      case RandomKind::keep_mask:
        e.out.ints[i] = random_keep(key, e.options.step, i, attr.keep) ? 1 : 0;
        break;
      case RandomKind::bits:
        e.out.ints[i] = random_bits(key, e.options.step, i);
        break;
      case RandomKind::gumbel:
        e.out.reals[i] = random_gumbel(key, e.options.step, i);
        break;
    }
  }
}

// keep ? x / (1 - p) : 0, as a product and a choice; the mask is the keep_mask of the same stream with keep = 1 - p.
void evaluate_dropout(Evaluation& e) {
  const DropoutAttr& attr = e.node.as<DropoutAttr>();
  if (e.options.mode == RunMode::inference) {
    e.out.reals = e.in[0]->reals;
    return;
  }
  const PhiloxKey key = random_key(e.options.seed, attr.stream.str() + stream_suffix(e.options.iterations));
  const double scale = 1 / (1 - attr.p);
  for (size_t i = 0; i < e.out.reals.size(); ++i) {
    e.out.reals[i] = random_keep(key, e.options.step, i, 1 - attr.p) ? e.in[0]->reals[i] * scale : 0;
    e.counts.elementwise += 2;
  }
}

}  // namespace einc
