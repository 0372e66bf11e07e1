// SPDX-License-Identifier: Apache-2.0
// A body is a graph of its own, verified like any; what is left is the border between it and the graph around it.
#include "compiler/ir/scan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compiler/ir/print.h"
#include "compiler/ir/scan.h"
#include "compiler/ir/verify.h"

namespace einc {

bool runs_pieces(const Graph& body) {
  return std::ranges::any_of(body.nodes, [](const Node& n) { return n.op == Op::scan && n.as<ScanAttr>().all_pieces > 0; });
}

namespace {

// Whether a source of a body is called by the number of one of `count`.
bool is_one_of(const Name& name, size_t count) {
  size_t index = 0;
  const std::string& text = name.str();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc() && end == text.data() + text.size() && index < count;
}

}  // namespace

std::string scan_problem(const Graph& graph, const Node& node) {
  const auto& a = node.as<ScanAttr>();
  if (a.body == nullptr) return fmt::format("no body");
  const Graph& body = *a.body;
  const int wholes = whole_operands(node);
  if (a.slices < 0 || a.carries < 0 || wholes < 0) return fmt::format("too few operands");
  if (const std::vector<std::string> problems = verify(body); !problems.empty()) return fmt::format("in its body: {}", problems.front());
  for (const Node& inner : body.nodes)
    if (inner.op == Op::param) return fmt::format("a param in its body");
  for (const Node& inner : body.nodes) {
    if (inner.op == Op::input && !is_one_of(inner.as<InputAttr>().name, node.operands.size()))
      return fmt::format("its body's input '{}' is no operand", inner.as<InputAttr>().name.str());
    if (inner.op == Op::state && !is_one_of(inner.as<StateAttr>().path, body.size()))
      return fmt::format("its body's state '{}' is no result", inner.as<StateAttr>().path.str());
  }
  const ScanSources sources = scan_sources(body);
  if (body.updates.size() != sources.states.size() || static_cast<int>(sources.states.size()) < a.carries)
    return fmt::format("{} updates of {} states", body.updates.size(), sources.states.size());
  for (size_t c = 0; c < body.updates.size(); ++c)
    if (body.updates[c].target != sources.states[c]) return fmt::format("update {} is not of state {}", c, c);
  for (int k = 0; k < static_cast<int>(node.operands.size()); ++k) {
    const size_t at = static_cast<size_t>(k);
    const bool slice = k >= wholes && k < wholes + a.slices, initial = k >= wholes + a.slices;
    const NodeId read = initial                      ? sources.states[at - static_cast<size_t>(wholes + a.slices)]
                        : at < sources.inputs.size() ? sources.inputs[at]
                                                     : NodeId{};
    if (!read.valid()) continue;  // nothing reads it
    Type given = graph.type(node.operands[at]);
    if (slice) {
      const Type& part = body.type(read);
      // A block is of a piece's length, and the last one is shorter, so that the whole's length says nothing.
      const bool block = given.rank() > 0 && given.rank() == part.rank() && runs_pieces(body);
      if (block)
        given.axes[0] = part.axes[0];
      else if (given.rank() == 0 || !(given.axis(0).size == a.length))
        return fmt::format("operand {} has no first axis of its length", k);
      else
        given.axes.erase(given.axes.begin());
    }
    if (!given.same_sizes(body.type(read)) || given.dtype != body.type(read).dtype)
      return fmt::format("operand {} is {}, and its body reads {}", k, to_string(given), to_string(body.type(read)));
  }
  return {};
}

}  // namespace einc
