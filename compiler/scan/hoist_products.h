// SPDX-License-Identifier: Apache-2.0
// Contractions of a body that read slices and values from outside, but no carry, are made outside for all iterations at once, with the
// scan's axis in front; the body reads slices of the result. Elementwise steps and views between slice and contraction go with it, and so
// do those that alone read a product: a bias.
#pragma once
#include <span>

#include "compiler/scan/body_builder.h"

namespace einc {

// `given`: nodes of the body that stand for others, known in each iteration only.
void hoist_products(Builder& outside, BodyBuilder& body, std::span<const NodeId> given);

}  // namespace einc
