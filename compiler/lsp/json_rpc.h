// SPDX-License-Identifier: Apache-2.0
// Messages of the language server protocol: `Content-Length: n`, an empty line, and n bytes of JSON, on two file descriptors. What comes in
// is taken as hostile: a header or a message over the limits ends the stream, JSON that does not parse is an empty object.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace einc {

using LspJson = nlohmann::ordered_json;

inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

enum class Incoming : uint8_t { message, other, idle, closed };  // other: `wake` can be read

class JsonRpc {
 public:
  JsonRpc(int in, int out) : in_(in), out_(out) {}

  // Waits up to so many milliseconds (below 0: for good) for a whole message, or until the descriptor `wake` (below 0: none) can be read.
  Incoming wait(LspJson& message, int milliseconds, int wake);
  void send(const LspJson& message);

 private:
  std::optional<LspJson> take();  // of what was read
  bool broken_ = false;
  int in_, out_;
  std::string buffer_;
};

}  // namespace einc
