// SPDX-License-Identifier: Apache-2.0
// One shared library of NVIDIA's, found by file name.
#pragma once
#include <string>
#include <vector>

namespace einc::cuda {

class OpenLibrary {
 public:
  // The first of `names` that is found. Throws RuntimeFailure (resource): "libnvrtc.so.13 is not found ...; it comes with ORIGIN".
  OpenLibrary(const std::vector<std::string>& names, const std::string& origin);
  // Throws RuntimeFailure (resource) when the library has no such function.
  void* function(const char* name) const;
  const std::string& name() const { return name_; }  // that it was opened by
  void* handle() const { return handle_; }

 private:
  std::string name_;
  void* handle_ = nullptr;  // open until the process ends
};

}  // namespace einc::cuda
