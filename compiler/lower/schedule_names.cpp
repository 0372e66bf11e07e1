// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/schedule_names.h"

namespace einc {

std::string_view name_of(LaunchWhen when) {
  switch (when) {
    case LaunchWhen::always:
      return "always";
    case LaunchWhen::unbounded:
      return "unbounded";
    case LaunchWhen::checked:
      return "checked";
  }
  return "";
}

std::string_view name_of(ProductSums sums) {
  switch (sums) {
    case ProductSums::f32:
      return "f32";
    case ProductSums::tf32:
      return "tf32";
    case ProductSums::f64:
      return "f64";
  }
  return "";
}

std::string_view name_of(LibraryActivation activation) {
  switch (activation) {
    case LibraryActivation::none:
      return "none";
    case LibraryActivation::gelu:
      return "gelu";
    case LibraryActivation::gelu_slope:
      return "gelu_slope";
  }
  return "";
}

std::string_view name_of(BufferPlace place) {
  switch (place) {
    case BufferPlace::none:
      return "none";
    case BufferPlace::source:
      return "source";
    case BufferPlace::gradient:
      return "gradient";
    case BufferPlace::in_target:
      return "in_target";
    case BufferPlace::arena:
      return "arena";
    case BufferPlace::bound:
      return "bound";
    case BufferPlace::shared:
      return "shared";
  }
  return "";
}

}  // namespace einc
