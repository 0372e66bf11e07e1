// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/rearrange.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

constexpr size_t kMaxNames = 32;
constexpr std::string_view kArrow = "->";

bool is_name_byte(char c) { return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

Rearrangement::Rearrangement(std::string_view pattern) : pattern_(pattern) {
  const size_t arrow = pattern.find(kArrow);
  if (arrow == std::string_view::npos || pattern.find(kArrow, arrow + 1) != std::string_view::npos) fail("it has no `->`, or several");
  left_ = parse_side(pattern.substr(0, arrow));
  const size_t known = names_.size();
  right_ = parse_side(pattern.substr(arrow + kArrow.size()));
  if (names_.size() > known) fail(fmt::format("'{}' is on the right only", names_.back()));
  size_t used = 0;
  for (const std::vector<size_t>& axis : right_) used += axis.size();
  if (used < known) fail("a name is on the left only");
}

void Rearrangement::fail(const std::string& what) const {
  throw RuntimeFailure(FailureKind::data, fmt::format("`{}`: {}", printable(pattern_), what));
}

Rearrangement::Side Rearrangement::parse_side(std::string_view text) {
  Side axes;
  std::vector<size_t> seen;
  bool grouped = false;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ' || c == '\t') {
      ++at;
    } else if (c == '(' && !grouped) {
      grouped = true;
      axes.emplace_back();
      ++at;
    } else if (c == ')' && grouped) {
      grouped = false;
      ++at;
    } else if (is_name_byte(c)) {
      const size_t begin = at;
      while (at < text.size() && is_name_byte(text[at])) ++at;
      const std::string name(text.substr(begin, at - begin));
      if (!grouped) axes.emplace_back();
      if (name == "1") continue;
      if (c >= '0' && c <= '9') fail(fmt::format("'{}' is neither a name nor 1", printable(name)));
      const auto found = std::find(names_.begin(), names_.end(), name);
      const auto index = static_cast<size_t>(found - names_.begin());
      if (found == names_.end()) names_.push_back(name);
      if (names_.size() > kMaxNames) fail(fmt::format("it has more than {} names", kMaxNames));
      if (std::find(seen.begin(), seen.end(), index) != seen.end()) fail(fmt::format("'{}' appears twice on one side", printable(name)));
      seen.push_back(index);
      axes.back().push_back(index);
    } else {
      fail(fmt::format("'{}' is out of place", printable(text.substr(at, 1))));
    }
  }
  if (grouped) fail("a group is not closed");
  return axes;
}

std::vector<int64_t> Rearrangement::sizes(const std::vector<int64_t>& from, const std::vector<int64_t>& to) const {
  std::vector<int64_t> sizes(names_.size(), -1);
  const auto misfit = [&] { fail(fmt::format("[{}] does not become [{}] by it", fmt::join(from, " "), fmt::join(to, " "))); };
  if (left_.size() != from.size() || right_.size() != to.size()) misfit();
  // Once every axis with a single unknown name gives that name; as many rounds as names can be needed.
  for (size_t round = 0; round <= names_.size(); ++round)
    for (const auto& [side, shape] : {std::pair(&left_, &from), std::pair(&right_, &to)})
      for (size_t i = 0; i < side->size(); ++i) {
        int64_t product = 1;
        std::vector<size_t> unknown;
        for (const size_t name : (*side)[i]) {
          if (sizes[name] < 0) unknown.push_back(name);
          if (sizes[name] >= 0 && __builtin_mul_overflow(product, sizes[name], &product)) misfit();
        }
        if (unknown.empty() && product != (*shape)[i]) misfit();
        if (unknown.size() != 1) continue;
        if (product == 0 || (*shape)[i] % product != 0) misfit();
        sizes[unknown.front()] = (*shape)[i] / product;
      }
  for (size_t name = 0; name < names_.size(); ++name)
    if (sizes[name] < 0)
      fail(fmt::format("the size of '{}' does not follow from [{}] and [{}]", names_[name], fmt::join(from, " "), fmt::join(to, " ")));
  return sizes;
}

HostArray Rearrangement::apply(const HostArray& array, const std::vector<int64_t>& shape) const {
  const std::vector<int64_t> size = sizes(array.shape, shape);
  std::vector<int64_t> stride(names_.size());  // in the array, of elements
  int64_t elements = 1;
  for (auto axis = left_.rbegin(); axis != left_.rend(); ++axis)
    for (auto name = axis->rbegin(); name != axis->rend(); ++name) {
      stride[*name] = elements;
      elements *= size[*name];
    }
  std::vector<size_t> order;
  for (const std::vector<size_t>& axis : right_) order.insert(order.end(), axis.begin(), axis.end());

  HostArray result{array.dtype, shape, std::vector<std::byte>(array.bytes.size())};
  const auto width = static_cast<size_t>(bytes_of(array.dtype));
  std::vector<int64_t> index(order.size());
  int64_t at = 0;
  for (size_t to = 0; to < result.bytes.size(); to += width) {
    std::memcpy(result.bytes.data() + to, array.bytes.data() + static_cast<size_t>(at) * width, width);
    for (size_t i = order.size(); i-- > 0;) {
      at += stride[order[i]];
      if (++index[i] < size[order[i]]) break;
      at -= stride[order[i]] * size[order[i]];
      index[i] = 0;
    }
  }
  return result;
}

}  // namespace einc
