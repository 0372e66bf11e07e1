#include "runtime/text/flat_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"

namespace einc {
namespace {

class FlatEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  FlatEvents(const std::string& path, std::vector<JsonMember>& members) : path_(path), members_(members) {}

  bool start_object(std::size_t) override {
    if (is_inside_) fail("an object where a string or a number should be");
    return is_inside_ = true;
  }
  bool end_object() override { return true; }
  bool key(string_t& text) override {
    if (!names_.insert(text).second) fail(fmt::format("'{}' is there twice", printable(text)));
    name_ = std::move(text);
    return true;
  }
  bool string(string_t& text) override { return add(std::move(text)); }
  bool number_unsigned(number_unsigned_t value) override { return add(static_cast<uint64_t>(value)); }
  bool number_integer(number_integer_t value) override { fail(fmt::format("{} is negative", value)); }
  bool number_float(number_float_t, const string_t&) override { fail("a number that is not whole"); }
  bool start_array(std::size_t) override { fail("a list where a string or a number should be"); }
  bool end_array() override { return true; }
  bool boolean(bool) override { fail("true or false where a string or a number should be"); }
  bool null() override { fail("null where a string or a number should be"); }
  bool binary(binary_t&) override { fail("binary data where a string or a number should be"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: byte {}: not JSON", printable(path_), position > 0 ? position - 1 : 0));
  }

 private:
  bool add(std::variant<std::string, uint64_t> value) {
    if (!is_inside_) fail("not an object");
    members_.emplace_back(std::move(name_), std::move(value));
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(FailureKind::data,
                         fmt::format("{}: {}{}", printable(path_), name_.empty() ? "" : "'" + printable(name_) + "': ", what));
  }

  const std::string& path_;
  std::vector<JsonMember>& members_;
  std::unordered_set<std::string> names_;
  std::string name_;
  bool is_inside_ = false;
};

}  // namespace

std::vector<JsonMember> parse_flat_json(const std::string& path, std::string_view text) {
  std::vector<JsonMember> members;
  FlatEvents events(path, members);
  nlohmann::json::sax_parse(text, &events);
  return members;
}

}  // namespace einc
