// SPDX-License-Identifier: Apache-2.0
// Tensors as tests/numeric/ops/cases.json holds them.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/ir/tensor.h"
#include "runtime/base/dtype.h"

namespace einc {

// {"dtype": "f32", "shape": [2], "data": [1, "nan"]}
inline Tensor tensor_of(const nlohmann::json& packed) {
  const auto number = [](const nlohmann::json& value) {
    return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
  };
  Tensor tensor = Tensor::zeros(*parse_dtype(packed["dtype"].get<std::string>()), packed["shape"].get<std::vector<int64_t>>());
  for (size_t i = 0; i < packed["data"].size(); ++i)
    if (tensor.is_real())
      tensor.reals[i] = number(packed["data"][i]);
    else
      tensor.ints[i] = packed["data"][i].get<int64_t>();
  return tensor;
}

}  // namespace einc
