// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace einc {
namespace {

std::optional<double> known(double value) { return value > 0 ? std::optional(value) : std::nullopt; }

enum class FieldKind : uint8_t { needed, optional, share };
struct Field {
  const char* key;
  double Device::*member;
  FieldKind kind;
};
constexpr std::array kFields{Field{"f64", &Device::f64, FieldKind::optional},
                             Field{"f32", &Device::f32, FieldKind::optional},
                             Field{"tf32", &Device::tf32, FieldKind::optional},
                             Field{"bf16", &Device::bf16, FieldKind::optional},
                             Field{"f16", &Device::f16, FieldKind::optional},
                             Field{"fp8", &Device::fp8, FieldKind::optional},
                             Field{"int8", &Device::int8, FieldKind::optional},
                             Field{"memory_bytes", &Device::memory_bytes, FieldKind::needed},
                             Field{"bandwidth", &Device::bandwidth, FieldKind::needed},
                             Field{"cache_bytes", &Device::cache_bytes, FieldKind::optional},
                             Field{"cache_bandwidth", &Device::cache_bandwidth, FieldKind::optional},
                             Field{"launch_s", &Device::launch_s, FieldKind::optional},
                             Field{"small_launch_s", &Device::small_launch_s, FieldKind::optional},
                             Field{"clock", &Device::clock, FieldKind::optional},
                             Field{"sustained_clock", &Device::sustained_clock, FieldKind::share},
                             Field{"sustained_products", &Device::sustained_products, FieldKind::share},
                             Field{"sustained_fp8", &Device::sustained_fp8, FieldKind::share},
                             Field{"sustained_bandwidth", &Device::sustained_bandwidth, FieldKind::share},
                             Field{"warp_products", &Device::warp_products, FieldKind::share},
                             Field{"threads", &Device::threads, FieldKind::optional},
                             Field{"stated_f32", &Device::stated_f32, FieldKind::optional},
                             Field{"stated_bf16", &Device::stated_bf16, FieldKind::optional},
                             Field{"reserve_bytes", &Device::reserve_bytes, FieldKind::optional}};

// Limits nesting before the parser builds anything.
std::optional<nlohmann::json> parse_bounded(std::string_view text) {
  constexpr int kDeepest = 8;
  bool too_deep = false;
  auto guard = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep = too_deep || depth > kDeepest;
    return !too_deep;
  };
  nlohmann::json json = nlohmann::json::parse(text, guard, false);
  if (too_deep || json.is_discarded()) return std::nullopt;
  return json;
}

// Reads one device of a file and says what is wrong with it.
class DeviceReader {
 public:
  DeviceReader(const nlohmann::json& json, std::string_view file, DeviceFile& out) : json_(json), file_(file), out_(out) {}

  void read() {
    if (!json_.is_object() || !json_.contains("name") || !json_["name"].is_string()) {
      out_.problems.push_back(fmt::format("{}: a device is an object with a \"name\"", file_));
      return;
    }
    name_ = json_["name"].get<std::string>();
    if (json_.contains("like")) start_like(json_["like"]);
    device_.name = name_;
    if (json_.contains("description") && json_["description"].is_string()) device_.description = json_["description"].get<std::string>();
    if (device_.description.empty()) device_.description = name_;
    device_.source = std::string(file_);
    for (const Field& field : kFields) read_number(field);
    if (json_.contains("target")) read_target(json_["target"]);
    if (json_.contains("links")) read_links(json_["links"]);
    if (json_.contains("reserve_bytes")) device_.reserve_source = std::string(file_);
    set_usual_reserve(device_);
    for (const auto& item : json_.items()) {
      constexpr std::array kOthers{"name", "description", "target", "like", "links"};
      const bool expected = std::ranges::find(kOthers, item.key()) != kOthers.end() ||
                            std::ranges::any_of(kFields, [&](const Field& f) { return item.key() == f.key; });
      if (!expected) problem("unknown field \"{}\"", item.key());
    }
    if (auto warning = sparse_peak_warning(device_)) out_.warnings.push_back(*warning);
    out_.devices.push_back(std::move(device_));
  }

 private:
  template <class... Values>
  void problem(fmt::format_string<Values...> what, Values&&... values) {
    out_.problems.push_back(fmt::format("{}: device {}: {}", file_, name_, fmt::format(what, std::forward<Values>(values)...)));
  }

  void start_like(const nlohmann::json& like) {
    if (!like.is_string()) return problem("\"like\" is the name of a device of the table");
    const auto row = like.get<std::string>();
    if (const Device* known = find_device(row)) {
      device_ = *known;
      return;
    }
    const std::vector<std::string> near = near_devices(row);
    problem("no device is called \"{}\"{}", row, near.empty() ? "" : "; " + near.front() + " is one");
  }

  void read_number(const Field& field) {
    if (!json_.contains(field.key)) {
      if (field.kind == FieldKind::needed && !json_.contains("like")) problem("\"{}\" is missing", field.key);
      return;
    }
    const std::optional<double> value = number(json_[field.key]);
    if (!value || *value <= 0) return problem("\"{}\" is a positive number", field.key);
    if (field.kind == FieldKind::share && *value > 1) return problem("\"{}\" is a share of a rate, at most 1", field.key);
    device_.*field.member = *value;
  }

  void read_target(const nlohmann::json& target) {
    const bool cuda = target == "cuda";
    if (!cuda && target != "cpu") problem("\"target\" is \"cpu\" or \"cuda\"");
    device_.target = cuda ? DeviceTarget::cuda : DeviceTarget::cpu;
  }

  void read_links(const nlohmann::json& links) {
    device_.links.clear();  // those of the row that it is like say nothing of a cluster with links of its own
    const auto is_object = [](const nlohmann::json& link) { return link.is_object(); };
    if (!links.is_array() || !std::ranges::all_of(links, is_object)) return problem("\"links\" is a list of objects, the nearest first");
    int64_t devices = 1;  // a collective crosses the first link whose group holds all of its devices, so groups must grow
    for (const nlohmann::json& json : links) {
      DeviceLink link;
      if (json.contains("name") && json["name"].is_string()) link.name = json["name"].get<std::string>();
      link.bandwidth = json.contains("bandwidth") ? number(json["bandwidth"]).value_or(0) : 0;
      if (link.name.empty() || link.bandwidth <= 0) return problem("a link has a \"name\" and a positive \"bandwidth\"");
      const nlohmann::json given = json.value("devices", nlohmann::json(kAnyNumberOfDevices));
      link.devices = given.is_number_integer() ? given.get<int64_t>() : 0;
      if (link.devices <= devices)
        return problem("\"devices\" of link {} is a whole number above that of the link before it, at least 2", link.name);
      devices = link.devices;
      link.latency_s = number(json.value("latency_s", nlohmann::json(0.0))).value_or(-1);
      if (link.latency_s < 0) return problem("\"latency_s\" of link {} is a number of seconds, at least 0", link.name);
      for (const auto& item : json.items()) {
        constexpr std::array kLinkFields{"name", "devices", "bandwidth", "latency_s"};
        if (std::ranges::find(kLinkFields, item.key()) == kLinkFields.end())
          problem("link {}: unknown field \"{}\"", link.name, item.key());
      }
      device_.links.push_back(std::move(link));
    }
  }

  static std::optional<double> number(const nlohmann::json& value) {
    if (!value.is_number() || !std::isfinite(value.get<double>())) return std::nullopt;
    return value.get<double>();
  }

  const nlohmann::json& json_;
  const std::string_view file_;
  DeviceFile& out_;
  std::string name_;
  Device device_;
};

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::optional<double> Device::contraction_peak(DType dtype) const {
  switch (dtype) {
    case DType::f64:
      return known(f64);
    case DType::real:
    case DType::f32:
      return f32 > 0 ? std::optional(f32) : known(bf16);  // a TPU multiplies f32 in bf16 passes
    case DType::bf16:
      return bf16 > 0 ? std::optional(bf16) : known(f32);
    case DType::f16:
      return f16 > 0 ? std::optional(f16) : f32 > 0 ? std::optional(f32) : known(bf16);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return fp8 > 0 ? std::optional(fp8) : contraction_peak(DType::bf16);
    case DType::u8:
      return int8 > 0 ? std::optional(int8) : known(f32);
    case DType::i64:
    case DType::i32:
    case DType::u16:
    case DType::boolean:
      return known(f32);
  }
  return std::nullopt;
}

std::optional<double> Device::tf32_peak() const { return tf32 > 0 ? std::optional(tf32) : contraction_peak(DType::f32); }

std::optional<double> Device::vector_peak(DType dtype) const {
  const std::optional<double> single = f32 > 0 ? std::optional(f32) : known(bf16);
  if (dtype != DType::f64 || f64 > 0) return dtype == DType::f64 ? f64 : single;
  // GPUs for graphics do one f64 where they do 64 f32 (NVIDIA Ada GPU Architecture, "2 FP64 cores per SM"). A step looks at some numbers
  // in f64, so that without any rate no time could be told.
  constexpr double kSlowF64 = 64;
  return single ? std::optional(*single / kSlowF64) : std::nullopt;
}

const Device* find_device(std::string_view name) {
  for (const Device& device : known_devices())
    if (device.name == name) return &device;
  return nullptr;
}

std::vector<std::string> near_devices(std::string_view name) {
  std::vector<std::string> near;
  std::string start(name.substr(0, 256));
  for (char& c : start)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const Device& device : known_devices()) {
    const bool part = !start.empty() && device.name.find(start) != std::string::npos;
    const size_t slips = start.size() >= 6 ? 2 : 1;
    const bool one_more = start.size() > 3 && device.name.starts_with(std::string_view(start).substr(0, start.size() - 1));
    if (part || one_more || edit_distance(start, device.name) <= slips) near.push_back(device.name);
  }
  return near;
}

DeviceFile read_device_file(std::string_view json_text, std::string_view file_name) {
  DeviceFile out;
  const auto json = parse_bounded(json_text);
  if (!json) {
    out.problems.push_back(fmt::format("{}: not a JSON device file", file_name));
    return out;
  }
  if (json->is_array())
    for (const nlohmann::json& entry : *json) DeviceReader(entry, file_name, out).read();
  else
    DeviceReader(*json, file_name, out).read();
  if (out.devices.empty() && out.problems.empty()) out.problems.push_back(fmt::format("{}: no device in the file", file_name));
  return out;
}

std::optional<std::string> sparse_peak_warning(const Device& device) {
  auto close = [](double a, double b) { return b > 0 && std::abs(a - b) <= 0.005 * b; };
  auto warn = [&](std::string_view format, double given, const Device& like, double dense) {
    return fmt::format("device {}: {} peak {:.4g} FLOP/s looks like {}'s figure for sparse matrices; dense is {:.4g}", device.name, format,
                       given, like.name, dense);
  };
  for (const Device& like : known_devices()) {
    if (device.bf16 > 0 && close(device.bf16, 2 * like.bf16) && device.memory_bytes == like.memory_bytes)
      return warn("bf16", device.bf16, like, like.bf16);
    if (device.f16 > 0 && close(device.f16, 2 * like.f16) && device.memory_bytes == like.memory_bytes)
      return warn("f16", device.f16, like, like.f16);
    if (device.fp8 > 0 && close(device.fp8, 2 * like.fp8) && device.memory_bytes == like.memory_bytes)
      return warn("fp8", device.fp8, like, like.fp8);
  }
  return std::nullopt;
}

std::optional<std::string> sparse_peak_warning(double peak, DType dtype, const Device* device) {
  const auto close = [](double a, double b) { return std::abs(a - b) <= 0.005 * b; };
  const auto known_row = known_devices();
  const std::span<const Device> rows = device != nullptr ? std::span(device, 1) : known_row;
  for (const Device& row : rows)
    if (const auto dense = row.contraction_peak(dtype); dense && close(peak, *dense)) return std::nullopt;
  for (const Device& row : rows)
    if (const auto dense = row.contraction_peak(dtype); dense && close(peak, 2 * *dense))
      return fmt::format("{:.4g} FLOP/s looks like {}'s {} figure for sparse matrices; dense is {:.4g}", peak, row.name, to_string(dtype),
                         *dense);
  return std::nullopt;
}

std::string list_devices_text() {
  auto tera = [](double value) { return value > 0 ? fmt::format("{:.5g}", value / 1e12) : std::string("-"); };
  std::string text = fmt::format("{:<10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {:>6} {:>7}  {}\n", "device", "f64", "f32", "tf32",
                                 "bf16", "f16", "fp8", "int8", "GB", "GB/s", "what");
  for (const Device& d : known_devices())
    text += fmt::format("{:<10} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {:>6.4g} {:>7.4g}  {}\n", d.name, tera(d.f64), tera(d.f32),
                        tera(d.tf32), tera(d.bf16), tera(d.f16), tera(d.fp8), tera(d.int8), d.memory_bytes / 1e9, d.bandwidth / 1e9,
                        d.description);
  text += "\n";
  for (const Device& d : known_devices()) text += fmt::format("{:<10} {}\n", d.name, d.source);
  return text + "Peaks are dense TFLOP/s of matrix products; sheets often print twice that, for sparse matrices.\n";
}

}  // namespace einc
