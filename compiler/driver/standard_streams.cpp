// SPDX-License-Identifier: Apache-2.0
// stdio's two streams are replaced by ones of our own (fopencookie), because fmt throws where stdio reports a short write, and there are
// hundreds of places that print. The streams' write function is the one place that sees what the system says.
#include "compiler/driver/standard_streams.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace einc {
namespace {

std::atomic<int> output_error{0};  // errno of the first write that failed

// 0, or the errno of what did not go out.
int write_whole(int descriptor, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t written = ::write(descriptor, bytes, count);
    if (written > 0) {
      bytes += written;
      count -= static_cast<size_t>(written);
    } else if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {  // somebody else made the pipe non-blocking
      pollfd place{descriptor, POLLOUT, 0};
      ::poll(&place, 1, -1);
    } else if (written == 0 || errno != EINTR) {
      return written == 0 ? EIO : errno;
    }
  }
  return 0;
}

// Both say that all was written: what failed is not tried again.
ssize_t write_output(void*, const char* bytes, size_t count) {
  if (output_error == 0) output_error = write_whole(STDOUT_FILENO, bytes, count);
  return static_cast<ssize_t>(count);
}

ssize_t write_error(void*, const char* bytes, size_t count) {
  write_whole(STDERR_FILENO, bytes, count);
  return static_cast<ssize_t>(count);
}

FILE* stream(ssize_t (*write)(void*, const char*, size_t), int buffering) {
  FILE* made = ::fopencookie(nullptr, "w", {nullptr, write, nullptr, nullptr});
  if (made != nullptr) std::setvbuf(made, nullptr, buffering, BUFSIZ);
  return made;
}

// A file opened later must not get the number of a standard descriptor that is closed: what is printed would land in it. Standard output
// is opened to read, so that writing to it fails as it did when it was closed.
void fill_closed_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);  // the lowest free number: this one
}

}  // namespace

void guard_standard_streams() {
  fill_closed_descriptors();
  // The calls fail instead, with EPIPE and EFBIG.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (FILE* output = stream(write_output, ::isatty(STDOUT_FILENO) != 0 ? _IOLBF : _IOFBF)) stdout = output;
  if (FILE* error = stream(write_error, _IONBF)) stderr = error;
}

bool output_is_lost() { return output_error != 0; }

std::optional<std::string> finish_output() {
  std::fflush(stdout);
  if (!output_is_lost()) return std::nullopt;
  return std::string(std::strerror(output_error));
}

}  // namespace einc
