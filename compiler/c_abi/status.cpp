// SPDX-License-Identifier: Apache-2.0
// What went wrong last, for each thread: a message, and a program's diagnostics.
#include "compiler/c_abi/status.h"

#include <fmt/format.h>

#include <new>

namespace einc::c_abi {
namespace {

constexpr const char* kOutOfMemory = "out of memory";

struct LastError {
  std::string message;
  std::vector<Error::Diagnostic> diagnostics;
  bool no_memory = false;  // the message is kOutOfMemory, which needs none
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

einc_status keep(einc_status status, const char* message, const std::vector<Error::Diagnostic>& diagnostics = {}) noexcept {
  LastError& error = last_error();
  try {
    LastError fresh{message, diagnostics};
    error = std::move(fresh);
    return status;
  } catch (const std::bad_alloc&) {
    error.diagnostics.clear();
    error.no_memory = true;
    return EINC_RESOURCE;
  }
}

einc_status status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::program:
      return EINC_PROGRAM;
    case ErrorKind::usage:
      return EINC_USAGE;
    case ErrorKind::data:
      return EINC_DATA;
    case ErrorKind::resource:
      return EINC_RESOURCE;
    case ErrorKind::numeric:
      return EINC_NUMERIC;
    case ErrorKind::internal:
      return EINC_INTERNAL;
  }
  return EINC_INTERNAL;
}

}  // namespace

einc_status keep_failure() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return keep(status_of(error.kind()), error.what(), error.diagnostics());
  } catch (const std::bad_alloc&) {
    return keep(EINC_RESOURCE, kOutOfMemory);
  } catch (const std::exception& error) {
    return keep(EINC_INTERNAL, error.what());
  } catch (...) {
    return keep(EINC_INTERNAL, "an exception of unknown type");
  }
}

void wrong_call(const std::string& message) { throw Error(ErrorKind::usage, message); }

void require(const void* pointer, const char* function, const char* parameter) {
  if (pointer == nullptr) wrong_call(fmt::format("{}: `{}` is null", function, parameter));
}

}  // namespace einc::c_abi

using namespace einc::c_abi;

uint32_t einc_abi_version(void) { return EINC_C_ABI; }

const char* einc_version(void) { return EINC_VERSION; }

const char* einc_last_error(void) {
  const LastError& error = last_error();
  return error.no_memory ? kOutOfMemory : error.message.c_str();
}

size_t einc_diagnostic_count(void) { return last_error().diagnostics.size(); }

// A wrong index leaves the last error, which it asks for, as it is.
einc_status einc_diagnostic_at(size_t index, einc_diagnostic* diagnostic) {
  const auto& list = last_error().diagnostics;
  if (diagnostic == nullptr || index >= list.size()) return EINC_USAGE;
  const einc::Error::Diagnostic& d = list[index];
  *diagnostic = {d.is_warning ? 1 : 0, d.code.c_str(), d.message.c_str(), d.hint.c_str(),    d.place.file.c_str(),
                 d.place.line,         d.place.column, d.place.end_line,  d.place.end_column};
  return EINC_OK;
}
