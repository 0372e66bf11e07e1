// SPDX-License-Identifier: Apache-2.0
// Fields of JSON objects by type. A field that is absent or null has the default; one of another type throws std::invalid_argument.
#pragma once
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace einc {

[[noreturn]] inline void refuse(const std::string& what) { throw std::invalid_argument(what); }

inline const nlohmann::json* find_field(const nlohmann::json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

inline std::string text_field(const nlohmann::json& object, const char* name, const std::string& otherwise = "") {
  const nlohmann::json* field = find_field(object, name);
  if (field && !field->is_string()) refuse(fmt::format("'{}' is not a string", name));
  return field ? field->get<std::string>() : otherwise;
}

enum class Absent : uint8_t { is_false, is_true };
inline bool flag_field(const nlohmann::json& object, const char* name, Absent absent = Absent::is_false) {
  const nlohmann::json* field = find_field(object, name);
  if (field && !field->is_boolean()) refuse(fmt::format("'{}' is neither true nor false", name));
  return field ? field->get<bool>() : absent == Absent::is_true;
}

// The objects of a list.
inline const nlohmann::json& list_field(const nlohmann::json& object, const char* name) {
  static const nlohmann::json kNone = nlohmann::json::array();
  const nlohmann::json* field = find_field(object, name);
  if (field && !field->is_array()) refuse(fmt::format("'{}' is not a list", name));
  return field ? *field : kNone;
}

// What step a normalizer, pre-tokenizer or decoder is; "" for none.
inline std::string type_of(const nlohmann::json& object) { return text_field(object, "type"); }

}  // namespace einc
