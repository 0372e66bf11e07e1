// SPDX-License-Identifier: Apache-2.0
// A file that says what the tensors of somebody else's weights are called here, a line each: their name, ours, and where the axes differ
// how theirs become ours.
//
//   # GPT-2 as Hugging Face stores it
//   wte.weight             -> wte
//   h.*.attn.c_attn.weight -> h.*.attn.w_qkv : embed (three heads head) -> embed three heads head
//
// `*` is any text without a dot, the same on both sides. The first line whose right side is the name of a param or state counts; a param
// that no line names keeps its own name.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/array_file.h"
#include "runtime/data/rearrange.h"

namespace einc {

class NameMap {
 public:
  NameMap() = default;
  // Throws RuntimeFailure: resource, or data with the line.
  static NameMap read(const std::string& path);
  static NameMap parse(std::string_view text, const std::string& path);

  std::string theirs(std::string_view ours) const;
  // The array of a param or state of that name and shape, its axes rearranged where the map says so.
  HostArray read(const ArrayFile& file, std::string_view ours, const std::vector<int64_t>& shape) const;
  // Throws RuntimeFailure (data) for a line that names nothing that is both in one of the files and among `ours`.
  void check_used(const std::vector<std::string>& ours, const std::vector<const ArrayFile*>& files) const;

 private:
  struct Line {
    size_t number;  // from 1
    std::string theirs, ours;
    std::optional<Rearrangement> rearrangement;
  };
  const Line* line_for(std::string_view ours) const;

  std::string path_;
  std::vector<Line> lines_;
};

}  // namespace einc
