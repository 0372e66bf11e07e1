// SPDX-License-Identifier: Apache-2.0
// How a kernel's loops run on a processor with vectors: which axis the lanes go along and what threads divide.
#pragma once
#include "compiler/lower/kernel.h"
#include "compiler/lower/processor.h"

namespace einc {

// The domain that threads divide counts chunks of the vector axis (when it is an outer one) within points of the leading
// outer axes; what is left of the outer axes are loops inside. Which thread does what changes no result.
struct LoopPlan {
  std::optional<AxisId> outer_vector;               // lanes run along this outer axis in every stage
  std::vector<std::optional<AxisId>> stage_vector;  // otherwise, along this axis of the stage
  int lanes = 1;
  std::vector<AxisId> divided;  // leading outer axes that the domain counts
  std::vector<AxisId> inner;    // outer axes looped over inside
  int64_t chunk = 0;            // elements of the outer vector axis that one domain point covers
  // Elements that lie side by side along this outer axis, not along the lanes, are read in squares and transposed in registers.
  std::optional<AxisId> turned;
  int64_t turned_chunk = 0;  // elements of the turned axis that one domain point covers
  int64_t domain = 1;
  // A kernel that folds rows of the vector axis into rows found by an index: threads divide the rows folded into, of which there are
  // `domain`. Each goes over all indices and takes those that are its own, so an element's order is that of the indices.
  bool owns_rows = false;
  bool whole_rows = false;  // of more than `lanes` elements: the stages run over a row inside their loops
  // By buffer: large ones, whose elements are fetched into the caches ahead of the loop that reads them first, and results that
  // are written past the caches, in whole lines.
  std::vector<bool> fetched, streamed;
  // By stage, which folds into elements found by an index: the element stays in registers until another one is folded into. In sorted order
  // that saves its way through memory, which the next fold would wait for.
  std::vector<bool> kept;
};

// Pieces of `chunk` elements that an axis has, the last maybe shorter.
inline int64_t chunks_of(int64_t extent, int64_t chunk) { return (extent + chunk - 1) / chunk; }

// `unshared`: by buffer, whether it lies apart from all others of the launch, in the program's own memory.
LoopPlan plan_loops(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared);

// A load whose neighbours along `turned` are neighbours in memory while those along `lanes` are not.
bool is_turned(const Scalar& load, AxisId lanes, AxisId turned);

}  // namespace einc
