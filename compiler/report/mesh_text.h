// SPDX-License-Identifier: Apache-2.0
// The part of a report's text about its mesh: what crosses devices, and what lies on each.
#pragma once
#include "compiler/report/amount_text.h"
#include "compiler/report/document.h"

namespace einc {

// `report` has a mesh.
void tell_mesh(const Report& report, AmountText& amounts, Document& out);

}  // namespace einc
