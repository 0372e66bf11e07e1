// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpoint_record.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/base/xxh64.h"
#include "runtime/data/strict_json.h"

namespace einc {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFormat = "einc checkpoint";
constexpr int kRecordVersion = 1;

std::string checksum_line(std::string_view body) {
  return fmt::format(",\n  \"checksum\": \"{:016x}\"\n}}\n", xxh64(std::as_bytes(std::span(body))));
}

Json to_json(const FileDigest& digest) { return {{"bytes", digest.bytes}, {"xxh64", fmt::format("{:016x}", digest.hash)}}; }

// Reads the one form that the text may have.
class RecordReader {
 public:
  explicit RecordReader(const std::string& path) : path_(path) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(path_), what));
  }

  const Json& field(const Json& object, const char* name) const {
    if (!object.is_object()) fail(fmt::format("no object around '{}'", name));
    const auto found = object.find(name);
    if (found == object.end()) fail(fmt::format("'{}' is missing", name));
    return *found;
  }

  template <class T>
  T get(const Json& object, const char* name) const {
    const Json& value = field(object, name);
    if constexpr (std::same_as<T, std::string>) {
      if (!value.is_string()) fail(fmt::format("'{}' is not a string", name));
    } else if constexpr (std::same_as<T, double>) {
      if (!value.is_number()) fail(fmt::format("'{}' is not a number", name));
    } else {
      if (!value.is_number_unsigned()) fail(fmt::format("'{}' is not a whole number", name));
    }
    return value.get<T>();
  }

  FileDigest digest(const Json& files, const char* name) const {
    const Json& object = field(files, name);
    const std::string text = get<std::string>(object, "xxh64");
    if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos) fail("'xxh64' is not 16 hex digits");
    return {get<uint64_t>(object, "bytes"), std::stoull(text, nullptr, 16)};
  }

  std::map<std::string, std::string> settings(const Json& object, const char* name) const {
    std::map<std::string, std::string> result;
    const Json& values = field(object, name);
    if (!values.is_object()) fail(fmt::format("'{}' is not an object", name));
    for (const auto& [key, value] : values.items()) {
      if (!value.is_string()) fail(fmt::format("'{}' is not a string", printable(key)));
      result[key] = value.get<std::string>();
    }
    return result;
  }

  CheckpointRecord record(const Json& json) const {
    if (get<std::string>(json, "format") != kFormat) fail("not the record of a checkpoint");
    if (const auto version = get<uint64_t>(json, "version"); version != kRecordVersion)
      fail(fmt::format("a checkpoint of version {}; this einc reads version {}", version, kRecordVersion));
    CheckpointRecord record;
    record.program = get<std::string>(json, "program");
    const Json& dims = field(json, "dims");
    if (!dims.is_array()) fail("'dims' is not a list");
    for (const Json& dim : dims) record.dims.emplace_back(get<std::string>(dim, "name"), static_cast<int64_t>(get<uint64_t>(dim, "size")));
    TrainingPosition& position = record.position;
    position.step = get<uint64_t>(json, "step");
    const Json& seeds = field(json, "seeds");
    record.run.seeds = {get<uint64_t>(seeds, "init"), get<uint64_t>(seeds, "data"), get<uint64_t>(seeds, "dropout")};
    if (const Json& best = field(json, "best"); !best.is_null()) {
      position.best_step = get<uint64_t>(best, "step");
      position.best_loss = get<double>(best, "loss");
    }
    record.run.required = settings(json, "required");
    record.run.noted = settings(json, "noted");
    record.weights = digest(field(json, "files"), "weights.safetensors");
    record.state = digest(field(json, "files"), "state.safetensors");
    return record;
  }

 private:
  const std::string& path_;
};

}  // namespace

std::string to_json(const CheckpointRecord& record) {
  const TrainingPosition& position = record.position;
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["version"] = kRecordVersion;
  json["program"] = record.program;
  json["dims"] = Json::array();
  for (const auto& [name, size] : record.dims) json["dims"].push_back({{"name", name}, {"size", size}});
  json["step"] = position.step;
  const auto& [seeds, required, noted] = record.run;
  json["seeds"] = {{"init", seeds.init}, {"data", seeds.data}, {"dropout", seeds.dropout}};
  json["best"] = nullptr;
  if (std::isfinite(position.best_loss)) json["best"] = {{"step", position.best_step}, {"loss", position.best_loss}};
  json["required"] = required;
  json["noted"] = noted;
  json["files"] = {{"weights.safetensors", to_json(record.weights)}, {"state.safetensors", to_json(record.state)}};
  std::string body = json.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
  body.resize(body.size() - 2);  // "\n}", which the checksum's line brings
  return body + checksum_line(body);
}

CheckpointRecord parse_checkpoint_record(std::string_view text, const std::string& path) {
  const RecordReader reader(path);
  const size_t tail = checksum_line("").size();
  const Json json = parse_strict_json(text, path);
  if (text.size() < tail || text.substr(text.size() - tail) != checksum_line(text.substr(0, text.size() - tail)))
    reader.fail("its checksum is not that of its text: the file was changed or damaged");
  return reader.record(json);
}

}  // namespace einc
