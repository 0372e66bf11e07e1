// SPDX-License-Identifier: Apache-2.0
// Which strings of a vocabulary a text begins with: a trie over bytes, its edges in one hash table.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace einc {

class PieceTrie {
 public:
  PieceTrie() { root_.fill(0); }

  // `piece` has a byte at least; of equal ones the first stays.
  void add(std::string_view piece, int32_t id);

  // found(length in bytes, id) for each piece that the text begins with, the shortest first.
  template <class Found>
  void prefixes(std::string_view text, const Found& found) const {
    if (text.empty()) return;
    uint32_t node = root_[static_cast<unsigned char>(text[0])];
    for (size_t length = 1; node != 0; ++length) {
      if (ids_[node] >= 0) found(length, ids_[node]);
      if (length == text.size()) return;
      node = child(node, static_cast<unsigned char>(text[length]));
    }
  }

  struct Match {
    size_t length = 0;  // 0: none
    int32_t id = -1;
  };
  Match longest(std::string_view text) const {
    Match match;
    prefixes(text, [&](size_t length, int32_t id) { match = {length, id}; });
    return match;
  }
  // The id of a whole piece; -1: there is none.
  int32_t find(std::string_view piece) const {
    const Match match = longest(piece);
    return match.length == piece.size() ? match.id : -1;
  }

 private:
  struct Edge {
    uint64_t key = 0;  // node << 8 | byte; 0: no edge, as none leaves node 0 here
    uint32_t node = 0;
  };
  static size_t place_of(uint64_t key, size_t slots) { return static_cast<size_t>(key * 0x9E3779B97F4A7C15u >> 24) & (slots - 1); }
  uint32_t child(uint32_t node, unsigned char byte) const {
    const uint64_t key = uint64_t{node} << 8 | byte;
    for (size_t at = place_of(key, edges_.size());; at = (at + 1) & (edges_.size() - 1))
      if (edges_[at].key == key || edges_[at].key == 0) return edges_[at].node;
  }
  uint32_t new_node() { return ids_.push_back(-1), static_cast<uint32_t>(ids_.size() - 1); }
  void put(Edge edge);

  std::array<uint32_t, 256> root_;  // children of the root; 0: none
  std::vector<int32_t> ids_{-1};    // by node; node 0 is the root
  std::vector<Edge> edges_ = std::vector<Edge>(64);
  size_t edge_count_ = 0;
};

}  // namespace einc
