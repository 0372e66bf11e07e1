// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/array_batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/train/convert_row.h"

namespace einc {
namespace {

[[noreturn]] void fail_data(const ArrayInput& input, const std::string& what) {
  throw RuntimeFailure(FailureKind::data, fmt::format("{}: {}", printable(input.array->path()), what));
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, " ")); }

void check_row(const ArrayInput& input) {
  const NpyFile& array = *input.array;
  EINC_CHECK(!input.info.shape.empty(), "input {} has no rows", input.info.name);
  const std::span<const int64_t> wanted = std::span(input.info.shape).subspan(1);
  if (array.shape().empty()) fail_data(input, "a single number, which has no rows");
  const std::span<const int64_t> row = std::span(array.shape()).subspan(1);
  if (!std::equal(row.begin(), row.end(), wanted.begin(), wanted.end()))
    fail_data(input, fmt::format("its rows are {}, but those of input {} are {}", shape_text(row), input.info.name, shape_text(wanted)));
}

void check_dtype(const ArrayInput& input) {
  const NpyFile& array = *input.array;
  if (is_floating(array.dtype()) && !is_floating(input.info.dtype))
    fail_data(input, fmt::format("its elements are {}, but those of input {} are {}", to_string(array.dtype()), input.info.name,
                                 to_string(input.info.dtype)));
}

uint64_t count_of(ArrayRange range) {
  if (range.begin >= range.end) throw RuntimeFailure(FailureKind::data, "the data has no rows to take batches from");
  return range.end - range.begin;
}

}  // namespace

bool are_whole(const std::vector<ArrayInput>& inputs) {
  return std::all_of(inputs.begin(), inputs.end(), [](const ArrayInput& input) { return input.array->shape() == input.info.shape; });
}

uint64_t count_rows(const std::vector<ArrayInput>& inputs) {
  for (const ArrayInput& input : inputs) check_dtype(input);
  if (are_whole(inputs)) return 1;
  const ArrayInput& first = inputs.front();
  for (const ArrayInput& input : inputs) {
    check_row(input);
    if (input.array->shape()[0] != first.array->shape()[0])
      fail_data(input, fmt::format("it has {} rows, but {} has {}", input.array->shape()[0], printable(first.array->path()),
                                   first.array->shape()[0]));
    EINC_CHECK(input.info.shape[0] == first.info.shape[0], "batches of {} and {} rows", first.info.name, input.info.name);
  }
  return static_cast<uint64_t>(first.array->shape()[0]);
}

ArrayBatches::ArrayBatches(std::vector<ArrayInput> inputs, ArrayRange range, RowOrder order, uint64_t seed)
    : inputs_(std::move(inputs)),
      range_(range),
      order_(order),
      seed_(seed),
      rows_(are_whole(inputs_) ? 1 : static_cast<uint64_t>(inputs_.front().info.shape[0])),
      sequence_(order, count_of(range), seed) {}

void ArrayBatches::fill(uint64_t batch, std::span<const InputSlot> inputs) const {
  for (const InputSlot& slot : inputs) {
    const auto found =
        std::find_if(inputs_.begin(), inputs_.end(), [&](const ArrayInput& input) { return input.info.name == slot.info->name; });
    if (found == inputs_.end()) continue;
    const NpyFile& array = *found->array;
    const size_t length = static_cast<size_t>(slot.info->count()) / rows_;  // elements of a row
    const size_t from_bytes = length * static_cast<size_t>(bytes_of(array.dtype())),
                 to_bytes = length * static_cast<size_t>(bytes_of(slot.info->dtype));
    const auto row_of_array = [&](uint64_t index) { return array.bytes().subspan(index * from_bytes, from_bytes); };
    for (uint64_t row = 0; row < rows_; ++row) array.fetch(row_of_array(range_.begin + sequence_.row(batch * rows_ + row)));
    for (uint64_t row = 0; row < rows_; ++row) {
      const uint64_t index = range_.begin + sequence_.row(batch * rows_ + row);
      const std::span<const std::byte> from = row_of_array(index);
      if (const auto wrong = convert_row(from, array.dtype(), slot.memory + row * to_bytes, slot.info->dtype))
        fail_data(*found, fmt::format("{} is {}, which input {} of dtype {} cannot hold", place(*wrong, index),
                                      number_at(from, array.dtype(), *wrong), slot.info->name, to_string(slot.info->dtype)));
    }
    array.check_whole();
  }
}

std::string ArrayBatches::origin(uint64_t batch, std::string_view input, uint64_t element) const {
  const auto found = std::find_if(inputs_.begin(), inputs_.end(), [&](const ArrayInput& array) { return array.info.name == input; });
  if (found == inputs_.end()) return "";
  const uint64_t length = static_cast<uint64_t>(found->info.count()) / rows_;
  const uint64_t row = range_.begin + sequence_.row(batch * rows_ + element / length);
  return place(element % length, row) + " of " + printable(found->array->path());
}

std::string ArrayBatches::place(uint64_t element, uint64_t row) const {
  return are_whole(inputs_) ? fmt::format("element {}", element) : fmt::format("element {} of row {}", element, row);
}

std::string ArrayBatches::description() const {
  std::string text;
  for (const ArrayInput& input : inputs_)
    text += fmt::format("{}: {} {}, hash {:016x}; ", input.info.name, to_string(input.array->dtype()), shape_text(input.array->shape()),
                        input.array->sample_hash());
  return text + fmt::format("rows {} to {}, {} a batch, order {}, seed {}", range_.begin, range_.end, rows_, to_string(order_), seed_);
}

}  // namespace einc
