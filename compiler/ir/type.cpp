// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/type.h"

namespace einc {

bool Type::same_sizes(const Type& other) const {
  if (axes.size() != other.axes.size()) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i].size != other.axes[i].size) return false;
  return true;
}

std::string to_string(const Type& type) {
  std::string text(to_string(type.dtype));
  text += '[';
  for (const Axis& a : type.axes) {
    if (text.back() != '[') text += ' ';
    const std::string size = a.size.str();
    if (a.name.empty() || a.name.str() == size)
      text += size.find(' ') == std::string::npos ? size : "(" + size + ")";
    else
      text += a.name.str() + "=" + (size.find(' ') == std::string::npos ? size : "(" + size + ")");
  }
  return text + "]";
}

}  // namespace einc
