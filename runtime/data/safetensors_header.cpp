// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace einc {
namespace {

constexpr uint64_t kHeaderOffset = 8;

// Follows the one shape a header may have: {name: {dtype: string, shape: [sizes], data_offsets: [two]}, __metadata__: {key: string}}.
class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Events(const InputFile& file) : file_(file) {}

  SafetensorsHeader take() { return {std::move(tensors_), std::move(metadata_)}; }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return enter(Place::header);
    if (place_ == Place::header) return enter(key_ == "__metadata__" ? Place::metadata : Place::tensor);
    fail("an object where none may be");
  }
  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    return enter(place_ == Place::header ? Place::outside : Place::header);
  }
  bool key(string_t& text) override {
    switch (place_) {
      case Place::header:
        key_ = std::move(text);
        if (!names_.insert(key_).second) fail("is there twice");
        current_ = {};
        current_.name = key_;
        has_dtype_ = has_shape_ = has_offsets_ = false;
        return true;
      case Place::metadata:
        field_ = std::move(text);
        if (metadata_.count(field_) > 0) fail(fmt::format("has the key {} twice", quoted_name(field_)));
        return true;
      default:
        field_ = std::move(text);
        return true;
    }
  }
  bool string(string_t& text) override {
    if (place_ == Place::metadata) {
      metadata_[field_] = std::move(text);
    } else if (place_ == Place::tensor && field_ == "dtype") {
      once(has_dtype_);
      const SafetensorsCode* code = safetensors_code(text);
      if (!code) fail(fmt::format("has the unknown dtype {}", quoted_name(text)));
      current_.dtype = code->text;
    } else {
      fail("a string where none may be");
    }
    return true;
  }
  bool start_array(std::size_t) override {
    if (place_ != Place::tensor) fail("a list where none may be");
    if (field_ == "shape") {
      once(has_shape_);
    } else if (field_ == "data_offsets") {
      once(has_offsets_);
    } else {
      fail(fmt::format("has the unknown field {}", quoted_name(field_)));
    }
    numbers_.clear();
    return enter(Place::numbers);
  }
  bool end_array() override {
    if (field_ == "data_offsets") {
      if (numbers_.size() != 2) fail("data_offsets must be two numbers");
      current_.begin = numbers_[0];
      current_.end = numbers_[1];
    } else {
      for (const uint64_t size : numbers_) current_.shape.push_back(static_cast<int64_t>(size));
    }
    return enter(Place::tensor);
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::numbers) fail("a number where none may be");
    if (value > static_cast<uint64_t>(INT64_MAX)) fail(fmt::format("{}: {} does not fit 63 bits", field_, value));
    if (numbers_.size() == kMaxSafetensorsRank) fail(fmt::format("{}: more than {} numbers", field_, kMaxSafetensorsRank));
    numbers_.push_back(value);
    return true;
  }
  bool number_integer(number_integer_t value) override { fail(fmt::format("{}: {} is negative", field_, value)); }
  bool number_float(number_float_t, const string_t& text) override {
    fail(fmt::format("{}: {} is not a whole number", field_, printable(std::string_view(text).substr(0, kMaxShownIdentifier))));
  }
  bool boolean(bool) override { fail("true or false where none may be"); }
  bool null() override { fail("null where none may be"); }
  bool binary(binary_t&) override { fail("binary data where none may be"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    file_.fail(kHeaderOffset + (position > 0 ? position - 1 : 0), "the header is not JSON");
  }

 private:
  enum class Place : uint8_t { outside, header, metadata, tensor, numbers };

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  [[noreturn]] void fail(const std::string& what) const {
    file_.fail(kHeaderOffset, fmt::format("the header{}: {}", key_.empty() ? "" : ", " + quoted_name(key_), what));
  }
  void once(bool& seen) {
    if (seen) fail(fmt::format("has {} twice", field_));
    seen = true;
  }

  void finish_tensor() {
    for (const auto& [there, name] : {std::pair(has_dtype_, "dtype"), {has_shape_, "shape"}, {has_offsets_, "data_offsets"}})
      if (!there) fail(fmt::format("has no {}", name));
    if (current_.end < current_.begin) fail(fmt::format("its bytes end at {}, before they begin at {}", current_.end, current_.begin));
    const auto bits = bit_count();
    if (!bits) fail("its size does not fit 64 bits");
    if (*bits % 8 != 0 || *bits / 8 != current_.end - current_.begin)
      fail(fmt::format("its shape and dtype take {} bytes, but its offsets have {}", *bits / 8, current_.end - current_.begin));
    tensors_.push_back(std::move(current_));
  }

  std::optional<uint64_t> bit_count() const {
    if (std::find(current_.shape.begin(), current_.shape.end(), 0) != current_.shape.end()) return 0;
    auto bits = static_cast<uint64_t>(safetensors_code(current_.dtype)->bits);
    for (const int64_t size : current_.shape)
      if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) return std::nullopt;
    return bits;
  }

  const InputFile& file_;
  Place place_ = Place::outside;
  std::string key_, field_;  // of the header, and of a tensor or the metadata
  std::set<std::string> names_;
  SafetensorsEntry current_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  std::vector<uint64_t> numbers_;
  std::vector<SafetensorsEntry> tensors_;
  SafetensorsMetadata metadata_;
};

}  // namespace

const SafetensorsCode* safetensors_code(std::string_view text) {
  const auto* found =
      std::find_if(kSafetensorsCodes.begin(), kSafetensorsCodes.end(), [&](const SafetensorsCode& c) { return c.text == text; });
  return found == kSafetensorsCodes.end() ? nullptr : found;
}

SafetensorsHeader parse_safetensors_header(const InputFile& file, std::string_view text) {
  if (text.empty() || text.front() != '{') file.fail(kHeaderOffset, "the header is not a JSON object");
  Events events(file);
  nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  return events.take();
}

}  // namespace einc
