// Contractions of a body that read slices and values from outside, but no carry, are made outside for all iterations at once, with the
// scan's axis in front; the body reads slices of the result. Elementwise steps and views between slice and contraction go with it, and so
// do those that alone read a product: a bias.
#pragma once
#include "compiler/scan/body_builder.h"

namespace einc {

void hoist_products(Builder& outside, BodyBuilder& body);

}  // namespace einc
