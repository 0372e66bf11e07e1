// SPDX-License-Identifier: Apache-2.0
// What must hold for any bytes whatever: a reader of data files takes them, or refuses them as data. Shared by the libFuzzer targets and
// the test of their corpora.
#pragma once
#include <string>

namespace einc::fuzz {

// Each throws InternalError when its property does not hold; what else escapes is a defect too.
void check_npy(const std::string& content);          // mapped and read alike, and written back
void check_npz(const std::string& content);          // its arrays written and read again
void check_safetensors(const std::string& content);  // likewise
void check_tokens(const std::string& content);       // the first byte says which format is asked for
// The first byte says which vocabulary: of characters, of ranks or of encoder.json and, behind a byte 1, its merges; a second byte of 1
// puts the 256 single bytes before it. What is accepted gives any text back.
void check_vocabulary(const std::string& content);
void check_checkpoint(const std::string& content);  // a checkpoint's train.json, with and without the right checksum behind it
void check_names(const std::string& content);       // a file of renamings; and as a pattern, which loses no element

struct Reader {
  const char* name;  // of the target, and of its folders of inputs
  void (*check)(const std::string&);
};
inline constexpr Reader kReaders[] = {{"npy", check_npy},
                                      {"npz", check_npz},
                                      {"safetensors", check_safetensors},
                                      {"tokens", check_tokens},
                                      {"vocabulary", check_vocabulary},
                                      {"checkpoint", check_checkpoint},
                                      {"names", check_names}};

}  // namespace einc::fuzz
