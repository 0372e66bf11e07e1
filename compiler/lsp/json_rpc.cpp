// SPDX-License-Identifier: Apache-2.0
// One buffer of bytes read so far; a message is taken from its front as soon as it is whole.
#include "compiler/lsp/json_rpc.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

namespace einc {
namespace {

constexpr size_t kMaxHeaderBytes = 4096;
constexpr std::string_view kLength = "Content-Length:";

// The length that the header states; nullopt for none.
std::optional<size_t> stated_length(std::string_view header) {
  const size_t at = header.find(kLength);
  if (at == std::string_view::npos) return std::nullopt;
  size_t begin = at + kLength.size();
  while (begin < header.size() && header[begin] == ' ') ++begin;
  size_t length = 0;
  const auto [end, error] = std::from_chars(header.data() + begin, header.data() + header.size(), length);
  return error == std::errc() && length <= kMaxMessageBytes ? std::optional(length) : std::nullopt;
}

}  // namespace

std::optional<LspJson> JsonRpc::take() {
  const size_t end = buffer_.find("\r\n\r\n");
  if (end == std::string::npos) {
    broken_ = buffer_.size() > kMaxHeaderBytes;
    return std::nullopt;
  }
  const auto length = stated_length(std::string_view(buffer_).substr(0, end));
  if (!length) {
    broken_ = true;
    return std::nullopt;
  }
  if (buffer_.size() < end + 4 + *length) return std::nullopt;
  LspJson message = LspJson::parse(std::string_view(buffer_).substr(end + 4, *length), nullptr, false);
  buffer_.erase(0, end + 4 + *length);
  return message.is_object() ? message : LspJson::object();
}

Incoming JsonRpc::wait(LspJson& message, int milliseconds, int wake) {
  for (;;) {
    if (auto whole = take()) {
      message = std::move(*whole);
      return Incoming::message;
    }
    if (broken_) return Incoming::closed;
    pollfd watched[] = {{in_, POLLIN, 0}, {wake, POLLIN, 0}};
    const int ready = ::poll(watched, wake < 0 ? 1 : 2, milliseconds);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return ready == 0 ? Incoming::idle : Incoming::closed;
    if (watched[0].revents == 0) return Incoming::other;
    char piece[65536];
    const ssize_t count = ::read(in_, piece, sizeof piece);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return Incoming::closed;
    buffer_.append(piece, static_cast<size_t>(count));
  }
}

void JsonRpc::send(const LspJson& message) {
  const std::string body = message.dump(-1, ' ', false, LspJson::error_handler_t::replace);
  const std::string text = "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  for (size_t at = 0; at < text.size();) {
    const ssize_t count = ::write(out_, text.data() + at, text.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;  // the client is gone: the next read says so
    at += static_cast<size_t>(count);
  }
}

}  // namespace einc
