// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/kernel_names.h"

namespace einc {

std::string_view name_of(Fold fold) {
  switch (fold) {
    case Fold::sum:
      return "sum";
    case Fold::max:
      return "max";
    case Fold::min:
      return "min";
    case Fold::prod:
      return "prod";
    case Fold::any:
      return "any";
    case Fold::all:
      return "all";
    case Fold::logsumexp:
      return "logsumexp";
    case Fold::arg_max:
      return "arg_max";
    case Fold::arg_min:
      return "arg_min";
  }
  return "";
}

std::string_view name_of(BufferAccess access) {
  switch (access) {
    case BufferAccess::read:
      return "read";
    case BufferAccess::write:
      return "write";
    case BufferAccess::read_write:
      return "read_write";
    case BufferAccess::scratch:
      return "scratch";
  }
  return "";
}

std::string_view name_of(AttentionPart part) {
  switch (part) {
    case AttentionPart::scores:
      return "scores";
    case AttentionPart::fold:
      return "fold";
    case AttentionPart::mix:
      return "mix";
    case AttentionPart::gather:
      return "gather";
  }
  return "";
}

std::string_view name_of(PairValue pair) {
  switch (pair) {
    case PairValue::other:
      return "";
    case PairValue::scores:
      return "scores";
    case PairValue::weights:
      return "weights";
    case PairValue::weight_gradient:
      return "weight_gradient";
    case PairValue::score_gradient:
      return "score_gradient";
  }
  return "";
}

}  // namespace einc
