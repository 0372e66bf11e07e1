# SPDX-License-Identifier: Apache-2.0
# Installs the build into WORK/prefix for the other package tests.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(REMOVE_RECURSE ${WORK}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)

# Nothing of LLVM, and no file of the source tree, is needed to include the headers.
file(GLOB headers ${WORK}/prefix/include/einc/*.h)
list(LENGTH headers count)
if(count LESS 6)
  message(FATAL_ERROR "only ${count} headers: ${headers}")
endif()
foreach(header IN LISTS headers)
  file(STRINGS ${header} includes REGEX "^#include [\"<]")
  foreach(include IN LISTS includes)
    if(include MATCHES "llvm" OR include MATCHES "\"" AND NOT include MATCHES "\"einc/")
      message(FATAL_ERROR "${header}: ${include}")
    endif()
  endforeach()
endforeach()
