// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/open_batches.h"

#include <fmt/format.h>

#include <algorithm>

#include <einc/error.h>
#include "runtime/base/check.h"
#include "runtime/base/dtype.h"
#include "runtime/train/array_batches.h"
#include "runtime/train/token_batches.h"

namespace einc {
namespace {

[[noreturn]] void fail_usage(const std::string& message) { throw Error(ErrorKind::usage, message); }

const TensorInfo* find_input(const std::vector<TensorInfo>& inputs, const std::string& name) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const TensorInfo& input) { return input.name == name; });
  return found == inputs.end() ? nullptr : &*found;
}

// "a, b and c".
std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return text;
}

const TensorInfo& named_input(const std::vector<TensorInfo>& inputs, const std::string& option, const std::string& name) {
  if (const TensorInfo* input = find_input(inputs, name)) return *input;
  std::vector<std::string> names;
  for (const TensorInfo& input : inputs) names.push_back(input.name);
  fail_usage(fmt::format("{} {}: the program has no input of that name; it has {}", option, printable(name),
                         names.empty() ? "none" : listed(names)));
}

bool takes_tokens_like(const TensorInfo& input, const TensorInfo& tokens) {
  return input.name != tokens.name && is_integer(input.dtype) && input.shape == tokens.shape;
}

// The name of the input that gets the following tokens; empty: there is none.
std::string choose_next(const DataSettings& settings, const std::vector<TensorInfo>& inputs, const TensorInfo& tokens) {
  if (!settings.next.empty()) {
    const TensorInfo& next = named_input(inputs, "--next", settings.next);
    if (!takes_tokens_like(next, tokens))
      fail_usage(fmt::format("--next {}: not another input of integers in the shape of {}", next.name, tokens.name));
    return next.name;
  }
  std::vector<std::string> candidates;
  for (const TensorInfo& input : inputs)
    if (takes_tokens_like(input, tokens)) candidates.push_back(input.name);
  if (candidates.size() > 1)
    fail_usage(fmt::format("the tokens that follow those of {} may go to {}: say which by --next NAME", tokens.name, listed(candidates)));
  return candidates.empty() ? "" : candidates.front();
}

// Of rows or tokens: where the tail begins that is kept back.
uint64_t boundary_of(const DataSettings& settings, uint64_t count) {
  return static_cast<uint64_t>(static_cast<double>(count) * (1 - settings.validation_fraction));
}

// That the inputs' first axes can be the rows of a batch.
void check_rows(const std::vector<ArrayInput>& arrays) {
  constexpr std::string_view kWhole = "; arrays in the inputs' own shapes are taken whole";
  for (const ArrayInput& array : arrays) {
    const TensorInfo& input = array.info;
    if (input.shape.empty()) fail_usage(fmt::format("--data {}: the input is a single number and has no rows{}", input.name, kWhole));
    if (input.shape[0] != arrays[0].info.shape[0])
      fail_usage(fmt::format("--data: the first axes of {} and {} have sizes {} and {}: no batch of rows is both{}", arrays[0].info.name,
                             input.name, arrays[0].info.shape[0], input.shape[0], kWhole));
  }
}

std::shared_ptr<const Batches> open_arrays(const DataSettings& settings, const std::vector<TensorInfo>& inputs, DataPart part) {
  std::vector<ArrayInput> arrays;
  for (const auto& [name, path] : settings.files) {
    const TensorInfo& input = named_input(inputs, "--data", name);
    if (!path.ends_with(".npy"))
      fail_usage(fmt::format("--data {}={}: a token file is the only --data of a program", name, printable(path)));
    if (std::any_of(arrays.begin(), arrays.end(), [&name = name](const ArrayInput& other) { return other.info.name == name; }))
      fail_usage(fmt::format("--data {} is given twice", name));
    arrays.push_back({input, std::make_shared<const NpyFile>(path)});
  }
  for (const TensorInfo& input : inputs)
    if (std::none_of(arrays.begin(), arrays.end(), [&](const ArrayInput& array) { return array.info.name == input.name; }))
      fail_usage(fmt::format("input {} gets no values: --data {}=FILE.npy", input.name, input.name));
  if (are_whole(arrays)) {
    if (settings.validation_fraction > 0)
      fail_usage("--val-fraction: the arrays have the inputs' own shapes and are one batch as they are: no rows can be kept back");
  } else {
    check_rows(arrays);
  }
  const uint64_t rows = count_rows(arrays), boundary = boundary_of(settings, rows);
  const ArrayRange range = part == DataPart::training ? ArrayRange{0, boundary} : ArrayRange{boundary, rows};
  return std::make_shared<const ArrayBatches>(std::move(arrays), range, settings.order, settings.seed);
}

std::shared_ptr<const Batches> open_tokens(const DataSettings& settings, const std::vector<TensorInfo>& inputs, DataPart part) {
  const auto& [name, path] = settings.files.front();
  const TensorInfo& tokens = named_input(inputs, "--data", name);
  if (!is_integer(tokens.dtype) || tokens.shape.empty() || tokens.count() == 0)
    fail_usage(fmt::format("--data {}: a token file gives windows to an input of integers, such as i32[batch seq]", name));
  const std::string next = choose_next(settings, inputs, tokens);
  for (const TensorInfo& input : inputs)
    if (input.name != name && input.name != next)
      fail_usage(fmt::format("input {} gets no values from {}={}", input.name, name, printable(path)));

  auto file = std::make_shared<const TokenFile>(path, settings.token_format);
  const uint64_t boundary = boundary_of(settings, file->count());
  const TokenRange range = part == DataPart::training ? TokenRange{0, boundary} : TokenRange{boundary, file->count()};
  const auto seq = static_cast<uint64_t>(tokens.shape.back()), rows = static_cast<uint64_t>(tokens.count()) / seq;
  return std::make_shared<const TokenBatches>(std::move(file), range, TokenInputs{name, next}, WindowShape{rows, seq}, settings.order,
                                              settings.seed);
}

// Of a program without inputs, which draws its examples itself: a new batch each step, since draws depend on the step.
class DrawnBatches : public Batches {
 public:
  void fill(uint64_t, std::span<const InputSlot>) const override {}
  uint64_t batches_per_epoch() const override { return 0; }
  std::string origin(uint64_t, std::string_view, uint64_t) const override { return ""; }
  std::string description() const override { return "drawn by the program"; }
};

}  // namespace

std::shared_ptr<const Batches> open_batches(const DataSettings& settings, const std::vector<TensorInfo>& inputs, DataPart part) {
  EINC_CHECK(settings.validation_fraction >= 0 && settings.validation_fraction < 1, "a fraction of {}", settings.validation_fraction);
  if (inputs.empty() && settings.files.empty()) {
    if (settings.validation_fraction > 0) fail_usage("--val-fraction: the program has no inputs whose data could be kept back");
    return std::make_shared<const DrawnBatches>();
  }
  if (settings.files.empty()) fail_usage("no data: say which file an input takes its values from by --data NAME=FILE");
  const bool are_arrays = settings.files.size() > 1 || settings.files.front().second.ends_with(".npy");
  return are_arrays ? open_arrays(settings, inputs, part) : open_tokens(settings, inputs, part);
}

}  // namespace einc
