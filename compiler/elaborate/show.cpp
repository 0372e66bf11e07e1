// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/show.h"

#include "compiler/elaborate/scope.h"

namespace einc {

std::string counted(size_t n, std::string_view noun) {
  std::string text = std::to_string(n) + " " + std::string(noun);
  if (n == 1) return text;
  if (!noun.ends_with("is")) return text + "s";
  text[text.size() - 2] = 'e';
  return text;
}

std::string show(const Graph& graph, const Poly& size) { return fold_names(size, graph.dims.definitions()).str(); }

std::string show(const Graph& graph, const Axis& axis) {
  const std::string size = show(graph, axis.size);
  const Name name = without_marks(axis.name);
  if (name.empty() || name.str() == size) return size;
  return name.str() + "=" + size;
}

std::string show(const Graph& graph, const Type& type) {
  std::string text = type.dtype == DType::real ? "[" : std::string(to_string(type.dtype)) + "[";
  for (int i = 0; i < type.rank(); ++i) text += (i ? " " : "") + show(graph, type.axis(i));
  return text + "]";
}

}  // namespace einc
