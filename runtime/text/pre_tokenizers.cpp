// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "runtime/text/byte_alphabet.h"
#include "runtime/text/json_fields.h"
#include "runtime/text/regex.h"
#include "runtime/text/split_words.h"
#include "runtime/text/text_steps.h"
#include "runtime/text/utf8.h"

namespace einc {
namespace {

using Json = nlohmann::json;

// What becomes of a match where a text is divided.
enum class Behavior : uint8_t { removed, isolated, with_previous, with_next, contiguous };

Behavior read_behavior(const Json& object, const char* otherwise) {
  static constexpr std::pair<std::string_view, Behavior> kNames[] = {{"Removed", Behavior::removed},
                                                                     {"Isolated", Behavior::isolated},
                                                                     {"MergedWithPrevious", Behavior::with_previous},
                                                                     {"MergedWithNext", Behavior::with_next},
                                                                     {"Contiguous", Behavior::contiguous}};
  const std::string name = text_field(object, "behavior", otherwise);
  const auto found = std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& row) { return row.first == name; });
  if (found == std::end(kNames)) refuse(fmt::format("the behavior '{}' of a Split", name));
  return found->second;
}

struct Part {
  size_t begin, end;
  bool is_match;
};

// Parts as they leave, from parts that alternate with matches as they were found.
std::vector<Part> arrange(const std::vector<Part>& found, Behavior behavior) {
  std::vector<Part> parts;
  bool before = false;  // whether the last part was a match
  switch (behavior) {
    case Behavior::isolated:
      return found;
    case Behavior::removed:
      std::copy_if(found.begin(), found.end(), std::back_inserter(parts), [](const Part& part) { return !part.is_match; });
      return parts;
    case Behavior::with_previous:
      for (const Part& part : found) {
        if (part.is_match && !before && !parts.empty())
          parts.back().end = part.end;
        else
          parts.push_back(part);
        before = part.is_match;
      }
      return parts;
    case Behavior::with_next:
      for (auto part = found.rbegin(); part != found.rend(); ++part) {
        if (part->is_match && !before && !parts.empty())
          parts.back().begin = part->begin;
        else
          parts.push_back(*part);
        before = part->is_match;
      }
      std::reverse(parts.begin(), parts.end());
      return parts;
    case Behavior::contiguous:
      for (const Part& part : found) {
        if (part.is_match == before && !parts.empty())
          parts.back().end = part.end;
        else
          parts.push_back(part);
        before = part.is_match;
      }
      return parts;
  }
  return parts;
}

enum class Invert : uint8_t { no, yes };

PreTokenizer split_at(const std::string& pattern, Behavior behavior, Invert invert = Invert::no) {
  const std::optional<Regex> regex = Regex::compile(pattern);
  if (!regex) refuse(fmt::format("the pattern '{}'", pattern));
  return [regex = *regex, behavior, inverted = invert == Invert::yes](TextPiece piece, const PieceSink& sink) {
    std::vector<Part> found;
    size_t at = 0;
    while (const auto match = regex.find(piece.text, at)) {
      if (match->first > at) found.push_back({at, match->first, inverted});
      found.push_back({match->first, match->second, !inverted});
      at = match->second;
    }
    if (at < piece.text.size()) found.push_back({at, piece.text.size(), inverted});
    for (const Part& part : arrange(found, behavior))
      sink({piece.text.substr(part.begin, part.end - part.begin), piece.first && part.begin == 0});
  };
}

PreTokenizer split(const Json& object) {
  const Json* pattern = find_field(object, "pattern");
  if (!pattern) refuse("a Split without pattern");
  std::string expression = text_field(*pattern, "Regex");
  if (const std::string plain = text_field(*pattern, "String"); !plain.empty()) {
    if (plain.find("\\E") != std::string::npos) refuse("a Split at a string with \\E");
    expression = "\\Q" + plain + "\\E";
  }
  if (expression.empty()) refuse("a Split at nothing");
  return split_at(expression, read_behavior(object, "Isolated"), flag_field(object, "invert") ? Invert::yes : Invert::no);
}

// Spaces become a mark; a word begins at each.
PreTokenizer metaspace(const Json& object) {
  const std::string mark = text_field(object, "replacement", "\xE2\x96\x81");
  std::string scheme = text_field(object, "prepend_scheme");
  if (scheme.empty()) scheme = flag_field(object, "add_prefix_space", Absent::is_true) ? "always" : "never";  // as files before 2024 say it
  if (scheme != "always" && scheme != "first" && scheme != "never") refuse(fmt::format("the prepend_scheme '{}'", scheme));
  if (mark.empty()) refuse("a Metaspace without replacement");
  const bool always = scheme == "always", first = scheme == "first", divides = flag_field(object, "split", Absent::is_true);
  return [=](TextPiece piece, const PieceSink& sink) {
    std::string marked;
    const bool starts_with_space = piece.text.starts_with(' ') || piece.text.starts_with(mark);
    if (!starts_with_space && (always || (first && piece.first))) marked = mark;
    for (const char c : piece.text) c == ' ' ? marked += mark : marked += c;
    if (!divides) return sink({marked, piece.first});
    for (size_t at = 0; at < marked.size();) {
      const size_t end = std::min(marked.find(mark, at + 1), marked.size());
      sink({std::string_view(marked).substr(at, end - at), piece.first && at == 0});
      at = end;
    }
  };
}

// GPT-2's words, in the alphabet of bytes.
PreTokenizer byte_level(const Json& object) {
  const bool adds_space = flag_field(object, "add_prefix_space", Absent::is_true),
             divides = flag_field(object, "use_regex", Absent::is_true);
  return [=](TextPiece piece, const PieceSink& sink) {
    std::string spaced, name;
    if (adds_space && !piece.text.starts_with(' ')) piece.text = spaced = " " + std::string(piece.text);
    for (size_t at = 0; at < piece.text.size();) {
      const size_t length = divides ? word_length(piece.text, at) : piece.text.size();
      name.clear();
      append_name_of_bytes(name, piece.text.substr(at, length));
      sink({name, piece.first && at == 0});
      at += length;
    }
  };
}

PreTokenizer read_one_pre_tokenizer(const Json& object) {
  const std::string type = type_of(object);
  if (type == "ByteLevel") return byte_level(object);
  if (type == "Metaspace") return metaspace(object);
  if (type == "Split") return split(object);
  if (type == "Digits") return split_at("\\p{N}", flag_field(object, "individual_digits") ? Behavior::isolated : Behavior::contiguous);
  if (type == "Punctuation") return split_at("[!-/:-@\\[-`{-~\\p{P}]", read_behavior(object, "Isolated"));
  if (type == "WhitespaceSplit") return split_at("\\p{White_Space}", Behavior::removed);
  if (type == "Whitespace")  // \w as Unicode's recommendation for regular expressions has it
    return split_at(
        "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}]+|[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200C}\\x{200D}\\p{White_Space}]"
        "+",
        Behavior::removed, Invert::yes);
  refuse(fmt::format("a pre-tokenizer of type '{}'", type));
}

}  // namespace

std::vector<PreTokenizer> read_pre_tokenizers(const Json& object) {
  std::vector<PreTokenizer> steps;
  if (object.is_null()) return steps;
  if (type_of(object) != "Sequence") return steps.push_back(read_one_pre_tokenizer(object)), steps;
  for (const Json& one : list_field(object, "pretokenizers"))
    for (PreTokenizer& step : read_pre_tokenizers(one)) steps.push_back(std::move(step));
  return steps;
}

}  // namespace einc
