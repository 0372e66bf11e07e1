// SPDX-License-Identifier: Apache-2.0
// Checks a JSON value against the part of JSON Schema (draft 7) that the project's schemas use: type, enum, required,
// properties, additionalProperties, items, $ref into definitions. Any other keyword is a failure, not ignored.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace einc::test {

class SchemaCheck {
 public:
  explicit SchemaCheck(const nlohmann::json& schema) : root_(schema) {}
  // Problems with their place, "/ops/3/flops: ..."; empty when the value conforms.
  std::vector<std::string> operator()(const nlohmann::json& value) {
    problems_.clear();
    check(root_, value, "");
    return problems_;
  }

 private:
  using Json = nlohmann::json;

  void fail(const std::string& where, const std::string& what) { problems_.push_back(where + ": " + what); }

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  void check_type(const Json& types, const Json& value, const std::string& where) {
    bool any = false;
    for (const Json& type : types.is_array() ? types : Json::array({types})) any = any || has_type(value, type.get<std::string>());
    if (!any) fail(where, "is no " + types.dump());
  }

  void check_object(const Json& schema, const Json& value, const std::string& where) {
    if (!value.is_object()) return;
    if (schema.contains("required"))
      for (const Json& key : schema["required"])
        if (!value.contains(key.get<std::string>())) fail(where, "lacks " + key.dump());
    for (const auto& [key, member] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(key))
        check(schema["properties"][key], member, where + "/" + key);
      else if (schema.contains("additionalProperties") && schema["additionalProperties"].is_object())
        check(schema["additionalProperties"], member, where + "/" + key);
      else if (schema.contains("additionalProperties") && schema["additionalProperties"] == false)
        fail(where, "has an unknown " + key);
    }
  }

  void check(const Json& schema, const Json& value, const std::string& where) {
    for (const auto& [keyword, argument] : schema.items()) {
      if (keyword == "$ref")
        check(root_.at(Json::json_pointer(argument.get<std::string>().substr(1))), value, where);
      else if (keyword == "type")
        check_type(argument, value, where);
      else if (keyword == "enum") {
        if (std::find(argument.begin(), argument.end(), value) == argument.end())
          fail(where, value.dump() + " is none of " + argument.dump());
      } else if (keyword == "items") {
        for (size_t i = 0; value.is_array() && i < value.size(); ++i) check(argument, value[i], where + "/" + std::to_string(i));
      } else if (keyword != "required" && keyword != "properties" && keyword != "additionalProperties" && keyword != "$schema" &&
                 keyword != "title" && keyword != "description" && keyword != "definitions") {
        fail(where, "schema keyword " + keyword + " is not supported");
      }
    }
    check_object(schema, value, where);
  }

  const Json& root_;
  std::vector<std::string> problems_;
};

}  // namespace einc::test
