// SPDX-License-Identifier: Apache-2.0
// Each source is fresh in one place at least: in the session's memory, or on the devices. Params stay on the devices from step to step, and
// are put together only when somebody reads them (a checkpoint, an evaluation of another part).
#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/mesh/mesh_runner.h"

namespace einc {

void MeshRunner::bind(Source source, void* memory) {
  Whole& to = whole(source);
  if (to.memory != nullptr && to.memory != memory) fetch(source);  // what lies there is wanted there
  to.memory = static_cast<std::byte*>(memory);
  to.released = false;
  written(source);
}

void MeshRunner::written(Source source) {
  whole(source).fresh = true;
  for (std::optional<RunningPart>& part : parts_)
    for (size_t i = 0; part && i < part->fresh.size(); ++i)
      if (const Source s = part->plan.sources[i].source; s.kind == source.kind && s.index == source.index) part->fresh[i] = false;
}

void MeshRunner::forget(Source source) {
  whole(source).shared = true;
  if (whole(source).fresh) written(source);
}

void MeshRunner::fetch(Source source) {
  Whole& to = whole(source);
  if (to.fresh) return;
  for (std::optional<RunningPart>& part : parts_)
    for (size_t i = 0; part && i < part->fresh.size(); ++i) {
      const MeshSource& from = part->plan.sources[i];
      if (!part->fresh[i] || from.source.kind != source.kind || from.source.index != source.index) continue;
      gather(*part, from.value, from.layout, info(source), to.memory);
      to.fresh = true;
      return;
    }
  EINC_CHECK(false, "nobody has the newest '{}'", info(source).name);
}

void MeshRunner::cut_out(RunningPart& part) {
  for (size_t i = 0; i < part.fresh.size(); ++i) {
    if (part.fresh[i]) continue;
    const Source source = part.plan.sources[i].source;
    fetch(source);
    cut_out(part, i);
    empty(source);
  }
}

void MeshRunner::cut_out(RunningPart& part, size_t source) {
  const MeshSource& to = part.plan.sources[source];
  const TensorInfo& tensor = info(to.source);
  part.fresh[source] = true;
  if (part.devices->lend(to.value, whole(to.source).memory)) return;
  for (int64_t d = 0; d < held(); ++d) {
    if (!holds(engine_.mesh(), to.layout, engine_.first() + d)) continue;
    copy_box(BoxCopy::out, tensor.shape, part_of(engine_.mesh(), to.layout, tensor.shape, engine_.first() + d), bytes_of(tensor.dtype),
             whole(to.source).memory, part.devices->place(d, to.value));
    part.devices->written(d, to.value);
  }
}

// Each part's devices have a copy of their own.
void MeshRunner::release(Source source) {
  whole(source).released = true;
  for (std::optional<RunningPart>& part : parts_)
    for (size_t i = 0; part && whole(source).fresh && i < part->fresh.size(); ++i)
      if (const Source s = part->plan.sources[i].source; s.kind == source.kind && s.index == source.index) cut_out(*part, i);
  empty(source);
}

void MeshRunner::empty(Source source) {
  Whole& from = whole(source);
  if (!from.released || from.shared) return;
  const auto has = [&](const std::optional<RunningPart>& part) {
    for (size_t i = 0; part && i < part->fresh.size(); ++i)
      if (const Source s = part->plan.sources[i].source; part->fresh[i] && s.kind == source.kind && s.index == source.index) return true;
    return false;
  };
  if (std::none_of(parts_.begin(), parts_.end(), has)) return;
  from.fresh = false;
  empty_pages(from.memory, info(source).bytes());
}

}  // namespace einc
