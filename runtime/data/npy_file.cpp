// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/npy_file.h"

#include "runtime/data/npy.h"

namespace einc {

NpyFile::NpyFile(std::string path) : file_(std::move(path)), place_(find_npy(file_, 0, file_.size())) {
  const NpyHeader& header = place_.header;
  const bool is_swapped = header.order == ByteOrder::big && einc::bytes_of(header.dtype) > 1;
  if (is_swapped || (header.layout == Layout::column_major && header.shape.size() > 1)) {
    converted_ = read_npy(file_, 0, file_.size());
    bytes_ = converted_.bytes;
    return;
  }
  bytes_ = file_.bytes().subspan(place_.begin, place_.bytes);
  file_.expect_random_reads();
}

void NpyFile::fetch(std::span<const std::byte> part) const {
  if (converted_.bytes.empty()) file_.fetch(part);
}

}  // namespace einc
