// SPDX-License-Identifier: Apache-2.0
// A body's inputs and states are named by the numbers of the operands and results that they stand for ("0", "1", ...), so that a body is a
// graph like any other, which prints, reads back and verifies without a kind of node of its own.
#include "compiler/ir/scan.h"
#include "runtime/base/ascii.h"

#include <charconv>

namespace einc {
namespace {

void put_at(std::vector<NodeId>& places, std::string_view name, NodeId id) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  EINC_CHECK(error == std::errc() && end == name.data() + name.size(), "'{}' names no operand of a scan", name);
  if (places.size() <= index) places.resize(index + 1);
  places[index] = id;
}

}  // namespace

ScanSources scan_sources(const Graph& body) {
  ScanSources sources;
  for (uint32_t i = 0; i < body.size(); ++i) {
    const Node& node = body.nodes[i];
    if (node.op == Op::input) put_at(sources.inputs, node.as<InputAttr>().name.str(), NodeId{i});
    if (node.op == Op::state) put_at(sources.states, node.as<StateAttr>().path.str(), NodeId{i});
  }
  return sources;
}

bool is_scan_source(const Node& node) {
  const auto numbered = [](const Name& name) { return is_digits(name.str()); };
  if (const auto* input = std::get_if<InputAttr>(&node.attr)) return numbered(input->name);
  const auto* state = std::get_if<StateAttr>(&node.attr);
  return state != nullptr && numbered(state->path);
}

}  // namespace einc
