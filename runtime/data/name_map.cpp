// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/name_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/file.h"

namespace einc {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

// What the stars of a pattern stand for in a name; nullopt: it does not match. A star takes as little as it can.
std::optional<std::vector<std::string_view>> match(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    if (pattern != name) return std::nullopt;
    return std::vector<std::string_view>{};
  }
  if (name.substr(0, star) != pattern.substr(0, star)) return std::nullopt;
  const std::string_view rest = name.substr(star);
  const size_t limit = std::min(rest.find('.'), rest.size());
  for (size_t length = 1; length <= limit; ++length)
    if (auto tail = match(pattern.substr(star + 1), rest.substr(length))) {
      tail->insert(tail->begin(), rest.substr(0, length));
      return tail;
    }
  return std::nullopt;
}

std::string fill(std::string_view pattern, const std::vector<std::string_view>& stars) {
  std::string result;
  size_t used = 0;
  for (const char c : pattern) c == '*' ? result += stars[used++] : result += c;
  return result;
}

}  // namespace

NameMap NameMap::read(const std::string& path) {
  const MappedFile file(path);
  NameMap map = parse({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
  file.check_whole();
  return map;
}

NameMap NameMap::parse(std::string_view text, const std::string& path) {
  constexpr size_t kMaxStars = 4;
  NameMap map;
  map.path_ = path;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto fail = [&](const std::string& what) {
      throw RuntimeFailure(FailureKind::data, fmt::format("{}: line {}: {}", printable(path), number, what));
    };
    const size_t arrow = line.find("->");
    if (arrow == std::string_view::npos) fail("a line is `their.name -> our.name`, or `their.name -> our.name : their axes -> our axes`");
    const std::string_view right = line.substr(arrow + 2);
    const size_t colon = right.find(':');
    Line entry{number, std::string(trimmed(line.substr(0, arrow))), std::string(trimmed(right.substr(0, colon))), {}};
    const auto stars = [](const std::string& name) { return std::count(name.begin(), name.end(), '*'); };
    for (const std::string& name : {entry.theirs, entry.ours})
      if (name.empty() || name.find_first_of(" \t") != std::string::npos) fail(fmt::format("'{}' is not a name", printable(name)));
    if (stars(entry.theirs) != stars(entry.ours)) fail("the two names have different numbers of `*`");
    if (static_cast<size_t>(stars(entry.ours)) > kMaxStars) fail(fmt::format("more than {} `*`", kMaxStars));
    try {
      if (colon != std::string_view::npos) entry.rearrangement.emplace(trimmed(right.substr(colon + 1)));
    } catch (const RuntimeFailure& failure) {
      fail(failure.what());
    }
    map.lines_.push_back(std::move(entry));
  }
  return map;
}

const NameMap::Line* NameMap::line_for(std::string_view ours) const {
  const auto found = std::find_if(lines_.begin(), lines_.end(), [&](const Line& line) { return match(line.ours, ours).has_value(); });
  return found == lines_.end() ? nullptr : &*found;
}

std::string NameMap::theirs(std::string_view ours) const {
  const Line* line = line_for(ours);
  return line ? fill(line->theirs, *match(line->ours, ours)) : std::string(ours);
}

HostArray NameMap::read(const ArrayFile& file, std::string_view ours, const std::vector<int64_t>& shape) const {
  HostArray array = file.read(theirs(ours));
  const Line* line = line_for(ours);
  if (!line || !line->rearrangement) return array;
  try {
    return line->rearrangement->apply(array, shape);
  } catch (const RuntimeFailure& failure) {
    throw RuntimeFailure(failure.kind(), fmt::format("{}: line {}: '{}' for '{}': {}", printable(path_), line->number,
                                                     printable(theirs(ours)), printable(ours), failure.what()));
  }
}

void NameMap::check_used(const std::vector<std::string>& ours, const std::vector<const ArrayFile*>& files) const {
  std::vector<const Line*> used;
  for (const std::string& name : ours)
    if (std::any_of(files.begin(), files.end(), [&](const ArrayFile* file) { return file->contains(theirs(name)); }))
      used.push_back(line_for(name));
  for (const Line& line : lines_)
    if (std::find(used.begin(), used.end(), &line) == used.end()) {
      const bool known = std::any_of(ours.begin(), ours.end(), [&](const std::string& name) { return match(line.ours, name).has_value(); });
      throw RuntimeFailure(
          FailureKind::data,
          fmt::format("{}: line {}: `{} -> {}` fits nothing: {} has no tensor `{}`", printable(path_), line.number, printable(line.theirs),
                      printable(line.ours), known ? "the file of weights" : "the program", printable(known ? line.theirs : line.ours)));
    }
}

}  // namespace einc
