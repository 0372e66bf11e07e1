# SPDX-License-Identifier: Apache-2.0
# Run as a script: writes OUTPUT, a .cpp with the hash of the sources in FOLDERS (separated by commas).
string(REPLACE "," ";" FOLDERS "${FOLDERS}")
set(all "")
foreach(folder IN LISTS FOLDERS)
  file(GLOB files ${folder}/*.cpp ${folder}/*.h)
  list(SORT files)
  foreach(file IN LISTS files)
    file(SHA256 ${file} hash)
    string(APPEND all ${hash})
  endforeach()
endforeach()
string(SHA256 hash "${all}")
file(WRITE ${OUTPUT}
"// Generated: the hash of the sources that plan and emit kernels.
#include \"compiler/codegen/llvm/emitter_hash.h\"

namespace einc {

std::string_view emitter_hash() { return \"${hash}\"; }

}  // namespace einc
")
