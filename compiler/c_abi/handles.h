// SPDX-License-Identifier: Apache-2.0
// What stands behind the opaque handles of einc/c.h.
#pragma once
#include <einc/c.h>
#include <einc/einc.h>

#include <array>
#include <string>
#include <vector>

namespace einc::c_abi {

// A tensor's description with the arrays that its C form points to.
struct TensorText {
  TensorInfo info;
  std::vector<const char*> axes;
};

// Throw Error (usage) for a number that is none of the enumeration's.
DType dtype_of(einc_dtype dtype);
ReportForm form_of(einc_report_form form);
einc_dtype dtype_of(DType dtype);

}  // namespace einc::c_abi

struct einc_options {
  einc::CompileOptions options;
};

struct einc_model {
  explicit einc_model(einc::Model compiled);

  einc::Model model;
  std::array<std::vector<einc::c_abi::TensorText>, 4> tensors;  // by role
};

struct einc_report {
  std::string text;
};

struct einc_session {
  einc::Session session;
  std::vector<int64_t> shape;  // of the tensor that was read last
  std::vector<std::string> missing;
};
