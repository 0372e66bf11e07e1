// SPDX-License-Identifier: Apache-2.0
// A drawing as a PNG, by librsvg's rsvg-convert where the machine has it: einc draws SVG.
#pragma once
#include <string>

namespace einc {

bool has_svg_converter();

// The bytes of the picture, at twice the drawing's size. Throws RuntimeFailure (resource).
std::string svg_to_png(const std::string& svg);

}  // namespace einc
