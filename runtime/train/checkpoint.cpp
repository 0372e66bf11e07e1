// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/failure.h"
#include "runtime/base/printable.h"
#include "runtime/base/xxh64.h"

namespace einc {
namespace {

struct TensorFile {
  SourceKind kind;
  const char* name;
  const char* word;
};
constexpr TensorFile kTensorFiles[] = {{SourceKind::param, kCheckpointFiles[0], "param"},
                                       {SourceKind::state, kCheckpointFiles[1], "state"}};

const SafetensorsFile& file_of(const Checkpoint& checkpoint, SourceKind kind) {
  return kind == SourceKind::param ? checkpoint.weights() : checkpoint.state();
}

std::vector<SafetensorsItem> items_of(const SessionRep& session, SourceKind kind) {
  std::vector<SafetensorsItem> items;
  const std::vector<TensorInfo>& tensors = sources_of(session.program(), kind);
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    const auto* at = static_cast<const std::byte*>(session.memory({kind, i}));
    items.push_back({tensors[i].name, tensors[i].dtype, tensors[i].shape, {at, static_cast<size_t>(tensors[i].bytes())}});
  }
  return items;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string shown(const SafetensorsEntry& entry, DType dtype) {
  return fmt::format("{}[{}]", entry.dtype == safetensors_dtype(dtype) ? std::string(to_string(dtype)) : lower(entry.dtype),
                     fmt::join(entry.shape, " "));
}

bool fits(const SafetensorsEntry& entry, const TensorInfo& tensor) {
  return entry.shape == tensor.shape && entry.dtype == safetensors_dtype(tensor.dtype);
}

void compare_tensors(const SafetensorsFile& file, const std::vector<TensorInfo>& tensors, const char* word,
                     std::vector<std::string>& lines) {
  for (const TensorInfo& tensor : tensors) {
    const SafetensorsEntry* entry = file.find(tensor.name);
    if (!entry) {
      lines.push_back(fmt::format("{} '{}' is not in the checkpoint", word, printable(tensor.name)));
    } else if (!fits(*entry, tensor)) {
      lines.push_back(fmt::format("{} '{}' is {} in the checkpoint, {}[{}] in the program", word, printable(tensor.name),
                                  shown(*entry, tensor.dtype), to_string(tensor.dtype), fmt::join(tensor.shape, " ")));
    }
  }
  for (const SafetensorsEntry& entry : file.tensors())
    if (std::none_of(tensors.begin(), tensors.end(), [&](const TensorInfo& t) { return t.name == entry.name; }))
      lines.push_back(fmt::format("{} '{}' of the checkpoint is not in the program", word, printable(entry.name)));
}

void compare_settings(const std::map<std::string, std::string>& then, const std::map<std::string, std::string>& now,
                      std::vector<std::string>& lines) {
  for (const auto& [name, value] : now) {
    const auto found = then.find(name);
    if (found == then.end())
      lines.push_back(fmt::format("{} is {}; the checkpoint does not say it", printable(name), printable(value)));
    else if (found->second != value)
      lines.push_back(fmt::format("{} was {}, is {} now", printable(name), printable(found->second), printable(value)));
  }
  for (const auto& [name, value] : then)
    if (now.count(name) == 0) lines.push_back(fmt::format("{} was {}, has no value now", printable(name), printable(value)));
}

std::map<std::string, std::string> settings_of(const std::vector<std::pair<std::string, int64_t>>& dims) {
  std::map<std::string, std::string> settings;
  for (const auto& [name, size] : dims) settings["dim " + name] = std::to_string(size);
  return settings;
}

std::map<std::string, std::string> settings_of(const TrainingSeeds& seeds) {
  return {{"seed of initial values", std::to_string(seeds.init)},
          {"seed of the data", std::to_string(seeds.data)},
          {"seed of dropout", std::to_string(seeds.dropout)}};
}

// At most a screenful.
std::string screenful(const std::vector<std::string>& lines) {
  constexpr size_t kShown = 24;
  std::string text;
  for (size_t i = 0; i < std::min(lines.size(), kShown); ++i) text += "\n  " + lines[i];
  return lines.size() <= kShown ? text : text + fmt::format("\n  and {} more", lines.size() - kShown);
}

std::unique_ptr<SafetensorsFile> open_whole(const std::string& path, const FileDigest& expected) {
  {
    const MappedFile file(path);
    if (file.size() != expected.bytes)
      throw RuntimeFailure(FailureKind::data,
                           fmt::format("{}: {} bytes, but {} were written", printable(path), file.size(), expected.bytes));
    if (xxh64(file.bytes()) != expected.hash)
      throw RuntimeFailure(FailureKind::data, fmt::format("{}: its hash is not that of what was written: it is damaged", printable(path)));
  }
  return std::make_unique<SafetensorsFile>(path);
}

}  // namespace

void write_checkpoint(FileSystem& files, const std::string& folder, const SessionRep& session, const TrainingPosition& position,
                      const RunSettings& run) {
  CheckpointRecord record{position, run, session.program().name, session.program().dims, {}, {}};
  for (const TensorFile& file : kTensorFiles) {
    const std::string path = folder + "/" + file.name;
    const SafetensorsLayout layout = lay_out_safetensors(path, items_of(session, file.kind), {{"step", std::to_string(position.step)}});
    (file.kind == SourceKind::param ? record.weights : record.state) = write_synced(files, path, layout.pieces);
  }
  const std::string text = to_json(record);
  const std::span<const std::byte> piece = std::as_bytes(std::span(text));
  write_synced(files, folder + "/" + kCheckpointFiles[2], std::span(&piece, 1));
  sync_folder(files, folder);
}

Checkpoint::Checkpoint(std::string folder) : folder_(std::move(folder)) {
  const std::string path = folder_ + "/" + kCheckpointFiles[2];
  {
    const MappedFile file(path);
    record_ = parse_checkpoint_record({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path);
    file.check_whole();
  }
  weights_ = open_whole(folder_ + "/" + kCheckpointFiles[0], record_.weights);
  state_ = open_whole(folder_ + "/" + kCheckpointFiles[1], record_.state);
}

std::vector<std::string> differences(const Checkpoint& checkpoint, const ProgramInfo& program, const RunSettings& run) {
  std::vector<std::string> lines;
  compare_settings(settings_of(checkpoint.record().dims), settings_of(program.dims), lines);
  compare_settings(settings_of(checkpoint.record().run.seeds), settings_of(run.seeds), lines);
  compare_settings(checkpoint.record().run.required, run.required, lines);
  for (const TensorFile& file : kTensorFiles)
    compare_tensors(file_of(checkpoint, file.kind), sources_of(program, file.kind), file.word, lines);
  return lines;
}

std::vector<std::string> noted_differences(const Checkpoint& checkpoint, const RunSettings& run) {
  std::vector<std::string> lines;
  compare_settings(checkpoint.record().run.noted, run.noted, lines);
  return lines;
}

std::vector<std::string> restore(const Checkpoint& checkpoint, SessionRep& session, const RunSettings& run, Fit fit) {
  const std::vector<std::string> lines = differences(checkpoint, session.program(), run);
  if (fit == Fit::exact && !lines.empty())
    throw RuntimeFailure(FailureKind::data,
                         fmt::format("{}: not a checkpoint of what is to be trained:{}", printable(checkpoint.folder()), screenful(lines)));
  std::vector<std::pair<Source, const std::byte*>> values;
  for (const TensorFile& file : kTensorFiles) {
    const std::vector<TensorInfo>& tensors = sources_of(session.program(), file.kind);
    for (uint32_t i = 0; i < tensors.size(); ++i) {
      const SafetensorsEntry* entry = file_of(checkpoint, file.kind).find(tensors[i].name);
      if (entry && fits(*entry, tensors[i])) values.emplace_back(Source{file.kind, i}, file_of(checkpoint, file.kind).bytes(*entry).data());
    }
  }
  if (values.empty() && !lines.empty())
    throw RuntimeFailure(FailureKind::data,
                         fmt::format("{}: no tensor of the program is in it:{}", printable(checkpoint.folder()), screenful(lines)));
  for (const auto& [source, bytes] : values) session.set(source, bytes);
  for (const TensorFile& file : kTensorFiles) file_of(checkpoint, file.kind).check_whole();
  return lines;
}

}  // namespace einc
