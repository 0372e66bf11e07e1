// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/token_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/check.h"

namespace einc {
namespace {

uint64_t count_windows(const TokenFile& file, TokenRange range, WindowShape shape, RowOrder order) {
  EINC_CHECK(shape.rows > 0 && shape.seq > 0 && range.begin <= range.end && range.end <= file.count(), "windows of no tokens");
  const uint64_t tokens = range.end - range.begin;
  if (tokens <= shape.seq)
    throw RuntimeFailure(FailureKind::data, fmt::format("{}: {} tokens are too few for a window of {} and the one that follows",
                                                        printable(file.path()), tokens, shape.seq));
  return order == RowOrder::random ? tokens - shape.seq : (tokens - 1) / shape.seq;
}

// The largest token that an input of this dtype holds.
int64_t largest_token(DType dtype) { return dtype == DType::u8 ? 255 : dtype == DType::u16 ? 65535 : 2147483647; }

template <class Stored>
void store_as(std::span<const int32_t> tokens, std::byte* out) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto value = static_cast<Stored>(tokens[i]);
    std::memcpy(out + i * sizeof value, &value, sizeof value);
  }
}

}  // namespace

TokenBatches::TokenBatches(std::shared_ptr<const TokenFile> file, TokenRange range, TokenInputs inputs, WindowShape shape, RowOrder order,
                           uint64_t seed)
    : file_(std::move(file)),
      range_(range),
      inputs_(std::move(inputs)),
      shape_(shape),
      order_(order),
      seed_(seed),
      sequence_(order, count_windows(*file_, range, shape, order), seed) {}

uint64_t TokenBatches::window(uint64_t batch, uint64_t row) const {
  const uint64_t index = sequence_.row(batch * shape_.rows + row);
  return range_.begin + (order_ == RowOrder::random ? index : index * shape_.seq);
}

void TokenBatches::fill(uint64_t batch, std::span<const InputSlot> inputs) const {
  constexpr uint64_t kPiece = 512;
  std::array<int32_t, kPiece + 1> memory;
  for (uint64_t row = 0; row < shape_.rows; ++row) file_->fetch(window(batch, row), shape_.seq + 1);
  for (uint64_t row = 0; row < shape_.rows; ++row) {
    const uint64_t begin = window(batch, row);
    for (uint64_t done = 0; done < shape_.seq; done += kPiece) {
      const size_t count = std::min(kPiece, shape_.seq - done);
      const std::span<int32_t> tokens = std::span(memory).first(count + 1);
      file_->read(begin + done, tokens);
      for (const InputSlot& slot : inputs) {
        const bool is_next = !inputs_.next.empty() && slot.info->name == inputs_.next;
        if (is_next || slot.info->name == inputs_.tokens)
          store(slot, row * shape_.seq + done, begin + done + (is_next ? 1 : 0), tokens.subspan(is_next ? 1 : 0, count));
      }
    }
  }
}

void TokenBatches::store(const InputSlot& slot, uint64_t element, uint64_t first, std::span<const int32_t> tokens) const {
  const DType dtype = slot.info->dtype;
  EINC_CHECK(is_integer(dtype) && static_cast<uint64_t>(slot.info->count()) == shape_.rows * shape_.seq, "input {} takes no windows",
             slot.info->name);
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] > largest_token(dtype))
      throw RuntimeFailure(FailureKind::data,
                           fmt::format("{}: token {} is {}, more than input {} of dtype {} holds", printable(file_->path()), first + i,
                                       tokens[i], slot.info->name, to_string(dtype)));
  std::byte* out = slot.memory + element * static_cast<uint64_t>(bytes_of(dtype));
  switch (bytes_of(dtype)) {
    case 1:
      return store_as<uint8_t>(tokens, out);
    case 2:
      return store_as<uint16_t>(tokens, out);
    case 8:
      return store_as<int64_t>(tokens, out);
    default:
      return store_as<int32_t>(tokens, out);
  }
}

std::string TokenBatches::origin(uint64_t batch, std::string_view input, uint64_t element) const {
  const bool is_next = !inputs_.next.empty() && input == inputs_.next;
  if (!is_next && input != inputs_.tokens) return "";
  const uint64_t token = window(batch, element / shape_.seq) + element % shape_.seq + (is_next ? 1 : 0);
  return fmt::format("token {} of {}", token, printable(file_->path()));
}

std::string TokenBatches::description() const {
  return fmt::format("{}{}{}: tokens {} to {} of {} {}, hash {:016x}; {} windows of {}, order {}, seed {}", inputs_.tokens,
                     inputs_.next.empty() ? "" : ", ", inputs_.next, range_.begin, range_.end, file_->count(), to_string(file_->format()),
                     file_->sample_hash(), shape_.rows, shape_.seq, to_string(order_), seed_);
}

}  // namespace einc
