# SPDX-License-Identifier: Apache-2.0
# Warnings, sanitizers and the compiler cache, in one interface target.
# -Wno-restrict: g++ 12 warns about `"(" + text` in its own string header (GCC bug 105651); -Wno-stringop-overread: likewise where a boost
# small_vector is returned by value.
add_library(einc_flags INTERFACE)
target_compile_options(einc_flags INTERFACE -Wall -Wextra -Wpedantic -Werror -Wswitch -Wshadow -fno-math-errno -ffp-contract=off
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overread>)
if(EINC_SANITIZE)
  # -Wno-maybe-uninitialized, -Wno-mismatched-new-delete: g++ 12 sees ghosts behind instrumented code.
  target_compile_options(einc_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-Wno-mismatched-new-delete>)
  target_link_options(einc_flags INTERFACE -fsanitize=address,undefined)
endif()
if(EINC_FUZZ)
  target_compile_options(einc_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(einc_flags INTERFACE -fsanitize=address,undefined)
endif()
find_program(EINC_CCACHE ccache)
if(EINC_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${EINC_CCACHE})
endif()
