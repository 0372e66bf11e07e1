// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/piece_trie.h"

#include <utility>

namespace einc {

void PieceTrie::add(std::string_view piece, int32_t id) {
  uint32_t& first = root_[static_cast<unsigned char>(piece[0])];
  if (first == 0) first = new_node();
  uint32_t node = first;
  for (const char c : piece.substr(1)) {
    const auto byte = static_cast<unsigned char>(c);
    uint32_t next = child(node, byte);
    if (next == 0) put({uint64_t{node} << 8 | byte, next = new_node()});
    node = next;
  }
  if (ids_[node] < 0) ids_[node] = id;
}

void PieceTrie::put(Edge edge) {
  if (2 * ++edge_count_ > edges_.size()) {
    const std::vector<Edge> old = std::exchange(edges_, std::vector<Edge>(edges_.size() * 2));
    edge_count_ = 1;
    for (const Edge& other : old)
      if (other.key != 0) put(other);
  }
  size_t at = place_of(edge.key, edges_.size());
  while (edges_[at].key != 0) at = (at + 1) & (edges_.size() - 1);
  edges_[at] = edge;
}

}  // namespace einc
