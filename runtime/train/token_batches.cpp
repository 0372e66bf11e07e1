#include "runtime/train/token_batches.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

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

void store(std::span<const int32_t> tokens, DType dtype, std::byte* out) {
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
  std::vector<int32_t> tokens(shape_.seq + 1);
  for (uint64_t row = 0; row < shape_.rows; ++row) {
    const uint64_t begin = window(batch, row);
    file_->read(begin, tokens);
    for (const InputSlot& slot : inputs) {
      const bool is_next = !inputs_.next.empty() && slot.info->name == inputs_.next;
      if (!is_next && slot.info->name != inputs_.tokens) continue;
      const DType dtype = slot.info->dtype;
      EINC_CHECK(is_integer(dtype) && static_cast<uint64_t>(slot.info->count()) == shape_.rows * shape_.seq, "input {} takes no windows",
                 slot.info->name);
      const std::span<const int32_t> values = std::span(tokens).subspan(is_next ? 1 : 0, shape_.seq);
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i] > largest_token(dtype))
          throw RuntimeFailure(FailureKind::data,
                               fmt::format("{}: token {} is {}, more than input {} of dtype {} holds", printable(file_->path()),
                                           begin + i + (is_next ? 1 : 0), values[i], slot.info->name, to_string(dtype)));
      store(values, dtype, slot.memory + row * shape_.seq * static_cast<uint64_t>(bytes_of(dtype)));
    }
  }
}

std::string TokenBatches::description() const {
  return fmt::format("{}{}{}: tokens {} to {} of {} {}, hash {:016x}; {} windows of {}, order {}, seed {}", inputs_.tokens,
                     inputs_.next.empty() ? "" : ", ", inputs_.next, range_.begin, range_.end, file_->count(), to_string(file_->format()),
                     file_->sample_hash(), shape_.rows, shape_.seq, to_string(order_), seed_);
}

}  // namespace einc
