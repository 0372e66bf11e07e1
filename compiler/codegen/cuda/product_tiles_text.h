// SPDX-License-Identifier: Apache-2.0
// The body of a product on tensor cores (gpu_plan/product_tiles.h).
#pragma once
#include <string>

#include "compiler/gpu_plan/product_tiles.h"

namespace einc {

std::string product_tiles_text(const ProductTiles& tiles);

}  // namespace einc
