// SPDX-License-Identifier: Apache-2.0
// A graph that holds every op and every optional part of the text format at least once.
#pragma once
#include "compiler/ir/build.h"

namespace einc {

Graph sample_graph();

}  // namespace einc
