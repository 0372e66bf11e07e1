// NumPy's archives of arrays: a zip file whose members are .npy files, uncompressed as np.savez writes them (zip64
// included). The central directory is believed only as far as the file's own bytes agree: members lie within the file, do
// not overlap, and match their CRC-32. Nothing is unpacked to disk, so a member's name is only ever a key.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/data/file.h"

namespace einc {

inline constexpr size_t kMaxNpzMembers = 65'535;

// Arrays by name (the member's without ".npy") in the archive's order. Throws RuntimeFailure: data with the byte offset
// (compressed or encrypted members too), or resource.
std::vector<std::pair<std::string, HostArray>> read_npz(const std::string& path);

}  // namespace einc
