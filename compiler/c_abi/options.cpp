// SPDX-License-Identifier: Apache-2.0
// Options to compile with: setters over CompileOptions.
#include <fmt/format.h>

#include <new>

#include "compiler/c_abi/handles.h"
#include "compiler/c_abi/status.h"

using namespace einc::c_abi;

namespace {

// The C enumerations count as the C++ ones do.
static_assert(static_cast<int>(einc::Precision::fp8) == EINC_PRECISION_FP8 &&
              static_cast<int>(einc::Precision::tf32) == EINC_PRECISION_TF32);
static_assert(static_cast<int>(einc::Target::reference) == EINC_REFERENCE && static_cast<int>(einc::Target::cuda) == EINC_CUDA);
static_assert(static_cast<int>(einc::Purpose::pullback) == EINC_PULLBACK);

template <class Enum>
Enum checked(int value, Enum last, const char* what) {
  if (value < 0 || value > static_cast<int>(last)) wrong_call(fmt::format("{} is no {}", value, what));
  return static_cast<Enum>(value);
}

}  // namespace

einc_options* einc_options_new(void) { return new (std::nothrow) einc_options; }

void einc_options_free(einc_options* options) { delete options; }

einc_status einc_options_set_dim(einc_options* options, const char* name, int64_t value) {
  return guard([&] {
    require(options, "einc_options_set_dim", "options");
    require(name, "einc_options_set_dim", "name");
    options->options.dims[name] = value;
  });
}

einc_status einc_options_set_precision(einc_options* options, einc_precision precision) {
  return guard([&] {
    require(options, "einc_options_set_precision", "options");
    options->options.precision = checked(static_cast<int>(precision), einc::Precision::fp8, "precision");
  });
}

einc_status einc_options_set_target(einc_options* options, einc_target target) {
  return guard([&] {
    require(options, "einc_options_set_target", "options");
    options->options.target = checked(static_cast<int>(target), einc::Target::reference, "target");
  });
}

einc_status einc_options_set_purpose(einc_options* options, einc_purpose purpose) {
  return guard([&] {
    require(options, "einc_options_set_purpose", "options");
    options->options.purpose = checked(static_cast<int>(purpose), einc::Purpose::pullback, "purpose");
  });
}

einc_status einc_options_set_memory_limit(einc_options* options, int64_t bytes) {
  return guard([&] {
    require(options, "einc_options_set_memory_limit", "options");
    options->options.memory_limit = bytes;
  });
}

einc_status einc_options_set_report_device(einc_options* options, const char* device) {
  return guard([&] {
    require(options, "einc_options_set_report_device", "options");
    require(device, "einc_options_set_report_device", "device");
    options->options.report_device = device;
  });
}

einc_status einc_options_add_import_folder(einc_options* options, const char* folder) {
  return guard([&] {
    require(options, "einc_options_add_import_folder", "options");
    require(folder, "einc_options_add_import_folder", "folder");
    options->options.import_folders.emplace_back(folder);
  });
}

einc_status einc_options_set_code_cache(einc_options* options, const char* folder) {
  return guard([&] {
    require(options, "einc_options_set_code_cache", "options");
    require(folder, "einc_options_set_code_cache", "folder");
    options->options.code_cache = folder;
  });
}
