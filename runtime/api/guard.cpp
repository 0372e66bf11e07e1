// SPDX-License-Identifier: Apache-2.0
#include "runtime/api/guard.h"

namespace einc {
namespace {

ErrorKind kind_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::data:
      return ErrorKind::data;
    case FailureKind::resource:
      return ErrorKind::resource;
    case FailureKind::numeric:
      return ErrorKind::numeric;
  }
  return ErrorKind::internal;
}

}  // namespace

void rethrow_as_error() {
  try {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const RuntimeFailure& failure) {
    throw Error(kind_of(failure.kind()), failure.what());
  } catch (const std::bad_alloc&) {
    throw Error(ErrorKind::resource, "out of memory");
  } catch (const std::exception& error) {
    throw Error(ErrorKind::internal, fmt::format("internal error: {}. This is a defect of einc; please report it", error.what()));
  }
}

}  // namespace einc
