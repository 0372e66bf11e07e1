// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "tests/fuzz/random_program.h"

namespace einc {

std::string RandomProgram::text() const {
  std::string text;
  for (const Dim& dim : dims) text += "dim " + dim.name + " = " + std::to_string(dim.value) + "\n";
  for (const Line& line : lines) text += line.text + "\n";
  return text;
}

RandomProgram shrink(RandomProgram program, const std::function<bool(const std::string& text)>& fails) {
  const auto accept = [&](RandomProgram candidate) {
    if (!fails(candidate.text())) return false;
    program = std::move(candidate);
    return true;
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (size_t i = program.lines.size(); i-- > 0;) {
      RandomProgram without = program;
      without.lines.erase(without.lines.begin() + static_cast<int64_t>(i));
      if (accept(std::move(without))) {
        smaller = true;
        continue;
      }
      if (program.lines[i].as_input.empty()) continue;
      RandomProgram cut = program;
      cut.lines[i] = {program.lines[i].as_input, ""};
      smaller |= accept(std::move(cut));
    }
    for (size_t d = program.dims.size(); d-- > 0;) {
      RandomProgram without = program;
      without.dims.erase(without.dims.begin() + static_cast<int64_t>(d));
      if (accept(std::move(without))) {
        smaller = true;
        continue;
      }
      for (const int64_t value : {1, 2, 3, 5}) {
        if (value >= program.dims[d].value) break;
        RandomProgram lower = program;
        lower.dims[d].value = value;
        if (!accept(std::move(lower))) continue;
        smaller = true;
        break;
      }
    }
  }
  return program;
}

TensorMap program_inputs(const Graph& graph, const Bindings& given, uint64_t seed) {
  const Bindings dims = graph.dims.bind(given).values;
  std::mt19937_64 random(seed);
  TensorMap inputs;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    const std::string& name = node.as<InputAttr>().name.str();
    const DType dtype = node.type.dtype;
    int64_t least = 0, bound = 2;
    if (name.starts_with("ids_")) {
      const std::string dim = name.substr(4, name.rfind('_') - 4);
      bound = Poly::dim(dim).evaluate_integer(dims).value();
    } else if (name[0] == 'n' && name.size() > 1 && name[1] <= '9' && dtype != DType::boolean) {
      least = dtype == DType::i32 || dtype == DType::i64 ? -4 : 0;
      bound = 9;
    }
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(axis.size.evaluate_integer(dims).value());
    Tensor t = Tensor::zeros(node.type.dtype, shape);
    for (int64_t& x : t.ints) x = least + static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
    for (double& x : t.reals) x = static_cast<double>(static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-23 - 1));
    inputs[name] = std::move(t);
  }
  return inputs;
}

}  // namespace einc
