# SPDX-License-Identifier: Apache-2.0
# What the installed libeinc_c shows: the functions that einc/c.h declares, which c_symbols.txt lists. A name that goes from this list
# breaks programs that use it: such a change raises EINC_C_ABI.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
file(GLOB_RECURSE library ${WORK}/prefix/libeinc_c.so)
# A local symbol may stand in the table too (ld leaves some of mergeable constants there); nothing can link to it.
run(nm -D --defined-only --extern-only --format=just-symbols ${library})
string(REGEX MATCHALL "[^\n]+" lines "${output}")
list(SORT lines)

file(STRINGS ${WORK}/prefix/include/einc/c.h declarations REGEX "^EINC_API ")
list(TRANSFORM declarations REPLACE "^[^(]*[ *](einc_[a-z_]+)\\(.*$" "\\1")
list(SORT declarations)

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/c_symbols.txt listed)
foreach(others lines declarations)
  if(NOT "${${others}}" STREQUAL "${listed}")
    message(SEND_ERROR "${others}, unlike c_symbols.txt:\n${${others}}\n${listed}")
  endif()
endforeach()
