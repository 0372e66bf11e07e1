// SPDX-License-Identifier: Apache-2.0
// NumPy's archives of arrays: a zip file whose members are .npy files, stored as np.savez writes them (zip64 included) or
// deflated as np.savez_compressed does. The central directory is believed only as far as the file's own bytes agree: members
// lie within the file, do not overlap, and match their CRC-32. Nothing is unpacked to disk, so a member's name is only ever a
// key.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/host_array.h"
#include "runtime/data/file.h"

namespace einc {

// What torch.save writes is pickled Python, which is never executed here: the answer says how to convert it.
inline constexpr std::string_view kTorchCheckpoint =
    "a PyTorch checkpoint, which holds Python objects: write its tensors with "
    "safetensors.torch.save_file(model.state_dict(), \"model.safetensors\")";

// torch.save writes a zip file since 1.6: only its name tells a damaged one from an archive of NumPy.
inline bool is_torch_name(std::string_view path) { return path.ends_with(".pt") || path.ends_with(".pth"); }

inline constexpr size_t kMaxNpzMembers = 65'535;
// A deflated member may be this much larger than its bytes in the file, or be of kFreeNpzBytes whatever its bytes.
inline constexpr uint64_t kMaxNpzExpansion = 64;
inline constexpr uint64_t kFreeNpzBytes = uint64_t{16} << 20;

using NamedArrays = std::vector<std::pair<std::string, HostArray>>;

// Arrays by name (the member's without ".npy") in the archive's order. Throws RuntimeFailure: data with the byte offset
// (encrypted members too), or resource.
NamedArrays read_npz(const std::string& path);

// Members stored, in the order given; the same arrays give the same bytes. Dtypes as for write_npy.
void write_npz(const std::string& path, const NamedArrays& arrays);

}  // namespace einc
